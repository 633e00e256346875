"""The user's own program as a function to optimise: arguments in, the last number printed out.

Or the last two: the value, and the standard deviation of its noise. Or many values.

No shell is involved: each argument reaches the program as one argument, whatever it holds.
"""

from __future__ import annotations

import re
import shutil
import signal
import threading
import weakref
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Union

from partita.errors import InvalidInput

from .printed import (
    ProgramFailed,
    by_name,
    last_line,
    last_number,
    last_pair,
    replicates_of,
    text_of,
)
from .processes import CouldNotStart, End, Runner, new_runner

if TYPE_CHECKING:
    from partita.optimize.aggregates import Aggregate

#: Escaped braces, a placeholder, or a brace that is neither.
_BRACES = re.compile(r"\{\{|\}\}|\{(?P<name>[^\W\d]\w*)\}|[{}]")
#: What a program printed: a value, with its noise, values by name, or many values.
Printed = Union[float, tuple[float, float], dict[str, float], list[float], "Aggregate"]


# -- arguments with placeholders -------------------------------------------------------------------


class Piece(NamedTuple):
    """A part of an argument: literal text, or the name of a parameter."""

    text: str
    is_name: bool


@dataclass(frozen=True)
class Template:
    """A program and its arguments, with the names of parameters wherever their values go."""

    arguments: tuple[tuple[Piece, ...], ...]

    def fill(self, params: Mapping[str, object]) -> list[str]:
        """The arguments for one evaluation, without those for parameters that are not active.

        With {C} alone goes the option before it, so that `--C {C}` and `--C={C}` are the same.
        """
        filled: list[str] = []
        for i, pieces in enumerate(self.arguments):
            if all(text in params for text, is_name in pieces if is_name):
                filled.append(
                    "".join(argument(params[text]) if is_name else text for text, is_name in pieces)
                )
            elif len(pieces) == 1 and _is_option(self.arguments[i - 1]):
                filled.pop()
        return filled


def _is_option(pieces: tuple[Piece, ...]) -> bool:
    """Whether an argument is an option such as --C, which a value follows."""
    return len(pieces) == 1 and not pieces[0].is_name and pieces[0].text.startswith("-")


def read_template(
    arguments: Sequence[str],
    names: Collection[str],
    always: Collection[str] | None = None,
    also: Collection[str] = (),
) -> Template:
    """The template in `arguments`, with {name} for parameters; each parameter must be used.

    Those of `always` are always active, all if it is not given. The names of `also` may be used.
    """
    if not arguments:
        raise InvalidInput(
            "no program to run: write it last, after two dashes, such as -- ./train.sh {lr}"
        )
    template = Template(tuple(_pieces(text) for text in arguments))
    used = {text for pieces in template.arguments for text, is_name in pieces if is_name}
    for name in sorted(used.difference(names, also)):
        raise InvalidInput(
            f"{{{name}}}: no parameter has this name. The names are {', '.join(names)}; add "
            f"--param {name}:LOW:HIGH, or write {{{{ and }}}} for literal braces."
        )
    unused = [name for name in names if name not in used]
    if unused:
        raise InvalidInput(
            f"{', '.join(unused)}: the program's arguments never use "
            f"{'it' if len(unused) == 1 else 'them'}. Put {{{unused[0]}}} where its value goes, or "
            "leave the parameter out."
        )
    program = template.arguments[0]
    if not all(
        text in (names if always is None else always) for text, is_name in program if is_name
    ):
        raise InvalidInput(
            f"{arguments[0]}: the program itself cannot depend on a parameter that is not always "
            "there. Begin with one that is the same for all, such as env"
        )
    if not any(is_name for _, is_name in program):
        _check_program("".join(text for text, _ in program))
    return template


def argument(value: object) -> str:
    """The value of a parameter as text for a program: 0.001, 7, true, adam."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def _pieces(text: str) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    end = 0
    for match in _BRACES.finditer(text):
        pieces.append(Piece(text[end : match.start()], False))
        end = match.end()
        if match[0] in ("{{", "}}"):
            pieces.append(Piece(match[0][0], False))
        elif match["name"] is not None:
            pieces.append(Piece(match["name"], True))
        else:
            raise _bad_brace(text)
    pieces.append(Piece(text[end:], False))
    return tuple(piece for piece in pieces if piece.text)


def _bad_brace(text: str) -> InvalidInput:
    return InvalidInput(
        f"argument {text!r}: braces hold the name of a parameter and nothing else, such as {{lr}}. "
        "Write {{ and }} for literal braces."
    )


def _check_program(program: str) -> None:
    """Refuse a program that does not exist."""
    if shutil.which(program) is not None:
        return
    path = Path(program)
    if not program.strip() or path.is_dir():
        raise InvalidInput(f"{program!r}: not a program. Give its name, or its path.")
    if path.name == program:
        here = f" For the file in this folder, write ./{program}" if path.exists() else ""
        raise InvalidInput(f"{program}: there is no such program on the PATH.{here}")
    if not path.exists():
        raise InvalidInput(f"{program}: there is no such program.")
    raise InvalidInput(f"{program}: is not executable. Try chmod +x {program}")


# -- running ---------------------------------------------------------------------------------------


class Program:
    """Runs a template for given parameters; calls may come from several threads.

    A program is run by a supervisor, which also ends the processes that the program leaves behind.
    There is one supervisor for each program that runs at the same time.

    Parameters
    ----------
    template : Template
    timeout : float, optional
        Seconds after which the program, and everything it started, is ended.
    std : bool
        Whether the program prints the standard deviation of its value's noise after the value.
    named : bool
        Whether it prints several values by name, on lines name=value.
    replicates : bool
        Whether it prints as many values as its argument `count` says, or lines mean=, std= and
        count=.
    """

    def __init__(
        self,
        template: Template,
        timeout: float | None = None,
        *,
        std: bool = False,
        named: bool = False,
        replicates: bool = False,
    ) -> None:
        self.template, self.replicates = template, replicates
        self.timeout, self.std, self.named = timeout, std, named
        self._lock = threading.Lock()
        self._runners: set[Runner] = set()
        self._idle: list[Runner] = []
        self._stopped = False
        weakref.finalize(self, _close, self._runners)

    def __call__(self, **params: object) -> Printed:
        """The last number that the program prints on stdout; `ProgramFailed` if there is none.

        With `std`, the last two numbers: the value and the standard deviation of its noise. With
        `named`, all values by name.
        """
        command = self.template.fill(params)
        try:
            return self._value(self._run(command), params.get("count"))
        except ProgramFailed as error:
            error.command = tuple(command)
            raise

    def stop(self) -> None:
        """End everything that is running, and start nothing more."""
        with self._lock:
            self._stopped = True
        _close(self._runners)

    def _value(self, end: End, count: object) -> Printed:
        if end.late:
            raise ProgramFailed(f"timed out after {self.timeout:g} s")
        if end.code != 0:
            raise ProgramFailed(f"{_ending(end.code)}{_last_words(end)}")
        text = text_of(end.out)
        if self.replicates and isinstance(count, int):
            return replicates_of(text, count, cut=end.out.cut)
        if self.named:
            return by_name(text)
        return last_pair(text) if self.std else last_number(text)

    def _run(self, command: list[str]) -> End:
        """Run a program to its end."""
        runner = self._take()
        reusable = False
        try:
            end = runner.run(command, self.timeout)
            reusable = end is not None and not end.left
        except CouldNotStart as error:
            reusable = True
            raise ProgramFailed(f"could not be started: {error}") from error
        finally:  # after Ctrl-C, too, no process must be left behind
            self._give(runner, reusable)
        if self._stopped:
            raise ProgramFailed("stopped before it finished")
        if end is None:
            raise ProgramFailed("killed from outside, together with its supervisor")
        return end

    def _take(self) -> Runner:
        """A runner that is free, or a new one."""
        with self._lock:
            if self._stopped:
                raise ProgramFailed("stopped before it began")
            if self._idle:
                return self._idle.pop()
            try:
                runner = new_runner()
            except CouldNotStart as error:
                raise ProgramFailed(f"could not be started: {error}") from error
            self._runners.add(runner)
            return runner

    def _give(self, runner: Runner, reusable: bool) -> None:
        """Keep a runner for the next program, or end it and everything it still runs."""
        with self._lock:
            if reusable and not self._stopped:
                self._idle.append(runner)
                return
        _close({runner})
        with self._lock:
            self._runners.discard(runner)


def _close(runners: Collection[Runner]) -> None:
    """End runners and everything that they run."""
    closing = list(runners)
    for runner in closing:
        runner.close()
    for runner in closing:
        runner.wait()


def _last_words(end: End) -> str:
    line = last_line(text_of(end.err)) or last_line(text_of(end.out))
    return f": {line}" if line else ""


def _ending(code: int) -> str:
    if code > 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"

"""The user's own program as a function to optimise: arguments in, the last number printed out.

Or the last two: the value, and the standard deviation of its noise.

No shell is involved: each argument reaches the program as one argument, whatever it holds.
"""

from __future__ import annotations

import math
import re
import shutil
import signal
import threading
import weakref
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from partita.errors import InvalidInput, PartitaError

from .named import named_values
from .processes import CouldNotStart, End, Output, Runner, new_runner

#: The number of characters of a program's output that a message quotes.
QUOTED = 200

#: Escaped braces, a placeholder, or a brace that is neither.
_BRACES = re.compile(r"\{\{|\}\}|\{(?P<name>[^\W\d]\w*)\}|[{}]")
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
#: Digits, with underscores between them as many languages write thousands.
_DIGITS = r"[0-9]+(?:_[0-9]+)*"
#: A number that is not the end of a word: "model2" and "layer-2" contain none. Anything may follow:
#: "0.93%" and "12ms" contain one. But a part of another token is not a number, such as the 0 of
#: 0x1F or the 1 of 1__000. (Possessive quantifiers would express that, but Python 3.11.2 has a bug
#: in them.) NaN and infinity count as numbers here, so that they are noticed.
_NUMBER = re.compile(
    r"(?<![\w.])(?<![^\W\d][+-])[+-]?"
    rf"(?:(?!0(?:x[0-9a-f]|o[0-7]|b[01]))(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})"
    rf"(?:e[+-]?{_DIGITS})?"
    # Not followed by the rest of a number, which a shorter match would leave.
    r"(?![0-9]|_+[0-9]|\.[0-9]|e[+-]?[0-9])|(?:nan|inf(?:inity)?)(?!\w))",
    re.IGNORECASE,
)


#: What a program printed: a value, with its noise, or values by name.
Printed = float | tuple[float, float] | dict[str, float]


class ProgramFailed(PartitaError, RuntimeError):
    """The program gave no value: it failed, took too long, or printed no number.

    `command` is the program with its arguments, if known.
    """

    command: tuple[str, ...] = ()


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
    arguments: Sequence[str], names: Collection[str], always: Collection[str] | None = None
) -> Template:
    """The template in `arguments`, with {name} for parameters; each parameter must be used.

    Those of `always` are always active, all if it is not given.
    """
    if not arguments:
        raise InvalidInput(
            "no program to run: write it last, after two dashes, such as -- ./train.sh {lr}"
        )
    template = Template(tuple(_pieces(text) for text in arguments))
    used = {text for pieces in template.arguments for text, is_name in pieces if is_name}
    for name in sorted(used.difference(names)):
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
    """

    def __init__(
        self,
        template: Template,
        timeout: float | None = None,
        *,
        std: bool = False,
        named: bool = False,
    ) -> None:
        self.template = template
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
            return self._value(self._run(command))
        except ProgramFailed as error:
            error.command = tuple(command)
            raise

    def stop(self) -> None:
        """End everything that is running, and start nothing more."""
        with self._lock:
            self._stopped = True
        _close(self._runners)

    def _value(self, end: End) -> Printed:
        if end.late:
            raise ProgramFailed(f"timed out after {self.timeout:g} s")
        if end.code != 0:
            raise ProgramFailed(f"{_ending(end.code)}{_last_words(end)}")
        text = _text(end.out)
        if self.named:
            return _by_name(text)
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


# -- what it printed -------------------------------------------------------------------------------


def _by_name(text: str) -> dict[str, float]:
    """The values of the lines name=value; `ProgramFailed` if there are none."""
    values = named_values(text)
    if not values:
        line = _last_line(text)
        what = f", but {line}" if line else ""
        raise ProgramFailed(f"printed no line such as loss=0.3{what}")
    return values


def last_number(text: str) -> float:
    """The last number in a program's output; `ProgramFailed` if there is no usable one."""
    number = _numbers(text)[-1]
    value = float(number)
    if not math.isfinite(value):
        raise ProgramFailed(f"the last number it printed is {number}")
    return value


def last_pair(text: str) -> tuple[float, float]:
    """The last two numbers in a program's output: a value and its standard deviation."""
    numbers = _numbers(text)
    if len(numbers) == 1:
        raise ProgramFailed(
            f"printed one number, {numbers[0]}, but --std needs two: the value, then its standard "
            "deviation"
        )
    value, std = map(float, numbers[-2:])
    if not math.isfinite(value):
        raise ProgramFailed(f"the value, the second to last number it printed, is {numbers[-2]}")
    if not 0.0 <= std < math.inf:
        raise ProgramFailed(
            f"the standard deviation, the last number it printed, is {numbers[-1]}, but must be "
            "a finite number of at least 0"
        )
    return value, std


def _numbers(text: str) -> list[str]:
    """The numbers in a program's output, at least one."""
    numbers = _NUMBER.findall(text.replace("\N{MINUS SIGN}", "-"))
    if not numbers:
        line = _last_line(text)
        raise ProgramFailed(f"printed no number, but {line}" if line else "printed nothing")
    return numbers


def _text(output: Output) -> str:
    """The last part of a program's output, without colours."""
    text = output.content.decode("utf-8", "replace").replace("\N{MINUS SIGN}", "-")
    if output.cut and (match := _NUMBER.match(text)):
        text = f"…{text[match.end() :]}"  # the beginning of the first word may be cut off
    return _COLOURS.sub("", text)


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    if not lines:
        return ""
    line = lines[-1].strip()
    return repr(line if len(line) <= QUOTED else line[:QUOTED] + "…")


def _last_words(end: End) -> str:
    line = _last_line(_text(end.err)) or _last_line(_text(end.out))
    return f": {line}" if line else ""


def _ending(code: int) -> str:
    if code > 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"

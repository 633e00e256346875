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

#: Characters of a program's own words that a message quotes.
QUOTED = 200

#: Braces that are meant, a placeholder, or a brace that is neither.
_BRACES = re.compile(r"\{\{|\}\}|\{(?P<name>[^\W\d]\w*)\}|[{}]")
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
#: Digits, with underscores between them as many languages write thousands.
_DIGITS = r"[0-9]+(?:_[0-9]+)*"
#: A number that is not the end of a word, so "model2" and "layer-2" hold none. What follows is
#: free: "0.93%" and "12ms" hold one. But a part of something else is not a number: not the 0 of
#: 0x1F, nor the 1 of 1__000. (Possessive quantifiers would say so, but Python 3.11.2 has a bug in
#: them.) NaN and infinity are numbers here, so that they are noticed.
_NUMBER = re.compile(
    r"(?<![\w.])(?<![^\W\d][+-])[+-]?"
    rf"(?:(?!0(?:x[0-9a-f]|o[0-7]|b[01]))(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})"
    rf"(?:e[+-]?{_DIGITS})?"
    # Nothing that a shorter match would leave of a number.
    r"(?![0-9]|_+[0-9]|\.[0-9]|e[+-]?[0-9])|(?:nan|inf(?:inity)?)(?!\w))",
    re.IGNORECASE,
)


#: What a program printed: a value, with its noise, or values by name.
Printed = float | tuple[float, float] | dict[str, float]


class ProgramFailed(PartitaError, RuntimeError):
    """The program gave no value: it failed, took too long, or printed no number.

    `command` is the program with its arguments, if it was known by then.
    """

    command: tuple[str, ...] = ()


# -- arguments with placeholders -------------------------------------------------------------------


class Piece(NamedTuple):
    """A part of an argument: text as it stands, or the name of a parameter."""

    text: str
    is_name: bool


@dataclass(frozen=True)
class Template:
    """A program and its arguments, with the names of parameters wherever their values go."""

    arguments: tuple[tuple[Piece, ...], ...]

    def fill(self, params: Mapping[str, object]) -> list[str]:
        """The arguments for one evaluation."""
        return [
            "".join(argument(params[text]) if is_name else text for text, is_name in pieces)
            for pieces in self.arguments
        ]


def read_template(arguments: Sequence[str], names: Collection[str]) -> Template:
    """The template written as `arguments`, with {name} for parameters; each must be used."""
    if not arguments:
        raise InvalidInput(
            "no program to run: write it last, after two dashes, such as -- ./train.sh {lr}"
        )
    template = Template(tuple(_pieces(text) for text in arguments))
    used = {text for pieces in template.arguments for text, is_name in pieces if is_name}
    for name in sorted(used.difference(names)):
        raise InvalidInput(
            f"{{{name}}}: no parameter has this name. There is {', '.join(names)}; add "
            f"--param {name}:LOW:HIGH, or write {{{{ and }}}} for braces that are meant."
        )
    unused = [name for name in names if name not in used]
    if unused:
        raise InvalidInput(
            f"{', '.join(unused)}: the program's arguments never use "
            f"{'it' if len(unused) == 1 else 'them'}. Put {{{unused[0]}}} where its value goes, or "
            "leave the parameter out."
        )
    program = template.arguments[0]
    if not any(is_name for _, is_name in program):
        _check_program("".join(text for text, _ in program))
    return template


def argument(value: object) -> str:
    """The value of a parameter as a program gets it: 0.001, 7, true, adam."""
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
        "Write {{ and }} for braces that are meant."
    )


def _check_program(program: str) -> None:
    """Refuse a program that does not exist."""
    if shutil.which(program) is not None:
        return
    path = Path(program)
    if not program.strip() or path.is_dir():
        raise InvalidInput(f"{program!r}: not a program. Give its name, or its path.")
    if path.name == program:
        here = f" For the file in this folder write ./{program}" if path.exists() else ""
        raise InvalidInput(f"{program}: there is no such program on the PATH.{here}")
    if not path.exists():
        raise InvalidInput(f"{program}: there is no such program.")
    raise InvalidInput(f"{program}: may not be run. Try chmod +x {program}")


# -- running ---------------------------------------------------------------------------------------


class Program:
    """Runs a template for given parameters; calls may come from several threads.

    A program is run by a supervisor, which ends what the program leaves behind; there is one for
    each program that runs at once.

    Parameters
    ----------
    template : Template
    timeout : float, optional
        Seconds after which the program, and all that it started, is ended.
    std : bool
        Whether the program prints the standard deviation of its value's noise behind the value.
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
        """The last number that the program prints on stdout; `ProgramFailed` if it gives none.

        With `std`, the last two: the value and the standard deviation of its noise. With `named`,
        all values by name.
        """
        command = self.template.fill(params)
        try:
            return self._value(self._run(command))
        except ProgramFailed as error:
            error.command = tuple(command)
            raise

    def stop(self) -> None:
        """End all that is running, and start nothing more."""
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
        finally:  # Ctrl-C among others: nothing of ours is left behind
            self._give(runner, reusable)
        if self._stopped:
            raise ProgramFailed("stopped before it was done")
        if end is None:
            raise ProgramFailed("ended from outside, with the process that ran it")
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
        """Keep a runner for the next program, or end it with all that it still runs."""
        with self._lock:
            if reusable and not self._stopped:
                self._idle.append(runner)
                return
        _close({runner})
        with self._lock:
            self._runners.discard(runner)


def _close(runners: Collection[Runner]) -> None:
    """End runners with all that they run."""
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
    """The last number in what a program printed; `ProgramFailed` if there is none to use."""
    number = _numbers(text)[-1]
    value = float(number)
    if not math.isfinite(value):
        raise ProgramFailed(f"the last number it printed is {number}")
    return value


def last_pair(text: str) -> tuple[float, float]:
    """The last two numbers: a value, and the standard deviation of its noise."""
    numbers = _numbers(text)
    if len(numbers) == 1:
        raise ProgramFailed(
            f"printed one number, {numbers[0]}, but --std needs two: the value, then its standard "
            "deviation"
        )
    value, std = map(float, numbers[-2:])
    if not math.isfinite(value):
        raise ProgramFailed(f"the last number but one it printed, its value, is {numbers[-2]}")
    if not 0.0 <= std < math.inf:
        raise ProgramFailed(
            f"the last number it printed, the standard deviation of its value, is {numbers[-1]}, "
            "but must be a finite number of 0 or more"
        )
    return value, std


def _numbers(text: str) -> list[str]:
    """The numbers in what a program printed, at least one."""
    numbers = _NUMBER.findall(text.replace("\N{MINUS SIGN}", "-"))
    if not numbers:
        line = _last_line(text)
        raise ProgramFailed(f"printed no number, but {line}" if line else "printed nothing")
    return numbers


def _text(output: Output) -> str:
    """What a program printed last, without colours."""
    text = output.content.decode("utf-8", "replace").replace("\N{MINUS SIGN}", "-")
    if output.cut and (match := _NUMBER.match(text)):
        text = f"…{text[match.end() :]}"  # its beginning may have been thrown away
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

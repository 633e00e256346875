"""The user's own program as a function to optimise: arguments in, the last number printed out.

Or the last two: the value, and the standard deviation of its noise.

No shell is involved: each argument reaches the program as one argument, whatever it holds.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from partita.errors import InvalidInput, PartitaError

#: Bytes at the end of what a program printed in which its value is looked for.
TAIL = 65_536
#: Seconds between asking a program to end (SIGTERM) and ending it (SIGKILL).
GRACE = 1.0
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


class _End(NamedTuple):
    """How a program ended: its exit code, and whether it was ended for taking too long."""

    code: int
    late: bool


class Program:
    """Runs a template for given parameters; calls may come from several threads.

    Parameters
    ----------
    template : Template
    timeout : float, optional
        Seconds after which the program, and all that it started, is ended.
    std : bool
        Whether the program prints the standard deviation of its value's noise behind the value.
    """

    def __init__(
        self, template: Template, timeout: float | None = None, *, std: bool = False
    ) -> None:
        self.template = template
        self.timeout, self.std = timeout, std
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def __call__(self, **params: object) -> float | tuple[float, float]:
        """The last number that the program prints on stdout; `ProgramFailed` if it gives none.

        With `std`, the last two: the value and the standard deviation of its noise.
        """
        command = self.template.fill(params)
        try:
            # Files, not pipes: a helper that outlives the program must not keep us waiting.
            with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
                return self._value(command, out, err)
        except ProgramFailed as error:
            error.command = tuple(command)
            raise

    def _value(
        self, command: list[str], out: IO[bytes], err: IO[bytes]
    ) -> float | tuple[float, float]:
        process = self._start(command, out, err)
        try:
            end = self._wait(process)
        except BaseException:  # Ctrl-C among others: nothing of ours is left behind
            _end([process])
            raise
        finally:
            with self._lock:
                self._running.discard(process)
        if self._stopped:
            raise ProgramFailed("stopped before it was done")
        if end.late:
            raise ProgramFailed(f"timed out after {self.timeout:g} s")
        if end.code != 0:
            raise ProgramFailed(f"{_ending(end.code)}{_last_words(err, out)}")
        return last_pair(_tail(out)) if self.std else last_number(_tail(out))

    def stop(self) -> None:
        """End all that is running, and start nothing more."""
        with self._lock:
            self._stopped = True
            running = list(self._running)
        _end(running)

    def _start(self, command: list[str], out: IO[bytes], err: IO[bytes]) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._stopped:
                raise ProgramFailed("stopped before it began")
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,  # a group of its own, which can be ended as a whole
                )
            except (OSError, ValueError) as error:
                raise ProgramFailed(f"could not be started: {error}") from error
            self._running.add(process)
            return process

    def _wait(self, process: subprocess.Popen[bytes]) -> _End:
        """Wait for the program, and end it if it takes too long."""
        if self.timeout is None:
            return _End(process.wait(), late=False)
        late = threading.Event()

        def out_of_time() -> None:
            late.set()
            _end([process])

        # A timer, because waiting with a timeout polls, and makes quick programs slow.
        timer = threading.Timer(self.timeout, out_of_time)
        timer.daemon = True
        timer.start()
        try:
            code = process.wait()
        finally:
            timer.cancel()
        if late.is_set():
            timer.join()
        return _End(code, late.is_set())


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """End programs with all that they started: ask first, then insist."""
    for process in processes:
        _signal(process, signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))
    for process in processes:
        _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))
        process.wait()


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(OSError):  # it may have ended by itself
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)


# -- what it printed -------------------------------------------------------------------------------


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


def _tail(stream: IO[bytes]) -> str:
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - TAIL))
    return _COLOURS.sub("", stream.read(TAIL).decode("utf-8", "replace"))


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    if not lines:
        return ""
    line = lines[-1].strip()
    return repr(line if len(line) <= QUOTED else line[:QUOTED] + "…")


def _last_words(err: IO[bytes], out: IO[bytes]) -> str:
    line = _last_line(_tail(err)) or _last_line(_tail(out))
    return f": {line}" if line else ""


def _ending(code: int) -> str:
    if code > 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"

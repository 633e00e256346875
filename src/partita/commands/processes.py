"""Run programs by a supervisor process, or directly on systems that do not support one."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from .supervisor import TAIL


class Output(NamedTuple):
    """The last part of a program's output, and whether anything before it was discarded."""

    content: bytes
    cut: bool


class End(NamedTuple):
    """How a program ended.

    `late`: it was ended because it took too long. `left`: something that it started could not be
    ended.
    """

    code: int
    late: bool
    left: bool
    out: Output
    err: Output


class CouldNotStart(OSError):
    """A program could not be started. The message says why."""


class Runner(Protocol):
    """Runs programs, one at a time."""

    def run(self, command: Sequence[str], timeout: float | None) -> End | None:
        """Run a program to its end; None if this was closed or killed meanwhile."""

    def close(self) -> None:
        """Start to end what is running; nothing more can be run."""

    def wait(self) -> None:
        """After `close`, wait until everything has ended."""


def new_runner() -> Runner:
    """The best runner that the system supports."""
    return Supervisor() if os.name == "posix" and sys.executable else Direct()


class Supervisor:
    """The process of `supervisor.py`."""

    def __init__(self) -> None:
        try:
            with Path(__file__).with_name("supervisor.py").open("rb") as file:
                self._process = self._start(file)
        except OSError as error:
            raise CouldNotStart(f"its supervisor could not be started: {error}") from error

    @staticmethod
    def _start(file: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start Python on an open file."""
        name: str = file.name
        files: tuple[int, ...] = ()
        if sys.platform == "linux":
            # By its number, so that `pkill -9 -f partita` spares it: it must end the programs.
            name, files = f"/proc/self/fd/{file.fileno()}", (file.fileno(),)
        return subprocess.Popen(
            # Without site-packages, which take most of Python's start-up time.
            [sys.executable, "-S", "-s", "-P", name, "supervisor"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=files,
            start_new_session=True,  # Ctrl-C in a terminal is Partita's to handle
        )

    def run(self, command: Sequence[str], timeout: float | None) -> End | None:
        """Run a program to its end; None if this was closed or killed meanwhile."""
        sending, answering = self._process.stdin, self._process.stdout
        assert sending is not None
        assert answering is not None
        request = json.dumps({"command": list(command), "timeout": timeout})
        try:
            sending.write(request.encode("ascii") + b"\n")
            sending.flush()
        except (OSError, ValueError):  # it is gone, or closed
            return None
        line = answering.readline()
        if not line.endswith(b"\n"):
            return None
        answer = json.loads(line)
        if "error" in answer:
            raise CouldNotStart(answer["error"])
        if answer["code"] is None and not answer["late"]:
            return None
        out, err = (
            Output(answer[name].encode("latin-1"), cut)
            for name, cut in zip(("out", "err"), answer["cut"], strict=True)
        )
        code = -9 if answer["code"] is None else answer["code"]
        return End(code, answer["late"], answer["left"], out, err)

    def close(self) -> None:
        """Begin to end what runs: its input ends."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def wait(self) -> None:
        """Wait until it has ended."""
        self._process.wait()
        with contextlib.suppress(OSError):
            assert self._process.stdout is not None
            self._process.stdout.close()


class Direct:
    """Runs a program without a supervisor: processes that the program starts are not ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = threading.Event()

    def run(self, command: Sequence[str], timeout: float | None) -> End | None:
        """Run a program to its end; None if this was closed meanwhile."""
        with self._lock:
            if self._closed.is_set():
                return None
            try:
                process = self._process = subprocess.Popen(
                    list(command),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                )
            except (OSError, ValueError) as error:
                raise CouldNotStart(str(error)) from error
        assert process.stdout is not None
        assert process.stderr is not None
        readers = [_Reader(process.stdout), _Reader(process.stderr)]
        late = False
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            late = True
            process.kill()
        code = process.wait()
        out, err = (reader.output() for reader in readers)
        return None if self._closed.is_set() else End(code, late, False, out, err)

    def close(self) -> None:
        """End what runs."""
        with self._lock:
            self._closed.set()
            if self._process is not None:
                self._process.kill()

    def wait(self) -> None:
        """Wait until what ran has ended."""
        if self._process is not None:
            self._process.wait()


class _Reader(threading.Thread):
    """Keeps the last part of what is read from a file."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self._file, self._kept, self._size = file, bytearray(), 0
        self.start()

    def run(self) -> None:
        with self._file as file:
            while chunk := os.read(file.fileno(), TAIL):
                self._size += len(chunk)
                self._kept += chunk
                del self._kept[:-TAIL]

    def output(self) -> Output:
        """The last part, after the program has ended: a helper may keep the file open forever."""
        self.join(1.0)
        return Output(bytes(self._kept), self._size > TAIL)

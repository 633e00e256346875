"""A process that runs programs for Partita, one at a time, and ends everything they started.

`processes.Supervisor` runs this file on its own, with the standard library only. Reasons for a
separate process:

- On Linux it is a *subreaper*: processes that a program leaves behind become its children, in
  whatever session or group they are. So after the program has ended, they are found and ended too.
- Its input ends when Partita does, even by SIGKILL: then it ends everything, and itself.
- It keeps the last part of a program's output, and discards the rest.

A request is a line of JSON: {"command": [...], "timeout": seconds or null}. So is the answer:
{"code", "late", "left", "out", "err", "cut"}, or {"error"} for a program that could not be started.
Output is text with one character per byte.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

#: The number of last bytes that are kept of stdout, and of stderr.
TAIL = 65_536
#: Seconds between asking a program to end (SIGTERM) and ending it (SIGKILL).
GRACE = 1.0
#: Seconds during which remaining processes are killed repeatedly, before giving up.
PATIENCE = 5.0
#: Seconds between two of these attempts.
PAUSE = 0.02
#: Bytes read at once, and the most that is read after a program has ended: a helper process may
#: print forever.
CHUNK, LAST = 65_536, 1 << 24

_PR_SET_CHILD_SUBREAPER = 36


class Tail:
    """The last part of what is written into a pipe."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        self.kept = bytearray()
        self.size = 0
        self.frozen = False

    def read(self) -> bool | None:
        """Read what is available: True if anything, False at the end, None if nothing yet."""
        try:
            chunk = os.read(self.reader, CHUNK)
        except BlockingIOError:
            return None
        if not self.frozen:
            self.size += len(chunk)
            self.kept += chunk
            if len(self.kept) > 2 * TAIL:
                del self.kept[:-TAIL]
        return bool(chunk)

    def freeze(self) -> None:
        """Read what was written so far, and ignore what comes later."""
        most = self.size + LAST
        while self.size < most and self.read():
            pass
        self.frozen = True

    def text(self) -> str:
        """The text that was kept, with one character per byte."""
        return self.kept[-TAIL:].decode("latin-1")


class Supervisor:
    """Serves requests until its input ends, or Partita does."""

    def __init__(self) -> None:
        self._closing = False
        self._input = b""
        self._program = 0
        #: How each process ended, by its number.
        self._ends: dict[int, int] = {}
        #: Whether everything that a program leaves behind becomes a child of this process.
        self._adopts = _adopt()
        self._woken = _wake_on_signals()
        self._poll = select.poll()
        self._poll.register(self._woken, select.POLLIN)
        self._poll.register(0, select.POLLIN)
        with contextlib.suppress(AttributeError, OSError):
            # In case a process that Partita forked holds our input open.
            self._poll.register(os.pidfd_open(os.getppid()), select.POLLIN)
        self._tails: dict[int, Tail] = {}

    def serve(self) -> None:
        """Run programs until the input ends."""
        while (request := self._request()) is not None:
            answer = self._run(request["command"], request["timeout"])
            content = json.dumps(answer).encode("ascii") + b"\n"
            with contextlib.suppress(OSError):
                while content:
                    content = content[os.write(1, content) :]
            if answer.get("left"):
                break  # processes that cannot be ended must not count as the next program's

    def _request(self) -> dict[str, Any] | None:
        while b"\n" not in self._input:
            self._pump(math.inf, lambda: self._closing or b"\n" in self._input)
            if self._closing:
                return None
        line, _, self._input = self._input.partition(b"\n")
        request: dict[str, Any] = json.loads(line)
        return request

    # -- one program ------------------------------------------------------------------------------

    def _run(self, command: list[str], timeout: float | None) -> dict[str, Any]:
        out, err = Tail(), Tail()
        self._tails = {out.reader: out, err.reader: err}
        try:
            self._program = _spawn(command, out.writer, err.writer)
        except (OSError, ValueError) as error:
            for tail in (out, err):
                os.close(tail.reader)
            return {"error": str(error)}
        finally:
            for tail in (out, err):
                os.close(tail.writer)
        for reader in self._tails:
            self._poll.register(reader, select.POLLIN)
        end = math.inf if timeout is None else time.monotonic() + timeout
        self._pump(end, lambda: self._closing or self._ended())
        in_time = self._ended()
        late = not in_time and not self._closing
        if in_time:  # else it may still print something when it is asked to end
            for tail in (out, err):
                tail.freeze()
        left = not self._end_all()
        for reader in (out.reader, err.reader):
            self._forget(reader)
            os.close(reader)
        return {
            "code": self._ends.pop(self._program, None),
            "late": late,
            "left": left,
            "out": out.text(),
            "err": err.text(),
            "cut": [out.size > TAIL, err.size > TAIL],
        }

    def _end_all(self) -> bool:
        """End what is left of a program, by SIGTERM, then SIGKILL; return whether all is gone."""
        if self._all_gone():
            return True
        self._signal(signal.SIGTERM)
        self._pump(time.monotonic() + GRACE, self._all_gone)
        end = time.monotonic() + PATIENCE
        while not self._all_gone() and time.monotonic() < end:
            self._signal(signal.SIGKILL)
            self._pump(time.monotonic() + PAUSE, self._all_gone)
        return self._all_gone()

    def _signal(self, number: int) -> None:
        """Send a signal, once, to each process that is left of the program."""
        rows = descendants(os.getpid())
        if not self._adopts or not rows:
            with contextlib.suppress(OSError):
                os.killpg(self._program, number)
            rows = [row for row in rows if row.group != self._program]
        for row in rows:
            with contextlib.suppress(OSError):
                os.kill(row.pid, number)

    def _ended(self) -> bool:
        self._reap()
        return self._program in self._ends

    def _all_gone(self) -> bool:
        """Whether no process of the program is visible any more."""
        if self._reap():
            return False
        if self._adopts:
            return True
        try:
            os.killpg(self._program, 0)
        except OSError:
            return True
        return False

    def _reap(self) -> bool:
        """Collect the children that have ended; return whether others are running."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._program:
                self._ends[pid] = os.waitstatus_to_exitcode(status)

    # -- waiting ----------------------------------------------------------------------------------

    def _pump(self, end: float, done: Callable[[], bool]) -> None:
        """Read output until `done`, or the time `end`."""
        while not done():
            rest = end - time.monotonic()
            if rest <= 0:
                return
            wait = None if rest == math.inf else math.ceil(1000 * min(rest, 1e6))
            for file, _ in self._poll.poll(wait):
                if file in self._tails:
                    if self._tails[file].read() is False:
                        self._forget(file)
                elif file == self._woken:
                    os.read(file, 4096)
                else:
                    chunk = os.read(0, CHUNK) if file == 0 else b""
                    self._input += chunk
                    if not chunk:
                        self._closing = True
                        self._poll.unregister(file)

    def _forget(self, reader: int) -> None:
        if self._tails.pop(reader, None) is not None:
            self._poll.unregister(reader)


def _wake_on_signals() -> int:
    """Handle SIGCHLD, and signals meant for Partita; return a file descriptor to wait on.

    The signals have handlers and are not ignored, since programs would inherit that.
    """
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    return reader


def _adopt() -> bool:
    """Become a subreaper; return whether the system supports that."""
    if sys.platform == "linux":
        with contextlib.suppress(ImportError, OSError, AttributeError):
            import ctypes

            return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    return False


def _spawn(command: list[str], out: int, err: int) -> int:
    """Start a program in its own session; return its process number, or raise OSError."""
    settings: dict[str, Any] = {
        "file_actions": [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, out, 1),
            (os.POSIX_SPAWN_DUP2, err, 2),
        ],
        "setsigdef": [signal.SIGPIPE, signal.SIGXFSZ],  # these are ignored by Python
    }
    path = _find(command[0])
    try:
        return os.posix_spawn(path, command, os.environ, setsid=True, **settings)
    except NotImplementedError:  # no sessions here: use a process group
        return os.posix_spawn(path, command, os.environ, setpgroup=0, **settings)


def _find(program: str) -> str:
    """The file of a program, looked for where a shell would."""
    if os.sep in program:
        return program
    for folder in os.get_exec_path():
        path = os.path.join(folder, program)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)


# -- the table of processes ------------------------------------------------------------------------


class Row(NamedTuple):
    """A process: its number, its parent's and its group's."""

    pid: int
    parent: int
    group: int


def descendants(root: int) -> list[Row]:
    """All processes that `root` started, directly or not, as far as the chain of parents shows."""
    children: dict[int, list[Row]] = {}
    for row in processes():
        children.setdefault(row.parent, []).append(row)
    below: list[Row] = []
    work = [root]
    while work:
        rows = children.pop(work.pop(), [])
        below += rows
        work += [row.pid for row in rows]
    return below


def processes() -> Iterator[Row]:
    """All visible processes."""
    try:
        numbers = [name for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        numbers = []
    if not numbers:
        yield from _listed()
    for number in numbers:
        try:
            with open(f"/proc/{number}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            yield Row(int(number), int(fields[1]), int(fields[2]))
        except (OSError, IndexError, ValueError):
            continue  # it has ended meanwhile


def _listed() -> Iterator[Row]:
    """All processes by the program `ps`, where the system has no /proc."""
    with contextlib.suppress(OSError), os.popen("ps -A -o pid= -o ppid= -o pgid=") as lines:
        for line in lines:
            with contextlib.suppress(ValueError):
                yield Row(*map(int, line.split()))


if __name__ == "__main__":
    own = os.path.basename(sys.argv[0])
    if own.isdecimal():  # the descriptor of this file, which programs must not inherit
        os.close(int(own))
    Supervisor().serve()

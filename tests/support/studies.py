"""What the tests of studies share: a space, a function, and processes that are really there."""

import faulthandler
import os
import signal
import sqlite3
import sys
import traceback
from contextlib import closing, suppress

from partita.errors import InvalidInput
from partita.study import Study
from partita.study.events import ORIGIN, checked, digest_of, head_of

SPACE = {"rate": (1e-3, 1.0, "log"), "depth": (1, 9, "int"), "kind": ["a", "b", "c"]}
PLANE = [(0.0, 1.0), (-1.0, 2.0)]


def value(params):
    """A function of both spaces."""
    if isinstance(params, dict):
        return (params["rate"] - 0.3) ** 2 + params["depth"] / 20 + (params["kind"] == "a") / 3
    return float((params[0] - 0.3) ** 2 + (params[1] - 0.5) ** 2)


def play(player, n):
    """Ask and tell n times; the parameters asked for."""
    asked = []
    for _ in range(n):
        trial = player.ask()
        player.tell(trial, value(trial.params))
        asked.append(plain(trial.params))
    return asked


def plain(params):
    return params if isinstance(params, dict) else params.tolist()


def asks(player, n=3):
    """The next few parameters, all left pending."""
    return [plain(player.ask().params) for _ in range(n)]


def looking(path):
    """A connection that leaves the log where it is, as a process does that is killed."""
    return closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True))


def events(path):
    """The log as it is on the disk."""
    with looking(path) as db:
        return db.execute("SELECT seq, kind, trial, value FROM events ORDER BY seq").fetchall()


def change(path, *statements):
    """Tamper with a file."""
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(*((statement,) if isinstance(statement, str) else statement))
        db.commit()


def rechained(path, *statements):
    """Tamper with a file as one does who knows how its checksums are made."""
    change(path, *statements)
    with closing(sqlite3.connect(path)) as db:
        seq, digest = 0, ORIGIN
        for row in db.execute("SELECT * FROM events ORDER BY seq").fetchall():
            with suppress(InvalidInput):
                seq, digest = row[0], digest_of(digest, checked(row))
                db.execute("UPDATE events SET digest = ? WHERE seq = ?", (digest, seq))
        db.execute("UPDATE meta SET value = ? WHERE key = 'head'", (head_of(seq, digest),))
        db.commit()


def is_sound(path):
    with looking(path) as db:
        return db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def without_snapshots(path):
    """The study by a full replay of its log."""
    change(path, "DELETE FROM snapshot")
    return Study.open(path)


#: Seconds after which a forked process ends itself, and shows where it was.
LONGEST = 300


class Process:
    """A function in a forked process; what it writes to its one argument is read here."""

    def __init__(self, function):
        read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                faulthandler.dump_traceback_later(LONGEST, exit=True, file=sys.__stderr__)
                os.close(read)
                with os.fdopen(write, "w", buffering=1) as out:
                    function(out)
                code = 0
            except BaseException:
                traceback.print_exc(file=sys.__stderr__)
            finally:
                os._exit(code)
        os.close(write)
        self._pipe = os.fdopen(read)
        self._code = None

    def line(self):
        return self._pipe.readline().strip()

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        return self.end()[0]

    def end(self):
        """Its lines, whole ones only, and its exit code (negative for a signal)."""
        text = self._pipe.read()
        self._pipe.close()
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return text[: text.rfind("\n") + 1].splitlines(), code

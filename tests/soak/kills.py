"""Processes on one study are killed with -9: what they acknowledged is in the file, and it goes on.

A process acknowledges by writing to a pipe after the call returned: what was written is read here,
whatever becomes of the writer.
"""

import contextlib
import importlib
import io
import json
import math
import os
import random
import signal
import tempfile
import time
from pathlib import Path
from unittest import mock

from support.kills import acknowledged, holds, work
from support.studies import PLANE, SPACE, Process, play, value, without_snapshots

import partita as pt
from partita.commands.main import main
from partita.study import Study, replica, store

#: Kills in a case, all on one file.
KILLS = 12


def by_study(path, out, space, settings):
    """Ask and tell by `Study`."""
    work(path, out, space, **settings)


def by_run(path, out, space, settings):
    """Ask and tell by `minimize`, whose callback acknowledges what was told."""

    def told(evaluation):
        out.write(f"tell {evaluation.number} {evaluation.value!r}\n")

    def f(*given, **params):
        return value(params or given[0])

    pt.minimize(f, space, study=path, n_evals=10**6, callback=told, **settings)


def by_commands(path, out, space, settings):
    """Ask and tell by the command line, each command with a connection of its own."""
    Study.open(path, space, **settings).close()
    while True:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            assert main(["ask", str(path), "--json"]) == 0
        trial = json.loads(said.getvalue())
        out.write(f"ask {trial['number']}\n")
        y = value(trial["params"])
        assert main(["tell", str(path), str(trial["number"]), repr(y)]) == 0
        out.write(f"tell {trial['number']} {y!r}\n")


WAYS = (by_study, by_run, by_commands)


def killed(process):
    """What a process said before it was killed; it must not have ended by itself before."""
    os.kill(process.pid, signal.SIGKILL)
    lines, code = process.end()
    assert code == -signal.SIGKILL, f"a process ended by itself, with exit code {code}"
    return lines


def kill_many(seed, kills=KILLS):
    """Kill processes on a new file, some of three at once; how many, and what they had told."""
    draw = random.Random(seed)
    often = mock.patch.multiple(
        replica, SNAPSHOT_AFTER=0.0, SNAPSHOT_BYTES=math.inf, SNAPSHOT_EVENTS=7
    )
    with often, mock.patch.object(store, "LOG_PAGES", 40), tempfile.TemporaryDirectory() as folder:
        return _kill_many(draw, Path(folder) / "tune.db", kills)


def _kill_many(draw, path, kills):
    space, settings = draw.choice(
        [(PLANE, {"policy": "uniform"})] * 3 + [(SPACE, {"policy": "uniform"}), (PLANE, {})]
    )
    at_once = draw.choice([1, 2, 3])
    asked, told, ways, crew = set(), {}, {}, []
    for _ in range(kills):
        while len(crew) < at_once:
            way = draw.choice(WAYS)
            ways[way.__name__] = ways.get(way.__name__, 0) + 1
            crew.append(Process(lambda out, way=way: way(path, out, space, settings)))
        victim = crew.pop(draw.randrange(len(crew)))
        # While it works; every fourth one from the first moment on, when the file is opened.
        lines = [victim.line() for _ in range(draw.choice([0, 4, 10, 20]))]
        time.sleep(draw.random() * (0.004 if lines else 0.03))
        more_asked, more_told = acknowledged([*lines, *killed(victim)])
        asked |= more_asked
        told.update(more_told)
        if asked:
            holds(path, asked, told)
    for process in crew:
        more_asked, more_told = acknowledged(killed(process))
        asked |= more_asked
        told.update(more_told)
    _goes_on(path, space, settings, asked, told)
    done = {f"kills {name.replace('_', ' ')}": number for name, number in ways.items()}
    return {"kills": kills + len(crew), "acknowledged tells": len(told), **done}


def _goes_on(path, space, settings, asked, told):
    """The file opens, is sound, goes on, and says the same if it is replayed from the start."""
    with Study.open(path, space, **settings) as study:
        values = holds(path, asked, told)
        assert study.n_told == len(values)
        play(study, 3)
        assert study.n_told == len(values) + 3
    with without_snapshots(path) as study:
        assert study.n_told == len(values) + 3
        assert study.differing == 0
    check = _checker()
    if check is not None:
        assert check(path).faults == []


def _checker():
    """What `partita check` does, if there is such a command."""
    try:
        return importlib.import_module("partita.study.check").check
    except ModuleNotFoundError:
        return None

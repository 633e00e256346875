"""A short run compiles nothing; what is compiled is compiled once, whoever needs it first."""

import io
import json
import logging
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numba
import numpy as np
import pytest

import partita
from partita import _compiled, _kept
from partita._compiled import awake
from partita.partition import _loops

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")

README = Path(__file__).parents[1] / "README.md"

#: Calls loops for two signatures each, one that calls others among them. Prints what they return
#: and which loops were compiled for it.
CODE = """
import json
import numpy as np
from numba.core import event
from partita.gp import _loops as gp
from partita.partition import _loops as cells

compiled = []

class Listener(event.Listener):
    def on_start(self, e):
        compiled.append(f"{e.data['dispatcher'].py_func.__name__}{e.data['args']}")
    def on_end(self, e):
        pass

event.register("numba:compile", Listener())
words = np.arange(6, dtype=np.uint64).reshape(3, 2)
vector = np.linspace(0.0, 1.0, 7)
halves = vector[:6].reshape(2, 3)
calls = [
    lambda: cells.hash_rows(np.uint64(7), words),
    lambda: cells.hash_rows(np.uint64(7), np.asfortranarray(words)),
    lambda: cells.best_upper(vector, vector, np.arange(7, dtype=np.uint64), 2.0, 1e9),
    lambda: cells.best_upper(vector[::2], vector[::2], np.arange(4, dtype=np.uint64), 2.0, 1e9),
    lambda: cells.scatter_children(halves * 2),
][:CALLS]
results = {}
for i in range(len(calls)):
    at = (i * 2 + ORDER) % len(calls)
    results[at] = [np.asarray(part).tolist() for part in calls[at]()]
print(json.dumps({"results": [results[i] for i in sorted(results)], "compiled": compiled}))
"""


def started(folder, source=None, order=0, calls=5):
    """A process that runs CODE with a folder for compiled code, and with a copy of Partita."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    environment["PYTHONPATH"] = str(source or Path(partita.__file__).parents[1])
    command = [sys.executable, "-c", CODE.replace("ORDER", str(order)).replace("CALLS", str(calls))]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def ended(process):
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    said = json.loads(out)
    return said["results"], [name for name in said["compiled"] if not name.startswith("impl")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which four processes that began at once keep what they compiled."""
    folder = tmp_path_factory.mktemp("kept")
    processes = [started(folder, order=order) for order in range(4)]
    return folder, [ended(process) for process in processes]


def test_processes_that_begin_at_once_compile_each_loop_once(folder):
    _, ends = folder
    words = np.arange(6, dtype=np.uint64).reshape(3, 2)
    assert all(results == ends[0][0] for results, _ in ends)
    assert ends[0][0][0] == ends[0][0][1] == _loops.hash_rows(np.uint64(7), words).tolist()
    compiled = [name for _, names in ends for name in names]
    assert len(compiled) == len(set(compiled)), sorted(compiled)
    assert len(compiled) == 6  # and _mix, which hash_rows calls


def test_a_second_process_compiles_nothing(folder):
    place, ends = folder
    assert ended(started(place)) == (ends[0][0], [])
    assert not [path for path in place.rglob("*") if path.suffix in (".lock", ".tmp")]


def test_a_newer_time_stamp_compiles_nothing_but_another_source_does(tmp_path):
    copy = tmp_path / "site" / "partita"
    unwanted = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(partita.__file__).parent, copy, ignore=unwanted)

    def run():
        return ended(started(tmp_path / "kept", copy.parent, calls=1))

    results, first = run()
    loops = copy / "partition" / "_loops.py"
    later = time.time() + 1000
    os.utime(loops, (later, later))
    assert run() == (results, [])
    files = {path.name for path in (tmp_path / "kept").rglob("*.nbc")}
    loops.write_text(loops.read_text() + "\n# another line\n")
    os.utime(loops, (later, later))
    assert run() == (results, first)
    now = {path.name for path in (tmp_path / "kept").rglob("*.nbc")}
    assert len(now) == len(files) == len(first)  # the older ones are gone
    assert not now & files


def test_a_folder_that_cannot_be_written_is_no_failure(folder, tmp_path):
    place = tmp_path / "kept"
    place.write_text("a file, where a folder would be")
    results, _ = ended(started(place, calls=1))
    assert results == folder[1][0][0][:1]


# -- locks -----------------------------------------------------------------------------------------


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """A loop that was not compiled yet, and its folder."""
    function = _loops._mix.py_func  # wakes those of its file, in the folder of all tests
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return awake(_compiled.compiled(function)), tmp_path


def test_a_process_that_never_finishes_is_not_waited_for_longer_than_the_limit(fresh, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    loop, _ = fresh
    monkeypatch.setattr(_kept, "LONGEST_WAIT", 0.2)
    opened = []

    def locked(self, name):
        path = self._path(name, ".lock")
        opened.append(path.open("wb"))  # another's: a lock of a file that was opened apart
        fcntl.flock(opened[-1], fcntl.LOCK_EX)
        return lock(self, name)

    lock = _kept.Kept._lock
    monkeypatch.setattr(_kept.Kept, "_lock", locked)
    begin = time.monotonic()
    assert loop(np.uint64(7), np.uint64(11)) == _loops._mix(np.uint64(7), np.uint64(11))
    assert time.monotonic() - begin >= 0.2
    assert len(opened) == 1
    opened[0].close()


@pytest.mark.parametrize("error", [PermissionError(13, "no"), OSError(95, "no locks here")])
def test_without_locks_loops_are_compiled_all_the_same(fresh, monkeypatch, error):
    fcntl = pytest.importorskip("fcntl")

    def refuse(*_):
        raise error

    monkeypatch.setattr(fcntl, "flock", refuse)
    loop, folder = fresh
    assert loop(np.uint64(7), np.uint64(11)) == _loops._mix(np.uint64(7), np.uint64(11))
    assert len(list(folder.rglob("*.nbc"))) == 1


def test_an_error_of_the_compiler_leaves_no_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    wrong = awake(_compiled.compiled(lambda x: x.nothing_of_this_name))
    for _ in range(2):
        with pytest.raises(numba.TypingError):
            wrong(1.0)
        assert not list(tmp_path.rglob("*.lock"))


# -- when a loop is compiled -----------------------------------------------------------------------


def double(x):
    return 2.0 * x


def test_a_loop_with_a_plain_form_is_compiled_when_that_pays(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(_compiled, "WORTH_COMPILING", 10 * _compiled.CALL + 100)
    seen = []

    def plain(x):
        seen.append(x)
        return 2.0 * x

    loop = _compiled.compiled(double, plain=plain, work=int)
    assert [loop(0.0) for _ in range(9)] == [0.0] * 9
    assert loop(200.0) == 400.0  # ten calls, and more entries than are left
    assert loop(1.0) == 2.0
    assert len(seen) == 9
    assert len(awake(loop).overloads) == 1


def test_a_loop_takes_its_name_in_its_module_when_it_is_compiled(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    module = {"__name__": "loops", "compiled": _compiled.compiled}
    file = tmp_path / "loops.py"
    file.write_text(
        "@compiled\ndef inner(x):\n    return x + 1\n\n"
        "@compiled(plain=float, work=int)\ndef other(x):\n    return x * 1.0\n\n"
        "@compiled\ndef outer(x):\n    return inner(x) * 2\n"
    )
    exec(compile(file.read_text(), str(file), "exec"), module)
    sleeping = dict(module)
    assert module["outer"](1) == 4
    assert module["outer"] is awake(sleeping["outer"]) is not sleeping["outer"]
    assert module["inner"] is awake(sleeping["inner"])
    assert module["other"] is sleeping["other"]
    assert sleeping["outer"](2) == 6  # who has the old name still can call it


def test_the_quick_start_needs_neither_the_compiler_nor_scipy_stats():
    """The control of what it needs: `scipy.optimize` is there."""
    text = README.read_text()
    code = text.split("```python\n")[1].split("```")[0]
    code = "\n".join(line for line in code.splitlines() if "plot" not in line)
    code += "\nimport sys"
    code += "\nprint(*[m in sys.modules for m in ('numba', 'scipy.stats', 'scipy.optimize')])"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=300
    )
    assert done.stdout.splitlines()[-1] == "False False True"


# -- the line that says so -------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_a_long_compilation_says_so_once(fresh, monkeypatch, caplog, stream):
    loop, folder = fresh
    monkeypatch.setattr(_compiled, "_stopwatch", _compiled._Stopwatch())
    monkeypatch.setattr(sys, "stderr", stream())
    caplog.set_level(logging.INFO, "partita")
    monkeypatch.setattr(_compiled, "LONG", 1000.0)
    loop(np.uint64(7), np.uint64(11))
    assert not caplog.messages
    monkeypatch.setattr(_compiled, "LONG", 0.0)
    for kind in (np.uint32, np.uint16):
        loop(kind(7), np.uint64(11))
    (message,) = caplog.messages
    assert "compiling" in message
    assert str(folder) in message
    shown = sys.stderr.getvalue()
    assert shown == (f"\r\x1b[K{message}\n" if stream is Terminal else "")

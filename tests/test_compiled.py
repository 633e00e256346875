"""Compiled functions work where none can be kept on disk, and where what was kept is damaged.

What several processes do with one folder is in `test_first_minute.py`.
"""

import errno
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numba
import numpy as np
import pytest

import partita
from partita import _compiled, _kept
from partita._compiled import awake
from partita.errors import CacheWarning
from partita.partition import _loops

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")

#: Imports all compiled functions and calls one.
CODE = """
import partita.gp._loops
from partita.partition.sites import arm_priorities
print(arm_priorities(3, 4).tolist())
"""
WORDS = np.uint64(7), np.uint64(11)


@pytest.fixture
def package(tmp_path):
    """A copy of Partita in which no compiled code can be kept, not even by root."""
    source = Path(partita.__file__).parent
    copy = tmp_path / "site" / "partita"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [copy, *copy.rglob("*")]:
        if folder.is_dir():
            (folder / "__pycache__").write_text("a file, where a folder would be")
    return copy


def run(package, code=CODE, **variables):
    """What Python says and warns of with a copy of Partita, whose user has no folder."""
    environment = {k: v for k, v in os.environ.items() if k not in ("XDG_CACHE_HOME", "TMPDIR")}
    environment.pop("NUMBA_CACHE_DIR", None)
    environment |= {"PYTHONPATH": str(package.parent), "HOME": "/dev/null", **variables}
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_a_read_only_installation_without_a_home_works_and_warns_once(package, tmp_path):
    out, err = run(package)
    with pytest.raises(RuntimeError, match="no locator available"):
        numba_alone(tmp_path)
    assert out == f"{_loops_priorities()}\n"
    assert err.count("CacheWarning") == 1
    assert "NUMBA_CACHE_DIR" in err
    assert "<string>:4: CacheWarning" in err  # the line of the user's that led to it
    folder = tmp_path / "kept"
    assert run(package, NUMBA_CACHE_DIR=str(folder)) == (out, "")
    assert list(folder.rglob("*.nbc"))


def numba_alone(tmp_path):
    """What Numba does by itself with a function that it cannot keep: the control."""
    file = tmp_path / "alone.py"
    file.write_text("def double(x):\n    return 2 * x\n")
    (tmp_path / "__pycache__").write_text("a file, where a folder would be")
    scope = {}
    exec(compile(file.read_text(), str(file), "exec"), scope)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", "/dev/null")
        patch.delenv("XDG_CACHE_HOME", raising=False)
        patch.setattr(numba.config, "CACHE_DIR", "")
        numba.njit(cache=True)(scope["double"])


def _loops_priorities():
    from partita.partition.sites import arm_priorities

    return arm_priorities(3, 4).tolist()


# -- damaged files ---------------------------------------------------------------------------------


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A folder with the files of one compiled function, and a function that calls it anew."""
    plain = _loops._mix.py_func  # makes all of its file, which have the folder of all tests
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(_compiled, "_warned", False)

    def call():
        """The function's value, and how often its code was found on disk."""
        made = awake(_compiled.compiled(plain))
        return int(made(*WORDS)), sum(made.stats.cache_hits.values())

    assert call() == (int(_loops._mix(*WORDS)), 0)
    assert call()[1] == 1
    return tmp_path, call


def damaged(content, rng):
    """A file as a crash, a full disk or a bad block leaves it."""
    kind = rng.integers(6)
    if kind == 0:
        return b""
    if kind == 1:
        return content[: rng.integers(len(content))]
    if kind == 2:
        return bytes(len(content))
    if kind == 3:
        return rng.bytes(int(rng.integers(1, 2000)))
    if kind == 4:
        return rng.bytes(64) + content[64:]
    at = rng.integers(len(content))  # one bit, in machine code as like as not
    return content[:at] + bytes([content[at] ^ 1 << rng.integers(8)]) + content[at + 1 :]


def damage_many(kept, seed, cases):
    """Damage files again and again: each time the code is compiled, and kept for the next time."""
    folder, call = kept
    rng = np.random.default_rng(seed)
    value = call()[0]
    (file,) = (path for path in folder.rglob("*") if path.is_file())
    for case in range(cases):
        file.write_bytes(damaged(file.read_bytes(), rng))
        assert call() == (value, 0), case
        assert call() == (value, 1), case


def test_damaged_files_are_compiled_anew_and_mended(kept):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        damage_many(kept, seed=2, cases=15)


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_numba_alone_fails_at_an_empty_file(kept, suffix):
    """The control: else the test above would hold without any code of ours."""
    folder, _ = kept
    numba.njit(cache=True)(_loops._mix.py_func)(*WORDS)
    for file in folder.rglob(f"*.{suffix}"):
        file.write_bytes(b"")
    with pytest.raises(EOFError):
        numba.njit(cache=True)(_loops._mix.py_func)(*WORDS)


def test_a_disk_that_fills_up_is_no_failure(kept, monkeypatch):
    folder, _ = kept
    made = [awake(_compiled.compiled(f.py_func)) for f in (_loops._mix, _loops.hash_rows)]

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_kept.Kept, "_write", full)
    monkeypatch.setattr(_kept.Kept, "_read", lambda *_: None)
    with pytest.warns(CacheWarning, match=r"No space left on device.*NUMBA_CACHE_DIR") as seen:
        assert made[0](*WORDS) == _loops._mix(*WORDS)
    assert len(seen) == 1
    assert str(folder) in str(seen[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once is enough
        made[1](WORDS[0], np.zeros((1, 1), np.uint64))


def test_other_errors_of_numba_are_not_swallowed(monkeypatch):
    def broken(**_):
        raise RuntimeError("something else")

    monkeypatch.setattr(numba, "njit", broken)
    with pytest.raises(RuntimeError, match="something else"):
        awake(_compiled.compiled(_loops._mix.py_func))

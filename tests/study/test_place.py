"""The place of a study's file: a log that was left behind, and locks that do not work."""

import gc
import itertools
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from support.studies import PLANE, Process, events, play

from partita.errors import StudyError
from partita.study import Study, place, store


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tune.db"


_numbers = itertools.count()
MISSING = "was copied without its write-ahead log"


def copy_of(path, *, log):
    """A copy of a file as it is now, with its log or without."""
    copy = path.with_name(f"copy{next(_numbers)}.db")
    shutil.copy(path, copy)
    if log:
        shutil.copy(place.log_of(path), place.log_of(copy))
    return copy


@pytest.mark.parametrize("pages", [30, 4000])
def test_a_copy_without_its_log_is_noticed(path, monkeypatch, pages):
    """All of 200 values stand in the log, or it was moved into the file again and again."""
    monkeypatch.setattr(store, "LOG_PAGES", pages)
    study = Study.open(path, PLANE, policy="uniform")
    for told in range(200):
        play(study, 1)
        if told in (0, 1, 57, 130, 199):
            for space in (None, PLANE):
                copy = copy_of(path, log=False)
                before = copy.read_bytes()
                with pytest.raises(StudyError, match=MISSING):
                    Study.open(copy, space)
                assert copy.read_bytes() == before
                assert not place.log_of(copy).exists()
            assert Study.open(copy_of(path, log=True)).n_told == told + 1
    study.close()
    assert Study.open(copy_of(path, log=False)).n_told == 200


def test_a_backup_by_sqlite_of_a_study_in_use_is_whole(path):
    """What the guide advises."""
    study = Study.open(path, PLANE, policy="uniform")
    play(study, 50)
    copy = path.with_name("copy.db")
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    assert Study.open(copy).n_told == 50


def test_a_log_that_is_deleted_is_missed(path):
    study = Study.open(path, PLANE, policy="uniform")
    play(study, 5)
    copy = copy_of(path, log=True)
    place.log_of(copy).unlink()
    with pytest.raises(StudyError, match=MISSING):
        Study.open(copy)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes as of Unix")
@pytest.mark.parametrize("step", ["said", "moved"])
def test_killed_while_the_log_is_moved_nothing_seems_to_be_missing(path, monkeypatch, step):
    """The file says that there is more; whoever opens it next finds the log, and says otherwise."""

    def killed(out):
        study = Study.open(path, PLANE, policy="uniform")
        play(study, 3)
        move = store.Store._moved

        def half(self, db):
            if step == "moved":
                move(self, db)
            os._exit(9)

        monkeypatch.setattr(store.Store, "_moved", half)
        study._store._move_log()

    for _ in range(2):
        assert Process(killed).end()[1] == 9
        assert len(events(path)) % 6 == 0
    reader = Study.open(path)
    assert reader.n_told == 6
    reader.close()
    assert not place.log_of(path).exists()
    assert Study.open(path, PLANE).n_told == 6


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("closed", [False, True])
def test_interrupted_while_the_log_is_moved_nothing_seems_to_be_missing(
    path, monkeypatch, when, closed
):
    """And nobody closes the study, or the interrupt comes again as it is closed."""
    study = Study.open(path, PLANE, policy="uniform")
    play(study, 3)
    moved, settle = store.Store._moved, store.Store._settle

    def interrupted(self, db):
        if when == "after":
            moved(self, db)
        raise KeyboardInterrupt

    def once(self, db):
        monkeypatch.setattr(store.Store, "_settle", settle)
        raise KeyboardInterrupt

    monkeypatch.setattr(store.Store, "_moved", interrupted)
    with pytest.raises(KeyboardInterrupt):
        study._store._move_log()
    monkeypatch.setattr(store.Store, "_moved", moved)
    if closed:
        monkeypatch.setattr(store.Store, "_settle", once)
        with pytest.raises(KeyboardInterrupt):
            study.close()
    del study
    gc.collect()
    assert not place.log_of(path).exists()
    assert Study.open(path).n_told == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes as of Unix")
def test_whoever_ends_says_for_one_that_was_killed_that_this_is_all(path, monkeypatch):
    """The other was killed while it moved the log; this one only read, and closes nothing."""
    reader = Study.open(path, PLANE, policy="uniform")
    assert reader.n_told == 0

    def killed(out):
        study = Study.open(path)
        play(study, 3)
        monkeypatch.setattr(store.Store, "_settle", lambda self, db: os._exit(9))
        study._store._move_log()

    assert Process(killed).end()[1] == 9
    assert reader.n_told == 3
    place.connect(path, "rw").execute("UPDATE meta SET value = replace(value, 'whole', 'more')")
    del reader
    gc.collect()
    assert not place.log_of(path).exists()
    assert Study.open(path).n_told == 3


def test_a_file_that_is_opened_and_closed_by_many_at_once_lacks_nothing(path):
    """The mark is set and taken away again and again, while others look for it."""

    def opens(out):
        for _ in range(25):
            with Study.open(path, PLANE, policy="uniform") as study:
                play(study, 1)

    assert [process.end()[1] for process in [Process(opens) for _ in range(4)]] == [0] * 4
    assert Study.open(path).n_told == 100
    assert not place.lacks_log(path)


# -- locks -------------------------------------------------------------------------------------


def test_where_sqlite_has_no_locks_a_study_is_refused(path, monkeypatch):
    """SQLite's own way to open files without locks: four writers stored 300 of 1,200 values so."""
    with Study.open(path, PLANE, policy="uniform") as study:
        play(study, 3)
    connect = place.connect
    monkeypatch.setattr(place, "connect", lambda path, mode: connect(path, f"{mode}&vfs=unix-none"))
    for where in (path, path.with_name("new.db")):
        with pytest.raises(
            StudyError, match=r"cannot keep a write-ahead log there|cannot be opened"
        ):
            Study.open(where, PLANE, policy="uniform").ask()
    monkeypatch.undo()
    assert Study.open(path).n_told == 3


def test_locks_are_tried_once_a_file_system(tmp_path, monkeypatch):
    monkeypatch.setattr(place, "_good", set())
    place.check_locks(tmp_path)
    assert place._good == {tmp_path.stat().st_dev}
    place.check_locks(tmp_path / "no such folder")


#: Locks that are granted to everybody, as on some file systems: what glibc's fcntl would do there.
_NO_LOCKS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
static int call(const char *name, int fd, int command, void *argument) {
    int (*real)(int, int, ...) = dlsym(RTLD_NEXT, name);
    if (command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK) return 0;
    if (command == F_GETLK) { ((struct flock *) argument)->l_type = F_UNLCK; return 0; }
    return real(fd, command, argument);
}
#define SHIM(name) int name(int fd, int command, ...) { \
    va_list list; va_start(list, command); void *argument = va_arg(list, void *); va_end(list); \
    return call(#name, fd, command, argument); }
SHIM(fcntl)
SHIM(fcntl64)
"""

_WRITER = """
import sys
sys.path[:0] = sys.argv[2:]
from support.studies import PLANE
from partita.errors import PartitaError
from partita.study import Study, place
first = float(sys.argv[1])
if first:
    place.check_locks = lambda folder: None
try:
    study = Study.open("tune.db", PLANE, policy="uniform", timeout=2.0)
    for told in range(100):
        study.add([0.5, 0.5], first + told)
    study.close()
    print("told")
except PartitaError as error:
    print("refused", error)
"""


@pytest.fixture(scope="module")
def no_locks(tmp_path_factory):
    """The path of a library that makes locks do nothing."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("there is no compiler here, or no Linux")
    folder = tmp_path_factory.mktemp("shim")
    source, library = folder / "shim.c", folder / "shim.so"
    source.write_text(_NO_LOCKS)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


def writers(no_locks, folder, *firsts):
    """What processes say that write where locks do nothing: 100 values each, from `first` on."""
    paths = [str(Path(__file__).parents[1]), *map(str, sys.path)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(first), *paths],
            cwd=folder,
            env={**os.environ, "LD_PRELOAD": str(no_locks)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for first in firsts
    ]
    return [process.communicate(timeout=120)[0] for process in processes]


def test_a_file_system_whose_locks_do_nothing_is_refused(no_locks, tmp_path):
    (said,) = writers(no_locks, tmp_path, 0)
    assert "file locks do not work on this file system" in said
    assert list(tmp_path.iterdir()) == []

"""Studies through real disasters: kill -9, torn writes, full disks, locks, several processes."""

import math
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import pytest
from support.kills import acknowledged, holds, work
from support.studies import PLANE, SPACE, Process, asks, events, is_sound, looking, play, value
from support.studies import without_snapshots as replayed

import partita as pt
from partita.errors import StudyError, StudyLocked
from partita.study import Study, replica, store

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="these need processes as of Unix")


@pytest.fixture
def path(tmp_path):
    folder = tmp_path / "a folder, 50%?"  # names are no addresses
    folder.mkdir()
    return folder / "tune.db"


@pytest.fixture
def snapshots(monkeypatch):
    """A snapshot after every few events, the log moved often: disasters strike there as well."""
    monkeypatch.setattr(store, "LOG_PAGES", 40)
    monkeypatch.setattr(replica, "SNAPSHOT_AFTER", 0.0)
    monkeypatch.setattr(replica, "SNAPSHOT_BYTES", math.inf)
    monkeypatch.setattr(replica, "SNAPSHOT_EVENTS", 7)


#: How often a process is killed; more for a long look: PARTITA_KILLS=1000.
KILLS = int(os.environ.get("PARTITA_KILLS", "24"))

# -- kill -9 -----------------------------------------------------------------------------------


def test_nothing_acknowledged_is_lost_by_kill_9(path, snapshots):
    """Killed at random moments, the first while the file is being made."""
    moments = random.Random(1)
    asked, told = set(), {}
    for turn in range(KILLS):
        process = Process(lambda out: work(path, out, policy="uniform"))
        # While it works; every fourth one from the first moment on, when the file is opened.
        lines = [process.line() for _ in range(moments.randrange(1, 40) if turn % 4 else 0)]
        time.sleep(moments.random() * (0.003 if turn % 4 else 0.02))
        more_asked, more_told = acknowledged([*lines, *process.kill()])
        asked |= more_asked
        told |= more_told
        if asked:
            holds(path, asked, told)
    assert len(told) > 5 * KILLS
    study = Study.open(path)
    values = holds(path, asked, told)
    assert study.n_told == len(values) <= len(told) + KILLS  # one a kill at most
    assert asks(study) == logged_last(path, 3)
    assert replayed(path).differing == 0


def logged_last(path, n):
    """Parameters of the last asks, as the log has them."""
    import json

    with looking(path) as db:
        rows = db.execute(
            "SELECT params FROM events WHERE kind = 'ask' ORDER BY seq DESC LIMIT ?", (n,)
        )
        return [json.loads(text) for (text,) in rows][::-1]


def test_a_killed_study_goes_on_as_if_nothing_had_happened(path, snapshots):
    """The calibrated policy: the same trials as one that was never interrupted."""
    for _ in range(3):
        process = Process(lambda out: work(path, out, SPACE))
        for _ in range(21):
            process.line()
        process.kill()
        study = Study.open(path)
        for trial in study.trials.pending.numbers:  # what was under way is evaluated now
            study.tell(int(trial), value(study.trials.params[trial]))
    n = study.n_told
    assert n >= 30
    twin = pt.Optimizer(SPACE)
    play(twin, n)
    assert study.trials.params == twin.trials.params
    assert asks(study) == asks(twin)


# -- torn writes -------------------------------------------------------------------------------


@pytest.mark.parametrize("with_snapshots", [False, True])
def test_a_torn_log_keeps_every_whole_transaction(
    path, tmp_path, with_snapshots, request, monkeypatch
):
    """The write-ahead log cut off, zeroed or garbled at many random places, as a crash may."""
    if with_snapshots:  # they are transactions of their own
        request.getfixturevalue("snapshots")
    monkeypatch.setattr(store, "LOG_PAGES", 10**6)  # all of it stays in the log
    study = Study.open(path, PLANE, policy="uniform")
    play(study, 10)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    log = path.with_name("tune.db-wal")
    ends = [(0, 20)]  # bytes of the log after each transaction, and events in the file by then
    for _ in range(12):
        trial = study.ask()
        ends.append((log.stat().st_size, len(events(path))))
        study.tell(trial, 1.0)
        ends.append((log.stat().st_size, len(events(path))))
    whole = log.read_bytes()
    assert len(whole) == ends[-1][0]
    draw = random.Random(2)
    for turn in range(45):
        copy = tmp_path / f"{turn}.db"
        shutil.copy(path, copy)
        at = draw.randrange(len(whole))
        torn = {
            0: whole[:at],
            1: whole[:at] + bytes(len(whole) - at),
            2: whole[:at] + bytes([whole[at] ^ draw.randrange(1, 256)]) + draw.randbytes(400),
        }[turn % 3]
        copy.with_name(copy.name + "-wal").write_bytes(torn)
        survived = max(number for size, number in ends if size <= at)
        other = Study.open(copy)
        told = other.n_told
        assert 0 <= len(events(copy)) - survived <= with_snapshots
        assert told == len(events(copy)) // 2
        assert is_sound(copy)
        play(other, 2)
        assert Study.open(copy).n_told == told + 2


# -- full disks --------------------------------------------------------------------------------


def fill(path, out, soften):
    """Work until the disk is full, then make room and go on with the same study."""
    study = Study.open(path, PLANE, policy="uniform")
    told = study.n_told
    try:
        while told < 100_000:
            trial = study.ask()
            study.tell(trial, 1.0)
            told += 1
    except StudyError as error:
        out.write(f"{told} {error}\n")
    soften()
    pending = study.n_pending
    assert study.n_told == told
    play(study, 5)
    out.write(f"{study.n_told} {study.n_pending - pending}\n")


def test_a_full_disk_loses_nothing_and_is_survived(path):
    """Writes that fail for real, by a limit on the size of files."""

    def limited(out):
        study = Study.open(path, PLANE, policy="uniform")
        play(study, 5)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, hard))
        fill(path, out, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard)))

    lines, code = Process(limited).end()
    assert code == 0
    check_filled(path, lines, "could not be read or written. Is the disk full")


def test_a_full_database_says_so(path):
    """SQLite's own word for a full disk."""

    def limited(out):
        study = Study.open(path, PLANE, policy="uniform")
        db = study._store._opened()
        db.execute(f"PRAGMA max_page_count = {db.execute('PRAGMA page_count').fetchone()[0] + 2}")
        with pytest.raises(StudyError, match=r"the disk is full\. Nothing was changed") as caught:
            play(study, 1000)
        out.write(f"{study.n_told} {caught.value}\n")
        db.execute("PRAGMA max_page_count = 100000")
        play(study, 5)
        out.write(f"{study.n_told} 0\n")

    lines, code = Process(limited).end()
    assert code == 0
    check_filled(path, lines, "the disk is full")


def check_filled(path, lines, words):
    (full, later) = lines
    assert words in full
    before, after = (int(line.split()[0]) for line in lines)
    assert before > 5
    assert after == before + 5
    assert later.split()[1] == "0"
    assert Study.open(path).n_told == after
    assert is_sound(path)
    assert replayed(path).differing == 0


_FULL_DISK = """
import os, sys
sys.path[:0] = [{path!r}, {path!r} + "/study"]
import test_crash as t
with open({out!r}, "w") as out:
    t.fill(t.Path({folder!r}) / "tune.db", out, lambda: os.remove({folder!r} + "/ballast"))
import shutil
shutil.copytree({folder!r}, {copy!r})
"""


def test_a_disk_that_is_really_full(tmp_path):
    """A file system of half a megabyte, where the kernel lets us mount one of our own."""
    folder, copy, out = tmp_path / "small", tmp_path / "copy", tmp_path / "out"
    folder.mkdir()
    here = str(Path(__file__).parents[1])
    program = _FULL_DISK.format(path=here, out=str(out), folder=str(folder), copy=str(copy))
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", _script(folder)]
    program_file = tmp_path / "program.py"
    program_file.write_text(program)
    command += [sys.executable, str(program_file)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError:
        pytest.skip("there is no unshare here")
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("no file system can be mounted here")
    assert done.returncode == 0, done.stderr
    check_filled(copy / "tune.db", out.read_text().splitlines(), "disk is full")


def _script(folder):
    return (
        f"mount -t tmpfs -o size=600k none {folder} || exit 77; "
        f'head -c 200000 /dev/zero > {folder}/ballast; exec "$0" "$@"'
    )


# -- several processes -------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "settings"), [(2, {}), (4, {"policy": "uniform"})])
def test_processes_share_a_file_and_agree(path, snapshots, number, settings):
    """All begin at once, so they also race to make it; every one replays the others' asks."""

    def worker(out):
        study = work(path, out, steps=25, **settings)
        assert study.differing == 0

    processes = [Process(worker) for _ in range(number)]
    ended = [process.end() for process in processes]
    assert [code for _, code in ended] == [0] * number
    asked, told = acknowledged([line for lines, _ in ended for line in lines])
    assert asked == told.keys() == set(range(25 * number))
    holds(path, asked, told)
    study = replayed(path)
    assert (study.n_told, study.n_pending, study.differing) == (25 * number, 0, 0)


def test_the_log_is_moved_by_us_alone_and_stays_short(path, monkeypatch):
    """SQLite's own way has a race up to 3.51.2: sqlite.org/wal.html, "The WAL-Reset Bug"."""
    monkeypatch.setattr(store, "LOG_PAGES", 30)
    moved = []
    move = store.Store._move_log

    def watched(self):
        before = path.stat().st_size
        move(self)
        moved.append(path.stat().st_size - before)

    monkeypatch.setattr(store.Store, "_move_log", watched)
    study = Study.open(path, PLANE, policy="uniform")
    assert study._store.rows("PRAGMA wal_autocheckpoint") == [(0,)]
    play(study, 200)
    # Once at the beginning, so that the file says that there is more in its log.
    assert len(moved) == 1 + 400 * store.PAGES // 30
    assert sum(moved) > 20_000
    assert path.with_name("tune.db-wal").stat().st_size < 3 * 30 * store.PAGE
    # Nobody can write meanwhile, and what is locked is no error: it is moved the next time.
    blocked = sqlite3.connect(path, isolation_level=None)
    blocked.execute("BEGIN IMMEDIATE")
    study._store.timeout = 0.1
    study._store._move_log()
    assert moved[-1] == 0
    blocked.close()
    assert Study.open(path).n_told == 200


def test_one_of_several_processes_is_killed_and_the_others_go_on(path):
    processes = [Process(lambda out: work(path, out, steps=60, policy="uniform")) for _ in range(3)]
    for _ in range(20):
        processes[0].line()
    lost = processes[0].kill()
    ended = [process.end() for process in processes[1:]]
    assert [code for _, code in ended] == [0, 0]
    holds(path, *acknowledged([*lost, *(line for lines, _ in ended for line in lines)]))


def test_a_fork_does_not_share_the_connection(path):
    """SQLite's locks are not inherited: without care, what the child tells would be lost."""
    study = Study.open(path, PLANE, policy="uniform")
    play(study, 3)

    def child(out):
        play(study, 5)
        out.write("told\n")
        time.sleep(0.3)  # the parent closes its connection, the last as far as it can tell
        play(study, 5)
        out.write("told\n")

    process = Process(child)
    assert process.line() == "told"
    play(study, 2)
    study.close()
    assert process.end() == (["told"], 0)
    assert study.n_told == Study.open(path).n_told == 15
    assert is_sound(path)


# -- locks and rights --------------------------------------------------------------------------


def test_a_locked_file_is_waited_for_and_then_refused(path):
    study = Study.open(path, PLANE, policy="uniform", timeout=0.4)
    trial = study.ask()
    before = events(path)

    def holder(out):
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("BEGIN EXCLUSIVE")
        out.write("locked\n")
        time.sleep(60)

    process = Process(holder)
    assert process.line() == "locked"
    for action in (study.ask, lambda: study.tell(trial, 1.0), lambda: study.cancel(trial)):
        start = time.monotonic()
        with pytest.raises(StudyLocked, match=r"locked by another process for 0\.4 seconds"):
            action()
        assert 0.4 <= time.monotonic() - start < 3.0
    assert study.n_pending == 1  # looking is always possible
    assert events(path) == before
    process.kill()
    study.tell(trial, 1.0)
    assert study.n_told == 1


def test_a_file_that_is_locked_for_readers_too(path):
    Study.open(path, PLANE, policy="uniform").close()

    def holder(out):
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("BEGIN EXCLUSIVE")
        out.write("locked\n")
        time.sleep(60)

    process = Process(holder)
    assert process.line() == "locked"
    with pytest.raises(StudyLocked, match=r"locked by another process for 0\.3 seconds"):
        Study.open(path, timeout=0.3)
    process.kill()
    assert Study.open(path).ask().number == 0


def test_a_lock_that_ends_in_time_is_no_error(path):
    study = Study.open(path, PLANE, policy="uniform")

    def holder(out):
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("BEGIN EXCLUSIVE")
        out.write("locked\n")
        time.sleep(0.5)
        db.execute("COMMIT")

    process = Process(holder)
    assert process.line() == "locked"
    assert study.ask().number == 0
    assert process.end() == ([], 0)


@pytest.fixture
def folder():
    """A folder that others may look into, which those of pytest are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)
        Path(name).chmod(0o755)


def test_a_read_only_folder(folder):
    """Nothing can be begun or told, but what there is can be looked at."""
    path = folder / "tune.db"
    with Study.open(path, PLANE, policy="uniform") as study:
        play(study, 4)
    path.chmod(0o644)
    content = path.read_bytes()
    folder.chmod(0o555)

    def reader(out):
        if os.geteuid() == 0:  # root may write anywhere
            os.setuid(65534)
        with pytest.raises(StudyError, match="May you write to its folder"):
            Study.open(folder / "new.db", PLANE, policy="uniform")
        study = Study.open(path)
        assert study.n_told == 4
        assert study.recommend().mean is not None
        for action in (study.ask, lambda: study.add([0.5, 0.5], 1.0)):
            with pytest.raises(StudyError, match=r"read-only.*Nothing was changed"):
                action()
        assert study.n_told == 4
        study.close()

    assert Process(reader).end() == ([], 0)
    assert path.read_bytes() == content
    assert [p.name for p in folder.iterdir()] == ["tune.db"]

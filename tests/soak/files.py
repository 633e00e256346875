"""Study files that were damaged or edited: each says what it said, or is refused with a StudyError.

Bytes are damaged here; rows, settings and snapshots are edited by the tests of studies, where there
are such tests: see `EDITS`.
"""

import contextlib
import functools
import io
import logging
import random
import shutil
import tempfile
import warnings
from collections import Counter
from pathlib import Path

from support.studies import SPACE, plain, play

from partita.errors import StudyError, VersionMismatch
from partita.study import Study
from partita.study.export import write_csv

from .elsewhere import function_of

#: Files in a case.
FILES = 25
#: Fuzz functions of the tests of studies, called with (good file, folder, cases, seed).
EDITS = ("edit_rows", "edit_settings", "damage")


@functools.cache
def good(with_log):
    """A study with rows in every table, as bytes of its files: the database, its log or None."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tune.db"
        study = Study.open(path, SPACE, policy="uniform", expire_after=1e9)
        with study.running() as run:
            play(run, 15)
            run.hold(run.ask())
            run.cancel(run.ask())
            log = path.with_name(path.name + "-wal")
            if with_log:  # as a process leaves it that is killed
                return path.read_bytes(), log.read_bytes()
        study.close()
        return path.read_bytes(), None


def content(study):
    return [(t.number, plain(t.params), t.value, t.state, t.std) for t in study.trials]


def use(path):
    """What a file says of its trials, once it is read, exported and played on; None if refused."""
    try:
        with Study.open(path) as study:
            said = content(study)
            study.recommend(), study.notes()
            write_csv(study, io.StringIO())
            play(study, 1)
    except (StudyError, VersionMismatch) as error:  # the latter, if the format's number was hit
        refusal = str(error)
    else:
        return said
    assert 10 < len(refusal) < 3000
    return None


def damaged(draw, data):
    """Bytes changed as disks, copies and people change them."""
    data, at, page = bytearray(data), draw.randrange(len(data)), 4096
    start = at // page * page
    way = draw.randrange(7)
    if way == 0:
        data[at] ^= 1 << draw.randrange(8)
    elif way == 1:
        data[at] = draw.randrange(256)
    elif way == 2:
        data[at : at + 64] = draw.randbytes(len(data[at : at + 64]))
    elif way == 3:
        del data[at:]
    elif way == 4:
        data[at:] = bytes(len(data) - at)
    elif way == 5:
        data[start : start + page] = bytes(len(data[start : start + page]))
    else:  # a page in the place of another
        other = draw.randrange(len(data)) // page * page
        data[start : start + page] = data[other : other + page]
    return bytes(data)


@contextlib.contextmanager
def _quiet():
    """Neither warnings nor log, until the block ends."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def damage_many(seed, files=FILES):
    """Damage files, and say what became of them: they work as before, or are refused."""
    draw, ends = random.Random(seed), Counter()
    with tempfile.TemporaryDirectory() as folder, _quiet():
        for _ in range(files):
            with_log = draw.random() < 0.5
            (database, log), before = good(with_log), _content_of(with_log)
            hit_log = log is not None and draw.random() < 0.5
            if hit_log:
                log = damaged(draw, log)
            else:
                database = damaged(draw, database)
            said = use(_written(folder, database, log))
            ends["files"] += 1
            if said is None:
                ends["refused"] += 1
            elif said == before:
                ends["as before"] += 1
            else:
                assert hit_log, "a damaged database was accepted with other values"
                assert _is_earlier(said, before), "a damaged log gave other values"
                ends["cut log: an earlier state"] += 1
    return dict(ends)


def _is_earlier(said, before):
    """Whether a study says what it said earlier: a log may end early, as after a crash."""
    for now, then in zip(said, before, strict=False):
        if now[:2] != then[:2] or now[3] not in ("pending", then[3]):
            return False
        if now[3] == then[3] and now != then:
            return False
    return len(said) <= len(before)


def _written(folder, database, log):
    """A study file under a name of its own, as SQLite may still know one that was refused."""
    path = Path(tempfile.mkdtemp(dir=folder)) / "copy.db"
    path.write_bytes(database)
    if log is not None:
        path.with_name("copy.db-wal").write_bytes(log)
    return path


@functools.cache
def _content_of(with_log):
    """What the good files say."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Study.open(_written(folder, *good(with_log))) as study,
    ):
        return content(study)


def edit_many(seed, files=FILES):
    """Edit rows and settings with the functions of the tests of studies, if there are any."""
    name = EDITS[seed % len(EDITS)]
    edit = function_of("study/test_edited.py", name)
    if edit is None:
        return {}
    with tempfile.TemporaryDirectory() as folder, _quiet():
        path = Path(folder) / "good.db"
        database, _ = good(False)
        path.write_bytes(database)
        ends = edit(shutil.copy(path, Path(folder) / "tune.db"), Path(folder), files, seed)
    return {"files": files, **ends}


def attack_snapshots(seed, files=FILES):
    """Change snapshots, digests recomputed, with the functions of their tests, if there are any."""
    attack = function_of("support/snapshots.py", "attack_many")
    if attack is None:
        return {}
    ends = attack(files, seed)
    failures = ends.pop("failures")
    assert not failures, "\n".join(failures)
    ends.pop("seed")
    return {"snapshots": ends.pop("cases"), **ends}

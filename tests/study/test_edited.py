"""Study files that were edited or damaged: each is refused with a `StudyError`, or works.

`edit_rows`, `edit_settings` and `damage` take the number of cases, for a long look.
"""

import hashlib
import io
import json
import random
import shutil
import sqlite3
from collections import Counter
from contextlib import closing, suppress

import pytest
from support.studies import PLANE, SPACE, change, plain, play, rechained

from partita.errors import InvalidInput, StudyError, VersionMismatch
from partita.study import Study, place
from partita.study.export import write_csv

VALUES = [
    *(None, 0, -1, 7, 2**63 - 1, -(2**63), 1.5, 1e308, float("inf"), -float("inf")),
    *("", "x", "1", "ask", "tell", "cancel", "adopt", "é\x00\x1b[31m", "\ud7ff" * 9, "a" * 5000),
    *(b"", b"\x00", b"\xff" * 16, b"\xff" * 40, bytes(40), b"\xff\xfe", "²"),
]


@pytest.fixture(scope="module", params=[None, "uniform"], ids=["with a snapshot", "without"])
def good(request, tmp_path_factory):
    """A study with rows in every table, but for a snapshot."""
    path, policy = tmp_path_factory.mktemp("good") / "tune.db", request.param
    opened = Study.open(path, SPACE, policy=policy, seed=1, expire_after=1e9)
    with opened as study, study.running() as run:
        play(run, 5)
        run.hold(run.ask())
        run.cancel(run.ask())
        run.expect({"rate": 0.1, "depth": 3, "kind": "a"})
        run.add({"rate": 0.1, "depth": 3, "kind": "b"}, 0.4, std=0.1 if policy is None else None)
        replica = study._replica
        if policy is None:
            replica._spent, replica._snapshot_seq = 10.0, -1000
            replica._snapshot(replica.current())
    change(path, "INSERT INTO progress VALUES (5, 1.7e9, 0.5, 0.25, NULL, 0.5)")
    return path


def content(study):
    """What a study says of its trials."""
    return [(t.number, plain(t.params), t.value, t.state, t.std) for t in study.trials]


def used(path):
    """Whether a study can be opened, read, exported and played on; refused by a StudyError if not.

    Anything else that is raised is a fault. Returns what it says before it is played on.
    """
    try:
        with Study.open(path) as study:
            said = content(study)
            study.recommend(), study.notes(), study.times(("ask", "tell"))
            write_csv(study, io.StringIO())
            with study.running() as run:
                run.tell(run.ask(), 1.0)
    except (StudyError, VersionMismatch):
        return None
    except InvalidInput as error:  # the settings may say so of a study
        if "which is not stored: give" not in str(error):
            raise
        return None
    return said


def copied(good, folder):
    path = folder / "copy.db"
    for file in (path, place.log_of(path), path.with_name("copy.db-shm")):
        file.unlink(missing_ok=True)
    return shutil.copy(good, path)


def edited(path, draw):
    """Edit a random row of a random table; the table, or None if SQLite itself refused."""
    with closing(sqlite3.connect(path)) as db:
        table = draw.choice(
            ["meta", "events", "events", "events", "owners", "progress", "snapshot"]
        )
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        key = columns[0]
        keys = [row[0] for row in db.execute(f"SELECT {key} FROM {table}")]
    if not keys:
        return None
    chosen, others = draw.choice(keys), ", ".join(columns[1:])
    new = draw.choice(VALUES if table == "meta" else [0, -5, 2, len(keys) + 1, 10**6, 2**62])
    statement = draw.choice(
        [
            *[(f"UPDATE {table} SET {draw.choice(columns)} = ? WHERE {key} = ?", "value")] * 4,
            (f"DELETE FROM {table} WHERE {key} = ?", "key"),
            (f"INSERT INTO {table} SELECT ?, {others} FROM {table} WHERE {key} = ?", "new"),
        ]
    )
    given = {"value": (draw.choice(VALUES), chosen), "key": (chosen,), "new": (new, chosen)}
    try:
        change(path, (statement[0], given[statement[1]]))
    except sqlite3.Error:
        return None
    return table


def edit_rows(good, folder, cases, seed):
    """Edit rows, and say what came of it; the checksums of every other file are made anew."""
    draw, ends = random.Random(seed), Counter()
    before = content(Study.open(copied(good, folder)))
    for case in range(cases):
        path = copied(good, folder)
        table, known = edited(path, draw), case % 2 == 0
        if known:
            rechained(path)
        said = used(path)
        ends["refused" if said is None else "works"] += 1
        if table is not None and not known and said is not None:
            assert said == before, table  # a checksum could tell
    return ends


def edit_settings(good, folder, cases, seed):
    """Put anything into the settings, with a checksum that fits, and say what came of it."""
    draw, ends = random.Random(seed), Counter()
    odd = [
        *VALUES,
        [],
        {},
        [[[]]],
        {"kind": "Gaussian"},
        True,
        "calibrated[x=1]",
        "uniform[",
        10**30,
    ]
    odd = [value for value in odd if not isinstance(value, bytes)]
    odd += [json.dumps({"format": 1, "grid": [10**6, 9]}), json.dumps({"format": 1, "bounds": 3})]
    odd += [json.dumps({"format": 1, "parameters": [["\x1b[31m", [0, 1]]]}), "[" * 10**5]
    for _ in range(cases):
        path = copied(good, folder)
        with closing(sqlite3.connect(path)) as db:
            (text,) = db.execute("SELECT value FROM meta WHERE key = 'settings'").fetchone()
        settings = json.loads(text)
        if draw.random() < 0.3:  # deep inside
            space = json.loads(settings["space"])
            pair = draw.choice(space["parameters"])
            pair[draw.randrange(2)] = draw.choice(odd)
            settings["space"] = json.dumps(space)
        else:
            settings[draw.choice([*settings, "more"])] = draw.choice(odd)
        text = (
            draw.choice(["[" * 10**5, "null", "{}"])
            if draw.random() < 0.05
            else json.dumps(settings)
        )
        digest = hashlib.sha256(text.encode()).hexdigest()
        change(
            path,
            ("UPDATE meta SET value = ? WHERE key = 'settings'", (text,)),
            ("UPDATE meta SET value = ? WHERE key = 'checksum'", (digest,)),
        )
        ends["refused" if used(path) is None else "works"] += 1
    return ends


def damage(good, folder, cases, seed):
    """Change bytes of a file, cut it or garble a part, and say what came of it."""
    draw, ends = random.Random(seed), Counter()
    before = content(Study.open(copied(good, folder)))
    whole = good.read_bytes()
    for case in range(cases):
        path, data = copied(good, folder), bytearray(whole)
        at = draw.randrange(len(data))
        if case % 4 < 2:
            data[at] ^= draw.randrange(1, 256)
        elif case % 4 == 2:
            data[at : at + 64] = draw.randbytes(len(data[at : at + 64]))
        else:
            data[at:] = draw.choice([b"", bytes(len(data) - at)])
        path.write_bytes(data)
        said = used(path)
        ends["refused" if said is None else "works"] += 1
        assert said in (None, before), at
    return ends


@pytest.mark.filterwarnings("ignore::partita.errors.TheoryWarning")
def test_every_edited_row_is_refused_or_works(good, tmp_path):
    ends = edit_rows(good, tmp_path, 80, seed=3)
    assert min(ends["refused"], ends["works"]) > 12


@pytest.mark.filterwarnings("ignore::partita.errors.TheoryWarning")
def test_settings_that_cannot_be_are_refused(good, tmp_path):
    ends = edit_settings(good, tmp_path, 40, seed=4)
    assert ends["refused"] > 25


def test_a_damaged_file_is_refused_or_says_what_it_said(good, tmp_path):
    ends = damage(good, tmp_path, 140, seed=5)
    assert min(ends["refused"], ends["works"]) > 12


@pytest.mark.parametrize(
    "given", ["tune\0.db", "x" * 300 + ".db", "x" * 250, "/".join(["ab"] * 400)]
)
@pytest.mark.parametrize("space", [None, PLANE])
def test_a_name_that_no_file_can_have_is_refused(tmp_path, given, space):
    with pytest.raises(StudyError, match=r"NUL|too long"):
        Study.open(tmp_path / given, space)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("given", [None, 3, b"tune.db", ["tune.db"]])
def test_what_is_no_name_is_refused(given):
    with pytest.raises(ValueError, match="is not the name of a file"):
        Study.open(given, PLANE)


def test_ordinary_names_of_files_are_not_refused(tmp_path):
    for name in ("ü名.db", "a b?%#.db", "x" * 230):
        with suppress(UnicodeEncodeError), Study.open(tmp_path / name, PLANE) as study:
            assert study.n_told == 0

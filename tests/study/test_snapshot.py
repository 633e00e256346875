"""Snapshots are data: their format, and what is refused of a stranger's file."""

import ast
import inspect
import json
import logging
import math
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support import snapshots
from support.attacks import ATTACKS
from support.studies import PLANE, SPACE, asks, change, play

import partita as pt
from partita._state import BadState, Saved
from partita._types import Recommendation
from partita.optimize.optimizer import Optimizer
from partita.study import Study, packed, replica, snapshot
from partita.study.state import State

SOURCE = Path(pt.__file__).parent
#: Hostile snapshots that are tried here; many more are a matter of patience.
HOSTILE = 210
#: What the releases that pickled wrote beside a snapshot.
PICKLED = "3.8 Partita 0.1.0 NumPy 2.4.6 Python 3.11"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tune.db"


@pytest.fixture
def often(monkeypatch):
    """A snapshot after every few events."""
    monkeypatch.setattr(replica, "SNAPSHOT_AFTER", 0.0)
    monkeypatch.setattr(replica, "SNAPSHOT_BYTES", math.inf)
    monkeypatch.setattr(replica, "SNAPSHOT_EVENTS", 7)


def tampered(path, data, written_by=snapshot.WRITTEN_BY):
    """The study with other bytes in place of its snapshot, checksum and all."""
    row = (data, snapshot.digest_of(data), written_by)
    change(path, ("UPDATE snapshot SET state = ?, digest = ?, written_by = ?", row))
    return Study.open(path)


# -- no code -------------------------------------------------------------------------------------


@pytest.mark.parametrize("written_by", [snapshot.WRITTEN_BY, PICKLED])
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_snapshot_runs_no_code_of_a_stranger(path, often, attack, written_by, capsys):
    """The two that worked: a class that BUILD patched, a dtype that it changed (a crash)."""
    twin = Optimizer(PLANE)
    play(twin, 10)
    expected = asks(twin)
    study = Study.open(path, PLANE)
    play(study, 10)
    assert asks(tampered(path, ATTACKS[attack](), written_by)) == expected
    assert capsys.readouterr().out == ""
    assert Optimizer(PLANE).guarantee == "calibrated"
    assert isinstance(inspect.getattr_static(Optimizer, "guarantee"), property)


def test_nothing_that_reads_a_study_can_unpickle():
    """Neither the study's own modules, nor any that they read a snapshot with."""
    readers = [*SOURCE.glob("study/*.py"), SOURCE / "_state.py"]
    assert len(readers) > 8
    for file in readers:
        tree = ast.parse(file.read_text())
        for node in ast.walk(tree):
            names = [alias.name for alias in getattr(node, "names", ()) if hasattr(alias, "name")]
            names += [getattr(node, "module", None), getattr(node, "id", None)]
            forbidden = {"pickle", "cloudpickle", "marshal", "shelve", "eval", "exec"}
            assert not forbidden & set(names), f"{file}: {names}"
            assert getattr(node, "attr", None) not in ("load", "allow_pickle"), file
    loads = [file.name for file in SOURCE.rglob("*.py") if "pickle.loads" in file.read_text()]
    # Compiled code in the user's own cache (as Numba's), policies in the tests of users, errors of
    # workers, and checkpoints of Ray: not studies.
    assert sorted(loads) == ["_kept.py", "evaluate.py", "growth.py", "repeats.py", "search.py"]


def test_a_pickled_snapshot_is_replayed_without_a_word(path, often, caplog):
    study = Study.open(path, PLANE)
    play(study, 10)
    with caplog.at_level(logging.DEBUG):
        other = tampered(path, ATTACKS["class"](), PICKLED)
        assert other.n_told == 10
    assert caplog.text == ""


# -- the format ----------------------------------------------------------------------------------

PLAIN = {
    "nothing": None,
    "yes": True,
    "whole": 2**127 + 1,
    "real": [0.1, -0.0, math.inf, -math.inf, 5e-324],
    "text": 'a "quoted" µ \x1b',
    "arrays": [
        np.arange(7.0),
        np.array([[1, -2], [3, 4]]),
        np.zeros((0, 3)),
        np.array([True, False]),
        np.array([2**64 - 1], dtype=np.uint64),
        np.array([1, -1], dtype=np.int8),
    ],
    "empty": {},
}


def same(a, b):
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and repr(a) == repr(b)


def test_plain_data_comes_back_to_the_last_bit():
    assert same(packed.unpack(packed.pack(PLAIN)), PLAIN)
    assert same(packed.unpack(packed.pack({"nan": [math.nan]})), {"nan": [math.nan]})


def test_the_layout_is_as_documented():
    """Readable by hand, so that it can be read for ever."""
    data = packed.pack({"x": np.array([1.5, 2.5]), "n": 3})
    magic, length, size = struct.unpack_from("<8sQI", data)
    assert (magic, length) == (b"PARTITA\x04", len(data))
    text = json.loads(data[20 : 20 + size])
    assert text == {"arrays": [["f8", [2]]], "data": {"x": {"array": 0}, "n": 3}}
    start = (20 + size + 7) // 8 * 8
    assert struct.unpack_from("<2d", data, start) == (1.5, 2.5)
    assert len(data) == start + 16


@pytest.mark.parametrize(
    "bad",
    [
        {1: 2},
        {"x": (1, 2)},
        {"x": {1, 2}},
        {"x": np.float64(1)},
        {"x": np.array(["a"])},
        {"x": np.array([None])},
        {"x": np.zeros(2, dtype=">f8")},
        {"x": {"array": 0}},
        {"x": print},
        {"x": "y" * 2_000_000},
    ],
)
def test_what_is_not_plain_is_not_written(bad):
    with pytest.raises(BadState):
        packed.pack(bad)


def nested(depth):
    return b'{"arrays":[],"data":' + b"[" * depth + b"]" * depth + b"}"


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (b"", b""),
        (b"[]", b""),
        (b'{"arrays":[],"data":1', b""),
        (b'{"arrays":[],"data":1,"more":1}', b""),
        (b'{"arrays":[],"data":{"a":1,"a":2}}', b""),
        (b'{"arrays":[],"data":' + b"9" * 100_000 + b"}", b""),
        (nested(20), b""),
        (nested(100_000), b""),
        (b'{"arrays":[],"data":"\xff"}', b""),
        (b'{"arrays":[["f8",[1099511627776,0]]],"data":1}', b""),
        (b'{"arrays":[["f8",[4294967296,4294967296]]],"data":1}', b""),
        (b'{"arrays":[["f8",[-1]]],"data":1}', b""),
        (b'{"arrays":[["f8",[1]]],"data":1}', b""),
        (b'{"arrays":[["f8",[true]]],"data":1}', bytes(8)),
        (b'{"arrays":[["f8",[1.0]]],"data":1}', bytes(8)),
        (b'{"arrays":[["f8",[1,1,1,1]]],"data":1}', bytes(8)),
        (b'{"arrays":[["O",[1]]],"data":1}', bytes(8)),
        (b'{"arrays":[["f8"]],"data":1}', bytes(8)),
        (b'{"arrays":[["f8",[1]]],"data":1}', bytes(16)),
        (b'{"arrays":[],"data":{"array":0}}', b""),
        (b'{"arrays":[["f8",[1]]],"data":{"array":-1}}', bytes(8)),
        (b'{"arrays":[["f8",[1]]],"data":{"array":true}}', bytes(8)),
        (b'{"arrays":{},"data":1}', b""),
    ],
)
def test_bytes_that_are_no_snapshot_are_refused(text, rest):
    with pytest.raises(BadState):
        packed.unpack(snapshots.raw_pack(text, rest))


def test_every_truncation_is_refused():
    data = packed.pack(PLAIN)
    for n in range(len(data)):
        with pytest.raises(BadState):
            packed.unpack(data[:n])
    with pytest.raises(BadState):
        packed.unpack(data + b"\0")


# -- fields --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "value", "args"),
    [
        ("integer", 1.0, ()),
        ("integer", True, ()),
        ("integer", -1, ()),
        ("integer", 2**63, ()),
        ("integer", 5, (0, 4)),
        ("real", 1, ()),
        ("real", math.nan, ()),
        ("real", math.nan, (-math.inf, math.inf)),
        ("real", math.inf, ()),
        ("flag", 1, ()),
        ("part", [], ()),
        ("floats", np.array([math.nan]), ((1,),)),
        ("floats", np.array([math.inf]), ((1,),)),
        ("floats", np.array([1]), ((1,),)),
        ("floats", np.zeros((2, 1)), ((2,),)),
        ("floats", np.zeros(2), ((3,),)),
        ("wholes", np.array([-1]), ((None,),)),
        ("wholes", np.array([4]), ((None,), 0, 3)),
        ("wholes", np.array([2**62]), ((None,),)),
        ("flags", np.array([2], dtype=np.int8).view(bool), ((1,),)),
        ("numbers", np.array([1, 1]), (3,)),
        ("numbers", np.array([0, 3]), (3,)),
    ],
)
def test_a_field_that_cannot_be_is_refused(method, value, args):
    with pytest.raises(BadState, match=r"state(: |\.)x"):
        getattr(Saved({"x": value}), method)("x", *args)


def test_a_missing_field_is_named():
    with pytest.raises(BadState, match="state: told is missing"):
        Saved({}).integer("told")


# -- hostile content -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", snapshots.CASES)
def test_the_snapshots_to_attack_are_good(name):
    """Else the attacks would show nothing."""
    state = snapshots.read(name, snapshots.good(name))
    assert state is not None
    assert snapshot.write(state) == snapshots.good(name)
    snapshots.use(state)


def test_hostile_snapshots_end_in_replay_or_work():
    """In a process of its own, whose end by a signal would show here."""
    command = [sys.executable, snapshots.__file__, "--cases", str(HOSTILE), "--seed", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["failures"] == []
    assert found["replayed"] + found.get("refused", 0) + found["used"] == HOSTILE
    assert found["replayed"] > 100
    assert found["used"] > 15  # changes that say nothing impossible


def test_a_hostile_snapshot_changes_nothing_of_a_study(path, often, caplog):
    study = Study.open(path, SPACE)
    play(study, 10)
    data = packed.unpack(study._store.rows("SELECT state FROM snapshot")[0][0])
    sums = data["policy"]["sums"]
    sums["count"] = sums["count"] + (np.arange(len(sums["count"])) == 0)
    with caplog.at_level(logging.WARNING):
        other = tampered(path, packed.pack(data))
        assert [t.value for t in other.trials] == [t.value for t in study.trials]
    assert "cannot be used (state: all values does not hold): its log is replayed" in caplog.text


# -- versions and policies of the user's own -------------------------------------------------------


class Counting:
    """A policy of the user's own, which counts its asks."""

    made, restored = 0, 0

    def __init__(self, domain):
        self.domain, self.asked = domain, 0
        Counting.made += 1

    def ask(self):
        self.asked += 1
        return np.array([0.5, (self.asked % 10) / 10])

    def tell(self, x, y):
        pass

    def cancel(self, x):
        pass

    def recommend(self):
        return Recommendation(np.array([0.5, 0.5]), 0.0, -math.inf, math.inf)


class Saving(Counting):
    def state(self):
        return {"asked": self.asked}

    def restore(self, state):
        self.asked = int(state["asked"])
        Counting.restored += 1


class Failing(Saving):
    def restore(self, state):
        raise RuntimeError("no")


class Strange(Saving):
    def state(self):
        return {"asked": object()}


class Named(Counting):
    state = "a word of its own"


class Better(pt.PiGPUCB):
    """A class made from ours, with something of its own that ours does not save."""

    def __init__(self, domain, **known):
        super().__init__(domain, **known)
        self.lucky = 0

    def ask(self):
        self.lucky += 1
        return super().ask()


@pytest.mark.parametrize(
    ("policy", "stored", "restored"),
    [(Saving, 1, 1), (Failing, 1, 0), (Strange, 0, 0), (Counting, 0, 0), (Named, 0, 0)],
)
def test_a_policy_of_the_users_own_has_snapshots_if_it_has_a_state(
    path, often, policy, stored, restored
):
    study = Study.open(path, PLANE, policy=policy)
    play(study, 10)
    assert study._store.rows("SELECT count(*) FROM snapshot") == [(stored,)]
    Counting.restored = 0
    other = Study.open(path, policy=policy)
    asks(other)
    assert Counting.restored == restored
    assert other.policy.asked == 13
    assert other.differing == 0


def test_a_class_made_from_ours_is_replayed(path, often):
    known = {**snapshots.KNOWN, "n_evals": 50}
    study = Study.open(path, PLANE, policy=Better, **known)
    play(study, 10)
    assert study._store.rows("SELECT count(*) FROM snapshot") == [(0,)]
    other = Study.open(path, policy=Better)
    assert (other.n_told, other.policy.lucky) == (10, 10)


@pytest.mark.parametrize("version", ["data 3.10", "data 4.9", "data 5.10", "", PICKLED])
def test_other_versions_are_replayed(path, often, version):
    assert snapshot.WRITTEN_BY == "data 4.10"
    study = Study.open(path, PLANE)
    play(study, 10)
    data = study._store.rows("SELECT state FROM snapshot")[0][0]
    study.close()
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    expected = asks(study)
    assert asks(tampered(copy, data, version)) == expected


@pytest.mark.parametrize(
    ("name", "value"), [("version", 8), ("policy", "PiGPTS"), ("policy_version", 2)]
)
def test_states_of_other_policies_and_versions_are_refused(name, value):
    state = packed.unpack(snapshots.good("pi-gp-ucb"))["policy"]
    snapshots.first_state("pi-gp-ucb").game.policy.restore(state)
    with pytest.raises(BadState, match=f"state: {name} is {value!r}, but must be"):
        snapshots.first_state("pi-gp-ucb").game.policy.restore({**state, name: value})


def test_a_state_of_other_settings_is_refused():
    state = packed.unpack(snapshots.good("pi-gp-ucb"))["policy"]
    other = Optimizer(snapshots.PLANE, n_evals=1000, seed=4, **snapshots.KNOWN)
    three = Optimizer([*snapshots.PLANE, (0, 1)], n_evals=1000, seed=3, **snapshots.KNOWN)
    with pytest.raises(BadState):
        three.policy.restore(state)
    other.ask()
    with pytest.raises(pt.PartitaError, match="has already been used"):
        other.policy.restore(state)


def test_a_snapshot_survives_another_release(path, often, monkeypatch):
    """What counts is the version of the state, not of Partita, NumPy or Python."""
    twin = Optimizer(PLANE)
    play(twin, 20)
    expected = asks(twin)
    play(Study.open(path, PLANE), 20)
    monkeypatch.setattr(pt, "__version__", "9.9")
    monkeypatch.setattr(np, "__version__", "9.9")
    replayed, replay = [], State.replay
    monkeypatch.setattr(
        State, "replay", lambda self, event: replayed.append(event) or replay(self, event)
    )
    assert asks(Study.open(path)) == expected
    assert len(replayed) < 7

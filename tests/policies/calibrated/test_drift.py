"""Drift: a change is noticed, what no longer holds is forgotten, and the rest stays."""

import math

import numpy as np
import pytest

import partita as pt
from partita.errors import InvalidInput
from partita.policies.calibrated import drift as drift_module
from partita.policies.calibrated.drift import Detector
from partita.study import replica
from partita.study.packed import pack, unpack

LINE = pt.Box([0.0], [1.0])


def bump(x, middle):
    return math.exp(-(((x - middle) / 0.12) ** 2))


def played(policy, middles, seed=0, pending=1):
    """The loss of each round, with the best point at each of the middles in turn."""
    random, lost, open_ = np.random.default_rng([seed, 22]), [], []
    for middle in middles:
        open_.append(policy.ask())
        if len(open_) >= pending:
            x = open_.pop(0)
            value = bump(float(x[0]), middle)
            lost.append(1.0 - value)
            policy.tell(x, value + 0.2 * random.standard_normal())
    return np.array(lost)


JUMP = [0.25] * 200 + [0.75] * 120


@pytest.mark.parametrize("domain", [LINE, pt.Grid(61, dim=1)], ids=["box", "grid"])
def test_a_jump_is_noticed_and_answers_are_about_now(domain):
    policy, control = (pt.CalibratedUCB(domain, seed=1, drift=drift) for drift in (True, False))
    lost, without = played(policy, JUMP), played(control, JUMP)
    assert lost[200:].mean() < 0.3
    assert abs(float(policy.recommend().x[0]) - 0.75) < 0.08
    assert policy.predict([[0.25]]).mean[0] < 0.5
    # The control must fail: it stays where the best point was.
    assert without[200:].mean() > 2 * lost[200:].mean()


def test_a_slow_walk_is_followed():
    lost = np.zeros(2)
    for seed in range(3):
        steps = 0.006 * np.random.default_rng(3 + seed).standard_normal(500)
        middles = 0.5 + 0.35 * np.sin(np.cumsum(steps) + np.linspace(0, 6, 500))
        lost += [
            played(pt.CalibratedUCB(LINE, seed=seed, drift=drift), middles).mean()
            for drift in (True, False)
        ]
    assert lost[0] < 0.6 * lost[1]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_nothing_is_forgotten_while_nothing_changes(seed):
    policy = pt.CalibratedUCB(LINE, seed=seed, drift=True)
    control = pt.CalibratedUCB(LINE, seed=seed)
    lost = played(policy, [0.4] * 250, seed)
    assert policy._drift.changes == 0
    assert np.array_equal(lost, played(control, [0.4] * 250, seed))  # it costs nothing


def test_pending_points_stay_pending_when_others_are_forgotten():
    policy = pt.CalibratedUCB(LINE, seed=2, drift=True)
    lost = played(policy, JUMP, pending=6)
    assert policy._drift.changes >= 1
    assert policy.pending == 5
    assert lost[-40:].mean() < 0.3


def test_memory_does_not_grow_with_changes():
    policy = pt.CalibratedUCB(LINE, seed=0, drift=True)
    played(policy, ([0.2] * 60 + [0.8] * 60) * 3)
    assert policy._drift.changes >= 3
    assert len(policy._sites) < 100
    assert len(policy._drift.log) <= 400


@pytest.mark.parametrize("domain", [LINE, pt.Grid(40, dim=1)], ids=["box", "grid"])
def test_a_saved_policy_goes_on_to_the_last_bit(domain):
    policy, twin = (pt.CalibratedUCB(domain, seed=1, drift=True) for _ in range(2))
    random = np.random.default_rng(0)
    for t in range(150):
        x = policy.ask()
        assert np.array_equal(x, twin.ask())
        value = bump(float(x[0]), 0.25 if t < 90 else 0.75) + 0.2 * random.standard_normal()
        if t % 7 == 0:
            fresh = pt.CalibratedUCB(domain, seed=1, drift=True)
            fresh.restore(unpack(pack(twin.state())))
            twin = fresh
        policy.tell(x, value)
        twin.tell(x, value)
    assert policy._drift.changes >= 1
    assert pack(policy.state()) == pack(twin.state())


def test_a_state_is_for_the_same_setting():
    policy = pt.CalibratedUCB(LINE, drift=True)
    with pytest.raises(Exception, match="drift as it was set"):
        pt.CalibratedUCB(LINE).restore(policy.state())


def test_values_told_at_once_are_in_the_order_of_time():
    random = np.random.default_rng(0)
    x = random.random(400)
    middles = np.where(np.arange(400) < 300, 0.25, 0.75)
    values = np.exp(-(((x - middles) / 0.12) ** 2)) + 0.2 * random.standard_normal(400)
    policy, control = (pt.CalibratedUCB(LINE, seed=0, drift=drift) for drift in (True, False))
    for one in (policy, control):
        one.tell(x[:, None], values)
    assert abs(float(policy.recommend().x[0]) - 0.75) < 0.1
    assert abs(float(control.recommend().x[0]) - 0.25) < 0.1


def test_means_of_many_values_and_known_noise_are_remembered():
    policy = pt.CalibratedUCB(LINE, seed=0, drift=True)
    random = np.random.default_rng(1)
    for t in range(120):
        x = policy.ask()
        value = bump(float(x[0]), 0.25 if t < 60 else 0.75)
        if t % 2:
            policy.tell(x, value + 0.05 * random.standard_normal(), std=0.05)
        else:
            policy.tell(x, value + 0.1 * random.standard_normal(), std=0.2, count=4)
    assert policy._drift.changes >= 1
    assert abs(float(policy.recommend().x[0]) - 0.75) < 0.1


def test_the_sums_of_evidence_are_those_of_the_formula():
    """Against a version without windows, on errors that agree and on errors that do not."""
    random = np.random.default_rng(0)
    settings = pt.CalibratedUCB(pt.Box([0, 0], [1, 1]))._model.fit.best
    for shift in (0.0, 1.5):
        detector = Detector(2)
        points, errors = random.random((60, 2)), random.standard_normal(60) + shift
        for point, error in zip(points, errors, strict=True):
            detector.add(point, float(error), settings)
        sums = [_slow(points, errors, settings, rho) for rho in drift_module.CHANGES]
        assert detector.sums == pytest.approx(sums, abs=1e-9)
        assert (detector.evidence > 10) == (shift > 0)


def _slow(points, errors, settings, rho):
    total, start = 0.0, 0
    for t, (point, error) in enumerate(zip(points, errors, strict=True)):
        z = min(max(error, -4.0), 4.0)
        away = (points[start:t] - point) / (0.5 * settings.scales)
        r = math.sqrt(2 * settings.form + 1) * np.sqrt((away**2).sum(axis=1))
        k = (1 + r + r**2 / 3) * np.exp(-r) if settings.form == 2 else (1 + r) * np.exp(-r)
        weight = k.sum() + 1 / rho
        mean = float(k @ np.clip(errors[start:t], -4, 4)) / weight
        variance = 1 + 1 / weight
        total += 0.5 * (z**2 - (z - mean) ** 2 / variance - math.log(variance))
        if total < 0:
            total, start = 0.0, t + 1
    return total


# -- for users ---------------------------------------------------------------------------------


def follow(player, rounds=160):
    random = np.random.default_rng(5)
    for t in range(rounds):
        trial = player.ask()
        middle = 0.25 if t < 100 else 0.75
        player.tell(trial, bump(trial.params["x"], middle) + 0.2 * random.standard_normal())


@pytest.mark.parametrize("snapshots", [False, True])
def test_a_study_follows_as_an_optimizer_does(tmp_path, monkeypatch, snapshots):
    monkeypatch.setattr(replica, "SNAPSHOT_AFTER", 0.0 if snapshots else 1e9)
    monkeypatch.setattr(replica, "SNAPSHOT_EVENTS", 1)
    optimizer = pt.Optimizer({"x": (0, 1)}, direction="maximize", drift=True)
    follow(optimizer)
    assert optimizer.policy._drift.changes >= 1
    path = tmp_path / "online.db"
    with pt.Study.open(path, {"x": (0, 1)}, direction="maximize", drift=True) as study:
        follow(study)
    again = pt.Study.open(path, drift=True)
    assert again.recommend() == optimizer.recommend()
    assert again.ask().params == optimizer.ask().params
    with pytest.raises(InvalidInput, match="drift is True in the study, but False was given"):
        pt.Study.open(path, drift=False)


def test_contexts_drift_too():
    optimizer = pt.Optimizer({"x": (0, 1)}, context={"c": ["a", "b"]}, drift=True)
    random = np.random.default_rng(0)
    for t in range(260):
        name = "ab"[int(random.integers(2))]
        middle = (0.25 if name == "a" else 0.6) + (0.3 if t >= 160 else 0.0)
        trial = optimizer.ask(context={"c": name})
        optimizer.tell(trial, 0.1 * random.standard_normal() - bump(trial.params["x"], middle))
    assert optimizer.policy._drift.changes >= 1
    best = [optimizer.recommend(context={"c": name}).params["x"] for name in "ab"]
    assert best == pytest.approx([0.55, 0.9], abs=0.1)


def test_what_cannot_be_is_refused():
    with pytest.raises(InvalidInput, match="drift='yes': give True or False"):
        pt.Optimizer({"x": (0, 1)}, drift="yes")
    with pytest.raises(InvalidInput, match="PiGPUCB assumes that the function does not change"):
        pt.Optimizer(
            {"x": (0, 1)},
            drift=True,
            norm_bound=1.0,
            noise=pt.Gaussian(0.1),
            kernel=pt.Matern(1.5, 0.2),
        )
    with pytest.raises(InvalidInput, match="cannot be combined with drift"):
        pt.Optimizer({"x": (0, 1)}, drift=True, constraints=["cost <= 1"])

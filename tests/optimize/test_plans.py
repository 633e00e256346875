"""Plans: rows with counts, told in parts."""

import copy
import pickle

import numpy as np
import pytest

import partita as pt
from partita.errors import InvalidInput, Settled

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
PROVEN = {"norm_bound": 3.0, "noise": pt.Gaussian(0.3), "kernel": pt.Matern(1.5, 0.3)}
BOTH = pytest.mark.parametrize("settings", [{}, {**PROVEN, "n_evals": 10_000}], ids=["cal", "pi"])


def f(x, y):
    return np.sin(5 * x) + (y - 0.3) ** 2


def play(optimizer, plans, n=1000, seed=0):
    """Plan and tell, and return the counts of each plan."""
    rng, counts = np.random.default_rng(seed), []
    for _ in range(plans):
        rows = optimizer.plan(n)
        counts.append([trial.count for trial in rows])
        for trial in rows:
            optimizer.tell(trial, values=f(**trial.params) + 0.3 * rng.standard_normal(trial.count))
    return counts


@BOTH
def test_plans_are_short_first_and_have_few_points_later(settings):
    optimizer = pt.Optimizer(SPACE, **settings)
    counts = play(optimizer, 20)
    assert sum(counts[0]) <= 4
    assert all(sum(plan) <= 1000 for plan in counts)
    assert sum(counts[-1]) == 1000
    assert len(counts[-1]) <= 60
    assert optimizer.policy.told == sum(map(sum, counts))
    assert (optimizer.n_pending, optimizer.policy.pending) == (0, 0)
    best = optimizer.recommend()
    assert f(**best.params) < -0.95


@BOTH
def test_the_same_seed_gives_the_same_plans(settings):
    first, second = pt.Optimizer(SPACE, **settings), pt.Optimizer(SPACE, **settings)
    assert play(first, 6) == play(second, 6)
    assert [t.params for t in first.plan(50)] == [t.params for t in second.plan(50)]


@BOTH
def test_pending_plans_are_accounted_for(settings):
    optimizer = pt.Optimizer(SPACE, **settings)
    play(optimizer, 8)
    known = optimizer.policy.told
    first, second = optimizer.plan(known // 2), optimizer.plan(known)
    out = sum(trial.count for trial in (*first, *second))
    assert out <= known
    assert optimizer.policy.pending == out
    lone = copy.deepcopy(optimizer)
    assert optimizer.plan(known)[0].count == lone.plan(known)[0].count


@BOTH
def test_a_row_is_told_in_parts_up_to_its_count(settings):
    optimizer = pt.Optimizer(SPACE, **settings)
    play(optimizer, 9)
    row = max(optimizer.plan(100), key=lambda trial: trial.count)
    told, pending = optimizer.policy.told, optimizer.policy.pending
    values = f(**row.params) + 0.3 * np.random.default_rng(5).standard_normal(row.count)
    optimizer.tell(row, values=values[:3])
    assert optimizer.policy.told == told + 3
    assert optimizer.policy.pending == pending - 3
    assert optimizer.trials[row.number].state == "pending"
    with pytest.raises(InvalidInput, match="left"):
        optimizer.tell(row, 0.0, 0.1, count=row.count - 2)
    with pytest.raises(InvalidInput, match="known noise"):
        optimizer.tell(row, 0.0, 0.1)
    with pytest.raises(InvalidInput, match="row of a plan"):
        optimizer.prune(row)
    restored = pickle.loads(pickle.dumps(optimizer))
    for one in (optimizer, restored):
        one.tell(row.number, values=values[3:])
        record = one.trials[row.number]
        assert (record.state, record.count) == ("finished", row.count)
        assert record.value == pytest.approx(values.mean(), rel=1e-12)
        assert record.std == pytest.approx(values.std(ddof=1), rel=1e-12)
        with pytest.raises(Settled):
            one.tell(row.number, 1.0)


@BOTH
def test_cancelling_a_row_keeps_what_was_told(settings):
    optimizer = pt.Optimizer(SPACE, **settings)
    play(optimizer, 9)
    part, none = sorted(optimizer.plan(200), key=lambda trial: -trial.count)[:2]
    others = optimizer.policy.pending - part.count - none.count
    told = optimizer.policy.told
    optimizer.tell(part, 0.0, 0.3, count=2)
    optimizer.cancel(part)
    optimizer.cancel(none)
    assert optimizer.trials[part.number][2:5] == (0.0, "finished", 0.3)
    assert optimizer.trials[part.number].count == 2
    assert optimizer.trials[none.number].state == "failed"
    assert (optimizer.policy.told, optimizer.policy.pending) == (told + 2, others)


@BOTH
def test_a_rebuilt_policy_has_parts(settings):
    optimizer = pt.Optimizer(SPACE, **settings)
    play(optimizer, 12)
    row = max(optimizer.plan(100), key=lambda trial: trial.count)
    optimizer.tell(row, 0.1, 0.2, count=2)
    told = optimizer.policy.told
    optimizer._changed_by = "tell"  # as an interrupt leaves it
    optimizer.recommend()
    assert optimizer.policy.told == told
    optimizer.tell(row, 0.1, 0.2, count=row.count - 2)
    assert optimizer.trials[row.number].count == row.count


@pytest.mark.parametrize("n", [0, -3, 2.5, "7", True, None])
def test_a_bad_number_is_refused(n):
    with pytest.raises(InvalidInput, match="whole number"):
        pt.Optimizer(SPACE).plan(n)


def test_plans_need_a_policy_that_takes_means():
    for settings in ({"policy": "soo", "n_evals": 100}, {"constraints": ["cost <= 1"]}):
        optimizer = pt.Optimizer(SPACE, **settings)
        with pytest.raises(InvalidInput, match="by itself"):
            optimizer.plan(5)
        assert len(optimizer.trials) == 0


def test_many_pending_evaluations_count_as_one_update_of_their_number():
    kernel, noise = pt.Matern(1.5, 0.3), pt.Gaussian(0.3)
    for domain in (pt.Grid(30, dim=1), pt.Grid(60, dim=2)):  # dense, and by rows
        policy = pt.IGPUCB(domain, kernel=kernel, norm_bound=1.0, noise=noise)
        twin = copy.deepcopy(policy)
        policy.repeat(policy.ask(), 60)
        for _ in range(4):
            policy.repeat(policy.ask(), 60)
        x = twin.ask()
        twin.repeat(x, 60)
        twin.tell(x, 0.0)  # plans are made again
        assert twin.pending == 60
        other = pt.IGPUCB(domain, kernel=kernel, norm_bound=1.0, noise=noise)
        other.restore(policy.state())
        assert other.pending == policy.pending
        np.testing.assert_array_equal(other.ask(), policy.ask())

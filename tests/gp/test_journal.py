"""A fit in small pieces ends with the same numbers as at once, wherever it is stopped."""

import copy
import math
import pickle

import numpy as np
import pytest

from partita._state import BadState, Saved
from partita.gp.data import farthest, uniform_noise
from partita.gp.fitting import fit
from partita.gp.journal import Journal, Paused
from partita.gp.likelihood import step_cost
from partita.gp.settings import Fixed, first_settings
from partita.policies.calibrated.learning import Fitting


def example(number=40, dim=2, skewed=False, loud=False):
    rng = np.random.default_rng(number)
    points = rng.random((number, dim))
    counts = rng.integers(1, 6, number).astype(float)
    noise = np.where(points[:, 0] < 0.5, 0.05, 1.5) if loud else np.full(number, 0.3)
    means = np.sin(5 * points).sum(axis=1) + noise * rng.standard_normal(number) / np.sqrt(counts)
    within = noise**2 * rng.chisquare(np.maximum(counts - 1, 1e-9))
    return uniform_noise(points, counts, np.exp(3 * means) if skewed else means, within)


def pieces(compute, journal, work):
    """Call a computation with little work until it ends: its result, and the number of calls."""
    for calls in range(1, 10_000):
        journal.spend(work)
        try:
            return compute(journal), calls
        except Paused:
            continue
    raise AssertionError("it does not end")


def test_steps_are_computed_once_and_sections_forget_theirs():
    computed = []

    def note(value):
        computed.append(value)
        return np.array([value])

    def compute(journal):
        first = journal.step(1.0, lambda: note(1.0))
        both = journal.section(
            lambda: journal.step(1.0, lambda: note(2.0)) + journal.step(1.0, lambda: note(3.0))
        )
        return float((first + both + journal.step(1.0, lambda: note(4.0)))[0])

    journal = Journal()
    assert pieces(compute, journal, 0.5) == (10.0, 4)
    assert computed == [1.0, 2.0, 3.0, 4.0]
    assert journal.steps == 4


def test_a_call_stops_when_its_work_is_used_up():
    journal, done = Journal(), []

    def compute():
        for i in range(10):
            journal.step(2.0, lambda i=i: done.append(i) or np.zeros(1))

    journal.spend(5.0)
    with pytest.raises(Paused):
        compute()
    assert len(done) == 3  # the third exceeds it
    journal.spend(math.inf, steps=7)
    with pytest.raises(Paused):
        compute()
    assert len(done) == 7
    journal.spend()
    compute()
    assert len(done) == 10


@pytest.mark.parametrize("shaped", [False, True])
@pytest.mark.parametrize("dim", [2, 12])
def test_a_fit_in_pieces_is_the_same_to_the_last_bit(dim, shaped):
    data, start = example(30, dim, skewed=shaped), first_settings(dim, Fixed())
    whole = fit(data, start, Fixed(), shaped=shaped)
    got, calls = pieces(
        lambda journal: fit(data, start, Fixed(), shaped=shaped, journal=journal), Journal(), 1.0
    )
    assert calls > 10
    assert same(whole, got)


def same(one, two):
    equal = np.array_equal(one.spread, two.spread) and one.tied == two.tied
    return equal and str(one.best.state()) == str(two.best.state())


@pytest.mark.parametrize(("exact", "shaped", "loud"), [(0, 0, 1), (0, 1, 0), (1, 1, 0)])
def test_all_that_is_learned_is_the_same_however_it_is_stopped(exact, shaped, loud):
    data, start = example(60, 2, skewed=bool(shaped), loud=bool(loud)), first_settings(2, Fixed())
    given = data, False, bool(exact), bool(shaped)
    whole = Fitting(*given).carry_on(start, Fixed())
    assert whole.noise is not None or not loud
    for work in (1.0, 3.3 * step_cost(60, 2)):
        fitting = Fitting(*given)
        got, _ = pieces(lambda _, it=fitting: it.carry_on(start, Fixed()), fitting.journal, work)
        assert same(whole.fit, got.fit)
        if loud:
            assert np.array_equal(whole.noise.at(data.points), got.noise.at(data.points))


@pytest.mark.parametrize("steps", [0, 1, 7, 30])
def test_a_fit_goes_on_after_it_was_copied_or_saved(steps):
    data, start = example(30, 2, skewed=True), first_settings(2, Fixed())
    fitting = Fitting(data, False, False, True)
    fitting.journal.spend(steps=steps)
    with pytest.raises(Paused):
        fitting.carry_on(start, Fixed())
    assert fitting.journal.steps == steps
    saved = Fitting.restored(Saved(fitting.state()), 2)
    saved.repeat(start, Fixed())
    others = [copy.deepcopy(fitting), pickle.loads(pickle.dumps(fitting)), saved]
    assert [other.journal.steps for other in others] == [steps] * 3
    results = []
    for one in (fitting, *others):
        one.journal.spend()
        results.append(one.carry_on(start, Fixed()).fit)
    assert all(same(results[0], other) for other in results[1:])
    assert len({one.journal.steps for one in (fitting, *others)}) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("points", np.full((30, 2), 2.0)),
        ("points", np.zeros((0, 2))),
        ("counts", np.zeros(30)),
        ("means", np.full(30, np.nan)),
        ("within", np.full(30, -1.0)),
        ("steps", -1),
        ("steps", 10**9),
        ("exact", 1),
    ],
)
def test_a_bad_saved_fit_is_refused(name, value):
    state = Fitting(example(30), False, False, True).state()
    with pytest.raises(BadState):
        Fitting.restored(Saved({**state, name: value}), 2)


def test_farthest_points_are_those_of_the_plain_loop():
    points = np.random.default_rng(0).random((60, 3))
    chosen = [0]
    while len(chosen) < 20:
        away = [min(((p - points[c]) ** 2).sum() for c in chosen) for p in points]
        chosen.append(int(np.argmax(away)))
    assert farthest(points, 20).tolist() == chosen

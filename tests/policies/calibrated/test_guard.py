"""The guard of a search: it goes back to the best generations, and not for a bit of noise."""

import math

import numpy as np
import pytest

from partita._state import Saved
from partita.policies.calibrated.evolution import LEAST_STEP
from partita.policies.calibrated.guard import COMPARED, LONGER, LUCK, Guard

MEAN = np.array([0.2, 0.7])


def filled(values, guard=None, step=0.1, exact=False):
    """A guard that saw these values of generations, and what it went back to last."""
    guard, back = Guard() if guard is None else guard, None
    for i, value in enumerate(values):
        guard.add(value)
        back = guard.judge(MEAN + 0.001 * i, step, i, exact) or back
    return guard, back


def test_nothing_is_judged_before_there_are_enough_generations():
    guard, back = filled(np.arange(COMPARED - 1))
    assert guard.best is None
    assert back is None
    assert guard.longest == math.inf


def test_the_best_stretch_is_kept_and_steps_may_not_get_much_longer():
    guard, back = filled(np.arange(3.0 * COMPARED))
    assert back is None
    assert guard.best.value == pytest.approx(np.arange(2 * COMPARED, 3 * COMPARED).mean())
    assert guard.best.site == 3 * COMPARED - 1
    assert guard.longest == LONGER * 0.1


def test_it_goes_back_when_generations_get_clearly_worse():
    noise = 0.1 * np.random.default_rng(0).standard_normal(4 * COMPARED)
    guard, back = filled(noise[: 2 * COMPARED])
    assert back is None
    kept = guard.best
    _, back = filled(noise[2 * COMPARED : 3 * COMPARED] - 3.0, guard)
    assert np.array_equal(back.mean, kept.mean)
    assert back.site == kept.site
    assert back.step <= 0.5 * kept.step
    assert back.returns >= 1


def test_noise_alone_is_hardly_ever_a_reason():
    returned = 0
    for seed in range(40):
        values = np.random.default_rng(seed).standard_normal(150)
        returned += filled(values)[1] is not None
    assert returned <= 8  # the best of 150 stretches is lucky itself
    noticed = 0
    for seed in range(40):
        values = np.random.default_rng(seed).standard_normal(150)
        values[100:] -= 3.0
        noticed += filled(values)[1] is not None
    assert noticed == 40


def test_what_it_went_back_to_too_often_was_luck_unless_there_is_no_noise():
    for exact in (False, True):
        guard, _ = filled(np.full(COMPARED, 10.0) + 1e-3 * np.arange(COMPARED), exact=exact)
        filled(np.tile(1e-3 * np.arange(COMPARED), LUCK + 1), guard, exact=exact)
        assert (guard.best.value > 5.0) == exact
        assert guard.best.step >= LEAST_STEP


def test_a_saved_guard_goes_on_the_same():
    random = np.random.default_rng(4)
    for values in ([], [1.0], random.standard_normal(20)):
        guard, _ = filled(values)
        again = Guard()
        again.restore(Saved(guard.state()), 2, 100)
        for value in random.standard_normal(15) - 2.0:
            backs = []
            for each in (guard, again):
                each.add(float(value))
                backs.append(each.judge(MEAN, 0.05, 7, False))
            assert (backs[0] is None) == (backs[1] is None)
        assert guard.longest == again.longest

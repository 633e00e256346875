"""What the mean of a function can be: the ends, values that are ruled out, limited answers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import partita as pt
from partita._types import Prediction, Recommendation
from partita.errors import InvalidInput, TheoryWarning
from partita.model.outcomes import Outcomes

X = np.zeros(1)


@pytest.mark.parametrize("given", [(0, 1), [0, 1], np.array([0.0, 1.0])])
def test_a_pair_of_numbers_is_taken(given: Any) -> None:
    assert Outcomes.of(given) == Outcomes(0.0, 1.0)


def test_an_end_may_be_unknown() -> None:
    assert Outcomes.of((None, 1)) == Outcomes(-math.inf, 1.0) == Outcomes.of((-math.inf, 1))
    assert Outcomes.of((0, None)) == Outcomes(0.0, math.inf)
    for nothing in (None, (None, None), (-math.inf, math.inf)):
        assert Outcomes.of(nothing) is None


@pytest.mark.parametrize(
    "given",
    [(1, 0), (1, 1), (math.nan, 1), (0, math.nan), (math.inf, None), (None, -math.inf), (0, "1")],
)
def test_what_is_not_a_range_is_refused(given: Any) -> None:
    with pytest.raises(InvalidInput, match="is not a valid range: give two numbers"):
        Outcomes.of(given)


@pytest.mark.parametrize("given", [1, "01", (0,), (0, 1, 2), {"low": 0}])
def test_what_is_not_a_pair_is_refused(given: Any) -> None:
    with pytest.raises(InvalidInput, match="give a pair"):
        Outcomes.of(given)


RULED_OUT = [
    # noise, std, the least and the largest value that can be observed if f lies in [0, 2]
    (None, None, -math.inf, math.inf),
    (pt.Gaussian(0.1), None, -math.inf, math.inf),
    (pt.SubGaussian(0.1), None, -math.inf, math.inf),
    (pt.Bernoulli(), None, 0.0, 1.0),
    (pt.Uniform(-0.5, 0.5), None, -0.5, 2.5),
    (pt.Bounded(-0.5, 0.25), None, -0.5, 2.25),  # errors
    (pt.Bounded(0, 3), None, 0.0, 5.0),  # observations, or errors: either may be meant
    (pt.Bounded(1, 3), None, 1.0, 3.0),  # observations: no error has such a mean
    (pt.Bernoulli(), 0.0, 0.0, 2.0),  # exact
    (pt.Bernoulli(), 0.3, -math.inf, math.inf),
]


@pytest.mark.parametrize(("noise", "std", "least", "most"), RULED_OUT)
def test_only_values_that_the_noise_rules_out_are_refused(
    noise: Any, std: float | None, least: float, most: float
) -> None:
    outcomes = Outcomes(0.0, 2.0)
    inside = [max(least, -1e9), min(most, 1e9), 0.5 * (max(least, -9) + min(most, 9))]
    for value in inside:
        outcomes.check(value, std, noise, "tell")
    for value in (least - 0.01, most + 0.01):
        if math.isfinite(value):
            with pytest.raises(InvalidInput, match=r"tell: the value .* cannot be"):
                outcomes.check(value, std, noise, "tell")


def test_rounding_rules_no_value_out() -> None:
    Outcomes(0.0, 0.3).check(0.1 + 0.2, 0.0, None, "tell")


def test_outcomes_that_contradict_the_other_assumptions_are_refused() -> None:
    with pytest.raises(InvalidInput, match="Bernoulli values lies between 0 and 1"):
        Outcomes(2.0, 3.0).check_assumptions(pt.Bernoulli())
    with pytest.raises(InvalidInput, match="norm_bound=1 says that f lies between -1 and 1"):
        Outcomes(2.0, 3.0).check_assumptions(None, 1.0)
    Outcomes(0.5, 3.0).check_assumptions(pt.Bernoulli(), 1.0)


def fuzz_bounds(cases: int, seed: int = 0) -> None:
    """Limited bounds never lose f, cross, or grow, whatever was estimated and is known."""
    random = np.random.default_rng(seed)
    for _ in range(cases):
        ends = np.sort(random.normal(size=2))
        unknown = random.random(2) < 0.2
        low, high = np.where(unknown, [-np.inf, np.inf], ends)
        outcomes = Outcomes(float(low), float(high))
        f = random.uniform(*np.clip([low, high], -5, 5), size=8)
        lower = f + random.normal(0, 1, 8) - 0.5
        upper = np.maximum(lower, f + random.normal(0, 1, 8) + 0.5)
        lower[random.random(8) < 0.1], upper[random.random(8) < 0.1] = -np.inf, np.inf
        given = Prediction(0.5 * f, np.ones(8), lower, upper)
        mean, _, least, most = outcomes.prediction(given, proven=False)
        for limited in (mean, least, most):
            assert (limited >= low).all()
            assert (limited <= high).all()
        assert (least <= most).all()
        held = (lower <= f) & (f <= upper)
        assert (least[held] <= f[held]).all()
        assert (f[held] <= most[held]).all()
        with np.errstate(invalid="ignore"):
            assert not (most - least > upper - lower + 1e-12).any()
        for i in np.flatnonzero(held & np.isfinite(lower)).tolist():
            best = Recommendation(X, 0.0, float(lower[i]), float(upper[i]))
            gap = float(f.max() - lower[i])
            for proven in (False, True):
                certificate = outcomes.certificate(gap, best, proven)
                assert f.max() - f[i] <= certificate + 1e-12
                assert certificate <= min(gap, high - low) + 1e-12


def test_limited_answers_hold_where_the_bounds_did() -> None:
    fuzz_bounds(300)


def test_estimates_beyond_an_end_keep_their_width_and_proven_ones_show_it() -> None:
    outcomes = Outcomes(0.0, 1.0)
    above = Recommendation(X, 1.2, 1.1, 1.3)
    estimate = outcomes.limited(above, proven=False)
    assert estimate[1:] == pytest.approx((1.0, 0.8, 1.0))
    assert outcomes.certificate(0.2, above, proven=False) == pytest.approx(0.2)
    crossed = outcomes.limited(above, proven=True)
    assert crossed.lower > crossed.upper
    with pytest.warns(TheoryWarning, match=r"outside outcomes=\(0, 1\)"):
        assert outcomes.certificate(0.2, above, proven=True) == math.inf


def test_without_a_certificate_the_ends_are_one() -> None:
    best = Recommendation(X, 0.5, 0.4, 0.6)
    assert Outcomes(0.0, 1.0).certificate(math.inf, best, proven=False) == 1.0
    assert Outcomes(0.0, math.inf).certificate(math.inf, best, proven=False) == math.inf
    assert Outcomes(0.0, 1.0).certificate(math.inf, best, proven=True) == math.inf

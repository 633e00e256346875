"""Problems whose mean and median have other optima."""

from __future__ import annotations

import numpy as np
import pytest
import skewed


@pytest.mark.parametrize("name", skewed.NAMES)
def test_mean_and_median_are_what_is_said_and_have_other_optima(name: str) -> None:
    problem = skewed.build(name)
    random = np.random.default_rng(0)
    points = np.array([problem.right, problem.wrong, np.full(problem.dim, 0.5)])
    spread, means = problem.spread(points), problem.function(points)
    noise = problem.law.draw(random, 200_000)
    for i in range(len(points)):
        drawn = means[i] + spread[i] * noise
        assert drawn.mean() == pytest.approx(means[i], abs=4 * drawn.std() / np.sqrt(len(noise)))
        assert np.median(drawn) == pytest.approx(problem.median(points)[i], abs=0.01)
    many = np.concatenate([random.random((50_000, problem.dim)), points])
    for values, at in ((problem.function(many), "right"), (problem.median(many), "wrong")):
        assert np.linalg.norm(many[values.argmax()] - getattr(problem, at)) < 0.15
    assert means.max() == means[0] == problem.best
    assert problem.median(points)[1] > problem.median(points)[0] + 0.05


def test_an_answer_at_the_wrong_peak_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skewed, "CHECKPOINTS", (5,))
    for peak, fooled in (("right", False), ("wrong", True)):
        chosen = getattr(skewed.build("rare-loss-2"), peak)
        monkeypatch.setattr(skewed.PLAYERS["uniform"], "recommend", lambda _, x=chosen: x)
        answer = skewed.run("rare-loss-2", "uniform", 0)[5]
        assert answer.fooled == fooled
        assert (answer.regret == pytest.approx(0.0)) == (not fooled)


def test_keywords() -> None:
    assert skewed.keywords("outliers=keep, delta=0.05") == {"outliers": "keep", "delta": 0.05}
    assert skewed.keywords("") == {}

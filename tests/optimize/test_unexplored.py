"""The widest ball without an evaluation: what it is, and where it is told."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

import partita as pt
from partita.commands import main
from partita.optimize.unexplored import widest_gap


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_the_gap_is_empty_and_nearly_the_widest(dim):
    random = np.random.default_rng(dim)
    points = random.random((40, dim))
    gap = widest_gap(points)
    assert np.linalg.norm(points - gap.point, axis=1).min() == pytest.approx(gap.distance)
    tried = np.concatenate([random.random((200_000, dim)), random.integers(0, 2, (500, dim))])
    nearest = np.full(len(tried), math.inf)
    for point in points:
        nearest = np.minimum(nearest, ((tried - point) ** 2).sum(axis=1))
    assert gap.distance >= 0.999 * math.sqrt(nearest.max())


def test_of_one_point_it_is_the_farthest_corner():
    gap = widest_gap(np.array([[0.25, 0.25]]))
    assert gap.point.tolist() == [1.0, 1.0]
    assert gap.distance == pytest.approx(0.75 * math.sqrt(2.0))


def test_between_two_points_of_a_line():
    gap = widest_gap(np.array([[0.1], [0.7], [0.95]]))
    assert gap.distance == pytest.approx(0.3, abs=1e-3)
    assert gap.point[0] == pytest.approx(0.4, abs=1e-3)


def test_it_is_around_a_point_of_the_space():
    optimizer = pt.Optimizer({"n": (1, 9, "int"), "x": (0.0, 1.0)}, seed=0)
    optimizer.add({"n": [1, 3, 9], "x": [0.5, 0.0, 1.0]}, [0.0, 0.0, 0.0])
    gap = optimizer.trials.unexplored()
    assert gap.params["n"] == 9
    assert gap.params["x"] == pytest.approx(0.21875, abs=1e-3)  # as far from (9, 1) as from (3, 0)
    assert gap.width == pytest.approx(2.0 * 0.78125, abs=1e-3)


def test_a_result_says_where_a_peak_may_be_hidden():
    def f(lr):
        return (math.log10(lr) + 3.0) ** 2

    result = pt.minimize(f, {"lr": (1e-5, 1e-1, "log")}, n_evals=40, seed=0)
    gap = result.unexplored()
    tried = np.log10([trial.params["lr"] for trial in result.history.trials])
    away = np.abs(tried - math.log10(gap.params["lr"])).min() / 4.0  # a side is four decades
    assert gap.width == pytest.approx(2.0 * away)
    assert f"a ball {gap.width:.2g} of a side wide around lr = " in repr(result)
    assert "unexplored" in result._repr_html_()


@pytest.mark.parametrize(
    "space", [{"a": ["x", "y"], "b": (0.0, 1.0)}, {"n": (1, 9, "int")}, pt.Grid(9, dim=1)], ids=str
)  # all of the second are evaluated
def test_other_spaces_have_no_balls(space):
    optimizer = pt.Optimizer(space, seed=0)
    for _ in range(25):
        optimizer.tell(optimizer.ask(), 1.0)
    assert optimizer.trials.unexplored() is None


def test_nor_have_constraints_and_no_values():
    optimizer = pt.Optimizer([(0.0, 1.0)], seed=0)
    assert optimizer.trials.unexplored() is None
    limited = pt.Optimizer([(0.0, 1.0)], seed=0, feasible=lambda x: x[0] > 0.5)
    limited.tell(limited.ask(), 1.0)
    assert limited.trials.unexplored() is None


def test_a_proof_needs_none():
    told = {"norm_bound": 2.0, "noise": pt.Uniform(-0.1, 0.1), "kernel": pt.Matern(2.5, 0.5)}
    result = pt.maximize(lambda x: float(np.sin(x[0])), [(0, 1)], n_evals=30, seed=0, **told)
    assert "unexplored" not in repr(result)
    assert result.unexplored().width > 0.0


def test_the_command_line_says_it(capsys):
    program = [sys.executable, "-c", "print(({x} - 0.3) ** 2)"]
    command = ["minimize", "--param", "x:0:1", "--evals", "25", "--seed", "0", "--", *program]
    assert main.main(command) == 0
    assert "of a side wide around x = " in capsys.readouterr().out

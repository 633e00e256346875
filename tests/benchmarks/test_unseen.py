"""The functions that nothing was designed on: what is said of them is true."""

from __future__ import annotations

import numpy as np
import pytest
from versus import problems, unseen

from partita.problems.rkhs import spread_points


@pytest.mark.parametrize("name", unseen.DIMS)
def test_the_best_value_is_the_best(name: str) -> None:
    problem = problems.build(name, "tenth", seed=1)
    values = problem.function(spread_points(problem.dim))
    assert problem.dim == unseen.DIMS[name]
    assert problem.best == 1.0
    assert values.max() <= 1.0 + 1e-12
    assert values.min() >= -1.0
    assert problem.half_width == 0.1
    assert problem.mean == pytest.approx(values.mean())


@pytest.mark.parametrize("name", unseen.SPIKY)
def test_a_spiky_function_has_a_narrow_peak_that_is_the_higher(name: str) -> None:
    dim, width = unseen.SPIKY[name], unseen.WIDTHS[name.rpartition("-")[0]]
    broad, narrow = np.full(dim, 0.3), np.full(dim, 0.8)
    f = unseen.two_peaks(broad, narrow, width)
    top, second = f(narrow[None, :])[0], f(broad[None, :])[0]
    assert top == pytest.approx(1.0, abs=1e-12)
    assert second == pytest.approx(unseen.BROAD_HEIGHT - 1.0, abs=1e-6)
    # Half of what it rises above the broad peak's slope, half of its width away.
    side = np.zeros(dim)
    side[0] = width / 2
    slope = unseen.BROAD_HEIGHT * np.exp(
        -0.5 * (((narrow + side - broad) * unseen.HALF / unseen.BROAD) ** 2).sum()
    )
    assert f((narrow + side)[None, :])[0] == pytest.approx(-1 + slope + (2 - slope) / 2)


def test_seeds_move_the_peaks() -> None:
    x = np.array([[0.4, 0.6]])
    f, g = (problems.build("spike-2", "tenth", seed).function(x)[0] for seed in (0, 1))
    assert f != g

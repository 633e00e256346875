"""Functions of known norm in the space of a kernel, as the paper makes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral

import numpy as np
import numpy.typing as npt

from partita._types import FloatArray
from partita.errors import InvalidInput
from partita.model.kernels import Matern


@dataclass(frozen=True, eq=False)
class RKHSFunction:
    """f(x) = Σ_j a_j k(c_j, x) on the unit cube, whose norm is √(aᵀKa).

    Parameters
    ----------
    kernel : Matern
    centres : (m, d)
    weights : (m,)
    """

    kernel: Matern
    centres: FloatArray
    weights: FloatArray

    @classmethod
    def sample(
        cls, dim: int, kernel: Matern | None = None, *, seed: int, centres: int | None = None
    ) -> RKHSFunction:
        """A random function: m = 30d centres uniform on the cube, weights uniform on [−1, 1].

        Janz et al. 2020, "Synthetic functions"; the kernel defaults to theirs.
        """
        for name, number in (("dim", dim), ("centres", 1 if centres is None else centres)):
            if isinstance(number, bool) or not isinstance(number, Integral) or number < 1:
                raise InvalidInput(f"{name}={number!r}: give a whole number of at least 1.")
        rng = np.random.default_rng(seed)
        m = 30 * dim if centres is None else centres
        points = rng.random((m, dim))
        weights = rng.uniform(-1, 1, m)
        return cls(Matern(1.5, 0.2) if kernel is None else kernel, points, weights)

    @property
    def dim(self) -> int:
        """Dimension of the domain."""
        return int(self.centres.shape[1])

    @property
    def norm(self) -> float:
        """The exact norm ‖f‖."""
        return float(np.sqrt(self.weights @ self.kernel(self.centres) @ self.weights))

    def maximum(self) -> float:
        """The largest value on the unit cube, to about 1e−9.

        The best of 2^14 quasi-random points and the centres, each of the best 16 improved by a
        local search: bumps are at least a lengthscale wide, so no peak is far from such a point.
        """
        from scipy.optimize import minimize

        starts = np.concatenate([spread_points(self.dim), self.centres])
        values = self(starts)
        best = float(values.max())
        for i in np.argsort(values)[::-1][:16]:
            improved = minimize(
                lambda x: -float(self(x[None, :])[0]),
                starts[i],
                method="L-BFGS-B",
                bounds=[(0.0, 1.0)] * self.dim,
                options={"ftol": 1e-15, "gtol": 1e-10},
            )
            best = max(best, -float(improved.fun))
        return best

    def __call__(self, points: npt.ArrayLike) -> FloatArray:
        """Values at points (n, d), (n,)."""
        return self.kernel(points, self.centres) @ self.weights


def spread_points(dim: int) -> FloatArray:
    """2^14 quasi-random points of the unit cube, always the same, (n, d)."""
    from scipy.stats import qmc

    return np.asarray(qmc.Sobol(dim, scramble=False).random_base2(14))


def average(function: Callable[[FloatArray], FloatArray], dim: int) -> float:
    """The mean of a function over the unit cube, from 2^14 quasi-random points."""
    return float(function(spread_points(dim)).mean())

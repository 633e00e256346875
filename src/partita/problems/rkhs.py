"""Functions of known norm in the space of a kernel, as the paper makes them."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

import numpy as np
import numpy.typing as npt

from partita.errors import InvalidInput
from partita.kernels import Matern

FloatArray = npt.NDArray[np.float64]


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

    def __call__(self, points: npt.ArrayLike) -> FloatArray:
        """Values at points (n, d), (n,)."""
        return self.kernel(points, self.centres) @ self.weights

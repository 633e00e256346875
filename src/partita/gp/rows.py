"""The exact posterior on tens of thousands of candidates, where an (m, m) covariance has no room.

An observation at candidate j needs the posterior covariance of j with every candidate,
c = k(j, ·) − K(·, data)(K + αI)⁻¹k(data, j), (m,). Two ways to remember what that takes:

`Rows` keeps V = L⁻¹K(data, candidates), a row of m numbers an observation, and serves any set of
candidates: c = k(j, ·) − V[:, j]ᵀV. `InverseFactor` keeps L⁻¹, t numbers for observation t, and
serves regular grids, where K(·, data)w is a convolution, w = L⁻ᵀL⁻¹k(data, j). With 27,000
candidates and 10,000 observations it reads an eighth of the memory.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from partita._state import Saved, State, joined
from partita._types import FloatArray, IntArray

from . import _loops
from .posterior import (
    ROUNDING,
    DensePosterior,
    Plan,
    Posterior,
    Prior,
    deviation,
    factorise,
    unit_kernel,
)

#: Above this many candidates no full covariance is kept.
DENSE_LIMIT = 4000
#: Rows stored together in one array.
BLOCK_ROWS = 64


class Memory(Protocol):
    """What has been observed, in the form that explains new columns."""

    def __len__(self) -> int:
        """Observations remembered."""
        ...

    def explained(self, j: int) -> FloatArray:
        """K(·, data)(K + αI)⁻¹k(data, j): what the data explain of candidate j, a new (m,)."""
        ...

    def append(self, j: int, column: FloatArray, total: float) -> None:
        """Remember an observation of j with posterior covariance `column`; total = Σ_jj + α/w."""
        ...

    def rebuild(self, where: IntArray, factor: FloatArray) -> None:
        """Remember data at candidates `where` (k,) alone, L being the factor (k, k)."""
        ...

    def squares(self) -> FloatArray:
        """What the data explain of every candidate's variance, (m,)."""
        ...

    def combine(self, weights: FloatArray) -> FloatArray:
        """Posterior mean (m,) from L⁻¹ȳ (k,)."""
        ...

    def state(self) -> State:
        """What is remembered, as plain data."""
        ...

    def restore(self, saved: Saved) -> None:
        """Remember what was saved."""
        ...


class Rows:
    """V = L⁻¹K(data, candidates), in blocks of rows that are never copied."""

    def __init__(self, prior: Prior) -> None:
        self._prior = prior
        self._blocks: list[FloatArray] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __getstate__(self) -> dict[str, object]:
        """State for pickling, without the unused part of the last block."""
        return {**self.__dict__, "_blocks": [block[:used] for block, used in self._filled()]}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        if self._blocks:
            self._blocks[-1] = _with_spare_rows(self._blocks[-1])

    def _filled(self) -> list[tuple[FloatArray, int]]:
        return [
            (block, min(BLOCK_ROWS, self._count - BLOCK_ROWS * i))
            for i, block in enumerate(self._blocks)
        ]

    def explained(self, j: int) -> FloatArray:
        """One matrix–vector product, V[:, j]ᵀV."""
        column = np.zeros(len(self._prior))
        for block, used in self._filled():
            _loops.add_rows(column, block, block[:used, j].copy())
        return column

    def append(self, j: int, column: FloatArray, total: float) -> None:
        """The next row is the scaled column."""
        if self._count == BLOCK_ROWS * len(self._blocks):
            self._blocks.append(np.empty((BLOCK_ROWS, len(self._prior))))
        np.divide(column, math.sqrt(total), out=self._blocks[-1][self._count % BLOCK_ROWS])
        self._count += 1

    def rebuild(self, where: IntArray, factor: FloatArray) -> None:
        """Solve L V = K(data, candidates), a block of rows at a time."""
        from scipy.linalg import solve_triangular

        k = len(where)
        self._blocks, self._count = [], k
        for start in range(0, k, BLOCK_ROWS):
            stop = min(start + BLOCK_ROWS, k)
            block = np.stack([self._prior.column(int(j)) for j in where[start:stop]])
            for b, done in enumerate(self._blocks):
                block -= factor[start:stop, b * BLOCK_ROWS : (b + 1) * BLOCK_ROWS] @ done
            block = solve_triangular(factor[start:stop, start:stop], block, lower=True)
            self._blocks.append(_with_spare_rows(block))

    def squares(self) -> FloatArray:
        """Σ_i V[i, ·]²."""
        total = np.zeros(len(self._prior))
        for block, used in self._filled():
            total += np.einsum("ij,ij->j", block[:used], block[:used])
        return total

    def combine(self, weights: FloatArray) -> FloatArray:
        """VᵀL⁻¹ȳ."""
        mean = np.zeros(len(self._prior))
        for b, (block, used) in enumerate(self._filled()):
            _loops.add_rows(mean, block, weights[b * BLOCK_ROWS : b * BLOCK_ROWS + used])
        return mean

    def state(self) -> State:
        """V, (k, m)."""
        blocks = [block[:used] for block, used in self._filled()]
        return {"rows": np.concatenate([np.empty((0, len(self._prior))), *blocks])}

    def restore(self, saved: Saved) -> None:
        """Cut V into blocks again."""
        rows = saved.floats("rows", (None, len(self._prior)), -1.0 - ROUNDING, 1.0 + ROUNDING)
        starts = range(0, len(rows), BLOCK_ROWS)
        self._blocks = [_with_spare_rows(rows[s : s + BLOCK_ROWS].copy()) for s in starts]
        self._count = len(rows)


class InverseFactor:
    """L⁻¹ by blocks of rows, for candidates on a regular grid; K(·, data)w is a convolution.

    Block b holds rows 64b to 64b + 63 as (64, 64(b + 1)), zero above the diagonal.
    """

    def __init__(self, prior: Prior, shape: tuple[int, ...]) -> None:
        """`shape` is the grid's, whose points are the prior's in C order."""
        from scipy.fft import next_fast_len, rfftn

        self._prior = prior
        self._shape = shape
        self._padded = tuple(next_fast_len(2 * n - 1, real=True) for n in shape)
        points = prior.points.reshape(*shape, len(shape))
        squared = np.zeros(self._padded)
        for c, (n, size) in enumerate(zip(shape, self._padded, strict=True)):
            spacing = points[(-1,) * len(shape)][c] / (n - 1) if n > 1 else 0.0
            steps = np.minimum(np.arange(size), size - np.arange(size)) * spacing
            squared += (steps**2).reshape([-1 if i == c else 1 for i in range(len(shape))])
        self._transform = rfftn(prior.kernel.radial(np.sqrt(squared)))
        self._blocks: list[FloatArray] = []
        self._data = np.empty(0, dtype=np.int64)
        self._count = 0
        self._last: tuple[int, FloatArray] | None = None

    def __len__(self) -> int:
        return self._count

    def _weights(self, j: int) -> FloatArray:
        """(K + αI)⁻¹k(data, j) = L⁻ᵀL⁻¹k(data, j), (t,)."""
        data = self._prior.points[self._data[: self._count]]
        column = self._prior.points[j : j + 1]
        size = BLOCK_ROWS * len(self._blocks)
        kernel, weights = np.zeros(size), np.zeros(size)
        kernel[: self._count] = unit_kernel(self._prior.kernel, data, column)[:, 0]
        for block in self._blocks:
            _loops.add_gram_product(weights, block, kernel)
        return weights[: self._count]

    def _convolve(self, weights: FloatArray) -> FloatArray:
        """K(·, data)w, (m,)."""
        from scipy.fft import irfftn, rfftn

        spread = np.bincount(
            self._data[: self._count], weights=weights, minlength=len(self._prior)
        ).reshape(self._shape)
        full = irfftn(rfftn(spread, s=self._padded) * self._transform, s=self._padded)
        return np.ascontiguousarray(full[tuple(slice(n) for n in self._shape)]).ravel()

    def explained(self, j: int) -> FloatArray:
        """One pass over L⁻¹ and a convolution."""
        weights = self._weights(j)
        self._last = j, weights
        return self._convolve(weights)

    def append(self, j: int, column: FloatArray, total: float) -> None:
        """The next row of L⁻¹ is (−wᵀ, 1)/√total."""
        if self._last is None or self._last[0] != j:
            raise AssertionError("append(j) must follow explained(j)")
        weights = self._last[1]
        if self._count == BLOCK_ROWS * len(self._blocks):
            self._blocks.append(np.zeros((BLOCK_ROWS, self._count + BLOCK_ROWS)))
        if self._count == len(self._data):
            self._data = np.concatenate([self._data, np.zeros(max(64, self._count), np.int64)])
        row = self._blocks[-1][self._count % BLOCK_ROWS]
        row[: self._count] = weights / -math.sqrt(total)
        row[self._count] = 1.0 / math.sqrt(total)
        self._data[self._count] = j
        self._count += 1
        self._last = None

    def rebuild(self, where: IntArray, factor: FloatArray) -> None:
        """Invert L."""
        from scipy.linalg import solve_triangular

        k = len(where)
        inverse = solve_triangular(factor, np.eye(k), lower=True, overwrite_b=True)
        self._blocks, self._data, self._count, self._last = [], where.copy(), k, None
        for start in range(0, k, BLOCK_ROWS):
            block = np.zeros((BLOCK_ROWS, start + BLOCK_ROWS))
            stop = min(start + BLOCK_ROWS, k)
            block[: stop - start, :stop] = inverse[start:stop, :stop]
            self._blocks.append(block)

    def squares(self) -> FloatArray:
        """Σ_i V[i, ·]², V = L⁻¹K(data, candidates), a row of V at a time."""
        total = np.zeros(len(self._prior))
        for i in range(self._count):
            row = np.zeros(self._count)
            block = self._blocks[i // BLOCK_ROWS][i % BLOCK_ROWS]
            row[: i + 1] = block[: i + 1]
            total += self._convolve(row) ** 2
        return total

    def combine(self, weights: FloatArray) -> FloatArray:
        """K(·, data)L⁻ᵀ(L⁻¹ȳ)."""
        spread = np.zeros(self._count)
        for i in range(self._count):
            block = self._blocks[i // BLOCK_ROWS][i % BLOCK_ROWS]
            spread[: i + 1] += weights[i] * block[: i + 1]
        return self._convolve(spread)

    def state(self) -> State:
        """L⁻¹ by its blocks, and which candidates were observed."""
        return {"data": self._data[: self._count].copy(), "blocks": joined(self._blocks)}

    def restore(self, saved: Saved) -> None:
        """Cut L⁻¹ into blocks again."""
        self._data = saved.wholes("data", (None,), 0, len(self._prior) - 1)
        self._count = len(self._data)
        columns = [BLOCK_ROWS * (b + 1) for b in range(-(-self._count // BLOCK_ROWS))]
        flat = saved.floats("blocks", (BLOCK_ROWS * sum(columns),))
        pieces = np.split(flat, BLOCK_ROWS * np.cumsum(columns)[:-1]) if columns else []
        self._blocks = [p.reshape(BLOCK_ROWS, -1).copy() for p in pieces]


def _with_spare_rows(block: FloatArray) -> FloatArray:
    if len(block) == BLOCK_ROWS:
        return block
    full = np.zeros((BLOCK_ROWS, block.shape[1]))
    full[: len(block)] = block
    return full


class RowPosterior:
    """Means and variances (m,) of the candidates, and a `Memory` of what was observed."""

    __slots__ = ("_memory", "_prior", "_shape", "alpha", "gain", "mean", "std", "variance")

    #: It has no covariance that could be given up.
    kept_numbers = 0
    is_cold = False

    def __init__(self, alpha: float, shape: tuple[int, ...] | None = None) -> None:
        """Empty until its first `refit`. `shape` is that of the grid, if the candidates are one."""
        self.alpha = alpha
        self._shape = shape
        self._memory: Memory
        self.mean = np.zeros(0)
        self.variance = np.zeros(0)
        self.std = np.zeros(0)
        self.gain = 0.0
        self._prior: Prior

    def covariance(self, j: int) -> FloatArray:
        """Posterior covariance of candidate j with every candidate, (m,)."""
        return self._prior.column(j) - self._memory.explained(j)

    def observe(self, j: int, value: float, weight: float = 1.0) -> None:
        """One column, and what it does to all means and variances."""
        column = self.covariance(j)
        variance = max(float(self.variance[j]), 0.0)
        noise = self.alpha / weight
        total = variance + noise
        self.mean += column * ((value - self.mean[j]) / total)
        self._memory.append(j, column, total)
        self.gain += 0.5 * math.log1p(variance / noise)
        self.variance -= column**2 / total
        self.std = deviation(self.variance)

    def refit(
        self,
        prior: Prior,
        where: IntArray,
        values: FloatArray,
        weights: FloatArray,
        moments_only: bool = False,
    ) -> None:
        """Remember each distinct point once, replicates folded into its noise."""
        from scipy.linalg import solve_triangular

        self._prior = prior
        self._memory = Rows(prior) if self._shape is None else InverseFactor(prior, self._shape)
        self.mean, self.std = np.zeros(len(prior)), np.ones(len(prior))
        self.variance, self.gain = np.ones(len(prior)), 0.0
        if len(where) == 0:
            return
        gram, _ = prior.data(where, across=False)
        factor, self.gain = factorise(gram, self.alpha / weights)
        self._memory.rebuild(where, factor)
        self.mean = self._memory.combine(solve_triangular(factor, values, lower=True))
        self.variance -= self._memory.squares()
        self.std = deviation(self.variance)

    def wants_refit(self, distinct: int) -> bool:
        """When replicates have made the rows twice as many as the distinct points need."""
        return len(self._memory) >= 2 * distinct + 16 * BLOCK_ROWS

    def plan(self) -> Plan:
        """Columns of pending evaluations are kept apart from what was told."""
        return _RowPlan(self)

    def cool(self) -> None:
        """Nothing to give up."""

    def state(self) -> State:
        """Moments and memory, as plain data."""
        return {
            "mean": self.mean,
            "variance": self.variance,
            "gain": float(self.gain),
            "memory": self._memory.state(),
        }

    def restore(self, saved: Saved, prior: Prior) -> None:
        """Restore a saved state, of candidates whose prior is given."""
        self._prior = prior
        self._memory = Rows(prior) if self._shape is None else InverseFactor(prior, self._shape)
        self.mean = saved.floats("mean", (len(prior),))
        self.variance = saved.floats("variance", (len(prior),), -ROUNDING, 1.0 + ROUNDING)
        self.std, self.gain = deviation(self.variance), saved.real("gain", -ROUNDING)
        self._memory.restore(saved.part("memory"))


class _RowPlan:
    __slots__ = ("_posterior", "_rows", "_variance", "std")

    def __init__(self, posterior: RowPosterior) -> None:
        self._posterior = posterior
        self._rows: list[FloatArray] = []
        self._variance = posterior.variance.copy()
        self.std = posterior.std.copy()

    def add(self, j: int, times: int = 1) -> None:
        column = self._posterior.covariance(j)
        for row in self._rows:
            column -= row[j] * row
        noise = self._posterior.alpha / times
        column /= math.sqrt(max(float(self._variance[j]), 0.0) + noise)
        self._rows.append(column)
        self._variance -= column * column
        np.sqrt(np.maximum(self._variance, 0.0), out=self.std)


def new_posterior(size: int, alpha: float, grid_shape: tuple[int, ...] | None = None) -> Posterior:
    """A posterior for `size` candidates: dense, or by rows if there are too many for that.

    `grid_shape` is that of the regular grid that the candidates are, if they are one.
    """
    return DensePosterior(alpha) if size <= DENSE_LIMIT else RowPosterior(alpha, grid_shape)

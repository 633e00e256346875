"""Checks of aggregates: the mean of several values at a point, their deviation and their count."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from partita._checks import as_floats
from partita._types import FloatArray, IntArray
from partita.errors import InvalidInput

#: The largest count of one aggregate: whole numbers up to here are exact as floats.
MOST_VALUES = 10**15
#: The largest sample deviation, as for values.
LARGEST_STD = 1e150


class Counted(NamedTuple):
    """Counts (n,) of aggregates, and deviations (n,), NaN where there is none.

    The deviation is that of a sample (ddof = 1) where the count is above 1, and else the known
    noise of one value.
    """

    counts: IntArray
    stds: FloatArray

    @property
    def any_known(self) -> bool:
        """Whether the noise of some single value is known."""
        return bool((~np.isnan(self.stds) & (self.counts == 1)).any())


def as_counts(count: npt.ArrayLike, n: int) -> IntArray:
    """Counts (n,) from one number or one per point, checked."""
    counts = np.asarray(count)
    if counts.dtype.kind not in "iuf" or counts.shape not in ((), (n,)):
        raise InvalidInput(
            f"count={count!r:.60}: give the number of values that y is the mean of, a whole number "
            f"of at least 1, or one per point, shape ({n},)."
        )
    wrong = np.flatnonzero(~((counts >= 1) & (counts <= MOST_VALUES) & (counts == np.rint(counts))))
    if len(wrong):
        first = counts.reshape(-1)[wrong[0]].item()
        where = f"count[{wrong[0]}]" if counts.ndim else "count"
        raise InvalidInput(
            f"{where}={first!r}: give the number of values of which y is the mean, a whole number "
            f"from 1 to {MOST_VALUES:.0e}. Use cancel(x) for a failed evaluation."
        )
    return np.broadcast_to(counts, (n,)).astype(np.int64)


def as_counted(count: npt.ArrayLike, std: npt.ArrayLike | None, n: int) -> Counted:
    """Counts and deviations of n aggregates, checked; NaN is a deviation that is not known."""
    counts = as_counts(count, n)
    if std is None:
        return Counted(counts, np.full(n, np.nan))
    stds = as_floats(std, "std")
    if stds.shape not in ((), (n,)):
        raise InvalidInput(
            f"tell(X, Y, std=..., count=...): {n} points but std of shape {stds.shape}: give one "
            f"number for all, or one per point, shape ({n},)."
        )
    stds = np.array(np.broadcast_to(stds, (n,)))
    wrong = np.flatnonzero(~((stds >= 0.0) & (stds <= LARGEST_STD) | np.isnan(stds)))
    if len(wrong):
        raise InvalidInput(
            f"std={stds[wrong[0]]} with a count: the sample deviation of the values must be a "
            "finite number of at least 0, such as np.std(values, ddof=1). Leave it out if it is "
            "not known."
        )
    return Counted(counts, stds)

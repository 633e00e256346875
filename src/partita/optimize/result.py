"""What a run ends with: the answer, its bounds, how it came about, and a figure of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult

from partita._text import bounded, duration, number, value_text
from partita._types import FloatArray

from .trials import Record, Trials

if TYPE_CHECKING:
    from partita.space import Space

    from .constraints import Known
    from .optimizer import Suggestion


class Checkpoint(NamedTuple):
    """The answer after a number of evaluations, and how much better any other point could be."""

    evaluations: int
    seconds: float
    mean: float
    lower: float
    upper: float
    certificate: float


class History:
    """How a run went: every evaluation, and what was known at some of them.

    A loop over it, an index or a slice gives what those of `trials` do.

    Attributes
    ----------
    trials
        Evaluations that gave a value, a sequence of records (number, params, value, state, std).
    evaluations
        Numbers of evaluations at the checkpoints, about a quarter more from one to the next, (c,).
    failed_params
        What the function was given where it failed, the first 1,000.
    seconds, best_mean, lower, upper, certificate
        At the checkpoints, (c,): time since the start; mean and bounds of the function at the point
        recommended then; how much better any other could be.
    """

    def __init__(
        self, trials: Trials, checkpoints: Sequence[Checkpoint], failed_params: Sequence[Any] = ()
    ) -> None:
        self.trials, self.failed_params = trials, list(failed_params)
        columns = np.array(checkpoints, dtype=float).reshape(-1, len(Checkpoint._fields)).T
        self.evaluations = columns[0].astype(np.int64)
        self.seconds: FloatArray = columns[1]
        self.best_mean: FloatArray = columns[2]
        self.lower: FloatArray = columns[3]
        self.upper: FloatArray = columns[4]
        self.certificate: FloatArray = columns[5]

    @property
    def params(self) -> Any:
        """What the function was given, a list of dicts or an array (n, d)."""
        return self.trials.params

    @property
    def x(self) -> Any:
        """The same by place instead of name: an array (n, d), or a list of lists."""
        params = self.trials.params
        return [list(row.values()) for row in params] if self.trials.space.named else params

    @property
    def values(self) -> FloatArray:
        """What it returned, (n,)."""
        return self.trials.values

    @property
    def stds(self) -> FloatArray:
        """The standard deviation of each value's noise that it returned besides, or NaN, (n,)."""
        return self.trials.stds

    def __len__(self) -> int:
        return len(self.trials)

    def __getitem__(self, place: Any) -> Any:
        return self.trials[place]

    def __iter__(self) -> Iterator[Record]:
        return iter(self.trials)

    def __repr__(self) -> str:
        return f"History({len(self):,} values, {len(self.evaluations)} checkpoints)"


def answer(best: Suggestion, space: Space) -> dict[str, Any]:
    """What a result says of the recommended parameters."""
    return {
        "x": list(best.params.values()) if space.named else np.array(best.params),
        "params": best.params,
        "fun": best.mean,
        "lower": best.lower,
        "upper": best.upper,
    }


class Result(OptimizeResult):  # type: ignore[misc]  # SciPy has no types
    """The end of a run, a SciPy `OptimizeResult`.

    Attributes
    ----------
    x, params
        The recommended point: by place (an array, or a list of values for named parameters), and
        as the function is given it (an array, or a dict).
    fun
        The posterior mean of the function there, not the luckiest value.
    lower, upper
        Bounds of the function there.
    certificate
        How much better any other point can still be.
    guarantee
        What stands behind the bounds: "proven", "calibrated", …
    constraints
        By the name of each constrained quantity, what is known of it at the answer: `mean`,
        `lower`, `upper`, and the `probability` that its constraint holds.
    success, status, message
        Why the run ended. Status: 0 all evaluations made, 1 time up, 2 within the tolerance,
        3 ended by the callback, 4 interrupted, 5 too many failures, 6 the executor failed.
    nfev, nfail
        Evaluations that gave a value, and that failed.
    errors
        The first few errors, the exceptions themselves.
    seconds
        How long it took.
    history
        A `History`.
    direction
        "minimize" or "maximize".
    optimizer
        The `Optimizer`, to ask on or to predict elsewhere.
    """

    def plot(self, path: str | PathLike[str] | None = None) -> Any:
        """A Matplotlib figure of the run, written to `path` if given (its ending says how).

        Progress with its band and the certificate; beside them the posterior: with the cells of
        the cover in one or two dimensions, slices through the answer otherwise.
        """
        from partita.figures.run import draw

        from .figure import figure_of

        figure = draw(figure_of(self))
        if path is not None:
            figure.savefig(path, dpi=160, facecolor="white")
        return figure

    def __repr__(self) -> str:
        if "history" not in self:  # made by hand, or by a copy of SciPy's
            return str(super().__repr__())
        failed = f", {self.nfail:,} failed" if self.nfail else ""
        says = "no other point is better by more" if self.certificate < math.inf else "not known"
        rows = [
            ("message", str(self.message)),
            ("success", f"{self.success} (status {self.status})"),
            *_params_rows(self.params),
            ("fun", f"{number(self.fun)} (posterior mean, {self.direction}d)"),
            ("lower", number(self.lower)),
            ("upper", number(self.upper)),
            ("certificate", f"{number(self.certificate)} ({says})"),
            ("guarantee", str(self.guarantee)),
            *_constraint_rows(self.get("constraints", {})),
            ("nfev", f"{self.nfev:,}{failed}"),
            ("seconds", duration(self.seconds)),
            ("history", repr(self.history)),
        ]
        return "\n".join(f"{name:>12}{':' if name else ' '} {text}" for name, text in rows)

    __str__ = __repr__

    def __dir__(self) -> list[str]:
        return sorted({*self.keys(), "plot"})


def _constraint_rows(known: Mapping[str, Known]) -> list[tuple[str, str]]:
    """What is known of each constrained quantity at the answer, a line each."""
    lines = [
        f"{each.constraint}: {bounded(each.mean, each.lower, each.upper)}, "
        f"probability {each.probability:.3g}"
        for each in known.values()
    ]
    return [("constraints" if i == 0 else "", line) for i, line in enumerate(lines)]


def _params_rows(params: Any) -> list[tuple[str, str]]:
    """The answer, a line a name; an array on one line."""
    if not isinstance(params, dict):
        shown = ", ".join(number(float(v)) for v in params[:10])
        more = f", … {len(params)} numbers" if len(params) > 10 else ""
        return [("x", f"[{shown}{more}]")]
    wide = max(map(len, params))
    lines = [f"{name:<{wide}} = {value_text(value)}" for name, value in params.items()]
    return [("params" if i == 0 else "", line) for i, line in enumerate(lines)]

"""The result of a run: the recommended point, its bounds, the history, and a figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np

from partita._optional import require
from partita._text import bounded, duration, number, value_text
from partita._types import FloatArray, IntArray

from .spans import Spans, Stopwatch
from .trials import Record, Trials
from .wording import certificate_says, gap_says, such_held

if TYPE_CHECKING:
    from pandas import DataFrame
    from pyarrow import Table

    from partita.space import Space

    from .constraints import Known
    from .importance import Importance
    from .player import Player
    from .trial import Suggestion
    from .unexplored import Unexplored

    # SciPy has no types: as a subclass of what is unknown, every name would be a valid attribute.
    OptimizeResult = dict[str, Any]
else:
    from scipy.optimize import OptimizeResult


class Checkpoint(NamedTuple):
    """The recommendation after a number of evaluations, with its bounds and certificate."""

    evaluations: int
    seconds: float
    mean: float
    lower: float
    upper: float
    certificate: float


class History(Sequence[Record]):
    """The history of a run: every evaluation, and the recommendation at some of them.

    A sequence, as `trials` is: iteration and indices give a `Record`, slices a table of trials.
    `to_dataframe()` and `to_arrow()` are those of `trials`.

    Attributes
    ----------
    trials
        Evaluations that gave a value: a sequence of records (number, params, value, state, std).
    evaluations
        The number of evaluations at each checkpoint, growing by about a quarter each time, (c,).
    failed_params
        The parameters of the first 1,000 evaluations that failed.
    seconds, best_mean, lower, upper, certificate
        At each checkpoint, (c,): the time since the start; the mean and bounds of the function at
        the point recommended then; the certificate, how much better any other point could be.
    spans
        When the evaluations of this run were under way, including those that failed: the arrays
        `numbers`, `begun`, `ended` and `failed`.
    """

    def __init__(
        self,
        trials: Trials,
        checkpoints: Sequence[Checkpoint],
        failed_params: Sequence[Any] = (),
        spans: Spans | None = None,
    ) -> None:
        self.trials, self.failed_params = trials, list(failed_params)
        self.spans = Stopwatch().spans() if spans is None else spans
        columns = np.array(checkpoints, dtype=float).reshape(-1, len(Checkpoint._fields)).T
        self.evaluations = columns[0].astype(np.int64)
        self.seconds: FloatArray = columns[1]
        self.best_mean: FloatArray = columns[2]
        self.lower: FloatArray = columns[3]
        self.upper: FloatArray = columns[4]
        self.certificate: FloatArray = columns[5]

    @property
    def params(self) -> Any:
        """The parameters of each evaluation: a list of dicts, or an array (n, d)."""
        return self.trials.params

    @property
    def x(self) -> Any:
        """The parameters without names: an array (n, d), or a list of lists."""
        params = self.trials.params
        return [list(row.values()) for row in params] if self.trials.space.named else params

    @property
    def values(self) -> FloatArray:
        """The value of each evaluation, (n,)."""
        return self.trials.values

    @property
    def stds(self) -> FloatArray:
        """The standard deviation of each value's noise; NaN where it is not known, (n,)."""
        return self.trials.stds

    @property
    def counts(self) -> IntArray:
        """The number of values of which each value is the mean, (n,)."""
        return self.trials.counts

    def __len__(self) -> int:
        return len(self.trials)

    @overload
    def __getitem__(self, place: int) -> Record: ...
    @overload
    def __getitem__(self, place: slice) -> Trials: ...
    def __getitem__(self, place: int | slice) -> Record | Trials:
        return self.trials[place]

    def __iter__(self) -> Iterator[Record]:
        return iter(self.trials)

    def to_dataframe(self) -> DataFrame:
        """The evaluations as a pandas data frame: see `Trials.to_dataframe`."""
        return self.trials.to_dataframe()

    def to_arrow(self) -> Table:
        """The evaluations as an Arrow table: see `Trials.to_arrow`."""
        return self.trials.to_arrow()

    def _repr_html_(self) -> str:
        return self.trials._repr_html_()

    def __repr__(self) -> str:
        return f"History({len(self):,} values, {len(self.evaluations)} checkpoints)"


def answer(best: Suggestion, space: Space) -> dict[str, Any]:
    """The fields of a result for the recommended parameters."""
    return {
        "x": list(best.params.values()) if space.named else np.array(best.params),
        "params": best.params,
        "fun": best.mean,
        "lower": best.lower,
        "upper": best.upper,
    }


class Result(OptimizeResult):
    """The result of a run, a SciPy `OptimizeResult`.

    Attributes
    ----------
    x, params
        The recommended point: `x` without names (an array, or a list of values for named
        parameters), `params` in the form that the function gets (an array, or a dict).
    fun
        The posterior mean of the function there, not the best value observed.
    lower, upper
        Bounds on the function there.
    certificate
        How much better any other point can be: proven if `guarantee` is "proven", an estimate by
        the fitted model if it is "calibrated" (docs/calibrated.md has how often such ones held).
    guarantee
        The kind of guarantee of the bounds: "proven", "calibrated", …
    constraints
        By the name of each constrained quantity, what is known of it at the answer: `mean`,
        `lower`, `upper`, and the `probability` that its constraint holds.
    success, status, message
        Why the run ended. Status: 0 all evaluations made, 1 time up, 2 within the tolerance,
        3 ended by the callback, 4 interrupted, 5 too many failures, 6 the executor failed.
    nfev, nfail, npruned
        The number of evaluations that gave a value, that failed, and that ended early.
    errors
        The first few errors, the exceptions themselves.
    seconds
        The duration of the run.
    history
        A `History`.
    direction
        "minimize" or "maximize".
    seed
        What its random choices came from: the one given, or drawn.
    optimizer
        The `Optimizer`, or the `Study`, for further trials and for predictions.
    """

    x: Any
    params: Any
    fun: float
    lower: float
    upper: float
    certificate: float
    guarantee: str
    constraints: dict[str, Known]
    success: bool
    status: int
    message: str
    nfev: int
    nfail: int
    npruned: int
    nit: int
    errors: list[BaseException]
    seconds: float
    history: History
    direction: str
    seed: int
    optimizer: Player

    def plot(
        self,
        path: str | PathLike[str] | None = None,
        kind: Literal["run", "importance", "slices", "pairs", "timeline"] = "run",
    ) -> Any:
        """A Matplotlib figure, written to `path` if given (its ending says how).

        A notebook shows it. Needs Matplotlib: `pip install 'partita[plot]'`.

        Parameters
        ----------
        path
            A file, such as "run.png", "run.svg" or "run.pdf".
        kind
            "run": progress and the certificate, and beside them the posterior, with the cells of
            the cover in one or two dimensions, else slices through the recommended point.
            "importance": how much each parameter matters, with intervals: see `importance`.
            "slices": mean and bounds along each parameter, the others as in the recommended point.
            "pairs": the mean and the width of the bounds over each two of the four most important.
            "timeline": when each evaluation was under way.
        """
        from .views import draw

        figure = draw(self, kind)
        if path is not None:
            figure.savefig(path, dpi=160, facecolor="white")
        return figure

    def view(self) -> Any:
        """A widget for a notebook: the page that `partita serve` shows of one study.

        Needs anywidget: `pip install 'partita[notebook]'`.
        """
        history = self.history
        columns = (history.seconds, history.best_mean, history.lower, history.upper)
        rows = zip(history.evaluations.tolist(), *columns, history.certificate, strict=True)
        # By name: the page is in a room below this one.
        notebook = require("partita.service.notebook")
        return notebook.view(self.optimizer, [Checkpoint(*row) for row in rows])

    def importance(self) -> list[Importance]:
        """How much each parameter matters, the most important first: see `Trials.importance`."""
        return self.history.trials.importance()

    def unexplored(self) -> Unexplored | None:
        """Where a narrow peak may hide, the widest ball without an evaluation.

        See `Trials.unexplored`.
        """
        return self.history.trials.unexplored()

    def __repr__(self) -> str:
        if "history" not in self:  # made by hand, or by a copy of SciPy's
            return str(super().__repr__())
        failed = f", {self.nfail:,} failed" if self.nfail else ""
        if self.get("npruned"):
            failed += f", {self.npruned:,} pruned"
        noisy = int(np.isfinite(self.history.stds).sum())
        if noisy:  # a function that returns two numbers may mean something else by the second
            failed += f", {noisy:,} with a std of their own"
        says = certificate_says(self.certificate, self.guarantee)
        held = such_held(self.certificate, self.guarantee, self.optimizer.space.dim)
        gap = gap_says(self.certificate, self.guarantee, self.history.trials)
        rows = [
            ("message", str(self.message)),
            ("success", f"{self.success} (status {self.status})"),
            *_params_rows(self.params),
            ("fun", f"{number(self.fun)} (posterior mean, {self.direction}d)"),
            ("lower", number(self.lower)),
            ("upper", number(self.upper)),
            ("certificate", f"{number(self.certificate)} ({says})"),
            *([("in tests", held)] if held else []),
            *([("unexplored", gap)] if gap else []),
            ("guarantee", str(self.guarantee)),
            *_constraint_rows(self.get("constraints", {})),
            ("nfev", f"{self.nfev:,}{failed}"),
            ("seconds", duration(self.seconds)),
            ("seed", str(self.get("seed", "not known"))),
            ("history", repr(self.history)),
        ]
        return "\n".join(f"{name:>12}{':' if name else ' '} {text}" for name, text in rows)

    __str__ = __repr__

    def _repr_html_(self) -> str | None:
        from .html import result_html

        return result_html(self) if "history" in self else None

    def __dir__(self) -> list[str]:
        return sorted({*self.keys(), "importance", "plot", "unexplored", "view"})


def _constraint_rows(known: Mapping[str, Known]) -> list[tuple[str, str]]:
    """What is known of each constrained quantity at the answer, a line each."""
    lines = [
        f"{each.constraint}: {bounded(each.mean, each.lower, each.upper)}, "
        f"probability {each.probability:.3g}"
        for each in known.values()
    ]
    return [("constraints" if i == 0 else "", line) for i, line in enumerate(lines)]


def _params_rows(params: Any) -> list[tuple[str, str]]:
    """The recommended parameters: one line per name, or an array on one line."""
    if not isinstance(params, dict):
        shown = ", ".join(number(float(v)) for v in params[:10])
        more = f", … {len(params)} numbers" if len(params) > 10 else ""
        return [("x", f"[{shown}{more}]")]
    wide = max(map(len, params))
    lines = [f"{name:<{wide}} = {value_text(value)}" for name, value in params.items()]
    return [("params" if i == 0 else "", line) for i, line in enumerate(lines)]

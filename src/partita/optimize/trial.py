"""A trial and an answer, as users see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from partita._types import FloatArray

from .early import Progress


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """A numbered evaluation to make.

    Attributes
    ----------
    number
        From 0 on.
    params
        What the function is given: a dict, for `f(**trial.params)`, or an array, for
        `f(trial.params)`.
    unit
        The point of the unit cube that they stand for, (D,).
    context
        The context that it is for, a dict; None if the optimizer has no contexts.
    count
        How many times to evaluate it: 1, or what a plan says.

    Examples
    --------
    A training that reports as it goes, and ends early if it cannot win any more:

    >>> import partita as pt
    >>> optimizer = pt.Optimizer({"rate": (1e-4, 1e-1, "log")})
    >>> trial = optimizer.ask()
    >>> for epoch in range(3):
    ...     trial.report(1.0 / (epoch + 1), step=epoch)
    ...     if trial.should_prune():
    ...         optimizer.prune(trial)
    ...         break
    ... else:
    ...     optimizer.tell(trial, 1 / 3)
    >>> optimizer.n_told, optimizer.n_pruned
    (1, 0)
    """

    number: int
    params: Any
    unit: FloatArray = field(repr=False)
    #: Where it was made, to tell it from a trial of another optimizer whatever becomes of `params`:
    #: the mark of the space, and the bytes of the point of the unit cube.
    _origin: tuple[int, bytes] | None = field(default=None, repr=False)
    #: What it has reported.
    _progress: Progress = field(default_factory=Progress, repr=False)
    #: The context that it is for, a dict; None if there are no contexts.
    context: dict[str, Any] | None = field(default=None, repr=False)
    #: How many times to evaluate it.
    count: int = field(default=1, repr=False)

    @property
    def x(self) -> Any:
        """The parameters by place: the array, or a list of the values of named parameters."""
        return by_place(self.params)

    def report(self, value: Any, step: int) -> None:
        """Report what the evaluation has so far, after a step such as an epoch.

        It is in the units of the value to come, but need not be near it: how the one leads to the
        other is learned from trials that finish. The first report of a step counts.

        Parameters
        ----------
        value : float
            A number. One that is not finite says that the evaluation has gone wrong.
        step : int
            From 0 on. The same step means the same effort in all trials.
        """
        self._progress.report(value, step)

    def should_prune(self) -> bool:
        """Whether the evaluation may as well end, since it can hardly become the best.

        That is so where each of its last two reports foretells, by the trials that have finished,
        that the function is worse there than the best value known, with a chance of 97.5 %. End it
        with `optimizer.prune(trial)`, or in a function that is optimised by raising `TrialPruned`.
        """
        return self._progress.is_hopeless()

    @property
    def reports(self) -> dict[int, float]:
        """What was reported after each step, in the order of the steps."""
        return dict(self._progress.readings)


class Suggestion(NamedTuple):
    """What the optimiser would settle on, and what is known of the function there.

    Attributes
    ----------
    params
        What the function is given: a dict, or an array.
    x
        The same by place: the array, or a list of the values of named parameters.
    mean, lower, upper
        The function there, and bounds of it.
    """

    params: Any
    x: Any
    mean: float
    lower: float
    upper: float

    def at(self, params: Any) -> Suggestion:
        """The same answer with its parameters in other words."""
        return self._replace(params=params, x=by_place(params))


def by_place(params: Any) -> Any:
    """Parameters by place instead of name: an array as it is, or the values of a dict."""
    return list(params.values()) if isinstance(params, Mapping) else params

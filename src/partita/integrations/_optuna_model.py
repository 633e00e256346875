"""The model of one search space: an `Optimizer`, and the trials that it has learned from."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from optuna.trial import TrialState

from partita._checks import check_scale
from partita.errors import InvalidInput
from partita.model.assumptions import Assumptions
from partita.optimize.failures import Failures
from partita.optimize.making import check_maker
from partita.optimize.optimizer import Optimizer
from partita.optimize.trial import Suggestion, Trial
from partita.space import Space

from ._optuna_limits import by_name, limits_of, texts_of
from ._optuna_space import PROPOSAL, Rules, SearchSpace, Translation

_LOGGER = logging.getLogger(__name__)

#: Values larger than this are treated as infinite: see `Model._told_as`.
LARGEST = 1e100


@dataclass(frozen=True)
class Settings:
    """The settings of a sampler's optimizers, except for the search space and the seed.

    Settings that are invalid for every search space are refused, as by `Optimizer`.
    """

    assumptions: Assumptions
    n_evals: int | None
    policy: str | Callable[..., Any] | None

    def __post_init__(self) -> None:
        """Refuse settings that are invalid for every search space."""
        if isinstance(self.policy, str):
            from partita.policies.named import read_policy

            read_policy(self.policy)
        elif self.policy is not None:
            check_maker(self.policy)
        if self.assumptions.norm_bound is not None:
            check_scale("norm_bound", self.assumptions.norm_bound)
        # An optimizer of a simple space checks the rest, with its own messages.
        simple = {"n_evals": self.n_evals, "delta": self.assumptions.delta}
        Optimizer({"x": (0.0, 1.0)}, policy="uniform", **simple)  # type: ignore[arg-type]

    def optimizer(
        self, space: Space, direction: Any = "minimize", seed: int = 0, limits: Sequence[str] = ()
    ) -> Optimizer:
        """An optimizer for a space, with constraints that have these keys."""
        more = {"n_evals": self.n_evals, "policy": self.policy, **self.assumptions.keywords()}
        more["constraints"] = texts_of(limits) or None
        return Optimizer(space, direction=direction, seed=seed, **more)


def readings_of(trial: Any) -> dict[int, float]:
    """What a trial reported, in the order of its steps."""
    return {
        step: float(trial.intermediate_values[step]) for step in sorted(trial.intermediate_values)
    }


class _Pending(NamedTuple):
    """A trial of the optimizer, and its point."""

    trial: Trial
    point: dict[str, Any]


class Model:
    """An optimizer on a search space, kept up to date with the trials of a study.

    Parameters
    ----------
    search_space
        Distributions that Partita supports.
    rules
        When the objective asks for a parameter that not all trials have.
    direction, seed, settings
        As `Optimizer` takes them.
    pruned
        Whether the model learns what the last report of a pruned trial says about its value.
    std_attr, count_attr
        The user attribute with the standard deviation of a trial's noise, or None.
    limits
        Keys of the constraints that trials have.
    """

    def __init__(
        self,
        search_space: SearchSpace,
        rules: Rules,
        *,
        direction: Any,
        seed: int,
        settings: Settings,
        pruned: bool,
        std_attr: str | None = None,
        limits: Sequence[str] = (),
        count_attr: str | None = None,
    ) -> None:
        self.translation, self.limits = Translation(search_space, rules), tuple(limits)
        self.optimizer = settings.optimizer(self.translation.space, direction, seed, self.limits)
        self._pruned = pruned
        self._pending: dict[int, _Pending] = {}
        self._failures = Failures(self.optimizer, seed)
        #: Points that failed before any trial had a value.
        self._failed: set[tuple[Any, ...]] = set()
        self._planned: int | None = settings.n_evals
        self._lowest, self._highest = math.inf, -math.inf
        self._std_attr, self._count_attr, self._std_warned = std_attr, count_attr, False

    def propose(self, number: int) -> dict[str, Any] | None:
        """Values for a trial, in the internal form; None to sample it at random.

        None is returned if no trial has a value yet and the policy asks for a point that failed
        before, as some do forever. Once there is a value, other points can be tried instead.
        """
        self._release()
        trial = self._failures.ask()
        point = dict(trial.params)
        if not self.optimizer.n_told and tuple(point.values()) in self._failed:
            self.optimizer.cancel(trial)
            return None
        self._pending[number] = _Pending(trial, point)
        return point

    def take(self, trial: Any) -> None:
        """Add a trial to the model: one that another worker runs, or that has ended."""
        proposal = trial.system_attrs.get(PROPOSAL) or {}
        if trial.number in self._pending:
            proposal = self._pending[trial.number].point
        point = self.translation.point(trial, proposal)
        if not trial.state.is_finished():
            if trial.number not in self._pending and point is not None:
                self._expect(trial.number, point)
            return
        pending = self._pending.pop(trial.number, None)
        if pending is not None and pending.point != point:
            self.optimizer.cancel(pending.trial)
            pending = None
        if point is None:
            return
        limits = limits_of(trial) if self.limits else {}
        complete = trial.state == TrialState.COMPLETE
        if complete and not all(key in limits for key in self.limits):  # not known whether feasible
            if pending is not None:
                self.optimizer.cancel(pending.trial)
            return
        within = complete and all(abs(limit) <= LARGEST for limit in limits.values())
        value, std, count = self._value_of(trial) if within else (None, None, None)
        reports = readings_of(trial)
        ends_early = value is None and self._pruned and trial.state == TrialState.PRUNED
        with suppress(InvalidInput):  # fixed by the user, outside the search space
            if ends_early and self.optimizer.expected(reports) is not None:
                self.optimizer.prune(self._reporting(point, pending, reports))
            elif value is None:
                self._fail(point, pending, trial.state == TrialState.PRUNED)
                return
            else:
                told = by_name(value, self.limits, limits) if self.limits else value
                if pending is None and not reports:
                    self.optimizer.add(point, told, std, count=count)
                else:
                    ended = self._reporting(point, pending, reports)
                    self.optimizer.tell(ended, told, std, count=count)
            self._failures.succeeded(point)

    def _value_of(self, trial: Any) -> tuple[float | None, float | None, int | None]:
        """The value of a complete trial, its noise, and of how many values it is the mean."""
        value = self._told_as(trial.value)
        if value is None or value != trial.value:
            return value, None, None
        return value, *self._noise_of(trial, value)

    def _reporting(
        self, point: dict[str, Any], pending: _Pending | None, reports: dict[int, float]
    ) -> Trial:
        """The trial of the optimiser for one that has ended, with what that reported."""
        trial = self.optimizer.expect(point) if pending is None else pending.trial
        for step, reading in reports.items():
            trial.report(reading, step)
        return trial

    @property
    def pending(self) -> int:
        """The number of trials that are being evaluated."""
        return self.optimizer.n_pending - self._failures.held

    def recommend(self) -> Suggestion:
        """The parameters with the best posterior, in the form that the objective gets."""
        best = self.optimizer.recommend()
        return best.at(self.translation.external(best.params))

    def _fail(self, point: dict[str, Any], pending: _Pending | None, pruned: bool) -> None:
        """Learn from a trial without a value; a pruned one says nothing of where trials fail."""
        learn = self._failures.failed if pruned else self._failures.report
        learn(point, None if pending is None else pending.trial)
        if not self.optimizer.n_told:
            self._failed.add(tuple(point.values()))

    def _release(self) -> None:
        """Cancel trials kept pending that would exceed the policy's horizon."""
        if self._failures.any and self._planned is not None:
            keep = self._planned - self.optimizer.n_told - len(self._pending) - 1
            self._failures.release(max(keep, 0))

    def _expect(self, number: int, point: dict[str, Any]) -> None:
        with suppress(InvalidInput):  # fixed by the user, outside the search space
            self._pending[number] = _Pending(self.optimizer.expect(point), point)

    def _noise_of(self, trial: Any, value: float) -> tuple[float | None, int | None]:
        """The noise of a trial's value, and of how many values it is the mean; None if not known.

        An attribute that cannot be used does not stop a study: the value is used without it, with a
        warning the first time.
        """
        attrs, names = trial.user_attrs, (self._std_attr, self._count_attr)
        std, count = (None if name is None else attrs.get(name) for name in names)
        if std is None:  # a count alone says nothing of the noise, and may mean something else
            return None, None
        try:
            seen = self.optimizer.observation(value, std, "tell", count)
            return seen.std, seen.count if seen.count > 1 else None
        except InvalidInput as error:
            if not self._std_warned:
                named = repr(self._std_attr)
                named += "" if count is None else f" or {self._count_attr!r}"
                _LOGGER.warning(
                    "Trial %d has the user attribute %s, which cannot be used: %s. Its value is "
                    "used without it. There will be no further warnings of this kind. If the "
                    "attribute means something else, give PartitaSampler another std_attr%s or "
                    "None.",
                    trial.number,
                    named,
                    error,
                    "" if count is None else " or count_attr",
                )
            self._std_warned = True
            return None, None

    def _told_as(self, value: float | None) -> float | None:
        """The value to report to the optimizer; None if there is none.

        Optuna allows infinite values. They are replaced by the worst or best value so far, so that
        a region where training diverges does not look unexplored.
        """
        if value is None or math.isnan(value):
            return None
        if abs(value) <= LARGEST:
            self._lowest, self._highest = min(self._lowest, value), max(self._highest, value)
            return value
        nearest = self._highest if value > 0 else self._lowest
        return nearest if math.isfinite(nearest) else None

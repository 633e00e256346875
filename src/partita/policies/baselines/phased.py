"""Phased elimination: levels of data that do not look at their own values.

The scheme of SupLinRel (Auer 2002) and SupLinUCB (Chu et al. 2011), which SupKernelUCB (Valko et
al. 2013) takes over: S = ⌈ln T⌉ levels, each with data and a model of its own, and at every step

    s ← 1, active ← all arms
    repeat
        w ← widths of the active arms in the model of level s
        all w ≤ M/√T:    evaluate the highest upper bound; the value enters no level
        all w ≤ M·2⁻ˢ:   active ← arms whose upper bound is within 2M·2⁻ˢ of the highest; s ← s + 1
        otherwise:       evaluate an arm with w > M·2⁻ˢ; its value enters level s

M bounds |f|; the papers have M = 1. It ends, since M·2⁻ˢ ≤ M/√T at s = S.

Why the bounds hold. Which arms a level evaluates depends on widths, which know no values, and on
its active arms, which are decided by levels below. So given what those were told, a level's arms
are fixed in advance and its noise is still L-sub-Gaussian. With w(x) = (K + αI)⁻¹k(x) the level's
mean at an arm is μ(x) = Σ w_i (f(x_i) + ε_i), and

    |Σ w_i f(x_i) − f(x)| ≤ B ‖k(x, ·) − Σ w_i k(x_i, ·)‖ = B √(σ²(x) − α‖w‖²) ≤ B σ(x),
    |Σ w_i ε_i| ≤ L‖w‖ √(2 log(2/δ')) ≤ L σ(x) √(2 log(2/δ')/α)   with probability 1 − δ',

for fixed w. With δ' = δ/(T·N·S), one for each number of values, arm and level, all bounds
μ(x) ± (√α·B + L √(2 log(2TNS/δ)))·σ(x)/√α hold together with probability 1 − δ. In the papers: Chu
et al. have √(½ ln(2TK/δ)) + 1 for values in [0, 1], which is this with L = 1/2, α = B = 1; Valko et
al. have η/√γ with η = √(2 log(2TN/δ)), and count B in the regret instead. S inside the logarithm is
ours: it shares δ between the levels.

Pending evaluations: widths count those of the level, arms are dropped by observed values only.
Where a level is narrow enough but for values not told yet, the next one starts with the same active
arms.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from itertools import islice
from typing import NamedTuple

import numpy as np

from partita._checks import as_positive, check_horizon
from partita._state import Saved, State, joined, lengths, wholes
from partita._types import FloatArray, IntArray, Prediction
from partita.gp.planning import Planner, planners_state, restore_planners
from partita.model.assumptions import Assumptions
from partita.model.domains import Arms, Grid

from .arms import ArmsPolicy, Model

#: The level of an evaluation whose value enters none.
NO_LEVEL = -1


class _Level(NamedTuple):
    """A level's model, which knows observed values only, and the evaluations pending in it."""

    model: Model
    planner: Planner

    def planned_std(self) -> FloatArray:
        """Standard deviations (m,), pending evaluations counted."""
        return self.planner.std(self.model.std, self.model.plan)


class PhasedPolicy(ArmsPolicy):
    """The scheme above; a concrete policy makes the models. Levels count from 0 here.

    Which arm of those wider than M·2⁻ˢ is evaluated is free in the papers; here it is the widest,
    ties to the lowest priority. Widths and bounds are compared after rounding, as indices are (see
    `sites.tie_resolution`).

    A point reported without being asked for enters the first level: the bounds then hold if it was
    chosen without looking at values. Of several pending evaluations of one arm, the first told
    settles the first asked.
    """

    guarantee = "published"
    horizon: int

    def __init__(
        self,
        domain: Grid | Arms,
        horizon: int,
        assumptions: Assumptions,
        seed: int,
        alpha: float,
        prior_std: FloatArray,
    ) -> None:
        """Check the settings; `prior_std` = √k(x, x), (m,), already is.

        |f| ≤ B√k(x, x), so M is B times the largest of `prior_std`.
        """
        self.horizon = check_horizon(horizon)
        self._assume(assumptions, seed)
        self.alpha = as_positive("alpha", alpha)
        self._scale = self.norm_bound * float(prior_std.max())
        super().__init__(domain, domain.points, self._scale)
        self._prior_std = prior_std
        count = max(1, math.ceil(math.log(self.horizon)))
        #: A level without data or pending evaluations has no model yet: it is the prior.
        self._levels: list[_Level | None] = [None] * count
        bounds = 2.0 * self.horizon * domain.size * count
        self._width = self.norm_bound + self.sub_gaussian * math.sqrt(
            2.0 * (math.log(bounds) - math.log(self.delta)) / self.alpha
        )
        #: Active arms of the levels gone through so far, none where all are to be found afresh.
        self._active: list[IntArray] = [np.arange(domain.size)]
        #: What to evaluate next, if that is known: an arm and its level.
        self._decision: tuple[int, int] | None = None
        #: By arm, the levels of its pending evaluations in the order asked.
        self._queues: dict[int, list[int]] = {}

    @abstractmethod
    def _new_model(self) -> Model:
        """A model without data."""

    # -- the choice -------------------------------------------------------------------------------

    def _propose(self) -> tuple[int, FloatArray]:
        self._watch_horizon("its confidence bounds and its regret bound were made for that")
        if self._decision is None:
            self._decision = self._choose()
        arm, level = self._decision
        self._queues.setdefault(arm, []).append(level)
        if level != NO_LEVEL:
            self._level(level).planner.add(arm)
            self._changed(level)
        return arm, np.array(self._points[arm])

    def _choose(self) -> tuple[int, int]:
        """The arm to evaluate, and its level. Starts at the last level with known active arms."""
        while True:
            s = len(self._active) - 1
            active = self._active[s]
            level = self._levels[s]
            std = self._prior_std if level is None else level.planned_std()
            widths = self._width * std[active]
            widest = self._steps(float(widths.max()))
            if widest <= self._steps(self._scale / math.sqrt(self.horizon)):
                return self._best(self._upper(s, active), active), NO_LEVEL
            if widest > self._steps(self._scale * 0.5 ** (s + 1)):
                return self._best(widths, active), s
            self._active.append(self._survivors(s, active))

    def _survivors(self, s: int, active: IntArray) -> IntArray:
        """The active arms that level s passes on to the next, by its values."""
        allowed = self._scale * 0.5 ** (s + 1)
        if self._steps(float((self._width * self._told_std(s)[active]).max())) > self._steps(
            allowed
        ):
            return active  # narrow enough on pending evaluations only
        upper = self._upper(s, active)
        least = self._steps(float(upper.max())) - self._steps(2 * allowed)
        return active[np.rint(upper * self._resolution) >= least]

    def _upper(self, s: int, active: IntArray) -> FloatArray:
        """Upper bounds of level s at the active arms, from observed values."""
        level = self._levels[s]
        upper = self._width * self._told_std(s)[active]
        return upper if level is None else level.model.mean[active] + upper

    def _told_std(self, s: int) -> FloatArray:
        level = self._levels[s]
        return self._prior_std if level is None else level.model.std

    def _steps(self, value: float) -> float:
        """A number as it is compared: in whole steps of the resolution."""
        return float(np.rint(value * self._resolution))

    def _changed(self, s: int) -> None:
        """The widths or values of a level are others now: choose afresh from there on."""
        self._decision = None
        del self._active[s + 1 :]

    def _level(self, s: int) -> _Level:
        level = self._levels[s]
        if level is None:
            level = self._levels[s] = _Level(self._new_model(), Planner())
        return level

    # -- data -------------------------------------------------------------------------------------

    def _record(self, site: int, value: float, asked: bool, std: float | None = None) -> None:
        s = self._take(site) if asked else 0
        if s != NO_LEVEL:
            self._level(s).model.observe(site, value)
            self._level(s).planner.renew()
            self._changed(s)

    def _record_many(
        self, sites: IntArray, values: FloatArray, stds: FloatArray | None = None
    ) -> None:
        levels = np.zeros(len(sites), dtype=np.int64)
        pending = self._pending_plays()
        for site, queue in list(self._queues.items()):
            settled = len(queue) - pending.get(site, 0)
            if settled:
                for i in islice(np.flatnonzero(sites == site), settled):
                    levels[i] = self._take(site)
        for s in np.unique(levels[levels != NO_LEVEL]).tolist():
            rows = levels == s
            self._level(s).model.observe_many(sites[rows], values[rows])
            self._level(s).planner.renew()
            self._changed(s)

    def _released(self, site: int) -> None:
        s = self._take(site)
        if s != NO_LEVEL:
            self._changed(s)

    def _take(self, site: int) -> int:
        """The level of the first evaluation pending at a site, which is pending no longer."""
        queue = self._queues[site]
        s = queue.pop(0)
        if not queue:
            del self._queues[site]
        if s != NO_LEVEL:
            self._level(s).planner.remove(site)
        return s

    # -- saved state ------------------------------------------------------------------------------

    def _state(self) -> State:
        levels = [level for level in self._levels if level is not None]
        queues = list(self._queues.values())
        return {
            **super()._state(),
            "levels": [None if level is None else level.model.state() for level in self._levels],
            "planners": planners_state(
                [level.planner for level in levels],
                [getattr(level.model, "posterior", None) for level in levels],
            ),
            "active_lengths": lengths(self._active),
            "active": joined(self._active, np.int64),
            "decision": None if self._decision is None else wholes(self._decision),
            "queued": wholes(self._queues),
            "queue_lengths": lengths(queues),
            "queues": joined([wholes(queue) for queue in queues], np.int64),
        }

    def _restore(self, saved: Saved) -> None:
        size, count = len(self._points), len(self._levels)
        self._restore_plays(saved, self._points)
        states = saved.parts("levels", count)
        saved.require(len(states) == count, "a model for each level")
        for s, state in enumerate(states):
            if state is not None:
                self._level(s).model.restore(state)
        levels = [level for level in self._levels if level is not None]
        planners = [level.planner for level in levels]
        restore_planners(saved.part("planners"), planners, [size] * len(levels))
        active = saved.wholes("active", (None,), 0, size - 1)
        number = min(saved.count("active_lengths"), count)
        self._active = saved.cut("active_lengths", active, number)
        first = len(self._active) > 0 and np.array_equal(self._active[0], np.arange(size))
        saved.require(first and all(map(len, self._active)), "all arms, then some of them")
        queued = saved.numbers("queued", size)
        queues = saved.wholes("queues", (None,), NO_LEVEL, count - 1)
        cut = saved.cut("queue_lengths", queues, len(queued))
        self._queues = {arm: queue.tolist() for arm, queue in zip(queued, cut, strict=True)}
        self._decision = None
        if "decision" in saved:
            arm, level = saved.wholes("decision", (2,), NO_LEVEL, max(size, count)).tolist()
            saved.require(0 <= arm < size and level < count, "a decision that is possible")
            self._decision = arm, level
        self._check_queues(saved)

    def _check_queues(self, saved: Saved) -> None:
        """Refuse queues that do not match the pending evaluations, or those of the levels."""
        plays = {arm: len(queue) for arm, queue in self._queues.items()}
        saved.require(plays == self._pending_plays(), "the pending evaluations")
        for s, level in enumerate(self._levels):
            here = {arm: queue.count(s) for arm, queue in self._queues.items() if s in queue}
            planned = {} if level is None else level.planner.pending
            saved.require(here == planned, "evaluations of each level")

    # -- bounds from observed values --------------------------------------------------------------

    def _bounds(self) -> Prediction:
        """The largest lower and smallest upper bound of the levels, |f| ≤ B√k(x, x) among them.

        Mean and standard deviation are those of the level where the latter is least.
        """
        most = self.norm_bound * self._prior_std
        best = Prediction(np.zeros(len(most)), self._prior_std.copy(), -most, most.copy())
        for level in self._levels:
            if level is None:
                continue
            mean, std = level.model.mean, level.model.std
            sharper = std < best.std
            best.mean[sharper] = mean[sharper]
            best.std[sharper] = std[sharper]
            np.maximum(best.lower, mean - self._width * std, out=best.lower)
            np.minimum(best.upper, mean + self._width * std, out=best.upper)
        return best

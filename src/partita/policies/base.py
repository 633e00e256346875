"""The base class of policies: ask, tell, cancel, pending points, saved state."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from types import FunctionType
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from partita._checks import check_count, check_seed
from partita._locks import in_turn
from partita._state import Saved, State, wholes
from partita._types import FloatArray, IntArray, Recommendation
from partita._version import __version__
from partita.errors import InvalidInput, NotPending, VersionMismatch, warn_theory
from partita.model.assumptions import Assumptions
from partita.model.domains import Arms, Box, Grid
from partita.model.mixed import Mixed
from partita.partition.sites import NEAR

from .checks import (
    as_point,
    as_std,
    as_stds,
    as_value,
    as_values,
    cannot_fix,
    check_domain,
    wrong_shape,
)
from .repeats import Counted, as_counted

#: The version of saved states, raised by one when the state of several policies changes, by `state`
#: or by pickle; other versions are refused. A single policy has its own `state_version`.
STATE_VERSION = 10
#: Methods and properties of policies that threads call one at a time.
IN_TURN = frozenset(
    (
        *("ask", "expect", "repeat", "worth", "tell", "cancel", "fail", "measure", "constrain"),
        "limits_at",
        *("recommend", "certificate", "predict", "cover", "settings"),
    )
)


class Policy(ABC):
    """A rule that chooses where to evaluate a noisy function next, in order to maximise it.

    A concrete policy numbers the points that it can evaluate (*sites*) and implements the methods
    below that start with an underscore. This class checks input and keeps track of pending points.

    Threads may share a policy: each call waits until those of other threads have returned.
    """

    #: The lock is not part of the state: it is neither copied nor saved.
    __slots__ = ("__dict__", "__weakref__", "_turn")
    _turn: Any

    #: The kind of guarantee of the bounds: "proven", "published" (proven in the paper, under its
    #: assumptions), "bayesian" (they hold if f is drawn from the prior), "calibrated" or "none".
    guarantee: str = "none"
    #: Whether it supports `Mixed` domains, with parameters of several kinds or a constraint.
    plays_mixed: ClassVar[bool] = False
    #: Whether pending points are kept in this class only, so that `expect` can add one.
    plans_from_pending: ClassVar[bool] = False
    #: Whether it uses the noise of single values: `tell(x, y, std=...)`.
    takes_std: bool = False
    #: Whether it can choose with some coordinates fixed: `ask(fixed={...})`.
    takes_fixed: bool = False
    #: Whether it takes the mean of several values as those values: `tell(x, mean, count=n)`.
    takes_count: bool = False
    #: The planned number of evaluations; None if the policy needs no horizon.
    horizon: int | None = None
    _past_horizon = False
    #: The version of `state`. A subclass that does not set its own version has no saved state,
    #: because what it adds to its base class would be lost.
    state_version: ClassVar[int]

    def __init_subclass__(cls, **settings: Any) -> None:
        """Make the methods that a subclass implements thread-safe, too."""
        super().__init_subclass__(**settings)
        for name in IN_TURN & cls.__dict__.keys():
            own = cls.__dict__[name]
            if isinstance(own, property) and own.fget is not None:
                setattr(cls, name, own.getter(in_turn(own.fget)))
            elif isinstance(own, FunctionType):
                setattr(cls, name, in_turn(own))

    def __init__(self, domain: Grid | Arms | Box | Mixed) -> None:
        if isinstance(domain, Mixed) and self.plays_mixed:
            # Only policies that support it get one, so the others need not check.
            self.domain = cast(Grid | Arms | Box, domain)
        else:
            self.domain = check_domain(domain)
        #: For the bytes of each pending point: its site, and how many times it is pending.
        self._pending_points: dict[bytes, list[int]] = {}
        self._told = 0
        self._pending = 0

    def _assume(self, assumptions: Assumptions, seed: object) -> None:
        """Check and store the assumptions: norm bound, noise and delta."""
        self.norm_bound, self.sub_gaussian, self.delta = assumptions.constants
        self.noise = assumptions.noise
        self.seed = check_seed(seed)
        self.assumptions = replace(assumptions, norm_bound=self.norm_bound, delta=self.delta)

    # -- the interface --------------------------------------------------------------------------

    @in_turn
    def ask(
        self, count: int | None = None, *, fixed: Mapping[int, float] | None = None
    ) -> FloatArray:
        """The next point to evaluate, (d,), or `count` points to evaluate together, (count, d).

        They are pending until they are told or cancelled; `tell(points, values)` takes them all.
        `fixed` gives values {coordinate: value} that the points must have, such as those of a
        context, in the units of the domain. Only policies with `takes_fixed` accept it.
        """
        if count is not None:
            return np.array([self.ask(fixed=fixed) for _ in range(check_count(count))])
        if not fixed:
            site, x = self._propose()
        elif self.takes_fixed:
            site, x = self._propose_fixed(fixed)
        else:
            raise cannot_fix(type(self).__name__)
        self._add_pending(x.tobytes(), site)
        return x

    @in_turn
    def expect(self, x: npt.ArrayLike) -> bool:
        """Mark a point that was chosen elsewhere as pending, as if `ask` had returned it.

        Returns False if the policy does not support this; its value can still be told.
        """
        point = as_point(x)
        if point.ndim != 1:
            raise wrong_shape(point, self.domain.dim)
        site = self._site(point)
        if self.plans_from_pending:
            self._add_pending(point.tobytes(), site)
        return self.plans_from_pending

    @in_turn
    def repeat(self, x: npt.ArrayLike, more: int) -> None:
        """Count `more` evaluations of a pending point as pending, or fewer if it is negative.

        At least one stays pending. Only policies with `takes_count` do so; a point that is not
        pending stays as it is.
        """
        entry = self._pending_points.get(as_point(x).tobytes())
        if entry is None or not self.takes_count:
            return
        more = max(int(more), 1 - entry[1])
        entry[1] += more
        self._pending += more
        if more:
            self._repeated(entry[0], more)

    def _repeated(self, site: int, more: int) -> None:  # noqa: B027
        """Note that a site is pending `more` times than before."""

    @in_turn
    def tell(
        self,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        std: npt.ArrayLike | None = None,
        count: npt.ArrayLike | None = None,
    ) -> None:
        """Report the value y observed at x, or values (n,) at points (n, d).

        The point may be any point of the domain, from `ask` or not; the exact array that `ask`
        returned ends that pending point. `std` is the standard deviation of the value's noise, if
        known: one number, or one per value; 0 means exact. Nothing changes if the call raises an
        error. Report all values that were observed, not only the good ones: bounds do not hold for
        values that were selected by their own size.

        With a `count` above 1, y is the mean of `count` values at x, and `std` their sample
        deviation (ddof = 1), if known: evidence of the noise, where 0 only means that they agreed.
        This does what telling these values one by one does, at the cost of about one.
        """
        if count is not None:
            self._tell_repeated(as_point(x), y, std, count)
            return
        if std is not None and not self.takes_std:
            raise InvalidInput(
                f"tell(x, y, std={std!r}): {type(self).__name__} does not use the noise of "
                "single values. Leave std out, or use a policy that does, such as PiGPUCB."
            )
        point = as_point(x)
        if point.ndim != 1:
            self._tell_many(point, y, std)
            return
        value = as_value(y)
        known = None if std is None else as_std(std)
        site = self._settle(point.tobytes())
        asked = site is not None
        if site is None:
            site = self._site(point)
        self._told += 1
        if known is None:
            self._record(site, value, asked)
        else:
            self._record(site, value, asked, known)

    @in_turn
    def cancel(self, x: npt.ArrayLike) -> None:
        """Cancel a pending point whose evaluation failed or was abandoned."""
        point = as_point(x)
        site = self._settle(point.tobytes()) if point.ndim == 1 else None
        if site is None:
            raise NotPending(
                f"cancel({point!r}): no pending ask returned this point. Pass the array that ask() "
                "returned; a point that was told or cancelled is no longer pending."
            )
        self._released(site)

    @abstractmethod
    def recommend(self) -> Recommendation:
        """The point with the best posterior so far, not necessarily the one with the best value."""

    @property
    def told(self) -> int:
        """The number of observations so far."""
        return self._told

    @property
    def pending(self) -> int:
        """The number of asks that are neither told nor cancelled."""
        return self._pending

    # -- to be implemented by a concrete policy ---------------------------------------------------

    @abstractmethod
    def _propose(self) -> tuple[int, FloatArray]:
        """The site to evaluate next, and its point in the user's units as a new array."""

    def _propose_fixed(self, fixed: Mapping[int, float]) -> tuple[int, FloatArray]:
        """The same with coordinates {number: value} fixed. Policies with `takes_fixed` have it."""
        raise NotImplementedError

    @abstractmethod
    def _locate(self, points: FloatArray) -> IntArray:
        """The sites of checked points (n, d); points outside the domain are an error."""

    @abstractmethod
    def _record(self, site: int, value: float, asked: bool, std: float | None = None) -> None:
        """Record one observation, which ends a pending evaluation of its site if `asked`.

        Only policies with `takes_std` get a `std`.
        """

    @abstractmethod
    def _record_many(
        self, sites: IntArray, values: FloatArray, stds: FloatArray | None = None
    ) -> None:
        """Record many observations at once, with known noise for all of them or for none."""

    def _record_repeated(
        self, site: int, mean: float, count: int, std: float | None, asked: bool
    ) -> None:
        """Record `count` > 1 values by their mean and, if known, their sample deviation.

        Only policies with `takes_count` implement this.
        """
        raise NotImplementedError

    def _check_repeated(self, counted: Counted) -> None:  # noqa: B027
        """Refuse aggregates that lack something the policy needs."""

    def _record_many_repeated(self, sites: IntArray, means: FloatArray, counted: Counted) -> None:
        """Record aggregates (n,), some of which may be single values."""
        rows = zip(sites.tolist(), means.tolist(), *map(np.ndarray.tolist, counted), strict=True)
        for site, mean, count, std in rows:
            known = None if math.isnan(std) else std
            if count > 1:
                self._record_repeated(site, mean, count, known, False)
            elif known is None:
                self._record(site, mean, False)
            else:
                self._record(site, mean, False, known)

    @abstractmethod
    def _released(self, site: int) -> None:
        """Record that a pending evaluation of this site was cancelled."""

    # -- bookkeeping ------------------------------------------------------------------------------

    def _add_pending(self, word: bytes, site: int) -> None:
        """Add a pending evaluation of a point, given its bytes."""
        entry = self._pending_points.get(word)
        if entry is None:
            self._pending_points[word] = [site, 1]
        else:
            entry[1] += 1
        self._pending += 1

    def _settle(self, word: bytes) -> int | None:
        """End one pending evaluation of a point, given its bytes; return its site, or None."""
        entry = self._pending_points.get(word)
        if entry is None:
            return None
        if entry[1] == 1:
            del self._pending_points[word]
        else:
            entry[1] -= 1
        self._pending -= 1
        return entry[0]

    def _pending_plays(self) -> dict[int, int]:
        """The number of times each site is pending."""
        plays: dict[int, int] = {}
        for site, count in self._pending_points.values():  # several arrays may be the same site
            plays[site] = plays.get(site, 0) + count
        return plays

    def _step(self) -> int:
        """The number of the next evaluation, counted from 1, including pending ones."""
        return self._told + self._pending + 1

    def _watch_horizon(self, consequence: str = "the settings were made for that") -> None:
        """Warn once when the next evaluation is past the horizon, with the consequence."""
        if self.horizon is None or self._step() <= self.horizon or self._past_horizon:
            return
        self._past_horizon = True
        warn_theory(
            f"evaluation {self._step()} is past the horizon of {self.horizon}: {consequence}. Give "
            "a larger horizon next time."
        )

    def _site(self, point: FloatArray) -> int:
        if point.shape != (self.domain.dim,):
            raise wrong_shape(point, self.domain.dim)
        return int(self._locate(self.domain.check(point[None, :]))[0])

    def _tell_many(
        self, points: FloatArray, y: npt.ArrayLike, std: npt.ArrayLike | None = None
    ) -> None:
        if points.ndim != 2:
            raise wrong_shape(points, self.domain.dim)
        values = as_values(y, len(points))
        stds = None if std is None else as_stds(std, len(points))
        sites = self._locate(self.domain.check(points))
        if len(points) == 0:
            return
        for i, row in enumerate(points if self._pending else ()):
            site = self._settle(row.tobytes())
            if site is not None:
                sites[i] = site
        self._told += len(points)
        if stds is None:
            self._record_many(sites, values)
        else:
            self._record_many(sites, values, stds)

    def _tell_repeated(
        self, point: FloatArray, y: npt.ArrayLike, std: npt.ArrayLike | None, count: npt.ArrayLike
    ) -> None:
        """Report aggregates, at a point (d,) or at points (n, d)."""
        single = point.ndim == 1
        if single:
            means = np.array([as_value(y)])
        elif point.ndim != 2:
            raise wrong_shape(point, self.domain.dim)
        else:
            means = as_values(y, len(point))
        if (np.ndim(count) or np.ndim(std if std is not None else 0)) and single:
            raise InvalidInput(
                f"tell(x, y, std={std!r:.60}, count={count!r:.60}): one point has one std and one "
                "count. For several give points of shape (n, d)."
            )
        counted = as_counted(count, std, len(means))
        if not self.takes_count and (counted.counts > 1).any():
            raise InvalidInput(
                f"tell(x, y, count={count!r:.60}): {type(self).__name__} needs each value by "
                "itself. Tell them one by one, or use a policy that takes means, such as PiGPUCB "
                "or CalibratedUCB."
            )
        if counted.any_known and not self.takes_std:
            raise InvalidInput(
                f"tell(x, y, std={std!r:.60}): {type(self).__name__} does not use the noise of "
                "single values. Leave std out where count is 1 (NaN in an array)."
            )
        self._check_repeated(counted)
        if not single:
            sites = self._locate(self.domain.check(point))
            for i, row in enumerate(point if self._pending else ()):
                settled = self._settle(row.tobytes())
                sites[i] = sites[i] if settled is None else settled
            self._told += int(counted.counts.sum())
            if len(means):
                self._record_many_repeated(sites, means, counted)
            return
        number, known = int(counted.counts[0]), float(counted.stds[0])
        if number == 1:
            self.tell(point, y, std=None if math.isnan(known) else known)
            return
        site = self._settle(point.tobytes())
        asked = site is not None
        if site is None:
            site = self._site(point)
        self._told += number
        deviation = None if math.isnan(known) else known
        self._record_repeated(site, float(means[0]), number, deviation, asked)

    # -- saved state ------------------------------------------------------------------------------

    @in_turn
    def state(self) -> State | None:
        """The state as plain data for `restore`; None if this class cannot save its state.

        Plain data are None, booleans, numbers, strings, lists, dicts and arrays. Settings are not
        included. `BadState` is raised if the state cannot be saved at this moment, which is rare.
        """
        if "state_version" not in vars(type(self)):
            return None
        return {"version": STATE_VERSION, **self._label(), **self._state()}

    @in_turn
    def restore(self, state: State) -> None:
        """Restore what `state` returned, in a new policy with the same settings.

        Every number is checked. After an error the policy must not be used.
        """
        if self._told or self._pending:
            raise InvalidInput(
                f"restore(...): {type(self).__name__} has already been used. Restore into a new "
                "one with the same settings."
            )
        saved = Saved(state, "state")
        for name, value in {"version": STATE_VERSION, **self._label()}.items():
            saved.expect(name, value)
        self._restore(saved)

    def _label(self) -> dict[str, str | int]:
        return {"policy": type(self).__name__, "policy_version": type(self).state_version}

    def _state(self) -> State:
        """The fields of the state; a concrete policy adds its own."""
        points = b"".join(self._pending_points)
        entries = list(self._pending_points.values())
        return {
            "told": self._told,
            "past_horizon": self._past_horizon,
            "pending": np.frombuffer(points).reshape(len(entries), -1)
            if entries
            else np.empty((0, self.domain.dim)),
            "pending_sites": wholes(site for site, _ in entries),
            "pending_plays": wholes(plays for _, plays in entries),
        }

    def _restore(self, saved: Saved) -> None:
        """Read the fields of the state; a concrete policy also calls `_restore_plays`."""
        raise NotImplementedError

    def _restore_plays(self, saved: Saved, sites: FloatArray) -> None:
        """Read what this class's `_state` wrote; needs the points (n, d) of all sites."""
        self._told = saved.integer("told")
        self._past_horizon = saved.flag("past_horizon")
        points = saved.floats("pending", (None, self.domain.dim))
        numbers = saved.wholes("pending_sites", (len(points),), 0, len(sites) - 1)
        plays = saved.wholes("pending_plays", (len(points),), 1).tolist()
        away = np.abs(sites[numbers] - points)
        near = (away <= NEAR * (self.domain.upper - self.domain.lower)).all()
        saved.require(near, "pending points at their sites")
        words = [row.tobytes() for row in points]
        exact = {row.tobytes() for row in sites} if words else set()
        for word, site, number in zip(words, numbers.tolist(), plays, strict=True):
            # A site that is asked for again must be found by its point.
            saved.require(word not in exact or sites[site].tobytes() == word, "sites of points")
            self._pending_points[word] = [site, number]
        saved.require(len(self._pending_points) == len(points), "each pending point once")
        self._pending = sum(plays)

    def __getstate__(self) -> dict[str, Any]:
        """The state for pickling, with its version. Other threads must not use the policy now."""
        return {**self.__dict__, "state_version": STATE_VERSION, "written_by": __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        version = state.get("state_version")
        if version != STATE_VERSION:
            newer = isinstance(version, int) and version > STATE_VERSION
            raise VersionMismatch(
                f"this policy was saved by Partita {state.get('written_by', '?')} (state version "
                f"{version}), but {__version__} reads version {STATE_VERSION}: "
                + ("upgrade Partita." if newer else "open it with the Partita that saved it.")
            )
        self.__dict__.update(
            {k: v for k, v in state.items() if k not in ("state_version", "written_by")}
        )

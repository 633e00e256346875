"""HOO: hierarchical optimistic optimisation. Bubeck, Munos, Stoltz & Szepesvári, JMLR 2011."""

from __future__ import annotations

import math
from array import array

import numpy as np

from partita._checks import as_number, check_horizon, check_scale, check_seed
from partita._state import Saved, State, generator_state, joined, lengths, wholes
from partita._types import FloatArray, IntArray, Recommendation
from partita.errors import InvalidInput
from partita.model.assumptions import Assumptions
from partita.model.domains import Arms, Box, Grid
from partita.model.noise import Noise

from .tree_policy import TreePolicy

#: Keeps the choices independent of a test function or noise drawn under the same seed.
STREAM = 5


class HOO(TreePolicy):
    """Walks down a binary tree of cells, always to the child with the highest upper bound.

    With T evaluations and average value μ in a cell of depth h, U = μ + 2L √(2 log n / T) + ν₁ρ^h
    bounds f on the cell that holds the maximum, and B = min(U, the children's largest B) sharpens
    it. The walk ends at the first cell without an evaluation, evaluates its representative,
    and divides it. Bubeck et al. 2011, "The Hierarchical Optimistic Optimization strategy". They
    have values in [0, 1], whose L is 1/2; for other noise the width is scaled by 2L.

    The bounds hold if f loses at most ν₁ρ^h over a cell of depth h around its maximum (a cell of
    one arm loses nothing). That is not checked, so `guarantee` is "none".

    Parameters
    ----------
    domain
    horizon
        The planned number of evaluations. If given, the width has log(horizon) throughout, only the
        cells on the walk change each time, and cells of depth ⌈(½ log n − log(2L/ν₁)) / log(1/ρ)⌉
        are evaluated again instead of divided. Bubeck et al. 2011, truncated HOO. If not, n is the
        evaluations so far.
    noise
        Noise model.
    seed
        Breaks ties.
    nu1
        ν₁: how much f may vary over the whole domain, in its own units.
    rho
        ρ: what is left of that one division further down, between 0 and 1. By default 2^(−1/d):
        every d divisions halve all sides, so this suits f that is Lipschitz, with ν₁ about 2 times
        its constant in the largest coordinate of the unit cube. For f that is quadratic around its
        maximum 4^(−1/d) will do.

    Notes
    -----
    Every value told counts in all cells that hold its point, and divides the smallest of them, as
    if HOO had evaluated there; so data may come from anywhere. Pending evaluations count in T at
    once, as visits without a value: a cell that has none borrows the average of the cell around it.

    Deviates: without a horizon n is rounded up to a power of two, and all bounds are renewed when
    it doubles. The width is never smaller than theirs, and a step costs O(depth) on average instead
    of the size of the tree.
    """

    guarantee = "none"
    state_version = 1

    def __init__(
        self,
        domain: Grid | Arms | Box,
        *,
        horizon: int | None = None,
        noise: Noise,
        seed: int = 0,
        nu1: float = 1.0,
        rho: float | None = None,
    ) -> None:
        super().__init__(domain, 2)
        self.horizon = None if horizon is None else check_horizon(horizon)
        self.noise = noise
        self.sub_gaussian = Assumptions(noise=noise).sub_gaussian
        self.seed = check_seed(seed)
        self.nu1 = check_scale("nu1", nu1)
        self.rho = 2.0 ** (-1 / domain.dim) if rho is None else as_number(rho)
        if not 0 < self.rho < 1:
            raise InvalidInput(f"rho={rho!r}: give a number between 0 and 1, ends excluded.")
        self._random = np.random.default_rng([self.seed, STREAM])
        self._depth_limit = self._truncation()
        #: n in the width.
        self._rounds = 2 if self.horizon is None else self.horizon
        self._scale = self._width_scale()
        self._count, self._pending_count = array("q"), array("q")
        self._total, self._reach, self._bound = array("d"), array("d"), array("d")
        #: The cells that pending asks were for, by site.
        self._asked: dict[int, list[int]] = {}
        #: The cell of the last ask, while its visit is not yet counted; else −1.
        self._uncounted = -1
        self._room()
        self._divide(0)  # the whole domain itself is never evaluated

    def recommend(self) -> Recommendation:
        """The representative of the cell with the highest lower bound, μ − 2L√(2 log n/T) − ν₁ρ^h.

        HOO evaluates good cells often, so this finds a small cell among them that is known well.
        The most evaluated path would end at a cell seen once. `mean` is the average in the cell;
        `lower` and `upper` hold on it if f varies over it by no more than ν₁ρ^h.
        """
        count = np.array(self._count)
        played = np.flatnonzero(count)
        if not len(played):
            return self._unknown()
        mean = np.array(self._total)[played] / count[played]
        slack = self._scale / np.sqrt(count[played]) + np.array(self._reach)[played]
        best = int(np.argmax(mean - slack))
        middle, around = float(mean[best]), float(slack[best])
        x = self._tree.x(int(played[best]))
        return Recommendation(x, middle, middle - around, middle + around)

    # -- the method -------------------------------------------------------------------------------

    def _propose(self) -> tuple[int, FloatArray]:
        self._watch_horizon()
        self._count_visit()
        self._renew()
        tree, bound = self._tree, self._bound
        node = 0
        while True:
            child = tree.first[node]
            if child < 0:
                # The value is on its way, so HOO would go on below this cell.
                if self._pending_count[node] and self._divide(node):
                    continue
                break
            if tree.width[node] == 2:
                low, high = bound[child], bound[child + 1]
                if high > low or (high == low and self._random.random() < 0.5):
                    child += 1
            node = child
        site = tree.representative(node)
        self._asked.setdefault(site, []).append(node)
        self._uncounted = node
        return site, tree.sites.x(site)

    def _record(self, site: int, value: float, asked: bool, std: float | None = None) -> None:
        if asked:
            self._settle_play(site)
        leaf = node = self._tree.leaf(site)
        self._divide(leaf)
        count, total, reach, bound = self._count, self._total, self._reach, self._bound
        parent, first, width = self._tree.parent, self._tree.first, self._tree.width
        pending, scale, sqrt = self._pending_count, self._scale, math.sqrt
        while node >= 0:  # as `_refresh`, written out: this is the cost of a step
            plays = count[node] = count[node] + 1
            total[node] += value
            best = total[node] / plays + scale / sqrt(plays + pending[node]) + reach[node]
            child = first[node]
            if child >= 0:
                best = min(best, max(bound[child], bound[child + width[node] - 1]))
            bound[node] = best
            node = parent[node]
        self._renew()

    def _record_many(
        self, sites: IntArray, values: FloatArray, stds: FloatArray | None = None
    ) -> None:
        pending = self._pending_plays()
        for site, value in zip(sites.tolist(), values.tolist(), strict=True):
            settled = len(self._asked.get(site, ())) > pending.get(site, 0)
            self._record(site, value, settled)

    def _released(self, site: int) -> None:
        self._refresh(self._settle_play(site))

    def _count_visit(self) -> None:
        """Count the last ask as a visit, now that another comes before its value."""
        if self._uncounted >= 0:
            self._shift_pending(self._uncounted, 1)
            self._refresh(self._uncounted)
            self._uncounted = -1

    def _settle_play(self, site: int) -> int:
        """End a pending evaluation of a site; return its cell, whose bounds are now out of date."""
        nodes = self._asked[site]
        node = nodes.pop()
        if not nodes:
            del self._asked[site]
        if node == self._uncounted:
            self._uncounted = -1
        else:
            self._shift_pending(node, -1)
        return node

    def _shift_pending(self, node: int, by: int) -> None:
        while node >= 0:
            self._pending_count[node] += by
            node = self._tree.parent[node]

    def _divide(self, node: int) -> bool:
        """Give a leaf its children, if the truncation and the domain let it have any."""
        if self._tree.depth[node] >= self._depth_limit or not self._tree.split(node):
            return False
        self._room()
        return True

    def _room(self) -> None:
        """Statistics for the nodes that are new: no evaluations, no bound."""
        tree = self._tree
        for node in range(len(self._count), len(tree)):
            self._count.append(0)
            self._pending_count.append(0)
            self._total.append(0.0)
            single = self.domain.finite and not tree.divisible(node)
            self._reach.append(0.0 if single else self.nu1 * self.rho ** tree.depth[node])
            self._bound.append(math.inf)

    # -- bounds -----------------------------------------------------------------------------------

    def _truncation(self) -> float:
        """The depth at which cells are replayed instead of divided."""
        if self.horizon is None:
            return math.inf
        spare = 0.5 * math.log(self.horizon) - math.log(2 * self.sub_gaussian / self.nu1)
        return max(1, math.ceil(spare / -math.log(self.rho)))

    def _width_scale(self) -> float:
        """The width for T = 1."""
        return 2 * self.sub_gaussian * math.sqrt(2 * math.log(self._rounds))

    def _refresh(self, node: int) -> None:
        """Renew the bounds from a cell up to the root."""
        tree, bound = self._tree, self._bound
        parent, first, width = tree.parent, tree.first, tree.width
        while node >= 0:
            best = self._upper(node)
            child = first[node]
            if child >= 0:
                best = min(best, max(bound[child], bound[child + width[node] - 1]))
            bound[node] = best
            node = parent[node]

    def _upper(self, node: int) -> float:
        """U of a cell, with its pending evaluations."""
        count = self._count[node]
        plays = count + self._pending_count[node]
        if not plays:
            return math.inf
        holder = node
        while not count and holder:
            holder = self._tree.parent[holder]
            count = self._count[holder]
        mean = self._total[holder] / count if count else 0.0
        return mean + self._scale / math.sqrt(plays) + self._reach[node]

    def _renew(self) -> None:
        """Without a horizon, recompute every bound when the evaluations exceed a power of two."""
        plays = self._told + self._pending
        if self.horizon is not None or plays <= self._rounds:
            return
        self._rounds = 1 << (plays - 1).bit_length()
        self._scale = self._width_scale()
        count, pending = np.array(self._count), np.array(self._pending_count)
        upper = np.full(len(count), math.inf)
        told = np.flatnonzero(count)
        mean = np.array(self._total)[told] / count[told]
        width = self._scale / np.sqrt((count + pending)[told])
        upper[told] = mean + width + np.array(self._reach)[told]
        for node in np.flatnonzero((count == 0) & (pending > 0)).tolist():
            upper[node] = self._upper(node)
        self._bound = array("d", self._backed_up(upper))

    def _backed_up(self, upper: FloatArray) -> FloatArray:
        """B of every cell from U, one depth after the other, the deepest first."""
        tree, bound = self._tree, upper.copy()
        first, width = np.array(tree.first), np.array(tree.width)
        inner = np.flatnonzero(first >= 0)
        depth = np.array(tree.depth)[inner]
        inner = inner[np.argsort(-depth, kind="stable")]
        steps = np.flatnonzero(np.diff(-np.sort(-depth))) + 1
        for nodes in np.split(inner, steps):
            below = np.maximum(bound[first[nodes]], bound[first[nodes] + width[nodes] - 1])
            bound[nodes] = np.minimum(upper[nodes], below)
        return bound

    # -- saved state ------------------------------------------------------------------------------

    def _state(self) -> State:
        asked = list(self._asked.values())
        return {
            **super()._state(),
            "random": generator_state(self._random),
            "count": np.array(self._count, dtype=np.int64),
            "total": np.array(self._total),
            "bound": np.array(self._bound),
            "asked": wholes(self._asked),
            "asked_lengths": lengths(asked),
            "asked_nodes": joined([wholes(nodes) for nodes in asked], np.int64),
            "uncounted": self._uncounted,
            "rounds": self._rounds,
        }

    def _values_held(self) -> int:
        return self._told  # by cells, not by sites

    def _restore(self, saved: Saved) -> None:
        super()._restore(saved)
        nodes = len(self._tree)
        saved.generator("random", self._random)
        self._count, self._pending_count = array("q"), array("q")
        self._total, self._reach, self._bound = array("d"), array("d"), array("d")
        self._room()
        self._count = array("q", saved.wholes("count", (nodes,), 0, self._told).tobytes())
        saved.require(self._count[0] == self._told, "all values in the whole domain")
        self._total = array("d", saved.floats("total", (nodes,)).tobytes())
        self._bound = array("d", saved.floats("bound", (nodes,), high=math.inf).tobytes())
        sites = saved.numbers("asked", len(self._tree.sites))
        flat = saved.wholes("asked_nodes", (None,), 0, nodes - 1)
        asked = [part.tolist() for part in saved.cut("asked_lengths", flat, len(sites))]
        self._asked = dict(zip(sites, asked, strict=True))
        plays = {site: len(part) for site, part in self._asked.items()}
        saved.require(plays == self._pending_plays(), "the pending evaluations")
        self._uncounted = saved.integer("uncounted", -1, nodes - 1)
        waiting = flat.tolist()
        if self._uncounted >= 0:
            saved.require(self._uncounted in waiting, "a pending evaluation")
            waiting.remove(self._uncounted)
        for node in waiting:
            self._shift_pending(node, 1)
        least = 2 if self.horizon is None else self.horizon
        self._rounds = saved.integer("rounds", least, 2**60 if self.horizon is None else least)
        self._scale = self._width_scale()

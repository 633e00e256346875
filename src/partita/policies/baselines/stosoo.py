"""StoSOO: SOO for values with noise. Valko, Carpentier & Munos, ICML 2013."""

from __future__ import annotations

import math

import numpy as np

from partita._checks import check_delta, check_horizon, check_seed
from partita._state import Saved, State, wholes
from partita._types import FloatArray, IntArray, Recommendation
from partita.model.assumptions import Assumptions
from partita.model.domains import Arms, Box, Grid
from partita.model.noise import Noise

from .tree_policy import Leaf, LeafHeaps, Sweep, TreePolicy, check_whole


class StoSOO(TreePolicy):
    """SOO with k evaluations of a leaf before it is divided, and upper bounds instead of values.

    A leaf whose representative has T evaluations of average μ has the index
    μ + 2L √(log(nk/δ) / (2T)), infinite for T = 0. A sweep goes down the tree once: at each depth
    it takes the leaf of highest index, if no shallower one that it divided was higher, evaluates it
    if T < k, and divides it otherwise. Valko et al. 2013, Algorithm 1. They have values in [0, 1],
    whose L is 1/2; for other noise the width is scaled by 2L. Cells are divided into thirds along
    their longest side, the middle one of which keeps the representative and its evaluations.

    It looks for one good point and spends most evaluations elsewhere: judge it by `recommend`. The
    smoothness that its bound rests on need not be known, nor is it checked.

    Parameters
    ----------
    domain
    horizon
        n, the planned number of evaluations.
    noise
        Noise model.
    delta
        Probability that an index may fail to bound f; 1/√n by default, as in the paper.
    seed
        Nothing here is random; taken so that all policies are made alike. Ties go to the older
        cell.
    k
        Evaluations of a leaf; ⌈n/log³ n⌉ by default, as in the paper, but no more than n.
    h_max
        Leaves of this depth are not divided; ⌈√(n/k)⌉ by default, as in the paper.

    Notes
    -----
    A sweep chooses among the leaves that were there when it began, as in the authors' own program.
    A leaf with a pending evaluation is passed over, so several asks give several leaves; if there
    is no other, the one with the fewest evaluations is asked for again. Once no leaf is left to
    evaluate or divide (all arms of a small domain, say), the leaf of highest index is replayed.

    Values at points that were not asked for count if they are exactly at the representative of a
    cell, present or later; others are not used.
    """

    guarantee = "none"
    state_version = 1
    horizon: int

    def __init__(
        self,
        domain: Grid | Arms | Box,
        *,
        horizon: int,
        noise: Noise,
        delta: float | None = None,
        seed: int = 0,
        k: int | None = None,
        h_max: int | None = None,
    ) -> None:
        super().__init__(domain, 3)
        self.horizon = n = check_horizon(horizon)
        self.noise = noise
        self.sub_gaussian = Assumptions(noise=noise).sub_gaussian
        self.delta = 1 / math.sqrt(n) if delta is None else check_delta(delta)
        self.seed = check_seed(seed)
        self.k = default_evaluations(n) if k is None else check_whole("k", k, 1)
        default_depth = max(1, math.ceil(math.sqrt(n / self.k)))
        self.h_max = default_depth if h_max is None else check_whole("h_max", h_max, 1)
        #: Half-width of the bounds for one evaluation.
        self._scale = 2 * self.sub_gaussian * math.sqrt(math.log(n * self.k / self.delta) / 2)
        self._sweep = Sweep()
        #: Leaves that have their evaluations and are not divided.
        self._done: set[int] = set()
        self._done_leaves = LeafHeaps()
        #: Pending evaluations of leaves.
        self._busy: dict[int, int] = {}
        #: Leaves that take part from the next sweep on.
        self._fresh = [0]
        #: The deepest cells that were divided, or would have been.
        self._deepest: list[int] = []

    def recommend(self) -> Recommendation:
        """The best average among the deepest cells that were divided. Valko et al. 2013.

        All of them have k evaluations. Deviates: cells of one arm compete whatever their depth,
        since they end where the arms are sparse, not where f is high; and before the first division
        it is the whole domain's representative.
        """
        single = [node for node in self._done if not self._tree.divisible(node)]
        candidates = [*self._deepest, *single] or [0]
        means = [self._mean(node) for node in candidates]
        best = int(np.argmax(means))
        node, mean = candidates[best], means[best]
        plays = self._plays(node)
        if not plays:
            return self._unknown()
        width = self._scale / math.sqrt(plays)
        return Recommendation(self._tree.x(node), mean, mean - width, mean + width)

    # -- the method -------------------------------------------------------------------------------

    def _propose(self) -> tuple[int, FloatArray]:
        self._watch_horizon()
        node = self._next()
        if node is None:
            node = self._spare()
        self._busy[node] = self._busy.get(node, 0) + 1
        site = self._tree.representative(node)
        return site, self._tree.sites.x(site)

    def _next(self) -> int | None:
        """Go on with the sweep, and with others, to the next leaf to evaluate."""
        idle = False
        while True:
            while (leaf := self._sweep.next(self._current)) is not None:
                if self._plays(leaf.node) < self.k:
                    return leaf.node
                idle = False
                self._sweep.highest = leaf.value
                self._close(leaf.node)
            if idle and not self._fresh:
                return None
            idle = True
            self._begin_sweep()

    def _begin_sweep(self) -> None:
        for node in self._fresh:
            self._push(node)
        self._fresh.clear()
        self._sweep.begin()

    def _close(self, node: int) -> None:
        """A leaf has its evaluations: divide it, or set it apart if it cannot be."""
        depth = self._tree.depth[node]
        if self._deepest and depth > self._tree.depth[self._deepest[0]]:
            self._deepest.clear()
        if not self._deepest or depth == self._tree.depth[self._deepest[0]]:
            self._deepest.append(node)
        children = self._tree.split(node) if depth < self.h_max else range(0)
        self._fresh.extend(children)
        if not children:
            self._done.add(node)
            self._push(node)

    def _spare(self) -> int:
        """A leaf to replay when there is nothing else to do."""
        spent = {node: self._plays(node) + plays for node, plays in self._busy.items()}
        node = min(spent, key=lambda node: (spent[node], node), default=None)
        done = self._done_leaves.top(0, self._current_done)
        if done is not None and (node is None or spent[node] >= self.k):
            self._done_leaves.pop(0)
            return done.node
        assert node is not None
        return node

    # -- leaves -----------------------------------------------------------------------------------

    def _plays(self, node: int) -> int:
        site = self._tree.representative(node)  # may make room for it, so comes first
        return int(self._tree.sites.count[site])

    def _mean(self, node: int) -> float:
        site = self._tree.representative(node)
        return float(self._tree.sites.total[site]) / max(1, int(self._tree.sites.count[site]))

    def _index(self, node: int) -> float:
        plays = self._plays(node)
        return self._mean(node) + self._scale / math.sqrt(plays) if plays else math.inf

    def _push(self, node: int) -> None:
        """Let a leaf take part with its present index."""
        if node in self._done:
            self._done_leaves.push(0, self._index(node), node)
        else:
            self._sweep.push(self._tree.depth[node], self._index(node), node)

    def _current(self, leaf: Leaf) -> bool:
        """Whether a leaf of a sweep is still one, free, with the same index."""
        return leaf.node not in self._done and self._unchanged(leaf)

    def _current_done(self, leaf: Leaf) -> bool:
        return leaf.node in self._done and self._unchanged(leaf)

    def _unchanged(self, leaf: Leaf) -> bool:
        if leaf.node in self._busy or self._tree.first[leaf.node] >= 0:
            return False
        return leaf.value == self._index(leaf.node)

    # -- bookkeeping ------------------------------------------------------------------------------

    def _record(self, site: int, value: float, asked: bool, std: float | None = None) -> None:
        self._tree.sites.add(site, value)
        if asked:
            self._released(site)
        else:
            self._changed(site)

    def _record_many(
        self, sites: IntArray, values: FloatArray, stds: FloatArray | None = None
    ) -> None:
        self._tree.sites.add_many(sites, values)
        pending = self._pending_plays()
        for site in dict.fromkeys(sites.tolist()):
            leaf = self._tree.leaf(site)
            if leaf in self._busy and self._tree.representative(leaf) == site:
                self._busy[leaf] = pending.get(site, 0)
                if not self._busy[leaf]:
                    del self._busy[leaf]
            self._changed(site)

    def _released(self, site: int) -> None:
        leaf = self._tree.leaf(site)
        self._busy[leaf] -= 1
        if not self._busy[leaf]:
            del self._busy[leaf]
        self._changed(site)

    def _changed(self, site: int) -> None:
        """The index of the leaf that a site represents may have changed, or it is free again."""
        leaf = self._tree.leaf(site)
        if self._tree.representative(leaf) == site and leaf not in self._busy:
            self._push(leaf)

    # -- saved state ------------------------------------------------------------------------------

    def _state(self) -> State:
        return {
            **super()._state(),
            "sweep": self._sweep.state(),
            "done": wholes(sorted(self._done)),
            "done_leaves": self._done_leaves.state(),
            "fresh": wholes(self._fresh),
            "deepest": wholes(self._deepest),
        }

    def _restore(self, saved: Saved) -> None:
        super()._restore(saved)
        tree = self._tree
        self._sweep.restore(saved.part("sweep"), tree)
        self._done = set(saved.numbers("done", len(tree)))
        self._done_leaves.restore(saved.part("done_leaves"), tree, by_depth=False)
        self._fresh = saved.numbers("fresh", len(tree))
        self._deepest = saved.numbers("deepest", len(tree))
        for site, plays in self._pending_plays().items():  # each is for the leaf that it stands for
            leaf = tree.leaf(site)
            self._busy[leaf] = self._busy.get(leaf, 0) + plays
        entered = {(node, value) for _, value, node in self._sweep.entries}
        ended = {(node, value) for _, value, node in self._done_leaves.entries()}
        for node in {n for n in range(len(tree)) if tree.first[n] < 0} - {*self._fresh}:
            saved.require(tree.site[node] >= 0, "a representative of each leaf")
            among = ended if node in self._done else entered
            here = node in self._busy or (node, self._index(node)) in among
            saved.require(here, "a place for each leaf")


def default_evaluations(horizon: int) -> int:
    """⌈n/log³ n⌉, from 1 to n. Valko et al. 2013."""
    return min(horizon, math.ceil(horizon / max(math.log(horizon), 1e-9) ** 3))

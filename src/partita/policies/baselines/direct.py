"""DIRECT: dividing rectangles. Jones, Perttunen & Stuckman, JOTA 1993."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

from partita._checks import as_number, check_seed
from partita._state import Saved, State, wholes
from partita.errors import InvalidInput
from partita.model.domains import Arms, Box, Grid

from .tree_policy import ExactTreePolicy, LeafHeaps

#: Values of rectangles of one size that differ by no more than this, or this part of the largest
#: value if that is below 1, are equal: symmetric points differ by rounding.
TIE = 1e-13


class _Division(NamedTuple):
    """A rectangle of a box whose division waits for values."""

    #: For each longest side its axis, and the sites of the outer thirds' centres.
    sides: list[tuple[int, int, int]]
    #: Sites without a value.
    missing: set[int]


class _Corner(NamedTuple):
    """The best rectangle of a size."""

    size: float
    loss: float
    depth: int


class DIRECT(ExactTreePolicy):
    """Divides the rectangles that could hold the maximum under some rate of change.

    For values without noise. A rectangle is *potentially optimal* if, for some K > 0, its value
    plus K times half its diagonal is the largest of all, and exceeds the best value so far by a
    part ε of it. All such rectangles are divided at once: each is evaluated a third of its side to
    both sides of its centre along every longest side, and cut into thirds along the side with the
    best of those values first. Jones et al. 1993, "The DIRECT algorithm". It is the original, not
    the locally biased variant.

    Parameters
    ----------
    domain
    seed
        Nothing here is random; taken so that all policies are made alike.
    epsilon
        ε: how much better than the best value, as a part of it, a rectangle must promise to be.

    Notes
    -----
    All points of an iteration can be pending at once. An ask beyond those begins the next iteration
    among the rectangles that are not being divided. See `ExactTreePolicy` for points reported
    without being asked.

    The points are those that SciPy's code for ``direct(…, locally_biased=False)`` chooses while it
    writes a log. Without a log, which is how SciPy 1.17 calls it, a slip skips the rejection of
    rectangles off the convex hull, so it also divides any rectangle that is better than all larger
    ones.

    Deviates: on a finite domain, which arm stands for a part depends on the other cuts, so a
    rectangle is cut along one longest side at a time. Rectangles of one arm, and on a box those too
    small for floats, are not divided.
    """

    guarantee = "none"
    state_version = 1

    def __init__(self, domain: Grid | Arms | Box, *, seed: int = 0, epsilon: float = 1e-4) -> None:
        super().__init__(domain)
        self.seed = check_seed(seed)
        self.epsilon = as_number(epsilon)
        if not 0 <= self.epsilon < math.inf:
            raise InvalidInput(f"epsilon={epsilon!r}: give a finite number of at least 0.")
        #: Rectangles by depth, which gives the size.
        self._leaves = LeafHeaps()
        self._open: dict[int, _Division] = {}
        #: The rectangle that waits for the value of a site.
        self._waiting: dict[int, int] = {}
        #: The best value of a rectangle, or of a part of one to be, and its site.
        self._best, self._best_at = -math.inf, -1
        #: The largest such value in size.
        self._largest = 0.0

    # -- what is known ----------------------------------------------------------------------------

    def _valued(self, site: int) -> None:
        rectangle = self._waiting.pop(site, None)
        if rectangle is None:
            super()._valued(site)
            return
        self._note(site)
        self._open[rectangle].missing.discard(site)
        self._close(rectangle)

    def _enter(self, node: int) -> None:
        self._note(self._tree.site[node])
        if node not in self._open and self._tree.divisible(node):
            value = self._value(self._tree.site[node])
            self._leaves.push(self._tree.depth[node], value, node)

    def _note(self, site: int) -> None:
        """Keep the best value up to date with one that is new or changed."""
        value = self._value(site)
        self._largest = max(self._largest, abs(value))
        if value > self._best:
            self._best, self._best_at = value, site
        elif site == self._best_at and value < self._best:  # told again, lower
            told = [s for s in {*self._tree.site} if s >= 0 and self._tree.sites.count[s]]
            self._best, self._best_at = max((self._value(s), -s) for s in told)
            self._best_at = -self._best_at

    # -- choosing ---------------------------------------------------------------------------------

    def _advance(self) -> bool:
        chosen = [node for depth in self._potentially_optimal() for node in self._take(depth)]
        for node in chosen:
            if isinstance(self.domain, Box):
                self._begin(node)
            else:
                self._divide(node)
        return bool(chosen)

    def _potentially_optimal(self) -> list[int]:
        """Depths whose best rectangles are potentially optimal: the lower right convex hull."""
        hull: list[_Corner] = []
        for corner in self._corners():
            while hull and corner.loss <= hull[-1].loss:
                hull.pop()
            while len(hull) > 1 and _slope(hull[-2], hull[-1]) > _slope(hull[-1], corner):
                hull.pop()
            hull.append(corner)
        if not hull:
            return []
        least = -self._best
        goal = least - self.epsilon * abs(least)
        kept = [
            corner.depth
            for corner, larger in pairwise(hull)
            if corner.loss - _slope(corner, larger) * corner.size <= goal
        ]
        return [*kept, hull[-1].depth]

    def _corners(self) -> list[_Corner]:
        """The best rectangle of every size, the smallest size first."""
        corners = []
        for depth in self._leaves.depths:
            leaf = self._leaves.top(depth, self._current)
            if leaf is not None:
                corners.append(_Corner(self._tree.size(depth), -leaf.value, depth))
        return corners

    def _take(self, depth: int) -> list[int]:
        """Take the best rectangle of a depth, and all that equal it."""
        best = leaf = self._leaves.top(depth, self._current)
        taken: dict[int, None] = {}
        while best is not None and leaf is not None:
            if leaf.value < best.value - TIE * min(1.0, self._largest):
                break
            self._leaves.pop(depth)
            taken[leaf.node] = None
            leaf = self._leaves.top(depth, self._current)
        return list(taken)

    # -- dividing ---------------------------------------------------------------------------------

    def _begin(self, node: int) -> None:
        """Ask for what the division of a rectangle of a box needs."""
        self._queue.extend(self._open_up(node))
        self._close(node)

    def _open_up(self, node: int) -> list[int]:
        """Note what the division of a rectangle of a box waits for: sites without a value."""
        tree = self._tree
        sides, missing = [], []
        for axis in tree.longest(node):
            low, high = (tree.register(x) for x in tree.beside(node, axis))
            sides.append((axis, low, high))
            missing += [site for site in (high, low) if not tree.sites.count[site]]
        self._waiting.update(dict.fromkeys(missing, node))
        self._open[node] = _Division(sides, set(missing))
        return missing

    def _close(self, node: int) -> None:
        """Divide a rectangle of a box, if it waits for nothing more."""
        if self._open[node].missing:
            return
        sides = self._open.pop(node).sides
        promise = {axis: max(self._value(low), self._value(high)) for axis, low, high in sides}
        for axis in sorted(promise, key=lambda axis: -promise[axis]):
            low, middle, high = self._tree.split(node, axis)
            for child in (low, high):
                self._tree.representative(child)
                self._enter(child)
            node = middle
        self._enter(node)

    # -- saved state ------------------------------------------------------------------------------

    def _state(self) -> State:
        return {
            **super()._state(),
            "leaves": self._leaves.state(),
            "open": wholes(sorted(self._open)),
            "best": float(self._best),
            "best_at": self._best_at,
            "largest": float(self._largest),
        }

    def _restore(self, saved: Saved) -> None:
        super()._restore(saved)
        tree = self._tree
        self._leaves.restore(saved.part("leaves"), tree)
        opened = saved.numbers("open", len(tree))
        saved.require(not opened or isinstance(self.domain, Box), "divisions of a box")
        self._best, self._largest = saved.real("best", -math.inf), saved.real("largest", 0.0)
        self._best_at = saved.integer("best_at", -1, len(tree.sites) - 1)
        nodes = [*opened, *(node for _, _, node in self._leaves.entries())]
        self._check_valued(saved, nodes if self._best_at < 0 else [*nodes, 0])
        fit = all(tree.first[node] < 0 and tree.divisible(node) for node in opened)
        saved.require(fit, "rectangles that can be divided")
        known = len(tree.sites)
        waits = [bool(self._open_up(node)) for node in opened]
        saved.require(all(waits) and len(tree.sites) == known, "divisions that wait for values")


def _slope(smaller: _Corner, larger: _Corner) -> float:
    return (larger.loss - smaller.loss) / (larger.size - smaller.size)

"""What the hierarchical policies share: leaves by value, sweeps, and values without noise."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from partita._checks import as_number
from partita._state import Saved, State, wholes
from partita._types import FloatArray, IntArray, Recommendation
from partita.errors import InvalidInput
from partita.model.domains import Arms, Box, Grid
from partita.policies.base import Policy

from .tree import Tree


class Leaf(NamedTuple):
    """A leaf of the tree, and the value that it was entered with."""

    value: float
    node: int


#: Whether what a leaf was entered with still holds.
Current = Callable[[Leaf], bool]


class LeafHeaps:
    """Leaves by depth: the highest value first, ties to the older cell.

    A leaf may be entered again with another value; entries out of date are passed over.
    """

    def __init__(self) -> None:
        self._heaps: dict[int, list[tuple[float, int]]] = {}

    @property
    def depths(self) -> list[int]:
        """Depths that may have leaves, the deepest first."""
        return sorted(self._heaps, reverse=True)

    def push(self, depth: int, value: float, node: int) -> None:
        """Enter a leaf."""
        heappush(self._heaps.setdefault(depth, []), (-value, node))

    def top(self, depth: int, current: Current) -> Leaf | None:
        """The best leaf of a depth, or None."""
        heap = self._heaps.get(depth, [])
        while heap:
            leaf = Leaf(-heap[0][0], heap[0][1])
            if current(leaf):
                return leaf
            heappop(heap)
        self._heaps.pop(depth, None)
        return None

    def pop(self, depth: int) -> None:
        """Remove the leaf that `top` gave."""
        heappop(self._heaps[depth])

    def entries(self) -> list[tuple[int, float, int]]:
        """All that were entered, out of date or not: depth, value and node."""
        return sorted((d, -value, node) for d, heap in self._heaps.items() for value, node in heap)

    def state(self) -> State:
        """The entries as plain data."""
        entries = self.entries()
        return {
            "depths": wholes(depth for depth, _, _ in entries),
            "values": np.array([value for _, value, _ in entries], dtype=float),
            "nodes": wholes(node for _, _, node in entries),
        }

    def restore(self, saved: Saved, tree: Tree, by_depth: bool = True) -> None:
        """Restore saved entries of the nodes of a tree, by their depth or all as one."""
        nodes = saved.numbers("nodes", len(tree), distinct=False)
        depths = saved.wholes("depths", (len(nodes),)).tolist()
        values = saved.floats("values", (len(nodes),), high=math.inf).tolist()
        right = [tree.depth[node] if by_depth else 0 for node in nodes]
        saved.require(depths == right, "leaves at their depth")
        self._heaps = {}
        for entry in zip(depths, values, nodes, strict=True):
            self.push(*entry)


class Sweep:
    """Passes down the tree, as in SOO: at each depth the best leaf, if none above was better.

    Those above are the leaves that the pass divided; `highest` is the value of the last of them.
    """

    def __init__(self) -> None:
        self.highest = -math.inf
        self._heaps = LeafHeaps()
        self._depth = 0
        self._deepest = -1

    def push(self, depth: int, value: float, node: int) -> None:
        """Enter a leaf."""
        self._heaps.push(depth, value, node)
        self._deepest = max(self._deepest, depth)

    def state(self) -> State:
        """The leaves, and how far this pass is, as plain data."""
        return {
            "heaps": self._heaps.state(),
            "highest": float(self.highest),
            "depth": self._depth,
            "deepest": self._deepest,
        }

    def restore(self, saved: Saved, tree: Tree) -> None:
        """Restore a saved pass."""
        self._heaps.restore(saved.part("heaps"), tree)
        self.highest = saved.real("highest", -math.inf, math.inf)
        self._deepest = saved.integer("deepest", -1, max(tree.depth))
        deep = all(depth <= self._deepest for depth in self._heaps.depths)
        saved.require(deep, "leaves that a pass comes to")
        self._depth = saved.integer("depth", 0, self._deepest + 1)

    @property
    def entries(self) -> list[tuple[int, float, int]]:
        """All that were entered: see `LeafHeaps`."""
        return self._heaps.entries()

    def begin(self) -> None:
        """Begin at the top again."""
        self._depth, self.highest = 0, -math.inf

    def next(self, current: Current) -> Leaf | None:
        """Take out the next leaf of this pass; None at its end."""
        while self._depth <= self._deepest:
            depth = self._depth
            self._depth += 1
            leaf = self._heaps.top(depth, current)
            if leaf is not None and leaf.value >= self.highest:
                self._heaps.pop(depth)
                return leaf
        return None


class TreePolicy(Policy):
    """A policy that divides the domain into ever smaller cells."""

    def __init__(self, domain: Grid | Arms | Box, parts: int) -> None:
        super().__init__(domain)
        self._tree = Tree(self.domain, parts)

    def _locate(self, points: FloatArray) -> IntArray:
        return self._tree.locate(points)

    def _state(self) -> State:
        return {**super()._state(), "tree": self._tree.state()}

    def _restore(self, saved: Saved) -> None:
        self._tree.restore(saved.part("tree"))
        self._restore_plays(saved, self._tree.sites.points)
        saved.require(self._values_held() == self._told, "all values")

    def _values_held(self) -> int:
        """The number of values the sites have."""
        return int(self._tree.sites.count.sum())

    def _unknown(self) -> Recommendation:
        """The recommendation while nothing was told."""
        return Recommendation(self._tree.x(0), 0.0, -math.inf, math.inf)


class ExactTreePolicy(TreePolicy):
    """A policy for values without noise: one evaluation of a representative settles its cell.

    Repeated values at the same point are averaged. A point reported without being asked for
    counts as the evaluation of a cell if it is exactly that cell's representative; elsewhere it is
    known to `recommend` alone. An ask while points are pending uses what is known; if there is
    nothing else to do, it evaluates the best point so far again.
    """

    def __init__(self, domain: Grid | Arms | Box) -> None:
        super().__init__(domain, 3)
        self._queue = deque([self._tree.representative(0)])

    def recommend(self) -> Recommendation:
        """The point with the highest value told, or average of values."""
        site = self._best_site()
        if site is None:
            return self._unknown()
        return Recommendation(self._tree.sites.x(site), self._value(site), -math.inf, math.inf)

    def _state(self) -> State:
        return {**super()._state(), "queue": wholes(self._queue)}

    def _restore(self, saved: Saved) -> None:
        super()._restore(saved)
        queue = saved.numbers("queue", len(self._tree.sites), distinct=False)
        self._queue = deque(queue)

    def _check_valued(self, saved: Saved, nodes: Iterable[int]) -> None:
        """Refuse nodes without a value."""
        sites = [self._tree.site[node] for node in nodes]
        saved.require(min(sites, default=0) >= 0, "representatives")
        saved.require(self._tree.sites.count[sites].all() if sites else True, "values of leaves")

    # -- what a concrete rule fills in ------------------------------------------------------------

    @abstractmethod
    def _advance(self) -> bool:
        """Divide what is next by what is known; False if nothing can be divided now."""

    @abstractmethod
    def _enter(self, node: int) -> None:
        """Note that the value of a leaf became known, or changed."""

    # -- the rest ---------------------------------------------------------------------------------

    def _value(self, site: int) -> float:
        """Average of the observed values at a site."""
        return float(self._tree.sites.total[site]) / int(self._tree.sites.count[site])

    def _current(self, leaf: Leaf) -> bool:
        """Whether a cell is still a leaf of this value."""
        node = leaf.node
        return self._tree.first[node] < 0 and leaf.value == self._value(self._tree.site[node])

    def _best_site(self) -> int | None:
        sites = self._tree.sites
        played = np.flatnonzero(sites.count)
        if not len(played):
            return None
        return int(played[np.argmax(sites.total[played] / sites.count[played])])

    def _divide(self, node: int) -> None:
        """Divide a cell, and see to the values of its children."""
        for child in self._tree.split(node):
            site = self._tree.representative(child)
            if self._tree.sites.count[site]:
                self._enter(child)
            else:
                self._queue.append(site)

    def _propose(self) -> tuple[int, FloatArray]:
        self._watch_horizon()
        while True:
            while self._queue:
                site = self._queue.popleft()
                if not self._tree.sites.count[site]:  # no value was reported meanwhile
                    return site, self._tree.sites.x(site)
            if not self._advance():
                break
        best = self._best_site()
        site = self._tree.representative(0) if best is None else best
        return site, self._tree.sites.x(site)

    def _record(self, site: int, value: float, asked: bool, std: float | None = None) -> None:
        self._tree.sites.add(site, value)
        self._valued(site)

    def _record_many(
        self, sites: IntArray, values: FloatArray, stds: FloatArray | None = None
    ) -> None:
        self._tree.sites.add_many(sites, values)
        for site in dict.fromkeys(sites.tolist()):
            self._valued(site)

    def _valued(self, site: int) -> None:
        """Take notice that a site's value became known, or changed."""
        leaf = self._tree.leaf(site)
        if self._tree.representative(leaf) == site:
            self._enter(leaf)

    def _released(self, site: int) -> None:
        if not self._tree.sites.count[site]:
            self._queue.appendleft(site)


def check_whole(name: str, value: object, least: int) -> int:
    """A whole number of at least `least`."""
    number = as_number(value)
    if not least <= number < math.inf or number != int(number):
        raise InvalidInput(f"{name}={value!r}: give a whole number of at least {least}.")
    return int(number)

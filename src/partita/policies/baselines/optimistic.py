"""DOO and SOO: optimistic optimisation of functions without noise. Munos, NIPS 2011."""

from __future__ import annotations

import math

from partita._checks import as_positive, check_horizon, check_scale, check_seed
from partita._state import Saved, State, wholes
from partita.model.domains import Arms, Box, Grid

from .tree_policy import ExactTreePolicy, Leaf, LeafHeaps, Sweep, check_whole


class DOO(ExactTreePolicy):
    """Deterministic optimistic optimisation: divides the cell with the highest upper bound.

    For values without noise. The bound of a cell is the value at its representative plus
    δ = constant · r^exponent, where r is how far the cell reaches from there: it holds if
    f(x*) − f(x) ≤ constant · ‖x* − x‖^exponent around the maximum x*, in the Euclidean norm of the
    unit cube. Munos 2011, "DOO". Cells are divided into thirds along their longest side, the middle
    one of which keeps the representative and its value.

    Parameters
    ----------
    domain
    seed
        Nothing here is random; taken so that all policies are made alike. Ties go to the older
        cell.
    constant
        How fast f may fall from its maximum, in its own units.
    exponent
        1 where f is Lipschitz, 2 where it is smooth around its maximum.

    Notes
    -----
    See `ExactTreePolicy` for points reported without being asked, and for pending ones. A cell of
    one arm, or too small to divide, is left alone once it is evaluated.
    """

    guarantee = "none"
    state_version = 1

    def __init__(
        self,
        domain: Grid | Arms | Box,
        *,
        seed: int = 0,
        constant: float = 1.0,
        exponent: float = 1.0,
    ) -> None:
        super().__init__(domain)
        self.seed = check_seed(seed)
        self.constant = check_scale("constant", constant)
        self.exponent = as_positive("exponent", exponent)
        self._leaves = LeafHeaps()

    def _enter(self, node: int) -> None:
        self._leaves.push(0, self._upper(node), node)

    def _upper(self, node: int) -> float:
        """The bound of a leaf."""
        slack = self.constant * math.pow(self._tree.radius(node), self.exponent)
        return self._value(self._tree.site[node]) + slack

    def _current(self, leaf: Leaf) -> bool:
        return self._tree.first[leaf.node] < 0 and leaf.value == self._upper(leaf.node)

    def _advance(self) -> bool:
        leaf = self._leaves.top(0, self._current)
        if leaf is None:
            return False
        self._leaves.pop(0)
        self._divide(leaf.node)
        return True

    def _state(self) -> State:
        return {**super()._state(), "leaves": self._leaves.state()}

    def _restore(self, saved: Saved) -> None:
        super()._restore(saved)
        self._leaves.restore(saved.part("leaves"), self._tree, by_depth=False)
        self._check_valued(saved, [node for _, _, node in self._leaves.entries()])


class SOO(ExactTreePolicy):
    """Simultaneous optimistic optimisation: DOO for every smoothness at once.

    For values without noise. A sweep goes down the tree once: at each depth it divides the leaf of
    highest value, if no shallower one that it divided was better. Munos 2011, "SOO". Cells are
    divided as in `DOO`.

    Parameters
    ----------
    domain
    horizon
        The planned number of evaluations.
    seed
        Nothing here is random; taken so that all policies are made alike. Ties go to the older
        cell.
    h_max
        Cells deeper than this are not divided; ⌈√horizon⌉ by default, as in the paper.

    Notes
    -----
    A sweep chooses among the leaves whose values were known when it began. The paper's pseudo-code
    leaves open whether those it makes on its way take part; in the authors' own program they do
    not, and this way all its points can be evaluated at once. See `ExactTreePolicy` for points
    reported without being asked, and for pending ones.
    """

    guarantee = "none"
    state_version = 1
    horizon: int

    def __init__(
        self,
        domain: Grid | Arms | Box,
        *,
        horizon: int,
        seed: int = 0,
        h_max: int | None = None,
    ) -> None:
        super().__init__(domain)
        self.horizon = check_horizon(horizon)
        self.seed = check_seed(seed)
        self.h_max = (
            math.ceil(math.sqrt(self.horizon)) if h_max is None else check_whole("h_max", h_max, 1)
        )
        self._sweep = Sweep()
        #: Leaves that take part from the next sweep on.
        self._fresh: list[int] = []

    def _enter(self, node: int) -> None:
        self._fresh.append(node)

    def _advance(self) -> bool:
        """Go on with the sweep, and with another if this one ends, up to the next division."""
        leaf = self._sweep.next(self._current)
        if leaf is None:
            self._begin_sweep()
            leaf = self._sweep.next(self._current)
        if leaf is None:
            return False
        self._sweep.highest = leaf.value
        self._divide(leaf.node)
        return True

    def _begin_sweep(self) -> None:
        for node in self._fresh:
            depth = self._tree.depth[node]
            if depth <= self.h_max and self._tree.first[node] < 0:
                self._sweep.push(depth, self._value(self._tree.site[node]), node)
        self._fresh.clear()
        self._sweep.begin()

    def _state(self) -> State:
        return {**super()._state(), "sweep": self._sweep.state(), "fresh": wholes(self._fresh)}

    def _restore(self, saved: Saved) -> None:
        super()._restore(saved)
        self._sweep.restore(saved.part("sweep"), self._tree)
        self._fresh = saved.numbers("fresh", len(self._tree), distinct=False)
        self._check_valued(saved, [*self._fresh, *(node for _, _, node in self._sweep.entries)])

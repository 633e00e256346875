"""DOO and SOO: optimistic optimisation of functions without noise. Munos, NIPS 2011."""

from __future__ import annotations

import math
from heapq import heappop, heappush

from partita._checks import as_positive, check_horizon, check_scale, check_seed
from partita.model.domains import Arms, Box, Grid

from .tree import ExactTreePolicy, check_whole


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
    See `ExactTreePolicy` for points told without being asked, and for pending ones. A cell of one
    arm, or too small to divide, is left alone once it is evaluated.
    """

    guarantee = "none"

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
        #: (−bound, leaf, value) of leaves; an entry whose value is out of date is passed over.
        self._heap: list[tuple[float, int, float]] = []

    def _enter(self, node: int) -> None:
        value = self._value(self._tree.site[node])
        slack = self.constant * self._tree.radius(node) ** self.exponent
        heappush(self._heap, (-(value + slack), node, value))

    def _advance(self) -> bool:
        while self._heap:
            _, node, value = heappop(self._heap)
            if self._tree.first[node] < 0 and value == self._value(self._tree.site[node]):
                self._divide(node)
                return True
        return False


class SOO(ExactTreePolicy):
    """Simultaneous optimistic optimisation: DOO for every smoothness at once.

    For values without noise. A sweep goes down the tree once: at each depth it divides the leaf of
    highest value, if no shallower one that it divided was better. Munos 2011, "SOO". Cells are
    divided as in `DOO`.

    Parameters
    ----------
    domain
    horizon
        Evaluations planned.
    seed
        Nothing here is random; taken so that all policies are made alike. Ties go to the older
        cell.
    h_max
        Cells deeper than this are not divided; ⌈√horizon⌉ by default, as in the paper.

    Notes
    -----
    A sweep chooses among the leaves whose values were known when it began. The paper's pseudo-code
    leaves open whether those it makes on its way take part; in the authors' own program they do
    not, and this way all its points can be evaluated at once. See `ExactTreePolicy` for points told
    without being asked, and for pending ones.
    """

    guarantee = "none"
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
        #: By depth, (−value, leaf); an entry whose value is out of date is passed over.
        self._heaps: list[list[tuple[float, int]]] = []
        #: Leaves that take part from the next sweep on.
        self._fresh: list[int] = []
        self._depth = 0
        self._best = -math.inf

    def _enter(self, node: int) -> None:
        self._fresh.append(node)

    def _advance(self) -> bool:
        """Go on with the sweep, and with another if this one ends, up to the next division."""
        if self._sweep():
            return True
        self._begin_sweep()
        return self._sweep()

    def _begin_sweep(self) -> None:
        for node in self._fresh:
            depth = self._tree.depth[node]
            if depth <= self.h_max and self._tree.first[node] < 0:
                while len(self._heaps) <= depth:
                    self._heaps.append([])
                heappush(self._heaps[depth], (-self._value(self._tree.site[node]), node))
        self._fresh.clear()
        self._depth, self._best = 0, -math.inf

    def _sweep(self) -> bool:
        """Divide the next leaf of this sweep; False at its end."""
        while self._depth < len(self._heaps):
            heap = self._heaps[self._depth]
            self._depth += 1
            while heap and not self._current(*heap[0]):
                heappop(heap)
            if heap and -heap[0][0] >= self._best:
                value, node = heappop(heap)
                self._best = -value
                self._divide(node)
                return True
        return False

    def _current(self, entry: float, node: int) -> bool:
        return self._tree.first[node] < 0 and -entry == self._value(self._tree.site[node])

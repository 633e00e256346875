"""CMA-ES that begins anew with twice the population whenever it stops: pycma's and cmaes'.

The first start is at the centre, later ones anywhere. The answer is the mean of the distribution of
the best start, judged by what the player saw: by the median of a start's last generation, which
single lucky values do not move.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, ClassVar

import numpy as np

from .players import Player, Setting

#: The first deviation, a fifth of the side.
SIGMA = 0.2
#: Yields points, and is sent the value of each.
Points = Generator[np.ndarray, float, None]


class _Restarted(Player):
    """A search after the other, written as a generator of points that is sent their values."""

    settings: ClassVar[str] = (
        "deviation 0.2 of the side, first from the centre, then from anywhere with twice the "
        "population; answers with the mean of the start whose last generation has the best median"
    )

    def __init__(self, setting: Setting) -> None:
        self._dim, self._seed = setting.dim, setting.seed
        self._least, self._answer = np.inf, np.full(setting.dim, 0.5)
        self._now: tuple[float, np.ndarray] | None = None
        self._points = self._all_starts()
        self._next = next(self._points)

    def ask(self) -> np.ndarray:
        return self._next

    def tell(self, x: np.ndarray, y: float) -> None:
        self._next = self._points.send(-y)

    def recommend(self) -> np.ndarray:
        if self._now is not None and self._now[0] < self._least:
            return self._now[1]
        return self._answer

    def _all_starts(self) -> Points:
        random, factor = np.random.default_rng([self._seed, 31]), 1
        mean = np.full(self._dim, 0.5)
        while True:
            # A seed of its own for each start; pycma takes 0 for none.
            yield from self._start(mean, factor, int(random.integers(1, 2**31)))
            if self._now is not None and self._now[0] < self._least:
                self._least, self._answer = self._now
            self._now = None
            mean, factor = random.random(self._dim), 2 * factor

    def _start(self, mean: np.ndarray, factor: int, seed: int) -> Points:
        """One search to its end, with `factor` times the usual population."""
        raise NotImplementedError

    def _seen(self, values: list[float], mean: np.ndarray) -> None:
        """A generation is complete."""
        self._now = float(np.median(values)), np.clip(mean, 0.0, 1.0)


class CMAESRestarts(_Restarted):
    name = "cmaes-restarts"
    title = "cmaes, restarts"
    packages = ("cmaes",)
    module = "cmaes"
    settings = "lr_adapt for the noise; " + _Restarted.settings

    def _start(self, mean: np.ndarray, factor: int, seed: int) -> Points:
        from cmaes import CMA

        bounds = np.tile([0.0, 1.0], (self._dim, 1))
        make = {"mean": mean, "sigma": SIGMA, "bounds": bounds, "seed": seed, "lr_adapt": True}
        usual = CMA(**make).population_size
        search = CMA(**make, population_size=factor * usual)
        while not search.should_stop():
            points = [search.ask() for _ in range(search.population_size)]
            values = yield from _told(points)
            search.tell(list(zip(points, values, strict=True)))
            self._seen(values, search.mean)


class PyCMA(_Restarted):
    name = "pycma"
    title = "pycma, restarts"
    packages = ("cma",)
    module = "cma"
    settings = "defaults; " + _Restarted.settings

    def _start(self, mean: np.ndarray, factor: int, seed: int) -> Points:
        import cma

        options = {"bounds": [0, 1], "seed": seed, "popsize_factor": factor, "verbose": -9}
        search = cma.CMAEvolutionStrategy(mean, SIGMA, options)
        while not search.stop():
            yield from self._generation(search)

    def _generation(self, search: Any) -> Points:
        points = search.ask()
        values = yield from _told(points)
        search.tell(points, values)
        self._seen(values, search.result.xfavorite)


class PyCMAOnce(PyCMA):
    """Without restarts: once it stops, it goes on drawing from the same distribution."""

    name = "pycma-once"
    title = "pycma, no restarts"
    settings = "defaults; deviation 0.2 of the side, from the centre; its stops are ignored"

    def _start(self, mean: np.ndarray, factor: int, seed: int) -> Points:
        import cma

        options = {"bounds": [0, 1], "seed": seed, "verbose": -9}
        search = cma.CMAEvolutionStrategy(mean, SIGMA, options)
        while True:
            yield from self._generation(search)


class PyCMANoise(PyCMA):
    """With pycma's measure of the noise: some points of a generation are evaluated again."""

    name = "pycma-noise"
    title = "pycma, NoiseHandler"
    settings = (
        "cma.NoiseHandler, which may evaluate a point up to 30 times and widens the distribution; "
        + _Restarted.settings
    )
    _EVALUATIONS = (1, 1, 30)

    def _start(self, mean: np.ndarray, factor: int, seed: int) -> Points:
        import cma

        self._handler = cma.NoiseHandler(self._dim, maxevals=list(self._EVALUATIONS))
        yield from super()._start(mean, factor, seed)

    def _generation(self, search: Any) -> Points:
        handler, points = self._handler, search.ask()
        times = int(handler.evaluations)
        values = yield from _medians([x for x in points for _ in range(times)], times)
        search.tell(points, values)
        self._seen(values, search.result.xfavorite)
        # The handler calls a function, but a player is told its values: so the handler first says
        # which points it wants, and is given their values afterwards.
        again: list[np.ndarray] = []
        handler.reeval(points, values, lambda x: again.append(x) or 0.0, search.ask)
        seen = yield from _medians(again, times)
        for place, value in zip(handler.idx, seen, strict=True):
            handler.fitre[place] = value
        handler.update_measure()
        search.sigma *= handler.treat()
        search.countevals += len(again)


def _told(points: Sequence[np.ndarray]) -> Generator[np.ndarray, float, list[float]]:
    """The values of points."""
    values = []
    for x in points:
        values.append((yield x))  # noqa: PERF401  a comprehension cannot yield
    return values


def _medians(points: Sequence[np.ndarray], times: int) -> Generator[np.ndarray, float, list[float]]:
    """The median of every `times` values in turn."""
    values = yield from _told(points)
    return np.median(np.reshape(values, (-1, times)), axis=1).tolist()

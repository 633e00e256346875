"""Players for problems with a context: ours, and what a user would take or write instead.

Each has `choose(context)`, which returns an action in [0, 1]^a, and `learn(reward)`. `context` is a
dict of numbers and words.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

import partita as pt

#: Parts of a range for an optimizer each, and values that the process in ten lines looks at.
BINS, WINDOW = 8, 300


class Player(Protocol):
    """Chooses an action for a context, and learns its reward."""

    def choose(self, context: dict[str, Any]) -> np.ndarray:
        """An action (a,) of the unit cube."""

    def learn(self, reward: float) -> None:
        """Take in the reward of the last action."""


def features(context: dict[str, Any], ranges: dict[str, Any]) -> np.ndarray:
    """A context as numbers from 0 to 1: words as one number for each."""
    out: list[float] = []
    for name, spec in ranges.items():
        if isinstance(spec, list):
            out += [float(context[name] == word) for word in spec]
        else:
            out.append((context[name] - spec[0]) / (spec[1] - spec[0]))
    return np.array(out)


class Ours:
    """Our optimizer: with the context, without it, or one for each part of the context."""

    def __init__(self, way: str, dim: int, ranges: dict[str, Any], seed: int) -> None:
        self._way, self._ranges, self._seed = way, ranges, seed
        self._space = {f"x{i}": (0.0, 1.0) for i in range(dim)}
        self._made: dict[Any, pt.Optimizer] = {}
        self._last: Any = None

    def choose(self, context: dict[str, Any]) -> np.ndarray:
        """The parameters that the optimizer of this context asks for."""
        key = None
        if self._way == "bins":
            at = features(context, self._ranges)
            key = tuple(np.minimum((BINS * at).astype(int), BINS - 1).tolist())
        known = self._ranges if self._way == "context" else None
        if key not in self._made:
            self._made[key] = pt.Optimizer(
                self._space, direction="maximize", seed=self._seed, context=known
            )
        optimizer = self._made[key]
        self._last = optimizer, optimizer.ask(context=context if known else None)
        return np.array(list(self._last[1].params.values()))

    def learn(self, reward: float) -> None:
        """Tell the optimizer."""
        optimizer, trial = self._last
        optimizer.tell(trial, reward)


class Uniform:
    """Actions at random."""

    def __init__(self, dim: int, seed: int) -> None:
        self._dim, self._random = dim, np.random.default_rng(seed)

    def choose(self, context: dict[str, Any]) -> np.ndarray:
        """Any action."""
        return self._random.random(self._dim)

    def learn(self, reward: float) -> None:
        """Nothing is learned."""


class LinUCB:
    """Li et al. 2010 with one linear model: a quadratic in action and context, 1 deviation up."""

    def __init__(self, dim: int, ranges: dict[str, Any], seed: int) -> None:
        self._dim, self._ranges, self._random = dim, ranges, np.random.default_rng(seed)
        self._inverse: Any = None

    def _rows(self, actions: np.ndarray, context: np.ndarray) -> np.ndarray:
        z = np.concatenate([actions, np.tile(context, (len(actions), 1))], axis=1)
        i, j = np.triu_indices(z.shape[1])
        return np.concatenate([np.ones((len(z), 1)), z, z[:, i] * z[:, j]], axis=1)

    def choose(self, context: dict[str, Any]) -> np.ndarray:
        """The best of 64 random actions."""
        actions = self._random.random((64, self._dim))
        rows = self._rows(actions, features(context, self._ranges))
        if self._inverse is None:
            self._inverse, self._sum = np.eye(rows.shape[1]), np.zeros(rows.shape[1])
        width = np.sqrt(np.einsum("ij,jk,ik->i", rows, self._inverse, rows))
        best = int(np.argmax(rows @ (self._inverse @ self._sum) + width))
        self._row = rows[best]
        return actions[best]

    def learn(self, reward: float) -> None:
        """One step of recursive least squares."""
        u = self._inverse @ self._row
        self._inverse -= np.outer(u, u) / (1.0 + u @ self._row)
        self._sum += reward * self._row


class Process:
    """The Gaussian process of ten lines: fixed lengthscales, the last values, 48 random actions.

    Lengthscale 0.3, noise and amplitude by the spread of the values; mean plus two deviations.
    """

    def __init__(self, dim: int, ranges: dict[str, Any], seed: int) -> None:
        self._dim, self._ranges, self._random = dim, ranges, np.random.default_rng(seed)
        self._points: list[np.ndarray] = []
        self._values: list[float] = []

    def choose(self, context: dict[str, Any]) -> np.ndarray:
        """The action with the highest bound."""
        actions = self._random.random((48, self._dim))
        at = features(context, self._ranges)
        rows = np.concatenate([actions, np.tile(at, (48, 1))], axis=1)
        best = 0
        if len(self._values) > 4:
            points, y = np.array(self._points[-WINDOW:]), np.array(self._values[-WINDOW:])
            z = (y - y.mean()) / (y.std() + 1e-9)
            kernel = _kernel(points, points) + 0.3 * np.eye(len(z))
            across = _kernel(points, rows)
            solved = np.linalg.solve(kernel, across)
            variance = np.maximum(1.0 - (solved * across).sum(axis=0), 0.0)
            best = int(np.argmax(solved.T @ z + 2.0 * np.sqrt(variance)))
        self._points.append(rows[best])
        return actions[best]

    def learn(self, reward: float) -> None:
        """Keep the value."""
        self._values.append(reward)


def _kernel(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    squared = ((left[:, None] - right[None]) ** 2).sum(axis=-1)
    return np.exp(-squared / (2 * 0.3**2))


class Cats:
    """Vowpal Wabbit's CATS (Majzoubi et al. 2020), a tree over one action.

    `setting` is the number of leaves, the bandwidth and the exploration. Costs must be from 0 to 1:
    rewards are turned round and cut to the range that the problem names.
    """

    def __init__(self, ranges: dict[str, Any], setting: tuple[int, float, float]) -> None:
        from vowpalwabbit import Workspace

        leaves, width, explore = setting
        self._ranges = ranges
        self._model = Workspace(
            f"--cats {leaves} --bandwidth {width} --min_value 0 --max_value 1 "
            f"--epsilon {explore} --coin --quiet"
        )

    def _words(self, context: dict[str, Any]) -> str:
        at = features(context, self._ranges)
        hot = [f"h{i}_{min(int(16 * v), 15)}:1" for i, v in enumerate(at)]  # bins of each number
        return " ".join([*(f"f{i}:{v:.5f}" for i, v in enumerate(at)), *hot])

    def choose(self, context: dict[str, Any]) -> np.ndarray:
        """An action drawn from the density that the model predicts."""
        self._text = self._words(context)
        self._action, self._density = self._model.predict(f"|s {self._text}")
        return np.array([self._action])

    def learn(self, reward: float) -> None:
        """One example with its cost and density."""
        cost = min(max(1.0 - reward, 0.0), 1.0)
        self._model.learn(f"ca {self._action}:{cost:.5f}:{self._density:.6f} |s {self._text}")


#: Settings of CATS, of which the best is reported: leaves, bandwidth, exploration.
CATS = {
    f"cats-{leaves}-{width}-{explore}": (leaves, width, explore)
    for leaves in (16, 32)
    for width in (1 / 16, 1 / 8)
    for explore in (0.02, 0.1)
}
OURS = ("context", "none", "bins")
WAYS = (*OURS, "uniform", "linucb", "process", *CATS)


def player_of(way: str, dim: int, ranges: dict[str, Any], seed: int) -> Player | None:
    """A new player; None where it cannot play, as CATS cannot with several actions."""
    if way in OURS:
        return Ours(way, dim, ranges, seed)
    if way == "uniform":
        return Uniform(dim, seed)
    if way == "linucb":
        return LinUCB(dim, ranges, seed)
    if way == "process":
        return Process(dim, ranges, seed)
    return Cats(ranges, CATS[way]) if dim == 1 else None


def sigmoid(x: float) -> float:
    """1/(1 + e⁻ˣ)."""
    return 1.0 / (1.0 + math.exp(-x))

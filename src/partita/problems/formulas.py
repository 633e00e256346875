"""Formulas of the global optimisation literature, (n, d) → (n,), to be minimised.

As Surjanovic & Bingham 2013, "Virtual Library of Simulation Experiments", have them.
Notation: X holds n points as rows; x and y are its columns where d = 2.
"""

from __future__ import annotations

import math

import numpy as np

from partita._types import FloatArray


def total(terms: FloatArray) -> FloatArray:
    """Sum over the coordinates, (n, d) → (n,)."""
    added: FloatArray = np.sum(terms, axis=1)
    return added


def ackley(X: FloatArray) -> FloatArray:
    """Ackley 1987."""
    # 20 + e − 20 exp(−0.2 radius) − exp(mean cos 2πx), written so that it is exactly 0 at 0.
    d = X.shape[1]
    radius: FloatArray = np.sqrt(total(X**2) / d)
    ripple: FloatArray = total(np.sin(np.pi * X) ** 2) / d
    return -20.0 * np.expm1(-0.2 * radius) - math.e * np.expm1(-2.0 * ripple)


def branin(X: FloatArray) -> FloatArray:
    """Branin 1972."""
    x, y = X[:, 0], X[:, 1]
    bend = y - 5.1 / (4.0 * math.pi**2) * x**2 + 5.0 / math.pi * x - 6.0
    return bend**2 + 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * np.cos(x) + 10.0


def bukin6(X: FloatArray) -> FloatArray:
    """Bukin's function N.6."""
    x, y = X[:, 0], X[:, 1]
    return 100.0 * np.sqrt(np.abs(y - 0.01 * x**2)) + 0.01 * np.abs(x + 10.0)


def camel(X: FloatArray) -> FloatArray:
    """The six-hump camel."""
    x, y = X[:, 0], X[:, 1]
    return (4.0 - 2.1 * x**2 + x**4 / 3.0) * x**2 + x * y + (4.0 * y**2 - 4.0) * y**2


def eggholder(X: FloatArray) -> FloatArray:
    """The eggholder."""
    x, y = X[:, 0], X[:, 1] + 47.0
    return -y * np.sin(np.sqrt(np.abs(y + 0.5 * x))) - x * np.sin(np.sqrt(np.abs(x - y)))


def goldstein(X: FloatArray) -> FloatArray:
    """Goldstein & Price 1971."""
    # The literature's two quadratics in x and y depend on x + y and 2x − 3y alone.
    s, t = X[:, 0] + X[:, 1], 2.0 * X[:, 0] - 3.0 * X[:, 1]
    first = 1.0 + (s + 1.0) ** 2 * (19.0 - 14.0 * s + 3.0 * s**2)
    second = 30.0 + t**2 * (18.0 - 16.0 * t + 3.0 * t**2)
    return first * second


def griewank(X: FloatArray) -> FloatArray:
    """Griewank 1981."""
    waves = np.cos(X / np.sqrt(np.arange(1, X.shape[1] + 1)))
    product: FloatArray = np.prod(waves, axis=1)
    return total(X**2) / 4000.0 + (1.0 - product)


def hartmann(X: FloatArray, steepness: FloatArray, centres: FloatArray) -> FloatArray:
    """Four wells, −Σ_i α_i exp(−Σ_j A_ij (x_j − P_ij)²)."""
    depths = np.array([1.0, 1.2, 3.0, 3.2])
    distance = np.sum(steepness * (X[:, np.newaxis, :] - centres) ** 2, axis=2)
    return -total(depths * np.exp(-distance))


def hartmann3(X: FloatArray) -> FloatArray:
    """Hartmann's function in three dimensions."""
    steepness = np.array([[3.0, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
    centres = [[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]
    return hartmann(X, steepness, np.array(centres) / 1e4)


def hartmann6(X: FloatArray) -> FloatArray:
    """Hartmann's function in six dimensions."""
    steepness = [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
    centres = [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
    return hartmann(X, np.array(steepness), np.array(centres) / 1e4)


def levy(X: FloatArray) -> FloatArray:
    """Levy's function."""
    # In z = w − 1 where the literature has w = 1 + (x − 1)/4: the same, and exactly 0 at 1.
    z = (X - 1.0) / 4.0
    body, last = z[:, :-1], z[:, -1]
    return (
        np.sin(np.pi * z[:, 0]) ** 2
        + total(body**2 * (1.0 + 10.0 * np.sin(np.pi * body + 1.0) ** 2))
        + last**2 * (1.0 + np.sin(2.0 * np.pi * last) ** 2)
    )


def michalewicz(X: FloatArray) -> FloatArray:
    """Michalewicz's function, steepness 10."""
    i = np.arange(1, X.shape[1] + 1)
    return -total(np.sin(X) * np.sin(i * X**2 / np.pi) ** 20)


def rastrigin(X: FloatArray) -> FloatArray:
    """Rastrigin 1974."""
    return total(X**2 + 20.0 * np.sin(np.pi * X) ** 2)  # 20 sin² πx = 10 − 10 cos 2πx


def rosenbrock(X: FloatArray) -> FloatArray:
    """Rosenbrock 1960."""
    here, there = X[:, :-1], X[:, 1:]
    return total(100.0 * (there - here**2) ** 2 + (here - 1.0) ** 2)


def schaffer2(X: FloatArray) -> FloatArray:
    """Schaffer's function N.2."""
    x, y = X[:, 0] ** 2, X[:, 1] ** 2
    return 0.5 + (np.sin(x - y) ** 2 - 0.5) / (1.0 + 0.001 * (x + y)) ** 2


#: Where x sin √x is largest on [0, 500], and its value there.
SCHWEFEL_X, SCHWEFEL_SHIFT = 420.96874635998203, 418.98288727243371


def schwefel(X: FloatArray) -> FloatArray:
    """Schwefel 1981."""
    # Deviates: the literature rounds the shift to 418.9829, which leaves a minimum of 1.3e−5 d.
    return total(SCHWEFEL_SHIFT - X * np.sin(np.sqrt(np.abs(X))))


def styblinski(X: FloatArray) -> FloatArray:
    """Styblinski & Tang 1990."""
    return 0.5 * total(X**4 - 16.0 * X**2 + 5.0 * X)

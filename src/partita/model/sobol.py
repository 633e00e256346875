"""Points of a Sobol' sequence, equal to those of SciPy to the last bit.

`scipy.stats` takes longer to import than all else that a short run imports together, and is needed
here only in more than `LISTED` dimensions.
"""

from __future__ import annotations

import numpy as np

from partita._types import FloatArray, WordArray

#: Primitive polynomials over GF(2), bits with the leading one, and first direction integers, from
#: the second dimension on: new-joe-kuo-6 of Joe & Kuo 2008, "Constructing Sobol sequences with
#: better two-dimensional projections".
_DIRECTIONS = (
    (3, (1,)),
    (7, (1, 3)),
    (11, (1, 3, 1)),
    (13, (1, 1, 1)),
    (19, (1, 1, 3, 3)),
    (25, (1, 3, 5, 13)),
    (37, (1, 1, 5, 5, 17)),
    (41, (1, 1, 5, 5, 5)),
    (47, (1, 1, 7, 11, 19)),
    (55, (1, 1, 5, 1, 1)),
    (59, (1, 1, 1, 3, 11)),
    (61, (1, 3, 5, 5, 31)),
    (67, (1, 3, 3, 9, 7, 49)),
    (91, (1, 1, 1, 15, 21, 21)),
    (97, (1, 3, 1, 13, 27, 49)),
    (103, (1, 1, 1, 15, 7, 5)),
    (109, (1, 3, 1, 15, 13, 25)),
    (115, (1, 1, 5, 5, 19, 61)),
    (131, (1, 3, 7, 11, 23, 15, 103)),
)
#: Dimensions for which the numbers are here.
LISTED = len(_DIRECTIONS) + 1
#: Dimensions for which SciPy has numbers.
MOST = 21_201
BITS = 30


def sobol(
    dim: int, count: int, *, bits: int = BITS, scramble: np.random.Generator | None = None
) -> FloatArray:
    """The first `count` points of the sequence in the unit cube, (count, dim).

    `bits` are the binary digits of a coordinate, 8 or more. With a generator the points are
    scrambled: a random linear map of the digits (Matoušek 1998), and a random shift.
    """
    if dim > LISTED:
        from scipy.stats import qmc

        engine = qmc.Sobol(dim, scramble=scramble is not None, bits=bits, rng=scramble)
        return np.asarray(engine.random(count))
    directions = np.array([_directions(c, bits) for c in range(dim)], dtype=np.uint64)
    state = np.zeros(dim, dtype=np.uint64)
    if scramble is not None:
        # As SciPy draws them: from a child of the generator, uint32, the shift first.
        child = scramble.spawn(1)[0]
        digits = child.integers(2, size=(dim, bits), dtype=np.uint32)
        state = digits.astype(np.uint64) @ _powers(bits)
        maps = np.tril(child.integers(2, size=(dim, bits, bits), dtype=np.uint32))
        directions = _scrambled(directions, maps.astype(np.uint64), bits)
    numbers = np.empty((count, dim), dtype=np.uint64)
    for i in range(count):
        numbers[i] = state
        state = state ^ directions[:, _lowest_zero(i)]
    return np.asarray(numbers * (1.0 / 2**bits))


def _directions(c: int, bits: int) -> list[int]:
    """Direction numbers of dimension c, one for each bit of a point's number, as fractions."""
    whole = [1] * bits
    if c > 0:
        polynomial, first = _DIRECTIONS[c - 1]
        degree = len(first)
        whole = list(first)
        for j in range(degree, bits):  # Bratley & Fox 1988, equation 2
            number = whole[j - degree]
            for k in range(1, degree + 1):
                if polynomial >> (degree - k) & 1:
                    number ^= whole[j - k] << k
            whole.append(number)
    return [number << (bits - 1 - j) for j, number in enumerate(whole)]


def _scrambled(directions: WordArray, maps: WordArray, bits: int) -> WordArray:
    """Direction numbers (d, bits) whose digits went through lower triangular maps (d, bits, bits).

    Row p of a map makes digit p, the highest first, out of those above it and itself.
    """
    maps[:, np.arange(bits), np.arange(bits)] = 1
    places = np.arange(bits - 1, -1, -1, dtype=np.uint64)  # the highest digit first
    digits = directions[:, None, :] >> places[:, None] & np.uint64(1)
    changed = np.matmul(maps, digits) & np.uint64(1)
    return np.asarray((changed << places[:, None]).sum(axis=1, dtype=np.uint64))


def _powers(bits: int) -> WordArray:
    return np.uint64(1) << np.arange(bits, dtype=np.uint64)


def _lowest_zero(i: int) -> int:
    """The place of the lowest bit of i that is 0."""
    return (~i & (i + 1)).bit_length() - 1

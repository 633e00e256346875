"""Compiled loops of choices with coordinates fixed, as in `partita.gp._loops`.

An ask looks at some fifty points once, by some hundred data. NumPy and LAPACK spend more time on
their calls than on that.

Shapes: n points with f coordinates that are not fixed, p data. A factor L is (P, P), P ≥ p, of
which the lower triangle of the first p rows is read.
"""

from __future__ import annotations

import math

import numpy as np

from partita._compiled import compiled

#: Points whose variances are computed together.
TOGETHER = 12


@compiled
def _matern_of(squared, form):
    """Matérn kernel at a squared distance over lengthscales; `form` 1, 2: ν = 3/2, 5/2."""
    if squared > 1e12:
        return 0.0
    if form == 1:
        z = math.sqrt(3.0 * squared)
        return (1.0 + z) * math.exp(-z)
    z = math.sqrt(5.0 * squared)
    return (1.0 + z * (1.0 + z / 3.0)) * math.exp(-z)


@compiled
def solve(factor, rows):
    """Overwrite `rows` (p, n) by L⁻¹ of them."""
    p, n = rows.shape
    for i in range(p):
        row = rows[i]
        whole = i - i % 4
        for j in range(0, whole, 4):
            a, b, c, d = factor[i, j], factor[i, j + 1], factor[i, j + 2], factor[i, j + 3]
            first, second, third, fourth = rows[j], rows[j + 1], rows[j + 2], rows[j + 3]
            for e in range(n):
                row[e] -= (a * first[e] + b * second[e]) + (c * third[e] + d * fourth[e])
        for j in range(whole, i):
            a = factor[i, j]
            for e in range(n):
                row[e] -= a * rows[j, e]
        inverse = 1.0 / factor[i, i]
        for e in range(n):
            row[e] *= inverse


@compiled
def solve_transposed(factor, values):
    """Overwrite `values` (p,) by L⁻ᵀ of them."""
    for i in range(values.shape[0] - 1, -1, -1):
        values[i] /= factor[i, i]
        a = values[i]
        row = factor[i]
        for j in range(i):
            values[j] -= a * row[j]


@compiled
def append(factor, scaled, row, noise, target, values, form, least):
    """Make row `row` of a factor, and of `values` (P,) = L⁻¹ of the targets.

    With k the kernel to the data before, ℓ = L⁻¹k, and √(1 + noise − ℓ·ℓ) is on the diagonal, whose
    square is `least` at least. `scaled` (P, d) are the points of the data over the lengthscales.
    """
    d = scaled.shape[1]
    column = np.empty(row)
    for i in range(row):
        squared = 0.0
        for c in range(d):
            difference = scaled[i, c] - scaled[row, c]
            squared += difference * difference
        column[i] = _matern_of(squared, form)
    told = foretold = 0.0
    for i in range(row):
        one = two = three = four = 0.0
        whole = i - i % 4
        for j in range(0, whole, 4):
            one += factor[i, j] * column[j]
            two += factor[i, j + 1] * column[j + 1]
            three += factor[i, j + 2] * column[j + 2]
            four += factor[i, j + 3] * column[j + 3]
        for j in range(whole, i):
            one += factor[i, j] * column[j]
        entry = (column[i] - ((one + two) + (three + four))) / factor[i, i]
        column[i] = factor[row, i] = entry
        told += entry * entry
        foretold += entry * values[i]
    factor[row, row] = math.sqrt(max(1.0 + noise - told, least))
    values[row] = (target - foretold) / factor[row, row]


@compiled
def hopeful(scaled, numbers, row, form, targets, noise, weights, rows, count):
    """Squared distances (p,) of data from a slice, and the sites that are best near it.

    `scaled` (p, d) are the data over the lengthscales, and `row` (k,) the values of the coordinates
    `numbers` (k,) that are fixed, over theirs. Site i is row `rows[i]` of the data. Its mean there
    is the target less noise times weight; f at the same point moved into the slice differs from f
    there by a standard deviation of √(2 − 2k), k the kernel between the two. Returns the numbers of
    the `count` sites where the mean less that is highest, best first, and what it is.
    """
    p, k = scaled.shape[0], numbers.shape[0]
    toward = np.zeros(p)
    for j in range(p):
        for c in range(k):
            difference = scaled[j, numbers[c]] - row[c]
            toward[j] += difference * difference
    hopes = np.empty(rows.shape[0])
    for i in range(rows.shape[0]):
        j = rows[i]
        away = math.sqrt(max(2.0 - 2.0 * _matern_of(toward[j], form), 0.0))
        hopes[i] = targets[j] - noise[j] * weights[j] - away
    count = min(count, rows.shape[0])
    best = np.empty(count, dtype=np.int64)
    value = np.empty(count)
    for place in range(count):
        first = 0
        for i in range(1, rows.shape[0]):
            if hopes[i] > hopes[first]:
                first = i
        best[place], value[place] = first, hopes[first]
        hopes[first] = -np.inf
    return toward, best, value


@compiled
def draw(centres, numbers, values, side, uniform, normal, anywhere, finest, coarsest, steps):
    """Points (m, d) of a slice of the unit cube: centres (b, d) moved into it, and others.

    First come the centres, each once. Then `anywhere` points by numbers from 0 to 1, (anywhere, d).
    Then points around centres, as many as `normal` (n, d) and the rest of `uniform` (anywhere + n,
    d + 4) have rows: a centre by chance, steps of a size between `finest` and `coarsest` of `side`
    (d,), of some coordinates, of at least one. Coordinates `numbers` (k,) have `values` (k,), and
    others are multiples of 1/steps.
    """
    d, n = centres.shape[1], normal.shape[0]
    free = np.ones(d, dtype=np.bool_)
    for number in numbers:
        free[number] = False
    count = d - numbers.shape[0]
    out = np.empty((centres.shape[0] + anywhere + n, d))
    m = 0
    for b in range(centres.shape[0]):
        _place(out[m], centres[b], free, numbers, values, steps)
        again = False
        for other in range(m):
            again = again or (out[other] == out[m]).all()
        if not again:
            m += 1
    centred = m
    for i in range(anywhere):
        _place(out[m], uniform[i], free, numbers, values, steps)
        m += 1
    if count == 0:
        return out[:1]
    for i in range(n):
        chance = uniform[anywhere + i]
        centre = out[min(int(chance[d] * centred), centred - 1)]
        size = math.exp(math.log(finest) + chance[d + 1] * math.log(coarsest / finest))
        often = max(1.0 / count, chance[d + 2])
        one = min(int(chance[d + 3] * count), count - 1)  # moves if no other does
        for c in range(d):
            if free[c] and chance[c] < often:
                one = -1
        for c in range(d):
            out[m, c] = centre[c]
            if free[c]:
                if chance[c] < often or one == 0:
                    moved = min(max(centre[c] + size * side[c] * normal[i, c], 0.0), 1.0)
                    out[m, c] = np.rint(moved * steps) / steps
                one -= 1
        m += 1
    return out[:m]


@compiled
def _place(out, point, free, numbers, values, steps):
    """Put a point into `out`, rounded and moved into the slice."""
    for c in range(out.shape[0]):
        out[c] = np.rint(point[c] * steps) / steps
    for c in range(numbers.shape[0]):
        out[numbers[c]] = values[c]


@compiled
def inside(points, numbers, values, lower, upper):
    """The numbers of points (n, d) in a box that have `values` (k,) as coordinates `numbers` (k,).

    A face belongs to the box above it.
    """
    n, d = points.shape
    out = np.empty(n, dtype=np.int64)
    m = 0
    for i in range(n):
        good = True
        for c in range(numbers.shape[0]):
            good = good and points[i, numbers[c]] == values[c]
        for c in range(d):
            x = points[i, c]
            good = good and x >= lower[c] and (x < upper[c] or (upper[c] >= 1.0 and x <= upper[c]))
        if good:
            out[m] = i
            m += 1
    return out[:m]


@compiled
def screen(points, scaled, free, toward, weights, noise, factor, form, width, least, informing):
    """Means (n,) at points, and the variances (n,) of those that may have the highest index.

    The index is the mean plus `width` standard deviations. A variance by all data is at most that
    by some of them, so a point whose index is too low with that variance cannot be the best; nor
    can one whose index is below `least`. Variances that are not needed are NaN.

    `points` (n, f) and `scaled` (p, d) are over the lengthscales, `free` (f,) are the coordinates
    that are not fixed, and `toward` (p,) the squared distances of the data from the slice. Returns
    also the kernel between data and points, (p, n).
    """
    n, f = points.shape
    p = toward.shape[0]
    across = np.empty((p, n))
    mean = np.zeros(n)
    variance = np.full(n, np.nan)
    column = np.empty(f)
    for j in range(p):
        for c in range(f):
            column[c] = scaled[j, free[c]]
        weight = weights[j]
        for i in range(n):
            squared = toward[j]
            for c in range(f):
                difference = points[i, c] - column[c]
                squared += difference * difference
            value = _matern_of(squared, form)
            across[j, i] = value
            mean[i] += weight * value
    most = np.ones(n)
    if n > TOGETHER or least > -np.inf:  # else all variances are computed at once
        most = _left_by(_informing(toward, noise, form, informing), scaled, noise, across, form)
    for i in range(n):
        most[i] = mean[i] + width * math.sqrt(max(most[i], 0.0))
    order = np.argsort(-most, kind="mergesort")
    first = np.argmax(mean)  # the best one known is looked at first, whatever its index
    for place in range(n):
        if order[place] == first:
            order[1 : place + 1] = order[:place].copy()
            order[0] = first
            break
    best = least
    for start in range(0, n, TOGETHER):
        looked = order[start : start + TOGETHER]
        looked = looked[most[looked] > best]
        if len(looked) == 0:
            if start:
                break
            continue
        _variances(across, looked, factor, variance)
        for i in looked:
            best = max(best, mean[i] + width * math.sqrt(variance[i]))
    return mean, variance, across


@compiled
def _informing(toward, noise, form, most):
    """The numbers of the data that say most of f in the slice, `most` of them at most."""
    p = toward.shape[0]
    if p <= most:
        return np.arange(p)
    told = np.empty(p)
    for j in range(p):
        likeness = _matern_of(toward[j], form)
        told[j] = -likeness * likeness / (1.0 + noise[j])
    return np.argsort(told, kind="mergesort")[:most]


@compiled
def _left_by(some, scaled, noise, across, form):
    """Variances (n,) at points by `some` data (m,) only, where the kernel to all is `across`."""
    m, n = some.shape[0], across.shape[1]
    work = np.empty((m, m + n))  # the kernel among them at the left becomes Lᵀ, that to points V
    for a in range(m):
        for i in range(n):
            work[a, m + i] = across[some[a], i]
        work[a, a] = 1.0 + noise[some[a]]
        for b in range(a + 1, m):
            squared = 0.0
            for c in range(scaled.shape[1]):
                difference = scaled[some[a], c] - scaled[some[b], c]
                squared += difference * difference
            work[a, b] = _matern_of(squared, form)
    left = np.ones(n)
    for a in range(m):
        row = work[a]
        whole = a - a % 4
        for b in range(0, whole, 4):
            first, second, third, fourth = work[b], work[b + 1], work[b + 2], work[b + 3]
            w, x, y, z = first[a], second[a], third[a], fourth[a]
            for e in range(a, m + n):
                row[e] -= (w * first[e] + x * second[e]) + (y * third[e] + z * fourth[e])
        for b in range(whole, a):
            w = work[b, a]
            for e in range(a, m + n):
                row[e] -= w * work[b, e]
        if not row[a] > 0.0:  # by rounding: this one says nothing new
            row[a:] = 0.0
            continue
        inverse = 1.0 / math.sqrt(row[a])
        for e in range(a, m + n):
            row[e] *= inverse
        for i in range(n):
            left[i] -= row[m + i] * row[m + i]
    return left


@compiled
def _variances(across, some, factor, variance):
    """Set the variances of `some` points (m,), where the kernel to the data is `across` (p, n)."""
    p, m = across.shape[0], some.shape[0]
    rows = np.empty((p, m))
    for j in range(p):
        for e in range(m):
            rows[j, e] = across[j, some[e]]
    solve(factor, rows)
    for e in range(m):
        left = 1.0
        for j in range(p):
            left -= rows[j, e] * rows[j, e]
        variance[some[e]] = max(left, 0.0)

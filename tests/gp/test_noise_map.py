"""Where the noise is loud: against a naive twin, and on noise that is even, or loud in one half."""

import math

import numpy as np
import pytest
from support.draws import replicates, sample, start

from partita.gp.data import Data
from partita.gp.fitting import fit
from partita.gp.likelihood import JITTER, loss_of
from partita.gp.noise_map import LEAST, MOST, PRIOR, WIDTHS, NoiseMap, _map_of, learn_map
from partita.gp.settings import Fixed, Settings
from partita.model.kernels import Matern

SCALES = np.array([0.5, 0.7])
#: Noise of the two halves, along the first side: their variances differ by a factor of 25.
QUIET, LOUD = 0.1, 0.5


def ratio_at(x, points, observed, expected, width):
    """The ratio at one point, term by term."""
    above, below = PRIOR, PRIOR
    for point, seen, likely in zip(points, observed, expected, strict=True):
        away = sum((a - b) ** 2 for a, b in zip(x, point, strict=True))
        weight = math.exp(-away / (2 * width**2))
        above, below = above + weight * seen, below + weight * likely
    return min(max(above / below, LEAST), MOST)


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("size", [1.0, 1e9])
def test_ratios_are_weighted_sums(dim, size):
    rng = np.random.default_rng(dim)
    points, queries = rng.random((12, dim)), rng.random((7, dim))
    observed, expected = size * rng.exponential(size=12), rng.integers(0, 9, 12).astype(float)
    got = NoiseMap(points, observed, expected, 0.2).at(queries)
    want = [ratio_at(x, points, observed, expected, 0.2) for x in queries]
    np.testing.assert_allclose(got, want, rtol=1e-12)
    assert ((got == MOST).any()) == (size > 1)
    loud_far_away = NoiseMap(points + 50.0, observed, expected, 0.2)
    np.testing.assert_array_equal(loud_far_away.at(queries), 1.0)


def test_what_is_observed_and_expected_of_each_point():
    """Textbook: residuals by the full inverse, in units of the noise; told noise says nothing."""
    rng = np.random.default_rng(0)
    points, counts = rng.random((8, 2)), rng.integers(1, 5, 8).astype(float)
    within = np.where(counts > 1, rng.exponential(size=8), 0.0)
    ratios, known = rng.uniform(0.2, 4.0, 8), np.full(8, np.nan)
    known[2], counts[2], within[2] = 0.3, 1.0, 0.0
    data = Data(points, counts, rng.normal(size=8), within, ratios, known)
    settings = Settings(SCALES, 0.2, 2, 0.4, 1.7)
    noise = 0.2 * ratios / counts
    noise[2] = 0.3 / 1.7**2
    inverse = np.linalg.inv(Matern(2.5, SCALES)(points) + np.diag(noise + JITTER))
    weights = inverse @ (data.means - 0.4) / 1.7
    observed = ratios * weights**2 * noise + within / (1.7**2 * 0.2)
    expected = np.diag(inverse) * noise + counts - 1
    observed[2] = expected[2] = 0.0
    got = _map_of(data, settings, 0.1)
    np.testing.assert_allclose(got.observed, observed, rtol=1e-9)
    np.testing.assert_allclose(got.expected, expected, rtol=1e-9)
    assert got.width == pytest.approx(0.1 * math.sqrt(2))


def halves(seed, quiet, loud, number, count, dim=2):
    """Data of a process whose noise differs between halves, and what was fitted to them."""
    rng = np.random.default_rng(seed)
    points = rng.random((number, dim))
    where, f = sample(points, SCALES[:dim], 0.0, 2, rng, np.full(number, count))
    std = np.where(points[where, 0] < 0.5, quiet, loud)
    data = replicates(points, where, f + std * rng.standard_normal(len(where)))
    return data, fit(data, start(dim), Fixed(), restart=True).best


@pytest.mark.parametrize(("number", "count"), [(40, 5), (150, 1)])
def test_even_noise_has_no_map(number, count):
    maps = [learn_map(*halves(seed, 0.3, 0.3, number, count), Fixed()) for seed in range(6)]
    assert sum(one is None for one in maps) >= 5


@pytest.mark.parametrize(("number", "count"), [(60, 4), (200, 1)])
@pytest.mark.parametrize(("dim", "least"), [(1, 5.0), (2, 2.5)])
def test_a_loud_half_is_found(number, count, dim, least):
    """From replicates, and from single values; less of it where points have fewer neighbours."""
    factors = []
    for seed in range(4):
        data, settings = halves(seed, QUIET, LOUD, number, count, dim)
        found = learn_map(data, settings, Fixed())
        assert any(found.width == pytest.approx(width * math.sqrt(dim)) for width in WIDTHS)
        mapped = data._replace(ratios=found.at(data.points))
        assert loss_of(mapped, settings, Fixed()) < loss_of(data, settings, Fixed()) - 10.0
        queries = np.random.default_rng(9).random((200, dim))
        ratios, x = found.at(queries), queries[:, 0]
        factors.append(np.median(ratios[x > 0.65]) / np.median(ratios[x < 0.35]))
    assert min(factors) > 1.3
    assert np.median(factors) >= least


def test_ratios_that_data_have_already_do_not_count():
    data, settings = halves(0, QUIET, LOUD, 40, 5)
    other = data._replace(ratios=np.geomspace(0.01, 100.0, 40))
    one, two = (learn_map(given, settings, Fixed()) for given in (data, other))
    np.testing.assert_array_equal(one.at(data.points), two.at(data.points))


def test_noise_that_was_told_is_not_learned():
    """Loud noise, told: nothing is left to find out."""
    data, settings = halves(0, QUIET, LOUD, 150, 1)
    assert learn_map(data, settings, Fixed()) is not None
    std = np.where(data.points[:, 0] < 0.5, QUIET, LOUD)
    assert learn_map(data._replace(known=std**2), settings, Fixed()) is None

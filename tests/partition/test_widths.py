"""Widths: the formulas as the paper and the design page print them."""

import math

import pytest

from partita.partition.widths import MixtureWidth, PaperWidth, SingleCellWidth, width_of


@pytest.mark.parametrize("t", [1, 17, 10_000])
@pytest.mark.parametrize("gain", [0.0, 3.7])
def test_papers_width(t, gain):
    b = 4 / 6
    n_tilde = 4 * (t + 1) ** (b * 3)
    expected = 2.0 + 0.5 * math.sqrt(2 * (gain + 1 + math.log(n_tilde / 0.1)))
    width = PaperWidth(2.0, 0.5, 0.1, 3, 1.5)
    assert width_of(width, gain, 4, t) == pytest.approx(expected, rel=1e-14)
    assert width.drifts


def test_the_papers_width_grows_no_faster_with_data_than_without():
    width = PaperWidth(1.0, 1.0, 0.1, 2, 1.5)
    for t in range(1, 200, 7):
        grown = [width_of(width, g, 0, t + 7) - width_of(width, g, 0, t) for g in (0.0, 1.0, 9.0)]
        assert grown[0] >= grown[1] >= grown[2] > 0


def test_single_cell_width():
    expected = 2.0 + 0.5 * math.sqrt(2 * (3.0 + 1 + math.log(10)))
    assert width_of(SingleCellWidth(2.0, 0.5, 0.1), 3.0, 0, 99) == pytest.approx(expected)


@pytest.mark.parametrize("level", [0, 1, 5])
@pytest.mark.parametrize("alpha", [0.1, 1.0, 3.0])
def test_mixture_width(level, alpha):
    delta = 0.1 * 6 / math.pi**2 / ((level + 1) ** 2 * 9 * 2 ** (2 * level))
    expected = math.sqrt(4.0 + 2 * 0.25 / alpha * (3.0 + math.log(1 / delta)))
    width = MixtureWidth(2.0, 0.5, 0.1, alpha, 2, 9)
    assert width_of(width, 3.0, level, 1) == pytest.approx(expected, rel=1e-13)
    assert width_of(width, 3.0, level, 1) == width_of(width, 3.0, level, 10**9)
    looser = 2.0 + 0.5 / math.sqrt(alpha) * math.sqrt(2 * 3.0 + 2 * math.log(1 / delta))
    assert width_of(width, 3.0, level, 1) <= looser

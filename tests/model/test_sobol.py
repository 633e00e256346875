"""Our Sobol' points are SciPy's to the last bit, and `scipy.stats` is not imported for them."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import qmc

from partita.model.sobol import BITS, LISTED, MOST, sobol

pytestmark = pytest.mark.filterwarnings("ignore:The balance properties")


@pytest.mark.parametrize("dim", range(1, LISTED + 2))  # the last is SciPy's own
def test_points_are_scipys(dim):
    for count in (1, 2, 7, 128):
        for bits in (8, 16, BITS, 40):
            want = qmc.Sobol(dim, scramble=False, bits=bits).random(count)
            np.testing.assert_array_equal(sobol(dim, count, bits=bits), want)
        for seed in range(3):
            want = qmc.Sobol(dim, rng=np.random.default_rng([seed, 1])).random(count)
            got = sobol(dim, count, scramble=np.random.default_rng([seed, 1]))
            np.testing.assert_array_equal(got, want)


def test_scipy_has_as_many_dimensions_as_we_say():
    assert qmc.Sobol.MAXDIM == MOST


def test_few_dimensions_do_not_import_scipy_stats():
    code = "import sys; from partita.model.sobol import sobol; sobol({}, 4)"
    code += "; print('scipy.stats' in sys.modules)"

    def imported(dim):
        command = [sys.executable, "-c", code.format(dim)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    assert imported(LISTED) == "False"
    assert imported(LISTED + 1) == "True"

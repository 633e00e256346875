"""Load the compiled loops of the usual policy before the first request that needs them.

Numba takes some tenths of a second to import, and as long again for the first call of its loops,
which an ask would wait for.
"""

from __future__ import annotations

import functools

from partita._compiled import awake
from partita.gp import _loops
from partita.optimize.optimizer import Optimizer

#: The loops of the calibrated policy, and the evaluations after which all have been called.
LOOPS = (
    *("matern", "matern_among", "matern_slopes"),
    *("likelihood_slopes", "gaussian_sums", "observe_rows"),
)
EVALUATIONS = 12


@functools.cache
def load_loops() -> None:
    """Call each loop once, by a short run on a function in memory."""
    for name in LOOPS:
        awake(getattr(_loops, name))
    optimizer = Optimizer([(0.0, 1.0), (0.0, 1.0)], seed=0)
    for _ in range(EVALUATIONS):
        trial = optimizer.ask()
        optimizer.tell(trial, float(sum(trial.params)))

"""What peers.py and bbob_noisy.py are made of: problems, players, runs and their reports."""

import os

# One core a run, whatever library does the linear algebra: said here, before any of them loads.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

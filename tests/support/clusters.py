"""Local clusters of real worker processes."""

from __future__ import annotations

import logging
from contextlib import contextmanager

import pytest


@contextmanager
def dask_client(workers):
    """A client of as many worker processes; Dask's own complaints about deaths are not ours."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client

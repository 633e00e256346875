"""Ctrl-C at random moments of calls of studies and optimizers, by functions of their tests."""

import math
import tempfile
from pathlib import Path
from unittest import mock

import partita as pt
from partita.study import replica, store

from .elsewhere import function_of

#: Calls in a case, each of which is interrupted or ends before.
CALLS = 200
#: The calibrated policy, None, takes its time.
POLICIES = ("uniform", "uniform", "soo", None)


def interrupt_many(seed, calls=CALLS):
    """How many interrupts came; of a study and of an optimizer in turn."""
    policy = POLICIES[seed // 2 % len(POLICIES)]
    calls = calls // 8 if policy is None else calls
    came = (_of_study if seed % 2 else _of_optimizer)(policy, calls, seed)
    return {} if came is None else {"calls": calls, "interrupts": came}


def _of_study(policy, calls, seed):
    interrupt_often = function_of("study/test_interrupts.py", "interrupt_often")
    if interrupt_often is None:
        return None
    often = mock.patch.multiple(
        replica, SNAPSHOT_AFTER=0.0, SNAPSHOT_BYTES=math.inf, SNAPSHOT_EVENTS=7
    )
    with often, mock.patch.object(store, "LOG_PAGES", 40), tempfile.TemporaryDirectory() as folder:
        return interrupt_often(Path(folder) / "tune.db", policy, calls, seed)


def _of_optimizer(policy, calls, seed):
    interrupt_often = function_of("optimize/test_interrupts.py", "interrupt_often")
    if interrupt_often is None:
        return None
    optimizer = pt.Optimizer([(0.0, 1.0), (-1.0, 2.0)], policy=policy)
    if policy is not None:  # which has no use for the noise of single values
        optimizer.std_of = lambda std, verb: None
    came, _ = interrupt_often(optimizer, calls, seed)
    return came

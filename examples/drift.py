"""A timeout for a server whose load changes: drift=True forgets what no longer holds."""

import math
import random

import partita as pt

drawn = random.Random(0)


def answered(timeout: float, best: float) -> float:
    """The part of the requests that are answered in time, as measured in one minute."""
    return math.exp(-(((timeout - best) / 1.5) ** 2)) + drawn.gauss(0, 0.1)


optimizer = pt.Optimizer({"timeout": (0.5, 10.0)}, direction="maximize", drift=True)
for minute in range(240):
    best = 3.0 if minute < 150 else 7.5  # a new release is slower
    trial = optimizer.ask()
    optimizer.tell(trial, answered(trial.params["timeout"], best))
    if minute in (149, 239):
        now = optimizer.recommend()
        print(f"minute {minute + 1}: timeout {now.params['timeout']:.2f}, answered {now.mean:.2f}")

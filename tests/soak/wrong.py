"""Calls with wrong input of every kind: each must be refused with an error of Partita's."""

import math
from functools import partial

import numpy as np

import partita as pt

NO_NUMBERS = (math.nan, math.inf, -math.inf, 1e200, "high", None, [1.0, 2.0], 1j, {}, object())
NO_STDS = (-1.0, math.nan, math.inf, "wide", [0.1, 0.2])


def wrong_calls(player):
    """Pairs of a name and a call."""
    return list(_of_optimizer(player) if player.is_optimizer else _of_policy(player))


def _of_policy(player):
    policy, dim = player.subject, player.policy.domain.dim
    good = player.some_points(1, 3)
    if len(good) < 3:  # a constraint that hardly allows anything
        good = policy.domain.spread(np.full((3, dim), 0.4))
    inside = player.pending[0] if player.pending else good[0]
    outside = np.array(policy.domain.upper) + 1.0 + np.abs(policy.domain.upper)
    points = {
        "outside": outside,
        "nan": np.full(dim, math.nan),
        "inf": np.full(dim, math.inf),
        "short": np.zeros(dim - 1),
        "long": np.append(inside, 0.0),
        "words": ["x"] * dim,
        "none": None,
        "deep": np.zeros((2, 2, dim)),
        "complex": inside.astype(complex) + 1j,
    }
    yield from ((f"tell(x, {y!r})", partial(policy.tell, inside, y)) for y in NO_NUMBERS)
    for name, x in points.items():
        yield f"tell({name}, 1.0)", partial(policy.tell, x, 1.0)
        yield f"expect({name})", partial(policy.expect, x)
        yield f"cancel({name})", partial(policy.cancel, x)
    rows = np.array(good)
    rows[2] = outside
    yield "tell(a row outside)", partial(policy.tell, rows, np.zeros(3))
    yield "tell(too few values)", partial(policy.tell, good, np.zeros(2))
    yield "tell(a value nan)", partial(policy.tell, good, np.array([0.0, 1.0, math.nan]))
    if policy.takes_std:
        for std in NO_STDS:
            yield f"std={std!r}", partial(policy.tell, inside, 1.0, std=std)
        yield "stds", partial(policy.tell, good, np.zeros(3), std=np.array([1.0, -1.0, 0.0]))
        yield "few stds", partial(policy.tell, good, np.zeros(3), std=np.ones(2))
    else:
        yield "std", partial(policy.tell, inside, 1.0, std=0.1)
    if hasattr(policy, "predict"):
        for name in ("outside", "nan", "long", "words", "none", "deep"):
            yield f"predict({name})", partial(policy.predict, points[name])


def _of_optimizer(player):
    optimizer = player.subject
    fresh = pt.Optimizer([(0.0, 1.0)], policy="uniform").ask()  # a trial of somebody else's
    last = len(optimizer.trials)
    trials = {"missing": last, "negative": -1, "name": "0", "flag": True, "none": None, "real": 0.0}
    for name, trial in {**trials, "other": fresh}.items():
        yield f"tell({name}, 1.0)", partial(optimizer.tell, trial, 1.0)
        yield f"cancel({name})", partial(optimizer.cancel, trial)
    for trial in player.pending[:1]:
        yield from ((f"tell(trial, {y!r})", partial(optimizer.tell, trial, y)) for y in NO_NUMBERS)
        stds = NO_STDS if optimizer.policy.takes_std else (*NO_STDS, 0.1)
        yield from ((f"std={s!r}", partial(optimizer.tell, trial, 1.0, s)) for s in stds)
    settled = [n for n in range(last) if optimizer.trials[n].state != "pending"]
    for number in settled[:1]:
        yield "tell twice", partial(optimizer.tell, number, 1.0)
        yield "cancel twice", partial(optimizer.cancel, number)
    params = player.some_params(1)
    if params is None:
        return
    if isinstance(params, dict):
        name = next(iter(params))
        wrong = [{**params, "more": 1.0}, {k: v for k, v in params.items() if k != name}]
        wrong += [{**params, name: value} for value in (None, "no such choice", math.nan, 1e300)]
    else:
        wrong = [
            params[:-1],
            np.append(params, 0.5),
            params + 1e200,
            np.full(len(params), math.nan),
        ]
    for i, given in enumerate([*wrong, None, 3.5, "x"]):
        if i == 0 and not len(given):
            continue
        yield f"add({given!r})", partial(optimizer.add, given, 1.0)
        yield f"expect({given!r})", partial(optimizer.expect, given)
    yield "add(params, nan)", partial(optimizer.add, params, math.nan)

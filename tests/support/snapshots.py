"""Snapshots to attack: good ones of many policies, hostile changes of them, and what must follow.

As a program it makes and tries `--cases` changed snapshots, and prints what became of them as JSON.
It is run in a process of its own, so that a crash of the interpreter is seen by whoever runs it:

    python tests/support/snapshots.py --cases 10000 --seed 1
"""

import argparse
import faulthandler
import functools
import json
import logging
import math
import resource
import signal
import struct
import sys
import warnings
from collections import Counter

import numpy as np

import partita as pt
from partita._state import DTYPES, BadState
from partita.errors import PartitaError
from partita.model.noise import Uniform
from partita.optimize.optimizer import Optimizer
from partita.optimize.values import Observation
from partita.study import packed, snapshot
from partita.study.state import State

#: Seconds that a changed snapshot may take, and bytes of memory that the process may have.
SECONDS, MEMORY = 60, 6 * 2**30
KNOWN = {"norm_bound": 8.0, "noise": Uniform(-0.5, 0.5), "kernel": pt.Matern(1.5, 0.3)}
PLANE = [(0.0, 1.0), (-1.0, 1.0)]
ARMS = pt.Arms(np.random.default_rng(0).random((60, 2)))
MIXED = {
    "rate": (1e-4, 1.0, "log"),
    "layers": (1, 8, "int"),
    "kind": ["a", "b", "c"],
    "flag": bool,
}


def allowed(rate, layers, kind, flag):
    return not (kind == "b" and layers > 5) and rate * layers < 4


#: Spaces and settings of the optimizers whose snapshots are attacked.
CASES = {
    "calibrated": (PLANE, {}),
    "calibrated regions": (PLANE, {}),
    "calibrated mixed": (MIXED, {"feasible": allowed}),
    "calibrated arms": (ARMS, {}),
    "calibrated drift": (PLANE, {"drift": True}),
    "calibrated constrained": (PLANE, {"constraints": ["cost <= 1.5", "time >= -1", "time < 2"]}),
    "pi-gp-ucb": (PLANE, KNOWN),
    "pi-gp-ucb grid": (pt.Grid(20, dim=2), {**KNOWN, "policy": "pi-gp-ucb[initial_cells=3]"}),
    "pi-gp-ucb-paper": (PLANE, {**KNOWN, "policy": "pi-gp-ucb-paper"}),
    "pi-gp-ucb-paper line": ([(0.0, 1.0)], {**KNOWN, "policy": "pi-gp-ucb-paper"}),
    "pi-gp-ucb-paper arms": (ARMS, {**KNOWN, "policy": "pi-gp-ucb-paper"}),
    "pi-gp-ucb-tight": (PLANE, {**KNOWN, "policy": "pi-gp-ucb-tight"}),
    "pi-gp-ts": (ARMS, {**KNOWN, "policy": "pi-gp-ts"}),
    "igp-ucb": (ARMS, {**KNOWN, "policy": "igp-ucb"}),
    "gp-ucb": (ARMS, {**KNOWN, "policy": "gp-ucb"}),
    "gp-ucb-rkhs": (ARMS, {**KNOWN, "policy": "gp-ucb-rkhs"}),
    "igp-ucb rows": (pt.Grid(64, dim=2), {**KNOWN, "policy": "igp-ucb"}),
    "kernel-ucb": (ARMS, {**KNOWN, "policy": "kernel-ucb"}),
    "sup-kernel-ucb": (ARMS, {**KNOWN, "policy": "sup-kernel-ucb"}),
    "sup-lin-ucb": (ARMS, {**KNOWN, "policy": "sup-lin-ucb"}),
    "bkb": (ARMS, {**KNOWN, "policy": "bkb"}),
    "oful": (PLANE, {**KNOWN, "policy": "oful"}),
    "confidence-ball": (ARMS, {**KNOWN, "policy": "confidence-ball"}),
    "hoo": (PLANE, {**KNOWN, "policy": "hoo"}),
    "hoo arms": (ARMS, {**KNOWN, "policy": "hoo"}),
    "stosoo": (PLANE, {**KNOWN, "policy": "stosoo"}),
    "stosoo arms": (ARMS, {**KNOWN, "policy": "stosoo"}),
    "doo": (PLANE, {**KNOWN, "policy": "doo"}),
    "soo": (PLANE, {**KNOWN, "policy": "soo"}),
    "direct": (PLANE, {**KNOWN, "policy": "direct"}),
    "direct arms": (ARMS, {**KNOWN, "policy": "direct"}),
    "uniform": (MIXED, {"feasible": allowed, "policy": "uniform"}),
}
#: Values that are told at the beginning: enough for regions to be cut, and cells to split.
TOLD_FIRST = {"calibrated regions": 300, "pi-gp-ucb": 60, "pi-gp-ucb-paper line": 200, "hoo": 60}


def first_state(name):
    """The state of a case before anything has happened."""
    space, settings = CASES[name]
    return State(Optimizer(space, seed=3, n_evals=1000, **settings))


def value_of(state, number):
    unit = state.game.ledger.unit(number)
    return float(np.sin(5 * unit[0]) + np.cos(3 * unit).sum()) + 0.1 * math.sin(37.0 * number)


def seen_at(state, number, std=None):
    """What an evaluation of a trial shows: its value, and those of constrained quantities."""
    value, names = value_of(state, number), state.optimizer.constraints.names
    return Observation(value, std, tuple(value + i for i in range(len(names))) or None)


def played(name, steps=40):
    """A state in the middle of things: told with noise and without, pending, cancelled, expired."""
    state, random = first_state(name), np.random.default_rng(0)
    for i in range(TOLD_FIRST.get(name, 0)):
        unit = random.random(state.optimizer.space.dim)
        state.add(unit, Observation(math.sin(9.0 * unit[0]) + 0.1 * math.sin(i), None), 1e9)
    for i in range(steps):
        number = state.ask(1e9 + i, i % 3 or None).trial.number
        if i % 9 == 4:
            state.cancel(number, 1e9, failed=i % 2 == 0)
        elif i % 13 == 6:
            state.expire(number, 1e9)
        elif i % 8 != 5 or i < 20:
            std = 0.2 if state.game.takes_std and i % 5 == 1 else None
            state.tell(number, seen_at(state, number, std), 1e9 + i)
    return state


@functools.cache
def good(name):
    """The snapshot of a state in the middle of things."""
    data = snapshot.write(played(name))
    assert data is not None
    return data


def read(name, data):
    """The state in a snapshot whose checksum is right, or None."""
    first = functools.partial(first_state, name)
    return snapshot.read(data, snapshot.digest_of(data), snapshot.WRITTEN_BY, first)


# -- hostile changes -------------------------------------------------------------------------------

SCALARS = [
    *(None, True, False, -1, 0, 1, 2, 7, 2**31, 2**61, 2**63, -(2**63), 10**30, 10**4000),
    *(math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, 1e-300, 5e-324, 1e150, -1e150, 1e308, -1e308),
    *("", "PiGPUCB", [], {}, [[]], {"array": 0}, {"array": 10**9}, {"array": -1}),
]
FLOATS = [
    math.nan,
    math.inf,
    -math.inf,
    0.0,
    -0.0,
    0.5,
    1.0,
    -1.0,
    2.0,
    1e-300,
    1e150,
    -1e150,
    1e308,
]
WHOLES = [-(2**63), -3, -2, -1, 0, 1, 2, 3, 63, 64, 1000, 2**31, 2**40, 2**61, 2**63 - 1]


def places(data, path=()):
    """Where the scalars and arrays of plain data are: the keys that lead there."""
    if isinstance(data, dict | list):
        for key, part in data.items() if isinstance(data, dict) else enumerate(data):
            yield from places(part, (*path, key))
    else:
        yield path


def at(data, path):
    return functools.reduce(lambda part, key: part[key], path, data)


def put(data, path, value):
    at(data, path[:-1])[path[-1]] = value


def changed_array(random, array):
    """An array with hostile content."""
    array = array.copy()
    pool = {"f": FLOATS, "i": WHOLES, "u": [0, 1, 2**64 - 1], "b": [False, True]}[array.dtype.kind]
    way = random.integers(9)
    if way == 0 or not array.size:
        rows = int(random.integers(4))
        return np.zeros((rows, *array.shape[1:]), array.dtype)
    if way == 1:
        return array[: random.integers(len(array))]
    if way == 2:
        return np.concatenate([array, array[:1]])
    if way == 3:
        return random.permutation(array)
    if way == 4:
        return array.astype(random.choice(list(DTYPES.values())))
    flat = array.reshape(-1)
    number = 1 if way < 8 else random.integers(1, flat.size + 1)
    which = random.integers(flat.size, size=number)
    if way == 5:  # another number of the same array
        flat[which] = flat[random.integers(flat.size)]
    elif way == 6 and array.dtype.kind in "iu":
        flat[which] += array.dtype.type(random.choice([1, -1]) if array.dtype.kind == "i" else 1)
    elif way == 6 and array.dtype.kind == "f":
        flat[which] *= random.choice([-1.0, 0.5, 2.0, 1e10, 1e-10])
    else:
        kept = [x for x in pool if array.itemsize > 1 or -128 <= x <= 127]
        flat[which] = kept[random.integers(len(kept))]
    return flat.reshape(array.shape)


def changed_data(random, data):
    """Plain data with one to three changes."""
    everywhere = list(places(data))
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        path = everywhere[random.integers(len(everywhere))]
        try:
            old = at(data, path)
        except (KeyError, TypeError, IndexError):  # removed before
            continue
        way = random.integers(12)
        if way == 0:
            other = at(data, everywhere[random.integers(len(everywhere))])
            put(data, path, other)
        elif way == 1:
            del at(data, path[:-1])[path[-1]]
            everywhere = list(places(data))
        elif isinstance(old, np.ndarray) and way < 11:
            put(data, path, changed_array(random, old))
        elif type(old) is int and way < 6:
            put(data, path, old + int(random.choice([-2, -1, 1, 2, 1000])))
        elif type(old) is float and way < 6:
            put(data, path, old * float(random.choice([-1.0, 0.0, 1e-9, 0.9, 1.1, 1e9])))
        else:
            put(data, path, SCALARS[random.integers(len(SCALARS))])
    return data


def raw_pack(text, rest, length=None):
    """A header, a text as it is, and the bytes of arrays."""
    head = 20
    gap = bytes(-(head + len(text)) % 8)
    total = head + len(text) + len(gap) + len(rest) if length is None else length
    return struct.pack("<8sQI", b"PARTITA\x04", total, len(text)) + text + gap + rest


def changed_text(random, data):
    """A snapshot whose text is changed as text."""
    size = struct.unpack_from("<8sQI", data)[2]
    text, rest = data[20 : 20 + size], data[20 + size + -(20 + size) % 8 :]
    whole = json.loads(text)
    table = whole["arrays"]
    way = random.integers(7)
    if way == 0:
        entry = table[random.integers(len(table))]
        entry[1] = [[2**40, 0], [0, 2**62], [2**31, 2**31], [-1], [], [1] * 40, [True]][
            random.integers(7)
        ]
    elif way == 1:
        i, j = random.integers(len(table), size=2)
        table[i], table[j] = table[j], table[i]
    elif way == 2:
        table[random.integers(len(table))][0] = ["f4", "O", "<f8", "u1", "V8", 3, None][
            random.integers(7)
        ]
    elif way == 3:
        table.append(["f8", [0]])
    text = json.dumps(whole).encode()
    if way == 4:
        text = text.replace(b'"told":', b'"told":1,"told":', 1)
    elif way == 5:
        text = text[:-1] + b',"x":' + b"[" * 50_000 + b"]" * 50_000 + b"}"
    elif way == 6:
        text = text[:-1] + b',"x":' + b"9" * int(random.choice([10, 5000, 10**5])) + b"}"
    return raw_pack(text, rest)


def changed(random, data):
    """A hostile change of a good snapshot."""
    way = random.integers(40)
    if way < 3:
        content = bytearray(data)
        for _ in range(random.integers(1, 9)):
            content[random.integers(len(content))] ^= 1 << random.integers(8)
        return bytes(content)
    if way == 3:
        return data[: random.integers(len(data))]
    if way == 4:
        return data + bytes(int(random.integers(1, 64)))
    if way < 7:
        return changed_text(random, data)
    try:
        return packed.pack(changed_data(random, packed.unpack(data)))
    except (BadState, OverflowError, ValueError):
        return data[: len(data) // 2]


# -- what must follow ------------------------------------------------------------------------------


def use(state):
    """Play a restored state for a while; its answers are numbers and its points are allowed."""
    optimizer = state.optimizer
    pending = list(state.asked)
    for i in range(12):
        trial = state.ask(2e9, None).trial
        unit = optimizer.space.encode(trial.params)
        assert optimizer.space.allows(trial.params), trial
        assert np.isfinite(unit).all()
        if i == 2:
            state.cancel(trial.number, 2e9, failed=True)
        elif i != 5:
            std = 0.1 if i == 3 and state.game.takes_std else None
            state.tell(trial.number, seen_at(state, trial.number, std), 2e9)
        best = optimizer.recommend()
        assert optimizer.space.allows(best.params)
        assert not any(math.isnan(x) for x in best[2:]), best
        assert not math.isnan(optimizer.certificate())
    for number in pending[:4]:
        state.cancel(number, 2e9) if number % 2 else state.tell(number, seen_at(state, number), 2e9)
    if hasattr(state.game.policy, "predict"):
        predicted = state.game.predict(state.game.ledger.units[:5])
        assert not any(np.isnan(part).any() for part in predicted), predicted
    state.ask(3e9, None)


class Hang(BaseException):
    """A changed snapshot took too long."""


def _hang(*_):
    raise Hang


def attack(name, random):
    """What became of a changed snapshot: "replayed", "refused" (a clear error) or "used"."""
    data = changed(random, good(name))
    signal.alarm(SECONDS)
    try:
        state = read(name, data)
        if state is None:
            return "replayed", data
        try:
            use(state)
        except PartitaError:
            return "refused", data
        return "used", data
    finally:
        signal.alarm(0)


def attack_many(cases, seed, names=tuple(CASES), keep=None):
    """Attack snapshots of each case in turn: how often each of the outcomes was, and failures."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, _hang)
    logging.disable()
    warnings.simplefilter("ignore")
    outcomes, failures = Counter(), []
    for i in range(cases):
        name = names[i % len(names)]
        try:
            outcome, _ = attack(name, np.random.default_rng([seed, i]))
            outcomes[outcome] += 1
        except (Exception, Hang) as error:
            outcomes["failed"] += 1
            trace = error.__traceback__
            while trace.tb_next is not None:
                trace = trace.tb_next
            where = f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}"
            failures.append(
                f"{name} {[seed, i]}: {type(error).__name__} at {where}: {error!s:.200}"
            )
            if keep is not None:
                print(failures[-1], file=keep, flush=True)
    return {"cases": cases, "seed": seed, **outcomes, "failures": failures}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    chosen = tuple(name for name in CASES if given.only in name)
    print(json.dumps(attack_many(given.cases, given.seed, chosen, keep=sys.stderr), indent=1))

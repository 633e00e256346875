"""Traffic lights: cycle, greens and offset of two crossings in a row, for the least waiting.

Cars come at random along the main road and from a side street at each crossing. A simulated hour
gives the mean wait of a car, with noise. People on foot need 8 seconds of green on each road:
`feasible` says so, and nothing infeasible is tried. Simulations run in parallel processes.
"""

import argparse
from collections import deque
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import partita as pt

MAIN, SIDE = 0.24, 0.13  # cars a second
DRIVE, LOST, HEADWAY = 25, 3, 2  # seconds: between lights, lost at a change, between two cars
SPACE = {"cycle": (20, 150), "first": (0.1, 0.9), "second": (0.1, 0.9), "offset": (0, 1)}


def waiting(cycle, first, second, offset, seed=None, seconds=3600):
    """Mean wait in seconds of a car; `first` and `second` are the main road's shares of green."""
    comes = np.random.default_rng(seed).random((3, seconds)) < [[MAIN], [SIDE], [SIDE]]
    lanes = [deque(), deque(), deque(), deque()]  # main 1, side 1, main 2, side 2
    road, waits, free = deque(), [], [0] * 4
    for t in range(seconds):
        for lane, arrives in zip((lanes[0], lanes[1], lanes[3]), comes[:, t], strict=True):
            if arrives:
                lane.append(t)
        while road and road[0] <= t:
            lanes[2].append(road.popleft())
        for light, (share, shift) in enumerate(((first, 0), (second, offset))):
            phase = (t / cycle - shift) % 1
            on_main = phase < share
            green_for = (phase if on_main else phase - share) * cycle
            i = 2 * light + (not on_main)
            if lanes[i] and green_for >= LOST and t >= free[i]:
                waits.append(t - lanes[i].popleft())
                free[i] = t + HEADWAY
                if i == 0:
                    road.append(t + DRIVE)
    return float(np.mean(waits + [seconds - t for lane in lanes for t in lane]))


def feasible(cycle, first, second, offset):
    return all(8 <= share * cycle <= cycle - 8 for share in (first, second))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evals", type=int, default=500, help="simulated hours (500)")
    evals = parser.parse_args().evals
    with ProcessPoolExecutor(2) as pool:
        result = pt.minimize(waiting, SPACE, n_evals=evals, feasible=feasible, executor=pool)
    print(result)
    plain = {"cycle": 60, "first": 0.5, "second": 0.5, "offset": 0}
    for name, setting in (("a minute, half and half", plain), ("tuned", result.params)):
        wait = np.mean([waiting(**setting, seed=seed) for seed in range(30)])
        print(f"{name}: a car waits {wait:.1f} s, over thirty fresh hours")

"""Draw the pictures of docs/howto/look.md: python docs/figures/looking.py.

A model's settings are tuned on a loss that is made up, so that it takes no time, by four threads
that take theirs. Same seeds, same settings; the time line is that of the run.
"""

from __future__ import annotations

import math
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import partita as pt

FOLDER = Path(__file__).parent
SPACE = {
    "learning_rate": (1e-5, 1e-1, "log"),
    "trees": (10, 2000, "int", "log"),
    "depth": (1, 12, "int"),
    "subsample": (0.3, 1.0),
    "loss": ["squared", "absolute", "huber"],
    "warm_start": bool,
}
KINDS = ("importance", "pairs", "timeline")


def loss(**params: Any) -> float:
    """A noisy loss that depends on the first four, and a little on the fifth."""
    noise = np.random.default_rng([params["trees"], params["depth"]]).normal(0, 0.05)
    rate = math.log10(params["learning_rate"]) + math.log10(params["trees"])
    steps = (rate - 0.2) ** 2 / 4
    depth = abs(params["depth"] - 6) / 10 * (1 + params["subsample"])
    return float(1 + steps + depth + 0.15 * (params["loss"] == "absolute") + noise)


def slow_loss(**params: Any) -> float:
    """The same; more trees take longer."""
    time.sleep(0.02 + params["trees"] / 20_000)
    return loss(**params)


def main(folder: Path, n_evals: int = 90) -> None:
    """Draw all pictures into a folder."""
    result = pt.minimize(loss, SPACE, n_evals=n_evals, seed=1)
    for kind in KINDS[:2]:
        result.plot(folder / f"{kind}.png", kind)
    with ThreadPoolExecutor(4) as pool:
        parallel = pt.minimize(slow_loss, SPACE, n_evals=n_evals // 2, seed=1, executor=pool)
    parallel.plot(folder / "timeline.png", "timeline")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)

"""What it takes to add many values known from elsewhere, `Optimizer.add`, in processor time.

    python benchmarks/bulk_add.py                 20,000 values: an array, columns, dicts, a frame
    python benchmarks/bulk_add.py --values 5000 --runs 5

The least of a few runs counts: others on the machine make the rest. A first run warms up.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from common import parser, print_table

import partita as pt

SPACE = {"x": (0.0, 1.0), "rate": (1e-3, 1.0, "log"), "depth": (1, 12, "int"), "kind": ["a", "b"]}


def given(form: str, n: int) -> tuple[Any, Any, Any]:
    """A space, parameters in a form, and values that depend on them, with noise."""
    random = np.random.default_rng(0)
    noise = random.normal(0, 0.1, n)
    if form == "array":
        points = random.random((n, 2))
        return [(0, 1)] * 2, points, ((points - 0.3) ** 2).sum(axis=1) + noise
    columns = {
        "x": random.random(n),
        "rate": 10 ** random.uniform(-3, 0, n),
        "depth": random.integers(1, 13, n),
        "kind": random.choice(["a", "b"], n),
    }
    values = (columns["x"] - 0.3) ** 2 + 0.1 * abs(columns["depth"] - 5) + noise
    if form == "columns":
        return SPACE, columns, values
    if form == "frame":
        import pandas as pd

        return SPACE, pd.DataFrame(columns), values
    lists = [column.tolist() for column in columns.values()]
    return SPACE, [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)], values


def seconds(form: str, n: int) -> float:
    """The processor time of one `add`."""
    space, params, values = given(form, n)
    optimizer = pt.Optimizer(space)
    start = time.process_time()
    optimizer.add(params, values)
    return time.process_time() - start


def main() -> None:
    command = parser(__doc__)
    command.add_argument("--values", type=int, default=20_000)
    command.add_argument("--runs", type=int, default=3)
    options = command.parse_args()
    rows = []
    for form in ("array", "columns", "dicts", "frame"):
        took = [seconds(form, options.values) for _ in range(options.runs + 1)][1:]
        rows.append([form, f"{min(took):.2f} s", f"{max(took):.2f} s"])
    print_table([f"{options.values:,} values", "least", "most"], rows)


if __name__ == "__main__":
    main()

"""How often calibrated certificates held in test runs, by dimension.

Measured with Partita 0.1.0 by

    python benchmarks/bounds.py --problems measured --runs 1

on 23 functions under two levels of noise, after 100, 300 and 1,000 evaluations, with delta = 0.1.
A *spiky* function has a narrow peak, at most a tenth of a side wide, beside a broad one: see
benchmarks/versus/unseen.py. docs/calibrated.md shows the runs.
"""

from __future__ import annotations

from typing import NamedTuple


class Held(NamedTuple):
    """The number of finite certificates, and of those that held: of ordinary functions, of spiky.

    There are three for each run.
    """

    held: int
    of: int
    held_spiky: int
    of_spiky: int


#: By dimension.
MEASURED = {
    1: Held(12, 12, 6, 12),
    2: Held(40, 42, 0, 12),
    3: Held(23, 24, 2, 6),
    5: Held(10, 12, 3, 6),
    6: Held(12, 12, 0, 0),
}


def held_text(dim: int) -> str:
    """How often such certificates held, in words; of the next measured dimension above `dim`."""
    larger = [measured for measured in MEASURED if measured >= dim]
    if not larger:
        return f"not measured in more than {max(MEASURED)} dimensions"
    nearest = min(larger)
    row = MEASURED[nearest]
    text = f"held in {row.held} of {row.of} (d = {nearest})"
    if not row.of_spiky:
        return text
    return f"{text}, in {row.held_spiky} of {row.of_spiky} with a narrow peak"

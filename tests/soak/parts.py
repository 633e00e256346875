"""What a soak is made of: each part works on cases, one a seed, until it has done enough."""

from collections.abc import Callable
from dataclasses import dataclass

from . import files, fuzz, interrupts, kills


@dataclass(frozen=True)
class Part:
    """A part of the soak.

    Attributes
    ----------
    play
        Works on the case of a seed and returns figures by name; raises if a promise is broken.
        No figures: what it would test is not there.
    figure, goal
        It has done enough when this figure is as large as that; or when `seconds` have passed.
    limit
        Seconds that a case may take; more is a hang.
    """

    name: str
    title: str
    play: Callable[[int], dict[str, int]]
    limit: float
    figure: str | None = None
    goal: int = 0
    seconds: float | None = None


PARTS = {
    part.name: part
    for part in (
        Part("kills", "kill -9 at random moments", kills.kill_many, 600, "kills", 1000),
        Part("files", "damaged study files", files.damage_many, 120, "files", 10_000),
        Part("edits", "edited study files", files.edit_many, 300, "files", 10_000),
        Part("snapshots", "mutated snapshots", files.attack_snapshots, 600, "snapshots", 10_000),
        Part(
            "interrupts",
            "Ctrl-C at random moments",
            interrupts.interrupt_many,
            600,
            "interrupts",
            10_000,
        ),
        Part("fuzz", "policies, spaces and calls at random", fuzz.play, 240, seconds=3600.0),
    )
}


def total(outcomes):
    """Figures of several cases in one: sums, but the largest of what is called largest."""
    figures: dict[str, int] = {}
    for outcome in outcomes:
        for name, value in outcome.items():
            before = figures.get(name, 0)
            figures[name] = max(before, value) if "largest" in name else before + value
    return figures

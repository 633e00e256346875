"""Draw the pictures of docs/explanation: python docs/figures/cells.py.

π-GP-UCB on a function of two parameters whose values are known, so that what it believes can be
drawn beside the truth. Same seeds, same pictures.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle

import partita as pt
from partita.figures.style import BLUE, GREY, INK, ORANGE, drawing
from partita.problems import RKHSFunction

FOLDER = Path(__file__).parent
KERNEL = pt.Matern(nu=1.5, lengthscale=0.25)
SEED, NOISE = 4, 0.5
#: Evaluations after which a frame is drawn.
FRAMES = (30, 150, 600, 3_000)
SIDE = 121


def plane() -> np.ndarray:
    """Points of a fine grid on the unit square, (SIDE², 2)."""
    ticks = np.linspace(0, 1, SIDE)
    return np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)


def picture(values: np.ndarray) -> np.ndarray:
    """Values on `plane()` as an image."""
    return values.reshape(SIDE, SIDE)


class Frame:
    """What is known after a number of evaluations."""

    def __init__(self, policy: pt.PiGPUCB, played: np.ndarray) -> None:
        self.n = len(played)
        self.played = played
        self.cells = [(cell.lower, cell.side, cell.count) for cell in policy.cover]
        self.prediction = policy.predict(plane())
        self.best = policy.recommend()
        self.certificate = policy.certificate()


def frames(f: RKHSFunction, moments: tuple[int, ...]) -> tuple[list[Frame], list[list[float]]]:
    """Frames of a run on f, and after every 25 evaluations what is certified of the answer."""
    horizon = moments[-1]
    policy = pt.PiGPUCB(
        pt.Box([0, 0], [1, 1]),
        horizon=horizon,
        kernel=KERNEL,
        norm_bound=f.norm,
        noise=pt.Uniform(-NOISE, NOISE),
        split="count",
    )
    rng = np.random.default_rng(SEED)
    top = f(plane()).max()
    played, drawn, progress = [], [], []
    for t in range(1, horizon + 1):
        x = policy.ask()
        policy.tell(x, float(f(x[None])[0]) + rng.uniform(-NOISE, NOISE))
        played.append(x)
        if t in moments:
            drawn.append(Frame(policy, np.array(played)))
        if t % 25 == 0:
            lost = top - float(f(policy.recommend().x[None])[0])
            progress.append([t, policy.certificate(), max(lost, 0.0)])
    return drawn, progress


def _square(axes: Any, title: str) -> None:
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=[0, 1], yticks=[0, 1])
    axes.grid(visible=False)
    axes.set_title(title)
    for side in ("top", "right"):
        axes.spines[side].set_visible(True)


def draw_cells(figure: Any, f: RKHSFunction, drawn: list[Frame]) -> None:
    """Above: the points evaluated, in their cells. Below: the upper bound that chooses the next."""
    truth = picture(f(plane()))
    rows = figure.subplots(2, len(drawn))
    bounds = [frame.prediction.upper for frame in drawn]
    low = min(each.min() for each in bounds)
    high = max(each.max() for each in bounds[1:])
    for column, frame in enumerate(drawn):
        above, below = rows[:, column]
        _square(above, f"{frame.n:,} evaluations")
        above.contour(truth, levels=7, extent=(0, 1, 0, 1), colors=GREY, linewidths=0.6)
        boxes = [Rectangle(lower, side, side) for lower, side, _ in frame.cells]
        above.add_collection(
            PatchCollection(boxes, facecolor="none", edgecolor=BLUE, linewidth=0.7)
        )
        above.plot(*frame.played.T, ".", color=INK, markersize=3, alpha=0.5, clip_on=False)
        above.plot(*frame.best.x, "*", color=ORANGE, markersize=13, markeredgecolor="white")
        above.set_xlabel(f"{len(frame.cells)} cells", labelpad=-4)
        _square(below, "")
        shown = below.imshow(
            picture(frame.prediction.upper),
            origin="lower",
            extent=(0, 1, 0, 1),
            vmin=low,
            vmax=high,
            cmap="viridis",
        )
    rows[0, 0].set_ylabel("cells and points")
    rows[1, 0].set_ylabel("upper bound on f")
    figure.colorbar(shown, ax=list(rows[1]), shrink=0.8, pad=0.01)


def draw_certificate(figure: Any, progress: list[list[float]]) -> None:
    """What is certified of the answer, and what it really loses."""
    n, certified, lost = np.array(progress).T
    axes = figure.subplots()
    axes.plot(n, certified, color=BLUE, label="certificate: at most this is lost")
    axes.plot(n, lost, color=ORANGE, label="what the answer really loses")
    axes.set(xlabel="evaluations", ylim=(0, None), xlim=(0, n[-1]))
    axes.legend(frameon=False)


def main(folder: Path = FOLDER, moments: tuple[int, ...] = FRAMES) -> None:
    """Write cells.png and certificate.png."""
    f = RKHSFunction.sample(2, KERNEL, seed=SEED)
    drawn, progress = frames(f, moments)
    with drawing() as make:
        cells, certificate = make((11.5, 6.0)), make((6.4, 3.4))
        draw_cells(cells, f, drawn)
        draw_certificate(certificate, progress)
        for name, figure in (("cells", cells), ("certificate", certificate)):
            figure.set_layout_engine("constrained")
            figure.savefig(folder / f"{name}.png", dpi=130, metadata={"Software": "Partita"})
            print(folder / f"{name}.png")


if __name__ == "__main__":
    main()

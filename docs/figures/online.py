"""Draw the figure of docs/online.md: python docs/figures/online.py.

The best action of the toy along its context, the reward against other ways, and the loss around a
jump. The problems and players are those of benchmarks/online.py and benchmarks/drift.py; CATS is
left out where vowpalwabbit is not installed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent.parent / "benchmarks"))

import drift  # noqa: E402
import online  # noqa: E402
import online_players  # noqa: E402

from partita.figures import style  # noqa: E402

ROUNDS, JUMP_ROUNDS, SEED = 1000, 5000, 0
#: Ways, their names in the figure, and their colours.
WAYS = {
    "context": ("with the context", style.BLUE),
    "bins": ("an optimizer for each of 8 parts", "#009E73"),
    "process": ("a Gaussian process of ten lines", "#CC79A7"),
    "linucb": ("LinUCB, quadratic", style.ORANGE),
    "cats": ("Vowpal Wabbit's CATS", "#E69F00"),
    "none": ("without the context", style.GREY),
}


def played(way: str) -> tuple[Any, np.ndarray] | None:
    """The player after the toy, and its mean rewards; None if it cannot play."""
    problem = online.PROBLEMS["toy"]
    try:
        player = online_players.player_of(way, problem.actions, problem.context, SEED)
    except ImportError:
        return None
    contexts, noise, _ = online.rounds_of("toy", ROUNDS, SEED)
    rewards = np.empty(ROUNDS)
    for t, context in enumerate(contexts):
        rewards[t] = problem.reward(player.choose(context), context)
        player.learn(float(rewards[t] + noise[t]))
    return player, rewards


def best_cats() -> tuple[Any, np.ndarray] | None:
    """The same for that of the eight settings of CATS which gets most in these very rounds."""
    runs = [run for way in online_players.CATS if (run := played(way)) is not None]
    return max(runs, key=lambda run: float(run[1].mean()), default=None)


def draw_best(axes: Any, optimizer: Any) -> None:
    """The recommended action along the context, and the actions around it that may be as good."""
    at = np.linspace(0, 1, 97)
    grid = np.linspace(0, 1, 101)
    answers = optimizer.recommend(context=[{"c": c} for c in at.tolist()])
    low, high = np.empty(len(at)), np.empty(len(at))
    for i, (c, answer) in enumerate(zip(at.tolist(), answers, strict=True)):
        upper = optimizer.predict([{"x0": x} for x in grid.tolist()], context={"c": c}).upper
        place = answer.params["x0"]
        worse = grid[upper < answer.lower]
        low[i] = worse[worse < place].max(initial=0.0)
        high[i] = worse[worse > place].min(initial=1.0)
    axes.fill_between(at, low, high, color=style.BLUE, alpha=0.15, lw=0, label="may be as good")
    best = [answer.params["x0"] for answer in answers]
    axes.plot(at, best, color=style.BLUE, lw=1.6, label="recommended")
    axes.plot(at, 0.2 + 0.6 * at, color=style.INK, lw=1, ls=":", label="the best")
    axes.set(title=f"The best action, {ROUNDS:,} rounds", xlabel="context", ylabel="action")
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.legend(frameon=False, fontsize=8, loc="upper left")


def draw_rewards(axes: Any, rewards: dict[str, np.ndarray]) -> None:
    """Mean rewards over the last hundred rounds, each with its name in the legend."""
    for way, row in rewards.items():
        name, colour = WAYS[way]
        smooth = np.convolve(row, np.full(100, 0.01), mode="valid")
        axes.plot(np.arange(100, ROUNDS + 1), smooth, color=colour, lw=1.4, label=name)
    axes.set(title="Reward, mean of the last 100 rounds", xlabel="round", ylim=(0, 1.02))
    axes.set_xlim(0, ROUNDS)
    axes.legend(frameon=False, fontsize=7.5, loc="lower right", ncols=2, columnspacing=1.0)


def draw_jump(axes: Any) -> None:
    """Losses before and after the bump jumps, means of 50 rounds."""
    for way, name, colour in (
        ("still", "drift=False", style.GREY),
        ("drift", "drift=True", style.BLUE),
    ):
        lost, _ = drift.run("jump", way, JUMP_ROUNDS, SEED)
        means = lost.reshape(-1, 50).mean(axis=1)
        axes.plot(np.arange(25, JUMP_ROUNDS, 50), means, color=colour, lw=1.4, label=name)
    axes.axvline(JUMP_ROUNDS * 4 // 5, color=style.INK, lw=0.8, ls=":")
    axes.set(title="Loss, the best place jumps", xlabel="round", ylim=(0, 1.05))
    axes.set_xlim(JUMP_ROUNDS * 3 // 5, JUMP_ROUNDS)
    axes.legend(frameon=False, fontsize=8, loc="center left")


def main(folder: Path) -> None:
    """Draw the figure into a folder."""
    tried = {way: best_cats() if way == "cats" else played(way) for way in WAYS}
    runs = {way: run for way, run in tried.items() if run is not None}
    with style.drawing() as new_figure:
        figure = new_figure((12, 3.6))
        figure.set_layout_engine("constrained")
        panels = figure.subplots(1, 3)
        draw_best(panels[0], runs["context"][0]._made[None])
        draw_rewards(panels[1], {way: rewards for way, (_, rewards) in runs.items()})
        draw_jump(panels[2])
        figure.savefig(folder / "online.png", dpi=160, facecolor="white")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)

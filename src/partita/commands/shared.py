"""Shared by the commands: exit codes, errors as one line, common options."""

from __future__ import annotations

import argparse
import functools
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from partita._text import printable_lines
from partita.errors import InvalidInput, PartitaError

if TYPE_CHECKING:
    from partita.study.study import Study

#: Exit codes: no result, bad input, and the one that shells use for Ctrl-C.
FAILED, REFUSED, INTERRUPTED = 1, 2, 130

Command = Callable[[argparse.Namespace], int]


def guarded(
    command: Command,
    *,
    stopped: str = "stopped before anything was run.",
    broken: int = REFUSED,
) -> Command:
    """Wrap a command so that its errors become one line on stderr.

    Parameters
    ----------
    command
        Returns its exit code.
    stopped
        The message after Ctrl-C.
    broken
        The exit code after an error of the operating system.
    """

    @functools.wraps(command)
    def run(options: argparse.Namespace) -> int:
        try:
            return command(options)
        except KeyboardInterrupt:
            return say(stopped, INTERRUPTED)
        except PartitaError as error:
            return say(" ".join(str(error).split()), REFUSED)
        except BrokenPipeError:
            # The reader of our output is gone, so no message can be shown.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return FAILED
        except OSError as error:
            what = error.filename or getattr(options, "out", None) or "the result"
            return say(f"{what}: {error.strerror or error}.", broken)

    return run


def say(message: str, code: int = 0) -> int:
    """Write a message to stderr, and return an exit code."""
    sys.stderr.write(f"partita: {printable_lines(message)}\n")
    return code


def finite(value: Any) -> Any:
    """The value with None instead of NaN and infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list):
        return list(map(finite, value))
    return None if isinstance(value, float) and not math.isfinite(value) else value


# -- studies ---------------------------------------------------------------------------------------


def add_study_command(commands: Any, name: str, text: str, run: Command) -> argparse.ArgumentParser:
    """Add a command that works on the file of a study, and return its parser."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.add_argument("file", metavar="FILE", help="file of the study, such as tune.db")
    parser.set_defaults(run=run)
    return parser


def opened(options: argparse.Namespace) -> Study:
    """The study whose file the options name."""
    from partita.study.study import Study

    return Study.open(options.file)


# -- options ---------------------------------------------------------------------------------------


def add_running_options(parser: argparse.ArgumentParser, out: str) -> None:
    """Add the options of commands that make runs: where they run, and where they are kept."""
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="runs at the same time (one per core)"
    )
    parser.add_argument(
        "--backend",
        default="loky",
        metavar="NAME",
        help="where runs are made: loky, the cores of this machine (default), or dask or ray, a "
        "cluster (DASK_SCHEDULER_ADDRESS or RAY_ADDRESS says which)",
    )
    parser.add_argument("--out", default=out, metavar="DIR", help=f"folder of the results ({out})")


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the policy, and for what is known of the function."""
    add = parser.add_argument
    add("--policy", metavar="NAME", help="one of `partita policies` instead of the calibrated one")
    add(
        "--norm-bound",
        type=float,
        metavar="B",
        help="bound on the norm; with the next two options, bounds are proven",
    )
    add(
        "--noise",
        type=float,
        metavar="L",
        help="noise is L-sub-Gaussian: L is at least its standard deviation",
    )
    add("--kernel", metavar="NU:LENGTHSCALE", help="a Matérn kernel, such as 1.5:0.2")
    add(
        "--outcomes",
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="what the value is on average lies in this range, such as 0 1 for an accuracy; none "
        "for an end that is not known",
    )
    add(
        "--delta", type=float, default=0.1, metavar="P", help="probability that a bound fails (0.1)"
    )


def add_seed_option(parser: argparse.ArgumentParser, same: str) -> None:
    """Add --seed; `same` is what the same seed and values give."""
    text = f"same seed and values, same {same} (0); random draws one and says which"
    parser.add_argument("--seed", default="0", metavar="N", help=text)


def read_seed(text: str) -> int | None:
    """The seed of --seed; None for one that is to be drawn."""
    if text == "random":
        return None
    if not text.isascii() or not text.isdigit():
        raise InvalidInput(
            f"--seed {text}: give a whole number of at least 0, or random to have one drawn."
        )
    return int(text)


def read_model(options: argparse.Namespace) -> dict[str, Any]:
    """The options for the policy and the function, as keywords of the Python interface."""
    from partita.model.kernels import Matern
    from partita.model.noise import SubGaussian

    kernel = None
    if options.kernel is not None:
        try:
            nu, lengthscale = map(float, options.kernel.split(":"))
        except ValueError:
            raise InvalidInput(
                f"--kernel {options.kernel}: give NU:LENGTHSCALE, such as 1.5:0.2."
            ) from None
        kernel = Matern(nu=nu, lengthscale=lengthscale)
    return {
        "policy": options.policy,
        "norm_bound": options.norm_bound,
        "noise": None if options.noise is None else SubGaussian(options.noise),
        "kernel": kernel,
        "outcomes": _read_outcomes(options.outcomes),
        "delta": options.delta,
    }


def _read_outcomes(texts: list[str] | None) -> tuple[float | None, float | None] | None:
    """The ends of --outcomes; the Python interface checks that they are a range."""
    if texts is None:
        return None
    try:
        low, high = (None if text.strip() == "none" else float(text) for text in texts)
    except ValueError:
        raise InvalidInput(
            f"--outcomes {' '.join(text.strip() for text in texts)}: give two numbers, such as "
            "0 1, or none for an end that is not known."
        ) from None
    return low, high


def read_plot(text: str | None) -> Path | None:
    """The file of --plot, checked now, since a long run comes before it is written."""
    if text is None:
        return None
    from partita._optional import require

    require("matplotlib")
    path = Path(text)
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InvalidInput(f"--plot {text}: give a name that ends in .png, .svg or .pdf.")
    if not path.parent.is_dir():
        raise InvalidInput(f"--plot {text}: there is no folder {path.parent}.")
    return path

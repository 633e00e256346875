"""What the commands share: exit codes, errors as one line, options."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

from partita.errors import PartitaError

#: Exit codes: bad input, and what shells use for Ctrl-C.
REFUSED, INTERRUPTED = 2, 130


def guarded(command: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """Run a command; its exit code. Errors are one line on stderr."""
    try:
        return command(options)
    except KeyboardInterrupt:
        sys.stderr.write("partita: stopped before anything was run.\n")
        return INTERRUPTED
    except PartitaError as error:
        return _refuse(str(error))
    except BrokenPipeError:
        return unheard()
    except OSError as error:
        return _refuse(f"{error.filename or options.out}: {error.strerror or error}.")


def unheard() -> int:
    """The exit code once whoever read our output has gone: nobody is left to tell."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def _refuse(message: str) -> int:
    sys.stderr.write(f"partita: {' '.join(message.split())}\n")
    return REFUSED


def add_running_options(parser: argparse.ArgumentParser, out: str) -> None:
    """Options of every command that makes runs: how, and the folder they are kept in."""
    parser.add_argument("--jobs", type=int, metavar="N", help="runs at once (one a core)")
    parser.add_argument(
        "--backend",
        default="loky",
        metavar="NAME",
        help="where runs are made: loky, the cores of this machine (default), or dask or ray, a "
        "cluster (DASK_SCHEDULER_ADDRESS or RAY_ADDRESS says which)",
    )
    parser.add_argument("--out", default=out, metavar="DIR", help=f"folder of the results ({out})")

"""`partita create`, `ask`, `tell`, `cancel`, `show` and `export`: studies for shells and scripts.

Nothing heavy is imported before a command runs.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from typing import TYPE_CHECKING, Any

from partita.errors import InvalidInput

from .shared import guarded

if TYPE_CHECKING:
    from partita.optimize.optimizer import Trial
    from partita.study.study import Study

_CREATE_EPILOG = """example: partita create tune.db --param lr:1e-4:1e-1:log --param depth:1:12:int
         partita ask tune.db          prints: 0 lr=0.0021 depth=7
         partita tell tune.db 0 0.31
         partita show tune.db"""


def add_parsers(commands: Any) -> None:
    """Add the commands to those of a parser, as `add_subparsers` returned them."""
    _add_create(commands)
    ask = _command(commands, "ask", "the next trial of a study: its number and parameters", _ask)
    ask.add_argument("--count", type=int, default=1, metavar="N", help="so many trials (1)")
    ask.add_argument("--json", action="store_true", help="a JSON object a line")
    tell = _command(commands, "tell", "the value of a trial", _tell)
    tell.add_argument("number", type=int, help="of the trial, as ask printed it")
    # What remains: numbers such as -1e-5 look like options to argparse.
    tell.add_argument("value", nargs=argparse.REMAINDER, metavar="VALUE", help="a number")
    cancel = _command(commands, "cancel", "give up a trial, whose evaluation failed", _cancel)
    cancel.add_argument("number", type=int, help="of the trial, as ask printed it")
    show = _command(commands, "show", "what a study knows: the answer, progress, cells", _show)
    show.add_argument("--json", action="store_true", help="as one JSON object")
    show.add_argument("--plot", metavar="IMAGE", help="draw it into a .png, .svg or .pdf file")
    export = _command(commands, "export", "all trials of a study as a table", _export)
    export.add_argument(
        "out", metavar="OUT", help="a .csv or .parquet file, or - for CSV on stdout"
    )


def _command(commands: Any, name: str, text: str, action: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.add_argument("file", metavar="FILE", help="of the study, such as tune.db")
    parser.set_defaults(run=lambda options: guarded(action, options), out=None)
    return parser


def _add_create(commands: Any) -> None:
    text = "begin a study, to ask and tell through a file"
    parser = commands.add_parser(
        "create",
        help=text,
        description=text,
        epilog=_CREATE_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("file", metavar="FILE", help="such as tune.db; it must not be a study yet")
    add(
        "--param",
        action="append",
        default=[],
        metavar="NAME:...",
        help="one for each, as for `partita minimize`",
    )
    add("--direction", choices=("minimize", "maximize"), default="minimize", help="(minimize)")
    add("--evals", type=int, metavar="N", help="evaluations planned, if known")
    add("--seed", type=int, default=0, metavar="N", help="same seed and values, same trials (0)")
    add("--policy", metavar="NAME", help="one of `partita policies` instead of the calibrated one")
    add("--norm-bound", type=float, metavar="B", help="with the next two: proven bounds")
    add("--noise", type=float, metavar="L", help="noise is L-sub-Gaussian: its deviation, or more")
    add("--kernel", metavar="NU:LENGTHSCALE", help="a Matérn kernel, such as 1.5:0.2")
    add("--delta", type=float, default=0.1, metavar="P", help="chance that a bound fails (0.1)")
    add("--expire-after", type=float, metavar="S", help="give trials up that take longer (never)")
    parser.set_defaults(run=lambda options: guarded(_create, options), out=None)


def _create(options: argparse.Namespace) -> int:
    from partita.study.study import Study

    from .minimize import read_model
    from .params import read_params

    if options.policy is not None and ":" in options.policy:
        raise InvalidInput(
            f"--policy {options.policy}: a policy of your own is not stored, so that `ask` and "
            "`tell` would not find it. Give one of `partita policies`"
        )
    Study.open(
        options.file,
        read_params(options.param),
        direction=options.direction,
        seed=options.seed,
        n_evals=options.evals,
        policy=options.policy,
        **read_model(options),
        expire_after=options.expire_after,
        must_be_new=True,
    ).close()
    return 0


def _ask(options: argparse.Namespace) -> int:
    if options.count < 1:
        raise InvalidInput(f"--count {options.count}: give a whole number of at least 1")
    with _study(options) as study:
        for _ in range(options.count):
            trial = study.ask()
            sys.stdout.write(_as_json(trial) if options.json else _as_words(trial))
            sys.stdout.flush()
    return 0


def _tell(options: argparse.Namespace) -> int:
    words = options.value
    try:
        (word,) = words
        value = float(word)
    except ValueError:
        given = shlex.join(words) or "nothing"
        raise InvalidInput(f"tell {options.number}: {given} was given, give one number") from None
    with _study(options) as study:
        study.tell(options.number, value)
    return 0


def _cancel(options: argparse.Namespace) -> int:
    with _study(options) as study:
        study.cancel(options.number)
    return 0


def _show(options: argparse.Namespace) -> int:
    from . import report
    from .minimize import check_plot

    plot = None if options.plot is None else check_plot(options.plot)
    with _study(options) as study:
        found = report.summary(study)
        if options.json:
            sys.stdout.write(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
        else:
            sys.stdout.write(report.text(found))
        sys.stdout.flush()
        if plot is not None:
            if not found["evaluations"]:
                raise InvalidInput("--plot: nothing has been told yet, so there is nothing to draw")
            report.result(study).plot(plot)
            sys.stderr.write(f"partita: drawn in {plot}\n")
    return 0


def _export(options: argparse.Namespace) -> int:
    from partita.study.export import export, write_csv

    with _study(options) as study:
        if options.out == "-":
            write_csv(study, sys.stdout)
        else:
            export(study, options.out)
    return 0


def _study(options: argparse.Namespace) -> Study:
    from partita.study.study import Study

    return Study.open(options.file)


def _as_words(trial: Trial) -> str:
    """A trial on a line: its number, then name=value, as a shell would read them."""
    from .program import argument

    params = trial.params
    pairs = dict(params) if isinstance(params, dict) else dict(_places(params))
    words = [str(trial.number), *(f"{name}={argument(value)}" for name, value in pairs.items())]
    return " ".join(map(shlex.quote, words)) + "\n"


def _places(x: Any) -> list[tuple[str, float]]:
    return [(f"x{i}", value) for i, value in enumerate(x.tolist())]


def _as_json(trial: Trial) -> str:
    from partita.study.state import params_json

    return f'{{"number": {trial.number}, "params": {params_json(trial.params)}}}\n'

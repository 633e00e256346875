"""`partita create`: begin a study, for shells and scripts."""

from __future__ import annotations

import argparse
from typing import Any

from partita.errors import InvalidInput

from .named import add_constraint_option, read_constraints
from .params import read_params
from .shared import add_model_options, guarded, read_model

_EPILOG = """example: partita create tune.db --param lr:1e-4:1e-1:log --param depth:1:12:int
         partita ask tune.db          prints: 0 lr=0.0021 depth=7
         partita tell tune.db 0 0.31
         partita show tune.db"""


def add_parser(commands: Any) -> None:
    """Add the command to those of a parser, as `add_subparsers` returned them."""
    text = "begin a study, to ask and tell through a file"
    parser = commands.add_parser(
        "create",
        help=text,
        description=text,
        epilog=_EPILOG,
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
    add_model_options(parser)
    add_constraint_option(parser)
    add("--expire-after", type=float, metavar="S", help="give trials up that take longer (never)")
    parser.set_defaults(run=run)


@guarded
def run(options: argparse.Namespace) -> int:
    """Make the file of a study."""
    from partita.study.study import Study

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
        **read_model(options),
        constraints=read_constraints(options),
        expire_after=options.expire_after,
        must_be_new=True,
    ).close()
    return 0

"""`partita create`: create a study, for shells and scripts."""

from __future__ import annotations

import argparse
from typing import Any

from partita.errors import InvalidInput

from .contexts import add_ranges_option, read_ranges
from .named import add_constraint_option, read_constraints
from .params import read_params
from .shared import add_model_options, add_seed_option, guarded, read_model, read_seed, say

_EPILOG = """example: partita create tune.db --param lr:1e-4:1e-1:log --param depth:1:12:int
         partita ask tune.db          prints: 0 lr=0.0021 depth=7
         partita tell tune.db 0 0.31
         partita show tune.db"""


def add_parser(commands: Any) -> None:
    """Add the command to `commands`, which `add_subparsers` returned."""
    text = "create a study, to ask and tell through a file"
    parser = commands.add_parser(
        "create",
        help=text,
        description=text,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("file", metavar="FILE", help="a new file, such as tune.db")
    add(
        "--param",
        action="append",
        default=[],
        metavar="NAME:...",
        help="once for each parameter, as for `partita minimize`",
    )
    add_ranges_option(parser)
    add("--direction", choices=("minimize", "maximize"), default="minimize", help="(minimize)")
    add("--evals", type=int, metavar="N", help="planned evaluations, if known")
    add_seed_option(parser, "trials")
    add_model_options(parser)
    add_constraint_option(parser)
    add("--expire-after", type=float, metavar="S", help="cancel trials that take longer (never)")
    parser.set_defaults(run=run)


@guarded
def run(options: argparse.Namespace) -> int:
    """Create the file of a study."""
    from partita.study.study import Study

    if options.policy is not None and ":" in options.policy:
        raise InvalidInput(
            f"--policy {options.policy}: a policy of your own is not stored, so `ask` and `tell` "
            "would not find it. Give one of `partita policies`"
        )
    seed = read_seed(options.seed)
    study = Study.open(
        options.file,
        read_params(options.param),
        direction=options.direction,
        seed=seed,
        n_evals=options.evals,
        **read_model(options),
        constraints=read_constraints(options),
        context=read_ranges(options.context),
        drift=options.drift or None,
        expire_after=options.expire_after,
        must_be_new=True,
    )
    study.close()
    return 0 if seed is not None else say(f"seed {study.seed}", 0)

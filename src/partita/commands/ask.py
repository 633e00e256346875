"""`partita ask`: the next trials of a study."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import TYPE_CHECKING, Any

from partita._text import HIDDEN
from partita.errors import InvalidInput

from .contexts import add_context_option, read_context
from .program import argument
from .shared import add_study_command, guarded, opened

if TYPE_CHECKING:
    from partita.optimize.trial import Trial
    from partita.space import Space


def add_parser(commands: Any) -> None:
    """Add the command to `commands`, which `add_subparsers` returned."""
    text = "print the next trial of a study: its number and parameters"
    parser = add_study_command(commands, "ask", text, run)
    parser.add_argument("--count", type=int, default=1, metavar="N", help="number of trials (1)")
    add_context_option(parser, "what the trials are for")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")


@guarded
def run(options: argparse.Namespace) -> int:
    """Print the next trials, one line each."""
    if options.count < 1:
        raise InvalidInput(f"--count {options.count}: give a whole number of at least 1")
    with opened(options) as study:
        if not options.json:
            _check_words(study.space)
        context = read_context(options.context, study)
        for trial in study.ask(options.count, context=context):
            sys.stdout.write(_as_json(trial) if options.json else _as_words(trial))
        sys.stdout.flush()
    return 0


def _check_words(space: Space) -> None:
    """Refuse parameters that a shell, or the program it runs, would misinterpret.

    A study may come from a stranger: a name may look like an option, and a line break in a choice
    would begin another trial.
    """
    for name, parameter in zip(space.names or (), space.parameters, strict=False):
        if name.startswith("-") or "=" in name:
            raise InvalidInput(f"the name {name!r} is not safe in a shell: give --json")
        for choice in getattr(parameter, "choices", ()):
            if HIDDEN.search(argument(choice)):
                raise InvalidInput(
                    f"the choice {choice!r:.100} of {name} does not fit on a line: give --json"
                )


def _as_words(trial: Trial) -> str:
    """A trial as one line: its number, then name=value, quoted for a shell."""
    params = trial.params
    pairs = params if isinstance(params, dict) else _by_place(params)
    pairs = {**pairs, **(trial.context or {})}
    words = [str(trial.number), *(f"{name}={argument(value)}" for name, value in pairs.items())]
    return " ".join(map(shlex.quote, words)) + "\n"


def _as_json(trial: Trial) -> str:
    from partita.study.state import params_json

    context = f', "context": {params_json(trial.context)}' if trial.context is not None else ""
    return f'{{"number": {trial.number}, "params": {params_json(trial.params)}{context}}}\n'


def _by_place(x: Any) -> dict[str, float]:
    return {f"x{i}": value for i, value in enumerate(x.tolist())}

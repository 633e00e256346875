"""`partita minimize` and `partita maximize`: tune the user's own program."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import logging
import math
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from partita._text import bounded, duration, printable_lines
from partita.errors import EvaluationFailed, InvalidInput

from .named import (
    add_constraint_option,
    constraint_rows,
    constraints_json,
    infeasible_text,
    read_constraints,
    spoken,
)
from .params import names_of, read_params, read_point
from .program import Piece, Program, Template, argument, read_template
from .shared import (
    FAILED,
    INTERRUPTED,
    add_model_options,
    add_seed_option,
    finite,
    guarded,
    read_model,
    read_plot,
    read_seed,
    say,
)

if TYPE_CHECKING:
    from partita.optimize.result import Result

NAMES = ("minimize", "maximize")
#: Statuses of a result, see `partita.optimize.result.Result`.
STATUS_DONE, STATUS_INTERRUPTED = 0, 4
#: The largest number of simultaneous programs; a larger number is surely a mistake.
MOST_JOBS = 1000
#: What a program that replicates is given besides its parameters, and what a command shows of that.
REPLICATES = {"count": 1000, "seed": 0}
#: Values that a program prints in one call, at most, unless the user says otherwise.
MOST_PRINTED = 2000
#: Signals that end a run early, with a result: Ctrl-C, termination, a closed terminal.
INTERRUPTS = ("SIGINT", "SIGTERM", "SIGHUP")
#: A description of the bounds for each guarantee of a result.
MEANING = {
    "proven": "proven, under your assumptions",
    "published": "as published",
    "calibrated": "estimated, by a model fitted to the values",
    "bayesian": "estimated, by the given model",
    "none": "none: this policy gives none",
}

_USAGE = """partita {name} --param NAME:LOW:HIGH [--param ...] --evals N [options]
                        -- PROGRAM [ARGUMENT ...]"""
_EPILOG = """Parameters: NAME:LOW:HIGH a real number, NAME:LOW:HIGH:log the same on a log scale,
NAME:LOW:HIGH:int a whole number (int:log too), NAME:LOW:HIGH:STEP in steps, NAME:a,b,c choices,
NAME:bool true or false. KIND=a/NAME:... exists only if the choice KIND, given before it, is a;
KIND=a,b/NAME:... if it is a or b. In the program's arguments, {NAME} is replaced by the value;
write {{ and }} for braces. The argument of a parameter that does not exist is left out, and with
{x} alone the option before it: `--x {x}` and `--x={x}` are the same. The program is run without a
shell. The last number it prints on stdout is its value; with --std, the last two are the value and
its standard deviation. With --replicates, {count} is the number of values to make and {seed} a
number to draw random ones from; the program prints that many values, or lines mean=..., std=...
(their sample deviation) and count=... With --constraint it prints name=value lines, and the one
name without a constraint is optimised. A non-zero exit code, no number or a timeout is a failed
evaluation, which is counted; where evaluations fail is learned.

example: partita minimize --param lr:1e-4:1e-1:log --param depth:1:12:int --evals 500 \\
           -- ./train.sh --rate={lr} {depth}
         partita minimize --param model:svm,forest --param model=svm/C:1e-3:1e3:log \\
           --param model=forest/trees:10:500:int --evals 200 \\
           -- ./fit.py {model} C={C} trees={trees}"""


def add_parser(commands: Any) -> None:
    """Add the commands to `commands`, which `add_subparsers` returned."""
    for name in NAMES:
        parser = commands.add_parser(
            name,
            help=f"{name} what a program of yours prints",
            usage=_USAGE.format(name=name),
            description=f"Find the arguments that {name} the number your program prints.",
            epilog=_EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.add_argument("stray", nargs="*", help=argparse.SUPPRESS)
        _add_options(parser)
        parser.set_defaults(run=run, direction=name)


def _add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--param",
        action="append",
        default=[],
        metavar="NAME:...",
        help="once for each parameter; see below",
    )
    add("--evals", type=int, metavar="N", help="stop after N values")
    add(
        "--seconds",
        type=float,
        metavar="S",
        help="stop after S seconds; running programs are ended",
    )
    add("--tolerance", type=float, metavar="E", help="stop once the certificate is at most E")
    add(
        "--x0",
        action="append",
        default=[],
        metavar="NAME=VALUE,...",
        help="first point to evaluate, such as today's parameters; all are needed; repeatable",
    )
    add("--jobs", type=int, default=1, metavar="N", help="programs run at the same time (1)")
    add(
        "--std",
        action="store_true",
        help="the program prints its value, then its standard deviation",
    )
    add(
        "--replicates",
        action="store_true",
        help="the program makes {count} values at a time, from {seed}; --evals counts values",
    )
    add("--batch", type=int, metavar="N", help="with --replicates: the largest {count} (2000)")
    add_constraint_option(parser)
    add(
        "--timeout",
        type=float,
        metavar="S",
        help="end a program that takes longer; it counts as failed",
    )
    add_seed_option(parser, "arguments")
    add_model_options(parser)
    add("--study", metavar="FILE", help="keep the run in a file: the same command resumes it")
    add("--plot", metavar="FILE", help="draw the result into a .png, .svg or .pdf file")
    add("--json", action="store_true", help="print the result as JSON")
    add("--quiet", action="store_true", help="no progress bar")


def split_program(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Partita's arguments, and those after the first `--`: the user's program, unchanged."""
    ours = list(arguments)
    if ours and ours[0] in NAMES and "--" in ours:
        i = ours.index("--")
        return _joined(ours[:i]), ours[i + 1 :]
    return ours, []


def _joined(ours: Sequence[str]) -> list[str]:
    """Keep argparse from taking what begins with a dash for an option.

    `--param -x:0:1` is joined into one argument. The numbers after `--outcomes` get a space in
    front, because -1e3 and -inf do not look like numbers to argparse.
    """
    joined: list[str] = []
    for text in ours:
        if "--outcomes" in joined[-2:] and text.startswith("-"):
            joined.append(f" {text}")
        elif joined and joined[-1] == "--param" and text.startswith("-") and ":" in text:
            joined[-1] += f"={text}"
        else:
            joined.append(text)
    return joined


# -- running ---------------------------------------------------------------------------------------


def _optimise(options: argparse.Namespace) -> int:
    """Run the program as often as it takes, and print the result."""
    from partita.optimize.interrupts import as_ctrl_c

    spec, template = _read(options)
    plot = read_plot(options.plot)
    read_constraints(options)
    if options.std:
        _check_takes_std(options, spec)
    try:
        with _handling(("SIGTERM", "SIGHUP"), as_ctrl_c, only_default=True), _failures_untold():
            named = bool(options.constraint)
            kinds = {"std": options.std, "named": named, "replicates": options.replicates}
            program = Program(template, options.timeout, **kinds)
            result = _result(options, spec, program)
    except EvaluationFailed as error:
        why = "no evaluation finished in time."
        if error.__cause__ is not None:
            why = f"every evaluation failed. The first: {_failure(error.__cause__)}"
            if str(error).startswith("the run ended at its first"):
                why = spoken(str(error))
        if options.json:
            sys.stdout.write(printable_lines(_nothing_as_json(why, error, options)))
            sys.stdout.flush()
        return say(why, FAILED)
    interrupted = result.status == STATUS_INTERRUPTED
    if interrupted and sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")  # erase the ^C that a terminal shows
        sys.stderr.flush()
    text = _as_json if options.json else _as_text
    sys.stdout.write(printable_lines(text(result, options, template)))
    sys.stdout.flush()
    if plot is not None:
        result.plot(plot)
        say(f"figure written to {plot}")
    if interrupted:
        return INTERRUPTED
    return 0 if result.success else FAILED


run = guarded(_optimise, stopped="stopped before any evaluation finished.", broken=FAILED)


def _result(options: argparse.Namespace, spec: Mapping[str, Any], program: Program) -> Result:
    from concurrent.futures import ThreadPoolExecutor

    from partita.front import maximize, minimize

    loop = minimize if options.direction == "minimize" else maximize
    # A thread even for a single job, so that the time limit and Ctrl-C do not wait for it.
    pool = ThreadPoolExecutor(options.jobs)
    try:
        return loop(
            program,
            spec,
            n_evals=options.evals,
            max_seconds=options.seconds,
            tolerance=options.tolerance,
            x0=[read_point(text, spec) for text in options.x0] or None,
            seed=read_seed(options.seed),
            **read_model(options),
            constraints=read_constraints(options),
            executor=pool,
            in_flight=None if options.replicates else options.jobs,
            batch=options.batch or (MOST_PRINTED if options.replicates else None),
            replicates=options.replicates,
            progress=False if options.quiet else None,
            study=options.study,
        )
    finally:
        with _handling(INTERRUPTS, signal.SIG_IGN):  # a second Ctrl-C must not lose the result
            program.stop()
            pool.shutdown(wait=True, cancel_futures=True)


def _check_takes_std(options: argparse.Namespace, spec: Mapping[str, Any]) -> None:
    """Refuse --std with a policy that cannot use it, before anything runs."""
    from partita.optimize.optimizer import Optimizer

    optimizer = Optimizer(spec, n_evals=options.evals, **read_model(options))
    if not optimizer.game.takes_std:
        raise InvalidInput(
            f"--std: {type(optimizer.policy).__name__} does not use the noise of single values. "
            "Leave --std out, and let the program print its value last, or leave --policy out."
        )


@contextlib.contextmanager
def _handling(names: Sequence[str], handler: Any, only_default: bool = False) -> Iterator[None]:
    """Install a handler for certain signals, in the main thread only: others cannot have one.

    With `only_default`, signals that are already ignored (by nohup, say) or handled are unchanged.
    """
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (getattr(signal, name) for name in names if hasattr(signal, name)):
            if not only_default or signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@contextlib.contextmanager
def _failures_untold() -> Iterator[None]:
    """Do not log failed evaluations: the result reports them at the end."""
    log = logging.getLogger("partita.optimize")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def _read(options: argparse.Namespace) -> tuple[dict[str, Any], Template]:
    """The parameters and the program, checked before anything runs."""
    if options.stray:
        raise InvalidInput(
            f"{shlex.join(options.stray)}: write two dashes before the program, such as -- "
            f"{shlex.join(options.stray)}"
        )
    spec = read_params(options.param)
    names = names_of(spec)
    always = [name for name, is_always in names.items() if is_always]
    also = REPLICATES if options.replicates else ()
    template = read_template(options.program, names, [*always, *also], also)
    _check_replicates(options, spec, template)
    if options.evals is None and options.seconds is None and options.tolerance is None:
        raise InvalidInput(
            "nothing would end the run: give --evals N, --seconds S or --tolerance E, or several."
        )
    for name in ("evals", "seconds", "tolerance", "timeout", "batch"):
        value = getattr(options, name)
        if value is not None and not 0 < value < math.inf:
            raise InvalidInput(f"--{name} {value}: give a finite number above 0.")
    if not 1 <= options.jobs <= MOST_JOBS:
        raise InvalidInput(f"--jobs {options.jobs}: give a number from 1 to {MOST_JOBS}.")
    read_seed(options.seed)
    return spec, template


def _check_replicates(
    options: argparse.Namespace, spec: Mapping[str, Any], template: Template
) -> None:
    """Refuse what does not go with --replicates, or needs it."""
    if not options.replicates:
        if options.batch is not None:
            raise InvalidInput(
                "--batch: the largest {count} of --replicates. Give that as well, or leave it out."
            )
        return
    for name in REPLICATES:
        if name in names_of(spec):
            raise InvalidInput(
                f"--param {name}:...: with --replicates {{{name}}} is what Partita gives the "
                "program. Give the parameter another name"
            )
    for option in ("std", "constraint"):
        if getattr(options, option):
            raise InvalidInput(f"--replicates cannot be combined with --{option}. Leave one out")
    if Piece("count", True) not in itertools.chain(*template.arguments):
        raise InvalidInput(
            "--replicates: put {count} where the program takes the number of values, and {seed} "
            "where it takes a seed, such as -- ./simulate --runs {count} --seed {seed}"
        )


# -- printing --------------------------------------------------------------------------------------


def _as_text(result: Result, options: argparse.Namespace, template: Template) -> str:
    """The result for users: what was run, the parameters, their value, the command to run."""
    failed = f", {result.nfail:,} failed" if result.nfail else ""
    # Why the run ended, if not because all evaluations were made.
    why = f" {result.message.partition('. ')[0].rstrip('.')}."
    width = max(*map(len, (*result.params, *result.constraints)), len("certificate"))
    rows = [
        *((name, _short(value)) for name, value in result.params.items()),
        ("", ""),
        ("value", bounded(result.fun, result.lower, result.upper)),
        *constraint_rows(result.constraints),
        *_certificate_rows(result, options.direction),
        ("bounds", MEANING.get(result.guarantee, result.guarantee)),
    ]
    if read_seed(options.seed) is None:
        rows.append(("seed", str(result.seed)))
    lines = [
        f"{result.nfev:,} evaluations{failed}, {duration(result.seconds)}."
        f"{'' if result.status == STATUS_DONE else why}",
        "",
        *(f"  {name:<{width}}  {text}".rstrip() for name, text in rows),
    ]
    lines += [text for line in infeasible_text(result.message) for text in ("", line)]
    if result.errors:
        lines += ["", f"first failure: {_failure(result.errors[0])}"]
    lines += [
        "",
        "to run it there:",
        f"  {shlex.join(template.fill({**REPLICATES, **result.params}))}",
        "",
    ]
    return "\n".join(lines)


def _failure(error: BaseException) -> str:
    command = shlex.join(getattr(error, "command", ()))
    return f"{error}\n  {command}" if command else spoken(str(error))


def _certificate_rows(result: Result, direction: str) -> list[tuple[str, str]]:
    from partita.optimize.wording import certificate_says, gap_says, such_held

    other, value = "lower" if direction == "minimize" else "higher", result.certificate
    if not math.isfinite(value):
        text = f"none: it is not known how much {other} the value can be elsewhere"
        return [("certificate", text)]
    says = certificate_says(value, result.guarantee, f"no other value is {other}")
    held = such_held(value, result.guarantee, result.optimizer.space.dim)
    gap = gap_says(value, result.guarantee, result.history.trials)
    rows = [("certificate", f"{value:.4g}: {says}")]
    return rows + [(name, text) for name, text in (("in tests", held), ("unexplored", gap)) if text]


def _short(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else argument(value)


def _as_json(result: Result, options: argparse.Namespace, template: Template) -> str:
    """The result for scripts: one JSON object; unknown values are null."""
    return _json(
        options,
        params=dict(result.params),
        value=result.fun,
        lower=result.lower,
        upper=result.upper,
        certificate=result.certificate,
        guarantee=result.guarantee,
        constraints=constraints_json(result.constraints),
        evaluations=result.nfev,
        failed=result.nfail,
        seconds=result.seconds,
        success=bool(result.success),
        message=result.message,
        errors=[str(error) for error in result.errors],
        command=template.fill({**REPLICATES, **result.params}),
        seed=result.seed,
    )


def _nothing_as_json(why: str, error: EvaluationFailed, options: argparse.Namespace) -> str:
    """The JSON object for a run without any value, with the reason."""
    unknown = ("params", "value", "lower", "upper", "certificate", "guarantee", "constraints")
    return _json(
        options,
        **dict.fromkeys(unknown),
        evaluations=0,
        failed=error.nfail,
        seconds=None,
        success=False,
        message=why[0].upper() + why[1:],
        errors=[str(reason) for reason in error.errors],
        command=None,
        seed=read_seed(options.seed),
    )


def _json(options: argparse.Namespace, **fields: object) -> str:
    content = finite({"direction": options.direction, **fields})
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"

"""`partita minimize` and `partita maximize`: tune the user's own program."""

from __future__ import annotations

import argparse
import contextlib
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
)
from .params import read_params, read_point
from .program import Program, Template, argument, read_template
from .shared import (
    FAILED,
    INTERRUPTED,
    add_model_options,
    finite,
    guarded,
    read_model,
    read_plot,
    say,
)

if TYPE_CHECKING:
    from partita.optimize.result import Result

NAMES = ("minimize", "maximize")
#: Statuses of a result, see `partita.optimize.result.Result`.
STATUS_DONE, STATUS_INTERRUPTED = 0, 4
#: Programs at once, at most: more are surely a slip.
MOST_JOBS = 1000
#: What ends a run early, with what it has: Ctrl-C, a request to end, a terminal that is closed.
INTERRUPTS = ("SIGINT", "SIGTERM", "SIGHUP")
#: What stands behind the bounds, by a result's guarantee.
MEANING = {
    "proven": "proven, given what you stated",
    "published": "as published",
    "calibrated": "estimated, by a model fitted to the values",
    "bayesian": "estimated, by the model given",
    "none": "none: this policy gives none",
}

_USAGE = """partita {name} --param NAME:LOW:HIGH [--param ...] --evals N [options]
                        -- PROGRAM [ARGUMENT ...]"""
_EPILOG = """Parameters: NAME:LOW:HIGH a real number, NAME:LOW:HIGH:log the same on a log scale,
NAME:LOW:HIGH:int a whole number (int:log too), NAME:LOW:HIGH:STEP in steps, NAME:a,b,c choices,
NAME:bool true or false. The program gets each value wherever its name stands in braces; {{ and }}
are braces. It is run without a shell. The last number it prints on stdout is its value, or with
--std the last but one; with --constraint it prints name=value lines, and the one name without a
constraint is optimised. A non-zero exit, no number or a timeout is a failed evaluation, which is
counted and left out; where that happens is learned.

example: partita minimize --param lr:1e-4:1e-1:log --param depth:1:12:int --evals 500 \\
           -- ./train.sh --rate={lr} {depth}"""


def add_parser(commands: Any) -> None:
    """Add the commands to those of a parser, as `add_subparsers` returned them."""
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
    add("--param", action="append", default=[], metavar="NAME:...", help="one for each; see below")
    add("--evals", type=int, metavar="N", help="stop after N values")
    add("--seconds", type=float, metavar="S", help="stop after S seconds, whatever is running")
    add("--tolerance", type=float, metavar="E", help="stop once the certificate is at most E")
    add(
        "--x0",
        action="append",
        default=[],
        metavar="NAME=VALUE,...",
        help="begin there, all parameters given, such as those in use today; may be repeated",
    )
    add("--jobs", type=int, default=1, metavar="N", help="programs at once (1)")
    add("--std", action="store_true", help="it prints its value's standard deviation behind it")
    add_constraint_option(parser)
    add("--timeout", type=float, metavar="S", help="end a program that takes longer, as failed")
    add("--seed", type=int, default=0, metavar="N", help="same seed and values, same arguments (0)")
    add_model_options(parser)
    add("--study", metavar="FILE", help="keep the run in a file: the same command resumes it")
    add("--plot", metavar="FILE", help="draw the result into a .png, .svg or .pdf file")
    add("--json", action="store_true", help="print the result as JSON")
    add("--quiet", action="store_true", help="no progress bar")


def split_program(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Arguments of ours, and those after the first `--`: the user's program, as it stands."""
    ours = list(arguments)
    if ours and ours[0] in NAMES and "--" in ours:
        i = ours.index("--")
        return _joined(ours[:i]), ours[i + 1 :]
    return ours, []


def _joined(ours: Sequence[str]) -> list[str]:
    """Arguments with `--param -x:0:1` in one, which argparse would take for two options."""
    joined: list[str] = []
    for text in ours:
        if joined and joined[-1] == "--param" and text.startswith("-") and ":" in text:
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
            program = Program(template, options.timeout, std=options.std, named=named)
            result = _result(options, spec, program)
    except EvaluationFailed as error:
        why = "no evaluation was done in time."
        if error.__cause__ is not None:
            why = f"every evaluation failed. The first: {_failure(error.__cause__)}"
        if options.json:
            sys.stdout.write(printable_lines(_nothing_as_json(why, error, options)))
            sys.stdout.flush()
        return say(why, FAILED)
    interrupted = result.status == STATUS_INTERRUPTED
    if interrupted and sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")  # the ^C that a terminal shows
        sys.stderr.flush()
    text = _as_json if options.json else _as_text
    sys.stdout.write(printable_lines(text(result, options, template)))
    sys.stdout.flush()
    if plot is not None:
        result.plot(plot)
        say(f"drawn in {plot}")
    if interrupted:
        return INTERRUPTED
    return 0 if result.success else FAILED


run = guarded(_optimise, stopped="stopped before any evaluation was done.", broken=FAILED)


def _result(options: argparse.Namespace, spec: Mapping[str, Any], program: Program) -> Result:
    from concurrent.futures import ThreadPoolExecutor

    from partita.front import maximize, minimize

    loop = minimize if options.direction == "minimize" else maximize
    # One job has a thread as well, so that the time limit and Ctrl-C do not wait for it.
    pool = ThreadPoolExecutor(options.jobs)
    try:
        return loop(
            program,
            spec,
            n_evals=options.evals,
            max_seconds=options.seconds,
            tolerance=options.tolerance,
            x0=[read_point(text, spec) for text in options.x0] or None,
            seed=options.seed,
            **read_model(options),
            constraints=read_constraints(options),
            executor=pool,
            in_flight=options.jobs,
            progress=False if options.quiet else None,
            study=options.study,
        )
    finally:
        with _handling(INTERRUPTS, signal.SIG_IGN):  # an impatient second Ctrl-C loses nothing
            program.stop()
            pool.shutdown(wait=True, cancel_futures=True)


def _check_takes_std(options: argparse.Namespace, spec: Mapping[str, Any]) -> None:
    """Refuse --std with a policy that has no use for it, before anything runs."""
    from partita.optimize.optimizer import Optimizer

    optimizer = Optimizer(spec, n_evals=options.evals, **read_model(options))
    if not optimizer.game.takes_std:
        raise InvalidInput(
            f"--std: {type(optimizer.policy).__name__} has no use for the noise of single values. "
            "Leave --std out, and let the program print its value last, or leave --policy out."
        )


@contextlib.contextmanager
def _handling(names: Sequence[str], handler: Any, only_default: bool = False) -> Iterator[None]:
    """Let a handler take certain signals, if this is the main thread: elsewhere it is no use.

    With `only_default`, signals that somebody ignores or handles (nohup, for one) stay as they are.
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
    """Keep the log from telling of evaluations that fail: the result does at the end."""
    log = logging.getLogger("partita.optimize")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def _read(options: argparse.Namespace) -> tuple[dict[str, Any], Template]:
    """The parameters and the program, or an error before anything runs."""
    if options.stray:
        raise InvalidInput(
            f"{shlex.join(options.stray)}: write two dashes before the program, such as -- "
            f"{shlex.join(options.stray)}"
        )
    spec = read_params(options.param)
    template = read_template(options.program, spec)
    if options.evals is None and options.seconds is None and options.tolerance is None:
        raise InvalidInput(
            "when to stop? Give --evals N, --seconds S or --tolerance E, or several of them."
        )
    for name in ("evals", "seconds", "tolerance", "timeout"):
        value = getattr(options, name)
        if value is not None and not 0 < value < math.inf:
            raise InvalidInput(f"--{name} {value}: give a finite number above 0.")
    if not 1 <= options.jobs <= MOST_JOBS:
        raise InvalidInput(f"--jobs {options.jobs}: give a number from 1 to {MOST_JOBS}.")
    if options.seed < 0:
        raise InvalidInput(f"--seed {options.seed}: give a whole number of at least 0.")
    return spec, template


# -- printing --------------------------------------------------------------------------------------


def _as_text(result: Result, options: argparse.Namespace, template: Template) -> str:
    """The result for a reader: what was run, the parameters, the value there, the next command."""
    failed = f", {result.nfail:,} failed" if result.nfail else ""
    # Why the run ended, if not because all evaluations were made.
    why = f" {result.message.partition('. ')[0].rstrip('.')}."
    width = max(*map(len, (*result.params, *result.constraints)), len("certificate"))
    rows = [
        *((name, _short(value)) for name, value in result.params.items()),
        ("", ""),
        ("value", bounded(result.fun, result.lower, result.upper)),
        *constraint_rows(result.constraints),
        ("certificate", _certificate(result.certificate, options.direction)),
        ("bounds", MEANING.get(result.guarantee, result.guarantee)),
    ]
    lines = [
        f"{result.nfev:,} evaluations{failed}, {duration(result.seconds)}."
        f"{'' if result.status == STATUS_DONE else why}",
        "",
        *(f"  {name:<{width}}  {text}".rstrip() for name, text in rows),
    ]
    lines += [text for line in infeasible_text(result.message) for text in ("", line)]
    if result.errors:
        lines += ["", f"first failure: {_failure(result.errors[0])}"]
    lines += ["", "to run it there:", f"  {shlex.join(template.fill(result.params))}", ""]
    return "\n".join(lines)


def _failure(error: BaseException) -> str:
    command = shlex.join(getattr(error, "command", ()))
    return f"{error}\n  {command}" if command else str(error)


def _certificate(value: float, direction: str) -> str:
    other = "lower" if direction == "minimize" else "higher"
    if not math.isfinite(value):
        return f"none: nothing is known of how much {other} it can be elsewhere"
    return f"{value:.4g}: nowhere is it {other} by more"


def _short(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else argument(value)


def _as_json(result: Result, options: argparse.Namespace, template: Template) -> str:
    """The result for a script: one JSON object; what is not known is null."""
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
        command=template.fill(result.params),
    )


def _nothing_as_json(why: str, error: EvaluationFailed, options: argparse.Namespace) -> str:
    """The same for a run without any value: no answer, and why."""
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
    )


def _json(options: argparse.Namespace, **fields: object) -> str:
    content = finite({"direction": options.direction, **fields, "seed": options.seed})
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"

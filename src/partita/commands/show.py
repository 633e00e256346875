"""`partita show`: show the state of a study."""

from __future__ import annotations

import argparse
import json
import math
import sys
from typing import Any

from partita._text import bounded, params_text, printable, printable_lines
from partita.errors import InvalidInput

from .contexts import add_context_option, read_context
from .shared import add_study_command, guarded, opened, read_plot, say

#: The numbers of cells, and of lines of progress, in the text; the JSON has more.
CELLS, STEPS = 5, 8


def add_parser(commands: Any) -> None:
    """Add the command to `commands`, which `add_subparsers` returned."""
    text = "show the state of a study: the recommended point, progress, cells"
    parser = add_study_command(commands, "show", text, run)
    add_context_option(parser, "show what is recommended for it")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--plot",
        metavar="IMAGE",
        help="draw it into a .png, .svg or .pdf file; along the first context, if there are some",
    )
    parser.add_argument(
        "--kind",
        choices=("run", "importance", "slices", "pairs", "timeline"),
        help="what to draw (run)",
    )


@guarded
def run(options: argparse.Namespace) -> int:
    """Print the state of a study, and draw it."""
    from .summary import summary

    plot = read_plot(options.plot)
    if options.kind is not None and plot is None:
        raise InvalidInput(f"--kind {options.kind}: it says what --plot draws. Give --plot as well")
    with opened(options) as study:
        context = read_context(options.context, study)
        shown = summary(study, context)
        text = json.dumps(shown, indent=2, ensure_ascii=False) + "\n"
        sys.stdout.write(printable_lines(text if options.json else _as_text(shown)))
        sys.stdout.flush()
        if plot is not None:
            if not shown["evaluations"]:
                raise InvalidInput("--plot: there are no values yet, so there is nothing to draw")
            first, *others = study.contexts.names or (None,)
            rest = {name: context[name] for name in others} if context else None
            study.plot(plot, options.kind or "run", along=first, context=rest)
            say(f"figure written to {plot}")
    return 0


def _as_text(shown: dict[str, Any]) -> str:
    """The summary as text for users."""
    states = [f"{shown['evaluations']:,} evaluations"]
    states += [f"{shown[k]:,} {k}" for k in ("pending", "failed", "pruned", "expired") if shown[k]]
    lines = [
        f"{shown['study']}: {shown['direction']}, {shown['policy']}, seed {shown['seed']}",
        ", ".join(states),
        *_noise(shown),
    ]
    space = ["", *(f"  {line}" for line in shown["space"])]
    if shown["params"] is None:
        what = "no values yet"
        if shown["evaluations"]:
            names = ", ".join(shown["contexts"])
            what = f"each context has another answer: give --context for each of {names}"
        return "\n".join([*lines, *space, "", what, ""])
    words = [f"{name}={value}" for name, value in (shown["context"] or {}).items()]
    lines += ["", printable(" ".join(["recommended", *(["for", *words] if words else [])]))]
    lines += [f"  {_params(shown)}", f"  value {_value(shown)}"]
    for name, known in (shown["constraints"] or {}).items():
        lines.append(f"  {name} {_constraint(known)}")
    if shown["certificate"] is not None:
        from partita.optimize.wording import certificate_says

        says = certificate_says(shown["certificate"], shown["guarantee"])
        lines.append(f"  certificate {shown['certificate']:.4g}: {says}")
        if shown["certificates_held"]:
            lines.append(f"  in tests {shown['certificates_held']}")
    lines += space
    if shown["best"]:
        lines += ["", "candidates, the one recommended first (mean, bounds, evaluations)"]
    lines += [f"  {_value(row)}, {row['evaluations']} ×: {_params(row)}" for row in shown["best"]]
    if shown["progress"]:
        lines += ["", "progress (evaluations, value at the best point, certificate)"]
    for row in shown["progress"][-STEPS:]:
        bound = row["certificate"]
        note = "" if bound is None or not math.isfinite(bound) else f", certificate {bound:.4g}"
        lines.append(f"  {row['evaluations']:>9,}  {_value(row)}{note}")
    if shown["cells"]:
        lines += ["", "cells of the unit cube with most evaluations (corners, evaluations)"]
    for cell in shown["cells"][:CELLS]:
        low, high = (", ".join(f"{v:.4g}" for v in cell[k]) for k in ("lower", "upper"))
        lines.append(f"  [{low}] to [{high}], {cell['evaluations']:,}")
    return "\n".join([*lines, ""])


def _noise(shown: dict[str, Any]) -> list[str]:
    """A line with the number of values whose noise is known, if there are any."""
    known = shown["known_noise"]
    if known is None:
        return []
    least, greatest = known["least"], known["greatest"]
    size = f"{least:.4g}" if least == greatest else f"{least:.4g} to {greatest:.4g}"
    return [f"noise known for {known['values']:,} of them: standard deviation {size}"]


def _constraint(known: dict[str, Any]) -> str:
    """What is known of a constrained value at the answer, in a line."""
    if known["mean"] is None:
        return f"not known yet: {known['constraint']}"
    value = bounded(known["mean"], known["lower"], known["upper"])
    return f"{value}: {known['constraint']} with probability {known['probability']:.3g}"


def _params(row: dict[str, Any]) -> str:
    """Parameters on one line, even if a choice contains line breaks."""
    return printable(params_text(row["params"]))


def _value(row: dict[str, Any]) -> str:
    return bounded(row["value"], row["lower"], row["upper"])

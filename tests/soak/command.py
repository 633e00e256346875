"""The command: runs parts of the soak, shows what they did, and puts the figures into the docs."""

import argparse
import itertools
import json
import os
import sys
import time
from pathlib import Path

from .diary import Diary, repeat, table, write_summary
from .parts import PARTS
from .workers import each

DOCS = Path(__file__).parents[2] / "docs" / "reliability.md"
#: The lines of the docs between which the table is.
BEGIN, END = "<!-- figures of make soak -->", "<!-- end of figures -->"

#: A part that counts to a goal ends after this many faults, as a broken one might never get there.
MOST_FAULTS = 20


def main(arguments=None):
    """Run what is asked for; the exit code."""
    options = _parser().parse_args(arguments)
    if options.parts == ["report"]:
        return report(options)
    unknown = [name for name in options.parts if name not in PARTS]
    if unknown:
        print(f"there is no part {', '.join(unknown)}: give some of {', '.join(PARTS)}")
        return 2
    parts = [PARTS[name] for name in options.parts or PARTS]
    if options.only_case is not None:
        if len(parts) != 1:
            print("--only-case: name the part that the case is of")
            return 2
        return one_case(parts[0], options.only_case)
    return soak(parts, options)


def _parser():
    parser = argparse.ArgumentParser(
        prog="python tests/soak",
        description="The long forms of the tests of reliability. "
        + " ".join(f"{part.name}: {part.title}." for part in PARTS.values()),
        epilog="`python tests/soak report` shows the figures so far; with --docs it puts them into "
        "docs/reliability.md.",
    )
    add = parser.add_argument
    add("parts", nargs="*", metavar="PART", help=f"some of {', '.join(PARTS)} (all)")
    add("--share", type=float, default=1.0, help="part of the full length, such as 0.01 (1)")
    add("--seed", type=int, default=1, help="of the first case (1)")
    add("--workers", type=int, default=os.cpu_count() or 1, help="processes (one a core)")
    add("--out", default="results/soak", help="folder for progress and figures (results/soak)")
    add("--only-case", type=int, metavar="SEED", help="work on this case alone, here")
    add("--docs", action="store_true", help="with report: put the figures into the docs")
    return parser


def one_case(part, seed):
    """Work on one case in a process of its own, and show what comes of it."""
    (outcome,) = each(part.play, [seed], workers=1, limit=part.limit)
    print(outcome.fault or json.dumps(outcome.result, indent=1))
    return 1 if outcome.fault else 0


def soak(parts, options):
    """Run parts one after the other; 1 if a promise was broken, 130 if it was interrupted."""
    diaries = [Diary(options.out, part, options.seed) for part in parts]
    code = 0
    try:
        for diary in diaries:
            run(diary, options)
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from here")
        code = 130
    facts = write_summary(options.out, [diary for diary in diaries if diary.lines])
    print(table(facts))
    for diary in diaries:
        for seed, fault in diary.faults:
            print(f"\n{fault}\nrepeat it with: {repeat(diary.part, seed)}")
    return 1 if any(diary.faults for diary in diaries) else code


def run(diary, options):
    """Work on cases until there are enough figures, or the time is over."""
    part, done, shown = diary.part, diary.done, time.monotonic()
    seconds = None if part.seconds is None else part.seconds * options.share
    # Time that was spent in an earlier run counts: the sum of the cases', shared by the workers.
    end = None if seconds is None else time.monotonic() + seconds - diary.seconds / options.workers

    def seeds():
        for seed in itertools.count(options.seed):
            if end is not None and time.monotonic() > end:
                return
            if part.figure is not None and (
                diary.figures.get(part.figure, 0) >= part.goal * options.share
            ):
                return
            if seed not in done:
                yield seed

    print(f"{part.name}: {part.title}", flush=True)
    for outcome in each(part.play, seeds(), workers=options.workers, limit=part.limit):
        if not outcome.result and not outcome.fault:
            print("  there is nothing here that it could test", flush=True)
            return
        diary.add(outcome)
        if outcome.fault:
            print(f"  FAULT: {repeat(part, outcome.item)}", flush=True)
        if time.monotonic() > shown + 60 or outcome.fault:
            shown = time.monotonic()
            print(f"  {diary.figures}", flush=True)
        if part.figure is not None and len(diary.faults) >= MOST_FAULTS:
            print(f"  {MOST_FAULTS} faults are enough", flush=True)
            return


def report(options):
    """Show the figures of the last soak, or put them into the docs."""
    path = Path(options.out) / "figures.json"
    if not path.exists():
        print(f"{path} is not there: run the soak first", file=sys.stderr)
        return 2
    facts = json.loads(path.read_text())
    words = f"Partita {facts['partita']}, Python {facts['python']}, {facts['system']}:"
    text = f"{words}\n\n{table(facts)}"
    if not options.docs:
        print(text)
        return 0
    before, _, rest = DOCS.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    DOCS.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")
    return 0

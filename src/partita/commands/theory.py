"""`partita theory`: tables and a figure of proven bounds."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from partita._optional import require
from partita._text import aligned, listed
from partita.errors import InvalidInput

from .shared import guarded

NAME = "theory"
#: The default file of the figure, without its suffix.
_OUT = "theory"
#: Printed for a value that no proof covers.
_UNPROVEN = "–"


def add_parser(commands: Any) -> None:
    """Add the command to `commands`, which `add_subparsers` returned."""
    parser = commands.add_parser(
        NAME,
        help="exponents of regret and information gain",
        description="Proven bounds on regret and information gain for Matérn kernels.",
    )
    parser.set_defaults(run=run)
    parts = parser.add_subparsers(dest="part", required=True, metavar="WHAT")
    parts.add_parser("list", help="every exponent: name, formula, assumptions, source")
    table = parts.add_parser("table", help="exponents for some dimensions and smoothnesses")
    table.add_argument(
        "--dim", type=int, nargs="+", default=[1, 2, 3], metavar="D", help="dimensions (1 2 3)"
    )
    table.add_argument(
        "--nu",
        nargs="+",
        default=["1/2", "3/2", "5/2"],
        metavar="NU",
        help="smoothnesses, such as 1.5, 3/2 or inf (1/2 3/2 5/2)",
    )
    table.add_argument("--exact", action="store_true", help="fractions instead of decimals")
    plot = parts.add_parser("plot", help="exponent against smoothness, one panel per dimension")
    plot.add_argument(
        "--dims", type=int, nargs="+", default=[1, 2, 3], metavar="D", help="dimensions (1 2 3)"
    )
    plot.add_argument("--nu-max", default="5", metavar="NU", help="largest smoothness (5)")
    plot.add_argument(
        "--out",
        default=_OUT,
        metavar="FILE",
        help=f"a .png or .svg file; without a suffix, both ({_OUT})",
    )


@guarded
def run(options: argparse.Namespace) -> int:
    """Print a table, or draw the figure."""
    if options.part == "plot":
        text = _plot(options)
    elif options.part == "table":
        text = table(options.dim, options.nu, exact=options.exact)
    else:
        text = listing()
    sys.stdout.write(text)
    return 0


def listing() -> str:
    """Every exponent, one table per kind."""
    from partita.theory.registry import KINDS, get, names

    head = ["name", "what", "exponent e", "assumes", "source"]
    parts = []
    for kind, meaning in KINDS.items():
        rows, notes = [head], []
        for each in map(get, names(kind)):
            above = f"ν > {Fraction(each.proven_above)}" if each.proven_above else ""
            assumes = ", ".join(filter(None, (each.setting, above)))
            rows.append([f"`{each.name}`", each.title, each.formula, assumes, each.citation])
            if each.note:
                notes.append(f"- `{each.name}`: {each.note}\n")
        gap = ["\n"] if notes else []
        parts.append("".join([_heading(kind, meaning), _table(rows), *gap, *notes]))
    return "\n".join(parts)


def table(dims: Sequence[int], nus: Sequence[str], exact: bool = False) -> str:
    """Exponents for each dimension and smoothness, one table per kind."""
    from partita.theory.exponents import as_dim
    from partita.theory.registry import KINDS, get, names

    each_nu = [smoothness(text) for text in nus]
    places = [(as_dim(dim), nu) for dim in dims for nu in each_nu]
    head = ["e", *(f"d={dim}, ν={nu}".replace("inf", "∞") for dim, nu in places)]
    parts = []
    for kind, meaning in KINDS.items():
        rows = [head]
        for exponent in map(get, names(kind)):
            cells = [
                _number(exponent.exact(dim, nu), exact) if exponent.holds(nu) else _UNPROVEN
                for dim, nu in places
            ]
            rows.append([exponent.title, *cells])
        parts.append(_heading(kind, meaning) + _table(rows))
    return "\n".join(parts) + f"\n{_UNPROVEN} where no proof covers that smoothness.\n"


def smoothness(text: str) -> Fraction | float:
    """A smoothness as typed: 1.5, 3/2 or inf."""
    from partita.theory.exponents import as_smoothness

    try:
        number: Fraction | float = Fraction(text)
    except (ValueError, ZeroDivisionError):
        try:
            number = float(text)
        except ValueError:
            number = float("nan")
    try:
        return as_smoothness(number)
    except InvalidInput:
        raise InvalidInput(
            f"smoothness {text!r}: give a positive number, such as 1.5, 3/2 or inf."
        ) from None


def _heading(kind: str, meaning: str) -> str:
    return f"{kind[0].upper()}{kind[1:]}: {meaning}.\n\n"


def _number(value: Fraction, exact: bool) -> str:
    if exact:
        return str(value).replace("-", "−")
    return f"{float(value):.3f}".replace("-", "−")


def _table(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(aligned(rows)) + "\n"


def _plot(options: argparse.Namespace) -> str:
    """Draw the figure, write its files, and return a line with their paths."""
    path = Path(options.out)
    kinds = [path.suffix[1:].lower()] if path.suffix else ["png", "svg"]
    if not path.name or kinds[0] not in {"png", "svg"}:
        raise InvalidInput(
            f"--out {options.out}: give a file that ends in .png or .svg, or has no ending."
        )
    nu_max = smoothness(options.nu_max)

    require("matplotlib")
    from partita.theory.figure import draw

    files = draw(options.dims, float(nu_max))
    written = []
    for kind in kinds:
        target = path if path.suffix else path.with_name(f"{path.name}.{kind}")
        target.write_bytes(files[kind])
        written.append(str(target))
    return f"written to {listed(written)}\n"

"""Prepares our docstrings and signatures for Napoleon and reStructuredText.

Our docstrings are written to be read as they stand. Three things in them mean something else to
these two: a paragraph after the parameters (Napoleon takes it for one more parameter), a heading of
our own (reStructuredText allows none in a docstring), and the bars of |x| (a substitution).
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

#: Headings that NumPy's format knows, as far as we use them.
SECTIONS = frozenset(
    {"Attributes", "Examples", "Notes", "Parameters", "Raises", "References", "Returns", "Yields"}
)
#: Those of them that hold entries: a name, and below it, indented, what it is.
ENTRIES = frozenset({"Attributes", "Parameters", "Raises", "Returns", "Yields"})


def prepared(lines: list[str]) -> list[str]:
    """The lines of a docstring, so that Napoleon and reStructuredText read what is meant."""
    out: list[str] = []
    section = ""
    for i, line in enumerate(lines):
        below = lines[i + 1] if i + 1 < len(lines) else ""
        if _is_underline(line) and i and lines[i - 1].strip():
            if section in SECTIONS:
                out.append(line)
            continue
        if line.strip() and _is_underline(below):
            section = line.strip()
            if section not in SECTIONS:
                # Two empty lines end the section before, for Napoleon.
                out += ["", "", f".. rubric:: {section}", ""]
                continue
        elif section in ENTRIES and _begins_paragraph(lines, i):
            section = ""
            out += ["", ""]
        out.append(line)
    return _without_substitutions("\n".join(out)).split("\n")


def _is_underline(line: str) -> bool:
    return re.fullmatch(r"-{3,}", line.strip()) is not None


def _begins_paragraph(lines: list[str], i: int) -> bool:
    """Whether line i begins a paragraph at the margin, and not an entry of a section."""
    if not lines[i].strip() or lines[i][0] == " " or lines[i - 1].strip():
        return False
    below = lines[i + 1] if i + 1 < len(lines) else ""
    return " : " not in lines[i] and not below.startswith(" ")


def _without_substitutions(text: str) -> str:
    """The text with the bars escaped that are not within code."""
    parts = re.split(r"(``.*?``|`[^`]*`)", text, flags=re.DOTALL)
    parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
    return "".join(parts)


def without_type(line: str) -> list[str]:
    """The first line of an attribute's docstring, broken after its first colon.

    Napoleon takes what stands before a colon in that line for the attribute's type.
    """
    before, colon, after = line.partition(": ")
    return [f"{before}:", after] if colon else [line]


def own_signature(thing: type) -> str:
    """The signature of a class by its own `__init__`, without self.

    Where the base class is stood in for, autodoc sees that one's: any arguments.
    """
    signature = inspect.signature(thing.__init__)  # type: ignore[misc]
    return str(signature.replace(parameters=[*signature.parameters.values()][1:]))


def readable(signature: str) -> str:
    """A signature with the names of types and classes alone, as the code has them."""
    return re.sub(r"(?:<class|TypeAliasForwardRef\()\s?'(?:\w+\.)*(\w+)'[>)]", r"\1", signature)


def setup(app: Sphinx) -> dict[str, Any]:
    """Prepare each docstring before Napoleon, whose priority is 500, reads it."""

    def prepare(
        app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
    ) -> None:
        if re.match(r"Alias for field number \d+$", lines[0] if lines else ""):
            lines.clear()  # says nothing: the class's docstring says what the field is
        elif lines and what in {"attribute", "data", "property"}:
            lines[:1] = without_type(lines[0])
        lines[:] = prepared(lines)

    def sign(
        app: Sphinx,
        what: str,
        name: str,
        thing: object,
        options: object,
        signature: str | None,
        returns: str | None,
    ) -> tuple[str | None, str | None]:
        if isinstance(thing, type) and name.startswith("partita.integrations."):
            signature = own_signature(thing).removesuffix(" -> 'None'")
            signature = re.sub(r": '([^']*)'", r": \1", signature)
        return signature and readable(signature), returns and readable(returns)

    app.connect("autodoc-process-docstring", prepare, priority=400)
    app.connect("autodoc-process-signature", sign)
    return {"parallel_read_safe": True}

"""The directive `partita-commands`: every command's help, as its own parser prints it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from partita.commands.main import parser as the_parser

if TYPE_CHECKING:
    from docutils.nodes import Node
    from sphinx.application import Sphinx

#: Characters a line of the help texts, whatever the terminal of the build.
WIDTH = 88


def parsers(
    parser: argparse.ArgumentParser, name: str = "partita"
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """A parser and all commands below it, each with what one types for it."""
    yield name, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command, below in action.choices.items():
                yield from parsers(below, f"{name} {command}")


def helps() -> dict[str, str]:
    """The help text of every command, by what one types for it."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(WIDTH)  # what argparse reads
    try:
        return {name: each.format_help() for name, each in parsers(the_parser())}
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive. Sphinx is imported here, so that the tests can do without it."""
    from docutils import nodes
    from sphinx.util.docutils import SphinxDirective

    class Commands(SphinxDirective):
        """A section for each command."""

        def run(self) -> list[Node]:
            sections: list[Node] = []
            for name, text in helps().items():
                section = nodes.section(ids=[nodes.make_id(name)], names=[name])
                section += nodes.title(name, name)
                section += nodes.literal_block(text, text, language="text")
                sections.append(section)
            return sections

    app.add_directive("partita-commands", Commands)
    return {"parallel_read_safe": True}

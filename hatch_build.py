"""Make the description that a package index shows from README.md, while a package is built.

An index does not have the files that the README links to, and knows no footnotes. So relative links
become absolute ones, to the version's tag in the repository that pyproject.toml names under
`[project.urls]`, "Repository". While it names none they become plain text, and pictures their
description: no link is broken. Footnotes become a numbered list.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

#: A link or, with the exclamation mark, a picture, whose target is neither absolute nor an anchor.
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")
_FOOTNOTE = re.compile(r"^\[\^(\w+)\]: (.*)\n?", re.MULTILINE)
#: Code is left as it is: a block or a span.
_CODE = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.DOTALL | re.MULTILINE)


def described(text: str, repository: str | None, version: str) -> str:
    """The README as an index can show it."""
    notes = dict(_FOOTNOTE.findall(text))
    text = _FOOTNOTE.sub("", text)
    for number, name in enumerate(notes, 1):
        text = text.replace(f"[^{name}]", f" ({number})")
    listed = "".join(f"{number}. {note}\n" for number, note in enumerate(notes.values(), 1))
    if listed:
        text = f"{text.rstrip()}\n\n## Notes\n\n{listed}"
    # Every other part of the split is code.
    parts = _CODE.split(text)
    parts[::2] = [
        _LINK.sub(lambda link: _absolute(link, repository, version), p) for p in parts[::2]
    ]
    return "".join(parts)


def _absolute(link: re.Match[str], repository: str | None, version: str) -> str:
    mark, title, path = link.groups()
    if repository is None:
        return f"*{title}*" if mark else title
    kind = "raw" if mark else "blob"
    return f"{mark}[{title}]({repository.rstrip('/')}/{kind}/v{version}/{path})"


class Description(MetadataHookInterface):
    """Sets the field `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in `metadata`, the table [project]."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": described(text, repository, metadata["version"]),
        }

"""The modules of the page as one, for a notebook, which has no address to load them from.

Each module becomes a function that returns its exports. This reads only the page's own modules:
imports and exports are lines of their own there, as `tests/service/test_bundle.py` checks.
"""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parent / "page"
_IMPORT = re.compile(r'^import \{ ([^}]+) \} from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?:async )?(?:function|class|const) (\w+)", re.MULTILINE)
_DEFAULT = re.compile(r"^export default ", re.MULTILINE)


def script(main: str = "widget") -> str:
    """The module `main` and all that it imports, as one module that imports nothing."""
    parts: dict[str, str] = {}
    _collect(main, parts)
    plot = (PAGE / "uplot.js").read_text(encoding="utf-8")
    return "\n".join([plot, *parts.values(), f"export default {main}_js.standard;\n"])


def style() -> str:
    """The style sheets of the page."""
    sheets = (PAGE / "uplot.css", PAGE / "style.css")
    return "\n".join(sheet.read_text(encoding="utf-8") for sheet in sheets)


def _collect(name: str, parts: dict[str, str]) -> None:
    text = (PAGE / f"{name}.js").read_text(encoding="utf-8")
    for _, other in _IMPORT.findall(text):
        if other not in parts:
            _collect(other, parts)
    exports = _EXPORT.findall(text)
    text = _IMPORT.sub(lambda found: f"const {{ {_renamed(found[1])} }} = {found[2]}_js;", text)
    text = re.sub(r"^export (?!default)", "", text, flags=re.MULTILINE)
    if _DEFAULT.search(text):
        text, exports = _DEFAULT.sub("const standard = ", text), [*exports, "standard"]
    parts[name] = f"const {name}_js = (() => {{\n{text}\nreturn {{ {', '.join(exports)} }};\n}})();"


def _renamed(names: str) -> str:
    """Imported names as a pattern: `a as b` is `a: b`."""
    return re.sub(r"(\w+) as (\w+)", r"\1: \2", names)

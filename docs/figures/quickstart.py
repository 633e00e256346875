"""Draw the picture of the README's quick start: python docs/figures/quickstart.py.

It runs the README's first Python as it stands, which draws `run.png`. Same seeds, same picture.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent
README = FOLDER.parents[1] / "README.md"


def draw(path: Path) -> None:
    """Run the quick start and move the picture that it draws to a path."""
    found = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(None):
                exec(compile(found[1], str(README), "exec"), {})
        finally:
            os.chdir(before)
        path.write_bytes((Path(folder) / "run.png").read_bytes())


if __name__ == "__main__":
    draw(FOLDER / "quickstart.png")

"""A figure that shows itself in a notebook. Imported late: it needs Matplotlib."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

#: Dots per inch of a picture in a notebook, and of those that the page counts: sharp screens.
SHARP, PAGE = 160, 80


class ShownFigure(Figure):
    """A Matplotlib figure that a notebook draws, whether pyplot was imported or not."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """A PNG, and the size that a page gives it."""
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=SHARP, facecolor="white")
        width, height = (round(PAGE * side) for side in self.get_size_inches())
        return file.getvalue(), {"width": width, "height": height}

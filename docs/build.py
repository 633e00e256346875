"""Make the parts of the documentation that come from the code: `make docs`."""

from pathlib import Path

from partita.theory import catalogue

PAGE = Path(__file__).parent / "algorithms.md"

if __name__ == "__main__":
    PAGE.write_text(catalogue.page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

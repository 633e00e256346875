"""The tolerance that was chosen for a study: a row of its table `meta`, which may be missing.

It changes no choice, so it is not in the log. Every page and notebook shows the same one.
"""

from __future__ import annotations

import math
import sqlite3
from typing import Any

from partita._checks import as_number
from partita.errors import InvalidInput

from .store import Store

_QUERY = "SELECT value FROM meta WHERE key = 'tolerance'"


def checked(tolerance: Any) -> float | None:
    """A tolerance that a user gave, or None; refused if it is not a positive number."""
    if tolerance is None:
        return None
    number = as_number(tolerance)
    if not 0.0 < number < math.inf:
        raise InvalidInput(f"tolerance={tolerance!r:.60}: give a number above 0, or None")
    return number


def stored(store: Store) -> float | None:
    """The tolerance in a file; None if there is none that can be used."""
    for (text,) in store.rows(_QUERY):
        try:
            return checked(float(text))
        except (TypeError, ValueError):
            return None
    return None


def store_in(store: Store, tolerance: float | None) -> None:
    """Store a tolerance, or remove the one that there is."""

    def change(db: sqlite3.Connection) -> None:
        db.execute("DELETE FROM meta WHERE key = 'tolerance'")
        if tolerance is not None:
            db.execute("INSERT INTO meta VALUES ('tolerance', ?)", (repr(tolerance),))

    store.transact(change)

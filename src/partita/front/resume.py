"""Studies that `maximize` and `minimize` go on with."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from typing import Any

from partita.errors import InvalidInput
from partita.optimize.result import Checkpoint
from partita.study.study import Study

#: Defaults of `maximize`: who gives these may as well have given nothing.
_DEFAULTS = {"seed": 0, "delta": 0.1}


def resumed(study: object, space: Any, settings: Mapping[str, Any]) -> Study:
    """The study of a run, begun if there is none; refused if it is about something else.

    Parameters
    ----------
    study
        An open study, or the name of its file.
    settings
        As `maximize` was given them. The usual seed and delta are taken for not given, so that a
        study with others can be resumed without naming them.
    """
    given: dict[str, Any] = {n: None if _DEFAULTS.get(n) == v else v for n, v in settings.items()}
    if isinstance(study, Study):
        study.check(space, **given)
        return study
    if not isinstance(study, str | PathLike):
        raise InvalidInput(f'study={study!r}: give the name of a file, such as "tune.db"')
    return Study.open(study, space, **given)


@contextmanager
def underway(study: Study, given: object) -> Iterator[None]:
    """While a run is made; a study that was opened for it is closed, until somebody looks."""
    with study.running():
        try:
            yield
        finally:
            if given is not study:
                study.close()


def earlier(study: Study) -> list[Checkpoint]:
    """What was known after so many values, before now: seconds are negative."""
    now = time.time()
    return [note._replace(seconds=note.seconds - now) for note in study._notes()]

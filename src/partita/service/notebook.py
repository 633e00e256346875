"""The page of one study in a notebook: a widget, with the kernel in place of the service."""

from __future__ import annotations

import logging
import re
import threading
from typing import TYPE_CHECKING, Any

from partita._optional import require
from partita.errors import InvalidInput, PartitaError
from partita.study import Study

from . import bundle, maps, tables, views, wire
from .problems import Refused, problem_of
from .questions import QUESTIONS
from .still import Still

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from partita.optimize.player import Player
    from partita.optimize.result import Checkpoint

_log = logging.getLogger(__name__)

#: Seconds between two looks at a study.
EVERY = 1.0
_ADDRESS = re.compile(r"/(?:studies/[^/]+/)?([a-z]+)(?:/(\d+))?")
_ACTS = {"ask": wire.ask, "tell": wire.tell, "cancel": wire.cancel, "add": wire.add}
_ACTS["tolerance"] = wire.choose


class Answerer:
    """Answers what the page asks, as the service does; what a run in memory shows is still.

    Parameters
    ----------
    study
        A study in a file, or a run in memory.
    """

    def __init__(self, study: Study | Still) -> None:
        self._study: Any = study
        self._seen = views.Seen()
        #: The last event and the tolerance that were shown.
        self._sent: tuple[int, float | None] | None = None
        self._turn = threading.Lock()

    def answer(self, method: str, path: str, content: Any) -> Any:
        """The answer to a request, as JSON has it; an error is an object with a problem."""
        try:
            with self._turn:
                return {"answer": wire.plain(self._answer(method, path, content))}
        except PartitaError as error:
            return {"problem": problem_of(error)}
        except Exception as error:
            _log.exception("%s %s failed", method, path)
            return {"problem": problem_of(error)}

    def _answer(self, method: str, path: str, content: Any) -> Any:
        found = _ADDRESS.fullmatch(str(path))
        name, number = found.groups() if found else (None, None)
        query: Mapping[str, str] = content if isinstance(content, dict) else {}
        if method == "POST" and name in _ACTS:
            if isinstance(self._study, Still):
                raise InvalidInput("this run is over: give it a study to go on with it by hand")
            return _ACTS[name](self._study, content)
        if name == "events":
            return self._overview()
        if name == "trials":
            if number is not None:
                return tables.detail(self._study, int(number))
            return tables.table(self._study, query)
        if name == "importance":
            return maps.importance(self._study)
        if name in QUESTIONS:
            return QUESTIONS[name](self._study, query)
        raise Refused(404, "There is no such address", f"{method} {path!r:.100}")

    def _overview(self) -> dict[str, Any]:
        self._sent = (views.head_of(self._study), self._study.tolerance)
        return {
            "id": "study",
            "read_only": isinstance(self._study, Still),
            **views.overview(self._study, self._seen),
        }

    def news(self) -> dict[str, Any] | None:
        """What is shown now, if something has happened since it was last shown."""
        try:
            if (views.head_of(self._study), self._study.tolerance) == self._sent:
                return None
            with self._turn:
                shown: dict[str, Any] = wire.plain(self._overview())
                return shown
        except PartitaError as error:
            return {"problem": problem_of(error)}


def view(player: Player, notes: Sequence[Checkpoint] = ()) -> Any:
    """A widget that shows a study, live, or a run in memory as it is.

    Needs anywidget: `pip install 'partita[notebook]'`.
    """
    widgets, traitlets = require("anywidget"), require("traitlets")
    base: Any = widgets.AnyWidget
    answerer = Answerer(player if isinstance(player, Study) else Still(player, notes))

    class View(base):  # type: ignore[misc]  # its types are not known
        """The page of one study."""

        _esm = bundle.script()
        name = traitlets.Unicode("study").tag(sync=True)
        style = traitlets.Unicode(bundle.style()).tag(sync=True)

    widget = View()
    gone = threading.Event()

    def heard(_: Any, message: Any, __: Any) -> None:
        if isinstance(message, dict) and isinstance(message.get("id"), str):
            told = answerer.answer(
                message.get("method", "GET"), message.get("path", ""), message.get("content")
            )
            widget.send({"id": message["id"], **told})

    def follow() -> None:
        while not gone.wait(EVERY) and widget.comm is not None:
            news = answerer.news()
            if news is not None:
                widget.send({"event": news})

    widget.on_msg(heard)
    if isinstance(player, Study):
        threading.Thread(target=follow, daemon=True).start()
    widget.stop = gone.set
    return widget

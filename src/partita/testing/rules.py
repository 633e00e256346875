"""A rule of the suite: a function of a case, with a name and the promises it rests on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .case import Case
from .promises import KINDS, Promises


def _always(promises: Promises) -> bool:
    return True


@dataclass(frozen=True)
class Rule:
    """What is asked of a policy. The first line of the function's docstring says it in words."""

    name: str
    test: Callable[[Case], None]
    applies: Callable[[Promises], bool] = _always
    kinds: tuple[str, ...] = KINDS
    long: bool = False

    @property
    def description(self) -> str:
        """What is asked, in a sentence."""
        return (self.test.__doc__ or "").strip().partition("\n")[0]

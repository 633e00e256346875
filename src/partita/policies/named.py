"""Policies by name: "igp-ucb", "hoo[nu1=2,rho=0.5]" or "module:Class"."""

from __future__ import annotations

import re
from dataclasses import dataclass

from partita.errors import InvalidInput

from . import registry
from .registry import Method

Setting = float | int | str | bool


@dataclass(frozen=True)
class PolicySpec:
    """A policy by name, with the settings of `partita.policies.registry` unless others are given.

    Parameters
    ----------
    name : str
        A name in the registry, or "module:Class" for a policy of your own.
    settings : pairs of a name and a value
        Further arguments of the policy, such as (("delta", 0.05),).
    """

    name: str
    settings: tuple[tuple[str, Setting], ...] = ()

    def __post_init__(self) -> None:
        """Refuse a name that is not known."""
        self.method  # noqa: B018

    @property
    def method(self) -> Method:
        """The entry of the registry."""
        return registry.get(self.name)


def read_policy(text: str) -> PolicySpec:
    """A policy by its name, optionally with settings in brackets: "hoo[nu1=2,rho=0.5]"."""
    parts = re.fullmatch(r"([^\[\]]+)(?:\[(.*)\])?", text)
    if parts is None:
        raise InvalidInput(f"policy {text!r}: give a name, or name[setting=value,...].")
    settings = []
    for part in filter(None, (parts[2] or "").split(",")):
        name, equals, value = part.partition("=")
        if not equals:
            raise InvalidInput(f"policy {text!r}: {part!r} is not a setting=value.")
        settings.append((name.strip(), _setting(value.strip())))
    return PolicySpec(parts[1], tuple(settings))


def _setting(text: str) -> Setting:
    if text in {"true", "True", "false", "False"}:
        return text in {"true", "True"}
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text

"""Test problems: functions whose maximum, or norm, is known."""

from .functions import GlobalFunction, describe, get, names
from .rkhs import RKHSFunction

__all__ = ["GlobalFunction", "RKHSFunction", "describe", "get", "names"]

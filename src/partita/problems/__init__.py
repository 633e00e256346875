"""Test problems: functions whose maximum, or norm, is known."""

from .rkhs import RKHSFunction

__all__ = ["RKHSFunction"]

"""Test problems: functions whose maximum, or norm, is known."""

from .functions import GlobalFunction, describe, get, names
from .rkhs import RKHSFunction, average

__all__ = ["GlobalFunction", "RKHSFunction", "average", "describe", "get", "names"]

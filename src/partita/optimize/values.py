"""What users' functions return, as numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from partita.errors import InvalidInput
from partita.policies.base import LARGEST_VALUE

#: These have a `__float__`, some of them, but are no numbers to optimise.
_NO_NUMBERS = (str, bytes, complex, np.complexfloating, np.datetime64, np.timedelta64)


def as_value(value: Any) -> float:
    """A value as a float; an array of one number is a number, too."""
    number = value if type(value) is float else _as_float(value)
    if not math.isfinite(number):
        raise InvalidInput(
            f"the value is {number}: give a finite number, or cancel the trial if its evaluation "
            "failed"
        )
    if abs(number) > LARGEST_VALUE:
        raise InvalidInput(
            f"the value is {number}: give one of at most {LARGEST_VALUE:g} in size, in other units "
            "if need be, or cancel the trial"
        )
    return number


def _as_float(value: Any) -> float:
    if isinstance(value, np.ndarray):
        if value.size != 1 or value.dtype.kind not in "biuf" or np.ma.is_masked(value):
            raise InvalidInput(
                f"the value is an array of shape {value.shape} and type {value.dtype}: give one "
                "number"
            )
        return float(value.item())
    if hasattr(value, "__float__") and not isinstance(value, _NO_NUMBERS):
        try:
            return float(value)
        except OverflowError:
            return math.inf
        except Exception:  # an object of the user's, such as a tensor of several numbers
            pass
    raise InvalidInput(
        f"the value is {value!r}: give one number; if the evaluation failed, cancel the trial, or "
        "let the function raise"
    )

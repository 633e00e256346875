"""Named parameters and bounds, and the unit cube that policies play in."""

from .choices import Categorical
from .parameters import Float, Integer, Stepped
from .space import Space, as_space

__all__ = ["Categorical", "Float", "Integer", "Space", "Stepped", "as_space"]

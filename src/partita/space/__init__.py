"""Search spaces: named parameters and bounds, mapped to the unit cube that policies use."""

from .choices import Categorical
from .parameters import Float, Integer, Stepped
from .space import Space, as_space

__all__ = ["Categorical", "Float", "Integer", "Space", "Stepped", "as_space"]

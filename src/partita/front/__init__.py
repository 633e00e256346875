"""One call that optimises: `maximize` and `minimize`, over an optimizer or a study."""

from .calls import maximize, minimize
from .scipy_method import scipy_method

__all__ = ["maximize", "minimize", "scipy_method"]

"""`CalibratedUCB`, the policy that learns its own settings."""

from .calibrated_ucb import CalibratedUCB

__all__ = ["CalibratedUCB"]

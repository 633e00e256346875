"""The version of Partita, stated once."""

__version__ = "0.1.0"

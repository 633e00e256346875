"""Partita's sampler, for OptunaHub."""

from partita.integrations.optuna import PartitaSampler


__all__ = ["PartitaSampler"]

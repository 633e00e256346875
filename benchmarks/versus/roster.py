"""Who plays, in the order of the tables."""

from __future__ import annotations

from . import peers_cma, peers_gp, peers_plain, peers_turbo, players
from .players import Player

PLAYERS: dict[str, type[Player]] = {
    player.name: player
    for player in (
        players.Calibrated,
        players.Told,
        peers_plain.OptunaTPE,
        peers_plain.OptunaCMAES,
        peers_plain.OptunaGP,
        peers_plain.CMAES,
        peers_cma.CMAESRestarts,
        peers_cma.PyCMA,
        peers_cma.PyCMAOnce,
        peers_cma.PyCMANoise,
        peers_gp.BoTorchUCB,
        peers_gp.BoTorchNEI,
        peers_turbo.TuRBO,
        peers_gp.Skopt,
        peers_gp.BayesOpt,
        peers_plain.TBPSA,
        peers_plain.NGOpt,
        peers_plain.HOO,
        peers_plain.HCT,
        peers_plain.StroquOOL,
        players.Uniform,
    )
}
#: Who plays in benchmarks/bbob_noisy.py, and who in benchmarks/peers.py unless others are named.
BBOB = (
    "partita",
    "pycma",
    "pycma-noise",
    "cmaes-restarts",
    "nevergrad-tbpsa",
    "optuna-tpe",
    "nevergrad-ngopt",
    "uniform",
)
_OTHERS = ("pycma", "pycma-once", "pycma-noise", "cmaes-restarts", "turbo-1")
PEERS = tuple(p for p in PLAYERS if p not in _OTHERS)

"""Who plays, in the order of the tables."""

from __future__ import annotations

from . import peers_gp, peers_plain, players
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
        peers_gp.BoTorchUCB,
        peers_gp.BoTorchNEI,
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

"""What an optimizer or a study knows, as the result of a run: to be drawn."""

from __future__ import annotations

from collections.abc import Sequence

from partita.errors import InvalidInput

from .player import Player
from .result import Checkpoint, History, Result, answer
from .spans import Spans


def result_of(
    player: Player,
    name: str,
    notes: Sequence[Checkpoint] | None = None,
    spans: Spans | None = None,
) -> Result:
    """What is known, as a result; refused while there are no values.

    Parameters
    ----------
    player
    name
        What messages call it.
    notes
        What was known at some numbers of values, and last of all now; only now if not given.
    spans
        When evaluations were under way, if that is known.
    """
    check_drawable(player, name)
    best, trials = player.recommend(), player.trials
    if notes is None:
        certificate = player.certificate()
        now = Checkpoint(player.n_told, 0.0, best.mean, best.lower, best.upper, certificate)
        notes = [now]
    return Result(
        **answer(best, player.space),
        certificate=notes[-1].certificate,
        guarantee=player.guarantee,
        constraints=player.constraints_at(best.params),
        success=True,
        status=0,
        message=f"{name}.",
        nfev=player.n_told,
        nfail=player.n_failed,
        npruned=player.n_pruned,
        nit=player.n_told,
        errors=[],
        seconds=notes[-1].seconds,
        history=History(trials.finished, list(notes), trials.failed[:1000].params, spans),
        direction=player.direction,
        seed=player.seed,
        optimizer=player,
    )


def check_drawable(player: Player, name: str) -> None:
    """Refuse to draw where there are no values, or no one answer."""
    if player.contexts.names:
        raise InvalidInput(
            f"{name} has a context, and another answer for each, so that there is no one figure. "
            "Draw what predict(params, context=...) returns, or trials.to_dataframe()"
        )
    if not player.n_told:
        raise InvalidInput(
            f"{name}: there are no values yet, so there is nothing to draw. Tell or add some first"
        )

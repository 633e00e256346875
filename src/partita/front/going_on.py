"""Going on with an optimizer that has values already: `minimize(f, optimizer=result.optimizer)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from partita.errors import InvalidInput
from partita.optimize.optimizer import Optimizer
from partita.space import as_space

if TYPE_CHECKING:
    from partita.study import Study


def continued(
    optimizer: Any, direction: str, space: Any, settings: dict[str, Any]
) -> Optimizer | Study:
    """The optimizer or study that a run goes on with; refused if it is about something else.

    `settings` are those given in the call that an optimizer has already.
    """
    from partita.study import Study  # late: most runs have none

    if not isinstance(optimizer, Optimizer | Study):
        raise InvalidInput(
            f"optimizer={optimizer!r:.100}: give an Optimizer, such as result.optimizer"
        )
    if optimizer.direction != direction:
        raise InvalidInput(
            f"optimizer: it was made to {optimizer.direction}, but this call is to {direction}. "
            f"Call pt.{optimizer.direction}, or leave the optimizer out"
        )
    if space is not None:
        wanted = as_space(space, settings.get("feasible"))
        if wanted != optimizer.space:
            raise InvalidInput(
                f"optimizer: its space is {optimizer.space!r}, but {wanted!r} was given. Leave the "
                "space out to go on, or leave the optimizer out"
            )
    given = list(settings)
    if space is not None and "feasible" in given:
        given.remove("feasible")
    if given:
        raise InvalidInput(
            f"optimizer: it was made with its own settings, so that {', '.join(given)} cannot be "
            "given again. Leave that out, or leave the optimizer out"
        )
    return optimizer

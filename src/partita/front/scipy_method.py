"""A method for `scipy.optimize.minimize`."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import OptimizeResult

from partita._checks import as_floats
from partita.errors import InvalidInput
from partita.optimize.evaluate import Function
from partita.optimize.loop import Callback
from partita.optimize.result import Result
from partita.space import Space, as_space

from .calls import minimize

#: Arguments of `minimize` for which SciPy has arguments of its own; all others are options.
_SCIPYS = ("f", "space", "x0", "callback")
_OPTIONS = tuple(name for name in inspect.signature(minimize).parameters if name not in _SCIPYS)


class _WithArguments:
    """fun(x, *args) as a function of x that can be pickled."""

    def __init__(self, fun: Function, args: tuple[Any, ...]) -> None:
        self._fun, self._args = fun, args

    def __call__(self, x: npt.NDArray[np.float64]) -> Any:
        return self._fun(x, *self._args)


def scipy_method(
    fun: Function,
    x0: npt.ArrayLike,
    args: Any = (),
    *,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    callback: Callable[..., Any] | None = None,
    **options: Any,
) -> Result:
    """A method for SciPy: `scipy.optimize.minimize(fun, x0, bounds=..., method=pt.scipy_method)`.

    Parameters
    ----------
    fun, x0, args
        The function of an array; the first point to evaluate; further arguments of fun.
    jac, hess, hessp
        Not used; a warning says so.
    bounds
        Required, and finite.
    constraints
        Not supported. Give `options={"feasible": ...}` instead, a function that returns True where
        fun may be evaluated.
    callback
        Called after each value, as SciPy does: with an `intermediate_result` (x, fun: the point and
        its value) if its only argument has that name, else with the point. It ends the run by
        raising StopIteration, or by returning True.
    **options
        `options={...}` of SciPy's `minimize`: `n_evals` and the other arguments of `pt.minimize`.
        SciPy's `tol` sets the tolerance, its `disp` the progress bar.
    """
    if "tol" in options:
        tol = options.pop("tol")
        options.setdefault("tolerance", tol)
    if "disp" in options:
        options.setdefault("progress", bool(options.pop("disp")))
    unknown = sorted(set(options).difference(_OPTIONS))
    if unknown:
        raise InvalidInput(
            f"options: {', '.join(map(repr, unknown))} is unknown. The options are "
            f"{', '.join(_OPTIONS)}"
        )
    if constraints is not None and np.size(constraints):
        raise InvalidInput(
            'constraints are not supported: give options={"feasible": function} instead, which '
            "returns True where fun may be evaluated"
        )
    unused = [name for name, g in (("jac", jac), ("hess", hess), ("hessp", hessp)) if g]
    if unused:
        warnings.warn(
            f"Partita does not use derivatives ({', '.join(unused)}).", RuntimeWarning, stacklevel=3
        )
    space, start = _scipy_space(x0, bounds)
    extra = args if isinstance(args, tuple) else (args,)
    return minimize(
        _WithArguments(fun, extra),
        space,
        callback=None if callback is None else _scipy_callback(callback),
        x0=start,
        **options,
    )


def _scipy_space(x0: npt.ArrayLike, bounds: Any) -> tuple[Space, npt.NDArray[np.float64]]:
    """The search space, and the first point."""
    if bounds is None:
        raise InvalidInput("bounds are required: give bounds=[(low, high), ...]")
    start = np.atleast_1d(as_floats(x0, "x0"))
    try:
        space = as_space(_spread(bounds, start.size))
    except InvalidInput as error:
        raise InvalidInput(f"bounds: {error}") from error
    return space, start


def _spread(bounds: Any, n: int) -> Any:
    """The bounds of n variables; SciPy's `Bounds` may have one number for all of them."""
    if not (hasattr(bounds, "lb") and hasattr(bounds, "ub")):
        return bounds
    sides = [np.ravel(as_floats(side, "bounds")) for side in (bounds.lb, bounds.ub)]
    low, high = (np.broadcast_to(side, n) if side.size == 1 else side for side in sides)
    if low.size != high.size:
        raise InvalidInput(
            f"bounds: lb has {low.size} numbers and ub has {high.size}. Give {n} of each, one for "
            "every variable, or one number for all"
        )
    return list(zip(low.tolist(), high.tolist(), strict=True))


def _scipy_callback(callback: Callable[..., Any]) -> Callback:
    """A SciPy callback as one for `minimize`."""
    try:
        names = list(inspect.signature(callback).parameters)
    except (TypeError, ValueError):
        names = []
    if names == ["intermediate_result"]:
        return lambda now: callback(
            intermediate_result=OptimizeResult(x=np.array(now.params), fun=now.value)
        )
    return lambda now: callback(np.array(now.params))

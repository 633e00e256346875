"""Checks of what policies are given: points, values, their noise, domains and kernels."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from partita._checks import as_floats
from partita._types import FloatArray
from partita.errors import InvalidInput
from partita.model.domains import Arms, Box, Grid
from partita.model.kernels import Matern
from partita.model.mixed import Mixed

#: Larger values could overflow when they are squared or summed.
LARGEST_VALUE = 1e150


def as_point(x: npt.ArrayLike) -> FloatArray:
    """A point or points as an array of floats."""
    if type(x) is np.ndarray and x.dtype == np.float64 and x.flags.c_contiguous:
        return x
    return as_floats(x, "x")


def as_value(y: npt.ArrayLike) -> float:
    """The value at one point, checked."""
    if isinstance(y, float):
        value = float(y)
    else:
        array = as_floats(y, "y")
        if array.ndim:
            raise InvalidInput(
                f"y has shape {array.shape}: the value at one point must be one number. For "
                "several observations give points of shape (n, d) and values of shape (n,)."
            )
        value = float(array)
    if not -LARGEST_VALUE <= value <= LARGEST_VALUE:
        raise InvalidInput(
            f"tell(x, {value}): the value must be finite"
            + (f" and at most {LARGEST_VALUE:g} in magnitude. " if math.isfinite(value) else ". ")
            + "Use cancel(x) for a failed evaluation."
        )
    return value


def as_values(y: npt.ArrayLike, n: int) -> FloatArray:
    """The values (n,) at n points, checked."""
    values = as_floats(y, "Y")
    if values.shape != (n,):
        raise InvalidInput(
            f"tell(X, Y): {n} points but values of shape {values.shape}: give one value per point, "
            f"shape ({n},)."
        )
    bad = np.flatnonzero(~(np.abs(values) <= LARGEST_VALUE))
    if len(bad):
        raise InvalidInput(
            f"tell(X, Y): value {bad[0]} is {values[bad[0]]}, but every value must be finite and "
            f"at most {LARGEST_VALUE:g} in magnitude. Leave out failed evaluations and cancel them."
        )
    return values


def as_std(std: npt.ArrayLike) -> float:
    """The standard deviation of one value's noise, checked."""
    array = as_floats(std, "std")
    if array.ndim:
        raise InvalidInput(
            f"std has shape {array.shape}: the noise of the value at one point must be one number."
        )
    value = float(array)
    if not 0.0 <= value <= LARGEST_VALUE:
        raise InvalidInput(
            f"tell(x, y, std={value}): the standard deviation of a value's noise must be a finite "
            "number of at least 0 (0 means exact). Leave it out if it is not known."
        )
    return value


def as_stds(std: npt.ArrayLike, n: int) -> FloatArray:
    """The standard deviations (n,) of the noise of n values, from one number or n, checked."""
    stds = as_floats(std, "std")
    if stds.shape not in ((), (n,)):
        raise InvalidInput(
            f"tell(X, Y, std=...): {n} points but std of shape {stds.shape}: give one number for "
            f"all, or one per point, shape ({n},)."
        )
    if not stds.ndim:
        return np.full(n, as_std(stds))
    bad = np.flatnonzero(~((stds >= 0.0) & (stds <= LARGEST_VALUE)))
    if len(bad):
        raise InvalidInput(
            f"tell(X, Y, std=...): std[{bad[0]}] is {stds[bad[0]]}, but the standard deviation of "
            "a value's noise must be a finite number of at least 0 (0 means exact). Report values "
            "whose noise is not known in a separate call, without std."
        )
    return stds


def wrong_shape(point: FloatArray, dim: int) -> InvalidInput:
    """The error for points of a wrong shape."""
    return InvalidInput(
        f"x has shape {point.shape}, but the domain has {dim} dimension{'s' * (dim > 1)}: give an "
        f"array of shape ({dim},), or (n, {dim}) with n values."
    )


def check_domain(domain: object) -> Grid | Arms | Box:
    """The domain, if it is one without mixed parameters; an error otherwise."""
    if isinstance(domain, Mixed):
        raise InvalidInput(
            f"{domain!r} has parameters of several kinds or a constraint, which this policy does "
            "not support: use CalibratedUCB or UniformSampling, or give every number a step so "
            "that the space is finite, with at most 10,000 points."
        )
    if not isinstance(domain, Grid | Arms | Box):
        raise InvalidInput(
            f"domain={domain!r}: give a domain, such as Grid(30, dim=2), Arms(points) or "
            "Box(lower, upper)."
        )
    return domain


def check_finite(domain: object, policy: str) -> Grid | Arms:
    """The domain, if it is finite; an error otherwise."""
    checked = check_domain(domain)
    if isinstance(checked, Box):
        raise InvalidInput(
            f"{policy} needs a finite domain, but got {checked!r}: give a grid, such as "
            f"Grid(30, dim={checked.dim}), or Arms(points, lower, upper)."
        )
    return checked


def cannot_fix(name: str) -> InvalidInput:
    """The error for values that are fixed where the policy cannot use that."""
    return InvalidInput(
        f"{name} cannot choose for a context, or with values fixed, in this space. Leave out the "
        "policy and norm_bound for CalibratedUCB, which can. PiGPUCB can without tightening, "
        "and IGPUCB in a finite space"
    )


def check_kernel(kernel: object, domain: Grid | Arms | Box | Mixed) -> Matern:
    """The kernel, if it fits the domain; an error otherwise."""
    if not isinstance(kernel, Matern):
        raise InvalidInput(
            f"kernel={kernel!r}: give a kernel, such as Matern(nu=1.5, lengthscale=0.2)."
        )
    kernel.scales(domain.dim)
    return kernel

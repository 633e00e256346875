"""Convert spaces of Ray Tune: `tune.uniform` and similar, nested configurations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ray.tune.search import sample
from ray.tune.search.variant_generator import parse_spec_vars

from partita.errors import InvalidInput
from partita.space import Categorical, Float, Integer, Space, Stepped, as_space

Path = tuple[str, ...]


@dataclass(frozen=True)
class Constraint:
    """The user's `feasible`, which takes a configuration, as a function of keywords."""

    function: Callable[[dict[str, Any]], Any]
    paths: dict[str, Path]
    units: dict[str, float]

    def __call__(self, **params: Any) -> Any:
        """Whether the configuration of these parameters may be run."""
        return self.function(_nested(params, self.paths, self.units))


@dataclass(frozen=True)
class TuneSpace:
    """A space, and where its parameters are in a configuration.

    Attributes
    ----------
    space
        Parameters are named by their path, "model/depth".
    paths
        The path of each parameter.
    units
        The unit of each quantized parameter: the space has the factor, the configuration the
        multiple.
    """

    space: Space
    paths: dict[str, Path]
    units: dict[str, float]

    def config(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The nested configuration with the given parameters."""
        return _nested(params, self.paths, self.units)

    def params(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters in a configuration, nested or flat ("model/depth"); the rest is ignored.

        Raises
        ------
        InvalidInput
            If one is missing; of a conditional space, the optimizer knows which are.
        """
        params = {}
        for name, path in self.paths.items():
            if self.space.conditions is not None and not _has(config, path):
                continue
            value = _at(config, path)
            unit = self.units.get(name)
            if unit is not None and isinstance(value, int | float) and math.isfinite(value):
                value = round(value / unit)
            params[name] = value
        return params


def from_config(
    config: Mapping[str, Any], feasible: Callable[..., Any] | None = None
) -> TuneSpace | None:
    """The space in Ray's `param_space`, where everything but a domain is a constant.

    None if nothing in it varies.
    """
    _, domains, grids = parse_spec_vars(dict(config))
    if grids:
        raise InvalidInput(
            f"parameter {_name(grids[0][0])!r}: a grid search tries every value. Use "
            "tune.choice([...]) for a parameter to optimise"
        )
    leaves = {}
    for path, domain in domains:
        _check_path(path)
        leaves[path] = domain
    return _made(leaves, feasible) if leaves else None


def from_space(spec: Any, feasible: Callable[..., Any] | None = None) -> TuneSpace:
    """A space in Partita's form, which may contain Ray's domains and may be nested.

    A dict within a dict is a nested configuration, as everywhere in Ray. For branches, give a
    `partita.Space` with branches.
    """
    if isinstance(spec, Space):
        if not spec.named:
            raise InvalidInput(
                f"space={spec!r}: Ray Tune's configurations are dicts, so give named parameters"
            )
        leaves = {
            tuple(name.split("/")): parameter
            for name, parameter in zip(spec.names or (), spec.parameters, strict=True)
        }
        if spec.constraint is not None:
            raise InvalidInput(
                "the space has a constraint: give feasible=... to PartitaSearch, a function of "
                "the configuration"
            )
        if spec.conditions is None:
            return _made(leaves, feasible)
        paths = {_name(path): path for path in leaves}
        constraint = None if feasible is None else Constraint(feasible, paths, {})
        return TuneSpace(as_space(spec, constraint), paths, {})
    if not isinstance(spec, Mapping) or not spec:
        raise InvalidInput(
            f'space={spec!r}: give a dict of named parameters, such as {{"lr": (1e-4, 1e-1, '
            '"log")} or {"lr": tune.loguniform(1e-4, 1e-1)}'
        )
    return _made(dict(_leaves(spec, ())), feasible)


def _leaves(spec: Mapping[str, Any], above: Path) -> list[tuple[Path, Any]]:
    leaves = []
    for key, value in spec.items():
        path = (*above, key)
        _check_path(path)
        if isinstance(value, Mapping):
            if set(value) == {"grid_search"}:
                raise InvalidInput(
                    f"parameter {_name(path)!r}: a grid search tries every value. Give a list of "
                    "choices"
                )
            leaves += _leaves(value, path)
        else:
            leaves.append((path, value))
    return leaves


def _check_path(path: tuple[Any, ...]) -> None:
    for part in path:
        if not isinstance(part, str) or not part or "/" in part:
            raise InvalidInput(
                f"parameter {_name(path)!r}: names must be strings without '/', and parameters "
                "must be in dicts, not in lists"
            )


def _made(leaves: dict[Path, Any], feasible: Callable[..., Any] | None) -> TuneSpace:
    paths, specs, units = {}, {}, {}
    for path, leaf in leaves.items():
        name = _name(path)
        paths[name] = path
        if isinstance(leaf, sample.Domain):
            try:
                specs[name], unit = _parameter(leaf)
            except InvalidInput as error:
                raise InvalidInput(f"parameter {name!r}: {error}") from None
            if unit is not None:
                units[name] = unit
        else:
            specs[name] = leaf
    constraint = None if feasible is None else Constraint(feasible, paths, units)
    return TuneSpace(as_space(specs, constraint), paths, units)


def _parameter(domain: Any) -> tuple[Any, float | None]:
    """A Ray domain as a parameter, and the unit of its numbers if they are quantized."""
    sampler, unit = domain.get_sampler(), None
    if isinstance(sampler, sample.Quantized):
        sampler, unit = sampler.sampler, sampler.q
    log = isinstance(sampler, sample.LogUniform)
    if isinstance(domain, sample.Categorical):
        return Categorical(tuple(domain.categories)), None
    if not (log or isinstance(sampler, sample.Uniform)):
        raise InvalidInput(
            f"{type(domain).__name__} sampled by {type(sampler).__name__} has no bounds to search "
            "in. Use tune.uniform, tune.loguniform, tune.randint, tune.choice or similar ones"
        )
    if isinstance(domain, sample.Float):
        return _float(domain.lower, domain.upper, log, unit)
    # Ray excludes the upper bound of integers, unless they are quantized.
    if unit is None or unit == 1:
        return Integer(domain.lower, domain.upper - 1, log), None
    first, last = _multiples(domain.lower, domain.upper, unit)
    if log:
        return Integer(first, last, True), unit
    return Integer(first * unit, last * unit, False, unit), None


def _float(low: float, high: float, log: bool, unit: float | None) -> tuple[Any, float | None]:
    if unit is None:
        return (Categorical((float(low),)) if low == high else Float(low, high, log)), None
    first, last = _multiples(low, high, unit)
    if first == last:
        return Categorical((float(_multiple(first, unit)),)), None
    if log:
        return Integer(first, last, True), float(unit)
    return Stepped(_multiple(first, unit), _multiple(last, unit), unit), None


def _multiples(low: float, high: float, unit: float) -> tuple[int, int]:
    """The first and the last multiple of a unit between bounds, up to rounding."""
    first, last = math.ceil(low / unit - 1e-9), math.floor(high / unit + 1e-9)
    if first > last:
        raise InvalidInput(f"there is no multiple of {unit!r} between {low!r} and {high!r}")
    return first, last


def _multiple(number: int, unit: float) -> float:
    """A multiple of a unit, computed in decimal arithmetic: three times 0.1 is 0.3."""
    if isinstance(unit, int):
        return number * unit
    return float(number * Decimal(repr(float(unit))))


# -- configurations --------------------------------------------------------------------------------


def _nested(
    params: Mapping[str, Any], paths: Mapping[str, Path], units: Mapping[str, float]
) -> dict[str, Any]:
    config: dict[str, Any] = {}
    for name, value in params.items():
        *above, last = paths[name]
        place = config
        for part in above:
            place = place.setdefault(part, {})
        unit = units.get(name)
        place[last] = value if unit is None else _multiple(value, unit)
    return config


def _has(config: Mapping[str, Any], path: Path) -> bool:
    """Whether a configuration has a value at a path."""
    try:
        _at(config, path)
    except InvalidInput:
        return False
    return True


def _at(config: Mapping[str, Any], path: Path) -> Any:
    """The value at a path of a configuration, nested or flat or both."""
    if _name(path) in config:
        return config[_name(path)]
    place: Any = config
    for part in path:
        if not isinstance(place, Mapping) or part not in place:
            raise InvalidInput(f"{dict(config)!r}: {_name(path)} is missing")
        place = place[part]
    return place


def _name(path: tuple[Any, ...]) -> str:
    return "/".join(map(str, path))

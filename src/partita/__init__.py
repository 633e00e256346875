"""Partita: optimise noisy black-box functions with many evaluations.

The public names, each loaded on first use so that `import partita` stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .domains import Arms, Box, Grid
    from .errors import PartitaError, TheoryWarning
    from .kernels import Matern
    from .noise import Bernoulli, Bounded, Gaussian, SubGaussian, Uniform
    from .policies.base import Policy, Prediction, Recommendation
    from .policies.igp_ucb import IGPUCB
    from .policies.pi_gp_ucb import PiGPUCB
    from .policies.uniform import UniformSampling

_HOME = {
    "Arms": "domains",
    "Box": "domains",
    "Grid": "domains",
    "PartitaError": "errors",
    "TheoryWarning": "errors",
    "Matern": "kernels",
    "Bernoulli": "noise",
    "Bounded": "noise",
    "Gaussian": "noise",
    "SubGaussian": "noise",
    "Uniform": "noise",
    "Policy": "policies.base",
    "Prediction": "policies.base",
    "Recommendation": "policies.base",
    "IGPUCB": "policies.igp_ucb",
    "PiGPUCB": "policies.pi_gp_ucb",
    "UniformSampling": "policies.uniform",
}

_MODULES = ("experiments", "problems")

__all__ = [
    "IGPUCB",
    "Arms",
    "Bernoulli",
    "Bounded",
    "Box",
    "Gaussian",
    "Grid",
    "Matern",
    "PartitaError",
    "PiGPUCB",
    "Policy",
    "Prediction",
    "Recommendation",
    "SubGaussian",
    "TheoryWarning",
    "Uniform",
    "UniformSampling",
    "__version__",
    "experiments",
    "problems",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'partita' has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

"""Partita: optimise noisy black-box functions with many evaluations.

The public names, each loaded on first use so that `import partita` stays quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._lazy import lazy_names as _lazy_names
from ._version import __version__

if TYPE_CHECKING:
    from . import errors, experiments, problems, testing, theory
    from .domains import Arms, Box, Grid
    from .errors import PartitaError, TheoryWarning
    from .kernels import Matern
    from .mixed import Mixed
    from .noise import Bernoulli, Bounded, Gaussian, SubGaussian, Uniform
    from .optimize import maximize, minimize, scipy_method
    from .optimizer import Optimizer, Suggestion, Trial
    from .policies.base import Policy, Prediction, Recommendation
    from .policies.bkb import BKB
    from .policies.calibrated_ucb import CalibratedUCB
    from .policies.confidence_ball import ConfidenceBall
    from .policies.direct import DIRECT
    from .policies.gp_ucb import GPUCB
    from .policies.hoo import HOO
    from .policies.igp_ucb import IGPUCB
    from .policies.kernel_ucb import KernelUCB
    from .policies.oful import OFUL
    from .policies.optimistic import DOO, SOO
    from .policies.pi_gp_ts import PiGPTS
    from .policies.pi_gp_ucb import PiGPUCB
    from .policies.stosoo import StoSOO
    from .policies.sup_kernel_ucb import SupKernelUCB
    from .policies.sup_lin_ucb import SupLinUCB
    from .policies.uniform import UniformSampling
    from .space import Space
    from .study import Study

_HOME = {
    "Arms": "domains",
    "Box": "domains",
    "Grid": "domains",
    "PartitaError": "errors",
    "TheoryWarning": "errors",
    "Matern": "kernels",
    "Mixed": "mixed",
    "Bernoulli": "noise",
    "Bounded": "noise",
    "Gaussian": "noise",
    "SubGaussian": "noise",
    "Uniform": "noise",
    "maximize": "optimize",
    "minimize": "optimize",
    "scipy_method": "optimize",
    "Optimizer": "optimizer",
    "Suggestion": "optimizer",
    "Trial": "optimizer",
    "Policy": "policies.base",
    "Prediction": "policies.base",
    "Recommendation": "policies.base",
    "BKB": "policies.bkb",
    "CalibratedUCB": "policies.calibrated_ucb",
    "ConfidenceBall": "policies.confidence_ball",
    "DIRECT": "policies.direct",
    "GPUCB": "policies.gp_ucb",
    "HOO": "policies.hoo",
    "IGPUCB": "policies.igp_ucb",
    "KernelUCB": "policies.kernel_ucb",
    "OFUL": "policies.oful",
    "DOO": "policies.optimistic",
    "SOO": "policies.optimistic",
    "PiGPTS": "policies.pi_gp_ts",
    "PiGPUCB": "policies.pi_gp_ucb",
    "StoSOO": "policies.stosoo",
    "SupKernelUCB": "policies.sup_kernel_ucb",
    "SupLinUCB": "policies.sup_lin_ucb",
    "UniformSampling": "policies.uniform",
    "Space": "space",
    "Study": "study",
}

_MODULES = ("errors", "experiments", "problems", "testing", "theory")

__all__ = [
    "BKB",
    "DIRECT",
    "DOO",
    "GPUCB",
    "HOO",
    "IGPUCB",
    "OFUL",
    "SOO",
    "Arms",
    "Bernoulli",
    "Bounded",
    "Box",
    "CalibratedUCB",
    "ConfidenceBall",
    "Gaussian",
    "Grid",
    "KernelUCB",
    "Matern",
    "Mixed",
    "Optimizer",
    "PartitaError",
    "PiGPTS",
    "PiGPUCB",
    "Policy",
    "Prediction",
    "Recommendation",
    "Space",
    "StoSOO",
    "Study",
    "SubGaussian",
    "Suggestion",
    "SupKernelUCB",
    "SupLinUCB",
    "TheoryWarning",
    "Trial",
    "Uniform",
    "UniformSampling",
    "__version__",
    "errors",
    "experiments",
    "maximize",
    "minimize",
    "problems",
    "scipy_method",
    "testing",
    "theory",
]

__getattr__, __dir__ = _lazy_names(__name__, _HOME, _MODULES)

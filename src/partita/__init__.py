"""Partita: optimise noisy black-box functions with many evaluations.

The public names, each loaded on first use so that `import partita` stays quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._lazy import lazy_names as _lazy_names
from ._version import __version__

if TYPE_CHECKING:
    from . import errors, experiments, problems, testing, theory
    from ._types import Prediction, Recommendation
    from .errors import PartitaError, TheoryWarning, TrialPruned
    from .front import maximize, minimize, scipy_method
    from .model.domains import Arms, Box, Grid
    from .model.kernels import Matern
    from .model.mixed import Mixed
    from .model.noise import Bernoulli, Bounded, Gaussian, SubGaussian, Uniform
    from .optimize.aggregates import Aggregate
    from .optimize.optimizer import Optimizer
    from .optimize.trial import Suggestion, Trial
    from .policies.base import Policy
    from .policies.baselines.bkb import BKB
    from .policies.baselines.confidence_ball import ConfidenceBall
    from .policies.baselines.direct import DIRECT
    from .policies.baselines.gp_ucb import GPUCB
    from .policies.baselines.hoo import HOO
    from .policies.baselines.igp_ucb import IGPUCB
    from .policies.baselines.kernel_ucb import KernelUCB
    from .policies.baselines.oful import OFUL
    from .policies.baselines.optimistic import DOO, SOO
    from .policies.baselines.stosoo import StoSOO
    from .policies.baselines.sup_kernel_ucb import SupKernelUCB
    from .policies.baselines.sup_lin_ucb import SupLinUCB
    from .policies.calibrated import CalibratedUCB
    from .policies.pi_gp_ts import PiGPTS
    from .policies.pi_gp_ucb import PiGPUCB
    from .policies.uniform import UniformSampling
    from .space import Space
    from .study import RemoteStudy, Study, connect

_HOME = {
    "Arms": "model.domains",
    "Box": "model.domains",
    "Grid": "model.domains",
    "PartitaError": "errors",
    "TheoryWarning": "errors",
    "TrialPruned": "errors",
    "Matern": "model.kernels",
    "Mixed": "model.mixed",
    "Bernoulli": "model.noise",
    "Bounded": "model.noise",
    "Gaussian": "model.noise",
    "SubGaussian": "model.noise",
    "Uniform": "model.noise",
    "maximize": "front",
    "minimize": "front",
    "scipy_method": "front",
    "Aggregate": "optimize.aggregates",
    "Optimizer": "optimize.optimizer",
    "Suggestion": "optimize.trial",
    "Trial": "optimize.trial",
    "Policy": "policies.base",
    "Prediction": "_types",
    "Recommendation": "_types",
    "BKB": "policies.baselines.bkb",
    "CalibratedUCB": "policies.calibrated",
    "ConfidenceBall": "policies.baselines.confidence_ball",
    "DIRECT": "policies.baselines.direct",
    "GPUCB": "policies.baselines.gp_ucb",
    "HOO": "policies.baselines.hoo",
    "IGPUCB": "policies.baselines.igp_ucb",
    "KernelUCB": "policies.baselines.kernel_ucb",
    "OFUL": "policies.baselines.oful",
    "DOO": "policies.baselines.optimistic",
    "SOO": "policies.baselines.optimistic",
    "PiGPTS": "policies.pi_gp_ts",
    "PiGPUCB": "policies.pi_gp_ucb",
    "StoSOO": "policies.baselines.stosoo",
    "SupKernelUCB": "policies.baselines.sup_kernel_ucb",
    "SupLinUCB": "policies.baselines.sup_lin_ucb",
    "UniformSampling": "policies.uniform",
    "Space": "space",
    "RemoteStudy": "study",
    "Study": "study",
    "connect": "study",
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
    "Aggregate",
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
    "RemoteStudy",
    "Space",
    "StoSOO",
    "Study",
    "SubGaussian",
    "Suggestion",
    "SupKernelUCB",
    "SupLinUCB",
    "TheoryWarning",
    "Trial",
    "TrialPruned",
    "Uniform",
    "UniformSampling",
    "__version__",
    "connect",
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

"""Peers without a Gaussian process: Optuna, cmaes, nevergrad and PyXAB."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from typing import ClassVar

import numpy as np

from .players import Player, Setting


class _Optuna(Player):
    """Optuna's samplers; the answer is `study.best_params`, its highest value."""

    packages = ("optuna",)
    module = "optuna"

    def _sampler(self, setting: Setting) -> object:
        raise NotImplementedError

    def __init__(self, setting: Setting) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
        self._study = optuna.create_study(direction="maximize", sampler=self._sampler(setting))
        side = optuna.distributions.FloatDistribution(0.0, 1.0)
        self._sides = {f"x{i}": side for i in range(setting.dim)}
        self._trial = None

    def ask(self) -> np.ndarray:
        self._trial = self._study.ask(self._sides)
        return self._point(self._trial.params)

    def tell(self, x: np.ndarray, y: float) -> None:
        self._study.tell(self._trial, y)

    def recommend(self) -> np.ndarray:
        return self._point(self._study.best_params)

    def _point(self, params: dict[str, float]) -> np.ndarray:
        return np.array([params[name] for name in self._sides])


class OptunaTPE(_Optuna):
    name = "optuna-tpe"
    title = "Optuna, TPE"
    settings = "defaults"

    def _sampler(self, setting: Setting) -> object:
        from optuna.samplers import TPESampler

        return TPESampler(seed=setting.seed)


class OptunaCMAES(_Optuna):
    name = "optuna-cmaes"
    title = "Optuna, CMA-ES"
    packages = ("optuna", "cmaes")
    settings = "defaults"

    def _sampler(self, setting: Setting) -> object:
        from optuna.samplers import CmaEsSampler

        return CmaEsSampler(seed=setting.seed)


class OptunaGP(_Optuna):
    name = "optuna-gp"
    title = "Optuna, GPSampler"
    packages = ("optuna", "torch")
    module = "torch"
    settings = "defaults: the objective is taken to be noisy"
    follows = 1_000

    def _sampler(self, setting: Setting) -> object:
        import torch
        from optuna.samplers import GPSampler

        torch.set_num_threads(1)
        torch.manual_seed(setting.seed)
        return GPSampler(seed=setting.seed)


class CMAES(Player):
    """CyberAgent's cmaes; the answer is the mean of its distribution."""

    name = "cmaes"
    title = "cmaes, CMA"
    packages = ("cmaes",)
    module = "cmaes"
    settings = (
        "from the centre, deviation 0.3, bounds, lr_adapt for the noise; once it says stop, "
        "its mean"
    )

    def __init__(self, setting: Setting) -> None:
        from cmaes import CMA

        dim = setting.dim
        self._cma = CMA(
            mean=np.full(dim, 0.5),
            sigma=0.3,
            bounds=np.tile([0.0, 1.0], (dim, 1)),
            seed=setting.seed,
            lr_adapt=True,
        )
        self._generation: list[tuple[np.ndarray, float]] = []
        self._stopped = False

    def ask(self) -> np.ndarray:
        return self.recommend() if self._stopped else self._cma.ask()

    def tell(self, x: np.ndarray, y: float) -> None:
        if self._stopped:
            return
        self._generation.append((x, -y))
        if len(self._generation) == self._cma.population_size:
            self._cma.tell(self._generation)
            self._generation = []
            self._stopped = self._cma.should_stop()

    def recommend(self) -> np.ndarray:
        return np.clip(self._cma.mean, 0.0, 1.0)


class _Nevergrad(Player):
    """Nevergrad's optimisers, told the budget and that the function is noisy."""

    packages = ("nevergrad",)
    module = "nevergrad"
    settings = "defaults; told the budget, and that the function is not deterministic"
    told_budget = True
    optimizer_name: ClassVar[str]

    def __init__(self, setting: Setting) -> None:
        nevergrad = import_nevergrad()
        cube = nevergrad.p.Array(init=np.full(setting.dim, 0.5), lower=0.0, upper=1.0)
        cube.function.deterministic = False
        cube.random_state = np.random.RandomState(setting.seed)
        np.random.seed(setting.seed)  # noqa: NPY002  some of its parts draw globally
        make = nevergrad.optimizers.registry[self.optimizer_name]
        self._optimizer = make(parametrization=cube, budget=setting.budget, num_workers=1)
        self._candidate = None

    def ask(self) -> np.ndarray:
        self._candidate = self._optimizer.ask()
        return np.array(self._candidate.value, dtype=float)

    def tell(self, x: np.ndarray, y: float) -> None:
        self._optimizer.tell(self._candidate, -y)

    def recommend(self) -> np.ndarray:
        return np.array(self._optimizer.provide_recommendation().value, dtype=float)


class TBPSA(_Nevergrad):
    name = "nevergrad-tbpsa"
    title = "nevergrad, TBPSA"
    optimizer_name = "TBPSA"


class NGOpt(_Nevergrad):
    name = "nevergrad-ngopt"
    title = "nevergrad, NGOpt"
    optimizer_name = "NGOpt"


def import_nevergrad() -> object:
    """Nevergrad, without bayesian-optimization.

    Nevergrad 1.0.12 cannot be imported beside bayesian-optimization 2 or later, only without it:
    it asks for a name that is gone. Neither TBPSA nor NGOpt uses it.
    """
    if "nevergrad" not in sys.modules:
        hidden = sys.modules.get("bayes_opt")
        sys.modules["bayes_opt"] = None
        try:
            import nevergrad  # noqa: F401
        finally:
            del sys.modules["bayes_opt"]
            if hidden is not None:
                sys.modules["bayes_opt"] = hidden
    return sys.modules["nevergrad"]


class _PyXAB(Player):
    """PyXAB's trees; the answer is `get_last_point`."""

    packages = ("PyXAB",)
    module = "PyXAB"

    def _algorithm(self, setting: Setting, sides: list[list[float]]) -> object:
        raise NotImplementedError

    def __init__(self, setting: Setting) -> None:
        np.random.seed(setting.seed)  # noqa: NPY002  PyXAB divides along sides that it draws globally
        self._tree = self._algorithm(setting, [[0.0, 1.0] for _ in range(setting.dim)])
        self._time = 0

    def ask(self) -> np.ndarray:
        self._time += 1
        return np.array(self._tree.pull(self._time), dtype=float)

    def tell(self, x: np.ndarray, y: float) -> None:
        self._tree.receive_reward(self._time, y)

    def recommend(self) -> np.ndarray:
        return np.array(self._tree.get_last_point(), dtype=float)


class HOO(_PyXAB):
    name = "pyxab-hoo"
    title = "PyXAB, HOO"
    settings = "T_HOO with its defaults, nu = 1 and rho = 0.5; told the budget"
    told_budget = True

    def _algorithm(self, setting: Setting, sides: list[list[float]]) -> object:
        return import_module("PyXAB.algos.HOO").T_HOO(rounds=setting.budget, domain=sides)


class HCT(_PyXAB):
    name = "pyxab-hct"
    title = "PyXAB, HCT"
    settings = "defaults: nu = 1, rho = 0.5, c = 0.1, delta = 0.01"

    def _algorithm(self, setting: Setting, sides: list[list[float]]) -> object:
        return import_module("PyXAB.algos.HCT").HCT(domain=sides)


class StroquOOL(_PyXAB):
    name = "pyxab-stroquool"
    title = "PyXAB, StroquOOL"
    settings = "defaults; told the budget; plays its answer once it has ended"
    told_budget = True

    def _algorithm(self, setting: Setting, sides: list[list[float]]) -> object:
        return import_module("PyXAB.algos.StroquOOL").StroquOOL(n=setting.budget, domain=sides)

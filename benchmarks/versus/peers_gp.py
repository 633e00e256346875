"""Peers with a Gaussian process of their own: BoTorch, scikit-optimize, bayesian-optimization.

What they warn of is silenced where they are run (`runs.play`).
"""

from __future__ import annotations

import numpy as np

from .players import Player, Setting


class _BoTorch(Player):
    """A `SingleTaskGP` fitted anew at each step; the answer: the point played of highest mean."""

    packages = ("botorch", "gpytorch", "torch")
    module = "botorch"
    follows = 200

    def _acquisition(self, model: object, points: object) -> object:
        raise NotImplementedError

    def __init__(self, setting: Setting) -> None:
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(setting.seed)
        self._torch = torch
        self._dim, self._seed = setting.dim, setting.seed
        sobol = torch.quasirandom.SobolEngine(setting.dim, scramble=True, seed=setting.seed)
        self._first = sobol.draw(2 * (setting.dim + 1), dtype=torch.double).numpy()
        self._points: list[np.ndarray] = []
        self._values: list[float] = []

    def ask(self) -> np.ndarray:
        step = len(self._points)
        if step < len(self._first):
            return self._first[step]
        from botorch.optim import optimize_acqf

        torch = self._torch
        model, points = self._fitted()
        bounds = torch.stack([torch.zeros(self._dim), torch.ones(self._dim)]).double()
        best, _ = optimize_acqf(
            self._acquisition(model, points),
            bounds=bounds,
            q=1,
            num_restarts=10,
            raw_samples=512,
        )
        return best[0].detach().numpy().clip(0.0, 1.0)

    def tell(self, x: np.ndarray, y: float) -> None:
        self._points.append(x)
        self._values.append(y)

    def recommend(self) -> np.ndarray:
        # What is drawn for an answer must not change what is asked next.
        with self._torch.random.fork_rng(devices=[]):
            model, points = self._fitted()
            with self._torch.no_grad():
                means = model.posterior(points).mean
        return self._points[int(means.argmax())]

    def _fitted(self) -> tuple[object, object]:
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from gpytorch.mlls import ExactMarginalLogLikelihood

        torch = self._torch
        points = torch.tensor(np.array(self._points), dtype=torch.double)
        values = torch.tensor(self._values, dtype=torch.double)[:, None]
        model = SingleTaskGP(points, values)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model, points


class BoTorchUCB(_BoTorch):
    name = "botorch-ucb"
    title = "BoTorch, GP-UCB"
    settings = (
        "SingleTaskGP, which learns the noise, fitted at each step; qUpperConfidenceBound, beta 4; "
        "2(d+1) Sobol points first; 10 restarts from 512 points"
    )

    def _acquisition(self, model: object, points: object) -> object:
        from botorch.acquisition import qUpperConfidenceBound

        return qUpperConfidenceBound(model, beta=4.0)


class BoTorchNEI(_BoTorch):
    name = "botorch-nei"
    title = "BoTorch, noisy EI"
    settings = (
        "SingleTaskGP, which learns the noise, fitted at each step; qLogNoisyExpectedImprovement; "
        "2(d+1) Sobol points first; 10 restarts from 512 points"
    )

    def _acquisition(self, model: object, points: object) -> object:
        from botorch.acquisition import qLogNoisyExpectedImprovement

        return qLogNoisyExpectedImprovement(model, X_baseline=points, prune_baseline=True)


class Skopt(Player):
    """scikit-optimize; the answer is `expected_minimum`, of its last surrogate's mean."""

    name = "skopt"
    title = "scikit-optimize, GP"
    packages = ("scikit-optimize", "scikit-learn")
    module = "skopt"
    settings = (
        "Optimizer with its defaults: a GP that learns the noise, gp_hedge, 10 random points "
        "first; only the last model is kept"
    )
    follows = 200

    def __init__(self, setting: Setting) -> None:
        import skopt

        self._seed = setting.seed
        self._optimizer = skopt.Optimizer(
            [(0.0, 1.0)] * setting.dim,
            base_estimator="GP",
            random_state=setting.seed,
            model_queue_size=1,
        )

    def ask(self) -> np.ndarray:
        return np.array(self._optimizer.ask(), dtype=float)

    def tell(self, x: np.ndarray, y: float) -> None:
        self._optimizer.tell(x.tolist(), -y)

    def recommend(self) -> np.ndarray:
        from skopt.utils import expected_minimum

        result = self._optimizer.get_result()
        if not result.models:
            return np.array(result.x, dtype=float)
        return np.array(expected_minimum(result, random_state=self._seed)[0], dtype=float)


class BayesOpt(Player):
    """bayesian-optimization; the answer is the point played of highest mean, by its `predict`."""

    name = "bayes-opt"
    title = "bayesian-optimization"
    packages = ("bayesian-optimization", "scikit-learn")
    module = "bayes_opt"
    settings = (
        "UCB, kappa 2.576, 5 random points first (defaults); a WhiteKernel added to its Matérn 5/2 "
        "so that it learns the noise; duplicate points allowed"
    )
    follows = 200
    _FIRST = 5

    def __init__(self, setting: Setting) -> None:
        from bayes_opt import BayesianOptimization
        from sklearn.gaussian_process.kernels import Matern, WhiteKernel

        self._optimizer = BayesianOptimization(
            f=None,
            pbounds={f"x{i}": (0.0, 1.0) for i in range(setting.dim)},
            random_state=setting.seed,
            verbose=0,
            allow_duplicate_points=True,
        )
        self._optimizer.set_gp_params(kernel=Matern(nu=2.5) + WhiteKernel())
        self._names = [f"x{i}" for i in range(setting.dim)]
        self._told: list[np.ndarray] = []

    def ask(self) -> np.ndarray:
        if len(self._told) < self._FIRST:
            params = self._optimizer.random_sample(1)[0]
        else:
            params = self._optimizer.suggest()
        return np.array([params[name] for name in self._names], dtype=float)

    def tell(self, x: np.ndarray, y: float) -> None:
        self._optimizer.register(dict(zip(self._names, x.tolist(), strict=True)), y)
        self._told.append(x)

    def recommend(self) -> np.ndarray:
        # The fit draws its restarts from the state that also draws what is asked next.
        state = self._optimizer._random_state.get_state()
        played = [dict(zip(self._names, x.tolist(), strict=True)) for x in self._told]
        means = self._optimizer.predict(played, fit_gp=True)
        self._optimizer._random_state.set_state(state)
        return self._told[int(np.argmax(means))]

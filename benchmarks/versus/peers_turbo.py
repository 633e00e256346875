"""TuRBO-1 on BoTorch: a trust region that a Gaussian process leads.

Eriksson et al. 2019, "Scalable global optimization via local Bayesian optimization": Thompson
sampling in a box around the best point, whose sides follow the lengthscales. It doubles after
successes, halves after failures, and the search begins anew once it is too small.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .players import Player, Setting

#: Points of a batch, for which the process is fitted once, and candidates that they are drawn from.
BATCH, CANDIDATES = 50, 2000
#: The side of the region at first, at least and at most.
FIRST, LEAST, MOST = 0.8, 0.5**7, 1.6
#: Successes after which it doubles, and by which part of the best value one must be better.
SUCCESSES, BETTER = 3, 1e-3
#: Iterations of a fit, at most.
ITERATIONS = 50


class TuRBO(Player):
    name = "turbo-1"
    title = "TuRBO-1, on BoTorch"
    packages = ("botorch", "gpytorch", "torch")
    module = "botorch"
    settings = (
        f"batches of {BATCH}, {CANDIDATES} candidates, 2d Sobol points first; Matérn 5/2 with a "
        "lengthscale for each side, noise learned; answers with the point of highest mean"
    )
    follows = 1000

    def __init__(self, setting: Setting) -> None:
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(setting.seed)
        self._torch, self._dim, self._seed = torch, setting.dim, setting.seed
        self._starts = 0
        self._all: list[tuple[np.ndarray, float]] = []
        self._start()

    def _start(self) -> None:
        """Begin anew with Sobol points; values of before do not count."""
        self._points: list[np.ndarray] = []
        self._values: list[float] = []
        self._side, self._wins, self._losses = FIRST, 0, 0
        self._batch = self._sobol(2 * self._dim)
        self._awaited = len(self._batch)
        self._best = -math.inf

    def _sobol(self, number: int) -> list[np.ndarray]:
        self._starts += 1
        engine = self._torch.quasirandom.SobolEngine
        seed = 1000 * self._seed + self._starts
        return list(engine(self._dim, scramble=True, seed=seed).draw(number).double().numpy())

    def ask(self) -> np.ndarray:
        if not self._batch:
            self._adapt()
            if self._side < LEAST:
                self._start()
            else:
                self._batch = list(self._thompson())
        return self._batch[0]

    def tell(self, x: np.ndarray, y: float) -> None:
        self._batch.pop(0)
        self._points.append(x)
        self._values.append(y)
        self._all.append((x, y))

    def _adapt(self) -> None:
        """Double or halve the region by what the last batch has gained."""
        top, before = max(self._values), self._best
        if before > -math.inf:
            won = top > before + BETTER * abs(before)
            self._wins, self._losses = (self._wins + 1, 0) if won else (0, self._losses + 1)
            if self._wins == SUCCESSES:
                self._side, self._wins = min(2.0 * self._side, MOST), 0
            elif self._losses == math.ceil(max(4.0, self._dim) / BATCH):
                self._side, self._losses = 0.5 * self._side, 0
        self._best = max(before, top)

    def _thompson(self) -> np.ndarray:
        """A batch of points, each the highest of a draw of the process."""
        torch = self._torch
        model = self._fitted(self._points, self._values)
        scales = model.covar_module.base_kernel.lengthscale.detach().numpy().ravel()
        weights = scales / scales.mean()
        weights = weights / np.exp(np.log(weights).mean())
        centre = self._points[int(np.argmax(self._values))]
        lower = np.clip(centre - 0.5 * self._side * weights, 0.0, 1.0)
        upper = np.clip(centre + 0.5 * self._side * weights, 0.0, 1.0)
        drawn = lower + (upper - lower) * np.array(self._sobol(CANDIDATES))
        random = np.random.default_rng([self._seed, self._starts])
        moved = random.random(drawn.shape) < min(1.0, 20.0 / self._dim)
        still = np.flatnonzero(~moved.any(axis=1))
        moved[still, random.integers(self._dim, size=len(still))] = True
        candidates = np.where(moved, drawn, centre)
        with torch.no_grad():
            draws = model.posterior(torch.tensor(candidates)).rsample(torch.Size([BATCH]))
        rows = draws[:, :, 0].argmax(dim=1).numpy()
        return candidates[rows]

    def _fitted(self, points: list[np.ndarray], values: list[float]) -> Any:
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.models.transforms import Standardize
        from gpytorch.constraints import Interval
        from gpytorch.kernels import MaternKernel, ScaleKernel
        from gpytorch.likelihoods import GaussianLikelihood
        from gpytorch.mlls import ExactMarginalLogLikelihood

        torch = self._torch
        kernel = MaternKernel(
            nu=2.5, ard_num_dims=self._dim, lengthscale_constraint=Interval(0.005, 4.0)
        )
        model = SingleTaskGP(
            torch.tensor(np.array(points), dtype=torch.double),
            torch.tensor(values, dtype=torch.double)[:, None],
            covar_module=ScaleKernel(kernel),
            likelihood=GaussianLikelihood(noise_constraint=Interval(1e-8, 1.0)),
            outcome_transform=Standardize(m=1),
        )
        mll = ExactMarginalLogLikelihood(model.likelihood, model)
        fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"maxiter": ITERATIONS}})
        return model

    def recommend(self) -> np.ndarray:
        # What is drawn for an answer must not change what is asked next.
        with self._torch.random.fork_rng(devices=[]):
            points, values = (list(each) for each in zip(*self._all, strict=True))
            model = self._fitted(points, values)
            with self._torch.no_grad():
                rows = self._torch.tensor(np.array(points), dtype=self._torch.double)
                means = model.posterior(rows).mean
        return points[int(means.argmax())]

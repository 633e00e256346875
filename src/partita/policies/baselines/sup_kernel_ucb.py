"""SupKernelUCB: phased elimination with Gaussian processes. Valko et al., UAI 2013."""

from __future__ import annotations

import numpy as np

from partita._state import LARGEST, Saved, State, wholes
from partita._types import FloatArray, IntArray
from partita.gp.posterior import (
    DensePosterior,
    Plan,
    Posterior,
    Prior,
    absorb,
    dense_state,
    restore_dense,
)
from partita.gp.rows import RowPosterior, new_posterior
from partita.gp.warm import WarmCovariances
from partita.model.assumptions import Assumptions
from partita.model.domains import Arms, Grid
from partita.model.kernels import Matern
from partita.model.noise import Noise
from partita.policies.checks import check_finite, check_kernel

from .arms import Model
from .phased import PhasedPolicy


class SupKernelUCB(PhasedPolicy):
    """Phased elimination with a Gaussian process for each phase, on finitely many arms.

    Its regret bound, of order √(effective dimension · T), is the best known of its kind; in
    practice it spends most of its steps on learning arms that it could do without. Janz et al.
    2020, "Related work", say that it "fails to achieve empirically sublinear regret even on very
    simple problems". Use `PiGPUCB`, unless it is this comparison that you are after.

    Up to a few thousand arms the cost per step is constant, above that it grows with every step; a
    step after the last phase costs next to nothing.

    Parameters
    ----------
    domain
        A `Grid` or `Arms`.
    horizon
        The planned number of evaluations, T. The choice, the bounds and the regret bound depend on
        it.
    kernel, norm_bound
        ‖f‖ ≤ norm_bound in the kernel's space.
    noise
        The noise model.
    delta
        The probability that a bound may fail.
    seed
        Breaks ties.
    alpha
        The regulariser, γ in Valko et al.
    """

    state_version = 1

    def __init__(
        self,
        domain: Grid | Arms,
        *,
        horizon: int,
        kernel: Matern,
        norm_bound: float,
        noise: Noise,
        delta: float = 0.1,
        seed: int = 0,
        alpha: float = 1.0,
    ) -> None:
        arms = check_finite(domain, "SupKernelUCB")
        self.kernel = check_kernel(kernel, arms)
        assumptions = Assumptions(self.kernel, norm_bound, noise, delta)
        super().__init__(arms, horizon, assumptions, seed, alpha, np.ones(arms.size))
        self._prior = Prior(kernel, arms.unit_points / kernel.scales(arms.dim))
        self._shape = (arms.n,) * arms.dim if isinstance(arms, Grid) else None
        self._warm = WarmCovariances()

    def _new_model(self) -> Model:
        return _KernelModel(self._prior, self.alpha, self._shape, self._warm)

    def _posteriors(self) -> list[Posterior]:
        models = [level.model for level in self._levels if level is not None]
        return [model.posterior for model in models if isinstance(model, _KernelModel)]

    def _state(self) -> State:
        return {**super()._state(), "warm": wholes(self._warm.order(self._posteriors()))}

    def _restore(self, saved: Saved) -> None:
        super()._restore(saved)
        self._warm.restore(saved, "warm", self._posteriors())


class _KernelModel:
    """An exact Gaussian process on all arms, with the data that it came from."""

    def __init__(
        self,
        prior: Prior,
        alpha: float,
        shape: tuple[int, ...] | None,
        warm: WarmCovariances,
    ) -> None:
        """`warm` are the covariances of all models, which share the memory."""
        self._prior = prior
        self._warm = warm
        self._count = np.zeros(len(prior))
        self._total = np.zeros(len(prior))
        self._distinct = 0
        self._posterior = new_posterior(len(prior), alpha, shape)
        self._refit()

    @property
    def posterior(self) -> Posterior:
        """The Gaussian process."""
        return self._posterior

    @property
    def mean(self) -> FloatArray:
        """Means, (m,)."""
        return self._posterior.mean

    @property
    def std(self) -> FloatArray:
        """Standard deviations, (m,)."""
        return self._posterior.std

    def observe(self, j: int, value: float) -> None:
        """Condition on one value at arm j."""
        self._distinct += not self._count[j]
        self._count[j] += 1
        self._total[j] += value
        if absorb(self._posterior, j, value, self._distinct):
            self._warm.use(self._posterior)
        else:
            self._refit()
            self._warm.trim()

    def observe_many(self, arms: IntArray, values: FloatArray) -> None:
        """Condition on values (n,) at arms (n,): one by one, or all at once if that is less."""
        if len(arms) <= self._distinct:
            for j, value in zip(arms.tolist(), values.tolist(), strict=True):
                self.observe(j, value)
            return
        np.add.at(self._count, arms, 1)
        np.add.at(self._total, arms, values)
        self._distinct = int(np.count_nonzero(self._count))
        self._refit()
        self._warm.trim()

    def plan(self) -> Plan:
        """A plan with no pending evaluations yet."""
        if self._posterior.is_cold:
            self._refit()
        self._warm.use(self._posterior)
        plan = self._posterior.plan()
        self._warm.trim()
        return plan

    def _refit(self) -> None:
        where = np.flatnonzero(self._count)
        counts = self._count[where]
        self._posterior.refit(self._prior, where, self._total[where] / counts, counts)
        self._warm.note(self._posterior)

    def state(self) -> State:
        """What was told, and the posterior, as plain data."""
        posterior = self._posterior
        return {
            "count": self._count.copy(),
            "total": self._total.copy(),
            "dense": dense_state([posterior]) if isinstance(posterior, DensePosterior) else None,
            "by_rows": posterior.state() if isinstance(posterior, RowPosterior) else None,
        }

    def restore(self, saved: Saved) -> None:
        """Restore a saved state."""
        size = len(self._prior)
        self._count = saved.floats("count", (size,), 0.0, 2.0**53)
        whole = (np.rint(self._count) == self._count).all()
        saved.require(whole, "counts that are whole")
        self._total = saved.floats("total", (size,), -LARGEST * self._count, LARGEST * self._count)
        self._distinct = int(np.count_nonzero(self._count))
        if isinstance(self._posterior, DensePosterior):
            restore_dense(saved.part("dense"), [self._posterior], [size])
        elif isinstance(self._posterior, RowPosterior):
            self._posterior.restore(saved.part("by_rows"), self._prior)

"""Partita as a search algorithm for Ray Tune."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ray import cloudpickle
from ray.tune.result import DEFAULT_METRIC
from ray.tune.search import Searcher

from partita._checks import check_seed
from partita._version import __version__
from partita.errors import InvalidInput, VersionMismatch
from partita.model.assumptions import Assumptions
from partita.model.kernels import Matern
from partita.model.noise import Noise
from partita.optimize.failures import Failures
from partita.optimize.optimizer import Optimizer
from partita.optimize.trial import Suggestion, Trial
from partita.optimize.values import as_value

from .space import TuneSpace, from_config, from_space

logger = logging.getLogger(__name__)

#: The format of a saved searcher, raised by one with every change. A newer one is refused.
FORMAT = 4


class PartitaSearch(Searcher):  # type: ignore[misc]
    """A searcher for `tune.TuneConfig(search_alg=...)`.

    Parameters
    ----------
    space : dict, optional
        Parameters in Partita's form, `{"lr": (1e-4, 1e-1, "log")}`, or in Ray's,
        `{"lr": tune.loguniform(1e-4, 1e-1)}`; they may be nested. By default the `param_space` of
        the Tuner, in which everything but Ray's domains is constant.
    metric, mode
        The name of the metric to optimise, and "min" or "max". By default those of `TuneConfig`,
        which Ray passes on only together with a `param_space`.
    points_to_evaluate : list of configurations, optional
        The first configurations to run.
    evaluated_rewards : list of numbers, optional
        The values of `points_to_evaluate`, if known; then these are not run.
    seed : int
        The same seed and the same results in the same order give the same suggestions.
    n_evals : int, optional
        The planned number of trials; by default `num_samples` of the `TuneConfig`.
    norm_bound, noise, kernel, delta, policy
        As for `partita.Optimizer`.
    feasible : function, optional
        Takes a configuration (its parameters, without constants), and returns True if it may be
        run. Define it at the top level of a module: it is saved with the run.

    Notes
    -----
    The last value that a trial reports is used; earlier ones are ignored. This also holds for a
    trial that a scheduler stops early, as with Ray's other searchers. A trial that fails, or does
    not report a finite number, is a failed evaluation. Where that happens is learned, and avoided.
    Tune counts it among its `num_samples`.

    A searcher that was used in an earlier run, or was restored, keeps what it has learned if it is
    given to a Tuner with the same space.
    """

    _metric: str | None
    _mode: str | None

    def __init__(
        self,
        space: Any = None,
        metric: str | None = None,
        mode: str | None = None,
        *,
        points_to_evaluate: Sequence[Mapping[str, Any]] | None = None,
        evaluated_rewards: Sequence[float] | None = None,
        seed: int = 0,
        n_evals: int | None = None,
        norm_bound: float | None = None,
        noise: Noise | None = None,
        kernel: Matern | None = None,
        delta: float = 0.1,
        policy: str | Callable[..., Any] | None = None,
        feasible: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        _check_metric(metric, mode)
        super().__init__(metric=metric, mode=mode)
        self._assumptions = Assumptions(kernel, norm_bound, noise, delta)
        self._seed, self._planned, self._policy = check_seed(seed), n_evals, policy
        self._feasible = _check_feasible(feasible)
        self._first = _check_first(points_to_evaluate, evaluated_rewards)
        self._tune_space: TuneSpace | None = None
        self._optimizer: Optimizer | None = None
        self._failures: Failures | None = None
        self._limit: int | None = None
        self._running: dict[str, Trial] = {}
        self._failed: dict[str, dict[str, Any]] = {}
        if space is not None:
            self._tune_space = from_space(space, self._feasible)
            self._begin_if_ready()

    # -- what Ray Tune calls -------------------------------------------------------------------

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: Mapping[str, Any], **spec: Any
    ) -> bool:
        """Set the metric, mode, space and number of samples from the Tuner."""
        _check_metric(metric or self._metric, mode or self._mode)
        space = from_config(config, self._feasible)
        if space is not None and self._tune_space is not None and space != self._tune_space:
            return False  # Tune then reports that two spaces were given
        self._check_same("mode", mode, self._mode)
        self._check_same("metric", metric, self._metric)
        self._metric, self._mode = metric or self._metric, mode or self._mode
        if space is not None:
            self._tune_space = space
        samples = spec.get("num_samples")
        if self._planned is None and isinstance(samples, int) and samples > 0:
            self._planned = samples
        for trial_id in list(self._running):  # trials of an earlier run will never end
            self._drop(trial_id)
        if self._optimizer is not None and not len(self._optimizer.trials):
            self._optimizer = None  # make it again, now with the number of samples
        self._begin_if_ready()
        return True

    def set_max_concurrency(self, max_concurrent: int) -> bool:
        """Apply the limit of a `ConcurrencyLimiter`, which then passes everything on.

        Otherwise the limiter would not pass on values of trials that it does not know, such as
        failed ones that a restored run repeats.
        """
        self._limit = max_concurrent
        return True

    def suggest(self, trial_id: str) -> dict[str, Any] | None:
        """The configuration of a new trial, or None while the concurrency limit is reached."""
        self._begin_if_ready()
        optimizer, tune_space = self.optimizer, self._tune_space
        assert tune_space is not None
        if trial_id not in self._running:
            if self._limit is not None and len(self._running) >= self._limit:
                return None
            self._running[trial_id] = self._next(optimizer, tune_space)
        return tune_space.config(self._running[trial_id].params)

    def on_trial_complete(
        self, trial_id: str, result: Mapping[str, Any] | None = None, error: bool = False
    ) -> None:
        """Record how a trial ended."""
        value = None if error else self._value(trial_id, result)
        if value is not None and self._take(trial_id, value, result or {}):
            return
        if trial_id not in self._running:
            return
        if error or result:
            self._fail(trial_id)
        else:  # stopped before it began
            self._drop(trial_id)

    def on_trial_result(self, trial_id: str, result: Mapping[str, Any]) -> None:
        """Do nothing: only the last result counts, and comes with `on_trial_complete`."""

    def add_evaluated_point(
        self,
        parameters: Mapping[str, Any],
        value: float,
        error: bool = False,
        pruned: bool = False,
        intermediate_values: list[float] | None = None,
    ) -> None:
        """Report a value known from elsewhere, at a configuration of the space."""
        optimizer, tune_space = self.optimizer, self._tune_space
        assert tune_space is not None
        params = tune_space.params(parameters)
        if error:
            optimizer.point_of(params, "add_evaluated_point")
            self._memory.report(params, None)
        else:
            optimizer.add(params, value)
            self._memory.succeeded(params)

    def save(self, checkpoint_path: str) -> None:
        """Save the searcher to a file. Tune calls this during a run."""
        content = cloudpickle.dumps(
            {"partita_search": FORMAT, "version": __version__, "state": self.__dict__}
        )
        Path(checkpoint_path).write_bytes(content)

    def restore(self, checkpoint_path: str) -> None:
        """Restore the searcher that `save` wrote; its present state is lost.

        The file is unpickled, which can run any code: use only files that you trust.
        """
        try:
            content = pickle.loads(Path(checkpoint_path).read_bytes())
            form, state = content["partita_search"], content["state"]
        except OSError:
            raise
        except Exception as error:  # pickle may raise anything for a damaged file
            raise InvalidInput(
                f"{checkpoint_path} is not a file that PartitaSearch.save wrote, or it is damaged "
                f"({type(error).__name__}: {error})"
            ) from error
        if form != FORMAT:
            raise VersionMismatch(
                f"{checkpoint_path} was written in format {form!r} by Partita "
                f"{content.get('version')}, but this Partita reads format {FORMAT}: "
                + ("upgrade it" if form > FORMAT else "restore it with the Partita that wrote it")
            )
        limit = self._limit
        self.__dict__.clear()
        self.__dict__.update(state)
        if limit is not None:  # set by a ConcurrencyLimiter
            self._limit = limit

    # -- answers -------------------------------------------------------------------------------

    @property
    def optimizer(self) -> Optimizer:
        """The underlying optimizer; its parameters are named by their paths, "model/depth"."""
        if self._optimizer is None:
            self._explain_what_is_missing()
        assert self._optimizer is not None
        return self._optimizer

    def recommend(self) -> Suggestion:
        """The configuration with the best posterior, not necessarily that with the best value."""
        best = self.optimizer.recommend()
        assert self._tune_space is not None
        return best.at(self._tune_space.config(best.params))

    def certificate(self) -> float:
        """A bound on how much better any other configuration can be than the recommended one."""
        return self.optimizer.certificate()

    # -- inside --------------------------------------------------------------------------------

    def _begin_if_ready(self) -> None:
        if self._optimizer is not None or self._tune_space is None or not self._mode:
            return
        optimizer = Optimizer(
            self._tune_space.space,
            direction="minimize" if self._mode == "min" else "maximize",
            seed=self._seed,
            n_evals=self._planned,
            policy=self._policy,
            **self._assumptions.keywords(),
        )
        waiting: list[tuple[Mapping[str, Any], float | None]] = []
        for point, value in self._first:
            params = self._tune_space.params(point)
            if value is not None:
                optimizer.add(params, value)
                continue
            if not optimizer.space.allows(optimizer.space.decode(optimizer.space.encode(params))):
                raise InvalidInput(f"points_to_evaluate: feasible does not allow {dict(point)!r}")
            waiting.append((point, None))
        self._optimizer, self._first = optimizer, waiting
        self._failures = Failures(optimizer, self._seed)
        if self._metric is None:
            self._metric = DEFAULT_METRIC

    @property
    def _memory(self) -> Failures:
        assert self._failures is not None
        return self._failures

    def _next(self, optimizer: Optimizer, tune_space: TuneSpace) -> Trial:
        if self._first:
            return optimizer.expect(tune_space.params(self._first.pop(0)[0]))
        return self._memory.ask()

    def _value(self, trial_id: str, result: Mapping[str, Any] | None) -> float | None:
        """The metric in a result, or None if there is no usable one."""
        metric = str(self._metric)
        if not result or metric not in result:
            return None
        try:
            return as_value(result[metric])
        except InvalidInput as error:
            logger.warning("trial %s counts as failed, %s: %s", trial_id, metric, error)
            return None

    def _take(self, trial_id: str, value: float, result: Mapping[str, Any]) -> bool:
        """Report a value to the optimizer, and return whether it was accepted."""
        trial = self._running.get(trial_id)
        try:
            if trial is None:
                self._take_stray(trial_id, value, result)
                return True
            self.optimizer.tell(trial, value)
        except InvalidInput as error:  # a user's own policy may refuse a number
            logger.warning("trial %s counts as failed: %s", trial_id, error)
            return False
        del self._running[trial_id]
        self._memory.succeeded(trial.params)
        return True

    def _take_stray(self, trial_id: str, value: float, result: Mapping[str, Any]) -> None:
        """Use the value of a trial that had failed, or that another searcher had suggested.

        Tune runs such trials when a run is restored: failed ones again, if requested, and those
        that began after the searcher was last saved. Their results contain the configuration.
        """
        params = self._failed.pop(trial_id, None)
        if params is None:
            assert self._tune_space is not None
            prefix = "config/"
            config = {
                name.removeprefix(prefix): setting
                for name, setting in result.items()
                if name.startswith(prefix)
            }
            params = self._tune_space.params(config or result.get("config", {}))
        self.optimizer.add(params, value)
        self._memory.succeeded(params)

    def _fail(self, trial_id: str) -> None:
        trial = self._running.pop(trial_id)
        self._failed[trial_id] = trial.params
        self._memory.report(trial.params, trial)

    def _drop(self, trial_id: str) -> None:
        """Cancel a trial that neither failed nor has a value."""
        self.optimizer.cancel(self._running.pop(trial_id))

    def _check_same(self, name: str, given: str | None, own: str | None) -> None:
        """Refuse a metric or mode other than that of the values learned so far."""
        if self._optimizer is not None and self._optimizer.n_told and given and given != own:
            raise InvalidInput(
                f"{name}={given!r}: this searcher has values for {name}={own!r}. Give the same, "
                "or make a new searcher"
            )

    def _explain_what_is_missing(self) -> None:
        if self._tune_space is None:
            raise InvalidInput(
                "there is no space to search: give PartitaSearch a space, or the Tuner a "
                "param_space with parameters such as tune.uniform(0, 1)"
            )
        raise InvalidInput(
            'mode is not given: give PartitaSearch(metric="loss", mode="min"), or the same to '
            "TuneConfig together with a param_space"
        )

    def __repr__(self) -> str:
        what = repr(self._optimizer) if self._optimizer is not None else "not begun"
        return f"PartitaSearch(metric={self._metric!r}, mode={self._mode!r}: {what})"


# -- checks ----------------------------------------------------------------------------------------


def _check_metric(metric: object, mode: object) -> None:
    if metric is not None and not isinstance(metric, str):
        raise InvalidInput(f"metric={metric!r}: give one name, only one metric can be optimised")
    if mode is not None and mode not in ("min", "max"):
        raise InvalidInput(f'mode={mode!r}: give "min" or "max"')


def _check_feasible(feasible: Any) -> Any:
    if feasible is None:
        return None
    if not callable(feasible):
        raise InvalidInput(f"feasible={feasible!r}: give a function of a configuration")
    try:
        pickle.dumps(feasible)
    except Exception as error:
        raise InvalidInput(
            f"feasible={feasible!r} cannot be saved with the run ({error}): define it at the top "
            "level of a module, not as a lambda or a nested function"
        ) from error
    return feasible


def _check_first(
    points: Sequence[Mapping[str, Any]] | None, values: Sequence[float] | None
) -> list[tuple[Mapping[str, Any], float | None]]:
    given = list(points or [])
    for point in given:
        if not isinstance(point, Mapping):
            raise InvalidInput(f"points_to_evaluate: {point!r} is not a configuration, give dicts")
    if values is None:
        return [(point, None) for point in given]
    if len(values) != len(given):
        raise InvalidInput(
            f"evaluated_rewards has {len(values)} values for {len(given)} points_to_evaluate: "
            "give one value per point"
        )
    return [(point, as_value(value)) for point, value in zip(given, values, strict=True)]

"""A sampler for Optuna: `optuna.create_study(sampler=PartitaSampler())`."""

from __future__ import annotations

import logging
import os
import secrets
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from partita._checks import check_flag, check_seed
from partita._optional import MissingPackage
from partita.errors import InvalidInput
from partita.model.assumptions import Assumptions
from partita.model.kernels import Matern
from partita.model.noise import Noise
from partita.optimize.trial import Suggestion

try:
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.trial import TrialState
except ImportError as error:
    raise MissingPackage(
        f"Optuna is needed for this ({error}): pip install 'partita[optuna]'"
    ) from error

from ._optuna_conditions import Structure
from ._optuna_limits import ConstraintsFunc, check_func, limits_of, stored
from ._optuna_model import Model, Settings
from ._optuna_space import (
    PROPOSAL,
    SearchSpace,
    Translation,
    check_search_space,
    completed,
    parameter_of,
    playable,
)
from ._optuna_stop import CertificateCallback
from ._optuna_trials import Ended, TrialReader

__all__ = ["CertificateCallback", "PartitaSampler"]

T = TypeVar("T")
_LOGGER = logging.getLogger(__name__)


class PartitaSampler(BaseSampler):  # type: ignore[misc]
    """An Optuna sampler that uses a Partita policy, for noisy objectives.

    It supports float, log, integer, stepped and categorical parameters, and one objective. For
    parameters that not every trial asks for, it learns when they are active: under
    `if kind == "svm"` or `for i in range(n_layers)`, say. A parameter that is new, or outside the
    search space, is sampled independently, as by Optuna's own samplers.

    Several workers may share a study through any of Optuna's storages. Each has its own model,
    which it updates before each trial by reading new and unfinished trials, never all of them. A
    proposal is stored with its trial, so the other workers treat it as pending even before the
    objective has asked for its first parameter.

    If the objective knows the standard deviation of its value's noise, it reports it with
    `trial.set_user_attr("std", ...)`; 0 means exact. Trials of other samplers may have it, too. If
    the value is the mean of several, their number is `trial.set_user_attr("count", n)`, and "std"
    their sample deviation (ddof = 1).

    Optuna's pruners work unchanged. The last value that a pruned trial reported never counts as its
    value. The model learns what it says about the value, by the finished trials, and how uncertain
    that is. A trial that fails, or is pruned when this is not known, gives no information about the
    objective. But where trials fail is learned, and such places are avoided. See
    docs/optuna.md.

    Constraints are learned as well: values that are at most 0 where a trial is feasible, by
    `trial.set_constraint` or a `constraints_func`. `recommend` then returns parameters that are
    feasible with probability 1 − delta, by a model of each.

    Parameters
    ----------
    search_space : dict of distributions, optional
        What to optimise. By default all parameters of the trials so far.
    seed : int, optional
        The same seed gives the same trials, for one worker. By default each sampler is different.
    n_evals, norm_bound, noise, kernel, delta, policy
        As for `partita.Optimizer`. By default the policy learns what it needs.
    independent_sampler : optuna.samplers.BaseSampler, optional
        For parameters outside the search space, and for the first trial if no search space is
        given. By default a `RandomSampler`.
    consider_pruned_trials : bool
        Whether the model learns from pruned trials. If not, they count as failed.
    std_attr : str, optional
        The user attribute of a trial with the standard deviation of its value's noise. None to
        ignore such attributes.
    count_attr : str, optional
        The user attribute with the number of values of which the trial's value is the mean. It is
        used with `std_attr` only, which is then their sample deviation. None to ignore it.
    store_proposals : bool
        Whether to store a proposal with its trial, which is one more write to the storage. If not,
        other workers treat a trial as pending only after it has asked for all its parameters.
    warn_independent_sampling : bool
        Whether to warn, once per parameter, if a parameter is outside the search space.
    constraints_func : function, optional
        As for Optuna's samplers: takes a finished trial, and returns a sequence of numbers, each at
        most 0 where the trial is feasible.
    """

    def __init__(
        self,
        search_space: SearchSpace | None = None,
        *,
        seed: int | None = None,
        n_evals: int | None = None,
        norm_bound: float | None = None,
        noise: Noise | None = None,
        kernel: Matern | None = None,
        delta: float = 0.1,
        policy: str | Callable[..., Any] | None = None,
        independent_sampler: BaseSampler | None = None,
        consider_pruned_trials: bool = True,
        std_attr: str | None = "std",
        count_attr: str | None = "count",
        store_proposals: bool = True,
        warn_independent_sampling: bool = True,
        constraints_func: ConstraintsFunc | None = None,
    ) -> None:
        self._given = None if search_space is None else check_search_space(search_space)
        # Without a seed every sampler is different, as Optuna's are.
        self._seed = secrets.randbits(64) if seed is None else check_seed(seed)
        # Invalid settings are refused here if possible, not during a trial.
        assumptions = Assumptions(kernel, norm_bound, noise, delta)
        self._settings = Settings(assumptions, n_evals, policy)
        self._independent = independent_sampler
        self._pruned = check_flag("consider_pruned_trials", consider_pruned_trials)
        self._std_attr = _check_attr("std_attr", std_attr)
        self._count_attr = _check_attr("count_attr", count_attr)
        self._store = check_flag("store_proposals", store_proposals)
        self._warn = check_flag("warn_independent_sampling", warn_independent_sampling)
        self._constraints_func = check_func(constraints_func)
        if self._given is not None:
            self._settings.optimizer(Translation(self._given).space)
        self._warned: set[str] = set()
        self._begin()

    def _begin(self) -> None:
        """Initialise the sampler in a process."""
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._random: RandomSampler | None = None
        self._forget()

    def _forget(self) -> None:
        """Forget all trials, so that they are read again."""
        self._reader: TrialReader | None = None
        self._model: Model | None = None
        #: The parameters of the trials so far, and the supported ones.
        self._structure = Structure()
        self._inferred: SearchSpace = {}
        #: Keys of the constraints of the trials so far.
        self._limits: tuple[str, ...] = ()
        self._read_for: int | None = None

    # -- what Optuna calls ----------------------------------------------------------------------

    def infer_relative_search_space(self, study: Any, trial: Any) -> SearchSpace:
        """The given search space, or the parameters of all finished trials."""
        _check_single(study)
        if self._given is not None:
            return dict(self._given)
        return self._up_to(study, trial.number, None, lambda: dict(self._inferred))

    def sample_relative(self, study: Any, trial: Any, search_space: SearchSpace) -> dict[str, Any]:
        """Values for all parameters in the search space, chosen jointly."""
        _check_single(study)
        if not self._plays(search_space):
            search_space = playable(search_space)
        if not search_space:
            return {}
        return self._up_to(study, trial.number, search_space, lambda: self._proposed(study, trial))

    def _proposed(self, study: Any, trial: Any) -> dict[str, Any]:
        model, reader = self._model, self._reader
        assert model is not None
        assert reader is not None
        point = model.propose(trial.number)
        if point is None:
            return {}
        reader.started(trial.number)
        if self._store:
            study._storage.set_trial_system_attr(trial._trial_id, PROPOSAL, point)
        return model.translation.external(point)

    def sample_independent(
        self, study: Any, trial: Any, param_name: str, param_distribution: Any
    ) -> Any:
        """A value for a single parameter, sampled independently."""
        _check_single(study)
        sampler = self._independent or self._random
        if sampler is None:
            self._random = sampler = RandomSampler(seed=self._seed_from(trial.number))
        silent = not self._warn or self._model is None or param_name in self._warned
        if not silent and not self._will_play(param_name, param_distribution):
            self._warned.add(param_name)
            _LOGGER.warning(
                "Parameter %r of trial %d is not in the given search_space, or its range changes, "
                "or is larger than Partita supports (64 choices, integers up to 2**53): it is "
                "sampled independently, by %s. Give PartitaSampler a search_space that has it, or "
                "warn_independent_sampling=False if this is intended.",
                param_name,
                trial.number,
                sampler,
            )
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def _will_play(self, name: str, distribution: Any) -> bool:
        """Whether a parameter is in the search space, or will be once its trial has ended."""
        if self._given is not None:
            return name in self._given
        same = self._structure.distributions.get(name, distribution) == distribution
        if not same or name in self._structure.changing:
            return False
        return distribution.single() or parameter_of(distribution) is not None

    def after_trial(
        self, study: Any, trial: Any, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Record how a trial of this process ended, so that it need not be read."""
        if self._independent is not None:
            self._independent.after_trial(study, trial, state, values)
        attributes = trial.system_attrs
        if self._constraints_func is not None:
            attributes = stored(self._constraints_func, study, trial, state)
        with self._lock:
            if self._reader is None or not self._is_of(study):
                return
            self._reader.ended(
                Ended(
                    trial.number,
                    trial.params,
                    trial.distributions,
                    attributes,
                    trial.user_attrs,
                    state,
                    None if values is None else values[0],
                    trial.intermediate_values,
                )
            )

    def before_trial(self, study: Any, trial: Any) -> None:
        """Notify the independent sampler."""
        if self._independent is not None:
            self._independent.before_trial(study, trial)

    def reseed_rng(self) -> None:
        """Reseed the given independent sampler; everything else is shared between threads."""
        if self._independent is not None:
            self._independent.reseed_rng()

    # -- for users ------------------------------------------------------------------------------

    def recommend(self, study: Any) -> Suggestion:
        """The parameters with the best posterior, which need not be those with the best value.

        Returns
        -------
        Suggestion
            `params`, and the objective's `mean`, `lower` and `upper` bound there. Parameters
            outside the search space have the values of the best trial with the others.
        """
        best = self._latest(study, Model.recommend)
        return best.at(completed(study, best.params))

    def certificate(self, study: Any) -> float:
        """A bound on how much better any other parameters can be than the recommended ones."""
        return self._latest(study, lambda model: model.optimizer.certificate())

    def _latest(self, study: Any, question: Callable[[Model], T]) -> T:
        """The answer of a model that includes all trials."""
        _check_single(study)
        number = study._storage.get_n_trials(study._study_id)
        self._up_to(study, number, None, lambda: self._read(number, all_running=True))
        space = self._inferred if self._given is None else self._given
        if not space:
            raise InvalidInput(
                "the study has no finished trials with parameters that vary: run some trials, or "
                "give the sampler a search_space"
            )

        def asked() -> T:
            assert self._model is not None
            return question(self._model)

        return self._up_to(study, number, space, asked)

    # -- keeping up -----------------------------------------------------------------------------

    def _up_to(
        self, study: Any, number: int, search_space: SearchSpace | None, work: Callable[[], T]
    ) -> T:
        """Read all trials before this one, then run `work` under the lock and return its result.

        If a search space is given, the model is for that space. After Ctrl-C, all trials are read
        again, and the lock is released, which a context manager would not guarantee here.
        """
        if os.getpid() != self._process:  # a forked copy would propose the same as its parent
            self._begin()
        with self._lock:
            try:
                self._prepare(study, number, search_space)
                return work()
            except Exception:
                raise
            except BaseException:
                self._forget()
                raise

    def _prepare(self, study: Any, number: int, search_space: SearchSpace | None) -> None:
        if not self._is_of(study):
            self._forget()
            self._reader = TrialReader(study._storage, study._study_id)
        if search_space is not None and not self._plays(search_space):
            self._model = self._new_model(study, number, search_space)
            self._reader = TrialReader(study._storage, study._study_id)
            self._read_for = None
        if number != self._read_for:
            self._read(number)
        if search_space is not None and not self._knows_limits():  # the trials just read have some
            self._model = self._new_model(study, number, search_space)
            self._reader = TrialReader(study._storage, study._study_id)
            self._read(number)

    def _read(self, number: int, all_running: bool = False) -> None:
        assert self._reader is not None
        try:
            for trial in self._reader.news(number, all_running):
                self._take(trial)
        except BaseException:  # the model may have only some of the trials
            self._forget()
            raise
        self._read_for = number

    def _new_model(self, study: Any, number: int, search_space: SearchSpace) -> Model:
        return Model(
            search_space,
            self._structure.rules(search_space),
            direction=study.direction.name.lower(),
            seed=self._seed_from(number),
            settings=self._settings,
            pruned=self._pruned,
            std_attr=self._std_attr,
            limits=self._limits,
            count_attr=self._count_attr,
        )

    def _plays(self, search_space: SearchSpace) -> bool:
        """Whether the model is one of this search space, with the rules that are known now."""
        return (
            self._model is not None
            and self._model.translation.search_space == search_space
            and self._model.translation.rules == self._structure.rules(search_space)
            and self._knows_limits()
        )

    def _knows_limits(self) -> bool:
        """Whether the model has the constraints that trials have."""
        return self._model is not None and self._model.limits == self._limits

    def _is_of(self, study: Any) -> bool:
        reader = self._reader
        return (
            reader is not None
            and reader.storage is study._storage
            and reader.study_id == study._study_id
        )

    def _seed_from(self, number: int) -> int:
        """The seed of a model that starts with this trial.

        Workers with the same seed start with different trials, so their models differ.
        """
        return int(np.random.SeedSequence([self._seed, number]).generate_state(1)[0])

    def _take(self, trial: Any) -> None:
        if trial.state == TrialState.COMPLETE or (
            self._pruned and trial.state == TrialState.PRUNED
        ):
            self._limits = tuple(dict.fromkeys((*self._limits, *limits_of(trial))))
            if self._structure.observe(trial.params, trial.distributions):
                self._inferred = playable(self._structure.steady)
        if self._model is not None:
            self._model.take(trial)

    def __getstate__(self) -> dict[str, Any]:
        """Only the settings: a copy reads the study's trials, and has its own model."""
        learned = {"_lock", "_process", "_random", "_reader", "_model"}
        learned |= {"_structure", "_inferred", "_limits", "_read_for"}
        return {name: value for name, value in self.__dict__.items() if name not in learned}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()


def _check_single(study: Any) -> None:
    if study._is_multi_objective():
        raise InvalidInput(
            "the study has several objectives, but PartitaSampler supports one: use another "
            "sampler, or return a single number that combines them"
        )


def _check_attr(setting: str, name: object) -> str | None:
    if name is not None and not isinstance(name, str):
        raise InvalidInput(
            f"{setting}={name!r}: give the name of a user attribute, or None to use none"
        )
    return name

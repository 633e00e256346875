"""Objectives with branches: the sampler learns when each parameter is asked for."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

optuna = pytest.importorskip("optuna")

from optuna.distributions import (  # noqa: E402
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from partita.integrations._optuna_conditions import Structure  # noqa: E402
from partita.integrations._optuna_space import Rule, playable  # noqa: E402
from partita.integrations.optuna import PartitaSampler  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.ERROR)


def classifier(trial: Any) -> float:
    """Models with parameters of their own, a kernel with one, and a parameter of all."""
    scale = trial.suggest_float("scale", 0, 1)
    model = trial.suggest_categorical("model", ["svm", "forest", "mean"])
    value = 0.3 * (scale - 0.3) ** 2
    if model == "svm":
        value += (np.log10(trial.suggest_float("C", 1e-3, 1e3, log=True)) - 1) ** 2 / 9
        if trial.suggest_categorical("kernel", ["rbf", "linear"]) == "rbf":
            return value + (trial.suggest_float("gamma", 0, 1) - 0.25) ** 2
        return value + 0.1
    if model == "forest":
        return value + 0.15 + abs(trial.suggest_int("trees", 10, 500) - 60) / 500
    return value + 0.3


def network(trial: Any) -> float:
    """Layers, each with a width."""
    layers = trial.suggest_int("layers", 1, 4)
    widths = [trial.suggest_int(f"width{i}", 8, 128) for i in range(layers)]
    return abs(layers - 3) / 3 + sum((w / 128 - 0.5) ** 2 for w in widths)


def noisy(objective: Any) -> Any:
    random = np.random.default_rng(0)
    return lambda trial: objective(trial) + 0.02 * random.standard_normal()


def played(objective: Any, n_trials: int, **settings: Any) -> tuple[Any, PartitaSampler]:
    sampler = PartitaSampler(seed=1, **settings)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=n_trials)
    return study, sampler


def test_branches_are_modelled_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        study, sampler = played(noisy(classifier), 50)
    assert not caplog.records
    best = sampler.recommend(study)
    assert best.params.keys() == {"scale", "model", "C", "kernel", "gamma"}
    assert classifier(optuna.trial.FixedTrial(best.params)) < 0.06
    assert sampler._model is not None
    assert sampler._model.translation.rules == {
        "C": Rule("model", frozenset({0})),
        "kernel": Rule("model", frozenset({0})),
        "gamma": Rule("kernel", frozenset({0})),
        "trees": Rule("model", frozenset({1})),
    }
    assert sampler._model.optimizer.n_told == 50
    units = sampler._model.optimizer.trials.units
    params = sampler._model.optimizer.trials.params
    assert len({str(sorted(p.items())) for p in params}) == len(np.unique(units, axis=0))


def test_loops_over_layers_are_modelled() -> None:
    study, sampler = played(noisy(network), 40)
    sampler.recommend(study)
    assert sampler._model is not None
    rules = sampler._model.translation.rules
    for i in (1, 2, 3):
        rule = rules[f"width{i}"]
        assert rule is not None
        assert rule.parent == "layers"
        seen = {t.params["layers"] for t in study.trials}
        assert rule.values & seen == {n for n in seen if n > i}
    by_proposal = [t for t in study.trials[20:] if t.system_attrs.get("partita:proposal")]
    assert by_proposal
    for trial in by_proposal[-10:]:
        assert trial.system_attrs["partita:proposal"].keys() == trial.params.keys()


def test_the_same_seed_gives_the_same_trials() -> None:
    one, _ = played(classifier, 25)
    other, _ = played(classifier, 25)
    assert [t.params for t in one.trials] == [t.params for t in other.trials]


def test_another_sampler_reads_the_same_study() -> None:
    study, _ = played(classifier, 20)
    study.sampler = PartitaSampler(seed=5)
    study.optimize(classifier, n_trials=10)
    assert study.sampler.recommend(study).params.keys() >= {"scale", "model"}
    assert study.sampler._model.optimizer.n_told == 30


def test_a_parameter_that_appears_late_is_added() -> None:
    def late(trial: Any) -> float:
        x = trial.suggest_float("x", 0, 1)
        y = trial.suggest_float("y", 0, 1) if trial.number >= 8 else 0.5
        return (x - 0.3) ** 2 + (y - 0.8) ** 2

    study, sampler = played(late, 25)
    best = sampler.recommend(study)
    assert best.params.keys() == {"x", "y"}
    assert abs(best.params["y"] - 0.8) < 0.2
    assert sampler._model is not None
    assert sampler._model.optimizer.n_told == 25


def test_a_condition_on_a_number_is_flattened_not_lost(caplog: pytest.LogCaptureFixture) -> None:
    """No rule is found, so it stands beside the others."""

    def threshold(trial: Any) -> float:
        x = trial.suggest_float("x", 0, 1)
        return x if x < 0.5 else (trial.suggest_float("y", 0, 1) - 0.7) ** 2

    with caplog.at_level(logging.WARNING):
        study, sampler = played(threshold, 30)
    assert not caplog.records
    sampler.recommend(study)
    assert sampler._model is not None
    assert sampler._model.translation.rules == {"y": None}
    assert sampler._model.optimizer.n_told == 30


def test_failures_and_pruned_trials_in_branches() -> None:
    def fragile(trial: Any) -> float:
        model = trial.suggest_categorical("model", ["a", "b", "c"])
        if model == "a":
            raise RuntimeError("before its parameter")
        if model == "b" and trial.suggest_float("x", 0, 1) > 0.7:
            raise optuna.TrialPruned
        return trial.params.get("x", 0.5)

    sampler = PartitaSampler(seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(fragile, n_trials=30, catch=(RuntimeError,))
    best = sampler.recommend(study)
    assert best.params["model"] == "b"
    assert best.params["x"] < 0.2


def test_spurious_rules_are_given_up() -> None:
    space = {
        "switch": CategoricalDistribution((False, True)),
        "model": CategoricalDistribution(("a", "b")),
        "x": FloatDistribution(0, 1),
    }

    def seen(structure: Structure, switch: bool, model: str, **more: float) -> None:
        params = {"switch": switch, "model": model, **more}
        structure.observe(params, {name: space[name] for name in params})

    structure = Structure()
    seen(structure, True, "a", x=0.5)
    seen(structure, False, "b")
    assert structure.rules(space) == {"x": Rule("switch", frozenset({1}))}
    seen(structure, False, "a", x=0.5)
    assert structure.rules(space) == {"x": Rule("model", frozenset({0}))}
    seen(structure, True, "b", x=0.5)
    assert structure.rules(space) == {"x": None}


def random_program(random: np.random.Generator, depth: int = 0, prefix: str = "p") -> list[Any]:
    """Parameters and, for some, what is asked for with each of their values."""
    program: list[Any] = []
    for i in range(int(random.integers(1, 4))):
        name = f"{prefix}{i}"
        if depth == 3 or random.random() < 0.5:
            program.append((name, FloatDistribution(0, 1), {}))
            continue
        if random.random() < 0.5:
            distribution: Any = CategoricalDistribution(tuple("abc"[: random.integers(2, 4)]))
            values = list(distribution.choices)
        else:
            distribution = IntDistribution(1, 3)
            values = [1, 2, 3]
        branches = {
            value: random_program(random, depth + 1, f"{name}{value}")
            for value in values
            if random.random() < 0.6
        }
        program.append((name, distribution, branches))
    return program


def check_random_program(seed: int) -> None:
    """What the structure says is active is what the program asks for."""
    random = np.random.default_rng(seed)
    program, structure = random_program(random), Structure()

    def run(lines: list[Any], params: dict, distributions: dict) -> None:
        for name, distribution, branches in lines:
            value: Any = random.random()
            if isinstance(distribution, CategoricalDistribution):
                value = distribution.choices[random.integers(len(distribution.choices))]
            elif isinstance(distribution, IntDistribution):
                value = int(random.integers(1, 4))
            params[name], distributions[name] = value, distribution
            run(branches.get(value, []), params, distributions)

    trials = []
    for _ in range(300):
        params: dict = {}
        distributions: dict = {}
        run(program, params, distributions)
        structure.observe(params, distributions)
        trials.append((params, distributions))
    for params, distributions in trials:  # once more, which changes nothing
        assert not structure.observe(params, distributions)
    space = playable(structure.steady)
    rules = structure.rules(space)

    def active(name: str, params: dict) -> bool:
        if name not in rules:
            return True
        rule = rules[name]
        assert rule is not None, (seed, name)
        if rule.parent not in params:
            return False
        internal = space[rule.parent].to_internal_repr(params[rule.parent])
        return internal in rule.values and active(rule.parent, params)

    for params, _ in trials:
        assert {name for name in space if active(name, params)} == set(params)


def check_random_programs(cases: int) -> None:
    """That many programs."""
    for seed in range(cases):
        check_random_program(seed)


def test_random_programs_are_understood() -> None:
    check_random_programs(25)

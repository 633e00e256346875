"""Conditional parameters: Partita with branches beside flattened ones, and Optuna's own samplers.

    python benchmarks/conditional.py                                 5 seeds of 60 evaluations each
    python benchmarks/conditional.py --seeds 10 --evals 100 --only models drawn-3

A cell holds the mean regret of the answer over the seeds: the true function there, less its
minimum. The answer is what each library recommends: Partita's `recommend`, Optuna's best trial.
Functions lie between 0 and about 1, with normal noise of standard deviation 0.05. Problems called
`drawn` are random: a tree of branches, and in each leaf a smooth function of what is active.
"""

from __future__ import annotations

import argparse
import logging
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import numpy as np

import partita as pt

NOISE = 0.05
Params = dict[str, Any]
Spec = dict[str, Any]


class Problem(NamedTuple):
    """A space with branches, and a function of what is active in it, whose minimum is 0."""

    space: Spec
    function: Callable[..., float]


# -- problems --------------------------------------------------------------------------------------


def models() -> Problem:
    """Three models, of which the best has a narrow optimum."""

    def f(model: str, **p: Any) -> float:
        if model == "svm":
            away = (np.log10(p["C"]) - 1.2) ** 2 / 6 + (np.log10(p["gamma"]) + 2) ** 2 / 4
            return float(1 - np.exp(-away))
        if model == "forest":
            return 0.15 + 0.5 * (p["depth"] / 20 - 0.6) ** 2 + 0.2 * (p["trees"] / 500 - 0.8) ** 2
        return 0.3 + 0.02 * abs(p["k"] - 7)

    svm = {"C": (1e-3, 1e3, "log"), "gamma": (1e-4, 1e1, "log")}
    forest = {"trees": (10, 500, "int"), "depth": (1, 20, "int")}
    return Problem({"model": {"svm": svm, "forest": forest, "knn": {"k": (1, 30, "int")}}}, f)


def shared() -> Problem:
    """Three optimisers that share the rate, which matters most, and have one parameter each."""
    best = {"sgd": 0.06, "momentum": 0.0, "adam": 0.03}

    def f(optimizer: str, rate: float, **p: Any) -> float:
        own = {"sgd": p.get("decay"), "momentum": p.get("momentum"), "adam": p.get("beta")}
        value = own[optimizer]
        return best[optimizer] + (np.log10(rate) + 2.5) ** 2 / 6 + 0.3 * (value - 0.7) ** 2

    rate = (1e-5, 1.0, "log")
    branches = {
        name: {"rate": rate, own: (0.0, 1.0)}
        for name, own in (("sgd", "decay"), ("momentum", "momentum"), ("adam", "beta"))
    }
    return Problem({"optimizer": branches}, f)


def nested() -> Problem:
    """A kernel with parameters of its own within a model, beside a parameter of all."""

    def f(scale: float, model: str, **p: Any) -> float:
        common = 0.5 * (scale - 0.3) ** 2
        if model == "linear":
            return common + 0.2
        fit = (np.log10(p["C"]) - 0.5) ** 2 / 20
        if p["kernel"] == "rbf":
            return common + fit + 0.8 * (p["gamma"] - 0.25) ** 2
        return common + fit + 0.1 + 0.05 * abs(p["degree"] - 3)

    kernels = {"rbf": {"gamma": (0.0, 1.0)}, "poly": {"degree": (1, 6, "int")}}
    svm = {"C": (1e-3, 1e3, "log"), "kernel": kernels}
    return Problem({"scale": (0.0, 1.0), "model": {"svm": svm, "linear": {}}}, f)


def layers() -> Problem:
    """Layers of a network: each has a width, and only with enough layers."""
    target = (0.7, 0.4, 0.2)

    def f(layers: int, **p: Any) -> float:
        widths = [p[f"width{i}"] for i in range(layers)]
        away = sum((w / 256 - t) ** 2 for w, t in zip(widths, target, strict=False))
        return 0.5 * away + 0.15 * abs(layers - 3)

    width = (8, 256, "int")
    return Problem({"layers": {n: {f"width{i}": width for i in range(n)} for n in (1, 2, 3)}}, f)


def tempting() -> Problem:
    """A branch without parameters that is nearly as good as the best of one with five."""

    def f(kind: str, **p: Any) -> float:
        if kind == "plain":
            return 0.12
        return 0.6 * sum((p[f"x{i}"] - 0.2 - 0.15 * i) ** 2 for i in range(5))

    return Problem({"kind": {"plain": {}, "rich": {f"x{i}": (0.0, 1.0) for i in range(5)}}}, f)


def drawn(seed: int) -> Problem:
    """A random tree, and in each leaf a random smooth function of what is active."""
    random = np.random.default_rng([seed, 19])

    def tree(depth: int, name: str) -> Spec:
        spec: Spec = {f"{name}x{i}": (0.0, 1.0) for i in range(int(random.integers(0, 3)))}
        if depth < 2 and (depth == 0 or random.random() < 0.5):
            branches = "abc"[: int(random.integers(2, 4))]
            spec[f"{name}m"] = {b: tree(depth + 1, f"{name}{b}") for b in branches}
        return spec

    space = {"common": (0.0, 1.0), **tree(0, "")}
    centre: dict[str, float] = {}
    lift: dict[str, float] = {}

    def draw(spec: Spec) -> None:
        for name, value in spec.items():
            centre[name] = random.random()
            if isinstance(value, dict):
                worse = random.permutation(len(value)) * random.uniform(0.05, 0.2)
                for (branch, inside), more in zip(value.items(), worse, strict=True):
                    lift[f"{name}={branch}"] = float(more)
                    draw(inside)

    draw(space)

    def f(**p: Any) -> float:
        total = 0.0
        for name, value in p.items():
            if isinstance(value, str):
                total += lift[f"{name}={value}"]
            else:
                total += 0.4 * (1 - np.exp(-4 * (value - centre[name]) ** 2))
        return float(total)

    return Problem(space, f)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "models": models,
    "shared": shared,
    "nested": nested,
    "layers": layers,
    "tempting": tempting,
    **{f"drawn-{i}": (lambda i=i: drawn(i)) for i in range(1, 6)},  # type: ignore[misc]
}


# -- players ---------------------------------------------------------------------------------------


def flattened(spec: Spec) -> Spec:
    """All parameters side by side, each branch's own under its path."""
    flat: Spec = {}
    for name, value in spec.items():
        if isinstance(value, Mapping):
            flat[name] = list(value)
            for inside in value.values():
                flat |= flattened(inside)
        else:
            flat[name] = value
    return flat


def active(spec: Spec, params: Params) -> Params:
    """Those of the parameters that count."""
    counting: Params = {}
    for name, value in spec.items():
        counting[name] = params[name]
        if isinstance(value, Mapping):
            counting |= active(value[params[name]], params)
    return counting


def suggested(trial: Any, spec: Spec) -> Params:
    """What an Optuna trial suggests, branch by branch."""
    params: Params = {}
    for name, value in spec.items():
        if isinstance(value, Mapping):
            params[name] = trial.suggest_categorical(name, list(value))
            params |= suggested(trial, value[params[name]])
        elif "int" in value:
            params[name] = trial.suggest_int(name, *value[:2])
        else:
            params[name] = trial.suggest_float(name, *value[:2], log="log" in value)
    return params


def with_partita(problem: Problem, seed: int, evals: int, flat: bool) -> float:
    """The regret of `pt.minimize`, with branches or without."""
    random = np.random.default_rng([seed, 7])
    space = flattened(problem.space) if flat else problem.space

    def f(**params: Any) -> float:
        given = active(problem.space, params) if flat else params
        return problem.function(**given) + NOISE * random.standard_normal()

    result = pt.minimize(f, space, n_evals=evals, seed=seed, progress=False)
    return problem.function(**active(problem.space, result.params))


def with_optuna(problem: Problem, seed: int, evals: int, kind: str) -> float:
    """The regret of a study of Optuna with one of its samplers, or with ours."""
    import optuna

    from partita.integrations.optuna import PartitaSampler

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    makers: dict[str, Callable[[], Any]] = {
        "optuna-tpe": lambda: optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True),
        "optuna-random": lambda: optuna.samplers.RandomSampler(seed=seed),
        "partita-sampler": lambda: PartitaSampler(seed=seed),
    }
    sampler, random = makers[kind](), np.random.default_rng([seed, 7])
    study = optuna.create_study(sampler=sampler)

    def objective(trial: Any) -> float:
        params = suggested(trial, problem.space)
        return problem.function(**params) + NOISE * random.standard_normal()

    study.optimize(objective, n_trials=evals)
    best = sampler.recommend(study) if kind == "partita-sampler" else study.best_trial
    return problem.function(**active(problem.space, best.params))


PLAYERS: dict[str, Callable[[Problem, int, int], float]] = {
    "partita": lambda p, s, n: with_partita(p, s, n, flat=False),
    "partita-flat": lambda p, s, n: with_partita(p, s, n, flat=True),
    "partita-sampler": lambda p, s, n: with_optuna(p, s, n, "partita-sampler"),
    "optuna-tpe": lambda p, s, n: with_optuna(p, s, n, "optuna-tpe"),
    "optuna-random": lambda p, s, n: with_optuna(p, s, n, "optuna-random"),
}


def regret(problem: str, player: str, seed: int, evals: int) -> float:
    """The regret of one run."""
    logging.getLogger("partita").setLevel(logging.ERROR)
    made = PROBLEMS[problem]()
    return PLAYERS[player](made, seed, evals) - minimum(problem)


def minimum(problem: str) -> float:
    """The lowest value of a problem's function: of many points, and of some near the best."""
    made, random = PROBLEMS[problem](), np.random.default_rng(0)
    space = pt.Space(made.space)
    units = space.spread(random.random((4000, space.dim)))
    values = np.array([made.function(**space.decode(u)) for u in units])
    for scale in np.geomspace(0.2, 1e-3, 12):
        near = units[np.argsort(values)[:40]].repeat(8, axis=0)
        more = space.snap(space.stir(random, near, np.full(near.shape, scale)))
        units = np.concatenate([units, more])
        fresh = np.array([made.function(**space.decode(u)) for u in more])
        values = np.concatenate([values, fresh])
    return float(values.min())


def main() -> None:
    """Play all, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--evals", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--players", nargs="+", choices=PLAYERS, default=list(PLAYERS))
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    runs = [(p, who, s) for p in options.only for who in options.players for s in seeds]
    with ProcessPoolExecutor(options.jobs) as pool:
        futures = [pool.submit(regret, *run, options.evals) for run in runs]
        regrets = {run: future.result() for run, future in zip(runs, futures, strict=True)}
    print(f"{'':12}" + "".join(f"{who:>17}" for who in options.players))
    total: dict[str, list[float]] = {who: [] for who in options.players}
    for problem in options.only:
        row = f"{problem:12}"
        for who in options.players:
            mean = float(np.mean([regrets[problem, who, s] for s in seeds]))
            total[who].append(mean)
            row += f"{mean:17.4f}"
        print(row, flush=True)
    print(f"{'mean':12}" + "".join(f"{np.mean(total[who]):17.4f}" for who in options.players))


if __name__ == "__main__":
    main()

"""Record what Partita chooses, and check that a change of the code leaves it as it was.

    python benchmarks/choices.py record choices.json     # before the change
    python benchmarks/choices.py check choices.json      # after it, on the same machine

Every policy on every domain it plays, the calibrated policy in harder situations, the front door,
studies, the Optuna sampler and the command line, all with fixed seeds. What is compared is exact to
the last bit, so both must be made on one machine: another processor rounds differently.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import inspect
import io
import json
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import partita as pt
from partita.policies import registry

Case = Callable[[], Any]

DOMAINS = {
    "grid": lambda: pt.Grid(9, dim=2),
    "arms": lambda: pt.Arms(np.random.default_rng(5).uniform(-1, 2, (40, 3)), -1, 2),
    "box": lambda: pt.Box([-1.0, 0.0], [2.0, 5.0]),
}
TOLD = {
    "horizon": 400,
    "kernel": pt.Matern(nu=1.5, lengthscale=0.3),
    "norm_bound": 2.0,
    "noise": pt.Uniform(-0.2, 0.2),
    "delta": 0.1,
    "seed": 3,
}


def bump(x: np.ndarray) -> float:
    """A smooth function with two maxima, for points of any box of the recordings."""
    z = np.atleast_1d(x) / 3
    near = np.exp(-20 * np.sum((z - 0.25) ** 2))
    return float(near + 0.6 * np.exp(-10 * np.sum((z - 0.7) ** 2)))


# -- policies ----------------------------------------------------------------------------------


def told_of(make: Callable[..., Any], settings: dict[str, Any], domain: Any) -> Any:
    """A policy, given those of `TOLD` that its signature names."""
    names = inspect.signature(make).parameters
    given = {name: value for name, value in TOLD.items() if name in names}
    given |= {name: value for name, value in settings.items() if value is not None}
    return make(domain, **given)


def answers(policy: Any) -> dict[str, Any]:
    """What a policy says of what it was told."""
    said: dict[str, Any] = {"recommend": policy.recommend()}
    if hasattr(policy, "certificate"):
        said["certificate"] = policy.certificate()
    if hasattr(policy, "predict"):
        at = (
            np.array([policy.recommend().x, policy.domain.points[0]])
            if (policy.domain.finite)
            else np.array([policy.recommend().x])
        )
        said["predict"] = policy.predict(at)
    if hasattr(policy, "cover"):
        said["cells"] = len(list(policy.cover))
    return said


def play(
    policy: Any,
    f: Callable[[np.ndarray], float],
    steps: int,
    noise: float = 0.2,
    bulk: Any = None,
    outliers: bool = False,
) -> dict[str, Any]:
    """Asks and answers of a run with pending points, cancels and a bulk tell."""
    rng = np.random.default_rng(11)
    asks: list[Any] = []
    said: list[Any] = []
    while len(asks) < steps:
        batch = 4 if 60 <= len(asks) < 100 else 1
        points = [policy.ask() for _ in range(batch)]
        asks += points
        for i, x in enumerate(points):
            y = f(x) + noise * rng.uniform(-1, 1)
            if outliers and rng.random() < 0.02:
                y += 1e4 * rng.standard_normal()
            if batch > 1 and i == 2:
                policy.cancel(x)
            else:
                policy.tell(x, y)
        if bulk is not None and len(asks) == 40:
            policy.tell(bulk, np.array([f(x) for x in bulk]))
        if len(asks) in {10, 50, 104, steps}:
            said.append(answers(policy))
    return {"asks": asks, "answers": said}


def registered(name: str, kind: str) -> Any:
    method = registry.get(name)
    policy = told_of(method.load(), dict(method.settings), DOMAINS[kind]())
    steps = 150 if name in {"direct", "soo", "doo"} else 200
    noise = 0.0 if name in {"direct", "soo", "doo"} else 0.2
    return play(policy, bump, steps, noise)


def calibrated(dim: int, steps: int, spread: float, **settings: Any) -> Any:
    extra = {"bulk": None, "outliers": False}
    extra |= {key: settings.pop(key) for key in list(settings) if key in extra}
    if extra["bulk"]:
        extra["bulk"] = np.random.default_rng(2).uniform(0, 3, (extra["bulk"], dim))
    policy = pt.CalibratedUCB(pt.Box([0.0] * dim, [3.0] * dim), seed=4, **settings)
    return play(policy, bump, steps, spread, **extra)


def boxed(make: Callable[..., Any], dim: int, steps: int = 200, **settings: Any) -> Any:
    policy = told_of(make, settings, pt.Box([0.0] * dim, [3.0] * dim))
    bulk = np.random.default_rng(2).uniform(0, 3, (50, dim))
    return play(policy, bump, steps, 0.2, bulk)


# -- the front door ------------------------------------------------------------------------------

SPACE = {"lr": (1e-4, 1e-1, "log"), "depth": (1, 12, "int"), "kind": ["a", "b", "c"], "fast": bool}
FINITE = {"a": (0.0, 1.0, 0.1), "b": (1, 6, "int"), "kind": ["x", "y"]}


class Loss:
    """A noisy loss of the named parameters of the recordings; it may fail now and then."""

    def __init__(self, fails: bool = False) -> None:
        self.rng = np.random.default_rng(8)
        self.fails = fails

    def __call__(self, **params: Any) -> float:
        if self.fails and params.get("depth", 0) > 9:
            raise RuntimeError("no")
        miss = sum(
            (float(np.log10(v)) + 2) ** 2 if k == "lr" else 0.02 * (float(v) - 4) ** 2
            for k, v in params.items()
            if isinstance(v, int | float)
        )
        return miss + 0.3 * (params.get("kind") in {"b", "y"}) + 0.1 * float(self.rng.normal())


def result(found: Any) -> dict[str, Any]:
    trials = found.history.trials
    return {
        "params": found.params,
        "fun": found.fun,
        "bounds": (found.lower, found.upper),
        "certificate": found.certificate,
        "message": found.message,
        "units": trials.units,
        "values": trials.values,
        "states": trials.states,
    }


def minimized(space: Any, n: int, fails: bool = False, **settings: Any) -> Any:
    return result(pt.minimize(Loss(fails), space, n_evals=n, progress=False, **settings))


def bounds_only() -> Any:
    rng = np.random.default_rng(1)
    return result(
        pt.maximize(
            lambda x: bump(x) + 0.1 * rng.normal(),
            [(0, 3)] * 2,
            n_evals=150,
            seed=2,
            progress=False,
        )
    )


def proven() -> Any:
    rng = np.random.default_rng(1)
    told = {key: TOLD[key] for key in ("kernel", "norm_bound", "noise")}
    return result(
        pt.maximize(
            lambda x: bump(x) + rng.uniform(-0.2, 0.2),
            [(0, 3)] * 2,
            n_evals=200,
            seed=2,
            progress=False,
            **told,
        )
    )


def scipy_method() -> Any:
    from scipy.optimize import minimize

    rng = np.random.default_rng(1)
    found = minimize(
        lambda x: -bump(x) + 0.1 * rng.normal(),
        [1.0, 2.0],
        bounds=[(0, 3)] * 2,
        method=pt.scipy_method,
        options={"n_evals": 80},
    )
    return {"x": found.x, "fun": found.fun}


def study(space: Any, policy: Any = None) -> Any:
    """Asks and tells through a file that is opened again every 25 trials."""
    loss, asked = Loss(), []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.db"
        for _ in range(4):
            opened = pt.Study.open(path, space, seed=6, **({"policy": policy} if policy else {}))
            for _ in range(25):
                trial = opened.ask()
                asked.append(trial.params)
                if trial.number % 10 == 7:
                    opened.cancel(trial)
                else:
                    opened.tell(trial, loss(**trial.params))
            said = (opened.recommend(), opened.certificate(), opened.n_told, opened.n_failed)
            opened.close()
        resumed = minimized(space, 120, study=str(path), seed=6) if policy is None else None
    return {"asked": asked, "said": said, "resumed": resumed}


def optuna_sampler(conditional: bool) -> Any:
    import optuna

    from partita.integrations.optuna import PartitaSampler

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    loss = Loss()

    def objective(trial: Any) -> float:
        params: dict[str, Any] = {"lr": trial.suggest_float("lr", 1e-4, 1e-1, log=True)}
        params["kind"] = trial.suggest_categorical("kind", ["a", "b", "c"])
        if not conditional or params["kind"] == "a":
            params["depth"] = trial.suggest_int("depth", 1, 12)
        return loss(**params)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = optuna.create_study(sampler=PartitaSampler(seed=3))
        made.optimize(objective, n_trials=80)
    return [(t.params, t.value) for t in made.trials]


# -- the command line ------------------------------------------------------------------------------


def command(*arguments: str) -> str:
    """What a command prints, without times and paths."""
    from partita import __main__

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = __main__.main(list(arguments))
        except SystemExit as ended:
            code = ended.code
    text = f"{out.getvalue()}\n{err.getvalue()}\nexit {code}"
    text = re.sub(r"/\S*tmp\S*", "PATH", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.+]+", "DATE", text)
    text = re.sub(
        r'"(seconds|time|rate|created|started|ended|duration)[a-z_]*": [^,}\n]*', "", text
    )
    return re.sub(r"\d+(\.\d+)? ?(µs|us|ms|s|min|h|/s)\b", "TIME", text)


def commands() -> Any:
    said = []
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "tune.db")
        params = ["--param", "lr:1e-4:1e-1:log", "--param", "depth:1:12:int", "--param", "k:a,b"]
        said.append(command("create", file, *params))
        for i in range(30):
            said.append(command("ask", file))
            said.append(command("tell", file, str(i), str(((i * 37) % 11) / 7)))
        said.append(command("show", file))
        said.append(command("show", file, "--json"))
        said.append(command("export", file, "-"))
        program = "import sys; print((float(sys.argv[1]) - 0.3) ** 2 + 0.01 * int(sys.argv[2]))"
        said.append(
            command(
                "minimize",
                "--param",
                "x:0:1",
                "--param",
                "n:1:5:int",
                "--evals",
                "30",
                "--json",
                "--",
                sys.executable,
                "-c",
                program,
                "{x}",
                "{n}",
            )
        )
    others = ("policies", "problems", "theory list", "theory table", "demo --horizon 300")
    return [*said, *(command(*words.split()) for words in others)]


def compared() -> Any:
    """Regrets of a small comparison, which the experiments make."""
    with tempfile.TemporaryDirectory() as folder:
        text = command(
            "compare",
            "--policies",
            "pi-gp-ucb",
            "igp-ucb",
            "uniform",
            "--problems",
            "synthetic-1d",
            "branin",
            "--horizon",
            "60",
            "--runs",
            "2",
            "--jobs",
            "1",
            "--out",
            folder,
        )
    return re.findall(r"\d\.\d+ ± \d\.\d+|\d\.\d+(?= )", text)


# -- all of it -------------------------------------------------------------------------------------


def cases() -> Iterator[tuple[str, Case]]:
    for name in registry.names():
        for kind in registry.get(name).domains:
            yield f"policy {name} {kind}", functools.partial(registered, name, kind)
    for name, make in {
        "PiGPUCB": pt.PiGPUCB,
        "PiGPUCB.paper": pt.PiGPUCB.paper,
        "PiGPTS": pt.PiGPTS,
        "IGPUCB": pt.IGPUCB,
    }.items():
        for dim in (1, 3, 7):
            yield f"box {name} {dim}", functools.partial(boxed, make, dim)
    yield "box tightened", functools.partial(boxed, pt.PiGPUCB, 2, tightening=True)
    yield "rows IGPUCB", lambda: play(told_of(pt.IGPUCB, {}, pt.Grid(18, dim=3)), bump, 60)
    yield "rows BKB", lambda: play(told_of(pt.BKB, {}, pt.Grid(70, dim=2)), bump, 120)
    yield "calibrated 1", functools.partial(calibrated, 1, 400, 0.2)
    yield "calibrated 2", functools.partial(calibrated, 2, 1500, 0.2)
    yield "calibrated 2 exact", functools.partial(calibrated, 2, 400, 0.0)
    yield "calibrated 2 outliers", functools.partial(calibrated, 2, 500, 0.2, outliers=True)
    yield "calibrated 3 bulk", functools.partial(calibrated, 3, 300, 0.2, bulk=3000)
    yield "calibrated 6", functools.partial(calibrated, 6, 500, 0.2)
    yield (
        "calibrated 2 told kernel",
        functools.partial(calibrated, 2, 200, 0.2, kernel=TOLD["kernel"]),
    )
    yield (
        "calibrated 2 told noise",
        functools.partial(calibrated, 2, 200, 0.2, noise=pt.Gaussian(0.1)),
    )
    yield "minimize", functools.partial(minimized, SPACE, 200, seed=1)
    yield "minimize failing", functools.partial(minimized, SPACE, 100, True, seed=1)
    yield (
        "minimize x0",
        functools.partial(
            minimized, {"lr": (1e-4, 1e-1, "log"), "u": (0, 1)}, 60, x0={"lr": 0.003, "u": 0.2}
        ),
    )
    yield (
        "minimize feasible",
        functools.partial(
            minimized, {"u": (0, 1), "v": (0, 1)}, 100, feasible=lambda u, v: u + v < 1.2
        ),
    )
    yield "minimize finite", functools.partial(minimized, FINITE, 100, seed=1)
    yield (
        "minimize igp-ucb",
        functools.partial(
            minimized,
            FINITE,
            50,
            policy="igp-ucb",
            kernel=TOLD["kernel"],
            norm_bound=2.0,
            noise=pt.Gaussian(0.1),
        ),
    )
    yield "maximize bounds", bounds_only
    yield "maximize proven", proven
    yield "scipy method", scipy_method
    yield "study", functools.partial(study, SPACE)
    yield "study finite", functools.partial(study, FINITE)
    yield "study uniform", functools.partial(study, SPACE, "uniform")
    yield "optuna", functools.partial(optuna_sampler, False)
    yield "optuna conditional", functools.partial(optuna_sampler, True)
    yield "commands", commands
    yield "compare", compared


def plain(value: Any) -> Any:
    """As lists, dicts, strings and numbers in full."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    return value.hex() if isinstance(value, float) else value if value is None else str(value)


def recordings(only: str) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, case in cases():
        if only not in name:
            continue
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                made[name] = plain(case())
            except pt.PartitaError as refused:
                made[name] = f"refused: {refused}"
            except Exception as error:  # a fault of the change: said, and the others are made
                made[name] = f"raised {type(error).__name__}: {error}"
        digest = hashlib.sha256(json.dumps(made[name]).encode()).hexdigest()[:12]
        print(f"{name:32} {digest}  {time.perf_counter() - start:6.1f} s", flush=True)
        if isinstance(made[name], str):
            print(f"    {made[name][:200]}")
    return made


def difference(before: Any, after: Any, where: str = "") -> str | None:
    """Where two recordings first differ, or None."""
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        pairs = [(f"{where}.{key}", before[key], after[key]) for key in before]
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = [(f"{where}[{i}]", *both) for i, both in enumerate(zip(before, after, strict=True))]
    else:
        return None if before == after else f"{where}: {str(before)[:300]} | {str(after)[:300]}"
    return next((found for w, b, a in pairs if (found := difference(b, a, w))), None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("record", "check"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    options = parser.parse_args()
    made = recordings(options.only)
    if options.action == "record":
        options.file.write_text(json.dumps(made))
        return 0
    before = json.loads(options.file.read_text())
    changed = {n: difference(before[n], made[n]) for n in made if before.get(n) != made[n]}
    for name, where in changed.items():
        print(f"CHANGED {name}: {where}")
    missing = [name for name in before if options.only in name and name not in made]
    print(
        f"{len(made) - len(changed)} of {len(made)} the same"
        + (f", missing {missing}" * bool(missing))
    )
    return bool(changed or missing)


if __name__ == "__main__":
    sys.exit(main())

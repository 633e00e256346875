"""One call that optimises: `maximize` and `minimize`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

from partita.model.assumptions import Assumptions
from partita.model.kernels import Matern
from partita.model.noise import Noise
from partita.optimize.evaluate import Function
from partita.optimize.loop import Callback, Evaluation
from partita.optimize.optimizer import Optimizer
from partita.optimize.player import Player
from partita.optimize.result import Result

from .arguments import limits_of, workers_of
from .run import CATCH, DELTA, SEED, Catch, Problem, StudyLike, optimise

if TYPE_CHECKING:
    from partita.study import Study

__all__ = ["Evaluation", "maximize", "minimize"]


def maximize(
    f: Function,
    space: Any = None,
    *,
    n_evals: int | None = None,
    max_seconds: float | None = None,
    tolerance: float | None = None,
    callback: Callback | None = None,
    x0: Any = None,
    seed: int | None = SEED,
    norm_bound: float | None = None,
    noise: Noise | None = None,
    kernel: Matern | None = None,
    outcomes: tuple[float | None, float | None] | None = None,
    delta: float = DELTA,
    policy: str | Callable[..., Any] | None = None,
    feasible: Callable[..., Any] | None = None,
    constraints: Sequence[str] | None = None,
    executor: Executor | None = None,
    in_flight: int | None = None,
    batch: int | None = None,
    replicates: bool = False,
    progress: bool | None = None,
    catch: Catch = CATCH,
    study: StudyLike = None,
    optimizer: Optimizer | Study | Player | None = None,
) -> Result:
    """Maximise a noisy function.

    Parameters
    ----------
    f
        The function. It is called with keywords if the space is a dict of names, else with one
        array. If it names a parameter `trial`, and the space has none of that name, it is given the
        `Trial`: with `trial.report(value, step)` and `trial.should_prune()` it can end early. It
        returns a number, or `(value, std)` if it knows the standard deviation of that value's
        noise: 0 means exact, None means unknown. With `constraints` it returns a dict.
    space
        A list of (low, high) pairs, or a dict of named parameters. A parameter is a range
        `(low, high)`, optionally with "log", "int" or a step, a list of choices, `bool`, or a dict
        of branches for a choice with parameters of its own. See `partita.space.as_space`.
    n_evals
        Stop after this many evaluations that gave a value or ended early. At least one of
        `n_evals`, `max_seconds`, `tolerance` and `callback` must be given.
    max_seconds
        Stop after this time. An evaluation in this process is finished first; one in a worker is
        abandoned.
    tolerance
        Stop once the certificate is at most this: no point can be better than the recommended one
        by more, as proven, or as estimated if the bounds are calibrated. It is checked after each
        of the first 40 evaluations, and then each time their number has grown by 2.5 %.
        With proven bounds a tolerance that `n_evals` will likely not reach is reported before the
        first evaluation, with an estimate of how many it takes.
    callback
        Called after each value with an `Evaluation` (number, params, value, n_evals, seconds,
        optimizer, std, values). The run ends if it returns True or raises StopIteration.
    x0
        The first point to evaluate, such as the parameters in use today, or a list of such points:
        dicts or arrays, as f gets them. If a study is resumed, those that already have a value are
        skipped.
    seed
        The same seed gives the same run if f returns the same values and no executor is used. None
        draws one: the result has it as `seed`.
    norm_bound, noise, kernel
        If all three are given, the policy is π-GP-UCB and the bounds are proven. Otherwise the
        calibrated policy uses those given and learns the rest.
    outcomes
        (low, high), what the mean of f can be, such as (0, 1) if f is an accuracy; None for an end
        that is not known. Bounds, `fun` and the certificate respect it. Single values may lie
        outside, as noise is added, unless `noise` rules that out; then the evaluation fails.
    delta
        The probability with which a bound may fail.
    policy
        Another policy: a name, a class, or a function that takes a domain and returns a policy.
    feasible
        Takes the same arguments as f, and returns True where f may be evaluated.
    constraints
        Bounds on other quantities that an evaluation shows, such as `["cost <= 10"]`. f then
        returns a dict of numbers, such as `{"loss": 0.3, "cost": 9.1}`: the one name that no
        constraint has is optimised. The answer meets all of them with probability 1 − delta, by a
        model of each; `result.constraints` says what is known there. If no point does, `message`
        says so.
    executor
        Any `concurrent.futures.Executor`: threads, processes, Dask's
        `client.get_executor(pure=False)`, `partita.integrations.ray.RayExecutor()`. Evaluations are
        asynchronous: when one ends, its value is reported and another one starts. The executor is
        not shut down.
    in_flight
        The number of tasks running at a time; by default the number of the executor's workers. With
        `replicates`, the number of evaluations under way or planned; by default a hundredth of
        `n_evals`, with 200 to 1,000 workers up to a twentieth, and at least four for each worker.
    batch
        The number of evaluations per task, for functions so fast that sending a task costs more;
        1 by default. With `replicates`, the largest `count` of one call, by default 65,536.
    replicates
        Whether f is evaluated many times at few parameters. If f names a parameter `count`, it
        returns an array of `count` values at its parameters, or `Aggregate(mean, std, count)`; else
        one value, and is called for each. If it names `seed`, it is given a whole number to draw
        its random numbers from, different in each call, and the same when the run is made again.
        `n_evals` and `nfev` are numbers of values. Workers of an executor send sums back about
        every second.
    progress
        Whether to show a progress bar; by default only on a terminal and in a notebook.
    catch
        The errors of f that count as a failed evaluation; others end the run and are raised. By
        default all errors and `sys.exit()` count as failures. With `Exception`, `sys.exit()` ends
        the program; with `()`, the first error is raised. Ctrl-C always ends the run.
    study
        A file such as "tune.db", the address of a study that `partita serve` keeps, such as
        "http://host:8420/tune", or an open `Study`, that keeps the run. If the run is killed or has
        ended, the same call resumes it. `n_evals` then counts all values of the study, so a larger
        number continues it.
    optimizer
        `result.optimizer` of an earlier run, or any other `Optimizer`, to continue with. `n_evals`
        is then the number of further evaluations. The space may be left out; the settings are those
        of the optimizer.

    Returns
    -------
    Result
        A SciPy `OptimizeResult`: x, params, fun, lower, upper, certificate, guarantee, nfev,
        nfail, message, seed, history, `plot()`. `fun` is the posterior mean at the recommended
        point `x`.

    Raises
    ------
    EvaluationFailed
        If the first twenty evaluations all fail, or none gives a value before the time is up.
    InvalidInput
        If an argument cannot be used. The message says what to give instead.

    See Also
    --------
    minimize : the same for the smallest value.

    Notes
    -----
    An evaluation that raises `TrialPruned` has ended early. The model learns what its last report
    says about its value, and it is counted in `npruned`.

    An evaluation fails if it raises an error, or returns anything but a finite number or a pair
    `(value, std)` of a finite number and a std of at least 0. It is counted in `nfail`, not in
    `nfev`, and the run goes on. The calibrated policy learns where evaluations fail, and avoids
    these places; for other policies see `partita.optimize.failures`. The run ends early, with a
    result, at Ctrl-C, when a process pool breaks, when `n_evals` evaluations have failed, and when
    more than 100 have failed and more than ten times as many as succeeded.

    A function that does not take the parameters of the space ends the run at once, and so does one
    whose first evaluation returns something that is not a number: `EvaluationFailed` shows what.

    The bounds and the certificate apply to the function where it can be evaluated, and ignore
    failures. If you know in advance where it fails, give `feasible`.

    Examples
    --------
    >>> import numpy as np
    >>> import partita as pt
    >>> random = np.random.default_rng(0)
    >>> def f(x, y):
    ...     return 1 - (x - 0.3) ** 2 - (y - 0.8) ** 2 + 0.1 * random.normal()
    >>> result = pt.maximize(f, {"x": (0, 1), "y": (0, 1)}, n_evals=50)
    >>> result.nfev
    50
    >>> sorted(result.params)
    ['x', 'y']
    >>> bool(result.lower <= result.fun <= result.upper)
    True
    """
    return optimise(
        f,
        Problem(
            "maximize",
            space,
            n_evals,
            seed,
            Assumptions(kernel, norm_bound, noise, delta),
            policy,
            feasible,
            study,
            optimizer,
            constraints,
            outcomes,
        ),
        limits_of(n_evals, max_seconds, tolerance, callback),
        workers_of(executor, in_flight, batch, replicates),
        x0=x0,
        callback=callback,
        catch=catch,
        progress=progress,
    )


def minimize(
    f: Function,
    space: Any = None,
    *,
    n_evals: int | None = None,
    max_seconds: float | None = None,
    tolerance: float | None = None,
    callback: Callback | None = None,
    x0: Any = None,
    seed: int | None = SEED,
    norm_bound: float | None = None,
    noise: Noise | None = None,
    kernel: Matern | None = None,
    outcomes: tuple[float | None, float | None] | None = None,
    delta: float = DELTA,
    policy: str | Callable[..., Any] | None = None,
    feasible: Callable[..., Any] | None = None,
    constraints: Sequence[str] | None = None,
    executor: Executor | None = None,
    in_flight: int | None = None,
    batch: int | None = None,
    replicates: bool = False,
    progress: bool | None = None,
    catch: Catch = CATCH,
    study: StudyLike = None,
    optimizer: Optimizer | Study | Player | None = None,
) -> Result:
    """Minimise a noisy function.

    Parameters
    ----------
    f
        The function. It is called with keywords if the space is a dict of names, else with one
        array. If it names a parameter `trial`, and the space has none of that name, it is given the
        `Trial`: with `trial.report(value, step)` and `trial.should_prune()` it can end early. It
        returns a number, or `(value, std)` if it knows the standard deviation of that value's
        noise: 0 means exact, None means unknown. With `constraints` it returns a dict.
    space
        A list of (low, high) pairs, or a dict of named parameters. A parameter is a range
        `(low, high)`, optionally with "log", "int" or a step, a list of choices, `bool`, or a dict
        of branches for a choice with parameters of its own. See `partita.space.as_space`.
    n_evals
        Stop after this many evaluations that gave a value or ended early. At least one of
        `n_evals`, `max_seconds`, `tolerance` and `callback` must be given.
    max_seconds
        Stop after this time. An evaluation in this process is finished first; one in a worker is
        abandoned.
    tolerance
        Stop once the certificate is at most this: no point can be better than the recommended one
        by more, as proven, or as estimated if the bounds are calibrated. It is checked after each
        of the first 40 evaluations, and then each time their number has grown by 2.5 %.
        With proven bounds a tolerance that `n_evals` will likely not reach is reported before the
        first evaluation, with an estimate of how many it takes.
    callback
        Called after each value with an `Evaluation` (number, params, value, n_evals, seconds,
        optimizer, std, values). The run ends if it returns True or raises StopIteration.
    x0
        The first point to evaluate, such as the parameters in use today, or a list of such points:
        dicts or arrays, as f gets them. If a study is resumed, those that already have a value are
        skipped.
    seed
        The same seed gives the same run if f returns the same values and no executor is used. None
        draws one: the result has it as `seed`.
    norm_bound, noise, kernel
        If all three are given, the policy is π-GP-UCB and the bounds are proven. Otherwise the
        calibrated policy uses those given and learns the rest.
    outcomes
        (low, high), what the mean of f can be, such as (0, 1) if f is an accuracy; None for an end
        that is not known. Bounds, `fun` and the certificate respect it. Single values may lie
        outside, as noise is added, unless `noise` rules that out; then the evaluation fails.
    delta
        The probability with which a bound may fail.
    policy
        Another policy: a name, a class, or a function that takes a domain and returns a policy.
    feasible
        Takes the same arguments as f, and returns True where f may be evaluated.
    constraints
        Bounds on other quantities that an evaluation shows, such as `["cost <= 10"]`. f then
        returns a dict of numbers, such as `{"loss": 0.3, "cost": 9.1}`: the one name that no
        constraint has is optimised. The answer meets all of them with probability 1 − delta, by a
        model of each; `result.constraints` says what is known there. If no point does, `message`
        says so.
    executor
        Any `concurrent.futures.Executor`: threads, processes, Dask's
        `client.get_executor(pure=False)`, `partita.integrations.ray.RayExecutor()`. Evaluations are
        asynchronous: when one ends, its value is reported and another one starts. The executor is
        not shut down.
    in_flight
        The number of tasks running at a time; by default the number of the executor's workers. With
        `replicates`, the number of evaluations under way or planned; by default a hundredth of
        `n_evals`, with 200 to 1,000 workers up to a twentieth, and at least four for each worker.
    batch
        The number of evaluations per task, for functions so fast that sending a task costs more;
        1 by default. With `replicates`, the largest `count` of one call, by default 65,536.
    replicates
        Whether f is evaluated many times at few parameters. If f names a parameter `count`, it
        returns an array of `count` values at its parameters, or `Aggregate(mean, std, count)`; else
        one value, and is called for each. If it names `seed`, it is given a whole number to draw
        its random numbers from, different in each call, and the same when the run is made again.
        `n_evals` and `nfev` are numbers of values. Workers of an executor send sums back about
        every second.
    progress
        Whether to show a progress bar; by default only on a terminal and in a notebook.
    catch
        The errors of f that count as a failed evaluation; others end the run and are raised. By
        default all errors and `sys.exit()` count as failures. With `Exception`, `sys.exit()` ends
        the program; with `()`, the first error is raised. Ctrl-C always ends the run.
    study
        A file such as "tune.db", the address of a study that `partita serve` keeps, such as
        "http://host:8420/tune", or an open `Study`, that keeps the run. If the run is killed or has
        ended, the same call resumes it. `n_evals` then counts all values of the study, so a larger
        number continues it.
    optimizer
        `result.optimizer` of an earlier run, or any other `Optimizer`, to continue with. `n_evals`
        is then the number of further evaluations. The space may be left out; the settings are those
        of the optimizer.

    Returns
    -------
    Result
        A SciPy `OptimizeResult`: x, params, fun, lower, upper, certificate, guarantee, nfev,
        nfail, message, seed, history, `plot()`. `fun` is the posterior mean at the recommended
        point `x`.

    Raises
    ------
    EvaluationFailed
        If the first twenty evaluations all fail, or none gives a value before the time is up.
    InvalidInput
        If an argument cannot be used. The message says what to give instead.

    See Also
    --------
    maximize : the same for the largest value.

    Notes
    -----
    An evaluation that raises `TrialPruned` has ended early. The model learns what its last report
    says about its value, and it is counted in `npruned`.

    An evaluation fails if it raises an error, or returns anything but a finite number or a pair
    `(value, std)` of a finite number and a std of at least 0. It is counted in `nfail`, not in
    `nfev`, and the run goes on. The calibrated policy learns where evaluations fail, and avoids
    these places; for other policies see `partita.optimize.failures`. The run ends early, with a
    result, at Ctrl-C, when a process pool breaks, when `n_evals` evaluations have failed, and when
    more than 100 have failed and more than ten times as many as succeeded.

    A function that does not take the parameters of the space ends the run at once, and so does one
    whose first evaluation returns something that is not a number: `EvaluationFailed` shows what.

    The bounds and the certificate apply to the function where it can be evaluated, and ignore
    failures. If you know in advance where it fails, give `feasible`.

    Examples
    --------
    >>> import numpy as np
    >>> import partita as pt
    >>> random = np.random.default_rng(0)
    >>> def f(x, y):
    ...     return (x - 0.3) ** 2 + (y - 0.8) ** 2 + 0.1 * random.normal()
    >>> result = pt.minimize(f, {"x": (0, 1), "y": (0, 1)}, n_evals=50)
    >>> result.nfev
    50
    >>> sorted(result.params)
    ['x', 'y']
    >>> bool(result.lower <= result.fun <= result.upper)
    True
    """
    return optimise(
        f,
        Problem(
            "minimize",
            space,
            n_evals,
            seed,
            Assumptions(kernel, norm_bound, noise, delta),
            policy,
            feasible,
            study,
            optimizer,
            constraints,
            outcomes,
        ),
        limits_of(n_evals, max_seconds, tolerance, callback),
        workers_of(executor, in_flight, batch, replicates),
        x0=x0,
        callback=callback,
        catch=catch,
        progress=progress,
    )

"""One call that optimises: `maximize` and `minimize`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any

from partita.model.assumptions import Assumptions
from partita.model.kernels import Matern
from partita.model.noise import Noise
from partita.optimize.evaluate import Function
from partita.optimize.loop import Callback, Evaluation
from partita.optimize.result import Result

from .run import CATCH, DELTA, SEED, Catch, Problem, StudyLike, limits_of, optimise, workers_of

__all__ = ["Evaluation", "maximize", "minimize"]


def maximize(
    f: Function,
    space: Any,
    *,
    n_evals: int | None = None,
    max_seconds: float | None = None,
    tolerance: float | None = None,
    callback: Callback | None = None,
    x0: Any = None,
    seed: int = SEED,
    norm_bound: float | None = None,
    noise: Noise | None = None,
    kernel: Matern | None = None,
    delta: float = DELTA,
    policy: str | Callable[..., Any] | None = None,
    feasible: Callable[..., Any] | None = None,
    constraints: Sequence[str] | None = None,
    executor: Executor | None = None,
    in_flight: int | None = None,
    batch: int = 1,
    progress: bool | None = None,
    catch: Catch = CATCH,
    study: StudyLike = None,
) -> Result:
    """Maximise a noisy function.

    Parameters
    ----------
    f
        Called with keywords if the space is a dict of names, else with an array. It returns a
        number, or `(value, std)` if it knows the standard deviation of that value's noise: 0 means
        exact, None not known.
    space
        A list of (low, high) pairs, or a dict of named parameters: `(low, high)`, with "log",
        "int" or a step if need be, a list of choices, or `bool`. See `partita.space.as_space`.
    n_evals
        Stop after this many evaluations that gave a value. At least one of the next three, this one
        or `callback` must be given.
    max_seconds
        Stop when the time is up. An evaluation made here ends first; one in a worker is left.
    tolerance
        Stop once the certificate is at most this: no point can be better than the recommended one
        by more. It is looked at after every evaluation up to 40, then after 2.5 % more each time.
    callback
        Called after each value with an `Evaluation` (number, params, value, n_evals, seconds,
        optimizer, std, values); the run ends if it returns True or raises StopIteration.
    x0
        Where to begin: parameters as f gets them (a dict, or an array), such as those in use today,
        or a list of several. They are evaluated first; of a study that is resumed, those that have
        no value yet.
    seed
        The same seed gives the same run, if f does, and if it is evaluated here, one at a time.
    norm_bound, noise, kernel
        Given all three, the policy is π-GP-UCB and the bounds are proven; otherwise the calibrated
        policy uses those given and learns the rest.
    delta
        Probability that a bound may fail.
    policy
        Another policy: a name, a class, or a function that makes one for a domain.
    feasible
        Called as f is; True where f may be evaluated.
    constraints
        Bounds on other quantities that an evaluation shows, such as `["cost <= 10"]`. f then
        returns a dict of numbers, such as `{"loss": 0.3, "cost": 9.1}`: the one name that no
        constraint has is optimised. The answer meets all of them with probability 1 − delta, by a
        model of each; `result.constraints` says what is known there. If no point does, `message`
        says so.
    executor
        Any `concurrent.futures.Executor`: threads, processes, Dask's
        `client.get_executor(pure=False)`, `partita.integrations.ray.RayExecutor()`. Evaluations are
        asynchronous: whichever ends first is told first and another begun. It is not shut down.
    in_flight
        Tasks under way at a time; as many as the executor has workers if not given.
    batch
        Evaluations a task, for functions so quick that handing them over costs more.
    progress
        Whether to show a progress bar on stderr; only on a terminal if not given.
    catch
        Errors of f that count as a failed evaluation; others end the run and are raised. Those are
        all errors, and `sys.exit()`, if not given. `Exception` lets `sys.exit()` end the program;
        `()` shows the first error of all. Ctrl-C ends the run in any case.
    study
        A file such as "tune.db", or an open `Study`, that keeps the run: killed or ended, the same
        call resumes it. `n_evals` then counts all values of the study, so a larger one goes on.

    Returns
    -------
    Result
        A SciPy `OptimizeResult`: x, params, fun, lower, upper, certificate, guarantee, nfev,
        nfail, message, history, `plot()`.

    Notes
    -----
    An evaluation that raises, or returns anything but a finite number or a pair `(value, std)`
    (None, NaN, words, an array of several, a negative std), has failed: it is counted in `nfail`,
    not in `nfev`, and the run goes on. Where failures depend on place, that is learned, and places
    that are likely to fail are avoided; other policies than the calibrated one evaluate others near
    them, see `partita.optimize.failures`. A function that does not take the parameters, or returns
    what is not a number before it has returned one, ends the run at once: `EvaluationFailed` says
    what came back. So does a run without a value after twenty failures, or when the time is up. If
    `n_evals` evaluations fail, or more than 100 and than ten times those that succeed, the run ends
    with what it has. So it does at Ctrl-C, or when a pool of processes breaks. Bounds and
    certificate are of the function where it can be evaluated, and know nothing of failures: give
    `feasible` where they are known beforehand.
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
            constraints,
        ),
        limits_of(n_evals, max_seconds, tolerance, callback),
        workers_of(executor, in_flight, batch),
        x0=x0,
        callback=callback,
        catch=catch,
        progress=progress,
    )


def minimize(
    f: Function,
    space: Any,
    *,
    n_evals: int | None = None,
    max_seconds: float | None = None,
    tolerance: float | None = None,
    callback: Callback | None = None,
    x0: Any = None,
    seed: int = SEED,
    norm_bound: float | None = None,
    noise: Noise | None = None,
    kernel: Matern | None = None,
    delta: float = DELTA,
    policy: str | Callable[..., Any] | None = None,
    feasible: Callable[..., Any] | None = None,
    constraints: Sequence[str] | None = None,
    executor: Executor | None = None,
    in_flight: int | None = None,
    batch: int = 1,
    progress: bool | None = None,
    catch: Catch = CATCH,
    study: StudyLike = None,
) -> Result:
    """Minimise a noisy function: see `maximize`, which this mirrors."""
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
            constraints,
        ),
        limits_of(n_evals, max_seconds, tolerance, callback),
        workers_of(executor, in_flight, batch),
        x0=x0,
        callback=callback,
        catch=catch,
        progress=progress,
    )

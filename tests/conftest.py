import logging
import os
import signal

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: tests share the cores

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "partita",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("partita")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in the background by a shell
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests send it, children inherit it


@pytest.fixture(autouse=True)
def _log_as_before():
    """Code of the pages sets up logging: not for the tests after it."""
    root, trials = logging.getLogger(), logging.getLogger("partita.trials")
    handlers, level = root.handlers[:], trials.level
    yield
    for handler in set(root.handlers) - set(handlers):
        root.removeHandler(handler)
    if trials.level != level:
        trials.setLevel(level)


@pytest.fixture
def made(monkeypatch):
    """Tasks of `partita.experiments` in the order they are run, in this process."""
    from partita.experiments import Task, run, trace

    tasks = []

    def counted(policy, problem, horizon, seed):
        tasks.append(Task(policy, problem, horizon, seed))
        return run(policy, problem, horizon, seed)

    monkeypatch.setattr(trace, "run", counted)
    return tasks

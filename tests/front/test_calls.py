"""`maximize` and `minimize`: the loop, when it ends, what failures do, Ctrl-C, the progress bar."""

from __future__ import annotations

import io
import os
import pty
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import partita as pt
from partita._status import StatusLine, bar
from partita.errors import EvaluationFailed, InvalidInput
from partita.front import maximize
from partita.optimize.failures import REMEMBERED, _Points
from partita.optimize.interrupts import Interrupts
from partita.optimize.loop import Run
from partita.optimize.meter import Meter

SQUARE = [(0, 1), (0, 1)]


def hill(x):
    return float(1 - (x[0] - 0.3) ** 2 - (x[1] - 0.6) ** 2)


# -- what it finds ---------------------------------------------------------------------------------


def test_the_optimum_of_a_noisy_function_is_found():
    random = np.random.default_rng(1)
    result = maximize(lambda x: hill(x) + 0.1 * random.normal(), SQUARE, n_evals=200)
    assert result.success
    assert result.nfev == 200
    assert hill(result.x) > 0.985
    assert result.lower <= hill(result.x) <= result.upper
    assert result.fun == pytest.approx(hill(result.x), abs=0.03)  # not the luckiest value
    assert result.history.values.max() > 1.15


def test_the_function_is_given_an_array_or_keywords_as_the_space_was():
    seen = []

    def f(rate, kind, depth, *, on):
        seen.append((rate, kind, depth, on))
        return rate + depth + (kind == "b") + on

    space = {"rate": (0, 1), "kind": ["a", "b", "c"], "depth": (1, 4, "int"), "on": bool}
    result = maximize(f, space, n_evals=60)
    assert result.params["kind"] == "b"
    assert result.params["depth"] == 4
    assert result.params["on"] is True
    assert result.x == list(result.params.values())
    assert {type(v) for row in seen for v in row} == {float, str, int, bool}

    def g(x):
        assert isinstance(x, np.ndarray)
        value = hill(x)
        x[:] = np.nan  # the caller's own
        return value

    assert maximize(g, SQUARE, n_evals=30).nfev == 30


def test_given_norm_noise_and_kernel_the_bounds_are_proven():
    known = {"norm_bound": 2.0, "noise": pt.Gaussian(0.1), "kernel": pt.Matern(1.5, 0.3)}
    result = maximize(hill, SQUARE, n_evals=100, **known)
    assert result.guarantee == "proven"
    assert result.lower <= hill(result.x) <= result.upper
    assert 1 - hill(result.x) <= result.certificate < np.inf
    assert maximize(hill, SQUARE, n_evals=10, noise=pt.Gaussian(0.1)).guarantee == "calibrated"


def test_only_feasible_points_are_evaluated():
    def feasible(x):
        return x[0] + x[1] <= 0.5

    def f(x):
        assert feasible(x)
        return hill(x)

    result = maximize(f, SQUARE, n_evals=60, feasible=feasible)
    assert (result.nfev, result.nfail) == (60, 0)
    assert feasible(result.x)


# -- when it ends ----------------------------------------------------------------------------------


def test_something_must_end_the_run():
    with pytest.raises(InvalidInput, match="nothing would end the run"):
        maximize(hill, SQUARE)


def test_it_ends_when_the_time_is_up():
    start = time.monotonic()
    result = maximize(hill, SQUARE, max_seconds=0.4)
    assert 0.4 <= time.monotonic() - start < 3
    assert (result.status, result.success) == (1, True)
    assert 0.4 <= result.seconds < 3


def test_it_ends_within_the_tolerance():
    random = np.random.default_rng(0)
    result = maximize(
        lambda x: hill(x) + 0.1 * random.normal(), SQUARE, tolerance=0.05, n_evals=5000
    )
    assert result.status == 2
    assert result.certificate <= 0.05
    assert result.nfev < 5000
    assert hill(result.x) > 0.95
    before = result.history.certificate[result.history.evaluations < 0.9 * result.nfev]
    assert before[-1] > 0.05


def test_a_callback_ends_it():
    seen = []

    def stop_at_20(now):
        seen.append(now)
        return now.n_evals == 20

    result = maximize(hill, SQUARE, callback=stop_at_20)
    assert (result.status, result.nfev) == (3, 20)
    assert [now.number for now in seen] == list(range(20))
    for now in seen:
        assert now.value == hill(now.params)
    assert seen[-1].optimizer.n_told == 20

    def stop(now):
        raise StopIteration

    assert maximize(hill, SQUARE, callback=stop).nfev == 1
    assert maximize(hill, SQUARE, callback=lambda now: "yes", n_evals=7).nfev == 7
    assert maximize(hill, SQUARE, callback=lambda now: np.bool_(True), n_evals=7).nfev == 1


def test_an_error_in_the_callback_is_the_users_to_see():
    with pytest.raises(KeyError):
        maximize(hill, SQUARE, n_evals=5, callback=lambda now: {}["no"])


def test_history_is_recorded_at_ever_wider_steps():
    result = maximize(hill, SQUARE, n_evals=300)
    history = result.history
    at = history.evaluations
    assert at[0] == 1
    assert at[-1] == 300
    assert (np.diff(at) >= 1).all()
    assert len(at) < 30
    assert (history.lower <= history.best_mean).all()
    assert (history.best_mean <= history.upper).all()
    assert (np.diff(history.seconds) >= 0).all()
    assert (history.best_mean[-1], history.certificate[-1]) == (result.fun, result.certificate)
    np.testing.assert_array_equal(history.values, [hill(x) for x in history.x])


# -- failures --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (None, "None"),
        (float("nan"), "nan"),
        (np.zeros(3), "shape (3,)"),
        (OSError("lost."), "OSError: lost."),
    ],
)
def test_what_is_no_number_is_a_failed_evaluation(bad, words):
    calls = []

    def f(x):
        calls.append(1)
        if len(calls) % 4 == 0:
            if isinstance(bad, Exception):
                raise bad
            return bad
        return hill(x)

    result = maximize(f, SQUARE, n_evals=30)
    assert (result.nfev, result.nfail) == (30, len(calls) - 30)
    assert result.nfail >= 7
    assert words in result.message
    assert ".." not in result.message
    assert len(result.errors) == 5
    assert result.optimizer.n_pending == 0


def test_if_the_first_twenty_fail_it_says_so():
    calls = []

    def f(x):
        calls.append(1)
        raise OSError(f"no such file {len(calls)}")

    with pytest.raises(EvaluationFailed, match=r"first 20 .* no such file 1") as caught:
        maximize(f, SQUARE, n_evals=100)
    assert str(caught.value.__cause__) == "no such file 1"
    assert len(calls) == 20


def test_errors_that_are_not_to_be_caught_are_raised():
    def f(x):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        maximize(f, SQUARE, n_evals=5, catch=())
    with pytest.raises(ZeroDivisionError):
        maximize(f, SQUARE, n_evals=5, catch=(OSError, KeyError))
    with pytest.raises(InvalidInput, match="None"):
        maximize(lambda x: None, SQUARE, n_evals=5, catch=())


def test_where_everything_fails_is_avoided_and_an_optimum_at_its_edge_found():
    random = np.random.default_rng(2)

    def f(x):
        if x[0] > 0.6:
            raise ValueError("diverged")
        return x[0] - abs(x[1] - 0.5) + 0.05 * random.normal()

    result = maximize(f, SQUARE, n_evals=150)
    assert result.nfev == 150
    assert result.nfail < 150
    assert 0.5 < result.x[0] <= 0.6
    assert result.x[0] - abs(result.x[1] - 0.5) > 0.5


def test_a_policy_that_would_ask_for_the_same_point_for_ever_gets_on():
    """π-GP-UCB alone proposes a cancelled point again, as nothing has changed."""
    known = {"norm_bound": 2.0, "noise": pt.Gaussian(0.1), "kernel": pt.Matern(1.5, 0.3)}
    result = maximize(
        lambda x: np.nan if x[0] > 0.5 else hill(x), SQUARE, n_evals=150, seed=1, **known
    )
    assert result.nfev > 75
    assert result.nfail <= 150  # never more than n_evals: the run ends there
    assert len(result.optimizer.trials) > result.nfev + result.nfail  # those that were replaced
    assert hill(result.x) > 0.9


def test_failures_by_chance_cost_little():
    def f(x):
        if random.random() < 0.2:
            raise TimeoutError
        return hill(x) + 0.1 * random.normal()

    found = []
    for seed in range(4):
        random = np.random.default_rng(seed)
        result = maximize(f, SQUARE, n_evals=150, seed=seed)
        assert 20 <= result.nfail <= 70
        found.append(hill(result.x))
    assert np.mean(found) > 0.98


def test_the_memory_of_failures_is_bounded():
    points = _Points(2)
    for i in range(3 * REMEMBERED + 5):
        points.add(np.array([i, -i], dtype=float))
    assert len(points.rows) == REMEMBERED
    assert set(points.rows[:, 0]) == set(range(2 * REMEMBERED + 5, 3 * REMEMBERED + 5))


def test_too_many_failures_end_the_run_with_what_it_has():
    calls = []

    def f(x):
        calls.append(1)
        if len(calls) > 3:
            raise OSError("gone")
        return hill(x)

    result = maximize(f, SQUARE, n_evals=100)
    assert (result.status, result.success) == (5, False)
    assert (result.nfev, result.nfail) == (3, 100)  # never more than n_evals
    assert "OSError: gone" in result.message


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"n_evals": 0}, "n_evals=0"),
        ({"n_evals": 2.5}, "n_evals=2.5"),
        ({"n_evals": "many"}, "n_evals='many'"),
        ({"max_seconds": 0}, "max_seconds=0"),
        ({"max_seconds": float("nan")}, "max_seconds=nan"),
        ({"tolerance": -1}, "tolerance=-1"),
        ({"n_evals": 5, "callback": 3}, "callback=3"),
        ({"n_evals": 5, "progress": "yes"}, "progress='yes'"),
        ({"n_evals": 5, "catch": "all"}, "catch='all'"),
        ({"n_evals": 5, "seed": -1}, "seed=-1"),
        ({"n_evals": 5, "delta": 2}, "delta=2"),
    ],
)
def test_bad_settings(given, words):
    with pytest.raises(InvalidInput, match=words):
        maximize(hill, SQUARE, **given)


def test_bad_functions_and_spaces():
    with pytest.raises(InvalidInput, match="give the function to optimise"):
        maximize(SQUARE, hill, n_evals=5)
    for space in ([], [(1, 0)], {"x": (0, 1, "log")}):
        with pytest.raises(InvalidInput):
            maximize(hill, space, n_evals=5)
    with pytest.raises(TypeError, match="evals"):
        maximize(hill, SQUARE, evals=5)


def test_a_seed_that_is_none_is_drawn_and_named():
    runs = [maximize(hill, SQUARE, n_evals=8, seed=None) for _ in range(2)]
    assert runs[0].seed != runs[1].seed
    assert f"seed: {runs[0].seed}" in repr(runs[0])
    again = maximize(hill, SQUARE, n_evals=8, seed=runs[0].seed)
    assert again.seed == runs[0].seed
    np.testing.assert_array_equal(again.history.x, runs[0].history.x)
    assert not np.array_equal(again.history.x, runs[1].history.x)
    assert maximize(hill, SQUARE, n_evals=3).seed == 0


def test_a_study_keeps_the_seed_that_was_drawn(tmp_path):
    path = tmp_path / "a.db"
    begun = maximize(hill, SQUARE, n_evals=5, seed=None, study=path)
    resumed = maximize(hill, SQUARE, n_evals=8, seed=None, study=path)
    alone = maximize(hill, SQUARE, n_evals=8, seed=begun.seed)
    assert begun.seed == resumed.seed > 0
    np.testing.assert_array_equal(resumed.history.x, alone.history.x)
    with pytest.raises(InvalidInput, match=f"seed is {begun.seed} in the study, but 7 was given"):
        maximize(hill, SQUARE, n_evals=9, seed=7, study=path)
    with pytest.raises(InvalidInput, match="seed='a': give a whole number"):
        maximize(hill, SQUARE, n_evals=5, seed="a", study=tmp_path / "b.db")
    assert not (tmp_path / "b.db").exists()


# -- Ctrl-C ----------------------------------------------------------------------------------------

SCRIPT = """
import sys, time
import partita as pt
calls = 0
def f(x):
    global calls
    calls += 1
    if calls == 30:
        print("ready", flush=True)
    time.sleep({pause})
    return -(x[0] - 0.4) ** 2
{setup}
result = pt.maximize(f, [(0, 1)], n_evals=10**6{extra})
print(result.status, result.success, result.nfev, result.x[0], result.optimizer.n_pending)
print(result.message)
"""


def interrupted(pause, setup="", extra=""):
    script = SCRIPT.format(pause=pause, setup=setup, extra=extra)
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert err == ""
    return out.splitlines()


def test_ctrl_c_returns_what_there_is():
    numbers, message = interrupted(0.0)
    status, success, nfev, x, pending = numbers.split()
    assert (status, success, pending) == ("4", "False", "0")
    assert int(nfev) >= 29
    assert abs(float(x) - 0.4) < 0.1
    assert message.startswith("Interrupted.")


def test_ctrl_c_while_others_evaluate():
    setup = "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(3)"
    numbers, message = interrupted(0.05, setup, ", executor=pool")
    assert numbers.split()[0] == "4"
    assert numbers.split()[-1] == "0"
    # Three, or fewer if it comes while others are asked for in the place of some that have ended.
    assert re.search("still under way (was|were) dropped", message)


def test_ctrl_c_before_anything_is_known_is_raised():
    def f(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        maximize(f, SQUARE, n_evals=5)


def press(times=1):
    for _ in range(times):
        os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.5)  # where it arrives, if it does not wait


def test_ctrl_c_waits_while_the_policy_is_being_changed():
    steps = []

    def change(presses):
        with interrupts.held():
            press(presses)
            steps.append("went on")

    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt):
            change(1)
        assert steps == ["went on"]
        with pytest.raises(KeyboardInterrupt):
            press()
        with pytest.raises(KeyboardInterrupt):
            change(2)  # a second one does not wait
        assert steps == ["went on"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_at_any_moment_leaves_everything_whole():
    random = np.random.default_rng(0)
    with ThreadPoolExecutor(3) as pool:
        for i in range(8):
            timer = threading.Timer(random.uniform(0.05, 0.3), signal.raise_signal, [signal.SIGINT])
            timer.start()
            result = maximize(hill, SQUARE, n_evals=10**6, executor=pool if i % 2 else None)
            timer.join()
            optimizer = result.optimizer
            assert result.status == 4
            assert optimizer.n_pending == optimizer.policy.pending == 0
            assert result.nfev == optimizer.n_told == optimizer.policy.told == len(result.history)
            trial = optimizer.ask()
            optimizer.tell(trial, 0.5)


def test_a_second_ctrl_c_does_not_lose_the_result(monkeypatch):
    def impatient(self):
        press()
        return finish(self)

    finish = Run.finish
    monkeypatch.setattr(Run, "finish", impatient)
    calls = iter(range(100))

    def f(x):
        if next(calls) == 7:
            press()
        return hill(x)

    result = maximize(f, SQUARE, n_evals=50)
    assert (result.status, result.nfev) == (4, 7)
    assert result.optimizer.n_pending == 0


def test_a_handler_of_the_users_own_is_left_alone():
    came = []
    before = signal.signal(signal.SIGINT, lambda *_: came.append(1))
    try:
        result = maximize(
            hill,
            SQUARE,
            n_evals=10,
            callback=lambda now: os.kill(os.getpid(), signal.SIGINT) if now.n_evals == 5 else None,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert came == [1]
    assert result.nfev == 10


# -- what is said at the end -----------------------------------------------------------------------


@pytest.mark.parametrize("executor", [None, ThreadPoolExecutor(1)])
def test_no_value_in_time_is_a_failure(executor):
    def f(x):
        time.sleep(0.02)
        raise ValueError("no data.")

    message = r"no evaluation gave a value within.*0.01 seconds"
    with pytest.raises(EvaluationFailed, match=message) as caught:
        maximize(f, SQUARE, max_seconds=0.01, executor=executor)
    if executor is None:
        assert str(caught.value.__cause__) == "no data."
        assert "1 failed, the first with ValueError: no data. Give more time" in str(caught.value)
    else:
        assert caught.value.__cause__ is None


def test_the_message_says_that_bounds_contradict_each_other():
    known = {"noise": pt.SubGaussian(1e-3), "kernel": pt.Matern(2.5, 0.5)}
    with pytest.warns(pt.TheoryWarning):
        wrong = maximize(lambda x: 100 * hill(x), SQUARE, n_evals=30, norm_bound=0.01, **known)
    assert "The bounds contradict each other" in wrong.message
    right = maximize(hill, SQUARE, n_evals=30, norm_bound=20.0, **known)
    assert right.guarantee == "proven"
    assert "contradict" not in right.message


def test_every_evaluation_under_way_is_one_that_the_policy_knows_of():

    def f(x):
        running.append(len(run.pending))
        known.append(run.player.n_pending >= run.player.policy.pending >= len(run.pending))
        return hill(x) if x[0] < 0.5 else np.nan

    def spy(self, *given):
        nonlocal run
        run = self
        return begin(self, *given)

    run, running, known, begin = None, [], [], Run.__init__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "__init__", spy)
        result = maximize(f, SQUARE, n_evals=40)
    assert result.nfail >= 3
    assert set(running) == {1}
    assert all(known)
    assert len(result.optimizer.trials) == result.nfev + result.nfail  # none was replaced


# -- the progress bar ------------------------------------------------------------------------------


def on_a_terminal(script):
    """What a script writes to stderr if that is a terminal of 120 columns."""
    main, end = pty.openpty()
    environment = {**os.environ, "COLUMNS": "120"}
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stderr=end,
        stdout=subprocess.PIPE,
        env=environment,
    )
    os.close(end)
    written = b""
    while True:
        try:
            part = os.read(main, 4096)
        except OSError:  # Linux: the other end is closed
            break
        if not part:
            break
        written += part
    out, _ = process.communicate(timeout=30)
    os.close(main)
    assert process.returncode == 0
    return written.decode(), out.decode()


def test_a_bar_on_a_real_terminal():
    written, out = on_a_terminal(
        """
        import time
        import partita as pt
        def f(x):
            time.sleep(0.005)
            if x[0] > 0.9:
                raise OSError
            return (x[0] - 0.3) ** 2 + 5
        result = pt.minimize(f, [(0, 1)], n_evals=200)
        print(result.nfev)
        """
    )
    lines = [line.removeprefix("\x1b[K") for line in written.split("\r")]
    assert len(lines) > 5
    assert lines[-1] == ""  # wiped
    last = lines[-2]
    assert re.search(r"█+░* +(1\d\d|200)/200  best 5\S* ± \S+  certificate \S+  \d+/s", last)
    assert all(len(line) < 120 for line in lines)
    assert "\n" not in written
    assert out == "200\n"


def test_silent_elsewhere(capfd):
    maximize(hill, SQUARE, n_evals=20)
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""
    maximize(hill, SQUARE, n_evals=20, progress=True)
    assert "20" in capfd.readouterr().err


def test_the_bar_says_what_is_known():
    stream = io.StringIO()
    optimizer = pt.Optimizer(SQUARE)
    meter = Meter(optimizer, 2000, None, True, stream)
    assert meter._text(0, 0, 0.0) == "░" * 0 + "0/2,000"
    assert meter._text(500, 3, 10.0) == f"{bar(0.25, 20)}  500/2,000  50/s  3 failed  30 s left"
    timed = Meter(optimizer, None, 60.0, True, stream)
    assert timed._text(3, 0, 45.0) == f"{bar(0.75, 20)}  3 evaluations  4/min  15 s left"
    meter.show(1, 0)
    assert stream.getvalue() != ""
    meter.close()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_a_line_is_cut_to_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "10")
    stream = io.StringIO()
    line = StatusLine(stream, True)
    line.write("0123456789abc")
    assert stream.getvalue() == "\r\x1b[K01234567…"
    assert not StatusLine(io.StringIO()).shown


def test_accidents_of_measuring_do_not_spoil_the_answer():
    rng = np.random.default_rng(0)

    def f(x):
        return float((x[0] - 0.3) ** 2 + (1e4 if rng.random() < 0.03 else 0.0))

    result = pt.minimize(f, [(0, 1)], n_evals=200)
    assert (result.x[0] - 0.3) ** 2 < 0.02  # uniform: 0.12


def test_a_function_of_the_wrong_arguments_is_told_how_it_is_called():
    with pytest.raises(EvaluationFailed, match=r"called with keywords, as in f\(lr=0.1"):
        pt.minimize(lambda params: params["a"], {"a": (0, 1)}, n_evals=5)


def test_the_first_failure_is_logged_and_no_other(caplog):
    def f(x):
        if x[0] < 0.5:
            raise RuntimeError("no\nmesh")
        return float(x[0])

    result = pt.minimize(f, [(0, 1)], n_evals=20)
    assert result.nfail > 1
    assert caplog.text.count("an evaluation failed, with RuntimeError") == 1


def test_a_failure_by_chance_is_tried_again():
    worth = {"a": 0.0, "b": 0.5, "c": 1.0}
    tried = []

    def f(kind):
        tried.append(kind)
        if tried.count("a") == 1 and kind == "a":
            raise RuntimeError("by chance")
        return worth[kind]

    result = pt.minimize(f, {"kind": ["a", "b", "c"]}, n_evals=40)
    assert result.nfail == 1
    assert tried.count("a") > 10
    assert result.params == {"kind": "a"}
    assert result.nfev == 40

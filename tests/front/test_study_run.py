"""`maximize(..., study=...)`: runs that resume by themselves, and the page about studies."""

import os
import re
import signal
import sqlite3
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing, nullcontext
from pathlib import Path

import numpy as np
import pytest
from support import objectives
from support.studies import PLANE, SPACE, Process, asks, events, is_sound, play, value

import partita as pt
from partita.errors import InvalidInput, StudyError
from partita.study import Study, owner

PAGE = Path(__file__).parents[2] / "docs" / "studies.md"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tune.db"


def f(**params):
    return value(params)


def test_a_run_with_a_study_is_the_run_without(path):
    plain = pt.minimize(f, SPACE, n_evals=25, seed=3)
    kept = pt.minimize(f, SPACE, n_evals=25, seed=3, study=path)
    assert kept.history.params == plain.history.params
    assert (kept.params, kept.fun, kept.certificate) == (plain.params, plain.fun, plain.certificate)
    assert kept.nfev == 25
    study = Study.open(path)
    assert (study.n_told, study.n_pending, study.n_failed) == (25, 0, 0)


def test_another_constraint_than_it_was_made_with_is_refused(path):
    def square(x):
        return (x - 0.2) ** 2

    line = {"x": (0.0, 1.0)}
    pt.minimize(square, line, n_evals=20, study=path, feasible=lambda x: x < 0.5)
    again = pt.minimize(square, line, n_evals=22, study=path, feasible=lambda x: x < 0.5)
    assert again.nfev == 22
    with pytest.raises(StudyError, match=r"feasible does not allow trial \d+.*it was made with"):
        pt.minimize(square, line, n_evals=25, study=path, feasible=lambda x: x > 0.5)


def test_a_first_point_is_evaluated_once_however_often_it_resumes(path):
    from scipy.optimize import minimize

    seen = []

    def square(x):
        seen.append(float(x[0]))
        return float((x[0] - 0.2) ** 2)

    for number in (10, 11, 12):
        options = {"n_evals": number, "study": path}
        minimize(square, [0.77], bounds=[(0, 1)], method=pt.scipy_method, options=options)
    assert len(seen) == 12
    assert seen.count(0.77) == 1


@pytest.mark.parametrize("name", ["sqlite:///tune.db", ":memory:"])
def test_what_is_no_file_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StudyError, match="is not a file: give the name of one"):
        pt.minimize(lambda x: 1.0, [(0, 1)], n_evals=5, study=name)
    assert not list(tmp_path.iterdir())


def test_a_study_within_the_tolerance_evaluates_no_more(path):
    def square(x):
        return float((x[0] - 0.2) ** 2)

    first = pt.minimize(square, [(0, 1)], n_evals=300, tolerance=0.5, study=path)
    assert first.nfev < 300
    again = pt.minimize(square, [(0, 1)], n_evals=300, tolerance=0.5, study=path)
    assert (again.nfev, again.status) == (first.nfev, first.status)


def test_it_resumes_with_a_larger_budget(path):
    whole = pt.maximize(f, SPACE, n_evals=30)
    calls = []

    def counted(**params):
        calls.append(params)
        return f(**params)

    first = pt.maximize(counted, SPACE, n_evals=12, study=str(path))
    assert (first.nfev, len(calls)) == (12, 12)
    second = pt.maximize(counted, SPACE, n_evals=30, study=str(path))
    assert (second.nfev, len(calls)) == (30, 30)
    assert second.history.params == whole.history.params
    assert second.success
    # There is nothing left to do: the answer, at once.
    third = pt.maximize(counted, SPACE, n_evals=30, study=str(path))
    assert len(calls) == 30
    assert (third.params, third.fun, third.nfev) == (second.params, second.fun, 30)
    assert third.message == "All evaluations were made."


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes as of Unix")
def test_a_killed_run_resumes_to_the_same_trials(path):
    """What the killed one had under way is evaluated first, so that nothing differs."""
    for stop in (7, 13):

        def killed(out, stop=stop):
            def slow(**params):
                n = Study.open(path).n_told
                out.write(f"{n}\n")
                if n == stop:
                    time.sleep(60)  # killed in the middle of an evaluation
                return f(**params)

            pt.minimize(slow, SPACE, n_evals=20, study=path)

        process = Process(killed)
        while process.line() != str(stop):
            pass
        process.kill()
        assert Study.open(path).n_pending == 1
    result = pt.minimize(f, SPACE, n_evals=20, study=path)
    whole = pt.minimize(f, SPACE, n_evals=20)
    assert result.history.params == whole.history.params
    assert result.params == whole.params
    assert [kind for _, kind, _, _ in events(path)].count("adopt") == 2
    study = Study.open(path)
    assert (study.n_told, study.n_pending, study.n_failed) == (20, 0, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes as of Unix")
def test_what_a_killed_run_had_failed_or_passed_over_is_not_evaluated_by_the_next(path):
    """Of a policy that does not learn where evaluations fail, so that trials are passed over."""
    line, calls = [(0, 1)], []
    known = {"norm_bound": 2.0, "noise": pt.Gaussian(0.1), "kernel": pt.Matern(1.5, 0.3)}

    def killed(out):
        def fails(x):
            now = Study.open(path).n_told
            out.write(f"{x[0]}\n")
            if now == 12:
                out.write("now\n")
                time.sleep(60)  # killed in the middle of an evaluation
            if x[0] > 0.5:
                raise OSError("too far")
            return float(x[0])

        pt.maximize(fails, line, n_evals=200, study=path, **known)

    process, tried = Process(killed), []
    while (said := process.line()) != "now":
        tried.append(float(said))
    process.kill()
    left = set(Study.open(path).trials.pending.numbers)
    assert len(left) > 3
    assert sum(x > 0.5 for x in tried) > 3

    def counted(x):
        calls.append(float(x[0]))
        return float(x[0])

    result = pt.maximize(counted, line, n_evals=20, study=path, **known)
    assert (result.nfev, len(calls)) == (20, 8)
    assert calls[0] == tried[-1]  # what was under way, and nothing else of what was left
    trials = Study.open(path).trials
    assert len(left & set(trials.finished.numbers)) == 1
    assert len(left & set(trials.failed.numbers)) == len(left) - 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes as of Unix")
@pytest.mark.parametrize("stop", [0, 1])
def test_points_to_begin_with_are_evaluated_once_though_the_run_is_killed(path, stop):
    starts, calls = [[0.25], [0.75]], []

    def killed(out):
        def slow(x):
            if Study.open(path).n_told == stop:
                out.write("now\n")
                time.sleep(60)
            return float(x[0])

        pt.maximize(slow, [(0, 1)], n_evals=6, x0=starts, study=path)

    process = Process(killed)
    process.line()
    process.kill()

    def counted(x):
        calls.append(x.tolist())
        return float(x[0])

    pt.maximize(counted, [(0, 1)], n_evals=6, x0=starts, study=path)
    assert calls[: 2 - stop] == starts[stop:]
    assert len(calls) == 6 - stop
    assert not any(call in starts for call in calls[2 - stop : 4 - stop])


def test_trials_asked_for_by_others_are_left_to_them(path):
    """By a script, or by a run that is still under way."""
    study = Study.open(path, PLANE, policy="uniform")
    mine = study.ask()
    with study.running() as other:
        theirs = other.ask()
        pt.minimize(value, PLANE, n_evals=4, study=path)
        assert sorted(study.trials.pending.numbers) == [mine.number, theirs.number]
    # Now that run has ended without telling.
    pt.minimize(value, PLANE, n_evals=6, study=path)
    assert list(study.trials.pending.numbers) == [mine.number]
    assert study.n_told == 6


def test_which_runs_are_dead():
    name = owner.begin()
    try:
        assert not owner.is_dead(name)
        boot, namespace, pid, start, number = name.split("/")
        if start:  # where /proc is
            assert owner.is_dead("/".join([boot, namespace, pid, str(int(start) + 1), number]))
            assert owner.is_dead("/".join(["another", namespace, pid, start, number]))
            assert not owner.is_dead("/".join([boot, "pid:[1]", pid, start, number]))
        assert not owner.is_dead("nonsense")
    finally:
        owner.end(name)
    assert owner.is_dead(name)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_process_that_was_killed_is_dead_before_and_after_it_is_reaped():
    def child(out):
        out.write(f"{owner.begin()}\n")
        time.sleep(60)

    process = Process(child)
    name = process.line()
    assert not owner.is_dead(name)
    os.kill(process.pid, signal.SIGKILL)
    while not owner.is_dead(name):  # a zombie by now
        time.sleep(0.001)
    process.end()
    assert owner.is_dead(name)


def test_failures_are_kept_as_such(path):
    def fails(x):
        if x[0] > 0.5:
            raise RuntimeError("too large")
        return value(x)

    result = pt.minimize(fails, PLANE, n_evals=15, study=path)
    study = Study.open(path)
    assert (study.n_told, study.n_pending) == (15, 0)
    assert result.nfail > 0
    assert study.n_failed >= result.nfail
    assert Study.open(path).differing == 0


def test_several_workers_and_a_study(path):
    with ThreadPoolExecutor(4) as pool:
        result = pt.minimize(value, PLANE, n_evals=30, study=path, executor=pool)
    assert result.nfev == 30
    with ProcessPoolExecutor(2) as pool:  # forked with the study open
        result = pt.minimize(objectives.bowl, PLANE, n_evals=50, study=path, executor=pool)
    assert result.nfev == Study.open(path).n_told == 50
    assert is_sound(path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes as of Unix")
def test_the_same_script_three_times_shares_the_work(path):
    def script(out):
        result = pt.minimize(lambda x: time.sleep(0.002) or value(x), PLANE, n_evals=40, study=path)
        out.write(f"{result.nfev}\n")

    ended = [process.end() for process in [Process(script) for _ in range(3)]]
    assert [code for _, code in ended] == [0, 0, 0]
    study = Study.open(path)
    assert 40 <= study.n_told <= 42  # those under way at the end
    assert study.n_pending == 0
    assert study.differing == 0


def test_it_leaves_one_file_that_can_be_looked_at(path):
    result = pt.minimize(value, PLANE, n_evals=5, study=path)
    assert [p.name for p in path.parent.iterdir()] == ["tune.db"]
    assert result.optimizer.n_told == 5


def test_programs_of_the_command_line_resume_too(path, capsys):
    from partita.commands import main as cli

    program = ["--", "awk", "BEGIN {{ print ({x} - 0.3) ^ 2 }}"]
    for evals in (6, 9):
        command = ["minimize", "--param", "x:0:1", "--evals", str(evals), "--study", str(path)]
        assert cli.main([*command, *program]) == 0
        assert capsys.readouterr().out.startswith(f"{evals} evaluations")
    assert Study.open(path).n_told == 9


def test_a_study_may_be_given_open(path):
    study = Study.open(path, SPACE, direction="minimize", seed=9, delta=0.2)
    result = pt.minimize(f, SPACE, n_evals=10, study=study)
    assert result.optimizer is study
    assert study.n_told == 10
    assert asks(study) == asks_after(10)


def asks_after(n):
    twin = pt.Optimizer(SPACE, seed=9, delta=0.2)
    play(twin, n)
    return asks(twin)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"seed": 4}, "seed is 0 in the study, but 4"),
        ({"delta": 0.3}, "delta is 0.1"),
        ({"space": PLANE}, "space is"),
        ({"policy": "uniform"}, "policy is None"),
        ({"study": 3}, "study=3"),
    ],
)
@pytest.mark.parametrize("is_open", [False, True])
def test_a_study_about_something_else_is_refused(path, arguments, match, is_open):
    study = Study.open(path, SPACE)
    play(study, 2)
    before = events(path)
    given = {"space": SPACE, "study": study if is_open else path, "n_evals": 10} | arguments
    with pytest.raises(InvalidInput, match=match):
        pt.minimize(f, **given)
    with pytest.raises(InvalidInput, match="direction is 'minimize'"):
        pt.maximize(f, SPACE, n_evals=10, study=study if is_open else path)
    assert events(path) == before


def test_its_history_goes_back_to_the_beginning(path):
    pt.minimize(value, PLANE, n_evals=45, study=path)
    result = pt.minimize(value, PLANE, n_evals=50, study=path)
    history = result.history
    assert len(history) == 50
    assert list(history.evaluations[:2]) == [20, 40]
    assert history.evaluations[-1] == 50
    assert (np.diff(history.evaluations) > 0).all()
    assert (history.seconds[:2] < 0).all()  # before this run began


def test_threads_share_a_study(path):
    study = Study.open(path, PLANE, policy="uniform")
    failed = []

    def work():
        try:
            play(study, 15)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert (study.n_told, study.n_pending) == (90, 0)


# -- somebody else uses the study during a run -------------------------------------------------


def number_at(study, x):
    """The number of the pending trial at a point."""
    pending = study.trials.pending
    return next(
        int(n) for n, p in zip(pending.numbers, pending.params, strict=True) if (p == x).all()
    )


def settle(path, x, verb):
    """What a colleague does: `partita cancel`, or a tell."""
    from partita.commands import main as cli

    number = str(number_at(Study.open(path), x))
    assert cli.main([verb, str(path), number, *(["7.5"] if verb == "tell" else [])]) == 0


class Meddled:
    """A function during whose fourth evaluation somebody else settles the trial."""

    def __init__(self, path, verb, fails=False):
        self._path, self._verb, self._fails = path, verb, fails
        self._done, self._lock = threading.Event(), threading.Lock()
        self.calls = []

    def __call__(self, x):
        with self._lock:
            self.calls.append(x)
            number = len(self.calls)
        if number == 4:
            settle(self._path, x, self._verb)
            self._done.set()
            if self._fails:
                raise OSError("no")
        elif number > 4:  # so that the fourth ends before the run does
            self._done.wait(60)
            time.sleep(0.02)
        return value(x)


@pytest.mark.parametrize("verb", ["tell", "cancel"])
@pytest.mark.parametrize("workers", [0, 3])
def test_a_trial_that_somebody_else_settles_ends_no_run(path, verb, workers, caplog):
    f = Meddled(path, verb)
    with ThreadPoolExecutor(workers) if workers else nullcontext() as pool:
        result = pt.minimize(f, PLANE, n_evals=16, policy="uniform", study=path, executor=pool)
    assert (result.nfev, result.nfail, result.success) == (16, 0, True)
    assert caplog.text.count("is not used") == 1  # its value here
    study = Study.open(path)
    assert (study.n_told, study.n_pending) == (16, 0)
    trials = study.trials
    (place,) = np.flatnonzero((trials.params == f.calls[3]).all(axis=1))
    if verb == "tell":
        assert trials.values[place] == 7.5
    else:
        assert trials.states[place] == "failed"


@pytest.mark.parametrize("verb", ["tell", "cancel"])
@pytest.mark.parametrize("workers", [0, 3])
def test_a_failure_at_a_trial_that_somebody_else_settled_ends_no_run(path, verb, workers):
    f = Meddled(path, verb, fails=True)
    with ThreadPoolExecutor(workers) if workers else nullcontext() as pool:
        result = pt.minimize(f, PLANE, n_evals=16, policy="uniform", study=path, executor=pool)
    assert (result.nfev, result.nfail) == (16, 1)
    assert Study.open(path).n_pending == 0


@pytest.mark.parametrize("verb", ["tell", "cancel"])
def test_failures_that_are_kept_pending_may_be_settled_by_somebody_else(path, verb):
    settled = []

    def f(x):
        study = Study.open(path)
        for number in study.trials.pending.numbers:
            if number != number_at(study, x):
                settled.append(number)
                study.tell(number, 3.0) if verb == "tell" else study.cancel(number)
        if x[0] > 0.5:
            raise OSError("too far")
        return value(x)

    result = pt.minimize(f, PLANE, n_evals=20, policy="uniform", study=path)
    assert result.nfev >= 20
    assert len(settled) > 3
    assert Study.open(path).n_pending == 0


def test_cleaning_up_masks_no_error(path, monkeypatch):
    def f(x):
        settle(path, x, "cancel")
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as caught:
        pt.minimize(f, PLANE, n_evals=12, policy="uniform", study=path, catch=())
    assert caught.value.__context__ is None

    def full(study, trial):
        raise StudyError("the disk is full")

    monkeypatch.setattr(Study, "cancel", full)
    with pytest.raises(ZeroDivisionError) as caught:
        pt.minimize(lambda x: 1 / 0, PLANE, n_evals=12, policy="uniform", study=path, catch=())
    assert "StudyError: the disk is full" in caught.value.__notes__[0]


def test_trials_left_by_a_killed_run_may_be_settled_by_somebody_else(path):
    study = Study.open(path, PLANE, policy="uniform")
    with study.running() as killed:
        left = [killed.ask() for _ in range(3)]
    calls = []

    def f(x):
        calls.append(x.tolist())
        if len(calls) == 1:
            study.cancel(left[1])
        return value(x)

    result = pt.minimize(f, PLANE, n_evals=4, policy="uniform", study=path)
    assert result.nfev == len(calls) == 4
    assert calls[:2] == [left[0].params.tolist(), left[2].params.tolist()]


def test_two_runs_on_one_study_have_an_owner_each(path):
    """Else a trial without one would stay pending for ever after a kill."""
    study = Study.open(path, PLANE, policy="uniform")
    second_is_there, first_has_ended = threading.Event(), threading.Event()

    def first(x):
        second_is_there.wait(20)
        return value(x)

    def second(x):
        second_is_there.set()
        first_has_ended.wait(20)
        return value(x)

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(pt.minimize, second, PLANE, n_evals=9, policy="uniform", study=study)
        pt.minimize(first, PLANE, n_evals=3, policy="uniform", study=study)
        first_has_ended.set()
        other.result()
    with closing(sqlite3.connect(path)) as db:
        asks = db.execute("SELECT owner, count(*) FROM events WHERE kind = 'ask' GROUP BY owner")
        owners = dict(asks.fetchall())
    assert None not in owners
    assert sorted(owners.values()) == [3, 6]


# -- the page ----------------------------------------------------------------------------------


def test_the_code_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 3
    names = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert "Suggestion" in capsys.readouterr().out
    assert names["result"].nfev == 60
    query = re.search(r'sqlite3 tune.db "(select .*)"', text)[1]
    with closing(sqlite3.connect("tune.db")) as db:
        assert len(db.execute(query).fetchall()) == 60


def test_the_options_of_the_page_are_those_of_the_commands(capsys):
    from partita.commands import main as cli

    there = set()
    for command in ("create", "ask", "tell", "cancel", "show", "export"):
        with pytest.raises(SystemExit):
            cli.main([command, "--help"])
        there |= set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    section = PAGE.read_text(encoding="utf-8").partition("## The command line")[2]
    assert set(re.findall(r"(?<!\w)--[a-z-]+", section)) == there - {"--help"}

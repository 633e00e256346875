"""Runs, traces, the store, and many runs at once."""

import io
import math
import os
import pickle
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import partita as pt
from partita._text import duration
from partita.errors import InvalidInput, VersionMismatch
from partita.experiments import (
    PolicySpec,
    ProblemSpec,
    Store,
    Task,
    paper,
    parallel,
    run,
    run_many,
    store,
    summary,
    trace,
)
from partita.experiments.cost import expected_cost
from partita.experiments.progress import Progress
from partita.experiments.specs import policy_for

POLICIES = ("igp-ucb", "pi-gp-ucb-paper", "pi-gp-ucb", "uniform")
SMALL = ProblemSpec("synthetic", dim=2, side=8)


def task(policy="pi-gp-ucb", problem=SMALL, horizon=40, seed=0):
    return Task(PolicySpec(policy), problem, horizon, seed)


def make(t):
    return run(t.policy, t.problem, t.horizon, t.seed)


def assert_same(left, right, times=False):
    """Equal traces, but for the time they took unless `times`."""
    assert left.task == right.task
    for name in ("regret", "choices", "sampled", "cells", "information_gain"):
        one, other = getattr(left, name), getattr(right, name)
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    assert left.uniform_regret == right.uniform_regret
    if times:
        np.testing.assert_array_equal(left.seconds, right.seconds)
        assert left.setup_seconds == right.setup_seconds


# -- specifications -----------------------------------------------------------------------------


def test_policies_are_told_what_the_paper_tells_them():
    problem = paper.synthetic(2).build(seed=3)
    f = pt.problems.RKHSFunction.sample(2, pt.Matern(1.5, 0.2), seed=3)
    assert problem.domain == pt.Grid(30, dim=2)
    assert len(f.weights) == 60
    np.testing.assert_array_equal(problem.values, f(problem.domain.points))
    for name in ("igp-ucb", "pi-gp-ucb-paper"):
        policy = policy_for(PolicySpec(name), problem, 10_000, 3)
        assert (policy.alpha, policy.sub_gaussian, policy.delta) == (1.0, 1.0, 0.1)
        assert policy.norm_bound == f.norm
        assert policy.kernel == pt.Matern(1.5, 0.2)
    assert policy.guarantee == "published"
    ours = policy_for(PolicySpec("pi-gp-ucb"), problem, 10_000, 3)
    assert ours.sub_gaussian == pytest.approx(1 / math.sqrt(3))
    assert ours.norm_bound == f.norm


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_first_cover_of_about_t_to_the_q_cells(dim):
    problem = paper.synthetic(dim).build(seed=0)
    cover = policy_for(PolicySpec("pi-gp-ucb-paper"), problem, 10_000, 0).cover
    q = dim * (dim + 1) / (dim * (dim + 2) + 3)
    assert len(cover) == round(10_000 ** (q / dim)) ** dim


@pytest.mark.parametrize("name", paper.FUNCTIONS)
def test_functions_of_the_literature_are_scaled_and_their_norm_a_guess(name):
    problem = paper.literature(name).build(seed=0)
    assert problem.values.shape == (900,)
    assert (problem.values.min(), problem.values.max()) == (-1.0, 1.0)
    assert (problem.norm_bound, problem.half_width) == (1.0, 0.1)
    assert policy_for(PolicySpec("igp-ucb"), problem, 100, 0).sub_gaussian == 0.1


def test_specifications_travel_and_have_names_of_their_own():
    variants = [
        task(),
        task(seed=1),
        task(horizon=41),
        task(policy="igp-ucb"),
        task(problem=ProblemSpec("synthetic", dim=2, side=9)),
        Task(PolicySpec("pi-gp-ucb", (("delta", 0.2),)), SMALL, 40, 0),
    ]
    assert len({t.file_name() for t in variants}) == len(variants)
    for t in variants:
        assert pickle.loads(pickle.dumps(t)) == t
        assert pickle.loads(pickle.dumps(t)).file_name() == t.file_name()


def test_settings_reach_the_policy():
    problem = SMALL.build(seed=0)
    policy = policy_for(PolicySpec("pi-gp-ucb", (("delta", 0.2), ("alpha", 3.0))), problem, 100, 0)
    assert (policy.delta, policy.alpha) == (0.2, 3.0)
    with pytest.raises(InvalidInput, match="colour"):
        policy_for(PolicySpec("pi-gp-ucb", (("colour", 1.0),)), problem, 100, 0)


@pytest.mark.parametrize(
    ("make_it", "message"),
    [
        (lambda: PolicySpec("ucb"), "unknown: give one of .*igp-ucb.*module:Class"),
        (lambda: ProblemSpec("branin"), "norm_bound"),
        (lambda: ProblemSpec("synthetic", noise=-1), "noise"),
        (lambda: ProblemSpec("mountain", norm_bound=1.0).build(0), "mountain"),
        (lambda: ProblemSpec("branin", dim=3, norm_bound=1.0).build(0), "2 dimensions"),
        (lambda: task(horizon=0), "horizon"),
        (lambda: task(seed=-1), "seed"),
    ],
)
def test_what_cannot_be_run_is_refused(make_it, message):
    with pytest.raises(InvalidInput, match=message):
        make_it()


# -- one run ------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
def test_a_run_is_a_pure_function_of_its_task(policy):
    first, again = make(task(policy)), make(task(policy))
    assert_same(first, again)
    other = make(task(policy, seed=1))
    assert not np.array_equal(first.choices, other.choices)


@pytest.mark.parametrize("policy", POLICIES)
def test_regret_follows_from_the_choices(policy):
    trace = make(task(policy))
    values = pt.problems.RKHSFunction.sample(2, seed=0)(pt.Grid(8, dim=2).points)
    lost = values.max() - values[trace.choices]
    np.testing.assert_allclose(trace.regret, lost, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(trace.cumulative_regret, np.cumsum(lost), rtol=1e-5)
    uniform = values.max() - values.mean()
    assert trace.uniform_regret == pytest.approx(uniform)
    assert trace.regret_fraction == pytest.approx(lost.sum() / (40 * uniform), rel=1e-5)


def test_a_run_can_be_replayed_by_hand():
    trace = make(task("pi-gp-ucb-paper", horizon=300, seed=5))
    f = pt.problems.RKHSFunction.sample(2, seed=5)
    domain = pt.Grid(8, dim=2)
    policy = pt.PiGPUCB.paper(
        domain,
        horizon=300,
        kernel=pt.Matern(1.5, 0.2),
        norm_bound=f.norm,
        noise=pt.SubGaussian(1.0),
        alpha=1.0,
        seed=5,
    )
    noise = np.random.default_rng([5, 1]).uniform(-1, 1, 300)
    cells, gain = {}, {}
    for t in range(300):
        x = policy.ask()
        assert domain.index_of(x[None, :])[0] == trace.choices[t]
        policy.tell(x, float(f(x[None, :])[0]) + noise[t])
        cells[t + 1] = len(policy.cover)
        gain[t + 1] = sum(cell.information_gain for cell in policy.cover)
    assert trace.sampled[-1] == 300
    assert trace.cells.tolist() == [cells[t] for t in trace.sampled]
    np.testing.assert_allclose(trace.information_gain, [gain[t] for t in trace.sampled])
    assert trace.cells[-1] > trace.cells[0]


@pytest.mark.parametrize("horizon", [1, 7, 199, 200, 201, 1999])
def test_traces_are_small(horizon):
    trace = make(task("uniform", horizon=horizon))
    assert len(trace.sampled) <= 200
    assert trace.sampled[-1] == horizon
    assert (np.diff(trace.sampled) > 0).all()
    arrays = (trace.regret, trace.choices, trace.seconds)
    assert [a.dtype for a in arrays] == [np.float32, np.int32, np.float32]
    assert all(a.shape == (horizon,) for a in arrays)


def test_uniform_sampling_loses_what_it_is_expected_to():
    assert make(task("uniform", horizon=20_000)).regret_fraction == pytest.approx(1, abs=0.03)


def test_one_cell_for_igp_ucb_whose_information_grows():
    trace = make(task("igp-ucb"))
    assert (trace.cells == 1).all()
    assert (np.diff(trace.information_gain) > 0).all()
    assert (trace.seconds > 0).all()
    assert trace.total_seconds == pytest.approx(
        trace.setup_seconds + trace.seconds.sum(dtype=float)
    )


# -- the store ----------------------------------------------------------------------------------


def test_a_trace_comes_back_as_it_was(tmp_path):
    kept = Store(tmp_path / "runs")
    trace = make(task())
    assert kept.load(trace.task) is None
    kept.save(trace)
    assert_same(kept.load(trace.task), trace, times=True)
    assert [p.name for p in kept.folder.iterdir()] == [trace.task.file_name()]


def test_damaged_files_never_give_another_trace(tmp_path, caplog):
    kept = Store(tmp_path)
    trace = make(task())
    kept.save(trace)
    path = kept.path(trace.task)
    whole = path.read_bytes()
    for length in (0, 1, 30, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert kept.load(trace.task) is None
    assert "damaged" in caplog.text
    rng = np.random.default_rng(0)
    noticed = 0
    for at in rng.choice(len(whole), 100, replace=False):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        read = kept.load(trace.task)
        if read is None:
            noticed += 1
        else:  # a byte that says nothing, such as a date
            assert_same(read, trace, times=True)
    assert noticed > 60


def test_the_checksum_covers_what_a_whole_archive_holds(tmp_path):
    kept = Store(tmp_path)
    trace = make(task())
    kept.save(trace)
    path = kept.path(trace.task)
    with np.load(path) as members:
        content = {name: members[name] for name in members.files}
    content["regret"][3] += 1
    np.savez(path, **content)
    assert kept.load(trace.task) is None


def test_another_version_is_refused(tmp_path):
    kept = Store(tmp_path)
    trace = make(task())
    kept.version = "0.0.0"
    kept.save(trace)
    kept = Store(tmp_path)
    before = kept.path(trace.task).read_bytes()
    with pytest.raises(VersionMismatch, match=r"0\.0\.0"):
        run_many([trace.task], store=kept, jobs=1)
    assert kept.path(trace.task).read_bytes() == before


def test_other_settings_under_the_same_name_are_refused(tmp_path):
    kept = Store(tmp_path)
    kept.save(make(task()))
    kept.path(task()).rename(kept.path(task(seed=1)))
    with pytest.raises(InvalidInput, match="other settings"):
        kept.load(task(seed=1))


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    kept = Store(tmp_path)

    def fail(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        kept.save(make(task()))
    assert list(tmp_path.iterdir()) == []


def test_only_old_temporary_files_are_swept(tmp_path):
    for name, age in ((".old.npz.1.tmp", 7200), (".new.npz.2.tmp", 10), ("note.tmp", 7200)):
        (tmp_path / name).write_bytes(b"")
        then = (tmp_path / name).stat().st_mtime - age
        os.utime(tmp_path / name, (then, then))
    Store(tmp_path).sweep()
    assert {p.name for p in tmp_path.iterdir()} == {".new.npz.2.tmp", "note.tmp"}


# -- many runs ----------------------------------------------------------------------------------


def test_only_what_is_missing_is_run(tmp_path, made):
    kept = Store(tmp_path)
    wanted = [task(seed=s) for s in range(4)]
    run_many(wanted[:2], store=kept, jobs=1)
    assert len(made) == 2
    path = kept.path(wanted[1])
    path.write_bytes(path.read_bytes()[:-100])
    traces = run_many([*wanted, wanted[0]], store=kept, jobs=1)
    assert sorted(t.seed for t in made[2:]) == [1, 2, 3]
    assert [t.task for t in traces] == [*wanted, wanted[0]]
    assert_same(traces[1], make(wanted[1]))
    made.clear()
    run_many(wanted, store=kept, jobs=1)
    assert made == []


def test_the_longest_run_first(made):
    wanted = [task(horizon=10), task(policy="igp-ucb", horizon=400), task(horizon=90)]
    run_many(wanted, jobs=1)
    assert [t.horizon for t in made] == [400, 90, 10]


def test_a_run_is_the_same_in_another_process():
    wanted = [task(p) for p in POLICIES]
    for one, other in zip(run_many(wanted, jobs=2), map(make, wanted), strict=True):
        assert_same(one, other)


def test_an_error_keeps_what_is_finished(tmp_path, monkeypatch):
    kept = Store(tmp_path)

    def fail(policy, problem, horizon, seed):
        if seed == 2:
            raise InvalidInput("no more")
        return run(policy, problem, horizon, seed)

    monkeypatch.setattr(trace, "run", fail)
    with pytest.raises(InvalidInput, match="no more"):
        run_many([task(seed=s) for s in range(4)], store=kept, jobs=1)
    assert len(list(tmp_path.iterdir())) == 2


def die(task):
    os._exit(1)


def test_a_killed_worker_is_reported():
    with pytest.raises(parallel.WorkerLost, match="memory"):
        parallel.run_all([task(seed=s) for s in range(2)], die, jobs=2)


def test_large_runs_are_not_made_together_when_memory_is_short():
    large = [Task(PolicySpec("igp-ucb"), paper.synthetic(3), 10_000, s) for s in range(3)]
    tasks = [*large, *(task(seed=s) for s in range(5))]
    size = expected_cost(large[0]).bytes
    assert size > 1e9
    for memory, plan in [
        (None, [(8, 4)]),
        (6 * size, [(8, 4)]),
        (3 * size, [(3, 2), (5, 4)]),
        (0.5 * size, [(8, 1)]),
    ]:
        phases = parallel.phases(tasks, expected_cost, 4, memory)
        assert [(len(phase.tasks), phase.at_once) for phase in phases] == plan


def test_expected_cost_is_of_the_right_order():
    seconds = {p: expected_cost(task(p, paper.synthetic(3), 10_000)).seconds for p in POLICIES}
    assert 60 < seconds["igp-ucb"] < 3600
    assert 0.1 < seconds["pi-gp-ucb"] < 10
    memory = parallel.available_bytes()
    assert memory is None or memory > 1e6


@pytest.mark.parametrize(("backend", "jobs"), [("threads", 1), ("loky", 0)])
def test_bad_ways_to_run_are_refused(backend, jobs):
    with pytest.raises(InvalidInput):
        run_many([task()], backend=backend, jobs=jobs)


# -- progress -----------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_silent_unless_in_a_terminal():
    for stream, spoken in ((io.StringIO(), False), (Terminal(), True)):
        with Progress(stream) as progress:
            run_many([task(seed=s) for s in range(3)], jobs=1, progress=progress)
        assert bool(stream.getvalue()) == spoken
    lines = stream.getvalue().split("\r\x1b[K")
    assert "0/3 runs" in lines[1]
    assert "3/3 runs" in lines[-2]
    assert lines[-1] == ""


def test_time_left_follows_from_the_runs_done():
    progress = Progress(io.StringIO())
    progress.start(5, [10.0] * 3, jobs=1)
    progress.finished(SimpleNamespace(total_seconds=60.0), 10.0)
    assert progress.seconds_left() == pytest.approx(120, abs=1)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.123, "0.12 s"),
        (0.9, "0.90 s"),
        (0.01234, "0.012 s"),
        (3.14159, "3.1 s"),
        (12.3, "12 s"),
        (97, "97 s"),
        (720, "12 min"),
        (7080, "118 min"),
        (10_000, "2.8 h"),
        (108_000, "30 h"),
    ],
)
def test_durations_are_in_a_readers_unit(seconds, text):
    assert duration(seconds) == text


# -- means over runs ----------------------------------------------------------------------------


def test_bands_are_students_intervals():
    rows = np.array([[1.0, 2.0], [2.0, 2.0], [6.0, 2.0]])
    band = summary.band(rows)
    np.testing.assert_allclose(band.mean, [3, 2])
    deviation = math.sqrt((4 + 1 + 9) / 2)
    np.testing.assert_allclose(band.half_width, [4.30265273 * deviation / math.sqrt(3), 0])
    assert np.isnan(summary.band(rows[:1]).half_width).all()


def test_smoothing_is_a_moving_average():
    values = np.random.default_rng(0).random((2, 50))
    smoothed = summary.smooth(values, 7)
    assert smoothed.shape == (2, 44)
    np.testing.assert_allclose(smoothed[1], np.convolve(values[1], np.full(7, 1 / 7), "valid"))
    np.testing.assert_allclose(summary.smooth(values, 1), values)


def test_a_norm_that_is_a_guess_is_not_warned_of():
    guess = ProblemSpec("eggholder", norm_bound=0.05, noise=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(run(PolicySpec("pi-gp-ucb"), guess, 300, 0).choices) == 300


def test_a_wrong_norm_of_a_known_function_is():
    wrong = ProblemSpec("synthetic", dim=1, norm_bound=0.01, noise=0.01)
    with pytest.warns(pt.TheoryWarning, match="norm"):
        run(PolicySpec("pi-gp-ucb"), wrong, 300, 0)

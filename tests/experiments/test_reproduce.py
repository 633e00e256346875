"""`partita reproduce`: the table's numbers, the figures, going on, and what is refused."""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from partita.commands import main as cli
from partita.commands import reproduce as command
from partita.errors import InvalidInput
from partita.experiments import Store, figures, folder, paper, table, trace
from partita.experiments.trace import run
from partita.figures import style

#: A small table: 8 runs.
TINY = ("--runs", "2", "--horizon", "60", "--dims", "1", "2", "--jobs", "1")
TINY_POLICIES = ("--policies", "pi-gp-ucb-paper", "pi-gp-ucb")


def reproduce(*arguments):
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers(dest="command"))
    return command.run(parser.parse_args(["reproduce", *map(str, arguments)]))


def content(path):
    return {p.relative_to(path): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with a small table, made once."""
    folder = tmp_path_factory.mktemp("finished")
    assert reproduce("table1", *TINY, *TINY_POLICIES, "--out", folder) == 0
    return folder


@pytest.fixture
def results(finished, tmp_path):
    """A copy of that folder."""
    return Path(shutil.copytree(finished, tmp_path / "results"))


# -- the table ----------------------------------------------------------------------------------


def test_the_table_by_hand(tmp_path, capsys):
    assert reproduce("table1", *TINY, *TINY_POLICIES, "--runs", 3, "--out", tmp_path) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    text = (tmp_path / "table1.md").read_text()
    assert captured.out.startswith(text)
    rows = [line.strip("| ").split("|") for line in text.splitlines() if re.match(r"\| \d", line)]
    assert [row[0].strip() for row in rows] == ["1", "2"]
    header = next(line for line in text.splitlines() if line.startswith("| d")).split("|")
    assert "Partita’s default" in header[4]
    kept = Store(tmp_path / "runs")
    for row in rows:
        dim = int(row[0])
        for column, policy in ((2, "pi-gp-ucb-paper"), (3, "pi-gp-ucb")):
            fractions, seconds = [], []
            for task in paper.table1(paper.Plan(3, 60))[dim, policy]:
                trace = kept.load(task)
                values = task.problem.build(task.seed).values
                lost = (values.max() - values[trace.choices]).sum()
                fractions.append(lost / (60 * (values.max() - values.mean())))
                seconds.append(trace.setup_seconds + trace.seconds.sum())
            half = 4.302652729911275 * np.std(fractions, ddof=1) / np.sqrt(3)
            assert f"{np.mean(fractions):.2f} ± {half:.2f}, " in row[column]
            shown = float(row[column].split(",")[1].split()[0])
            assert shown == pytest.approx(np.mean(seconds), rel=0.06)
        assert row[1].split() == [["0.09,", "12", "min"], ["0.52,", "97", "s"]][dim - 1]
    assert "T = 60, 3 runs each" in text
    assert "†" not in text


def test_quick_is_less_of_igp_ucb_in_three_dimensions_and_says_so():
    quick = paper.Plan(runs=5, quick=True)
    for (dim, policy), tasks in paper.table1(quick).items():
        less = (dim, policy) == (3, "igp-ucb")
        assert [t.horizon for t in tasks] == ([1000] * 3 if less else [10_000] * 5)
        assert [t.seed for t in tasks] == list(range(len(tasks)))
    assert [t.horizon for t in paper.table1(paper.Plan(2, 50, quick=True))[3, "igp-ucb"]] == [
        50
    ] * 2
    plan = paper.Plan(runs=2, horizon=1200, dims=(3,), policies=("uniform",), quick=True)
    traces = {
        (3, p): [run(t.policy, t.problem, h, t.seed) for t in paper.tasks("table1", plan)[:n]]
        for p, h, n in (("igp-ucb", 1000, 1), ("pi-gp-ucb", 1200, 2))
    }
    shown = paper.Plan(2, 1200, (3,), ("igp-ucb", "pi-gp-ucb"), quick=True)
    text = table.render(shown, traces)
    row = next(line for line in text.splitlines() if line.startswith("| 3")).split("|")
    assert row[3].strip().endswith("†")
    assert "±" not in row[3]
    assert "±" in row[4]
    assert "†" not in row[4]
    assert text.rstrip().endswith("† T = 1,000, 1 run.")


def test_figure_1_shows_runs_of_table_1():
    plan = paper.Plan()
    assert set(paper.tasks("figure1", plan)) < set(paper.tasks("table1", plan))
    assert len(paper.tasks("table1", plan)) == 12 * 9
    assert len(paper.tasks("figure2", plan)) == 12 * 12


# -- figures ------------------------------------------------------------------------------------


def near(image, colour):
    """Whether a picture has pixels of a colour."""
    wanted = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return bool((np.abs(image[..., :3] - wanted).max(axis=2) < 0.02).sum() > 30)


def test_figures_are_drawn(tmp_path, capsys):
    matplotlib_image = pytest.importorskip("matplotlib.image")
    drawn = ("pi-gp-ucb-paper", "pi-gp-ucb")
    arguments = ("--runs", 2, "--horizon", 12, "--jobs", 1, "--out", tmp_path, "--policies", *drawn)
    assert reproduce("all", *arguments, "--dims", 1) == 0
    out = capsys.readouterr().out
    assert {"runs", "settings.json"} | {n for group in folder.OUTPUTS.values() for n in group} == {
        p.name for p in tmp_path.iterdir()
    }
    for name in ("figure1", "figure2"):
        image = matplotlib_image.imread(tmp_path / f"{name}.png")
        assert image.shape[1] > 1500
        for policy in drawn:
            assert near(image, figures.COLOURS[policy])
        svg = (tmp_path / f"{name}.svg").read_text()
        assert svg.startswith("<?xml")
        assert all(figures.COLOURS[policy].lower() in svg for policy in drawn)
        assert str(tmp_path / f"{name}.png") in out
    before = (tmp_path / "figure1.svg").read_bytes()
    assert reproduce("figure1", *arguments) == 0
    assert (tmp_path / "figure1.svg").read_bytes() == before


def test_one_run_of_one_step_is_drawn_too(tmp_path):
    assert reproduce("figure1", "--runs", 1, "--horizon", 1, "--jobs", 1, "--out", tmp_path) == 0
    assert (tmp_path / "figure1.png").stat().st_size > 10_000


def test_names_beside_lines_do_not_overlap():
    assert style.spread([0.1, 0.5], 0.2) == [0.1, 0.5]
    found = style.spread([0.1, 0.5, 0.5, 0.52], 0.1)
    assert found[0] == 0.1
    assert np.diff(found[1:]) == pytest.approx(0.1)
    assert np.mean(found[1:]) == pytest.approx(np.mean([0.5, 0.5, 0.52]))
    rng = np.random.default_rng(0)
    for _ in range(50):
        apart = style.spread(sorted(rng.random(6)), 0.07)
        assert min(np.diff(apart)) > 0.07 - 1e-9


# -- going on -----------------------------------------------------------------------------------


def test_the_same_command_runs_nothing_again(results, made, capsys):
    text, written = (results / "table1.md").read_text(), content(results)
    assert reproduce("table1", *TINY, *TINY_POLICIES, "--out", results) == 0
    assert made == []
    assert capsys.readouterr().out.startswith(text)
    assert content(results) == written


def test_a_folder_grows(tmp_path, made):
    base = ("--horizon", 40, "--jobs", 1, "--out", tmp_path)
    one = ("--policies", "pi-gp-ucb")
    assert reproduce("table1", *base, "--runs", 1, "--dims", 1, *one) == 0
    assert len(made) == 1
    assert reproduce("table1", *base, "--runs", 2, "--dims", 1, 2, *one) == 0
    assert len(made) == 4
    assert reproduce("figure1", *base, "--runs", 2, *one) == 0
    assert len(made) == 4
    assert reproduce("table1", *base, "--runs", 2, "--dims", 1, 2, *one, "uniform") == 0
    assert len(made) == 8


def test_a_damaged_run_is_made_again(results, made, caplog):
    table_text = without_times(results / "table1.md")
    path = sorted((results / "runs").iterdir())[3]
    path.write_bytes(path.read_bytes()[:500])
    assert reproduce("table1", *TINY, *TINY_POLICIES, "--out", results) == 0
    assert [t.file_name() for t in made] == [path.name]
    assert path.name in caplog.text
    assert without_times(results / "table1.md") == table_text


def without_times(path):
    """A table without the times in it, which also decide how wide its columns are."""
    return re.sub(r", [\d.]+ s|[ -]", "", path.read_text())


def test_ctrl_c_in_one_process(tmp_path, monkeypatch, capsys):
    out = tmp_path / "deep" / "results"
    arguments = ("table1", *TINY, *TINY_POLICIES, "--out", out)
    calls = []

    def interrupted(policy, problem, horizon, seed):
        calls.append(seed)
        if len(calls) == allowed + 1:
            raise KeyboardInterrupt
        return run(policy, problem, horizon, seed)

    monkeypatch.setattr(trace, "run", interrupted)
    for allowed, left in ((0, False), (3, True)):
        calls.clear()
        assert reproduce(*arguments) == 130
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert f"{allowed} of 8 runs are kept" in error
        assert out.exists() == left
    assert len(list((out / "runs").iterdir())) == 3
    assert not (out / "table1.md").exists()
    allowed = 100
    calls.clear()
    assert reproduce(*arguments) == 0
    assert len(calls) == 5


def alive(session):
    """Processes of a session that have not ended."""
    listed = subprocess.run(
        ["ps", "-e", "-o", "sess=,stat=,args="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    return [row for row in rows if row[0] == str(session) and not row[1].startswith("Z")]


SCRIPT = """
import argparse, sys
from partita.commands import reproduce as command
parser = argparse.ArgumentParser()
command.add_parser(parser.add_subparsers(dest="command"))
sys.exit(command.run(parser.parse_args(["reproduce", *sys.argv[1:]])))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="lists processes as Linux does")
def test_ctrl_c_leaves_a_clean_state(tmp_path):
    out = tmp_path / "results"
    arguments = ["table1", "--runs", "40", "--horizon", "4000", "--dims", "1", "--jobs", "2"]
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *arguments, "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        limit = time.monotonic() + 60
        while len(list(out.glob("runs/*.npz"))) < 2 and time.monotonic() < limit:
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        assert len(alive(process.pid)) >= 3  # the parent and its two workers
        os.killpg(process.pid, signal.SIGINT)
        stdout, stderr = process.communicate(timeout=30)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert process.returncode == 130
    assert stdout == ""
    assert re.fullmatch(r"partita: stopped\. \d+ of 120 runs are kept in .*\n", stderr)
    limit = time.monotonic() + 5
    while alive(process.pid) and time.monotonic() < limit:
        time.sleep(0.05)
    assert alive(process.pid) == []
    names = {p.name for p in out.rglob("*") if p.is_file()} - {"settings.json"}
    assert names
    assert all(name.endswith(".npz") and not name.startswith(".") for name in names)
    kept = Store(out / "runs")
    found = [kept.load(t) for t in paper.tasks("table1", paper.Plan(40, 4000, (1,)))]
    assert sum(trace is not None for trace in found) == len(names)
    assert f"{len(names)} of 120" in stderr


# -- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table2"], "table1, figure1, figure2 or all"),
        (["table1", "--policies", "ei"], "igp-ucb"),
        (["table1", "--runs", 0], "--runs 0"),
        (["table1", "--runs", -3], "--runs -3"),
        (["figure1", "--horizon", 0], "--horizon 0"),
        (["table1", "--dims", 4], "--dims 4"),
        (["figure2", "--dims", 2], "--dims is for table1"),
        (["table1", "--jobs", 0], "--jobs 0"),
        (["table1", "--backend", "carrier-pigeon"], "loky, dask or ray"),
        (["table1", "--out", "/dev/null/results"], "cannot be written"),
    ],
)
def test_bad_input(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert reproduce(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("partita: ")
    assert captured.err.count("\n") == 1
    assert message in captured.err
    assert list(tmp_path.iterdir()) == []


def test_a_file_where_the_folder_should_be(tmp_path, capsys):
    (tmp_path / "results").write_text("mine")
    assert reproduce("table1", *TINY, "--out", tmp_path / "results") == 2
    assert "cannot be written" in capsys.readouterr().err
    assert (tmp_path / "results").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table1", *TINY, *TINY_POLICIES, "--horizon", 61], "--horizon 60"),
        (["figure1", *TINY[:2], "--horizon", 61], "--horizon 60"),
        (["table1", *TINY, *TINY_POLICIES, "--runs", 1], "--runs 2"),
        (["table1", *TINY, "--policies", "pi-gp-ucb"], "--policies pi-gp-ucb-paper pi-gp-ucb"),
        (["table1", *TINY, *TINY_POLICIES, "--dims", 2], "--dims 1 2"),
        (["table1", *TINY, *TINY_POLICIES, "--quick"], "without --quick"),
    ],
)
def test_other_settings_are_refused(arguments, message, results, capsys):
    before = content(results)
    assert reproduce(*arguments, "--out", results) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error
    assert "--out" in error
    assert content(results) == before


def test_another_version_is_refused(results, capsys):
    path = results / "settings.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": "0.0.0"}))
    before = content(results)
    assert reproduce("table1", *TINY, *TINY_POLICIES, "--out", results) == 2
    assert "Partita 0.0.0" in capsys.readouterr().err
    assert content(results) == before


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"experiments": {"table1": {}}}', "\xff"])
def test_settings_that_cannot_be_read(text, tmp_path, capsys):
    (tmp_path / "settings.json").write_bytes(text.encode("latin-1"))
    assert reproduce("table1", *TINY, "--out", tmp_path) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert len(content(tmp_path)) == 1


@pytest.mark.parametrize("name", ["table1.md", "figure2.svg", "runs/mine.npz"])
def test_a_folder_of_somebody_else_is_left_alone(name, tmp_path, capsys):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    assert reproduce("table1", *TINY, "--out", tmp_path) == 2
    assert "--out" in capsys.readouterr().err
    assert content(tmp_path) == {Path(name): b"mine"}


@pytest.mark.parametrize(
    ("package", "arguments", "message"),
    [
        ("joblib", ["table1"], "pip install 'partita[experiments]'"),
        ("matplotlib", ["figure1"], "pip install 'partita[plot]'"),
        ("distributed", ["table1", "--backend", "dask"], "pip install distributed"),
        ("ray", ["table1", "--backend", "ray"], "pip install ray"),
    ],
)
def test_missing_packages_are_named(package, arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, package, None)
    assert reproduce(*arguments, *TINY[:4], "--out", tmp_path / "results") == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error
    assert list(tmp_path.iterdir()) == []


def test_the_table_needs_no_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert reproduce("table1", *TINY, *TINY_POLICIES, "--out", tmp_path) == 0


def test_a_full_disk_is_one_line(tmp_path, monkeypatch, capsys):
    def full(self, trace):
        raise OSError(28, "No space left on device", "results/runs")

    monkeypatch.setattr(Store, "save", full)
    assert reproduce("table1", *TINY, *TINY_POLICIES, "--out", tmp_path / "results") == 2
    assert capsys.readouterr().err == "partita: results/runs: No space left on device.\n"
    assert list(tmp_path.iterdir()) == []


def test_plans_are_checked_and_put_in_order():
    plan = paper.Plan(dims=(3, 1, 3), policies=("uniform", "igp-ucb"))
    assert plan.dims == (1, 3)
    assert plan.policies == ("igp-ucb", "uniform")
    with pytest.raises(InvalidInput, match="at least one"):
        paper.Plan(policies=())


# -- the command line ---------------------------------------------------------------------------


def test_the_command_is_wired_in(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["reproduce", "table2"]) == 2
    assert capsys.readouterr().err.startswith("partita: experiment 'table2' is unknown")
    options = cli.parser().parse_args(["reproduce", "all"])
    assert (options.out, options.backend, options.quick) == ("results", "loky", False)


def test_the_command_loads_nothing_heavy_before_it_runs():
    script = (
        "import argparse, sys; from partita.commands import reproduce as command; "
        "command.add_parser(argparse.ArgumentParser().add_subparsers()); "
        "print(*sorted(m for m in sys.modules if '.' not in m))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert not {"numpy", "scipy", "numba", "joblib", "matplotlib"} & set(done.stdout.split())

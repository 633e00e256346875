"""The command line: what it prints, and what it refuses."""

import subprocess
import sys

import pytest

import partita
from partita.commands import main as cli


def test_demo_reports_both_policies(capsys):
    assert cli.main(["demo", "--dim", "1", "--horizon", "200", "--seed", "3"]) == 0
    out = capsys.readouterr().out
    for word in ("the paper's preset", "Partita's default", "certificate", "µs", "200 evaluations"):
        assert word in out
    found = next(line for line in out.splitlines() if line.startswith("f there, by its bound"))
    assert found.count(" to ") == 2


def test_bad_settings_are_one_line_and_exit_code_2(capsys):
    assert cli.main(["demo", "--horizon", "0"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("partita: horizon=0")
    assert captured.err.count("\n") == 1


def test_an_unknown_command_is_refused(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["nonsense"])
    assert stop.value.code == 2
    assert "nonsense" in capsys.readouterr().err


def test_nothing_heavy_is_loaded_before_a_command_runs():
    script = (
        "import sys; from partita.commands.main import parser; parser(); "
        "print(*sorted(m for m in sys.modules if '.' not in m))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert not {"numpy", "scipy", "numba", "joblib", "matplotlib"} & set(done.stdout.split())


def test_it_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "partita", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"partita {partita.__version__}"

"""What a type checker knows of a result."""

import re
import subprocess
import sys
import textwrap

import pytest


def checked(tmp_path, text):
    """What `mypy --strict` says of a small program."""
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(text), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--no-error-summary"]
    done = subprocess.run(
        [*command, str(program)],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
    )
    return [line.partition(": ")[2] for line in done.stdout.splitlines()]


def test_fields_are_typed_and_others_are_errors(tmp_path):
    lines = checked(
        tmp_path,
        """
        import partita as pt

        r = pt.minimize(lambda x: float(x[0]), [(0.0, 1.0)], n_evals=3)
        reveal_type(r.fun)
        reveal_type(r.nfev)
        reveal_type(r.seed)
        reveal_type(r.history[0])
        reveal_type(r.history[1:])
        reveal_type(r.optimizer.n_pending)
        reveal_type(r.optimizer.trials[-1].value)
        reveal_type([record.number for record in r.history])
        again = pt.minimize(lambda x: float(x[0]), optimizer=r.optimizer, n_evals=3)
        again.optimizer.plot("run.png", kind="slices")
        again.optimizer.ask(count=8)[0].params
        r.nonsense
        r.history.nonsense
        pt.Optimizer([(0.0, 1.0)], seed=None).trials.nonsense
        """,
    )
    shown = [line.removeprefix("note: ") for line in lines if line.startswith("note: Revealed")]
    kinds = [line.partition(' "')[2].rstrip('"') for line in shown]
    # A record is a named tuple, which checkers write in several ways.
    kinds[3] = next(word for word in re.split(r"[\[\]=, ]+", kinds[3]) if word.endswith("Record"))
    assert kinds == [
        "float",
        "int",
        "int",
        "partita.optimize.trials.Record",
        "partita.optimize.trials.Trials",
        "int",
        "float | None",
        "list[int]",
    ]
    errors = [line for line in lines if line.startswith("error: ")]
    assert [line.split('"')[1] for line in errors] == ["Result", "History", "Trials"]
    assert all('no attribute "nonsense"' in line for line in errors)

"""`--replicates`: programs that make many values at the same parameters."""

import json

import pytest

from partita.commands.printed import ProgramFailed, replicates_of
from partita.study import Study

#: Prints {count} values around (x - 0.3)², from {seed}; the other one prints their sums.
VALUES = [
    "awk",
    "BEGIN {{ srand({seed} % 2147483647); for (i = 0; i < {count}; i++) "
    "print ({x} - 0.3)^2 + 0.2 * (rand() - 0.5) }}",
]
SUMS = [
    "awk",
    "BEGIN {{ srand({seed} % 2147483647); n = {count}; for (i = 0; i < n; i++) "
    "{{ v = ({x} - 0.3)^2 + 0.2 * (rand() - 0.5); s += v; q += v * v }} "
    'print "mean=" s / n; if (n > 1) print "std=" sqrt((q - s * s / n) / (n - 1)); '
    'print "count=" n }}',
]
ON_X = ["--param", "x:0:1", "--quiet"]


@pytest.mark.parametrize("program", [VALUES, SUMS], ids=["values", "sums"])
def test_a_program_makes_values_that_are_counted_one_by_one(run, path, program):
    arguments = [*ON_X, "--evals", "2000", "--replicates", "--json", "--study", path]
    code, out, _ = run("minimize", *arguments, "--", *program)
    assert code == 0
    result = json.loads(out)
    assert result["evaluations"] == 2000
    assert abs(result["params"]["x"] - 0.3) < 0.2
    study = Study.open(path)
    assert study.n_values == study.trials.counts.sum() == 2000
    # Twenty values are under way at a time. How many a row has depends on how long programs take
    # as well, but on the average it has far more than five.
    assert study.n_told < 400
    assert "1000" in result["command"][-1]  # the command to run there


def test_the_largest_count_is_the_batch(run, tmp_path):
    log = tmp_path / "counts"
    program = ["sh", "-c", f"echo {{count}} >> {log}; seq {{count}}; echo {{x}} > /dev/null"]
    code, _, err = run(
        "minimize", *ON_X, "--evals", "120", "--replicates", "--batch", "3", "--", *program
    )
    assert code == 0, err
    counts = [int(line) for line in log.read_text().split()]
    assert max(counts) == 3
    assert sum(counts) == 120


@pytest.mark.parametrize(
    ("arguments", "program", "text"),
    [
        ([], ["awk", "BEGIN {{ print {x} }}"], "put {count} where"),
        (["--std"], VALUES, "cannot be combined with --std"),
        (["--constraint", "cost <= 1"], VALUES, "cannot be combined with --constraint"),
        (["--param", "seed:0:1"], VALUES, "another name"),
        (["--batch", "0"], VALUES, "--batch 0"),
    ],
)
def test_what_does_not_go_together_is_refused(run, arguments, program, text):
    code, out, err = run(
        "minimize", *ON_X, "--evals", "9", "--replicates", *arguments, "--", *program
    )
    assert (code, out) == (2, "")
    assert text in err


def test_batch_needs_replicates(run):
    code, _, err = run("minimize", *ON_X, "--evals", "9", "--batch", "5", "--", "echo", "{x}")
    assert code == 2
    assert "--replicates" in err


@pytest.mark.parametrize(
    ("text", "count", "message"),
    [
        ("1 2", 3, "was asked for 3 values, but printed 2 numbers"),
        ("", 1, "printed 0 numbers"),
        ("1 nan 2", 3, "one of the values it printed is nan"),
        ("mean=1\nstd=1\ncount=4", 3, "printed count=4"),
        ("mean=1\nstd=1", 3, "no line count="),
        ("mean=1\ncount=3", 3, "no std="),
        ("mean=1\nstd=-1\ncount=3", 3, "std="),
        ("mean=nan\nstd=1\ncount=3", 3, "the mean it printed is nan"),
    ],
)
def test_output_that_is_not_count_values_fails_the_evaluation(text, count, message):
    with pytest.raises(ProgramFailed, match=message):
        replicates_of(text, count)


def test_what_a_program_says_besides_its_values_is_ignored():
    assert replicates_of("run 17 of 20\n1.5\n2.5\n", 2) == [1.5, 2.5]
    assert replicates_of("step 3\nmean=0.5\nstd=0.1\ncount=10\n", 10) == (0.5, 0.1, 10)
    assert replicates_of("mean=0.5\ncount=1\n", 1) == (0.5, None, 1)

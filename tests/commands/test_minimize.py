"""`partita minimize` and `maximize`: real programs, from the first argument to the last line."""

import io
import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from partita.commands import main as cli
from partita.commands.shared import INTERRUPTED
from partita.optimize.loop import HOPELESS

#: (x − 0.3)² by awk, which starts in a millisecond; braces of its own are doubled.
SQUARE = ["awk", 'BEGIN {{ x = {x}; print "loss", (x - 0.3) ^ 2 }}']
ON_X = ["--param", "x:0:1"]


def outcome(capsys, *arguments):
    """Exit code, stdout and stderr of a command."""
    code = cli.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def answer(capsys, *arguments):
    """What a command that must succeed prints with --json, read."""
    i = arguments.index("--")
    code, out, err = outcome(capsys, *arguments[:i], "--json", *arguments[i:])
    assert (code, err) == (0, "")
    return json.loads(out, parse_constant=pytest.fail)  # no NaN, no Infinity: plain JSON


# -- runs that end well ----------------------------------------------------------------------------


def test_it_prints_the_answer_its_bounds_and_a_command_that_runs(capsys):
    code, out, err = outcome(capsys, "minimize", *ON_X, "--evals", 25, "--", *SQUARE)
    assert (code, err) == (0, "")
    assert re.search(r"^25 evaluations, [0-9.]+ s\.$", out, re.MULTILINE)
    x = float(re.search(r"^  x +([0-9.]+)$", out, re.MULTILINE)[1])
    assert x == pytest.approx(0.3, abs=0.02)
    mean, low, high = map(
        float, re.search(r"^  value +(\S+), between (\S+) and (\S+)$", out, re.MULTILINE).groups()
    )
    assert low <= mean <= high
    assert re.search(
        r"^  certificate +[0-9.e-]+: an estimate: no other value is lower by more$",
        out,
        re.MULTILINE,
    )
    assert re.search(r"^  bounds +estimated, by a model fitted to the values$", out, re.MULTILINE)
    command = shlex.split(out.strip().splitlines()[-1])
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert float(printed.split()[1]) == pytest.approx((x - 0.3) ** 2, abs=1e-6)


def test_json_says_it_all(capsys):
    got = answer(capsys, "maximize", *ON_X, "--evals", 20, "--seed", 3, "--", "echo", "{x}")
    assert got["direction"] == "maximize"
    assert got["params"]["x"] == pytest.approx(1.0, abs=0.01)
    assert got["lower"] <= got["value"] <= got["upper"]
    assert 0 <= got["certificate"] < 0.1
    assert got["guarantee"] == "calibrated"
    assert (got["evaluations"], got["failed"], got["errors"], got["seed"]) == (20, 0, [], 3)
    assert got["success"] is True
    assert got["command"] == ["echo", repr(got["params"]["x"])]


def test_every_kind_of_parameter_reaches_the_program(capsys, tmp_path):
    log = tmp_path / "log"
    script = 'echo "$@" >>"$0"; awk "BEGIN { print ($1 - 0.01) ^ 2 + ($2 - 3) ^ 2 + ($3 - 6) ^ 2 }"'
    kinds = ["lr:1e-3:1e-1:log", "n:1:5:int", "m:2:10:4", "kind:a b,c;d", "fast:bool"]
    names = [kind.partition(":")[0] for kind in kinds]
    params = [word for kind in kinds for word in ("--param", kind)]
    got = answer(
        capsys, "minimize", *params, "--evals", 30, "--", "sh", "-c",
        script.replace("{", "{{").replace("}", "}}"), log, *(f"{{{name}}}" for name in names),
    )  # fmt: skip
    assert (got["params"]["n"], got["params"]["m"]) == (3, 6)
    assert got["params"]["kind"] in ("a b", "c;d")
    assert got["params"]["fast"] in (True, False)
    lines = log.read_text().splitlines()
    assert len(lines) == 30
    form = r"(0\.\d+|[\d.]+e-\d+) [1-5] (2|6|10) (a b|c;d) (true|false)"
    assert all(re.fullmatch(form, line) for line in lines)
    assert {line.split()[1] for line in lines} > {"3"}


def test_it_begins_where_it_is_told(capsys, tmp_path):
    log = tmp_path / "log"
    params = [w for kind in ("x:0:1", "kind:a,b", "fast:bool") for w in ("--param", kind)]
    starts = ["--x0", "x=0.3,kind=b,fast=true", "--x0", "kind=a,fast=false,x=1"]
    program = ["sh", "-c", 'echo "$@" >>"$0"; echo "$1"', log, "{x}", "{kind}", "{fast}"]
    answer(capsys, "minimize", *params, *starts, "--evals", 5, "--", *program)
    lines = log.read_text().splitlines()
    assert lines[:2] == ["0.3 b true", "1.0 a false"]
    assert len(lines) == 5


@pytest.mark.parametrize(
    ("start", "words"),
    [
        ("x=0.3", "--x0 x=0.3: n is missing. Give"),
        ("x=0.3,n=3,x=0.4", "'x=0.4' is not understood. Give each parameter once, as x=VALUE,n="),
        ("x:0.3,n:3", "'x:0.3' is not understood"),
        ("x=0.3,n=three", "'three' is not a number"),
        ("x=0.3,n=99", "n=99.0: give a whole number from 1 to 9"),
    ],
)
def test_a_start_that_cannot_be_is_refused(capsys, start, words):
    given = ["minimize", "--param", "x:0:1", "--param", "n:1:9:int", "--evals", 5, "--x0", start]
    code, out, err = outcome(capsys, *given, "--", "echo", "{x}", "{n}")
    assert (code, out) == (2, "")
    assert words in err


def test_the_same_seed_gives_the_same_run(capsys):
    def run(seed):
        got = answer(capsys, "minimize", *ON_X, "--evals", 12, "--seed", seed, "--", *SQUARE)
        return {name: value for name, value in got.items() if name not in ("seconds", "seed")}

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_other_policies(capsys):
    got = answer(
        capsys, "maximize", *ON_X, "--evals", 9, "--policy", "uniform", "--", "echo", "{x}"
    )
    assert (got["guarantee"], got["certificate"], got["lower"]) == ("none", None, None)
    code, out, _ = outcome(
        capsys, "maximize", *ON_X, "--evals", 9, "--policy", "uniform", "--", "echo", "{x}"
    )
    assert code == 0
    assert re.search(r"^  value +[0-9.]+$", out, re.MULTILINE)
    assert "certificate  none: it is not known" in out


def test_with_norm_noise_and_kernel_the_bounds_are_proven(capsys):
    given = ["--norm-bound", 2, "--noise", 0.1, "--kernel", "2.5:0.5", "--delta", 0.05]
    command = ["maximize", *ON_X, "--evals", 40, *given, "--", "echo", "{x}"]
    assert answer(capsys, *command)["guarantee"] == "proven"
    code, out, _ = outcome(capsys, *command)
    assert code == 0
    assert "bounds       proven, under your assumptions\n" in out


def test_jobs_run_at_once_and_a_slow_one_holds_up_nobody(capsys, tmp_path):
    # The first program waits for the tenth: one at a time, or in turns of three, would never end.
    script = (
        'i=$(mktemp "$0/XXXXXX"); n=$(ls "$0" | wc -l); if mkdir "$0.first" 2>/dev/null; then '
        'while [ "$(ls "$0" | wc -l)" -lt 10 ]; do sleep 0.01; done; fi; echo "$n $1"'
    )
    (tmp_path / "runs").mkdir()
    got = answer(
        capsys, "maximize", *ON_X, "--evals", 14, "--jobs", 3, "--timeout", 30, "--",
        "sh", "-c", script, tmp_path / "runs", "{x}",
    )  # fmt: skip
    assert (got["evaluations"], got["failed"]) == (14, 0)


def test_a_plot(capsys, tmp_path):
    path = tmp_path / "run.png"
    code, _, err = outcome(capsys, "minimize", *ON_X, "--evals", 12, "--plot", path, "--", *SQUARE)
    assert (code, err) == (0, f"partita: figure written to {path}\n")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_tolerance_and_a_time_limit_end_a_run(capsys):
    got = answer(capsys, "maximize", *ON_X, "--tolerance", 0.05, "--", "echo", "{x}")
    assert got["certificate"] <= 0.05
    assert got["message"].startswith("The certificate is within the tolerance")
    start = time.monotonic()
    slow = 'case "$0" in 0.[0-4]*) ;; *) sleep 30;; esac; echo "$0"'
    got = answer(
        capsys, "minimize", *ON_X, "--seconds", 2, "--jobs", 2, "--", "sh", "-c", slow, "{x}"
    )
    assert time.monotonic() - start < 15  # programs that still run are ended
    assert got["evaluations"] >= 1
    assert got["message"].startswith("The time is up")


# -- failures --------------------------------------------------------------------------------------


def test_failures_are_counted_told_and_left_out(capsys):
    code, out, err = outcome(
        capsys, "maximize", *ON_X, "--evals", 12, "--timeout", 0.25, "--", "awk",
        "BEGIN {{ x = {x}; if (x > 0.9) {{ print 7; exit 3 }} if (x > 0.8) system(\"sleep 9\"); "
        "if (x < 0.1) print \"nothing\"; else print x }}",
    )  # fmt: skip
    assert (code, err) == (0, "")
    counted = re.search(r"^12 evaluations, (\d+) failed, ", out, re.MULTILINE)
    assert int(counted[1]) >= 2
    assert 0.5 < float(re.search(r"^  x +([0-9.]+)$", out, re.MULTILINE)[1]) <= 0.81
    assert re.search(
        r"^first failure: (exit code 3|timed out|printed no number).*\n  awk ", out, re.MULTILINE
    )


def test_a_program_that_always_fails_ends_the_run_soon(capsys, tmp_path):
    code, out, err = outcome(
        capsys, "minimize", *ON_X, "--evals", 1000, "--",
        "sh", "-c", 'echo . >>"$0"; echo "no data" >&2; exit 4', tmp_path / "log", "{x}",
    )  # fmt: skip
    assert (code, out) == (1, "")
    assert "every evaluation failed. The first: exit code 4: 'no data'\n  sh -c " in err
    assert "Traceback" not in err
    assert len((tmp_path / "log").read_text().splitlines()) == HOPELESS <= 50


def test_nothing_done_in_time(capsys):
    code, out, err = outcome(
        capsys, "minimize", *ON_X, "--seconds", 0.3, "--", "sh", "-c", "sleep 20; echo {x}"
    )
    assert (code, out, err) == (1, "", "partita: no evaluation finished in time.\n")


@pytest.mark.parametrize(
    ("program", "message", "failed"),
    [
        ("echo bad >&2; exit 4", "Every evaluation failed. The first: exit code 4", HOPELESS),
        ("sleep 20", "No evaluation finished in time.", 0),
    ],
)
def test_json_says_that_there_is_nothing(capsys, program, message, failed):
    arguments = ["minimize", *ON_X, "--seconds", 1, "--json", "--", "sh", "-c"]
    _, good, _ = outcome(capsys, *arguments, "echo {x}")
    code, out, err = outcome(capsys, *arguments, f"{program} #{{x}}")
    got = json.loads(out)
    assert code == 1
    assert err.count("\n") <= 2  # nothing is said twice
    assert list(got) == list(json.loads(good))
    assert got["success"] is False
    assert got["params"] is got["value"] is got["command"] is None
    assert got["message"].startswith(message)
    assert (got["evaluations"], got["failed"], len(got["errors"])) == (0, failed, min(failed, 5))


def test_a_run_that_is_given_up_says_so_by_its_exit_code(capsys, tmp_path):
    program = ["sh", "-c", 'test -e "$0" && exit 1; echo >"$0"; echo {x}', tmp_path / "log"]
    code, out, _ = outcome(capsys, "minimize", *ON_X, "--evals", 50, "--", *program)
    assert code == 1
    assert "Too many evaluations failed" in out


def test_failures_only_until_the_time_is_up(capsys):
    program = ("sh", "-c", "sleep 0.2; echo {x} >&2; exit 3")
    code, out, err = outcome(capsys, "minimize", *ON_X, "--seconds", 3, "--", *program)
    assert (code, out) == (1, "")
    assert "every evaluation failed. The first: exit code 3" in err


# -- refusals: before anything runs ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--evals 5 -- {probe}", "no parameters: give --param"),
        ("--param x:0:1 --evals 5", "no program to run"),
        ("--param x:0:1 --evals 5 --", "no program to run"),
        ("--param x:0:1 --evals 5 {probe} {x}", "write two dashes before the program"),
        ("--param x:0:1 -- {probe} {x}", "nothing would end the run"),
        ("--param x:1:0 --evals 5 -- {probe} {x}", "--param x:1:0: 1 is not below 0"),
        ("--param x:0:1:log --evals 5 -- {probe} {x}", "must be above 0"),
        ("--param x:0:1 --param x:0:2 --evals 5 -- {probe} {x}", "x is already given"),
        ("--param x:0:1 --evals 5 -- {probe} {y}", "{y}: no parameter has this name"),
        ("--param x:0:1 --evals 5 -- {probe}", "x: the program's arguments never use it"),
        ("--param x:0:1 --evals 5 -- {probe} {x", "braces hold the name of a parameter"),
        ("--param x:0:1 --evals 5 -- ./nosuch {x}", "./nosuch: there is no such program"),
        ("--param x:0:1 --evals 0 -- {probe} {x}", "--evals 0: give"),
        ("--param x:0:1 --seconds -1 -- {probe} {x}", "--seconds -1.0: give"),
        ("--param x:0:1 --seconds nan -- {probe} {x}", "--seconds nan: give"),
        ("--param x:0:1 --tolerance inf -- {probe} {x}", "--tolerance inf: give"),
        ("--param x:0:1 --evals 5 --timeout 0 -- {probe} {x}", "--timeout 0.0: give"),
        ("--param x:0:1 --evals 5 --jobs 0 -- {probe} {x}", "--jobs 0: give"),
        ("--param x:0:1 --evals 5 --seed -1 -- {probe} {x}", "--seed -1: give"),
        ("--param x:0:1 --evals 5 --delta 2 -- {probe} {x}", "delta=2.0: give the probability"),
        ("--param x:0:1 --evals 5 --noise -1 -- {probe} {x}", "positive finite number"),
        ("--param x:0:1 --evals 5 --kernel 1.5 -- {probe} {x}", "--kernel 1.5: give NU:LENGTH"),
        ("--param x:0:1 --evals 5 --policy nosuch -- {probe} {x}", "policy 'nosuch' is unknown"),
        ("--param x:0:1 --evals 5 --plot no/x.png -- {probe} {x}", "there is no folder no"),
        ("--param x:0:1 --evals 5 --plot x.doc -- {probe} {x}", "ends in .png, .svg or .pdf"),
        ("--param x:0:1 --evals 5 --plot no/x.PNG -- {probe} {x}", "there is no folder no"),
        ("--param -x:0:1 --evals 5 -- {probe} {x}", "'-x' is not a name"),
    ],
)
def test_bad_input_is_one_line_exit_code_2_and_runs_nothing(
    arguments, message, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    probe = tmp_path / "probe"
    probe.write_text('#!/bin/sh\ntouch "$0.ran"\necho 1\n')
    probe.chmod(0o755)
    words = [str(probe) if word == "{probe}" else word for word in arguments.split()]
    code, out, err = outcome(capsys, "minimize", *words)
    assert (code, out) == (2, "")
    assert err.startswith("partita: ")
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "probe.ran").exists()


def test_our_options_after_the_dashes_are_the_programs(capsys):
    got = answer(
        capsys, "maximize", *ON_X, "--evals", 5, "--", "echo", "--seed", "{x}", "--", "--json", "4"
    )
    assert got["value"] == pytest.approx(4, abs=0.1)
    assert got["command"][3:] == ["--", "--json", "4"]


# -- a terminal, and being ended -------------------------------------------------------------------


def partita(*arguments, first=(), **settings):
    """The command in a process of its own, which the words in `first` start."""
    command = [*first, sys.executable, "-m", "partita", *map(str, arguments)]
    return subprocess.Popen(command, text=True, **settings)


def awaited_lines(path, number, within=60.0):
    """The lines of a file once there are so many."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        lines = path.read_text().splitlines() if path.exists() else []
        if len(lines) >= number:
            return lines
        time.sleep(0.01)
    raise AssertionError(f"fewer than {number} lines in {path} after {within} s")


def all_gone(pids, within=5.0):
    end = time.monotonic() + within
    while time.monotonic() < end:
        alive = [pid for pid in pids if Path(f"/proc/{pid}").exists()]
        if not alive:
            return True
        time.sleep(0.01)
    return False


#: Three quick evaluations, then programs that take for ever; each writes its process number.
SLOWER = (
    'echo $$ >>"$0"; mkdir "$0.1" 2>&- || mkdir "$0.2" 2>&- || mkdir "$0.3" 2>&- || sleep 60; '
    'echo "$1"'
)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks at /proc")
@pytest.mark.parametrize(
    ("number", "jobs", "first"),
    [
        (signal.SIGINT, 2, ()),
        (signal.SIGTERM, 1, ()),
        # What a script starts in the background ignores Ctrl-C, but no request to end.
        (signal.SIGTERM, 2, ("sh", "-c", 'trap "" INT; exec "$@"', "sh")),
    ],
)
def test_ended_early_it_prints_what_it_has_and_leaves_nothing_running(
    number, jobs, first, tmp_path
):
    log = tmp_path / "log"
    process = partita(
        "minimize", *ON_X, "--evals", 1000, "--jobs", jobs, "--json", "--",
        "sh", "-c", SLOWER, log, "{x}", first=first, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    pids = awaited_lines(log, 3 + jobs)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (INTERRUPTED, "")
    got = json.loads(out)
    assert got["evaluations"] == 3
    assert got["success"] is False
    assert got["message"].startswith("Interrupted")
    assert all_gone(map(int, pids))


def test_ended_before_anything_was_done(tmp_path):
    process = partita(
        "minimize", *ON_X, "--evals", 10, "--", "sh", "-c",
        'echo $$ >>"$0"; sleep 60; echo {x}', tmp_path / "log",
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    awaited_lines(tmp_path / "log", 1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (INTERRUPTED, "")
    assert err == "partita: stopped before any evaluation finished.\n"


def test_failures_are_not_logged_as_well():
    program = ("awk", "BEGIN {{ if ({x} > 0.5) exit 3; print {x} }}")
    process = partita(
        "minimize", *ON_X, "--evals", 8, "--", *program,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    out, err = process.communicate(timeout=60)
    assert re.match(r"8 evaluations, \d+ failed", out)
    assert (process.returncode, err) == (0, "")


def on_a_terminal(*arguments):
    """What a command writes on stdout, and on a terminal that is its stderr."""
    master, terminal = pty.openpty()
    process = partita(*arguments, stdout=subprocess.PIPE, stderr=terminal)
    os.close(terminal)
    shown, end = b"", time.monotonic() + 60
    while time.monotonic() < end and select.select([master], [], [], 60)[0]:
        try:
            piece = os.read(master, 4096)
        except OSError:  # how a terminal says that nobody is left at the other end
            break
        if not piece:
            break
        shown += piece
    os.close(master)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    return out, shown.decode()


def test_a_progress_bar_on_a_terminal_which_is_wiped_at_the_end():
    command = [*ON_X, "--evals", 26, "--", "sh", "-c", "sleep 0.1; echo {x}"]
    out, shown = on_a_terminal("minimize", *command)
    assert "█" in shown
    assert "/26" in shown
    assert "certificate" in shown
    assert shown.endswith("\r\x1b[K")
    assert out.startswith("26 evaluations")


def test_quiet_shows_nothing_on_a_terminal(capsys, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    command = [*map(str, [*ON_X, "--evals", 8, "--", "sh", "-c", "sleep 0.05; echo {x}"])]
    for options, silent in (["--quiet"], True), ([], False):
        monkeypatch.setattr(sys, "stderr", Terminal())
        assert cli.main(["minimize", *options, *command]) == 0
        assert (sys.stderr.getvalue() == "") is silent


def test_a_reader_that_has_gone_is_no_error(capsys, monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as gone:
        monkeypatch.setattr(sys, "stdout", gone)
        assert cli.main(["maximize", *ON_X, "--evals", "3", "--", "echo", "{x}"]) == 1
    assert capsys.readouterr().err == ""


def test_help_lists_the_commands_and_their_options(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    assert re.search(r"minimize +minimize what a program of yours prints", capsys.readouterr().out)
    with pytest.raises(SystemExit):
        cli.main(["maximize", "--help"])
    out = capsys.readouterr().out
    for word in ("--param", "--evals", "--jobs", "--timeout", "-- PROGRAM", "{lr}", "{{ and }}"):
        assert word in out


def test_a_random_seed_is_named_and_gives_the_run_again(capsys):
    drawn = answer(capsys, "minimize", *ON_X, "--evals", 6, "--seed", "random", "--", *SQUARE)
    again = answer(capsys, "minimize", *ON_X, "--evals", 6, "--seed", drawn["seed"], "--", *SQUARE)
    assert again["params"] == drawn["params"]
    assert (
        cli.main(
            ["minimize", *ON_X, "--evals", "2", "--seed", "random", "--quiet", "--", "echo", "{x}"]
        )
        == 0
    )
    assert re.search(r"\n  seed +[0-9]+\n", capsys.readouterr().out)

"""What a program started ends with it: by timeout, at its own end, and with Partita itself."""

import contextlib
import functools
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from partita.commands import processes, supervisor
from partita.commands.printed import ProgramFailed
from partita.commands.processes import Direct, Supervisor
from partita.commands.program import Program, read_template
from partita.commands.supervisor import TAIL

PYTHON = sys.executable
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs a subreaper and /proc")

#: Programs that leave a process behind, whose number goes to the file named by the argument.
LEAVING = {
    "in the background": "sleep 60 & echo $! >$1",
    "in a session of its own": "setsid sh -c 'echo $$ >$0; exec sleep 60' $1 &",
    "forked twice": "(setsid sh -c 'echo $$ >$0; exec sleep 60' $1 &) & wait",
    "with a parent of its own": (
        "setsid sh -c 'setsid sh -c \"echo \\$\\$ >$0; sleep 60; :\" & wait' $1 &"
    ),
    "deaf to SIGTERM": "setsid sh -c 'trap \"\" TERM; echo $$ >$0; sleep 60; sleep 60' $1 &",
    "stopped": "setsid sh -c 'echo $$ >$0; kill -STOP $$; sleep 60' $1 &",
}
#: What the program does once that process is there.
UNTIL_THERE = 'while ! [ -s "$1" ]; do sleep 0.01; done'


def shell(code, *arguments, timeout=None):
    """Shell code as a program, with arguments from $1 on."""
    return Program(read_template(["sh", "-c", code, "sh", *map(str, arguments)], []), timeout)


def gone(pid, within=5.0):
    """Whether a process is no more, or is soon; a zombie that nobody waits for counts as gone."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.01)
    return False


def awaited(path, within=20.0):
    """The text of a file once there is some."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        if path.exists() and path.read_text().endswith("\n"):
            return path.read_text()
        time.sleep(0.01)
    raise AssertionError(f"{path} was never written")


def in_thread(call):
    """Start a call in a thread; the thread, and a list that gets what it returned or raised."""
    seen = []

    def run():
        try:
            seen.append(call())
        except ProgramFailed as error:
            seen.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    return thread, seen


# -- what is left of a program ---------------------------------------------------------------------


@linux
@pytest.mark.parametrize("kind", LEAVING)
def test_what_a_program_left_behind_ends_with_it(kind, tmp_path):
    run = shell(f"{LEAVING[kind]}\n{UNTIL_THERE}\necho 8", tmp_path / "pid")
    assert run() == 8.0
    assert gone(int(awaited(tmp_path / "pid")), within=0.1)  # before the value is known
    assert run() == 8.0  # the same supervisor goes on


@linux
@pytest.mark.parametrize("kind", LEAVING)
def test_a_timeout_ends_all_that_a_program_started(kind, tmp_path):
    run = shell(f"{LEAVING[kind]}\n{UNTIL_THERE}\nsleep 60", tmp_path / "pid", timeout=1.5)
    with pytest.raises(ProgramFailed, match=r"^timed out after 1.5 s$"):
        run()
    assert gone(int(awaited(tmp_path / "pid")), within=0.1)


def random_tree(rng, depth=3):
    """Shell code that starts a random tree of processes, in groups and sessions of all kinds."""
    ways = ["{} &", "setsid {} &", "({} &) &", "({} & {} &)", "setsid nohup {} >&- 2>&- &"]
    code = "trap '' TERM\n" if rng.random() < 0.1 else ""
    for _ in range(rng.integers(0, 3) if depth else 0):
        below = f"sh -c {shlex.quote(random_tree(rng, depth - 1))}"
        code += f"{rng.choice(ways).replace('{}', below)}\n"
    return code + rng.choice(["sleep 60", "wait", "exit", "kill -STOP $$", "sleep 60; sleep 60"])


def marked(marker):
    """Processes in whose environment a marker stands."""
    pids = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdecimal() and marker in (folder / "environ").read_bytes():
                pids.append(int(folder.name))
    return pids


def leave_random_trees(folder, seed, cases):
    """Run programs that start random trees of processes; how many ran before they ended."""
    rng = np.random.default_rng(seed)
    template = read_template(["sh", "-c", "{code}", "sh", "{ready}"], ["code", "ready"])
    run = Program(template, timeout=3.0)
    started = 0
    for case in range(cases):
        marker = f"PARTITA_TREE={os.getpid()}.{seed}.{case}"
        end = rng.choice(["echo 1", "wait"])
        tree = f"sh -c {shlex.quote(random_tree(rng))}"
        code = f"export {marker}; {tree} & sleep 0.3; echo >$1; sleep 0.5; {end}"
        ready = folder / f"ready.{case}"
        thread, _ = in_thread(functools.partial(run, code=code, ready=str(ready)))
        awaited(ready)
        started += len(marked(marker.encode()))
        thread.join()
        assert marked(marker.encode()) == [], code
    return started


@linux
def test_nothing_is_left_of_random_trees_of_processes(tmp_path):
    assert leave_random_trees(tmp_path, seed=1, cases=4) > 4


def stubborn(path, timeout=None):
    """A program that, like its helper, ignores SIGTERM; both process numbers go to a file."""
    return shell('trap "" TERM; sleep 60 & echo $$ $! >"$1"; wait', path, timeout=timeout)


def test_a_timeout_ends_the_program_and_its_group(tmp_path):
    start = time.monotonic()
    with pytest.raises(ProgramFailed, match=r"^timed out after 0.8 s$"):
        stubborn(tmp_path / "pids", timeout=0.8)()
    assert 1.8 <= time.monotonic() - start < 10  # a second after it was asked to end
    pids = [int(word) for word in awaited(tmp_path / "pids").split()]
    assert len(pids) == 2
    assert all(gone(pid) for pid in pids)


def test_a_program_is_asked_before_it_is_killed(tmp_path):
    """And once only: many take a second SIGTERM for impatience."""
    code = 'trap "echo asked >>$1" TERM; sleep 60 & wait $!; sleep 0.3; echo done >>"$1"'
    with pytest.raises(ProgramFailed, match=r"timed out"):
        shell(code, tmp_path / "log", timeout=1.0)()
    assert (tmp_path / "log").read_text() == "asked\ndone\n"


def test_stop_ends_what_runs_and_starts_nothing_more(tmp_path):
    run = stubborn(tmp_path / "pids")
    thread, seen = in_thread(run)
    pids = [int(word) for word in awaited(tmp_path / "pids").split()]
    run.stop()
    thread.join(5)
    assert seen == ["stopped before it finished"]
    assert all(gone(pid) for pid in pids)
    with pytest.raises(ProgramFailed, match=r"stopped before it began"):
        run()


def test_the_end_of_one_program_leaves_the_others_alone(tmp_path):
    """Each has a supervisor of its own, so nobody ends what another started."""
    code = 'if [ $2 = 1 ]; then setsid sleep 60 & echo $! >"$1"; sleep 3; fi; echo $2'
    long = Program(read_template(["sh", "-c", code, "sh", str(tmp_path / "pid"), "{x}"], ["x"]))
    thread, seen = in_thread(lambda: long(x=1))
    pid = int(awaited(tmp_path / "pid"))
    for _ in range(3):
        assert long(x=0) == 0.0
    assert not gone(pid, within=0.1)
    thread.join(10)
    assert seen == [1.0]
    assert gone(pid)


def test_a_supervisor_that_is_killed_fails_one_evaluation_only(tmp_path):
    run = shell('echo $PPID >"$1"; [ $PPID -eq 1 ] || sleep "$2"; echo 3', tmp_path / "pid", 2)
    thread, seen = in_thread(run)
    os.kill(int(awaited(tmp_path / "pid")), signal.SIGKILL)
    thread.join(10)
    assert seen == ["killed from outside, together with its supervisor"]
    assert run() == 3.0


# -- the end of Partita ----------------------------------------------------------------------------

#: Runs a program by Partita, in a thread of a process which does what follows meanwhile.
RUN = """
import os, sys, threading, time
from partita.commands.program import Program, read_template
template = read_template(["sh", "-c", sys.argv[1], "sh", sys.argv[2]], [])
threading.Thread(target=Program(template)).start()
"""


@linux
@pytest.mark.parametrize("forks", [False, True], ids=["", "which forked"])
def test_kill_9_of_partita_ends_its_programs(forks, tmp_path):
    """Should a process that it forked hold all its files open, too."""
    code = f'{LEAVING["in a session of its own"]}\n{UNTIL_THERE}\necho $$ $PPID >"$1.own"; sleep 60'
    meanwhile = "time.sleep(1)\nif os.fork() == 0:\n    time.sleep(8)\n    os._exit(0)\n"
    partita = subprocess.Popen(
        [PYTHON, "-c", RUN + meanwhile * forks, code, str(tmp_path / "pid")],
        stdout=subprocess.DEVNULL,
    )
    pids = [int(word) for word in awaited(tmp_path / "pid.own").split()]
    pids.append(int(awaited(tmp_path / "pid")))
    time.sleep(1.5 * forks)
    assert not any(gone(pid, within=0.01) for pid in pids)
    partita.kill()
    partita.wait()
    assert all(gone(pid) for pid in pids)


@linux
def test_kill_9_of_the_command_ends_all_its_programs(tmp_path):
    code = 'setsid sleep 60 & echo $$ $PPID $! >"$1.$2"; sleep 60'
    command = [PYTHON, "-m", "partita", "minimize", "--param", "x:1:1000000:int", "--evals", "9"]
    command += ["--jobs", "3", "--quiet", "--", "sh", "-c", code, "sh", str(tmp_path / "f"), "{x}"]
    partita = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    end = time.monotonic() + 30
    while len(list(tmp_path.iterdir())) < 3 and time.monotonic() < end:
        time.sleep(0.02)
    pids = [int(word) for file in tmp_path.iterdir() for word in awaited(file).split()]
    assert len(set(pids)) == 9
    partita.kill()
    partita.wait()
    assert all(gone(pid) for pid in pids)


@linux
def test_the_supervisor_is_not_found_by_partitas_name(tmp_path):
    """Who kills all that is called so by SIGKILL means the programs as well."""
    run = shell('tr "\\0" " " <"/proc/$PPID/cmdline" >"$1"; echo 1', tmp_path / "line")
    run()
    arguments = (tmp_path / "line").read_text().split()[1:]
    assert arguments[-1] == "supervisor"
    assert not any("partita" in argument for argument in arguments)


# -- what a program finds --------------------------------------------------------------------------


@linux
def test_a_program_has_three_open_files_and_default_signals(tmp_path, monkeypatch):
    monkeypatch.setenv("PARTITA_TEST", "set")
    monkeypatch.chdir(tmp_path)
    run = shell(
        "cat /proc/self/status >status; ls /proc/self/fd >files; pwd >folder; "
        "echo $PARTITA_TEST >variable; ps -o pid=,sid= -p $$ >session; echo 1"
    )
    assert run() == 1.0
    assert ignored_and_blocked(tmp_path / "status") == (ignored_here(), 0)
    # The last is the folder that lists them.
    assert (tmp_path / "files").read_text().split()[:-1] == ["0", "1", "2"]
    assert (tmp_path / "folder").read_text() == f"{tmp_path}\n"
    assert (tmp_path / "variable").read_text() == "set\n"
    assert len(set((tmp_path / "session").read_text().split())) == 1


def ignored_and_blocked(status):
    """Signals that a process ignores and blocks, but for 32 and 33, which are the C library's."""
    fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return tuple(int(fields[name], 16) & 0x7FFFFFFF for name in ("SigIgn", "SigBlk"))


def ignored_here():
    """Signals that this process was started to ignore, as by nohup; Python ignores two more."""
    ignored, _ = ignored_and_blocked(Path("/proc/self/status"))
    return ignored & ~(1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1)


@linux
def test_a_signal_that_partita_ignores_is_ignored_by_its_programs(tmp_path):
    """As nohup wants it."""
    code = RUN.replace("import os", "import signal; signal.signal(1, signal.SIG_IGN); import os")
    subprocess.run(
        [PYTHON, "-c", code, "cat /proc/self/status >$1; echo 1", str(tmp_path / "status")],
        check=True,
    )
    assert ignored_and_blocked(tmp_path / "status") == (1 << signal.SIGHUP - 1 | ignored_here(), 0)


# -- output ----------------------------------------------------------------------------------------


@linux
@pytest.mark.parametrize("end", ["", " >&2"], ids=["stdout", "stderr"])
def test_output_without_end_is_not_kept(end, tmp_path):
    run = shell(f'echo $PPID >"$1"; exec yes{end}', tmp_path / "pid", timeout=1.5)
    before = _peak("self")
    thread, seen = in_thread(run)
    pid = int(awaited(tmp_path / "pid"))
    peak = 0
    while thread.is_alive():
        peak = max(peak, _peak(pid))
        time.sleep(0.05)
    assert seen == ["timed out after 1.5 s"]
    assert 1 < peak < 40_000
    assert _peak("self") - before < 20_000


def _peak(pid):
    """The most memory that a process ever had, in kB."""
    with Path(f"/proc/{pid}/status").open() as lines:
        return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


def test_the_value_behind_a_gigabyte_is_read():
    size = 1 << 27
    assert shell(f"yes 1234567 | head -c {size}; echo; echo 0.5")() == 0.5
    with pytest.raises(ProgramFailed, match=r"^exit code 3: 'y'$"):
        shell(f"yes | head -c {size} >&2; echo 5; exit 3")()


def test_a_program_may_close_its_output_and_go_on(tmp_path):
    start = time.monotonic()
    assert shell('echo 7; exec >&- 2>&-; sleep 0.5; echo late >"$1"', tmp_path / "f")() == 7.0
    assert time.monotonic() - start >= 0.5
    assert awaited(tmp_path / "f") == "late\n"


def test_what_a_helper_prints_later_is_not_read(tmp_path):
    code = 'trap "" TERM; (trap "echo 5; exit" TERM; echo >"$1"; while :; do sleep 0.1; done) &'
    assert shell(f"{code}\n{UNTIL_THERE}; echo 4", tmp_path / "f")() == 4.0


# -- systems that offer less -----------------------------------------------------------------------


def test_processes_are_found_without_proc(monkeypatch):
    child = subprocess.Popen(["sh", "-c", "setsid sleep 60 & echo $!; wait"], stdout=-1, text=True)
    pids = {child.pid, int(child.stdout.readline())}
    try:
        assert pids <= {row.pid for row in supervisor.descendants(os.getpid())}
        monkeypatch.setattr(supervisor.os, "listdir", lambda _: [])
        rows = supervisor.descendants(os.getpid())
        assert pids <= {row.pid for row in rows}
        assert os.getppid() not in {row.pid for row in rows}
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()


def test_without_a_supervisor_programs_are_run_directly(tmp_path, monkeypatch):
    monkeypatch.setattr(processes.os, "name", "nt")
    assert isinstance(processes.new_runner(), Direct)
    monkeypatch.setattr("partita.commands.program.new_runner", Direct)
    assert shell("yes 1 | head -c 1000000; echo 2.5")() == 2.5
    with pytest.raises(ProgramFailed, match=r"^exit code 3: 'out of memory'$"):
        shell("echo 1; echo out of memory >&2; exit 3")()
    with pytest.raises(ProgramFailed, match=r"^could not be started: .*[Nn]o such file"):
        Program(read_template(["{x}"], ["x"]))(x="./nosuch")
    with pytest.raises(ProgramFailed, match=r"^timed out after 0.3 s$"):
        shell("exec sleep 60", timeout=0.3)()
    run = shell('echo $$ >"$1"; exec sleep 60', tmp_path / "pid")
    thread, seen = in_thread(run)
    pid = int(awaited(tmp_path / "pid"))
    run.stop()
    thread.join(5)
    assert seen == ["stopped before it finished"]
    assert gone(pid)


def test_a_runner_says_what_was_cut():
    for runner in (Supervisor(), Direct()):
        end = runner.run(["sh", "-c", f"yes | head -c {TAIL + 1}; echo err >&2"], None)
        assert end.code == 0
        assert (len(end.out.content), end.out.cut) == (TAIL, True)
        assert end.err == (b"err\n", False)
        runner.close()
        runner.wait()
        assert runner.run(["true"], None) is None

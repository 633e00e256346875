"""Processes that work on studies until they are killed, and what must be in the file afterwards."""

from partita.study import Study
from support.studies import PLANE, events, is_sound, value


def work(path, out, space=PLANE, steps=10**9, **settings):
    """Ask and tell, and say so after each; in a process that may be killed."""
    study = Study.open(path, space, **settings)
    for _ in range(steps):
        trial = study.ask()
        out.write(f"ask {trial.number}\n")
        y = value(trial.params)
        study.tell(trial, y)
        out.write(f"tell {trial.number} {y!r}\n")
    return study


def acknowledged(lines):
    """Trials asked for, and values told, by what a process said."""
    words = [line.split() for line in lines]
    return {int(w[1]) for w in words}, {int(w[1]): float(w[2]) for w in words if w[0] == "tell"}


def holds(path, asked, told):
    """Whether a file has all that was acknowledged, and is sound."""
    log = events(path)
    values = {trial: y for _, kind, trial, y in log if kind == "tell"}
    assert asked <= {trial for _, kind, trial, _ in log if kind == "ask"}
    assert told.items() <= values.items()
    assert [seq for seq, *_ in log] == list(range(1, len(log) + 1))
    assert is_sound(path)
    return values

"""Policies, spaces and sequences of calls at random; what fails is made as short as can be."""

import resource
import time
from dataclasses import replace

from .cases import case_of
from .machine import Fault, run

#: Seconds that may be spent on making a failing case shorter.
SHORTEN = 60.0


def play(seed):
    """What was done in the case of a seed."""
    case = case_of(seed)
    try:
        done = run(case)
    except Exception as error:
        raise Fault(report(case, error)) from error
    calls = sum(count for verb, count in done.items() if verb != "refused to begin")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {
        "cases": 1,
        "calls": calls,
        "asks": done["ask"],
        "refused calls": done["refuse"],
        "refused to begin": done["refused to begin"],
        "largest memory, MB": memory,
    }


def report(case, error):
    """A failing case in words, once it is as short as it gets in the time there is."""
    short = shortened(case, _kind(error))
    calls = "\n".join(f"  {op}" for op in short.ops)
    words = str(_fault_of(short) or error)
    return f"{words}\n{replace(short, ops=())}\ncalls:\n{calls}"


def shortened(case, kind, seconds=SHORTEN):
    """A case with fewer calls that fails in the same way: parts are left out, ever smaller."""
    end, size = time.monotonic() + seconds, max(1, len(case.ops) // 2)
    while True:
        at, before = 0, len(case.ops)
        while at < len(case.ops) and time.monotonic() < end:
            shorter = replace(case, ops=case.ops[:at] + case.ops[at + size :])
            if _kind(_fault_of(shorter)) == kind:
                case = shorter
            else:
                at += size
        if time.monotonic() >= end or (size == 1 and len(case.ops) == before):
            return case
        size = max(1, size // 2)


def _fault_of(case):
    try:
        run(case)
    except Exception as error:
        return error
    return None


def _kind(error):
    """What went wrong, leaving numbers and places aside."""
    if error is None:
        return None
    cause = error.__cause__
    return type(error), None if cause is None else (type(cause), str(cause).split(" ")[:4])

"""Signals that wait until work is done: of whatever handler, in whatever thread."""

import signal
import threading

import numba
import pytest
from numba.core.caching import NullCache

from partita import _compiled
from partita._signals import uninterrupted
from partita.gp import _loops as gp_loops
from partita.partition import _loops as cell_loops


@pytest.fixture(autouse=True)
def _handlers():
    """Python's own handler for Ctrl-C, and what there was put back after."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is not None
    for number, handler in before.items():
        signal.signal(number, handler)


def interrupt():
    signal.raise_signal(signal.SIGINT)


class Work:
    """Interrupts itself, and notes how far it came."""

    done = False

    def __init__(self, times=1):
        self.times = times

    def __call__(self):
        for _ in range(self.times):
            interrupt()
        self.done = True
        return 7


@pytest.mark.parametrize("times", [1, 3])
def test_ctrl_c_is_raised_when_the_work_is_done(times):
    work = Work(times)
    with pytest.raises(KeyboardInterrupt):
        uninterrupted(work)
    assert work.done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        interrupt()


def test_without_it_the_work_is_cut_short():
    """The control."""
    work = Work()
    with pytest.raises(KeyboardInterrupt):
        work()
    assert not work.done


def test_nothing_comes_nothing_changes():
    assert uninterrupted(Work(0)) == 7
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_work_within_work():
    inner, order = Work(), []

    def outer():
        result = uninterrupted(inner)
        order.append("after inner")
        return result

    with pytest.raises(KeyboardInterrupt):
        uninterrupted(outer)
    assert order == ["after inner"]


def test_an_error_of_the_work_does_not_swallow_the_signal():
    def fail():
        interrupt()
        raise ValueError("mine")

    with pytest.raises(KeyboardInterrupt) as caught:
        uninterrupted(fail)
    assert isinstance(caught.value.__context__, ValueError)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_handler_of_the_users_own_is_called_after_the_work(number):
    calls, work = [], []
    signal.signal(number, lambda *args: calls.append((args[0], list(work))))

    def busy():
        signal.raise_signal(number)
        work.append("done")

    handler = signal.getsignal(number)
    uninterrupted(busy)
    assert calls == [(number, ["done"])]
    assert signal.getsignal(number) is handler


def test_a_handler_that_the_work_sets_stays():
    ours = lambda *args: None  # noqa: E731
    uninterrupted(lambda: signal.signal(signal.SIGINT, ours))
    assert signal.getsignal(signal.SIGINT) is ours


def test_an_ignored_signal_stays_ignored():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert uninterrupted(Work()) == 7
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_handler_that_is_not_of_python(monkeypatch):
    """Of a program that Python is embedded in: `getsignal` says None."""
    monkeypatch.setattr(signal, "getsignal", lambda number: None)
    monkeypatch.setattr(signal, "signal", lambda *args: pytest.fail("it was replaced"))
    assert uninterrupted(Work(0)) == 7


def test_another_thread_works_as_ever():
    results = []
    thread = threading.Thread(target=lambda: results.append(uninterrupted(Work(0))))
    thread.start()
    thread.join()
    assert results == [7]


# -- the compiler ----------------------------------------------------------------------------------


def interrupted_compilation(njit):
    """A function whose first compilation is interrupted in the middle."""

    @njit()
    def add_one(x):
        return x + 1

    add_one = _compiled.awake(add_one)
    add_one._cache = NullCache()  # compiled in earlier runs, there would be nothing to interrupt
    compiler = add_one._compiler
    compile_once = compiler.compile

    def interrupting(*args):
        compiler.compile = compile_once
        interrupt()
        return compile_once(*args)

    compiler.compile = interrupting
    with pytest.raises(KeyboardInterrupt):
        add_one(1)
    return add_one


compiled = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="the compiler is off")


@compiled
def test_a_compilation_is_not_interrupted():
    add_one = interrupted_compilation(_compiled.compiled)
    assert len(add_one.overloads) == 1
    assert add_one(1) == 2
    assert add_one(1.5) == 2.5


@compiled
def test_numba_alone_lets_it_be_interrupted():
    """The control."""
    assert len(interrupted_compilation(numba.njit).overloads) == 0


@compiled
def test_every_compiled_loop_is_protected():
    loops = [
        loop
        for module in (gp_loops, cell_loops)
        for loop in vars(module).values()
        if hasattr(loop, "py_func")
    ]
    assert len(loops) > 15
    assert all(loop.compile.__module__ == "partita._compiled" for loop in loops)

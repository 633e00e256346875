"""Interrupts at chosen moments: where Python looks for signals, or by a timer."""

import math
import random
import signal
import sys
import threading

#: What a call returns that was interrupted.
INTERRUPTED = object()
#: Keeps the frames of the last call that was interrupted, as an interactive session does: nothing
#: is mended by their end.
last_errors: list[BaseException] = []


class Interrupter:
    """Calls functions, and raises KeyboardInterrupt at a chosen one of the moments it may come at.

    Those are where a function of Python's is entered, and where one in C has returned: the
    interpreter looks for signals there (and where loops begin anew), nowhere else.
    """

    def __init__(self, place=None, files=("",)):
        #: Moments so far, and the one to interrupt at; none if None.
        self.moments, self.place = 0, place
        #: Only moments in files with such an ending count.
        self._files = files

    def _watch(self, frame, event, _):
        name = frame.f_code.co_filename
        # Compiled: Numba tells of it, but cannot take an error here. And Python's logging takes its
        # locks without `with`: an error between two of its lines leaves one locked for ever.
        if name.endswith(("_loops.py", "logging/__init__.py")):
            return
        if event in ("call", "c_return") and name.endswith(self._files):
            self.moments += 1
            if self.moments == self.place:
                raise KeyboardInterrupt

    def __call__(self, function, *args):
        """What the function returns, or INTERRUPTED."""
        before = sys.getprofile()
        try:
            sys.setprofile(self._watch)
            return function(*args)
        except KeyboardInterrupt as error:
            last_errors[:] = [error]
            return INTERRUPTED
        except SystemError as error:
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, KeyboardInterrupt):
                cause = cause.__cause__
            if cause is None:
                raise
            last_errors[:] = [error]  # what Numba makes of an interrupt while it loads a function
            return INTERRUPTED
        finally:
            sys.setprofile(before)


def moments_of(function, *args):
    """How many moments a call has that an interrupt may come at."""
    counter = Interrupter()
    counter(function, *args)
    return counter.moments


def cut_short(draw: random.Random, moments, function, *args):
    """A call that is interrupted at a moment of about so many: any number of digits as likely."""
    place = int(math.exp(draw.random() * math.log(moments)))
    return Interrupter(place)(function, *args)


class Timer:
    """Calls functions, and has real signals interrupt them after some time.

    To be entered, in the main thread, for the signal's handler.
    """

    def __init__(self):
        #: How many signals still raise.
        self._left = 0

    def __enter__(self):
        self._before = signal.signal(signal.SIGALRM, self._arrived)
        return self

    def __exit__(self, *error):
        self._left = 0
        signal.setitimer(signal.ITIMER_REAL, 0.0)  # else it would end the process
        signal.signal(signal.SIGALRM, self._before)

    def _arrived(self, number, frame):
        if self._left:
            self._left -= 1
            raise KeyboardInterrupt

    def __call__(self, signals, seconds, function, *args):
        """What the function returns, or INTERRUPTED; the signals are that many seconds apart."""
        result = INTERRUPTED
        try:
            try:
                self._left = signals
                signal.setitimer(signal.ITIMER_REAL, seconds, seconds if signals > 1 else 0.0)
                result = function(*args)
            finally:
                self._left = 0  # one that comes before this raises into the next line
        except (KeyboardInterrupt, SystemError) as error:
            # The latter is Python's own, where a signal came as another was being raised.
            self._left = 0
            last_errors[:] = [error]
            result = INTERRUPTED
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        return result


def is_free(lock):
    """Whether another thread could take a lock now."""
    answers = []

    def ask():
        answers.append(lock.acquire(timeout=0))
        if answers[0]:
            lock.release()

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return answers[0]

"""What a thousand machines give: the driver's loop against simulated workers.

    python benchmarks/machines.py messages --on ray|dask|processes
    python benchmarks/machines.py run [--workers 1000] [--seconds 600] [--message 0.0024]

`messages` prints what a task that computes nothing costs the driver.

`run` plays the driver's loop on a simulated clock where Partita's own time is real and a task costs
the driver what `messages` printed. It prints how busy 10 to 10,000 workers are, and what the driver
spends its time on.
"""

from __future__ import annotations

import argparse
import collections
import functools
import heapq
import math
import time

import numpy as np
from scale import CLUSTER, NOISE, executor_on, new_optimizer

from partita.optimize.rows import MESSAGES, SECONDS, TASKS, room_for
from partita.optimize.working import Manner, Piece, work


def nothing(x, y, count, seed):
    """Values that cost nothing."""
    return np.zeros(count)


def messages(options):
    """Print what a task costs the driver, four of which are under way at a time."""
    tasks, piece = options.tasks, Piece(0, {"x": 0.5, "y": 0.5}, 1, 0, 2)
    with executor_on(options.on) as executor:
        for timed in (False, True):
            thread, process, futures = time.thread_time(), time.process_time(), []
            for number in range(tasks):
                args = nothing, Manner(True, True), [piece], 1.0, number
                futures.append(executor.submit(work, *args))
                if len(futures) == 2 * TASKS:
                    futures.pop(0).result()
            for future in futures:
                future.result()
            if timed:
                own = 1e3 * (time.thread_time() - thread) / tasks
                whole = 1e3 * (time.process_time() - process) / tasks
                print(
                    f"{options.on}: {whole:.2f} ms of the driver's process for each task, of "
                    f"which its loop has {own:.2f} ms"
                )


class Machines:
    """The loop of `optimize.rows` against simulated workers.

    Evaluations take `each` seconds, give or take a fifth, and a task costs the driver `message`
    seconds, half of them when it is sent. On the simulated clock Partita's calls take as much as
    they use of the processor, so what the driver cannot keep up with makes workers wait.
    """

    def __init__(self, workers, each, seconds, message):
        self.workers, self.each, self.message = workers, each, message
        self.evals = int(workers * seconds / each)
        self.optimizer = new_optimizer(CLUSTER, "calibrated", self.evals, 0)
        self.rng = np.random.default_rng(0)
        self.room = room_for(self.evals, workers)
        self.longest = max(SECONDS, workers / MESSAGES)
        self.out, self.free = [], [0.0] * workers  # ends of tasks; when workers are free
        self.queue, self.rows, self.seen = collections.deque(), {}, collections.Counter()
        self.clock = self.computed = self.spent = self.told_at = 0.0
        self.queued = self.awaited = self.done = self.messages = 0

    def play(self, seconds):
        """Run for as long on the simulated clock: the share of it that workers compute."""
        while self.clock < seconds and self.done < self.evals:
            self.fill()
            self.clock = max(self.clock, self.out[0][0])
            while self.out and self.out[0][0] <= self.clock:
                _, number, count = heapq.heappop(self.out)
                self.seen[number] += count
                self.clock += self.message / 2
                self.messages += 1
            self.settle(self.clock - self.told_at >= SECONDS)
        return self.computed / (self.workers * self.clock)

    def fill(self):
        """Send tasks until every worker has one and another waits for it."""
        while len(self.out) < TASKS * self.workers:
            if not self.queue and not self.plan():
                return
            share = math.ceil(self.queued / (TASKS * self.workers - len(self.out)))
            share = min(share, self.room // (2 * TASKS * self.workers))
            share = max(1, min(share, int(self.longest / self.each)))
            number, left = self.queue[0]
            count = min(left, share)
            self.queue[0][1] -= count
            self.queued -= count
            if not self.queue[0][1]:
                self.queue.popleft()
            self.clock += self.message / 2
            took = count * self.each * self.rng.uniform(0.8, 1.2)
            start = max(self.clock, heapq.heappop(self.free))
            heapq.heappush(self.free, start + took)
            heapq.heappush(self.out, (start + took, number, count))

    def plan(self):
        """Tell all that has come and plan, if there is room."""
        room = self.room - self.awaited + self.seen.total()
        room = min(room, self.evals - self.done - self.awaited)
        if room <= 0:
            return False
        self.settle(True)
        plan = self.timed(lambda: self.optimizer.plan(room))
        for trial in plan:
            self.rows[trial.number] = [trial, trial.count]
            self.queue.append([trial.number, trial.count])
            self.queued, self.awaited = self.queued + trial.count, self.awaited + trial.count
        return True

    def settle(self, every):
        """Tell sums of rows that are complete, or of every row."""
        due = [n for n, count in self.seen.items() if every or count >= self.rows[n][1]]
        self.told_at = self.clock if every else self.told_at
        for number in due:
            (trial, left), count = self.rows[number], self.seen.pop(number)
            mean = CLUSTER.mean(trial.unit) + NOISE * self.rng.standard_normal() / count**0.5
            std = NOISE if count > 1 else None
            self.timed(functools.partial(self.optimizer.tell, trial, mean, std, count=count))
            self.rows[number][1] = left - count
            self.computed, self.done = self.computed + count * self.each, self.done + count
            self.awaited -= count

    def timed(self, call):
        """What a call of Partita returns; the clock goes on by its processor time."""
        start = time.process_time()
        answer = call()
        took = time.process_time() - start
        self.clock, self.spent = self.clock + took, self.spent + took
        return answer


def run(options):
    """Print how busy simulated workers are, and what the driver does."""
    new_optimizer(CLUSTER, "calibrated", 10, 0).plan(4)
    print(f"{options.seconds:.0f} s, {1e3 * options.message} ms of the driver for each task")
    for each in options.each:
        for workers in options.workers:
            game = Machines(workers, each, options.seconds, options.message)
            share = game.play(options.seconds)
            sending = game.messages * options.message / game.clock
            print(
                f"{each * 1e3:7g} ms an evaluation, {workers:6,} workers: {100 * share:3.0f} % "
                f"busy, {game.done / game.clock:14,.0f} evaluations and "
                f"{game.messages / game.clock:6,.0f} tasks a second; the driver spends "
                f"{100 * game.spent / game.clock:.0f} % on choices, {100 * sending:.0f} % on tasks",
                flush=True,
            )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("messages", "run"))
    parser.add_argument("--on", choices=("ray", "dask", "processes"), default="processes")
    parser.add_argument("--tasks", type=int, default=600)
    parser.add_argument("--workers", type=int, nargs="+", default=[10, 100, 1000, 10_000])
    parser.add_argument("--each", type=float, nargs="+", default=[1e-3, 1e-1])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--message", type=float, default=2.4e-3)
    options = parser.parse_args()
    {"messages": messages, "run": run}[options.what](options)


if __name__ == "__main__":
    main()

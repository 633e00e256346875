"""The service under load: latency of ask, pairs a second, and kill -9 in the middle of it.

python benchmarks/service.py latency [--told 100000] [--pairs 2000]
python benchmarks/service.py pairs [--clients 4] [--seconds 10] [--power]
python benchmarks/service.py kills [--kills 100] [--clients 4] [--every 1.0]
"""

import argparse
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.service import Server

import partita as pt

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def value(params, rng):
    return float((params["x"] - 0.3) ** 2 + (params["y"] - 0.6) ** 2 + rng.normal(0, 0.1))


def latency(options):
    with tempfile.TemporaryDirectory() as folder, Server(folder) as server:
        study = pt.connect(f"{server.url}/load", space=SPACE)
        rng = np.random.default_rng(0)
        for _ in range(0, options.told, 20_000):
            points = rng.random((min(20_000, options.told), 2))
            values = ((points - [0.3, 0.6]) ** 2).sum(axis=1) + rng.normal(0, 0.1, len(points))
            study.add({"x": points[:, 0], "y": points[:, 1]}, values)
        asks, tells = [], []
        for _ in range(options.pairs):
            start = time.perf_counter()
            trial = study.ask()
            asks.append(time.perf_counter() - start)
            start = time.perf_counter()
            study.tell(trial, value(trial.params, rng))
            tells.append(time.perf_counter() - start)
        for name, times in (("ask", asks), ("tell", tells)):
            ms = 1000 * np.array(times)
            p50, p99 = np.quantile(ms, [0.5, 0.99])
            figures = f"p50 {p50:.2f} ms, p99 {p99:.1f}, worst {ms.max():.0f}"
            print(f"{name} after {options.told:,}: {figures}")


def pairs(options):
    more = ("--durability", "power") if options.power else ()
    with tempfile.TemporaryDirectory() as folder, Server(folder, *more) as server:
        pt.connect(f"{server.url}/load", space=SPACE)
        end, made = time.monotonic() + options.seconds, []

        def work(seed):
            study, rng, n = pt.connect(f"{server.url}/load"), np.random.default_rng(seed), 0
            while time.monotonic() < end:
                trial = study.ask()
                study.tell(trial, value(trial.params, rng))
                n += 1
            made.append(n)

        joined([threading.Thread(target=work, args=(i,)) for i in range(options.clients)])
        print(f"{options.clients} clients: {sum(made) / options.seconds:.0f} pairs a second")


def kills(options):
    with tempfile.TemporaryDirectory() as folder, Server(folder) as server:
        pt.connect(f"{server.url}/load", space=SPACE)
        stop, told = threading.Event(), {}

        def work(seed):
            rng = np.random.default_rng(seed)
            study = pt.connect(f"{server.url}/load", patience=120)
            while not stop.is_set():
                trial = study.ask()
                told[trial.number] = value(trial.params, rng)
                study.tell(trial, told[trial.number])

        threads = [threading.Thread(target=work, args=(i,)) for i in range(options.clients)]
        for thread in threads:
            thread.start()
        for _ in range(options.kills):
            time.sleep(options.every)
            server.restart()
        stop.set()
        for thread in threads:
            thread.join()
        server.stop()
        trials = pt.Study.open(Path(folder) / "load.db").trials
        stored = dict(zip(trials.numbers.tolist(), trials.values.tolist(), strict=True))
        lost = sum(stored.get(number) != there for number, there in told.items())
        print(f"{options.kills} kills, {len(told):,} tells answered, {lost} lost, ", end="")
        print(f"{len(stored) - len(told)} trials that no client has")


def joined(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("latency", "pairs", "kills"))
    parser.add_argument("--told", type=int, default=10_000)
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--power", action="store_true")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--every", type=float, default=1.0)
    options = parser.parse_args()
    {"latency": latency, "pairs": pairs, "kills": kills}[options.what](options)


if __name__ == "__main__":
    main()

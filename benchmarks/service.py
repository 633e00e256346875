"""The service under load: latency of ask, pairs a second, kill -9, and the page of a large study.

python benchmarks/service.py latency [--told 100000] [--pairs 2000] [--pause 5]
python benchmarks/service.py pairs [--clients 4] [--told 10000] [--pairs 1000] [--power]
python benchmarks/service.py kills [--kills 100] [--clients 4] [--tells 100]
python benchmarks/service.py page [--told 1000000] [--keep FOLDER]

A study with many values is made of some asks, whose points are then evaluated again and again, as
the policy itself does with most of its asks. `page` needs Chromium and its driver.
"""

import argparse
import contextlib
import os
import shutil
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


def filled(path, told, asked=3000, many=50_000):
    """A study with values: `asked` trials that the policy chose, and their points again."""
    study, rng = pt.Study.open(path, SPACE), np.random.default_rng(0)
    while study.n_told < min(asked, told):
        trial = study.ask()
        study.tell(trial, value(trial.params, rng))
    points = np.array([[p["x"], p["y"]] for p in study.trials.params])
    while study.n_told < told:
        chosen = points[rng.integers(0, len(points), min(many, told - study.n_told))]
        values = ((chosen - [0.3, 0.6]) ** 2).sum(axis=1) + rng.normal(0, 0.1, len(chosen))
        study.add({"x": chosen[:, 0], "y": chosen[:, 1]}, values)
    study.close()


@contextlib.contextmanager
def studied(options):
    """A folder with a study of many values: a copy of the one that is kept, if it is kept."""
    with tempfile.TemporaryDirectory() as folder:
        name = "load" if options.keep is None else str(options.told)
        made = Path(options.keep or folder) / f"{name}.db"
        filled(made, options.told)  # goes on where it was interrupted
        if options.keep is not None:
            shutil.copy(made, Path(folder) / "load.db")
        yield folder


def latency(options):
    with studied(options) as folder, Server(folder) as server:
        study, rng = pt.connect(f"{server.url}/load"), np.random.default_rng(1)
        asks, direct, tells = [], [], []
        for i in range(2 * options.pairs):  # every other ask is computed while it waits
            start = time.perf_counter()
            trial = study.ask() if i % 2 else study.ask(fixed={})
            (asks if i % 2 else direct).append(time.perf_counter() - start)
            time.sleep(options.pause / 1000)  # the evaluation
            start = time.perf_counter()
            study.tell(trial, value(trial.params, rng))
            tells.append(time.perf_counter() - start)
        for name, times in (("ask", asks), ("ask, not prepared", direct), ("tell", tells)):
            ms = 1000 * np.array(times)
            p50, p90, p99 = np.quantile(ms, [0.5, 0.9, 0.99])
            figures = f"p50 {p50:.2f} ms, p90 {p90:.2f}, p99 {p99:.1f}, worst {ms.max():.0f}"
            print(f"{name} after {options.told:,}: {figures}")


def pairs(options):
    more = ("--durability", "power") if options.power else ()
    with studied(options) as folder, Server(folder, *more) as server:

        def work(seed, n):
            study, rng = pt.connect(f"{server.url}/load"), np.random.default_rng(seed)
            for _ in range(n):
                trial = study.ask()
                study.tell(trial, value(trial.params, rng))

        for pairs in (options.pairs // 4, options.pairs):  # the first to warm up
            own, before = time.process_time(), busy(server.process.pid)
            start, n = time.perf_counter(), pairs // options.clients
            clients = range(options.clients)
            joined([threading.Thread(target=work, args=(i, n)) for i in clients])
            seconds = time.perf_counter() - start
        inside = 1000 * (busy(server.process.pid) - before) / options.pairs
        outside = 1000 * (time.process_time() - own) / options.pairs
        print(f"{options.clients} clients, {pairs / seconds:.0f} pairs a second: ", end="")
        print(f"{inside:.2f} ms of processor time a pair in the service, ", end="")
        print(f"{outside:.2f} ms in the clients")


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
        for kill in range(1, options.kills + 1):  # in the midst of it, however busy the machine is
            while len(told) < kill * options.tells:
                time.sleep(0.002)
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


def page(options):
    from support.browser import Browser

    with studied(options) as folder, Server(folder) as server, Browser() as browser:
        connected = pt.connect(f"{server.url}/load")
        print(f"{connected.n_told:,} values; server {resident(server.process.pid):.0f} MB")
        for click in range(1, 4):
            browser.open("about:blank")
            browser.open(server.url)
            browser.until("return document.querySelector('tr.link')", patience=120)
            start = time.perf_counter()
            browser.click("load")
            browser.until(USABLE, patience=300)
            seconds = time.perf_counter() - start
            browser.until(COMPLETE, patience=300)
            whole = time.perf_counter() - start
            print(f"click {click}: figures, curves and table after {seconds:.1f} s, ", end="")
            print(f"map, slices and importance after {whole:.1f} s")
        browser.command("Performance.enable", {})
        metrics = browser.command("Performance.getMetrics", {})["metrics"]
        heap = {m["name"]: m["value"] for m in metrics}["JSHeapUsedSize"] / 1e6
        renderers = [resident(pid) for pid in renderers_of(browser.driver.pid)]
        print(f"server {resident(server.process.pid):.0f} MB, at most ", end="")
        print(f"{resident(server.process.pid, 'VmHWM'):.0f} MB; browser: heap {heap:.0f} MB, ")
        print(f"its page {max(renderers):.0f} MB resident, shared libraries included")


USABLE = """return document.querySelectorAll('.plot .u-over').length >= 1
  && document.querySelectorAll('tbody tr').length >= 20"""
COMPLETE = """return document.querySelectorAll('.slices .u-over').length >= 2
  && document.querySelectorAll('.bar').length >= 2
  && document.querySelector('.ramp span').textContent !== ''"""


def busy(pid):
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid, name="VmRSS"):
    """Memory of a process in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith(name))


def renderers_of(driver):
    """The processes of a browser that show pages."""
    parents, names = {}, {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(place.name)] = int(
                (place / "stat").read_text().rpartition(")")[2].split()[1]
            )
            names[int(place.name)] = (place / "cmdline").read_bytes()
        except OSError:  # it has ended
            continue

    def below(pid):
        while pid in parents:
            if pid == driver:
                return True
            pid = parents[pid]
        return False

    return [pid for pid, name in names.items() if b"--type=renderer" in name and below(pid)]


def joined(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("latency", "pairs", "kills", "page"))
    parser.add_argument("--told", type=int, default=10_000)
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--pause", type=float, default=5.0, help="milliseconds of an evaluation")
    parser.add_argument("--keep", metavar="FOLDER", help="where the large study is made and kept")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--power", action="store_true")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--tells", type=int, default=100, help="between two kills")
    options = parser.parse_args()
    {"latency": latency, "pairs": pairs, "kills": kills, "page": page}[options.what](options)


if __name__ == "__main__":
    main()

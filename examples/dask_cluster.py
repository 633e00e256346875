"""When to reorder, and up to how much: a warehouse simulated on a Dask cluster.

Every evening the stock is counted; at `reorder` or less it is filled up to `up_to`, which arrives
after two or three days. An evaluation is one random year: storage, orders and lost sales. The
cluster is a local one, or the one whose scheduler you name; --kill kills a worker on the way.
"""

import argparse
import os
import signal

import numpy as np
from distributed import Client, LocalCluster

import partita as pt


def cost_of_a_year(reorder, up_to):
    rng = np.random.default_rng()
    stock, arrivals, cost = up_to, {}, 0.0
    for day, demand in enumerate(rng.negative_binomial(4, 4 / 24, size=365)):
        stock += arrivals.pop(day, 0)
        sold = min(stock, demand)
        stock -= sold
        cost += 0.05 * stock + 4.0 * (demand - sold)
        if stock <= reorder and not arrivals:
            arrivals[day + rng.integers(2, 4)] = up_to - stock
            cost += 30.0
    return cost


def above(reorder, up_to):
    return up_to > reorder


def main(evals, scheduler, kill):
    def watch(now):
        if kill and now.n_evals == evals // 2:
            victim = next(iter(client.run(os.getpid).values()))
            os.kill(victim, signal.SIGKILL)
            print(f"killed worker {victim} after {now.n_evals} evaluations")

    cluster = scheduler or LocalCluster(n_workers=3, threads_per_worker=1, silence_logs=50)
    with Client(cluster) as client:
        executor = client.get_executor(pure=False)
        space = {"reorder": (0, 200, "int"), "up_to": (20, 600, "int")}
        settings = {"feasible": above, "executor": executor, "callback": watch, "in_flight": 6}
        result = pt.minimize(cost_of_a_year, space, n_evals=evals, **settings)
        print(result)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evals", type=int, default=600, help="years to simulate (600)")
    parser.add_argument("--scheduler", help="address of a cluster, such as tcp://host:8786")
    parser.add_argument("--kill", action="store_true", help="kill a worker half way (local only)")
    main(**vars(parser.parse_args()))

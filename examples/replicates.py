"""A shop's stock: millions of simulated quarters at few settings, and only sums are kept.

When fewer than `reorder` items are left, `order` items are bought, which come three days later.
Items in stock, each order and each lost sale cost. A simulation of `count` quarters at a time takes
microseconds for each, so it is worth making many at the same settings; Partita says where and how
many.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import partita as pt

DAYS, DELAY = 90, 3


def cost_of_a_quarter(reorder, order, count, seed):
    """The costs of `count` quarters, in euros, (count,)."""
    rng = np.random.default_rng(seed)
    stock, cost = np.full(count, float(reorder + order)), np.zeros(count)
    coming = np.zeros((DELAY, count))  # what arrives in one day, in two, ...
    for _ in range(DAYS):
        stock += coming[0]
        coming = np.roll(coming, -1, axis=0)
        coming[-1] = 0.0
        sold = rng.poisson(12.0, count)
        cost += 0.1 * stock + 4.0 * np.maximum(sold - stock, 0.0)
        stock = np.maximum(stock - sold, 0.0)
        buys = stock + coming.sum(axis=0) < reorder
        coming[-1] = order * buys
        cost += 40.0 * buys
    return cost


def main(evals, workers):
    space = {"reorder": (0, 150, "int"), "order": (10, 400, "int")}
    settings = {"n_evals": evals, "replicates": True}
    if workers:
        with ProcessPoolExecutor(workers) as pool:
            result = pt.minimize(cost_of_a_quarter, space, executor=pool, **settings)
    else:
        result = pt.minimize(cost_of_a_quarter, space, **settings)
    print(f"{result.nfev:,} quarters at {result.nit} settings")
    print(result.params, f"cost {result.fun:.1f} ± {result.upper - result.fun:.1f} a quarter")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evals", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=0, help="processes (0: none)")
    options = parser.parse_args()
    main(options.evals, options.workers)

"""A price and a stock under random demand: what a kiosk earns on a day, and how to earn most.

Every day the kiosk orders `stock` loaves at 1.10 each and sells them at `price`. How many people
come, and who of them finds the price fair, is random; loaves left at night are worth nothing. The
expected profit is a smooth hill, one day's profit a noisy guess at it.
"""

import argparse

import numpy as np

import partita as pt

COST = 1.10
PEOPLE = 120.0  # a day, on average
FAIR = (3.20, 0.55)  # what people would pay: mean and standard deviation of a normal law


def sold_share(price):
    """The share of people who buy at a price."""
    mean, spread = FAIR
    return 1 / (1 + np.exp(1.702 * (price - mean) / spread))


def profit(price, stock, rng, days=1):
    """The profits of a number of days."""
    people = rng.poisson(PEOPLE * rng.gamma(9, 1 / 9, size=days))  # weather: some days are slow
    wanted = rng.binomial(people, sold_share(price))
    return price * np.minimum(wanted, stock) - COST * stock


def main(evals):
    rng = np.random.default_rng(1)
    result = pt.maximize(
        lambda price, stock: float(profit(price, stock, rng)[0]),
        {"price": (1.0, 5.0), "stock": (10, 200, "int")},
        n_evals=evals,
        seed=1,
    )
    print(result)

    # What the answer is worth, over many more days than one could wait for.
    check = np.random.default_rng(2)
    tuned = profit(**result.params, rng=check, days=100_000).mean()
    rule = profit(price=2 * COST, stock=int(PEOPLE), rng=check, days=100_000).mean()
    tried = np.array(result.history.values)
    print(f"\nOver 100,000 days the answer earns {tuned:.1f} a day.")
    print(f"Twice the cost, and a loaf for everyone, earns {rule:.1f} a day.")
    print(f"The luckiest single day of the run earned {tried.max():.1f}: no guide to a good price.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evals", type=int, default=1000, help="days of trying (1000)")
    main(parser.parse_args().evals)

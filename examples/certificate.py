"""The certificate used to stop: how many visitors must a price test have? As many as it needs.

A shop shows each visitor one of 21 discounts; the visitor buys or does not. A test of fixed size
is too short or too long. Here the norm of the profit curve and the noise are bounded beforehand,
so bounds are proven, at any time: the test ends once no discount can be better than the one it
would choose by more than 5 % of the margin, with probability 0.95, however often one looks.
"""

import argparse

import numpy as np

import partita as pt

DISCOUNTS = np.linspace(0, 0.5, 21)
KERNEL = pt.Matern(nu=2.5, lengthscale=1.0)


def buys(discount):
    """Probability that a visitor buys: what the shop does not know."""
    return 0.7 / (1 + np.exp(4 - 14 * discount))


def main(evals):
    rng = np.random.default_rng(0)
    curve = (1 - DISCOUNTS) * buys(DISCOUNTS)  # mean profit of a visitor, in units of the margin
    norm = np.sqrt(curve @ np.linalg.solve(KERNEL(np.linspace(0, 1, 21)[:, None]), curve))
    print(f"norm of the curve: {norm:.2f}; the shop allowed for 2")

    result = pt.maximize(
        lambda discount: (1 - discount) * (rng.random() < buys(discount)),
        {"discount": (0.0, 0.5, 0.025)},
        n_evals=evals,
        tolerance=0.05,
        norm_bound=2.0,
        noise=pt.Bounded(0, 1),
        kernel=KERNEL,
        delta=0.05,
    )
    print(result)
    lost = curve.max() - curve[np.argmin(abs(DISCOUNTS - result.params["discount"]))]
    print(f"\n{result.nfev:,} visitors; what the choice really loses: {lost:.4f} of the margin,")
    print(f"at most {result.certificate:.4f} as certified.")
    each = 2 * 0.25 * np.log(2 * 21 / 0.05) / (0.05 / 2) ** 2
    print(f"Hoeffding's bound, every discount alike, needs {21 * each:,.0f} visitors.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evals", type=int, default=200_000, help="visitors at most (200000)")
    main(parser.parse_args().evals)

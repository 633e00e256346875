"""The step sizes of a Monte Carlo sampler, tuned for the least correlated draws.

Eight schools (Rubin 1981): effects theta drawn around a mean mu with spread tau. A random-walk
Metropolis sampler moves mu, log tau and theta in turn, each with a step of its own: small ones
creep, large ones are refused. A short run of a few chains says, with noise, how far they move.
"""

import argparse

import numpy as np

import partita as pt

EFFECT = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
ERROR = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
VARIANCE = np.array([28.0, 1.0, 18.0])  # about, in the posterior: mu, log tau, the mean of theta


def log_density(mu, log_tau, theta):
    """Posterior of every chain, up to a constant: flat in mu, half-Cauchy(25) in tau."""
    tau = np.exp(log_tau)
    squares = ((EFFECT - theta) / ERROR) ** 2 + ((theta - mu[:, None]) / tau[:, None]) ** 2
    return -0.5 * squares.sum(1) - 7 * log_tau - np.log1p((tau / 25) ** 2)


def sample(steps, sweeps, rng, chains=48):
    """Draws of mu, log tau and the mean of theta, (sweeps, 3, chains)."""
    state = [rng.normal(8, 3, chains), rng.normal(1.5, 0.4, chains), rng.normal(8, 5, (chains, 8))]
    now = log_density(*state)
    draws = np.empty((sweeps, 3, chains))
    for i in range(sweeps):
        for block, step in enumerate(steps):
            moved = [*state]
            moved[block] = state[block] + step * rng.normal(size=state[block].shape)
            new = log_density(*moved)
            taken = np.log(rng.random(chains)) < new - now
            now = np.where(taken, new, now)
            state[block][taken] = moved[block][taken]
        draws[i] = state[0], state[1], state[2].mean(1)
    return draws


def speed(steps, rng, sweeps=80):
    """Mean log of the squared move of a sweep, in units of the posterior variance."""
    moves = np.diff(sample(steps, sweeps, rng)[sweeps // 4 :], axis=0)
    return float(np.log(1e-4 + (moves**2).mean((0, 2)) / VARIANCE).mean())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evals", type=int, default=400, help="short runs to try (400)")
    rng = np.random.default_rng(0)
    space = {"mu": (0.1, 100, "log"), "log_tau": (0.01, 10, "log"), "theta": (0.1, 100, "log")}
    evals = parser.parse_args().evals
    result = pt.maximize(lambda **steps: speed([*steps.values()], rng), space, n_evals=evals)
    print(result)
    for name, steps in (("all steps 1", [1, 1, 1]), ("tuned steps", [*result.params.values()])):
        print(f"{name}: a sweep moves {np.exp(speed(steps, rng, sweeps=2000)):.3f} of the variance")

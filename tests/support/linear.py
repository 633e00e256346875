"""Slow twins of linear models, and a run that compares a policy with its twin."""

import warnings

import numpy as np

import partita as pt


def linear_kernel(c):
    return lambda a, b: c**2 + a @ b.T


def gp(kernel, alpha, X, y, at):
    """Mean and standard deviation of a Gaussian process at points, from scratch."""
    prior = np.array([kernel(x[None], x[None])[0, 0] for x in at])
    if not len(X):
        return np.zeros(len(at)), np.sqrt(prior)
    k = kernel(X, at)
    weights = np.linalg.solve(kernel(X, X) + alpha * np.eye(len(X)), k)
    return weights.T @ y, np.sqrt(np.maximum(prior - (k * weights).sum(axis=0), 0.0))


def first_best(values, priority):
    """Position of the highest value after rounding to 9 decimals, ties to the lowest priority."""
    rounded = np.round(values, 9)
    best = np.flatnonzero(rounded == rounded.max())
    return int(best[np.argmin(priority[best])])


def drive(policy, slow, f, steps, seed=0, batch=5):
    """Ask, tell, cancel at random, one by one and in bulk; every ask is checked."""
    rng = np.random.default_rng(seed)
    asked = []
    arms = slow.arms
    for step in range(steps):
        x = policy.ask()
        np.testing.assert_array_equal(x, slow.ask(), err_msg=f"step {step}")
        asked.append(x)
        while asked and (len(asked) > batch or rng.random() < 0.6):
            x = asked.pop(int(rng.integers(len(asked))))
            if rng.random() < 0.15:
                policy.cancel(x)
                slow.cancel(x)
            else:
                value = f(x) + rng.normal(scale=0.3)
                policy.tell(x, value)
                slow.tell(x, value)
        if rng.random() < 0.2:
            x = arms[rng.integers(len(arms))]
            asked = drop_first(asked, x)  # if it is pending, it is settled
            policy.tell(x, f(x))
            slow.tell(x, f(x))
        if rng.random() < 0.1:
            more = [*arms[rng.integers(0, len(arms), 3)]]
            if isinstance(policy.domain, pt.Box):
                more.append(rng.uniform(policy.domain.lower, policy.domain.upper))
            rows, asked = [*asked[: len(asked) // 2], *more], asked[len(asked) // 2 :]
            for row in more:
                asked = drop_first(asked, row)
            values = [f(x) for x in rows]
            policy.tell(np.array(rows), values)
            for x, value in zip(rows, values, strict=True):
                slow.tell(x, value)
        assert policy.pending == len(asked) == len(slow.pending)
    assert policy.told == len(slow.told)


def drop_first(asked, x):
    for i, other in enumerate(asked):
        if other.tobytes() == x.tobytes():
            return [*asked[:i], *asked[i + 1 :]]
    return asked


def plane(domain, seed=0):
    """A linear function with ‖θ‖ = 1, constant included."""
    theta = np.random.default_rng(seed).normal(size=domain.dim + 1)
    theta /= np.linalg.norm(theta)
    return lambda x: float(x @ theta[:-1] + theta[-1])


def failures(build, runs, steps, every=1):
    """Runs in which a bound on f failed at an arm, at any of the steps looked at; noise N(0, 1)."""
    failed = 0
    for seed in range(runs):
        rng = np.random.default_rng([seed, 77])
        policy, f = build(seed, rng)
        truth = np.array([f(x) for x in policy.domain.points])
        bad = False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pt.TheoryWarning)
            for step in range(steps):
                x = policy.ask()
                policy.tell(x, f(x) + rng.normal())
                if step % every == 0:
                    got = policy.predict(policy.domain.points)
                    bad = bad or bool(((truth < got.lower) | (truth > got.upper)).any())
        failed += bad
    return failed

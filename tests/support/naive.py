"""Naive twins of the compiled loops, by the textbook: what the fast ones are held to."""

import numpy as np

from partita.model.kernels import Matern


def kernel_matrix(m, seed):
    """A kernel matrix (m, m) of random points."""
    points = np.random.default_rng(seed).random((m, 2))
    return Matern(1.5, 0.3)(points)


def posterior(prior, where, values, noises):
    """Mean, covariance and gain of a Gaussian vector."""
    gram = prior[np.ix_(where, where)] + np.diag(noises)
    inverse = np.linalg.inv(gram)
    across = prior[:, where]
    whitened = prior[np.ix_(where, where)] / np.sqrt(np.outer(noises, noises))
    gain = 0.5 * np.linalg.slogdet(np.eye(len(where)) + whitened)[1]
    return across @ inverse @ values, prior - across @ inverse @ across.T, gain


def best_upper(mean, std, priority, width, resolution):
    """The highest rounded index, its candidate and that one's priority."""
    rounded = [round((m + width * s) * resolution) for m, s in zip(mean, std, strict=True)]
    ties = [i for i, r in enumerate(rounded) if r == max(rounded)]
    choice = min(ties, key=lambda i: priority[i])
    return rounded[choice] / resolution, choice, priority[choice]


def children(offsets):
    """Pairs of a child's number and a point's, for offsets (n, d) in units of child sides."""
    return {
        (code, i)
        for i, offset in enumerate(offsets)
        for code in range(2 ** offsets.shape[1])
        if all((o >= 1 if code >> c & 1 else o <= 1) for c, o in enumerate(offset))
    }

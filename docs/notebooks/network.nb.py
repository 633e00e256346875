# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Tune a network written in NumPy
#
# A small neural network, trained by stochastic gradient descent in plain NumPy, separates two
# spirals. Its validation loss is noisy: another seed gives other weights, other batches, another
# loss. Five parameters of the training are tuned: two on a log scale, one whole number, one
# fraction and one choice.

# %%
# %matplotlib inline
import matplotlib.pyplot as plt
import numpy as np

import partita as pt

# %% [markdown]
# ## Data and model


# %%
def spirals(n, rng):
    """Two spirals with noise: points (n, 2) and labels 0 or 1."""
    label = rng.integers(2, size=n)
    turn = 3 * np.pi * np.sqrt(rng.random(n))
    angle = turn + np.pi * label
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1) * turn[:, None] / (3 * np.pi)
    return points + rng.normal(0, 0.03, size=(n, 2)), label


def raised(points):
    """The points with sines and cosines of their coordinates, which makes spirals easier."""
    return np.concatenate([points, np.sin(4 * points), np.cos(4 * points)], axis=1)


def train(rate, decay, hidden, momentum, activation, *, points, labels, rng, steps=200):
    """The weights after `steps` batches of 64 points."""
    inputs, n = raised(points), len(points)
    weights = [rng.normal(0, 1 / np.sqrt(6), (6, hidden)), np.zeros(hidden)]
    weights += [rng.normal(0, 1 / np.sqrt(hidden), hidden), np.zeros(1)]
    moving = [np.zeros_like(weight) for weight in weights]
    for _ in range(steps):
        rows = rng.integers(n, size=64)
        x, y = inputs[rows], labels[rows]
        before = x @ weights[0] + weights[1]
        h = np.tanh(before) if activation == "tanh" else np.maximum(before, 0)
        error = probability(h @ weights[2] + weights[3]) - y  # gradient of the loss in the output
        slope = 1 - h**2 if activation == "tanh" else before > 0
        back = np.outer(error, weights[2]) * slope
        gradients = [x.T @ back, back.sum(0), h.T @ error, error.sum(keepdims=True)]
        for i, gradient in enumerate(gradients):
            moving[i] = momentum * moving[i] - rate * (gradient / 64 + decay * weights[i])
            weights[i] = weights[i] + moving[i]
    return weights


def probability(score):
    return 0.5 * (1 + np.tanh(score / 2))  # the logistic function, without overflow


def predict(weights, points, activation):
    before = raised(points) @ weights[0] + weights[1]
    h = np.tanh(before) if activation == "tanh" else np.maximum(before, 0)
    return probability(h @ weights[2] + weights[3])


def log_loss(chance, labels):
    return float(-np.mean(np.log(np.clip(np.where(labels == 1, chance, 1 - chance), 1e-6, 1))))


# %% [markdown]
# ## One noisy evaluation
#
# A short training from a random start, scored on validation data. A training that diverges raises
# an error: Partita counts it as failed and tries points near it less often.

# %%
data = np.random.default_rng(0)
points, labels = spirals(600, data)
valid_points, valid_labels = spirals(400, data)
rng = np.random.default_rng(1)


def loss(activation, **params):
    with np.errstate(all="ignore"):
        given = {"points": points, "labels": labels, "rng": rng}
        weights = train(**params, activation=activation, **given)
        chance = predict(weights, valid_points, activation)
    if not np.isfinite(chance).all():
        raise ArithmeticError("the training diverged")
    return log_loss(chance, valid_labels)


space = {
    "rate": (1e-3, 10.0, "log"),
    "decay": (1e-6, 1e-1, "log"),
    "hidden": (4, 32, "int"),
    "momentum": (0.0, 0.98),
    "activation": ["tanh", "relu"],
}
today = {"rate": 0.1, "decay": 1e-4, "hidden": 16, "momentum": 0.0, "activation": "tanh"}
result = pt.minimize(loss, space, n_evals=150, x0=today)
print(result)

# %% [markdown]
# ## What mattered
#
# `result.plot()` shows the run, and the mean of the model along each parameter with the others as
# in the answer. A flat curve is a parameter that hardly matters there.

# %%
result.plot()

# %% [markdown]
# ## Before and after
#
# Both settings are trained five times, from fresh random starts, and scored on data that no
# training has seen.

# %%
test_points, test_labels = spirals(2_000, np.random.default_rng(2))


def tested(params, seed):
    fresh = np.random.default_rng(seed)
    weights = train(**params, points=points, labels=labels, rng=fresh)
    return weights, log_loss(predict(weights, test_points, params["activation"]), test_labels)


before = [tested(today, seed)[1] for seed in range(5)]
after = [tested(result.params, seed)[1] for seed in range(5)]
print(f"today {np.mean(before):.3f}, tuned {np.mean(after):.3f}: mean loss over five trainings")
assert np.mean(after) < np.mean(before)

# %%
side = np.linspace(-1.15, 1.15, 120)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
fig, panels = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained", sharey=True)
for axes, params, title in ((panels[0], today, "today"), (panels[1], result.params, "tuned")):
    chance = predict(tested(params, 0)[0], grid, params["activation"])
    axes.contourf(side, side, chance.reshape(120, 120), levels=20, cmap="RdBu_r", alpha=0.7)
    colours = {"c": test_labels[:400], "cmap": "RdBu_r", "edgecolors": "k", "linewidths": 0.2}
    axes.scatter(*test_points[:400].T, s=5, **colours)
    axes.set(title=title, aspect="equal")
plt.show()

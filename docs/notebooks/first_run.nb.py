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
# # Look into a first run
#
# [Your first run](../tutorials/first-run.md) minimises a noisy function and explains the numbers of
# the result. This notebook draws them: what was evaluated, what the model has learned, and how the
# certificate fell.

# %%
# %matplotlib inline
import matplotlib.pyplot as plt
import numpy as np

import partita as pt

# %% [markdown]
# The function stands in for a training: two parameters, and another value each time. Because it is
# a formula we know its average, which a user does not.


# %%
def average(lr, depth):
    return np.log10(lr / 0.003) ** 2 + 0.02 * (depth - 6) ** 2


rng = np.random.default_rng(0)


def loss(lr, depth):
    return average(lr, depth) + rng.normal(0, 0.1)


space = {"lr": (1e-4, 1e-1, "log"), "depth": (1, 12, "int")}
result = pt.minimize(loss, space, n_evals=200)
print(result)

# %% [markdown]
# `result.plot()` draws the run in one figure: every value, the answer's mean with its bounds, the
# certificate, and what the model knows of the function.

# %%
result.plot()

# %% [markdown]
# ## Where it looked
#
# Each dot is one evaluation. Early ones (dark) are spread over the space. Later ones (light) gather
# where the average loss is lowest.

# %%
trials = result.history.params
lr = np.array([params["lr"] for params in trials])
depth = np.array([params["depth"] for params in trials])
jitter = np.random.default_rng(1).uniform(-0.3, 0.3, len(depth))  # so that dots do not hide others

lrs, depths = np.geomspace(1e-4, 1e-1, 60), np.arange(1, 13)
truth = average(lrs[:, None], depths[None, :])

fig, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
axes.contour(lrs, depths, truth.T, levels=12, colors="0.8", linewidths=0.8)
dots = axes.scatter(lr, depth + jitter, c=np.arange(len(lr)), s=14, cmap="viridis")
axes.plot(result.params["lr"], result.params["depth"], "r*", markersize=14, label="the answer")
axes.set(xscale="log", xlabel="lr", ylabel="depth", title="200 evaluations")
fig.colorbar(dots, label="number of the evaluation")
axes.legend(loc="upper left")
plt.show()

# %% [markdown]
# ## What the model knows
#
# `result.optimizer.predict` gives the mean and its bounds anywhere. Here it is compared with the
# truth at `depth = 6`. The band is narrow where there are many evaluations and wide elsewhere.

# %%
there = result.optimizer.predict([{"lr": float(value), "depth": 6} for value in lrs])

fig, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
axes.fill_between(lrs, there.lower, there.upper, alpha=0.25, label="bounds of the mean")
axes.plot(lrs, there.mean, label="mean of the model")
axes.plot(lrs, average(lrs, 6), "k--", linewidth=1, label="truth")
at_six = depth == 6
values = np.asarray(result.history.values)
axes.plot(lr[at_six], values[at_six], ".", color="0.5", markersize=4, label="values")
axes.set(xscale="log", xlabel="lr", ylabel="loss", title="depth = 6")
axes.legend()
plt.show()

inside = np.mean((there.lower <= average(lrs, 6)) & (average(lrs, 6) <= there.upper))
print(f"the truth lies between the bounds at {inside:.0%} of these points")

# %% [markdown]
# ## The luckiest value is not the answer
#
# The smallest of 200 noisy values is small by chance. The answer's mean is an estimate of what you
# get on average, and here we can check it.

# %%
luckiest = int(np.argmin(values))
there = average(**trials[luckiest])
print(f"smallest value     {values[luckiest]:+.3f}, average there {there:.3f}")
print(f"mean at the answer {result.fun:+.3f}, average there {average(**result.params):.3f}")
assert values[luckiest] < result.fun
assert average(**result.params) < 0.05

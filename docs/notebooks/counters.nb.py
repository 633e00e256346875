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
# # How many counters should be open?
#
# A post office chooses how many counters to staff, and at how many waiting people one more counter
# opens. Staff costs money, and so does waiting. One simulated day is quick and very noisy. This
# notebook finds the cheapest setting, draws what was learned, and checks the answer against brute
# force.

# %%
# %matplotlib inline
import matplotlib.pyplot as plt
import numpy as np

import partita as pt

# %% [markdown]
# ## The simulation
#
# Customers come at random, more of them at noon. Serving one takes some minutes. A counter costs 18
# an hour, and an hour of waiting costs 25. An extra counter opens when the queue reaches `opens_at`
# people, and costs half as much again.

# %%
MINUTES = 8 * 60
ARRIVALS = 1.1 + 0.9 * np.sin(np.linspace(0, np.pi, MINUTES))  # customers a minute


def cost_of_a_day(counters, opens_at, rng):
    """Cost of one simulated day, minute by minute."""
    arrivals = rng.poisson(ARRIVALS * rng.gamma(80, 1 / 80))  # some days are busier than others
    served = rng.random((MINUTES, 12)) < 0.3  # a service ends within a minute with chance 0.3
    queue, cost = 0, 0.0
    for minute in range(MINUTES):
        queue += arrivals[minute]
        extra = 2 if queue >= opens_at else 0
        open_now = counters + extra
        cost += counters * 18 / 60 + extra * 27 / 60
        queue -= min(queue, int(served[minute, :open_now].sum()))
        cost += queue * 25 / 60
    return cost


rng = np.random.default_rng(0)
same = [round(cost_of_a_day(6, 10, rng)) for _ in range(8)]
print("eight days with the same setting:", same)

# %% [markdown]
# ## One day is one evaluation
#
# There is no need to average days first. A day that is bad by chance is part of the average cost
# here, so every value must count as it is: `outliers=keep`.
# [The tutorial](../tutorials/noisy-simulation.md) explains why.

# %%
space = {"counters": (1, 10, "int"), "opens_at": (1, 30, "int")}
result = pt.minimize(
    lambda counters, opens_at: cost_of_a_day(counters, opens_at, rng),
    space,
    n_evals=300,
    policy="calibrated-ucb[outliers=keep]",
)
print(result)

# %% [markdown]
# ## How sure is it?
#
# The mean of the answer and its bounds as the run went on. The certificate says how much cheaper
# any other setting can still be.

# %%
history = result.history
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
left.plot(np.arange(1, 301), history.values, ".", color="0.8", markersize=3, label="single days")
left.fill_between(history.evaluations, history.lower, history.upper, alpha=0.3)
left.plot(history.evaluations, history.best_mean, label="mean of the answer, with bounds")
left.set(ylim=(1200, 3500), xlabel="evaluations", ylabel="cost of a day")
left.legend()
right.plot(history.evaluations, history.certificate)
right.set(xlabel="evaluations", ylabel="certificate", yscale="log")
plt.show()

# %% [markdown]
# ## The map that 300 days have drawn
#
# The mean of the model at all 300 settings, and how often each was tried. Settings that are clearly
# bad were tried once or not at all.

# %%
settings = [{"counters": c, "opens_at": o} for c in range(1, 11) for o in range(1, 31)]
mean = result.optimizer.predict(settings).mean.reshape(10, 30)
tried = np.zeros((10, 30))
for params in history.params:
    tried[params["counters"] - 1, params["opens_at"] - 1] += 1

fig, panels = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained", sharey=True)
extent = (0.5, 30.5, 0.5, 10.5)
for axes, shown, title in (
    (panels[0], np.log10(np.maximum(mean, 1)), "log10 of the mean cost, by the model"),
    (panels[1], np.log10(1 + tried), "log10 of 1 + evaluations"),
):
    image = axes.imshow(shown, origin="lower", aspect="auto", extent=extent)
    axes.plot(result.params["opens_at"], result.params["counters"], "r*", markersize=13)
    axes.set(title=title, xlabel="opens_at")
    fig.colorbar(image)
panels[0].set_ylabel("counters")
plt.show()

# %% [markdown]
# ## Check the answer
#
# A simulation can be run again with fresh random numbers. Here are 200 days at the answer and at a
# plausible rule: enough counters for the busiest hour, and no extra ones.


# %%
def average_cost(counters, opens_at, days=200):
    check = np.random.default_rng(99)
    costs = [cost_of_a_day(counters, opens_at, check) for _ in range(days)]
    return np.mean(costs), np.std(costs, ddof=1) / np.sqrt(days)


tuned, tuned_error = average_cost(**result.params)
rule, rule_error = average_cost(counters=8, opens_at=30)
print(f"the answer costs {tuned:.0f} ± {tuned_error:.0f} a day")
print(f"the rule costs {rule:.0f} ± {rule_error:.0f} a day")
assert tuned < rule

"""A price for every hour and kind of customer: a context is given, the price is chosen."""

import math
import random

import partita as pt

drawn = random.Random(0)


def revenue(price: float, hour: float, segment: str) -> float:
    """What one visitor brings, on average."""
    middle = (4.0 if segment == "new" else 6.5) + math.sin(2 * math.pi * hour / 24)
    return price / (1 + math.exp(2 * (price - middle)))


optimizer = pt.Optimizer(
    {"price": (1, 10)},
    context={"hour": (0, 24), "segment": ["new", "old"]},
    direction="maximize",
)
for _ in range(120):
    visitor = {"hour": drawn.uniform(0, 24), "segment": drawn.choice(["new", "old"])}
    trial = optimizer.ask(context=visitor)
    optimizer.tell(trial, revenue(**trial.params, **trial.context) + drawn.gauss(0, 0.3))

for segment in ("new", "old"):
    best = optimizer.recommend(context={"hour": 12, "segment": segment})
    print(f"{segment} at noon: price {best.params['price']:.2f}, revenue {best.mean:.2f}")

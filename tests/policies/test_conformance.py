"""Every registered method passes the suite that users run on their own: a test class for each."""

import functools

from partita.policies.registry import METHODS
from partita.testing import PolicyTests, Promises

#: Steps in which growth is measured: what grows with each shows after fewer than the usual 10,000.
#: The calibrated policy needs more to have played every arm.
STEPS, MORE_STEPS = 4_000, {"calibrated-ucb": 10_000}

for method in METHODS.values():
    name = "Test" + method.name.title().replace("-", "")  # such as TestPiGpUcb
    body = {
        "policy": functools.partial(method.load(), **method.settings),
        "promises": Promises(
            domains=method.domains,
            steps=MORE_STEPS.get(method.name, STEPS),
            **method.promises,
        ),
    }
    globals()[name] = type(name, (PolicyTests,), body)

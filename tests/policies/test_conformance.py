"""Every registered method passes the suite that users run on their own: a test class for each."""

import functools

from partita.policies.registry import METHODS
from partita.testing import PolicyTests, Promises

#: Steps in which growth is measured where they are slow, instead of 10,000.
STEPS = {"bkb": 4_000, "igp-ucb": 4_000}

for method in METHODS.values():
    name = "Test" + method.name.title().replace("-", "")  # such as TestPiGpUcb
    body = {
        "policy": functools.partial(method.load(), **method.settings),
        "promises": Promises(
            domains=method.domains, steps=STEPS.get(method.name, 10_000), **method.promises
        ),
    }
    globals()[name] = type(name, (PolicyTests,), body)

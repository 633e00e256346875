"""Every registered method passes the suite that users run on their own: a test class for each."""

import functools

from partita.policies.registry import METHODS
from partita.testing import PolicyTests, Promises

for method in METHODS.values():
    name = "Test" + method.name.title().replace("-", "")  # such as TestPiGpUcb
    body = {
        "policy": functools.partial(method.load(), **method.settings),
        "promises": Promises(domains=method.domains, **method.promises),
    }
    globals()[name] = type(name, (PolicyTests,), body)

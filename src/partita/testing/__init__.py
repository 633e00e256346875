"""The conformance suite: what every policy must pass, for Partita's own and for users'.

Inherit `PolicyTests` in a test module, or the classes it is made of, and pytest runs each rule on
each kind of domain. `check_policy(MyPolicy)` runs the same without pytest, which is never imported.
`Promises` says what a policy promises.
"""

from __future__ import annotations

from .growth import GrowthTests
from .learning import LearningTests
from .pending import PendingTests
from .points import AskTellTests
from .promises import Promises
from .refusals import RefusalTests
from .repeats import RepeatTests
from .rules import ConformanceError, Failure
from .suite import Check, PolicyTests, check_policy, checks
from .values import ValueTests

__all__ = [
    "AskTellTests",
    "Check",
    "ConformanceError",
    "Failure",
    "GrowthTests",
    "LearningTests",
    "PendingTests",
    "PolicyTests",
    "Promises",
    "RefusalTests",
    "RepeatTests",
    "ValueTests",
    "check_policy",
    "checks",
]

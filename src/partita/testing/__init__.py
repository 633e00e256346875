"""The conformance suite: what every policy must pass, for Partita's own and for users'.

`check_policy(MyPolicy)` runs it all; `checks(MyPolicy)` lists the checks one by one, for pytest.
`Promises` says what a policy promises. No test framework is needed.
"""

from __future__ import annotations

from .promises import Promises
from .suite import Check, ConformanceError, Failure, check_policy, checks

__all__ = ["Check", "ConformanceError", "Failure", "Promises", "check_policy", "checks"]

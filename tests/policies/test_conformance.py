"""Every registered method passes the conformance suite that users run on their own."""

import functools

import pytest

from partita.policies.registry import METHODS
from partita.testing import Promises, checks


def of_method(method):
    make = functools.partial(method.load(), **method.settings)
    return checks(make, Promises(domains=method.domains, **method.promises))


ALL = [
    pytest.param(check, id=f"{method.name}-{check}")
    for method in METHODS.values()
    for check in of_method(method)
]


@pytest.mark.parametrize("check", ALL)
def test_conformance(check):
    check.run()

"""Functions of other tests, called here with more cases."""

import functools
import importlib.util
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]


@functools.cache
def _module(place):
    path = TESTS / place
    if not path.exists():
        return None
    name = "soak_" + place.removesuffix(".py").replace("/", "_")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def function_of(place, name):
    """A function of a file of the tests, such as "study/test_edited.py"; None if there is none."""
    return getattr(_module(place), name, None)

"""How numbers, parameters and lists are written."""

import math

import numpy as np
import pytest

from partita._text import aligned, bounded, listed, number, params_text


@pytest.mark.parametrize(
    ("words", "text"),
    [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", 3], "a, b and 3")],
)
def test_lists_of_words(words, text):
    assert listed(words) == text
    assert listed(words, "or") == text.replace(" and ", " or ")


def test_values_and_their_bounds():
    assert number(1 / 3) == "0.333333"
    assert number(-math.inf) == "-inf"
    assert bounded(1 / 3, 0.25, 0.5) == "0.333333, between 0.25 and 0.5"
    assert bounded(1 / 3, 0.25, 0.5, digits=2) == "0.33, between 0.25 and 0.5"
    assert bounded(2.0, None, None) == bounded(2.0, -math.inf, 3.0) == "2"


def test_parameters():
    assert params_text({"rate": 1 / 3, "n": 12345678, "on": True}) == (
        "rate = 0.333333, n = 12345678, on = True"
    )
    assert params_text(np.array([1 / 3, 2.0])) == params_text([1 / 3, 2.0]) == "[0.333333, 2]"


def test_tables_are_aligned():
    assert aligned([["a", "long"], ["wide", "b"]]) == [
        "| a    | long |",
        "| ---- | ---- |",
        "| wide | b    |",
    ]

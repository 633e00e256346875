"""`--param`: what each form means, and what is refused."""

import numpy as np
import pytest

from partita.commands.params import read_param, read_params
from partita.errors import InvalidInput
from partita.space import as_space


@pytest.mark.parametrize(
    ("text", "name", "spec"),
    [
        ("x:0:1", "x", (0, 1)),
        ("x:-1.5:2e3", "x", (-1.5, 2000)),
        ("lr:1e-4:1e-1:log", "lr", (1e-4, 1e-1, "log")),
        ("depth:1:12:int", "depth", (1, 12, "int")),
        ("n:1e1:1e6:int:log", "n", (10, 1_000_000, "int", "log")),
        ("n:1:100:log:int", "n", (1, 100, "log", "int")),
        ("x:0:1:0.25", "x", (0, 1, 0.25)),
        ("x:0.0:10:5", "x", (0.0, 10, 5)),
        ("x:0.2:0.3:0.1", "x", (0.2, 0.3, 0.1)),
        ("x:0.9:1.2:0.3", "x", (0.9, 1.2, 0.3)),
        ("n:0:10:5", "n", (0, 10, 5, "int")),
        ("n:0:10:int:5", "n", (0, 10, 5, "int")),
        ("kind:adam,sgd", "kind", ["adam", "sgd"]),
        ("url:http://a:80,http://b:80", "url", ["http://a:80", "http://b:80"]),
        ("flag:-O1,-O2,a b", "flag", ["-O1", "-O2", "a b"]),
        ("fast:bool", "fast", bool),
        ("größe:0:1", "größe", (0, 1)),
    ],
)
def test_forms(text, name, spec):
    assert read_param(text) == (name, spec)
    assert as_space({name: spec}).dim >= 1


def test_a_whole_step_makes_whole_numbers_of_the_space():
    space = as_space(read_params(["n:0:10:5", "x:0:1:0.5"]))
    values = {(type(v), v) for u in (0.0, 0.5, 1.0) for v in space.decode(np.full(2, u)).values()}
    assert values == {(int, 0), (int, 5), (int, 10), (float, 0.0), (float, 0.5), (float, 1.0)}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x", "a name and its values are needed"),
        ("x:", "a name and its values are needed"),
        (":0:1", "'' is not a name"),
        ("1x:0:1", "'1x' is not a name"),
        ("a-b:0:1", "'a-b' is not a name"),
        ("x:5", "one value is not a range"),
        ("x:adam", "one value is not a range"),
        ("x:a:1", "'a' is not a number"),
        ("x:0:1:logarithm", "'logarithm' is not a number"),
        ("x:0:inf", "inf is not finite"),
        ("x:nan:1", "nan is not finite"),
        ("x:2:1", "2 is not below 1"),
        ("x:1:1", "1 is not below 1"),
        ("x:0:1:log", "both bounds must be above 0"),
        ("x:-1:1:log", "both bounds must be above 0"),
        ("x:0.5:3:int", "with int, every number must be an integer"),
        ("x:0:3:int:0.5", "with int, every number must be an integer"),
        ("x:0:1:0", "the step must be above 0 and at most 1"),
        ("x:0:1:2", "the step must be above 0 and at most 1"),
        ("x:0.2:0.3:0.11", "the step must be above 0 and at most 0.1"),
        ("x:0:1:0.1:0.2", "may each be given only once"),
        ("x:1:2:log:log", "may each be given only once"),
        ("x:1:2:0.1:log", "a step cannot be combined with log"),
        ("x:a,,b", "a choice is empty"),
        ("x:a,", "a choice is empty"),
        ("x:a,b,a", "'a' is given twice"),
    ],
)
def test_refusals_quote_the_option_and_list_the_forms(text, why):
    with pytest.raises(InvalidInput) as refusal:
        read_params([text])
    message = str(refusal.value)
    assert message.startswith(f"--param {text}: ")
    assert why in message
    assert "NAME:LOW:HIGH:log" in message


def test_several():
    assert list(read_params(["b:0:1", "a:x,y"])) == ["b", "a"]
    with pytest.raises(InvalidInput, match=r"--param b:1:2: b is already given"):
        read_params(["b:0:1", "b:1:2"])
    with pytest.raises(InvalidInput, match=r"no parameters: give --param"):
        read_params([])

"""Certificates say what they are: a proof, or an estimate and how often such ones held."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

import partita as pt
from partita.optimize.figure import figure_of
from partita.optimize.wording import certificate_says, such_held
from partita.policies.held import MEASURED, held_text

FACT = "no other point is better by more"


def test_only_what_is_certain_is_worded_as_a_fact() -> None:
    for guarantee in ("proven", "published"):
        assert certificate_says(0.1, guarantee) == FACT
        assert such_held(0.1, guarantee, 2) is None
    for guarantee in ("calibrated", "bayesian", "none", "my own"):
        assert certificate_says(0.1, guarantee) == f"an estimate: {FACT}"
    assert certificate_says(math.inf, "calibrated") == "not known"
    assert such_held(math.inf, "calibrated", 2) is None


def test_the_share_is_that_of_the_next_measured_dimension() -> None:
    two = MEASURED[2]
    assert f"held in {two.held} of {two.of} (d = 2), in {two.held_spiky} of" in held_text(2)
    assert held_text(4) == held_text(5)
    assert "narrow peak" not in held_text(6)
    assert held_text(7) == "not measured in more than 6 dimensions"


def test_results_say_it_in_text_in_html_and_in_figures() -> None:
    estimated = pt.minimize(lambda x: float(x[0] ** 2), [(-1, 1)], n_evals=25)
    assert math.isfinite(estimated.certificate)
    for shown in (repr(estimated), estimated._repr_html_(), estimated.optimizer._repr_html_()):
        assert f"an estimate: {FACT}" in shown
        assert held_text(1) in shown
    assert figure_of(estimated).progress.says == f"an estimate: {FACT}"
    proven = pt.minimize(
        lambda x: x**2,
        {"x": np.linspace(-1, 1, 9).tolist()},
        n_evals=15,
        norm_bound=2.0,
        noise=pt.Gaussian(0.1),
        kernel=pt.Matern(1.5, 0.5),
    )
    for shown in (repr(proven), proven._repr_html_()):
        assert f"({FACT})" in shown
        assert "in tests" not in shown
    assert figure_of(proven).progress.says == FACT


def test_the_documented_table_is_the_one_in_the_code() -> None:
    page = (Path(__file__).parents[2] / "docs" / "calibrated.md").read_text(encoding="utf-8")
    section = page.partition("## When the certificate fails")[2].partition("\n## ")[0]
    rows = re.findall(
        r"^\| (\d+) \| (\d+) of (\d+) \| .*? \| (\d+ of \d+|–) \|", section, re.MULTILINE
    )
    documented = {}
    for dim, held, of, spiky in rows:
        more = (0, 0) if spiky == "–" else tuple(map(int, spiky.split(" of ")))
        documented[int(dim)] = (int(held), int(of), *more)
    assert documented == {dim: tuple(row) for dim, row in MEASURED.items()}


@pytest.mark.parametrize("dim", MEASURED)
def test_shares_are_shares(dim: int) -> None:
    row = MEASURED[dim]
    assert 0 <= row.held <= row.of
    assert 0 <= row.held_spiky <= row.of_spiky

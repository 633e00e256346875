"""The seed of a study: given, drawn, or as it was."""

import pytest

import partita as pt
from partita.errors import InvalidInput
from partita.study import Study

PLANE = [(0, 1), (0, 1)]


def asks(player, count=4):
    return [player.ask().params.tolist() for _ in range(count)]


def test_a_drawn_seed_is_kept(tmp_path):
    study = Study.open(tmp_path / "a.db", PLANE, seed=None)
    other = Study.open(tmp_path / "b.db", PLANE, seed=None)
    assert study.seed != other.seed
    asked = asks(study)
    assert asked == asks(pt.Optimizer(PLANE, seed=study.seed))
    assert asked != asks(other)
    for seed in ({"seed": None}, {}, {"seed": study.seed}):
        assert Study.open(tmp_path / "a.db", PLANE, **seed).seed == study.seed
    with pytest.raises(InvalidInput, match=f"seed is {study.seed} in the study, but 0 was given"):
        Study.open(tmp_path / "a.db", PLANE, seed=0)


def test_the_seed_is_0_if_none_is_given(tmp_path):
    study = Study.open(tmp_path / "a.db", PLANE)
    assert study.seed == 0
    assert asks(study) == asks(pt.Optimizer(PLANE))
    assert asks(pt.Optimizer(PLANE, seed=None)) != asks(pt.Optimizer(PLANE, seed=None))

import pytest

from partita.policies.baselines import igp_ucb


@pytest.fixture(autouse=True)
def few_candidates(monkeypatch):
    """A step of IGP-UCB on a box costs the square of its candidates; few show the same."""
    monkeypatch.setattr(igp_ucb, "BOX_CANDIDATES", 300)

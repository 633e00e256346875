"""Fits, renewals and notes are spread over tells: bounded work, the same choices, saved midway."""

import copy
import pickle

import numpy as np
import pytest

import partita as pt
from partita._state import Saved
from partita.gp.likelihood import step_cost
from partita.policies.calibrated import calibrated_ucb, search
from partita.policies.calibrated.model import LEAST_WORK, MOST_WORK, fit_work


def evaluate(x, rng, noise=0.2):
    return float(np.sin(6 * x).sum() - 3 * ((x - 0.4) ** 2).sum() + noise * rng.standard_normal())


def policy_of(dim=2, seed=3):
    return pt.CalibratedUCB(pt.Box([0.0] * dim, [1.0] * dim), seed=seed)


def play(policy, rng, number, noise=0.2):
    asked = []
    for _ in range(number):
        x = policy.ask()
        asked.append(x)
        policy.tell(x, evaluate(x, rng, noise))
    return np.array(asked)


def restored(policy):
    twin = policy_of(policy.domain.dim, policy.seed)
    twin._restore(Saved(policy._state()))
    return twin


def under_way(policy):
    """What is half done."""
    ready = policy._search._preparation
    return {
        "fit": policy._model.learning,
        "renewal": ready is not None and policy._search._holds(ready),
        "note": policy._answers.noting,
    }


def test_a_twin_saved_anywhere_in_a_fit_a_renewal_or_a_note_goes_on_as_the_other():
    policy, rng = policy_of(), np.random.default_rng(0)
    play(policy, rng, 40)
    seen = dict.fromkeys(("fit", "renewal", "note"), 0)
    for step in range(60):
        halves = under_way(policy)
        for name, there in halves.items():
            seen[name] += there
        if step % 3 == 0 or halves["note"]:
            policy = restored(policy)
        other = [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one)), restored][step % 3]
        twin, noise = other(policy), rng.standard_normal()
        assert under_way(twin) == halves
        ours, theirs = policy.ask(), twin.ask()
        np.testing.assert_array_equal(ours, theirs)
        value = evaluate(ours, rng, 0.0) + 0.2 * noise
        policy.tell(ours, value)
        twin.tell(theirs, value)
        assert str(policy._state()) == str(twin._state())
    assert min(seen.values()) > 0, seen


def test_answers_in_the_middle_of_a_fit_change_no_choice():
    quiet, asked = policy_of(), policy_of()
    one, two = np.random.default_rng(1), np.random.default_rng(1)
    play(quiet, one, 40)
    play(asked, two, 40)
    for _ in range(60):
        asked.recommend(), asked.certificate(), asked.predict([[0.5, 0.5]])
        assert play(quiet, one, 1).tolist() == play(asked, two, 1).tolist()


def test_a_tell_does_little_of_a_fit(monkeypatch):
    policy, rng = policy_of(6), np.random.default_rng(2)
    play(policy, rng, 41)
    most, fits = 0.0, 0
    for _ in range(120):
        before, begun = policy._model._fitting, policy._model.learning
        steps = before.journal.steps if before else 0
        play(policy, rng, 1)
        if begun:
            cost = step_cost(len(before.data.means), 6)
            most = max(most, (before.journal.steps - steps) * cost)
            fits += not policy._model.learning
            assert most <= fit_work(41) + 2 * cost
    assert fits >= 3
    assert most > 0.5 * MOST_WORK
    assert fit_work(10**6) == LEAST_WORK


def test_an_ask_renews_one_region_at_most(monkeypatch):
    monkeypatch.setattr("partita.policies.calibrated.regions.REGION_POINTS", 24)
    policy, rng = policy_of(2), np.random.default_rng(4)
    renewed = []
    renew = search.Search.renew

    def counted(self, *args, **kwargs):
        renewed.append(1)
        renew(self, *args, **kwargs)

    monkeypatch.setattr(search.Search, "renew", counted)
    most = 0
    for _ in range(250):
        renewed.clear()
        play(policy, rng, 1, noise=0.5)
        most = max(most, len(renewed))
    assert len(policy._regions) > 2
    assert most == 1


def test_after_a_fit_all_regions_get_their_turn(monkeypatch):
    monkeypatch.setattr("partita.policies.calibrated.regions.REGION_POINTS", 24)
    policy, rng = policy_of(2), np.random.default_rng(4)
    play(policy, rng, 200, noise=0.5)
    policy._search.renew_all()
    policy._next_fit = 10_000
    play(policy, rng, 3 * len(policy._regions), noise=0.5)
    stale = [one for one in policy._search.outlooks if one.stale]
    assert len(stale) <= 2


def test_a_fit_begins_again_if_values_turn_out_to_have_noise():
    policy, rng = policy_of(2), np.random.default_rng(5)
    play(policy, rng, 45, noise=0.0)
    policy._sums.exact = policy._sums.agree = True
    policy._model.begin(policy._regions.played)
    policy._model._fitting.exact = True
    policy._sums.exact = False
    assert not policy._model.advance(policy._regions, LEAST_WORK)
    assert policy._model.learning


def test_a_bulk_tell_fits_at_once(monkeypatch):
    policy, rng = policy_of(2), np.random.default_rng(6)
    points = rng.random((300, 2))
    policy.tell(points, [evaluate(x, rng) for x in points])
    assert not policy._model.learning
    assert policy._next_fit == int(300 * calibrated_ucb.REFIT_FACTOR)


@pytest.mark.parametrize("field", ["points", "steps"])
def test_a_bad_fit_in_a_snapshot_is_refused(field):
    policy, rng = policy_of(), np.random.default_rng(7)
    play(policy, rng, 41)
    while not policy._model.learning:
        play(policy, rng, 1)
    state = policy._state()
    state["model"]["fitting"][field] = -1 * state["model"]["fitting"][field] - 1
    with pytest.raises(pt.errors.PartitaError):
        policy_of()._restore(Saved(state))


@pytest.mark.parametrize("kind", ["fixed", "own points", "many dimensions"])
def test_fits_go_on_where_the_search_does_not_choose(kind):
    dim = 12 if kind == "many dimensions" else 2
    policy, rng = policy_of(dim), np.random.default_rng(8)
    ended = 0
    for _ in range(130):
        if kind == "fixed":
            x = policy.ask(fixed={0: float(rng.random())})
        else:
            x = policy.ask() if kind == "many dimensions" else rng.random(dim)
        learning = policy._model.learning
        policy.tell(x, evaluate(np.asarray(x), rng))
        ended += learning and not policy._model.learning
    assert ended >= (1 if dim > 10 else 2)  # with many dimensions, fits are rarer

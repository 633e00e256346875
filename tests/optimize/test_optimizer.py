"""The Optimizer: numbered trials in the user's units and direction, whatever plays."""

import copy
import functools
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import partita as pt
from partita.errors import InvalidInput, NotPending
from partita.optimize.making import domain_of
from partita.optimize.values import as_value
from partita.space import as_space

BOX = [(0, 1), (-2, 3)]
MIXED = {
    "rate": (1e-4, 1e-1, "log"),
    "depth": (1, 12, "int"),
    "share": (0, 0.5),
    "kind": ["a", "b", "c"],
    "flag": bool,
}
SMALL = {"n": (1, 9, "int"), "kind": ["a", "b", "c"]}
KNOWN = {"kernel": pt.Matern(1.5, 0.3), "norm_bound": 2.0, "noise": pt.Gaussian(0.1)}


def bowl(x):
    return float((x[0] - 0.3) ** 2 + (x[1] - 1) ** 2)


def cost(rate, depth, share, kind, flag):
    kinds = {"a": 0.5, "b": 0.0, "c": 1.0}
    return (
        (math.log10(rate) + 2) ** 2
        + 0.05 * (depth - 7) ** 2
        + 3 * (share - 0.2) ** 2
        + kinds[kind]
        + 0.3 * flag
    )


def small(n, kind):
    return (n - 6) ** 2 / 25 + (kind != "b")


def value(params):
    if isinstance(params, dict):
        return cost(**params) if "rate" in params else small(**params)
    return bowl(params)


def play(optimizer, steps, noise=0.05, seed=0):
    random = np.random.default_rng(seed)
    sign = 1 if optimizer.direction == "minimize" else -1
    asked = []
    for _ in range(steps):
        trial = optimizer.ask()
        asked.append(trial)
        optimizer.tell(trial, sign * (value(trial.params) + noise * random.normal()))
    return asked


def same_next(one, other, steps=6):
    """Whether two optimisers ask the same from here on."""
    for _ in range(steps):
        a, b = one.ask(), other.ask()
        assert a.number == b.number
        assert np.array_equal(a.x, b.x)
        one.tell(a, value(a.params))
        other.tell(b, value(b.params))


def state(optimizer):
    table = optimizer.trials
    return (
        table.states,
        table.values.tolist(),
        optimizer.n_told,
        optimizer.n_failed,
        optimizer.n_pending,
        optimizer.policy.told,
        optimizer.policy.pending,
    )


# -- trials --------------------------------------------------------------------------------------


def test_trials_are_numbered_and_carry_what_the_function_is_given():
    by_array = pt.Optimizer(BOX)
    first, second = by_array.ask(), by_array.ask()
    assert (first.number, second.number) == (0, 1)
    assert isinstance(first.params, np.ndarray)
    assert first.x is first.params
    assert ((first.x >= [0, -2]) & (first.x <= [1, 3])).all()
    by_name = pt.Optimizer(MIXED)
    trial = by_name.ask()
    assert list(trial.params) == list(MIXED)
    assert {k: type(v) for k, v in trial.params.items()} == {
        "rate": float, "depth": int, "share": float, "kind": str, "flag": bool,
    }  # fmt: skip
    assert trial.unit.shape == (7,)
    assert trial.x == list(trial.params.values())
    cost(**trial.params)
    with pytest.raises(AttributeError):
        trial.number = 3
    again = pickle.loads(pickle.dumps(trial))
    assert (again.number, again.params) == (trial.number, trial.params)


def test_a_trial_is_told_by_itself_or_its_number_in_any_order():
    optimizer = pt.Optimizer(BOX)
    trials = [optimizer.ask() for _ in range(4)]
    optimizer.tell(3, 1.0)
    optimizer.tell(trials[0], 2.0)
    optimizer.tell(np.int64(2), 3.0)
    optimizer.cancel(1)
    assert (optimizer.n_told, optimizer.n_failed, optimizer.n_pending) == (3, 1, 0)
    table = optimizer.trials
    assert table.states == ["finished", "failed", "finished", "finished"]
    assert table.values[[0, 2, 3]].tolist() == [2.0, 3.0, 1.0]
    assert math.isnan(table.values[1])


@pytest.mark.parametrize("space", [BOX, MIXED, SMALL], ids=["box", "mixed", "small"])
def test_changing_a_trial_changes_nothing(space):
    optimizer = pt.Optimizer(space)
    trial = optimizer.ask()
    before = optimizer.trials.params
    if isinstance(trial.params, dict):
        trial.params.clear()
    trial.unit[:] = 7.0
    assert np.array_equal(optimizer.trials.params, before)
    optimizer.tell(trial, 1.0)
    assert optimizer.policy.pending == 0


HALVES = [2.5, np.float32(2.5), np.array(2.5), np.array([[2.5]]), Decimal("2.5"), Fraction(5, 2)]


@pytest.mark.parametrize(
    ("given", "number"), [(3, 3.0), (True, 1.0), (np.True_, 1.0), *((v, 2.5) for v in HALVES)]
)
def test_what_counts_as_a_value(given, number):
    assert as_value(given) == number
    assert type(as_value(given)) is float


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "None: give one number; .*; if the evaluation failed, cancel"),
        ("1.0", "'1.0'"),
        (np.str_("1.0"), "1.0"),
        (b"1", "b'1'"),
        (1j, "1j"),
        (np.complex64(1), "give one number"),
        ([1.0], "give one number"),
        (np.zeros(2), r"array of shape \(2,\)"),
        (np.zeros(0), r"array of shape \(0,\)"),
        (np.array(["1"]), "type <U1"),
        (np.ma.masked, "give one number"),
        ({}, "give one number"),
        (math.nan, "is nan: give a finite number, or cancel"),
        (np.array(math.inf), "is inf"),
        (10**400, "is inf"),
        (1e200, r"is 1e\+200: give one of at most 1e\+150"),
    ],
)
def test_what_is_no_value_is_refused_and_changes_nothing(given, message):
    optimizer = pt.Optimizer(BOX)
    trial = optimizer.ask()
    before = state(optimizer)
    with pytest.raises(InvalidInput, match=message):
        optimizer.tell(trial, given)
    with pytest.raises(InvalidInput, match=message):
        optimizer.add([0.5, 0.5], given)
    assert state(optimizer)[0] == before[0]
    assert state(optimizer)[2:] == before[2:]
    optimizer.tell(trial, 1.0)


@pytest.mark.parametrize("verb", ["tell", "cancel"])
@pytest.mark.parametrize("space", [BOX, MIXED, SMALL, pt.Grid(9, dim=2)])
def test_a_trial_of_another_optimizer_is_refused(space, verb):
    ours, other = pt.Optimizer(space, seed=1), pt.Optimizer(space, seed=2)
    mine = ours.ask()
    before = state(ours)
    arguments = (1.0,) if verb == "tell" else ()
    # The number is the same, the point is not, or is that of another space.
    for player in (other, pt.Optimizer({"x": (0, 7)}, seed=1), pt.Optimizer([(0, 9), (0, 9)])):
        theirs = player.ask()
        with pytest.raises(InvalidInput, match="trial 0 of this optimizer has other parameters"):
            getattr(ours, verb)(theirs, *arguments)
    assert state(ours)[0] == before[0]
    getattr(ours, verb)(mine, *arguments)


def test_the_same_point_of_the_unit_cube_in_other_units_is_another_trial():
    narrow, wide = pt.Optimizer([(0, 1)]), pt.Optimizer([(0, 10)])
    trial, other = narrow.ask(), wide.ask()
    np.testing.assert_allclose(10 * trial.x, other.x)
    with pytest.raises(InvalidInput, match="other parameters"):
        wide.tell(trial, 1.0)


@pytest.mark.parametrize("space", [BOX, MIXED])
def test_a_trial_is_told_by_copies_and_whatever_became_of_its_parameters(space):
    optimizer = pt.Optimizer(space)
    copied, changed, number = optimizer.ask(), optimizer.ask(), optimizer.ask().number
    if isinstance(changed.params, dict):
        changed.params.pop("rate")
    else:
        changed.params[:] = 99.0
    restored = pickle.loads(pickle.dumps(optimizer))
    restored.tell(pickle.loads(pickle.dumps(copied)), 1.0)
    restored.tell(changed, 2.0)
    restored.tell(number, 3.0)
    by_hand = restored.ask()
    restored.tell(type(by_hand)(by_hand.number, by_hand.params, by_hand.unit), 4.0)
    assert restored.n_told == 4
    by_hand = restored.ask()
    wrong = type(by_hand)(by_hand.number, copied.params, copied.unit)
    with pytest.raises(InvalidInput, match="other parameters"):
        restored.tell(wrong, 4.0)


def test_what_is_expected_must_be_feasible():
    optimizer = pt.Optimizer(BOX, feasible=lambda x: x[0] < 0.5)
    with pytest.raises(InvalidInput, match=r"expect\(\[0.7, 0\]\): feasible does not allow"):
        optimizer.expect([0.7, 0])
    assert len(optimizer.trials) == 0
    assert optimizer.expect([0.2, 0]).number == 0


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_refused_value_has_the_sign_it_was_given_with(direction):
    optimizer = pt.Optimizer(BOX, direction=direction)
    with pytest.raises(InvalidInput, match=r"the value is 1e\+200"):
        optimizer.tell(optimizer.ask(), 1e200)


def test_a_slow_constraint_is_not_called_more_often_than_needed():
    calls = []
    space = as_space({"n": (1, 20_000, "int")}, lambda n: calls.append(n) or True)
    assert type(domain_of(space)) is pt.Mixed
    assert 10_000 < len(calls) <= 11_000
    del calls[:]
    domain_of(as_space({"n": (1, 20_001, "int")}, lambda n: calls.append(n) or True))
    assert not calls


def test_lengthscales_are_for_coordinates_of_which_choices_have_several():
    with pytest.raises(InvalidInput, match=r"k > 2 choices has k coordinates.*kind 3.*Give 4"):
        pt.Optimizer(SMALL, **{**KNOWN, "kernel": pt.Matern(1.5, [0.2, 0.3])})
    pt.Optimizer(SMALL, **{**KNOWN, "kernel": pt.Matern(1.5, [0.2, 0.3, 0.3, 0.3])})
    with pytest.raises(InvalidInput, match="3 lengthscales"):
        pt.Optimizer(BOX, **{**KNOWN, "kernel": pt.Matern(1.5, [0.2, 0.3, 0.3])})


def test_trials_that_cannot_be_told_are_refused_and_nothing_changes():
    optimizer = pt.Optimizer(BOX)
    with pytest.raises(NotPending, match="there are no trials yet"):
        optimizer.tell(0, 1.0)
    told, cancelled, pending = optimizer.ask(), optimizer.ask(), optimizer.ask()
    optimizer.tell(told, 1.0)
    optimizer.cancel(cancelled)
    before = state(optimizer)[2:]
    for call in (lambda t: optimizer.tell(t, 1.0), optimizer.cancel):
        with pytest.raises(NotPending, match="trial 0 already has a value"):
            call(told)
        with pytest.raises(NotPending, match="trial 1 was cancelled"):
            call(1)
        for unknown in (3, -1):
            with pytest.raises(
                NotPending, match=f"there is no trial {unknown}, numbers go from 0 to 2"
            ):
                call(unknown)
        for wrong in (True, "0", 0.0, None, pending.params):
            with pytest.raises(InvalidInput, match="or its number"):
                call(wrong)
    assert state(optimizer)[2:] == before
    optimizer.tell(pending, 1.0)


# -- known data ----------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [BOX, MIXED, SMALL], ids=["box", "mixed", "small"])
def test_known_data_counts_as_trials_and_is_used(space):
    source = pt.Optimizer(space, seed=3)
    play(source, 60)
    other = pt.Optimizer(space, seed=4)
    table = source.trials
    numbers = [other.add(p, v) for p, v in zip(table.params, table.values, strict=True)]
    assert numbers == list(range(60))
    assert other.n_told == other.policy.told == 60
    assert other.ask().number == 60
    assert value(other.recommend().params) < 0.15
    assert np.allclose(other.trials.finished.units, table.units, rtol=0, atol=1e-9)


def test_data_that_is_not_of_the_space_or_not_allowed_is_refused():
    optimizer = pt.Optimizer(MIXED, feasible=lambda depth, **rest: depth < 6)
    good = {"rate": 1e-3, "depth": 3, "share": 0.1, "kind": "a", "flag": True}
    optimizer.add(good, 1.0)
    before = state(optimizer)
    with pytest.raises(InvalidInput, match="feasible does not allow"):
        optimizer.add({**good, "depth": 6}, 1.0)
    with pytest.raises(InvalidInput, match="depth=13"):
        optimizer.add({**good, "depth": 13}, 1.0)
    with pytest.raises(InvalidInput, match="flag is missing"):
        optimizer.add({k: v for k, v in good.items() if k != "flag"}, 1.0)
    assert state(optimizer) == before


def test_data_added_at_a_pending_point_leaves_that_trial_to_be_told_or_cancelled():
    for end in ("tell", "cancel"):
        optimizer = pt.Optimizer({"n": (1, 2, "int")})
        trial = optimizer.ask()
        optimizer.add(trial.params, 1.0)
        assert optimizer.n_pending == 1
        if end == "tell":
            optimizer.tell(trial, 2.0)
        else:
            optimizer.cancel(trial)
        assert optimizer.n_pending == optimizer.policy.pending == 0
        assert optimizer.policy.told == optimizer.n_told == 1 + (end == "tell")


# -- direction -----------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [{}, {**KNOWN, "norm_bound": 50.0}], ids=["calibrated", "proven"])
@pytest.mark.parametrize("space", [BOX, SMALL], ids=["box", "small"])
def test_maximising_is_minimising_upside_down(space, known):
    lowest = pt.Optimizer(space, seed=1, n_evals=60, **known)
    highest = pt.Optimizer(space, seed=1, n_evals=60, direction="maximize", **known)
    for a, b in zip(play(lowest, 40), play(highest, 40), strict=True):
        assert np.array_equal(a.x, b.x)
    low, high = lowest.recommend(), highest.recommend()
    assert np.array_equal(low.x, high.x)
    assert (low.mean, low.lower, low.upper) == (-high.mean, -high.upper, -high.lower)
    assert low.lower <= low.mean <= low.upper
    assert lowest.certificate() == highest.certificate() >= 0
    table = lowest.trials
    assert (table.values == -highest.trials.values).all()
    below, above = lowest.predict(table.params), highest.predict(table.params)
    assert (below.mean == -above.mean).all()
    assert (below.lower == -above.upper).all()
    assert (below.upper == -above.lower).all()
    assert (below.std == above.std).all()
    assert (below.lower <= below.upper).all()


def test_predictions_are_of_the_function_in_the_users_units():
    optimizer = pt.Optimizer(MIXED, seed=2)
    play(optimizer, 150)
    best = optimizer.recommend()
    there = optimizer.predict([best.params])
    assert there.mean[0] == pytest.approx(best.mean, rel=1e-6)
    truth = [cost(**p) for p in optimizer.trials.params[-50:]]
    found = optimizer.predict(optimizer.trials.params[-50:])
    assert np.abs(found.mean - truth).mean() < 0.05
    assert np.mean((found.lower <= truth) & (truth <= found.upper)) > 0.6
    assert optimizer.predict([]).mean.shape == (0,)
    with pytest.raises(InvalidInput, match="give a list of dicts"):
        optimizer.predict(best.params)
    with pytest.raises(InvalidInput, match="UniformSampling has no posterior"):
        pt.Optimizer(MIXED, policy="uniform").predict([best.params])


def test_a_policy_that_cannot_say_has_an_infinite_certificate():
    optimizer = pt.Optimizer(BOX, policy="uniform")
    play(optimizer, 5)
    assert optimizer.certificate() == math.inf
    assert optimizer.guarantee == "none"
    fresh = pt.Optimizer(BOX)
    assert fresh.certificate() == math.inf
    suggestion = fresh.recommend()
    assert suggestion.lower == -math.inf
    assert suggestion.upper == math.inf


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("policy", ["uniform", None])
@pytest.mark.parametrize("space", [MIXED, {"n": (1, 3, "int")}], ids=["mixed", "three"])
def test_any_order_of_calls_keeps_count(space, policy, seed):
    optimizer = pt.Optimizer(space, policy=policy, seed=seed)
    random = np.random.default_rng(seed)
    pending, told, failed, seen = {}, {}, set(), []
    for _ in range(60):
        what = random.choice(["ask", "ask", "tell", "tell", "cancel", "add", "save"])
        number = int(random.choice(list(pending))) if pending else None
        if what == "ask":
            trial = optimizer.ask()
            assert trial.number == len(seen)
            seen.append(trial.params)
            pending[trial.number] = trial
        elif what == "add" and seen:
            params = seen[random.integers(len(seen))]
            told[optimizer.add(params, 0.25)] = 0.25
            seen.append(params)
        elif what == "tell" and pending:
            told[number] = float(random.normal())
            trial = pending.pop(number)
            optimizer.tell(trial if random.random() < 0.5 else number, told[number])
        elif what == "cancel" and pending:
            failed.add(number)
            del pending[number]
            optimizer.cancel(number)
        elif what == "save":
            optimizer = pickle.loads(pickle.dumps(optimizer))
        table = optimizer.trials
        assert set(table.pending.numbers) == set(pending)
        assert set(table.failed.numbers) == failed
        assert dict(zip(table.finished.numbers, table.finished.values, strict=True)) == told
        assert optimizer.policy.told == optimizer.n_told == len(told)
        assert (optimizer.n_pending, optimizer.n_failed) == (len(pending), len(failed))
        assert optimizer.policy.pending <= len(pending)
    same = [optimizer.space.encode(params) for params in seen]
    assert np.allclose(optimizer.trials.units, same, rtol=0, atol=1e-9)


# -- the same again ------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [BOX, MIXED, SMALL], ids=["box", "mixed", "small"])
def test_same_seed_same_asks_and_another_seed_others(space):
    one, other = (play(pt.Optimizer(space, seed=5), 40) for _ in range(2))
    assert all(np.array_equal(a.x, b.x) for a, b in zip(one, other, strict=True))
    third = play(pt.Optimizer(space, seed=6), 40)
    assert not all(np.array_equal(a.x, b.x) for a, b in zip(one, third, strict=True))


def allowed(depth, share, **_):
    return depth * share < 2


@pytest.mark.parametrize("steps", [0, 3, 30])
@pytest.mark.parametrize(
    ("space", "feasible"),
    [(BOX, None), (MIXED, allowed), (SMALL, None)],
    ids=["box", "mixed", "small"],
)
def test_pickles_and_copies_go_on_alike(space, feasible, steps):
    optimizer = pt.Optimizer(space, seed=5, feasible=feasible)
    play(optimizer, steps)
    pending = [optimizer.ask() for _ in range(3)]
    optimizer.cancel(pending.pop())
    saved, copied = pickle.dumps(optimizer), copy.deepcopy(optimizer)
    loaded = pickle.loads(saved)
    for one in (optimizer, loaded, copied):
        one.tell(pending[0].number, 1.0)
    same_next(optimizer, loaded)
    optimizer = pickle.loads(saved)
    optimizer.tell(pending[0].number, 1.0)
    same_next(optimizer, copied)
    assert loaded.recommend().mean == copied.recommend().mean


def test_a_constraint_that_does_not_pickle_says_so():
    optimizer = pt.Optimizer(MIXED, feasible=lambda **_: True)
    with pytest.raises(InvalidInput, match=r"feasible=.*cannot be pickled"):
        pickle.dumps(optimizer)


# -- policies ------------------------------------------------------------------------------------


def test_what_is_known_decides_the_policy():
    assert isinstance(pt.Optimizer(BOX).policy, pt.CalibratedUCB)
    assert pt.Optimizer(BOX).guarantee == "calibrated"
    for space in (BOX, SMALL, pt.Grid(5, dim=2)):
        proven = pt.Optimizer(space, n_evals=500, delta=0.05, **KNOWN)
        assert isinstance(proven.policy, pt.PiGPUCB)
        assert proven.guarantee == "proven"
        assert (proven.policy.horizon, proven.policy.delta) == (500, 0.05)
    assert isinstance(pt.Optimizer(BOX, **KNOWN).policy, pt.PiGPUCB)
    part = pt.Optimizer(BOX, noise=pt.Gaussian(0.25), kernel=KNOWN["kernel"])
    assert part.guarantee == "calibrated"
    play(part, 30)
    assert part.policy.settings["noise_std"] == pytest.approx(0.25)
    assert part.policy.settings["lengthscales"].tolist() == [0.3, 0.3]


@pytest.mark.parametrize(
    ("space", "feasible"),
    [(MIXED, None), (BOX, lambda x: x[0] < 0.5), ({"n": (1, 20_000, "int")}, None)],
    ids=["mixed", "constrained", "too many"],
)
def test_proven_bounds_are_refused_where_there_are_none(space, feasible):
    with pytest.raises(InvalidInput, match=r"proven bounds need .* Give every number a step"):
        pt.Optimizer(space, feasible=feasible, **KNOWN)


def make_uniform(domain):
    return pt.UniformSampling(domain, seed=11)


@pytest.mark.parametrize(
    ("policy", "kind"),
    [
        ("uniform", pt.UniformSampling),
        ("hoo[nu1=2.0,rho=0.5]", pt.HOO),
        ("calibrated-ucb", pt.CalibratedUCB),
        (pt.UniformSampling, pt.UniformSampling),
        (make_uniform, pt.UniformSampling),
        (functools.partial(pt.UniformSampling, seed=3), pt.UniformSampling),
    ],
)
def test_other_policies_by_name_class_or_function(policy, kind):
    optimizer = pt.Optimizer(BOX, policy=policy, seed=4, n_evals=50, noise=pt.Gaussian(0.1))
    assert type(optimizer.policy) is kind
    play(optimizer, 10)
    assert optimizer.n_told == 10
    fixed = {make_uniform: 11}.get(policy, 3 if isinstance(policy, functools.partial) else 4)
    assert optimizer.policy.seed == fixed


def test_a_policy_by_name_is_told_what_the_user_knows():
    told = pt.Optimizer(BOX, policy="calibrated-ucb", noise=pt.Gaussian(0.25))
    play(told, 30)
    assert told.policy.settings["noise_std"] == pytest.approx(0.25)
    with pytest.raises(InvalidInput, match="needs kernel, norm_bound, noise"):
        pt.Optimizer(BOX, policy="pi-gp-ucb")
    assert pt.Optimizer(BOX, policy="pi-gp-ucb", **KNOWN).policy.horizon > 10_000


class Bare:
    """A policy with what every policy must have, and nothing else; it takes values up to 1."""

    def __init__(self, domain, *, seed):
        self._uniform = pt.UniformSampling(domain, seed=seed)
        self.ask, self.cancel = self._uniform.ask, self._uniform.cancel
        self.recommend = self._uniform.recommend

    def tell(self, x, y):
        if abs(y) > 1:
            raise InvalidInput("too large")
        self._uniform.tell(x, y)


def test_a_policy_of_the_users_own_needs_four_methods_alone(tmp_path):
    optimizer = pt.Optimizer([(0, 1)], policy=Bare)
    trial, other = optimizer.expect([0.25]), optimizer.ask()
    optimizer.tell(trial, 0.5)
    optimizer.hold(other)
    optimizer.cancel(other)
    assert (optimizer.certificate(), optimizer.guarantee) == (math.inf, "none")
    with pytest.raises(InvalidInput, match="Bare has no posterior"):
        optimizer.predict([[0.5]])
    # What it refuses has failed, and is kept pending for a while, in memory and in a file.
    for study in (None, tmp_path / "tune.db"):
        result = pt.minimize(lambda x: 2 * x[0], [(0, 1)], n_evals=12, policy=Bare, study=study)
        assert result.nfev == 12
        assert result.nfail > 0
        assert "InvalidInput: too large" in result.message
        assert result.optimizer.n_pending == 0


class NoPolicy:
    def __init__(self, domain):
        pass


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("ucb", "unknown: give one of"),
        ("uniform[seeds=3]", "no setting seeds"),
        (pt.UniformSampling(pt.Grid(3)), "give a name such as"),
        (3, "give a name such as"),
        (NoPolicy, "NoPolicy returned .* give a policy"),
        ("gp-ucb", "needs a finite space: give every number a step"),
    ],
)
def test_what_is_no_policy_is_refused(policy, message):
    with pytest.raises(InvalidInput, match=message):
        pt.Optimizer(BOX, policy=policy)


def test_a_finite_policy_plays_a_space_of_steps():
    optimizer = pt.Optimizer(
        {"x": (0, 1, 0.1), "n": (1, 5, "int")}, policy="gp-ucb", n_evals=20, **KNOWN
    )
    for _ in range(10):
        trial = optimizer.ask()
        optimizer.tell(trial, trial.params["x"])
    assert optimizer.recommend().params["x"] <= 0.3


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"direction": "min"}, 'give "minimize" or "maximize"'),
        ({"n_evals": 0}, "n_evals=0: give the planned evaluations"),
        ({"n_evals": 2.5}, "n_evals=2.5"),
        ({"seed": -1}, "seed=-1"),
        ({"delta": 1}, "delta=1"),
        ({"noise": 0.1}, "noise"),
        ({"norm_bound": -1}, "norm_bound=-1"),
        ({"feasible": 3}, "feasible=3: give a function"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(setting, message):
    with pytest.raises(InvalidInput, match=message):
        pt.Optimizer(BOX, **setting)


# -- domains -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("space", "feasible", "kind", "size"),
    [
        (BOX, None, pt.Box, None),
        ({"x": (1e-3, 1, "log"), "c": ["only"]}, None, pt.Box, None),
        (BOX, lambda x: x[0] < 0.5, pt.Mixed, None),
        (MIXED, None, pt.Mixed, None),
        (SMALL, None, pt.Arms, 27),
        (SMALL, lambda n, kind: n < 4, pt.Arms, 9),
        ({"n": (1, 10_000, "int")}, None, pt.Arms, 10_000),
        ({"n": (1, 10_001, "int")}, None, pt.Mixed, None),
        ({"n": (1, 20_000, "int")}, lambda n: n % 4 == 0, pt.Arms, 5000),
        ({"n": (1, 20_000, "int")}, lambda n: n > 5, pt.Mixed, None),
        ({"n": (1, 50_000, "int")}, lambda n: n % 10 == 0, pt.Mixed, None),
        (pt.Grid(4, dim=2), None, pt.Grid, 16),
        (pt.Grid(4, dim=2), lambda x: x.sum() <= 1, pt.Arms, 10),
        (pt.Arms([[0.0], [3.0], [4.0]], [0.0], [4.0]), None, pt.Arms, 3),
    ],
)
def test_the_domain_of_a_space(space, feasible, kind, size):
    space = as_space(space, feasible)
    domain = domain_of(space)
    assert type(domain) is kind
    assert domain.dim == space.dim
    if size is not None:
        assert domain.size == size
        units = domain.unit_points
        assert (space.snap(units) == units).all()
        assert space.feasible(units).all()


def test_a_finite_space_without_a_feasible_point_is_refused():
    with pytest.raises(InvalidInput, match="none of the 27 points"):
        pt.Optimizer(SMALL, feasible=lambda n, kind: n > 9)


def test_a_finite_space_is_played_at_its_own_points_and_solved():
    optimizer = pt.Optimizer(SMALL, seed=2)
    play(optimizer, 120, noise=0.3)
    assert optimizer.recommend().params == {"n": 6, "kind": "b"}


def test_arms_in_the_users_units():
    arms = pt.Arms([[10.0, 0.5], [20.0, 0.1], [30.0, 0.9]], [10, 0], [30, 1])
    optimizer = pt.Optimizer(arms, direction="maximize")
    for _ in range(25):
        trial = optimizer.ask()
        assert trial.params.tolist() in arms.points.tolist()
        optimizer.tell(trial, -abs(trial.params[0] - 20.0))
    assert optimizer.recommend().params.tolist() == [20.0, 0.1]


def test_it_reads_well():
    optimizer = pt.Optimizer(BOX)
    optimizer.ask()
    text = repr(optimizer)
    assert "CalibratedUCB: 0 values, 1 pending, 0 failed" in text
    assert "direction='minimize'" in text

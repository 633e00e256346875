"""The searcher for Ray Tune: spaces, trials of every fate, save and restore. No cluster needed."""

from __future__ import annotations

import json
import math
import pickle
import sys

import numpy as np
import pytest

pytest.importorskip("ray.tune")

from ray import tune
from ray.tune.search import ConcurrencyLimiter, Searcher, sample

import partita.integrations.ray
from partita.errors import InvalidInput, NotPending, VersionMismatch
from partita.integrations.ray import PartitaSearch
from partita.integrations.ray.space import from_config, from_space
from partita.model.kernels import Matern
from partita.model.noise import Gaussian
from partita.optimize.optimizer import Optimizer
from partita.space import Space

SPACE = {"lr": (1e-4, 1e-1, "log"), "depth": (1, 8, "int")}


def searcher(space=SPACE, **settings):
    return PartitaSearch(space, metric="loss", mode="min", **settings)


def loss(config):
    return (math.log10(config["lr"]) + 2) ** 2 + (config["depth"] - 3) ** 2


def play(search, n, value=loss, start=0):
    """Configurations of n trials, one after the other."""
    configs = []
    for i in range(start, start + n):
        config = search.suggest(str(i))
        search.on_trial_complete(str(i), {"loss": value(config)})
        configs.append(config)
    return configs


def small_depth(config):
    return config["depth"] <= 4


# -- spaces ----------------------------------------------------------------------------------------

FINITE = {
    "randint": tune.randint(-2, 6),
    "qrandint": tune.qrandint(2, 20, 3),
    "qrandint of 1": tune.qrandint(2, 9, 1),
    "lograndint": tune.lograndint(1, 12),
    "qlograndint": tune.qlograndint(4, 40, 4),
    "quniform": tune.quniform(0.5, 2.0, 0.25),
    "quniform of tenths": tune.quniform(-0.3, 0.4, 0.1),
    "qloguniform": tune.qloguniform(0.5, 3.0, 0.5),
    "choice": tune.choice(["a", (1, 2), None, True, 1.5]),
    "one value": tune.randint(4, 5),
}


@pytest.mark.parametrize("domain", FINITE.values(), ids=FINITE)
def test_values_are_those_that_ray_draws(domain):
    made = from_config({"outer": {"x": domain}, "x": tune.uniform(0, 1)})
    drawn = {_text(domain.cast(value)) for value in domain.sample(size=4000, random_state=1)}
    first = made.space.parameters[made.space.names.index("outer/x")]
    ours = {
        _text(made.config({"outer/x": first.decode(row.tolist()), "x": 0.5})["outer"]["x"])
        for row in first.grid()
    }
    assert ours == drawn


def _text(value):
    """Equal for equal values of one type, up to rounding of floats."""
    return f"float {round(value, 9) + 0.0!r}" if isinstance(value, float) else repr(value)


@pytest.mark.parametrize("log", [False, True])
def test_floats_keep_their_bounds_and_scale(log):
    domain = tune.loguniform(1e-3, 10.0) if log else tune.uniform(1e-3, 10.0)
    made = from_config({"x": domain})
    ends = [made.space.decode(np.array([u]))["x"] for u in (0.0, 0.5, 1.0)]
    middle = 0.1 if log else 5.0005
    assert ends == pytest.approx([1e-3, middle, 10.0])


def test_constants_stay_with_tune_and_nested_parameters_keep_their_place():
    made = from_config(
        {"a": {"b": {"c": tune.uniform(0, 1)}, "constant": [1, 2]}, "word": "x", "e": (0, 1)}
    )
    assert made.space.names == ("a/b/c",)
    assert made.config({"a/b/c": 0.25}) == {"a": {"b": {"c": 0.25}}}
    assert made.params({"a": {"b": {"c": 0.25}, "constant": [1, 2]}}) == {"a/b/c": 0.25}
    assert made.params({"a/b/c": 0.25, "word": "x"}) == {"a/b/c": 0.25}
    assert from_config({"word": "x", "e": (0, 1)}) is None


def test_our_own_kinds_and_rays_may_be_mixed():
    made = from_space({"lr": (1e-4, 1e-1, "log"), "net": {"width": tune.qlograndint(8, 64, 8)}})
    unit = made.space.encode(made.params({"lr": 1e-2, "net": {"width": 16}}))
    assert made.config(made.space.decode(unit)) == {
        "lr": pytest.approx(1e-2),
        "net": {"width": 16},
    }


def test_a_dict_within_a_dict_is_a_nested_configuration_not_branches():
    made = from_space({"net": {"width": (1, 9, "int"), "depth": {"least": (1, 3, "int")}}})
    assert made.space.names == ("net/width", "net/depth/least")
    assert made.space.conditions is None


def test_branches_of_a_space_are_kept():
    branches = {"svm": {"C": (0.1, 10.0)}, "forest": {"opt/trees": (1, 9, "int")}}
    made = from_space(Space({"model": branches}))
    for config in ({"model": "svm", "C": 1.0}, {"model": "forest", "opt": {"trees": 3}}):
        assert made.config(made.params({**config, "constant": 1})) == config
        unit = made.space.encode(made.params(config))
        assert made.config(made.space.decode(unit)) == config
    search = PartitaSearch(Space({"model": branches}), metric="loss", mode="min", seed=5)
    for i in range(12):
        config = search.suggest(str(i))
        assert ("C" in config) == (config["model"] == "svm")
        search.on_trial_complete(str(i), {"loss": config.get("C", 5.0)})
    assert search.recommend().params.keys() == {"model", "C"}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"x": tune.randn(0, 1)}, "parameter 'x'.*no bounds to search"),
        ({"x": tune.sample_from(lambda: 1)}, "parameter 'x'.*no bounds to search"),
        ({"a": {"x": tune.grid_search([1, 2])}}, "'a/x'.*grid search.*tune.choice"),
        ({"x": [tune.uniform(0, 1)]}, "'x/0'.*not in lists"),
        ({"a/b": tune.uniform(0, 1)}, "without '/'"),
        ({"x": tune.qrandint(4, 6, 7)}, "'x'.*no multiple of 7"),
        ({"x": tune.choice([1, 1])}, "'x'.*given twice"),
        ({"x": tune.uniform(1, 0)}, "'x'.*reversed"),
        ({"x": sample.Float(None, 1)}, "'x'.*finite"),
    ],
)
def test_what_cannot_be_searched_is_refused(config, message):
    with pytest.raises(InvalidInput, match=message):
        from_config(config)


@pytest.mark.parametrize("space", [[(0, 1)], {}, "x", {"x": {"grid_search": [1, 2]}}, {"x": 3}])
def test_a_space_of_another_kind_is_refused(space):
    with pytest.raises(InvalidInput):
        searcher(space)


# -- trials ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "direction"), [("min", "minimize"), ("max", "maximize")])
def test_it_suggests_what_the_optimizer_would(mode, direction):
    search = PartitaSearch(SPACE, metric="loss", mode=mode, seed=5)
    optimizer = Optimizer(SPACE, direction=direction, seed=5)
    for i in range(40):
        trial, config = optimizer.ask(), search.suggest(str(i))
        assert config == trial.params
        optimizer.tell(trial, loss(config))
        search.on_trial_complete(str(i), {"loss": loss(config)})
    assert search.recommend().params == optimizer.recommend().params
    assert search.certificate() == optimizer.certificate()


def test_several_trials_at_once_end_in_any_order():
    search, random = searcher(), np.random.default_rng(0)
    live, ended = {}, []
    for i in range(60):
        live[str(i)] = search.suggest(str(i))
        if len(live) == 4:
            one = random.choice(sorted(live))
            config = live.pop(one)
            search.on_trial_complete(one, {"loss": loss(config)})
            ended.append((config, loss(config)))
    told = search.optimizer.trials.finished
    assert list(zip(told.params, told.values, strict=True)) != ended  # in order of asking
    pairs = {(p["lr"], p["depth"], v) for p, v in zip(told.params, told.values, strict=True)}
    assert pairs == {(c["lr"], c["depth"], v) for c, v in ended}
    assert search.optimizer.policy.pending == 3


@pytest.mark.parametrize(
    "result", [{"loss": math.nan}, {"loss": math.inf}, {"loss": "x"}, {"other": 1}, {"loss": 1e300}]
)
def test_a_trial_without_a_finite_number_has_failed(result):
    search = searcher()
    play(search, 5)
    search.suggest("bad")
    search.on_trial_complete("bad", result)
    assert search.optimizer.n_told == 5
    play(search, 30, start=5)
    assert search.optimizer.n_told == 35


def test_errors_count_as_failed_even_with_a_result():
    search = searcher()
    search.suggest("a")
    search.on_trial_complete("a", {"loss": 1.0}, error=True)
    search.on_trial_complete("a", error=True)  # and a second time, which changes nothing
    assert search.optimizer.n_told == 0


def test_a_trial_stopped_before_it_began_is_given_up():
    search = searcher()
    search.suggest("a")
    search.on_trial_complete("a")
    assert search.optimizer.n_pending == 0
    assert search.optimizer.n_failed == 1


def test_where_everything_fails_others_are_suggested():
    # The best depths fail. A policy that learns nothing of it would ask for them for ever.
    search, failed = searcher(), 0
    for i in range(120):
        config = search.suggest(str(i))
        bad = config["depth"] < 5
        failed += bad
        search.on_trial_complete(str(i), None if bad else {"loss": loss(config)}, error=bad)
    assert failed < 60
    assert search.optimizer.n_told == 120 - failed
    assert search.optimizer.trials.finished.params[-1]["depth"] >= 5


def test_where_trials_fail_is_learned():
    search = PartitaSearch({"x": (0, 1), "y": (0, 1)}, metric="sum", mode="max", seed=0)
    failed, best = 0, 0.0
    for i in range(130):
        config = search.suggest(str(i))
        if config["x"] * config["y"] > 0.3:
            failed += 1
            search.on_trial_complete(str(i), error=True)
            continue
        best = max(best, config["x"] + config["y"])
        search.on_trial_complete(str(i), {"sum": config["x"] + config["y"]})
    assert 5 < failed <= 36
    assert best > 1.29


def test_a_failed_point_from_elsewhere_must_be_of_the_space():
    search = searcher()
    with pytest.raises(InvalidInput, match="depth=99"):
        search.add_evaluated_point({"lr": 0.01, "depth": 99}, math.nan, error=True)
    search.add_evaluated_point({"lr": 0.01, "depth": 3}, math.nan, error=True)
    assert search.optimizer.n_failed == 1


def test_a_second_completion_and_an_unknown_trial_change_nothing(caplog):
    search = searcher()
    play(search, 3)
    before = pickle.dumps(search.optimizer)
    search.on_trial_complete("17")
    search.on_trial_complete("17", error=True)
    search.on_trial_complete("17", {"loss": 1.0})  # nobody knows where
    assert pickle.dumps(search.optimizer) == before
    assert "17" in caplog.text


def test_a_failed_trial_that_runs_again_is_learned():
    search = searcher()
    config = search.suggest("a")
    search.on_trial_complete("a", error=True)
    search.on_trial_complete("a", {"loss": 2.5})  # Tuner.restore(resume_errored=True)
    told = search.optimizer.trials.finished
    assert told.params == [config]
    assert told.values.tolist() == [2.5]


@pytest.mark.parametrize(
    "result",
    [
        {"loss": 2.5, "config/lr": 0.01, "config/depth": 4, "config/constant": 1},
        {"loss": 2.5, "config": {"lr": 0.01, "depth": 4, "constant": 1}},
    ],
)
def test_a_trial_that_began_after_the_last_save_is_learned_from_its_result(result):
    search = searcher()
    search.on_trial_complete("restarted", result)
    told = search.optimizer.trials.finished
    assert told.params == [{"lr": pytest.approx(0.01), "depth": 4}]
    assert told.values.tolist() == [2.5]


def test_only_the_last_report_counts():
    search = searcher()
    search.suggest("a")
    search.on_trial_result("a", {"loss": 9.0})
    assert search.optimizer.n_told == 0
    search.on_trial_complete("a", {"loss": 1.0})
    assert search.optimizer.trials.finished.values.tolist() == [1.0]


def test_the_same_trial_asked_for_twice_keeps_its_configuration():
    search = searcher()
    assert search.suggest("a") == search.suggest("a")
    assert search.optimizer.n_pending == 1


def test_a_limiter_limits():
    search = searcher()
    limited = ConcurrencyLimiter(search, max_concurrent=3)
    configs = [limited.suggest(str(i)) for i in range(5)]
    assert [config is None for config in configs] == [False, False, False, True, True]
    limited.on_trial_complete("1", {"loss": 1.0})
    assert limited.suggest("5") is not None
    assert search.optimizer.n_pending == 3
    limited.on_trial_complete("unknown", {"loss": 2.5, "config/lr": 0.01, "config/depth": 4})
    assert search.optimizer.n_told == 2  # a limiter of its own would drop it


def test_a_restored_searcher_keeps_the_limit_of_the_limiter_around_it(tmp_path):
    search = searcher()
    ConcurrencyLimiter(search, max_concurrent=3)
    search.save(str(tmp_path / "state"))
    other = PartitaSearch()
    other.restore(str(tmp_path / "state"))
    assert [other.suggest(str(i)) is None for i in range(4)] == [False, False, False, True]
    other = PartitaSearch()
    limited = ConcurrencyLimiter(other, max_concurrent=1)
    limited.restore(str(tmp_path / "state"))
    assert [limited.suggest(str(i)) is None for i in range(2)] == [False, True]


def test_constraints_are_kept():
    search = searcher(feasible=small_depth)
    assert {config["depth"] for config in play(search, 40)} <= {1, 2, 3, 4}
    with pytest.raises(InvalidInput, match="top level of a module"):
        searcher(feasible=lambda config: True)


def test_nested_constraints_are_called_with_the_configuration():
    search = searcher({"net": {"depth": (1, 8, "int")}, "x": (0, 1)}, feasible=shallow_net)
    configs = [search.suggest(str(i)) for i in range(20)]
    assert {config["net"]["depth"] for config in configs} <= {1, 2}


def shallow_net(config):
    return config["net"]["depth"] <= 2


def test_what_is_known_beforehand_makes_bounds_proven():
    known = {"norm_bound": 2.0, "noise": Gaussian(0.1), "kernel": Matern(1.5, 0.3)}
    search = searcher({"x": (0, 1)}, **known)
    play(search, 10, value=lambda config: config["x"])
    assert search.optimizer.guarantee == "proven"
    assert searcher().optimizer.guarantee == "calibrated"


# -- points known or wanted beforehand -------------------------------------------------------------


def test_quantized_points_to_begin_with():
    space = {"x": tune.qloguniform(0.5, 8.0, 0.5), "n": tune.qlograndint(8, 64, 8)}
    search = searcher(space, points_to_evaluate=[{"x": 1.5, "n": 24}])
    search.set_search_properties("loss", "min", space, num_samples=9)
    assert search.suggest("a") == {"x": 1.5, "n": 24}
    search.on_trial_complete("a", {"loss": 1.0})
    assert search.recommend().params == {"x": 1.5, "n": 24}


def test_points_to_begin_with():
    points = [{"lr": 0.01, "depth": 3}, {"lr": 0.1, "depth": 8}]
    search = searcher(points_to_evaluate=points)
    assert play(search, 2) == points
    told = search.optimizer.trials.finished
    assert told.values.tolist() == [loss(point) for point in points]
    assert play(search, 1, start=2)[0] not in points


def test_whatever_runs_is_pending():
    search = searcher(points_to_evaluate=[{"lr": 0.01, "depth": 3}])
    search.suggest("first")
    assert search.optimizer.n_pending == search.optimizer.policy.pending == 1
    search.on_trial_complete("first", {"loss": 1.0})
    for i in range(12):  # near failures, others run instead
        config = search.suggest(str(i))
        params = search.optimizer.trials.pending.params
        assert any(p == config for p in params)
        search.on_trial_complete(str(i), {"loss": 1.0} if config["depth"] < 5 else None, i % 2)
    search.suggest("last")
    search.on_trial_complete("last")  # dropped
    assert search.optimizer.n_told > 1


def test_values_known_beforehand_are_not_run_again():
    points = [{"lr": 0.01, "depth": 3}, {"lr": 0.1, "depth": 8}]
    search = searcher(points_to_evaluate=points, evaluated_rewards=[0.5, 4.0])
    assert search.optimizer.trials.finished.values.tolist() == [0.5, 4.0]
    assert search.suggest("a") not in points
    search.add_evaluated_point({"lr": 0.02, "depth": 5}, 3.0)
    search.add_evaluated_point({"lr": 0.02, "depth": 6}, 3.0, error=True)
    assert search.optimizer.n_told == 3


@pytest.mark.parametrize(
    "settings",
    [
        {"points_to_evaluate": [{"lr": 0.01}]},
        {"points_to_evaluate": [{"lr": 5.0, "depth": 3}]},
        {"points_to_evaluate": [3]},
        {"points_to_evaluate": [{"lr": 0.01, "depth": 5}], "feasible": small_depth},
        {"points_to_evaluate": [{"lr": 0.01, "depth": 3}], "evaluated_rewards": []},
        {"points_to_evaluate": [{"lr": 0.01, "depth": 3}], "evaluated_rewards": [math.nan]},
        {"seed": -1},
        {"feasible": 3},
        {"n_evals": 0},
    ],
)
def test_bad_settings_are_refused(settings):
    with pytest.raises(InvalidInput):
        searcher(**settings)


@pytest.mark.parametrize(
    ("metric", "mode"),
    [(["a", "b"], ["min", "min"]), ("a", "minimize"), ("a", ["min"]), (3, "min")],
)
def test_one_metric_one_mode(metric, mode):
    with pytest.raises(InvalidInput):
        PartitaSearch(SPACE, metric=metric, mode=mode)


# -- what the Tuner passes on ----------------------------------------------------------------------

PARAM_SPACE = {"lr": tune.loguniform(1e-4, 1e-1), "depth": tune.randint(1, 9), "constant": 1}


def test_space_metric_and_budget_of_the_tuner():
    search = PartitaSearch(seed=3)
    assert search.set_search_properties("loss", "min", PARAM_SPACE, num_samples=50)
    assert search.metric == "loss"
    assert play(search, 20) == play(searcher(seed=3, n_evals=50), 20)


def test_metric_of_the_tuner_with_a_space_of_its_own():
    search = PartitaSearch(SPACE)
    assert search.set_search_properties("loss", "min", {"constant": 1})
    play(search, 2)
    assert not search.set_search_properties("loss", "min", {"other": tune.uniform(0, 1)})


def test_a_mode_alone_means_rays_anonymous_metric():
    search = PartitaSearch(SPACE, mode="max")
    search.suggest("a")
    search.on_trial_complete("a", {"_metric": 3.0})
    assert search.optimizer.trials.finished.values.tolist() == [3.0]


def test_what_is_missing_is_said():
    with pytest.raises(InvalidInput, match="no space"):
        PartitaSearch(metric="loss", mode="min").suggest("a")
    with pytest.raises(InvalidInput, match="mode is not given"):
        PartitaSearch(SPACE).suggest("a")
    search = PartitaSearch()
    assert search.set_search_properties("loss", "min", {"constant": 1})
    with pytest.raises(InvalidInput, match="no space"):
        search.suggest("a")
    search = searcher()
    play(search, 1)
    with pytest.raises(InvalidInput, match="has values for mode='min'"):
        search.set_search_properties("loss", "max", PARAM_SPACE)
    with pytest.raises(InvalidInput, match="has values for metric='loss'"):
        search.set_search_properties("gain", "min", PARAM_SPACE)
    assert search.metric == "loss"


def test_the_tuners_goal_wins_as_long_as_nothing_is_learned():
    search = searcher()
    assert search.set_search_properties("gain", "max", PARAM_SPACE)
    assert (search.metric, search.mode) == ("gain", "max")
    search.suggest("a")
    search.on_trial_complete("a", {"gain": 1.0})
    assert search.optimizer.direction == "maximize"
    assert search.optimizer.n_told == 1


def test_another_run_goes_on_from_what_it_knows_without_the_old_runs_trials():
    search = PartitaSearch()
    search.set_search_properties("loss", "min", PARAM_SPACE, num_samples=100)
    play(search, 10)
    search.suggest("never ends")
    assert search.set_search_properties("loss", "min", PARAM_SPACE, num_samples=100)
    assert search.optimizer.n_pending == 0
    assert search.optimizer.n_told == 10
    play(search, 5, start=10)


def test_without_ray_it_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "partita.integrations.ray.search")
    for name in list(sys.modules):
        if name.partition(".")[0] == "ray":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'partita\[ray\]'"):
        partita.integrations.ray.PartitaSearch  # noqa: B018
    with pytest.raises(AttributeError):
        partita.integrations.ray.PartitaSearcher  # noqa: B018


# -- save and restore ------------------------------------------------------------------------------


def test_a_restored_searcher_goes_on_as_if_never_saved(tmp_path):
    search = searcher(feasible=small_depth, seed=2)
    play(search, 20)
    for name in ("f", "p", "q"):
        search.suggest(name)
    search.on_trial_complete("f", error=True)
    search.save_to_dir(str(tmp_path), "now")
    other = PartitaSearch()
    other.restore_from_dir(str(tmp_path))
    for one in (search, other):
        one.on_trial_complete("p", {"loss": 1.0})
        one.on_trial_complete("f", {"loss": 2.0})
    assert play(other, 40, start=20) == play(search, 40, start=20)
    assert other.recommend().params == search.recommend().params
    assert other.metric == "loss"
    assert other.optimizer.n_pending == search.optimizer.n_pending


def test_files_that_cannot_be_restored_are_refused_and_change_nothing(tmp_path):
    search = searcher()
    play(search, 3)
    path = tmp_path / "state.pkl"
    search.save(str(path))
    whole = path.read_bytes()
    broken = [whole[: len(whole) // 2], b"", b"hello", pickle.dumps({"a": 1}), pickle.dumps(3)]
    for content in broken:
        path.write_bytes(content)
        with pytest.raises(InvalidInput, match="is not a file that PartitaSearch"):
            search.restore(str(path))
    path.write_bytes(pickle.dumps({"partita_search": 99, "version": "9.0", "state": {}}))
    with pytest.raises(VersionMismatch, match="upgrade"):
        search.restore(str(path))
    with pytest.raises(FileNotFoundError):
        search.restore(str(tmp_path / "nothing"))
    assert search.optimizer.n_told == 3


def test_it_is_a_searcher_and_pickles():
    search = searcher()
    play(search, 5)
    assert isinstance(search, Searcher)
    copy = pickle.loads(pickle.dumps(search))
    assert play(copy, 5, start=5) == play(search, 5, start=5)
    assert json.dumps(search.suggest("a"))  # plain numbers
    with pytest.raises(NotPending):
        search.optimizer.tell(999, 1.0)

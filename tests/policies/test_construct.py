"""A policy is given what its signature names, and nothing else."""

import functools

import pytest

import partita as pt
from partita.errors import InvalidInput
from partita.model.assumptions import Assumptions
from partita.policies.construct import construct as construct_told

KNOWN = {
    "horizon": 50,
    "kernel": pt.Matern(1.5, 0.4),
    "norm_bound": 2.0,
    "noise": pt.Gaussian(0.3),
    "delta": 0.05,
    "seed": 7,
}


def construct(make, domain, kernel=None, norm_bound=None, noise=None, delta=None, **more):
    return construct_told(make, domain, Assumptions(kernel, norm_bound, noise, delta), **more)


def recorder(names):
    """A function whose signature names these, and that returns what it was given."""
    scope = {}
    exec(f"def make(domain{names}): return dict(locals())", scope)
    return scope["make"]


def test_construct_passes_what_the_signature_names_and_nothing_else():
    domain = pt.Grid(4)
    for names in (
        ", *, seed=0",
        ", *, horizon, kernel",
        ", noise, delta=0.1, *, seed, other=3",
        "",
    ):
        given = construct(recorder(names), domain, **KNOWN)
        assert given.pop("domain") is domain
        assert given.pop("other", 3) == 3
        assert given == {name: KNOWN[name] for name in KNOWN if name in names}
    assert construct(lambda d, **more: more, domain, **KNOWN) == KNOWN


def test_construct_builds_classes_classmethods_and_partials():
    policy = construct(pt.PiGPUCB.paper, pt.Grid(4), **KNOWN)
    assert (policy.horizon, policy.delta, policy.seed) == (50, 0.05, 7)
    assert policy.guarantee == "published"
    assert construct(pt.UniformSampling, pt.Grid(4), **KNOWN).seed == 7
    fixed = functools.partial(pt.IGPUCB, noise=pt.Gaussian(0.9), alpha=2.0)
    policy = construct(fixed, pt.Grid(4), **KNOWN)
    assert (policy.sub_gaussian, policy.alpha, policy.delta) == (0.9, 2.0, 0.05)


def test_construct_leaves_out_what_is_not_known():
    assert construct(recorder(", *, seed=3, delta=0.2"), 0, seed=None) == {
        "domain": 0, "seed": 3, "delta": 0.2,
    }  # fmt: skip


def test_construct_takes_settings_first():
    policy = construct(pt.IGPUCB, pt.Grid(4), **KNOWN, settings={"alpha": 3.0, "delta": 0.2})
    assert (policy.alpha, policy.delta, policy.norm_bound) == (3.0, 0.2, 2.0)


@pytest.mark.parametrize(
    ("make", "given", "message"),
    [
        (recorder(", *, temperature, seed=0"), {}, r"make needs temperature.*Known: domain, seed"),
        (pt.IGPUCB, {"kernel": None}, "IGPUCB needs kernel"),
        (pt.PiGPUCB.paper, {"horizon": None}, r"PiGPUCB\.paper needs horizon"),
        (recorder(", gain, /, *, seed"), {}, "needs gain"),
        (pt.UniformSampling, {"settings": {"alpha": 1}}, "no setting alpha: it takes seed"),
        (lambda: None, {}, "takes no domain"),
        (lambda *, domain: None, {}, "takes no domain"),
        (functools.partial(pt.UniformSampling, pt.Grid(3)), {}, "takes no domain"),
        (pt.UniformSampling(pt.Grid(3)), {}, "not a policy class"),
    ],
)
def test_construct_says_what_is_missing(make, given, message):
    with pytest.raises(InvalidInput, match=message):
        construct(make, pt.Grid(4), **{**KNOWN, **given})

"""Every exponent by name.

A name says the algorithm, then whose bound on the information gain is put in, if not the one its
authors had: `igp-ucb` is with Srinivas et al. 2010's, `igp-ucb-vakili` with Vakili et al. 2021's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from types import MappingProxyType

from partita.errors import InvalidInput

from . import exponents as rules
from .exponents import Exponent, Rule

#: What exponents are of, and what grows so.
KINDS: Mapping[str, str] = MappingProxyType(
    {
        "regret": "R_T = Σ (f(x*) − f(x_t)) is at most of order T^e",
        "lower bound": "for every algorithm some f makes R_T at least of order T^e",
        "simple regret": "f(x*) − f(x̂_T) is at most of order T^e, x̂_T what is recommended",
        "simple regret lower bound": "for every algorithm some f makes it at least of order T^e",
        "information gain": "γ_T, the largest gain of T points, is at most of order T^e",
        "information gain lower bound": "γ_T is at least of order T^e",
        "cover": "constants of π-GP-UCB’s cover",
    }
)

JANZ = "Janz, Burt & González 2020"
SRINIVAS = "Srinivas, Krause, Kakade & Seeger 2010"
CHOWDHURY = "Chowdhury & Gopalan 2017"
VAKILI = "Vakili, Khezeli & Picheny 2021"
VALKO = "Valko, Korda, Munos, Flaounas & Cristianini 2013"
CALANDRIELLO = "Calandriello, Carratino, Lazaric, Valko & Rosasco 2019"
SCARLETT = "Scarlett, Bogunovic & Cevher 2017"
WHITEHOUSE = "Whitehouse, Ramdas & Wu 2023"
MUNOS = "Munos 2011"

BALL = "‖f‖ ≤ B"
SAMPLE = "f ~ GP(0, k)"
LINEAR = "f linear in known features"
INSIDE = "‖f‖ ≤ B, maxima inside the cube"
NOISELESS = "‖f‖ ≤ B, no noise"
FLAT = "near-optimality dimension 0"

#: A bound on the gain: whose, its rule, and the ν its proof needs.
_GAINS: dict[str, tuple[str, Rule, float]] = {
    "srinivas": (SRINIVAS, rules.srinivas_gain, 1.0),
    "janz": (JANZ, rules.janz_gain, 1.0),
    "vakili": (VAKILI, rules.vakili_gain, 0.5),
}
#: Formulas of γ_T√T and √(γ_T·T) with each gain.
_GAIN_ROOT_T = {
    "srinivas": "min{1, (3d(d+1)+2ν)/(2d(d+1)+4ν)}",
    "janz": "min{1, (d(3d+4)+2ν)/(d(2d+4)+4ν)}",
    "vakili": "min{1, (3d+2ν)/(2d+4ν)}",
}
_ROOT_GAIN_T = {
    "srinivas": "(d(d+1)+ν)/(d(d+1)+2ν)",
    "janz": "(d(2d+3)+2ν)/(d(2d+4)+4ν)",
    "vakili": "(d+ν)/(d+2ν)",
}
_WHOSE = {"srinivas": "Srinivas’s", "janz": "Theorem 2’s", "vakili": "Vakili’s"}


def _with_gain(
    name: str,
    title: str,
    citation: str,
    gain: str,
    *,
    root: bool = False,
    note: str = "",
    setting: str = BALL,
    above: float = 0.0,
) -> Exponent:
    """The regret γ_T√T, or √(γ_T·T) with `root`, with a bound on the gain put in."""
    whose, rule, needs = _GAINS[gain]
    return Exponent(
        name,
        f"{title}, {_WHOSE[gain]} gain",
        (_ROOT_GAIN_T if root else _GAIN_ROOT_T)[gain],
        citation if whose in citation else f"{citation}; gain of {whose}",
        "regret",
        note,
        setting,
        max(needs, above),
        rule=(rules.root_gain_t if root else rules.gain_root_t)(rule),
    )


def _cover() -> Iterable[Exponent]:
    yield Exponent(
        "cell-exponent",
        "b: a cell of side ρ splits at ρ^(−1/b) points",
        "(d+1)/(d+2ν)",
        f"{JANZ}, “Main contribution”",
        "cover",
        rule=rules.cell_rule,
    )
    yield Exponent(
        "cover-exponent",
        "q: at most O(T^q) cells are ever made",
        "d(d+1)/(d(d+2)+2ν)",
        f"{JANZ}, Lemma 2",
        "cover",
        rule=rules.janz_gain,
    )
    yield Exponent(
        "cell-count",
        "bd: Ñ_t = 4(t+1)^(bd)",
        "d(d+1)/(d+2ν)",
        f"{JANZ}, “Point selection”",
        "cover",
        "Ñ_t does not count every cell that could exist: see docs/core.md.",
        rule=lambda d, nu: d * rules.cell_rule(d, nu),
    )


def _gains() -> Iterable[Exponent]:
    kind = "information gain"
    yield Exponent(
        "gain-srinivas",
        "information gain, 2010",
        "d(d+1)/(d(d+1)+2ν)",
        f"{SRINIVAS}, Theorem 5",
        kind,
        proven_above=1.0,
        rule=rules.srinivas_gain,
    )
    yield Exponent(
        "gain-janz",
        "information gain, 2020",
        "d(d+1)/(d(d+2)+2ν)",
        f"{JANZ}, Theorem 2",
        kind,
        "Equal to q. For ν < 1/2 it would be below the lower bound.",
        proven_above=1.0,
        rule=rules.janz_gain,
    )
    yield Exponent(
        "gain-vakili",
        "information gain, 2021",
        "d/(d+2ν)",
        VAKILI,
        kind,
        "Meets the lower bound. Assumes that the kernel’s eigenfunctions are uniformly bounded.",
        proven_above=0.5,
        rule=rules.vakili_gain,
    )
    yield Exponent(
        "gain-lower-bound",
        "information gain, lower bound",
        "d/(d+2ν)",
        f"{JANZ}, “Background”, from {VALKO} and {SCARLETT}",
        "information gain lower bound",
        rule=rules.vakili_gain,
    )


def _lower_bounds() -> Iterable[Exponent]:
    yield Exponent(
        "lower-bound",
        "lower bound",
        "(d+ν)/(d+2ν)",
        SCARLETT,
        "lower bound",
        setting=BALL,
        rule=rules.root_gain_t(rules.vakili_gain),
    )
    yield Exponent(
        "simple-lower-bound",
        "lower bound",
        "−ν/(d+2ν)",
        SCARLETT,
        "simple regret lower bound",
        setting=BALL,
        rule=rules.simple_lower_bound,
    )


def _kernel_regrets() -> Iterable[Exponent]:
    yield Exponent(
        "pi-gp-ucb",
        "π-GP-UCB",
        "(d(2d+3)+2ν)/(d(2d+4)+4ν)",
        f"{JANZ}, Theorem 1",
        "regret",
        "√(T·T^q) = T^((1+q)/2). For ν < 1/2 it would be below the lower bound.",
        BALL,
        1.0,
        rule=rules.root_gain_t(rules.janz_gain),
    )
    yield Exponent(
        "igp-ucb-printed",
        "IGP-UCB, as printed",
        "min{1, (3d²+2ν)/(2d²+4ν)}",
        f"{JANZ}, “Introduction”",
        "regret",
        "Not what γ_T√T gives with the gain known then: that is `igp-ucb`, larger unless both are "
        "1. It takes a gain of T^(d²/(d²+2ν)). Vakili’s is no larger, so it has held since 2021.",
        BALL,
        1.0,
        rule=rules.gain_root_t(rules.printed_gain),
    )
    igp = f"{CHOWDHURY}, Theorem 3"
    yield _with_gain(
        "igp-ucb-janz",
        "IGP-UCB",
        igp,
        "janz",
        note="Below 1 where 2ν > d²: the paper’s sentence on convergence is right for this one.",
    )
    yield Exponent(
        "gp-ucb-whitehouse",
        "GP-UCB, regulariser growing with T",
        "(2d+ν)/(2d+2ν)",
        WHITEHOUSE,
        "regret",
        "With Vakili’s gain. Needs the regulariser T^(d/(2d+2ν)).",
        BALL,
        0.5,
        rule=rules.whitehouse_regret,
    )
    for gain, suffix in (("srinivas", ""), ("vakili", "-vakili")):
        yield _with_gain(f"igp-ucb{suffix}", "IGP-UCB", igp, gain)
        yield _with_gain(f"gp-ucb{suffix}", "GP-UCB", f"{SRINIVAS}, Theorem 3", gain)
        yield _with_gain(f"gp-ts{suffix}", "GP-TS", f"{CHOWDHURY}, Theorem 4", gain)
        yield _with_gain(
            f"bkb{suffix}", "BKB", CALANDRIELLO, gain, note="A constant times GP-UCB’s regret."
        )
        yield _with_gain(
            f"kernel-ucb{suffix}",
            "KernelUCB",
            f"{VALKO}; width of {CHOWDHURY}",
            gain,
            note="Its authors bound SupKernelUCB, not KernelUCB: the bound is that of IGP-UCB, "
            "whose index it is up to the width.",
        )
        yield _with_gain(
            f"gp-ucb-bayes{suffix}",
            "GP-UCB on a sample",
            f"{SRINIVAS}, Theorem 2",
            gain,
            root=True,
            note="For functions drawn from the Gaussian process, four times differentiable kernel.",
            setting=SAMPLE,
            above=2.0,
        )
    finite = "For finitely many arms, √(d̃·T·log N); a grid of T^O(1) arms stands for the cube."
    for gain, suffix in (("srinivas", "-srinivas"), ("janz", ""), ("vakili", "-vakili")):
        yield _with_gain(
            f"sup-kernel-ucb{suffix}", "SupKernelUCB", VALKO, gain, root=True, note=finite
        )


def _other_regrets() -> Iterable[Exponent]:
    half = rules.constant(rules.HALF)
    for name, title, citation, note in (
        ("confidence-ball", "ConfidenceBall", "Dani, Hayes & Kakade 2008", "n√T for n features."),
        ("oful", "OFUL", "Abbasi-Yadkori, Pál & Szepesvári 2011", "n√T for n features."),
        (
            "sup-lin-ucb",
            "SupLinUCB",
            "Auer 2002; Chu, Li, Reyzin & Schapire 2011",
            "√(nT) for n features.",
        ),
    ):
        yield Exponent(name, title, "1/2", citation, "regret", note, LINEAR, rule=half)
    yield Exponent(
        "finite-arms",
        "UCB1, improved UCB, MOSS",
        "1/2",
        "Auer, Cesa-Bianchi & Fischer 2002; Auer & Ortner 2010; Audibert & Bubeck 2009",
        "regret",
        "√(NT) for N arms, up to logarithms of T for UCB1 and of N for improved UCB.",
        "N arms",
        rule=half,
    )
    yield Exponent(
        "uniform",
        "uniform sampling",
        "1",
        "by definition",
        "regret",
        "T (f(x*) − mean of f) in expectation.",
        "any f",
        rule=rules.constant(Fraction(1)),
    )


def _trees() -> Iterable[Exponent]:
    hoo = "Bubeck, Munos, Stoltz & Szepesvári 2011, Theorem 6"
    yield Exponent(
        "hoo",
        "HOO",
        "(d+min(ν,1))/(d+2min(ν,1))",
        hoo,
        "regret",
        "In expectation, for bounded rewards. (D+1)/(D+2) with D = d/a: f is Hölder of order "
        "a = min(ν,1), up to a logarithm at ν = 1, and HOO is told the metric ‖x−y‖^a.",
        BALL,
        rule=rules.hoo_regret(1),
    )
    yield Exponent(
        "hoo-interior",
        "HOO, maxima inside the cube",
        "(d+min(ν,2))/(d+2min(ν,2))",
        f"{hoo}; D = d/min(ν,2) derived in docs/theory.md",
        "regret",
        "As `hoo` with ‖x−y‖^a, a = min(ν,2). Constants depend on f.",
        INSIDE,
        rule=rules.hoo_regret(2),
    )
    kind = "simple regret"
    yield Exponent(
        "doo",
        "DOO",
        "−min(ν,1)/d",
        MUNOS,
        kind,
        "T^(−1/D), D as for `hoo`. Without noise, and DOO is told the metric.",
        NOISELESS,
        rule=rules.doo_loss,
    )
    yield Exponent(
        "soo",
        "SOO",
        "−min(ν,1)/d",
        MUNOS,
        kind,
        "Without noise; SOO is not told the metric. With depth at most T^η the exponent is (1−η) "
        "times this.",
        NOISELESS,
        rule=rules.doo_loss,
    )
    yield Exponent(
        "stosoo",
        "StoSOO",
        "−1/2",
        "Valko, Carpentier & Munos 2013",
        kind,
        "Only where the near-optimality dimension is 0 (f falls like its metric on every side of "
        "one maximum). For D > 0, with T/log³T evaluations a node as there, the bound falls as a "
        "power of log T only.",
        FLAT,
        rule=rules.constant(-rules.HALF),
    )


EXPONENTS: Mapping[str, Exponent] = MappingProxyType(
    {
        each.name: each
        for group in (_lower_bounds, _kernel_regrets, _trees, _other_regrets, _gains, _cover)
        for each in group()
    }
)


def names(kind: str | None = None) -> tuple[str, ...]:
    """Names of all exponents, or of those of a kind."""
    if kind is not None and kind not in KINDS:
        raise InvalidInput(f"kind={kind!r}: give one of {', '.join(KINDS)}.")
    return tuple(name for name, each in EXPONENTS.items() if kind in {None, each.kind})


def get(name: str) -> Exponent:
    """The exponent of this name."""
    try:
        return EXPONENTS[name]
    except (KeyError, TypeError):
        raise InvalidInput(f"exponent {name!r}: give one of {', '.join(EXPONENTS)}.") from None

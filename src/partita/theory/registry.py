"""Every exponent by name: a table with sources.

A name says the algorithm, then whose bound on the information gain is put in, if not the one its
authors had: `igp-ucb` is with Srinivas et al. 2010's, `igp-ucb-vakili` with Vakili et al. 2021's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from partita.errors import InvalidInput

from .exponents import Exponent

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
MUNOS = "Munos 2011"
HOO = "Bubeck, Munos, Stoltz & Szepesvári 2011, Theorem 6"

BALL = "‖f‖ ≤ B"
SAMPLE = "f ~ GP(0, k)"
LINEAR = "f linear in known features"
INSIDE = "‖f‖ ≤ B, maxima inside the cube"
NOISELESS = "‖f‖ ≤ B, no noise"
FLAT = "near-optimality dimension 0"


class _Gain(NamedTuple):
    """A bound T^g on the information gain, and the regrets that follow from it."""

    whose: str
    source: str
    #: The exponent of γ_T√T, never more than T: min{1, 1/2 + g}.
    gain_root_t: str
    #: The exponent of √(γ_T·T): (1 + g)/2.
    root_gain_t: str
    proven_above: float


_GAINS = {
    "srinivas": _Gain(
        "Srinivas’s",
        SRINIVAS,
        "min{1, (3d(d+1)+2ν)/(2d(d+1)+4ν)}",
        "(d(d+1)+ν)/(d(d+1)+2ν)",
        1.0,
    ),
    "janz": _Gain(
        "Theorem 2’s",
        JANZ,
        "min{1, (d(3d+4)+2ν)/(d(2d+4)+4ν)}",
        "(d(2d+3)+2ν)/(d(2d+4)+4ν)",
        1.0,
    ),
    "vakili": _Gain("Vakili’s", VAKILI, "min{1, (3d+2ν)/(2d+4ν)}", "(d+ν)/(d+2ν)", 0.5),
}


def _regret(
    name: str,
    title: str,
    formula: str,
    citation: str,
    note: str = "",
    setting: str = BALL,
    proven_above: float = 0.0,
) -> Exponent:
    return Exponent(name, title, formula, citation, "regret", note, setting, proven_above)


def _with_gain(
    name: str,
    title: str,
    citation: str,
    of: str,
    *,
    root: bool = False,
    note: str = "",
    setting: str = BALL,
    proven_above: float = 0.0,
) -> Exponent:
    """The regret γ_T√T, or √(γ_T·T) with `root`, with a bound on the gain put in."""
    gain = _GAINS[of]
    return _regret(
        name,
        f"{title}, {gain.whose} gain",
        gain.root_gain_t if root else gain.gain_root_t,
        citation if gain.source in citation else f"{citation}; gain of {gain.source}",
        note,
        setting,
        max(gain.proven_above, proven_above),
    )


_IGP_UCB = f"{CHOWDHURY}, Theorem 3"


def _with_gains() -> Iterable[Exponent]:
    """Algorithms whose authors had Srinivas's gain, with it and with Vakili's."""
    for gain, suffix in (("srinivas", ""), ("vakili", "-vakili")):
        yield _with_gain(f"igp-ucb{suffix}", "IGP-UCB", _IGP_UCB, gain)
        yield _with_gain(f"gp-ucb{suffix}", "GP-UCB", f"{SRINIVAS}, Theorem 3", gain)
        yield _with_gain(f"gp-ts{suffix}", "GP-TS", f"{CHOWDHURY}, Theorem 4", gain)
        yield _with_gain(
            f"bkb{suffix}", "BKB", CALANDRIELLO, gain, note="A constant times GP-UCB’s regret."
        )
        yield _with_gain(
            f"gp-ucb-bayes{suffix}",
            "GP-UCB on a sample",
            f"{SRINIVAS}, Theorem 2",
            gain,
            root=True,
            note="For functions drawn from the Gaussian process, four times differentiable kernel.",
            setting=SAMPLE,
            proven_above=2.0,
        )
    finite = "For finitely many arms, √(d̃·T·log N); a grid of T^O(1) arms stands for the cube."
    for gain, suffix in (("srinivas", "-srinivas"), ("janz", ""), ("vakili", "-vakili")):
        yield _with_gain(
            f"sup-kernel-ucb{suffix}", "SupKernelUCB", VALKO, gain, root=True, note=finite
        )


_TABLE = (
    Exponent("lower-bound", "lower bound", "(d+ν)/(d+2ν)", SCARLETT, "lower bound", setting=BALL),
    Exponent(
        "simple-lower-bound",
        "lower bound",
        "−ν/(d+2ν)",
        SCARLETT,
        "simple regret lower bound",
        setting=BALL,
    ),
    _regret(
        "pi-gp-ucb",
        "π-GP-UCB",
        "(d(2d+3)+2ν)/(d(2d+4)+4ν)",
        f"{JANZ}, Theorem 1",
        "√(T·T^q) = T^((1+q)/2). For ν < 1/2 it would be below the lower bound.",
        proven_above=1.0,
    ),
    _regret(
        "igp-ucb-printed",
        "IGP-UCB, as printed",
        "min{1, (3d²+2ν)/(2d²+4ν)}",
        f"{JANZ}, “Introduction”",
        "Not what γ_T√T gives with the gain known then: that is `igp-ucb`, larger unless both are "
        "1. It takes a gain of T^(d²/(d²+2ν)). Vakili’s is no larger, so it has held since 2021.",
        proven_above=1.0,
    ),
    _with_gain(
        "igp-ucb-janz",
        "IGP-UCB",
        _IGP_UCB,
        "janz",
        note="Below 1 where 2ν > d²: the paper’s sentence on convergence is right for this one.",
    ),
    # γ_T√T with a regulariser α = T^r. The width is of order √γ + √α·B and the variances sum to
    # α·γ, so R_T = Õ(√T (γ + √(αγ))), with γ = Õ((T/α)^(d/(d+2ν))). The two terms are equal, and
    # their larger least, where γ = α: r = d/(2d+2ν).
    _regret(
        "gp-ucb-whitehouse",
        "GP-UCB, regulariser growing with T",
        "(2d+ν)/(2d+2ν)",
        "Whitehouse, Ramdas & Wu 2023",
        "With Vakili’s gain. Needs the regulariser T^(d/(2d+2ν)).",
        proven_above=0.5,
    ),
    *_with_gains(),
    _regret(
        "hoo",
        "HOO",
        "(d+min(ν,1))/(d+2min(ν,1))",
        HOO,
        "In expectation, for bounded rewards. (D+1)/(D+2) with D = d/a: f is Hölder of order "
        "a = min(ν,1), up to a logarithm at ν = 1, and HOO is told the metric ‖x−y‖^a.",
    ),
    _regret(
        "hoo-interior",
        "HOO, maxima inside the cube",
        "(d+min(ν,2))/(d+2min(ν,2))",
        f"{HOO}; D = d/min(ν,2) derived in docs/theory.md",
        "As `hoo` with ‖x−y‖^a, a = min(ν,2). Constants depend on f.",
        INSIDE,
    ),
    Exponent(
        "doo",
        "DOO",
        "−min(ν,1)/d",
        MUNOS,
        "simple regret",
        "T^(−1/D), D as for `hoo`. Without noise, and DOO is told the metric.",
        NOISELESS,
    ),
    Exponent(
        "soo",
        "SOO",
        "−min(ν,1)/(2d)",
        MUNOS,
        "simple regret",
        "Without noise; SOO is not told the metric. With depths of at most √T, the default; with "
        "T^η it is −(1−η)min(ν,1)/d.",
        NOISELESS,
    ),
    Exponent(
        "stosoo",
        "StoSOO",
        "−1/2",
        "Valko, Carpentier & Munos 2013",
        "simple regret",
        "Only where the near-optimality dimension is 0 (f falls like its metric on every side of "
        "one maximum). For D > 0, with T/log³T evaluations a node as there, the bound falls as a "
        "power of log T only.",
        FLAT,
    ),
    *(
        _regret(name, title, "1/2", citation, f"{bound} for n features.", LINEAR)
        for name, title, bound, citation in (
            ("confidence-ball", "ConfidenceBall", "n√T", "Dani, Hayes & Kakade 2008"),
            ("oful", "OFUL", "n√T", "Abbasi-Yadkori, Pál & Szepesvári 2011"),
            ("sup-lin-ucb", "SupLinUCB", "√(nT)", "Auer 2002; Chu, Li, Reyzin & Schapire 2011"),
        )
    ),
    _regret(
        "finite-arms",
        "UCB1, improved UCB, MOSS",
        "1/2",
        "Auer, Cesa-Bianchi & Fischer 2002; Auer & Ortner 2010; Audibert & Bubeck 2009",
        "√(NT) for N arms, up to logarithms of T for UCB1 and of N for improved UCB.",
        "N arms",
    ),
    _regret(
        "uniform",
        "uniform sampling",
        "1",
        "by definition",
        "T (f(x*) − mean of f) in expectation.",
        "any f",
    ),
    Exponent(
        "gain-srinivas",
        "information gain, 2010",
        "d(d+1)/(d(d+1)+2ν)",
        f"{SRINIVAS}, Theorem 5",
        "information gain",
        proven_above=1.0,
    ),
    Exponent(
        "gain-janz",
        "information gain, 2020",
        "d(d+1)/(d(d+2)+2ν)",
        f"{JANZ}, Theorem 2",
        "information gain",
        "Equal to q. For ν < 1/2 it would be below the lower bound.",
        proven_above=1.0,
    ),
    Exponent(
        "gain-vakili",
        "information gain, 2021",
        "d/(d+2ν)",
        VAKILI,
        "information gain",
        "Meets the lower bound. Assumes that the kernel’s eigenfunctions are uniformly bounded.",
        proven_above=0.5,
    ),
    Exponent(
        "gain-lower-bound",
        "information gain, lower bound",
        "d/(d+2ν)",
        f"{JANZ}, “Background”, from {VALKO} and {SCARLETT}",
        "information gain lower bound",
    ),
    Exponent(
        "cell-exponent",
        "b: a cell of side ρ splits at ρ^(−1/b) points",
        "(d+1)/(d+2ν)",
        f"{JANZ}, “Main contribution”",
        "cover",
    ),
    Exponent(
        "cover-exponent",
        "q: at most O(T^q) cells are ever made",
        "d(d+1)/(d(d+2)+2ν)",
        f"{JANZ}, Lemma 2",
        "cover",
    ),
    Exponent(
        "cell-count",
        "bd: Ñ_t = 4(t+1)^(bd)",
        "d(d+1)/(d+2ν)",
        f"{JANZ}, “Point selection”",
        "cover",
        "Ñ_t does not count every cell that could exist: see docs/core.md.",
    ),
)

EXPONENTS: Mapping[str, Exponent] = MappingProxyType({each.name: each for each in _TABLE})


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

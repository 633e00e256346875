"""The registry of algorithms by name: what each is, assumes and costs, and how it is built.

The command line, the experiments and docs/algorithms.md use only this. Your own policy is named by
its place: "module:Class".
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from partita.errors import InvalidInput

Maker = Callable[..., Any]


@dataclass(frozen=True)
class Method:
    """An algorithm.

    Attributes
    ----------
    name
        Its name on the command line.
    title
        Its name in the literature.
    home
        Where it is: a module of `partita.policies`, and the class or classmethod in it.
    citation
        Who published it.
    assumes
        What must be known, or must hold.
    exponents
        Its regret bounds, by their names in `partita.theory`.
    step
        The cost of one evaluation: N arms, m candidates or points kept, t evaluations so far, d
        dimensions.
    domains
        The domains it supports, among "grid", "arms" and "box".
    use
        When to use it.
    settings
        Its settings in experiments, in addition to what is known of the problem.
    promises
        The `partita.testing.Promises` that it keeps in addition to the defaults.
    sub_gaussian
        Whether it gets only the half-width of the noise as a sub-Gaussian constant in experiments,
        as in Janz et al. 2020, instead of the distribution.
    """

    name: str
    title: str
    home: str
    citation: str
    assumes: str
    exponents: tuple[str, ...]
    step: str
    domains: tuple[str, ...]
    use: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    promises: Mapping[str, Any] = field(default_factory=dict)
    sub_gaussian: bool = False

    def load(self) -> Maker:
        """The class, or classmethod, that makes it."""
        module, _, path = self.home.partition(":")
        maker: Any = importlib.import_module(f"partita.policies.{module}")
        for part in path.split("."):
            maker = getattr(maker, part)
        return maker  # type: ignore[no-any-return]


FINITE = ("grid", "arms")
ANY = ("grid", "arms", "box")
NORM = "‖f‖ ≤ B, L-sub-Gaussian noise, both known"
LINEAR = "f linear in the coordinates, ‖θ‖ ≤ B, L-sub-Gaussian noise, both known"
EXACT = "values without noise"
TREE: Mapping[str, Any] = {"order_free": False, "memory": {"box": 1.0}}
SIMPLE: Mapping[str, Any] = {**TREE, "unasked": "accepted", "regret": "simple"}

_METHODS = (
    Method(
        "gp-ucb",
        "GP-UCB",
        "baselines.gp_ucb:GPUCB",
        "Srinivas, Krause, Kakade & Seeger 2010",
        "f drawn from the Gaussian process, Gaussian noise",
        ("gp-ucb-bayes", "gp-ucb-bayes-vakili"),
        "O(N²), by rows O(tN) from 4,000 arms on",
        FINITE,
        "as a baseline: the classic of Bayesian optimisation",
    ),
    Method(
        "gp-ucb-rkhs",
        "GP-UCB, RKHS width",
        "baselines.gp_ucb:GPUCB",
        "Srinivas, Krause, Kakade & Seeger 2010",
        "‖f‖ ≤ B, bounded noise, both known",
        ("gp-ucb", "gp-ucb-vakili"),
        "O(N²), twice that of gp-ucb; it remembers a number a step",
        FINITE,
        "to see why its width was improved: it explores for millions of steps",
        {"bound": "rkhs"},
        promises={"regret": None, "memory": 1.0},
    ),
    Method(
        "igp-ucb",
        "IGP-UCB",
        "baselines.igp_ucb:IGPUCB",
        "Chowdhury & Gopalan 2017",
        NORM,
        ("igp-ucb-printed", "igp-ucb", "igp-ucb-vakili"),
        "O(N²), by rows or convolution from 4,000 arms on",
        ANY,
        "as a baseline: one exact Gaussian process, proven",
        {"alpha": 1.0},
        sub_gaussian=True,
    ),
    Method(
        "kernel-ucb",
        "KernelUCB",
        "baselines.kernel_ucb:KernelUCB",
        "Valko, Korda, Munos, Flaounas & Cristianini 2013",
        f"{NORM}; its bounds are those of a fixed design",
        (),
        "O(N²), by rows O(tN) from 4,000 arms on",
        FINITE,
        "as a baseline",
    ),
    Method(
        "sup-kernel-ucb",
        "SupKernelUCB",
        "baselines.sup_kernel_ucb:SupKernelUCB",
        "Valko, Korda, Munos, Flaounas & Cristianini 2013",
        NORM,
        ("sup-kernel-ucb", "sup-kernel-ucb-vakili"),
        "O(N²) at most, in the level that learns",
        FINITE,
        "for its bound; it loses nearly as much as uniform sampling at any horizon in reach",
        promises={"regret": None},
    ),
    Method(
        "bkb",
        "BKB",
        "baselines.bkb:BKB",
        "Calandriello, Carratino, Lazaric, Valko & Rosasco 2019",
        NORM,
        ("bkb", "bkb-vakili"),
        "O(Nm² + m³), m the sketch",
        FINITE,
        "as a baseline of the sketched methods; experiments give it q̄ = 5, which proves nothing",
        {"budget": 5.0},
        promises={"order_free": False},
    ),
    Method(
        "pi-gp-ucb-paper",
        "π-GP-UCB, paper’s preset",
        "pi_gp_ucb:PiGPUCB.paper",
        "Janz, Burt & González 2020",
        f"{NORM}; ν > 1 for the regret bound",
        ("pi-gp-ucb",),
        "constant in t, O(m²) for a cell of m candidates",
        ANY,
        "to reproduce the paper",
        {"alpha": 1.0},
        sub_gaussian=True,
    ),
    Method(
        "pi-gp-ucb",
        "π-GP-UCB",
        "pi_gp_ucb:PiGPUCB",
        "Janz, Burt & González 2020, with Partita’s width and split",
        f"{NORM}; ν > 1 for the regret bound",
        ("pi-gp-ucb",),
        "constant in t, O(m²) for a cell of m candidates",
        ANY,
        "when norm and noise are known: the default, with a proven bound and certificate",
    ),
    Method(
        "pi-gp-ucb-tight",
        "π-GP-UCB, successive tightening",
        "pi_gp_ucb:PiGPUCB",
        "Janz, Burt & González 2020, with Partita’s width, split and inherited bounds",
        f"{NORM}; ν > 1 for the regret bound",
        ("pi-gp-ucb",),
        "constant in t, O(m²) for a cell of m candidates",
        ANY,
        "when cells split often, for the tightest certificate",
        {"tightening": True},
    ),
    Method(
        "pi-gp-ts",
        "Thompson sampling on the partition",
        "pi_gp_ts:PiGPTS",
        "after Chowdhury & Gopalan 2017 (GP-TS) and Janz, Burt & González 2020",
        f"{NORM}; no regret bound is known for draws this narrow",
        (),
        "constant in t, O(m²) for a cell of m candidates, three cells a step",
        ANY,
        "when losing little matters more than a regret theorem: bounds on f are as proven as "
        "π-GP-UCB’s",
    ),
    Method(
        "calibrated-ucb",
        "CalibratedUCB",
        "calibrated:CalibratedUCB",
        "Partita",
        "nothing: it learns kernel, noise and scale",
        (),
        "constant in t, on average; O(m²) for a region of m candidates",
        ANY,
        "when norm and noise are not known: bounds are measured, not proven",
        {"kernel": None, "norm_bound": None, "noise": None},
        TREE,
    ),
    Method(
        "confidence-ball",
        "ConfidenceBall",
        "baselines.confidence_ball:ConfidenceBall",
        "Dani, Hayes & Kakade 2008",
        LINEAR,
        ("confidence-ball",),
        "O(Nd + d²)",
        ANY,
        "for its place in history: OFUL is the same with a width that learns",
        promises={"function": "linear", "regret": None},
    ),
    Method(
        "oful",
        "OFUL",
        "baselines.oful:OFUL",
        "Abbasi-Yadkori, Pál & Szepesvári 2011",
        LINEAR,
        ("oful",),
        "O(Nd + d²)",
        ANY,
        "when f is linear",
        promises={"function": "linear"},
    ),
    Method(
        "sup-lin-ucb",
        "SupLinUCB",
        "baselines.sup_lin_ucb:SupLinUCB",
        "Auer 2002; Chu, Li, Reyzin & Schapire 2011",
        LINEAR,
        ("sup-lin-ucb",),
        "O(Nd + d²), in the level that learns",
        FINITE,
        "for its bound, when f is linear",
        promises={"function": "linear"},
    ),
    Method(
        "hoo",
        "HOO",
        "baselines.hoo:HOO",
        "Bubeck, Munos, Stoltz & Szepesvári 2011",
        "f no rougher around its maximum than ν₁ρ^h on a cell of depth h, L-sub-Gaussian noise",
        ("hoo", "hoo-interior"),
        "O(depth)",
        ANY,
        "when f is rough and nothing but its noise is known",
        promises=TREE,
    ),
    Method(
        "stosoo",
        "StoSOO",
        "baselines.stosoo:StoSOO",
        "Valko, Carpentier & Munos 2013",
        "L-sub-Gaussian noise; a smoothness that need not be known",
        ("stosoo",),
        "O(depth · log t)",
        ANY,
        "to find a good point under noise when nothing is known of f; its regret is not small",
        promises=SIMPLE,
    ),
    Method(
        "doo",
        "DOO",
        "baselines.optimistic:DOO",
        "Munos 2011",
        f"{EXACT}, known smoothness",
        ("doo",),
        "O(log t)",
        ANY,
        "without noise, when the smoothness is known",
        promises={**SIMPLE, "noisy": False},
    ),
    Method(
        "soo",
        "SOO",
        "baselines.optimistic:SOO",
        "Munos 2011",
        EXACT,
        ("soo",),
        "O(depth · log t)",
        ANY,
        "without noise, when nothing is known of f",
        promises={**SIMPLE, "noisy": False},
    ),
    Method(
        "direct",
        "DIRECT",
        "baselines.direct:DIRECT",
        "Jones, Perttunen & Stuckman 1993",
        EXACT,
        (),
        "O(sizes · log t)",
        ANY,
        "without noise, when nothing is known of f",
        promises={**SIMPLE, "noisy": False},
    ),
    Method(
        "uniform",
        "uniform sampling",
        "uniform:UniformSampling",
        "–",
        "nothing",
        ("uniform",),
        "O(1)",
        ANY,
        "as the yardstick: regret is measured against it",
        promises={"regret": None, "memory": {"box": 1.0}},
    ),
)

METHODS: Mapping[str, Method] = MappingProxyType({method.name: method for method in _METHODS})


def names() -> tuple[str, ...]:
    """Names of all methods, in the order of the documentation."""
    return tuple(METHODS)


def get(name: str) -> Method:
    """The method of this name, or one for a policy of the user's own, "module:Class"."""
    method = METHODS.get(name)
    if method is not None:
        return method
    if ":" not in name:
        raise InvalidInput(
            f"policy {name!r} is unknown: give one of {', '.join(METHODS)}, or module:Class for a "
            "policy of your own."
        )
    load(name)
    return Method(name, name.rpartition(":")[2], name, "–", "–", (), "–", ANY, "–")


def maker_of(name: str) -> Maker:
    """The class or function that makes a policy: built in, or the user's "module:Class"."""
    return METHODS[name].load() if name in METHODS else load(name)


def load(path: str) -> Maker:
    """The class or function at "module:Class"; the module may be in the current folder."""
    module, _, attribute = path.partition(":")
    if not module or not attribute:
        raise InvalidInput(f"policy {path!r}: give module:Class, such as mypolicies:EpsilonGreedy.")
    here = str(Path.cwd())
    added = here not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        made: Any = importlib.import_module(module)
    except ImportError as error:
        raise InvalidInput(f"policy {path!r}: {module} cannot be imported ({error}).") from error
    except Exception as error:  # the user's module may raise anything
        raise InvalidInput(
            f"policy {path!r}: {module} fails when it is imported "
            f"({type(error).__name__}: {error})."
        ) from error
    finally:
        if added:
            sys.path.remove(here)
    for part in attribute.split("."):
        made = getattr(made, part, None)
        if made is None:
            raise InvalidInput(f"policy {path!r}: {module} has no {attribute}.")
    if not callable(made):
        raise InvalidInput(f"policy {path!r} is not a class or function: {made!r}.")
    return made  # type: ignore[no-any-return]


def source_digest(name: str) -> str:
    """A digest that identifies the version of a user's policy by its file; "" if built in."""
    if name in METHODS:
        return ""
    try:
        file = inspect.getsourcefile(inspect.unwrap(load(name)))
        content = b"" if file is None else Path(file).read_bytes()
    except (TypeError, OSError):
        content = b""
    return hashlib.sha256(content).hexdigest()[:12]

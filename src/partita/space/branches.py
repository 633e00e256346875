"""Read conditional parameters: a dict of branches, each a dict of parameters of its own.

    {"model": {"svm": {"C": (1e-3, 1e3, "log")}, "forest": {"trees": (10, 500, "int")}}}

The name of a branch is the value of the parameter: any object that a dict takes for a key. Branches
may hold further branches. A parameter that several branches have under one name and with one range
is the same one in all of them; with other ranges, each branch has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from partita.errors import InvalidInput

from .choices import Categorical
from .conditions import Condition, Parameter

#: Levels of branches within branches, and parameters in all branches together, at most.
DEEPEST, MOST_CONDITIONAL = 8, 1000

#: A name and what a user writes for it → the parameter.
Reader = Callable[[Any, str], Parameter]
#: Where in the tree a parameter stands: the number of the branch, by the place of the parent.
Path = dict[int, int]


@dataclass(frozen=True)
class Node:
    """A parameter, and those of its branches, by the number of the choice; none for a plain one."""

    name: str
    parameter: Parameter
    branches: tuple[tuple[Node, ...], ...] = ()


def read_nodes(
    spec: Mapping[Any, Any],
    read: Reader,
    check: Callable[[object], None],
    above: tuple[str, ...] = (),
) -> tuple[Node, ...]:
    """The parameters of a mapping; `read` makes one of a plain range, `check` refuses names.

    They stand in the branches `above`, the outermost first.
    """
    nodes = []
    for name, value in spec.items():
        check(name)
        if isinstance(value, Mapping):
            nodes.append(_conditional(name, value, read, check, above))
        else:
            nodes.append(Node(name, read(value, "/".join((*above, name)))))
    return tuple(nodes)


def _conditional(
    name: str,
    spec: Mapping[Any, Any],
    read: Reader,
    check: Callable[[object], None],
    above: tuple[str, ...],
) -> Node:
    shown = "/".join((*above, name))
    if len(above) >= DEEPEST:
        raise InvalidInput(f"parameter {shown!r}: branches go {DEEPEST} levels deep at most")
    if not spec:
        raise InvalidInput(
            f"parameter {shown!r}: there are no branches in {{}}. Give a dict of them, such as "
            '{"svm": {"C": (0.1, 10)}, "forest": {}}'
        )
    for branch, inside in spec.items():
        if not isinstance(inside, Mapping):
            raise InvalidInput(
                f"parameter {shown!r}: {inside!r} is not a branch. A dict of branches has a dict "
                f"of parameters for each, such as {{{branch!r}: {{{_example(inside)}}}}}, and {{}} "
                "where there are none. For plain choices give a list"
            )
    try:
        choices = Categorical(tuple(spec))
    except InvalidInput as error:
        raise InvalidInput(f"parameter {shown!r}: {error}") from None
    branches = tuple(
        read_nodes(inside, read, check, (*above, f"{name}={branch}"))
        for branch, inside in spec.items()
    )
    return Node(name, choices, branches if any(branches) else ())


def _example(inside: Any) -> str:
    return f'"C": {inside!r}' if isinstance(inside, tuple) else '"C": (0.1, 10)'


class Flat:
    """Parameters of a tree side by side, in the order in which they are written.

    Attributes
    ----------
    names, parameters, conditions
        One each; a parameter that is the same in several branches is there once.
    """

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self._nodes: list[Node] = []
        self._by_name: dict[str, list[int]] = {}
        self._active: list[dict[int, set[int]]] = []
        self._paths: list[list[Path]] = []
        self._count = 0
        self._visit(nodes, {})
        for places in self._by_name.values():
            self._check(places)
        self.names = tuple(node.name for node in self._nodes)
        self.parameters = tuple(node.parameter for node in self._nodes)
        self.conditions = tuple(
            tuple(Condition(parent, tuple(sorted(several))) for parent, several in when.items())
            for when in self._active
        )

    def _visit(self, nodes: tuple[Node, ...], path: Path) -> None:
        for node in nodes:
            self._count += bool(path)
            if self._count > MOST_CONDITIONAL:
                raise InvalidInput(
                    f"the branches hold more than {MOST_CONDITIONAL:,} parameters. Give fewer"
                )
            place = self._place(node)
            self._paths[place].append(path)
            if path:
                parent, number = list(path.items())[-1]
                self._active[place].setdefault(parent, set()).add(number)
            for number, branch in enumerate(node.branches):
                self._visit(branch, {**path, place: number})

    def _place(self, node: Node) -> int:
        """The place of a parameter, which may be there already."""
        same = self._by_name.setdefault(node.name, [])
        for place in same:
            if self._nodes[place] == node:
                return place
        same.append(len(self._nodes))
        self._nodes.append(node)
        self._active.append({})
        self._paths.append([])
        return same[-1]

    def _check(self, places: list[int]) -> None:
        """Refuse a name that stands for two parameters at once, or for one twice."""
        standing = [(place, path) for place in places for path in self._paths[place]]
        for i, (place, path) in enumerate(standing):
            for other, another in standing[:i]:
                if any(another[p] != number for p, number in path.items() if p in another):
                    continue
                name = self._nodes[place].name
                if place != other:
                    raise InvalidInput(
                        f"parameter {name!r} is there twice at once, {self._where(another)} and "
                        f"{self._where(path)}, with other ranges. Give one of them another name"
                    )
                if path.items() <= another.items() or another.items() <= path.items():
                    raise InvalidInput(
                        f"parameter {name!r} is there twice, {self._where(another)} and "
                        f"{self._where(path)}. Leave it out where it is there anyway"
                    )

    def _where(self, path: Path) -> str:
        """Where a path leads, for a reader."""
        if not path:
            return "outside all branches"
        steps = [
            f"{self._nodes[place].name}={self._nodes[place].parameter.choices[number]!r}"  # type: ignore[union-attr]
            for place, number in path.items()
        ]
        return f"where {', '.join(steps)}"


def tree_of(
    names: tuple[str, ...],
    parameters: tuple[Parameter, ...],
    conditions: tuple[tuple[Condition, ...], ...],
) -> list[list[Any]]:
    """Pairs of a name and its range as JSON has it, branches within: what `mapping_of` reads."""

    def inside(parent: int | None, number: int) -> list[list[Any]]:
        return [[names[i], spec(i)] for i in range(len(names)) if stands(i, parent, number)]

    def stands(i: int, parent: int | None, number: int) -> bool:
        if parent is None:
            return not conditions[i]
        return any(c.parent == parent and number in c.values for c in conditions[i])

    def spec(i: int) -> Any:
        parameter = parameters[i]
        if not any(c.parent == i for several in conditions for c in several):
            return parameter.spec()
        if not isinstance(parameter, Categorical):
            raise TypeError(f"branches of {names[i]}, which is not a choice")
        choices = enumerate(parameter.choices)
        return {"branches": [[choice, inside(i, number)] for number, choice in choices]}

    return inside(None, 0)


def mapping_of(tree: Any) -> dict[Any, Any]:
    """What a user would write for what `tree_of` wrote."""

    def written(spec: Any) -> Any:
        if not isinstance(spec, dict):
            return tuple(spec)
        if "choices" in spec:
            if not isinstance(spec["choices"], list):
                raise TypeError("choices that are not a list")
            return Categorical(tuple(spec["choices"]))  # a list might be taken for a slip
        return {branch: mapping_of(inside) for branch, inside in spec["branches"]}

    return {name: written(spec) for name, spec in tree}

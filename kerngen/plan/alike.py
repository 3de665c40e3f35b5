"""The template of similar rows: their common parts, with parameters for the others.

    run add.map(a, b, c*) | groups ceil_div(n, 256)
    run mul.map(x, y, z*) | groups ceil_div(m * k, 256)

have the template `run $map($a, $b, $c*) | groups ceil_div($n, 256)`; the arguments of the
first are add.map, a, b, c and n.  This is a least general generalisation, which is known as
anti-unification: equal columns of arguments are one parameter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, assert_never, final

from kerngen.plan import size as host
from kerngen.plan.rows import Declared, Piece, ReplaceableName, Row

Column: TypeAlias = tuple[Piece, ...]
"""The pieces that several rows have at one place."""

MOST_PARAMETERS: Final = 20
"""The most parameters of a form: a line with more is not read as a row of a table."""

_CONSTANT: Final = re.compile(r"(\w+) = $")
"""The words before a constant of a shader: `TILE_K = `, of `with TILE_K = 16`."""


class NotAlikeError(Exception):
    """Raised for rows whose template would have more than `MOST_PARAMETERS` parameters."""


def shape(piece: Piece) -> object:
    """Return the shape of a piece of a row: rows have a template if their shapes are equal.

    All replaceable names have one shape, and so have all sizes; the shape of a guard is its
    operators.  Fixed words and declared names are their own shapes.  A shape is hashable.
    """
    if isinstance(piece, str | Declared):
        return piece
    if isinstance(piece, ReplaceableName):
        return ReplaceableName
    return host.Size if isinstance(piece, host.Size) else _shape(piece)


def _shape(guard: host.Guard) -> object:
    match guard:
        case host.Truth():
            return guard
        case host.Compare(op):
            return op
        case host.All(guards) | host.AnyOf(guards):
            return type(guard), *map(_shape, guards)
        case host.Not(inner):
            return host.Not, _shape(inner)
        case _:
            assert_never(guard)


@final
@dataclass(slots=True)
class RowTemplate:
    """Makes the template of similar members, each a list of rows, and collects its parameters.

    A column has what each member has in one place: those of the example above that differ are
    (add.map, mul.map), (a, x) and so on.  `parameters` maps such columns to their names, here
    "$map" and "$a": so a column that comes again is the same parameter.  `own` are the scratch
    buffers that the rows declare.
    """

    parameters: dict[Column, str] = field(default_factory=dict["Column", str])
    own: set[str] = field(default_factory=set[str])

    def rows(self, members: Sequence[Sequence[Row]]) -> tuple[Row, ...]:
        """Return the rows of the template of several members, whose rows have the same shapes.

        Raises:
            NotAlikeError: If it has too many parameters.
        """
        # lines: the rows of all members by number; columns: their pieces by position.
        lines = [*zip(*members, strict=True)]
        columns = [[*zip(*(x.pieces for x in line), strict=True)] for line in lines]
        for line in columns:
            self._prepare(line)
        # The lines of a form are indented by 1, wherever its members are.
        depth = 1 - lines[0][0].depth
        return tuple(
            Row(depth + line[0].depth, tuple(map(self._piece, pieces)))
            for line, pieces in zip(lines, columns, strict=True)
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters: those of names first, then of sizes, then of numbers."""
        return tuple(self.parameters[column] for column in self._sorted())

    def arguments(self, member: int) -> Iterator[Piece]:
        """Yield the arguments of a member for the parameters, in the order of `names`.

        `member` is its number among those given to `rows`.
        """
        return (column[member] for column in self._sorted())

    def _sorted(self) -> list[Column]:
        """Return the columns of the parameters: names first, numbers last."""
        kinds: dict[type, int] = {ReplaceableName: 0, host.Literal: 2}
        return sorted(self.parameters, key=lambda column: kinds.get(type(column[0]), 1))

    def _prepare(self, columns: Sequence[Column]) -> None:
        """Note scratch buffers, and name the parameters of constants after these.

        `TILE_K = 16` and `TILE_K = 32` are `TILE_K = $tile_k`.  That comes before all other
        pieces, as sizes of the line may have the same column.
        """
        before = ""
        for column in columns:
            match column[0]:
                case Declared(text):
                    self.own.add(text)
                case host.Literal() if (name := _CONSTANT.search(before)) and _differ(
                    column
                ):
                    self._parameter(column, name[1].lower())
                case str(text):
                    before = text
                case _:
                    pass

    def _parameter(self, column: Column, name: str) -> str:
        """Return the parameter for a column, with a `$` that no name has."""
        if column not in self.parameters:
            if len(self.parameters) == MOST_PARAMETERS:
                raise NotAlikeError
            taken, number, free = {*self.parameters.values()}, 2, f"${name}"
            while free in taken:
                free, number = f"${name}_{number}", number + 1
            self.parameters[column] = free
        return self.parameters[column]

    def _piece(self, column: Column) -> Piece:
        """Return the template of the pieces of a column."""
        first = column[0]
        if isinstance(first, str | Declared):
            return first
        if isinstance(first, ReplaceableName):
            if first.text in self.own and not _differ(column):
                return first
            return ReplaceableName(self._parameter(column, _short(first.text)))
        if isinstance(first, host.Size):
            return self._size(tuple(x for x in column if isinstance(x, host.Size)))
        return self._guard(tuple(x for x in column if isinstance(x, host.Guard)))

    def _size(self, column: tuple[host.Size, ...]) -> host.Size:
        """Return the template of sizes: equal functions stay, other parts are parameters."""
        match column[0]:
            case host.Literal() as first:
                if not _differ(column):
                    return first
                return host.Symbol(self._parameter(column, "number"))
            case host.Symbol(name) as first:
                if name.startswith("adapter.") and not _differ(column):
                    return first
                return host.Symbol(self._parameter(column, _short(name)))
            case host.Apply(function):
                calls = [x for x in column if isinstance(x, host.Apply)]
                if [x.function for x in calls] == [function] * len(column):
                    return self._apply(function, [x.operands for x in calls])
            case host.Select(condition):
                given = [x for x in column if isinstance(x, host.Select)]
                if [_shape(x.condition) for x in given] == [_shape(condition)] * len(
                    column
                ):
                    return host.Select(
                        self._guard(tuple(x.condition for x in given)),
                        self._size(tuple(x.then for x in given)),
                        self._size(tuple(x.otherwise for x in given)),
                    )
            case _:
                assert_never(column[0])
        return host.Symbol(self._parameter(column, "size"))

    def _apply(
        self, function: str, lists: Sequence[tuple[host.Size, ...]]
    ) -> host.Size:
        """Return a function of the template of its operands.

        Sums and products may differ in their number of operands: then the first ones are
        joined, so that `m * n * 4` and `k * 4` have the template `$size * 4`.
        """
        # `add` and `multiply` alone make functions of any number of operands.
        least = min(map(len, lists))
        if any(len(operands) > least for operands in lists):
            joined = {"+": host.add, "*": host.multiply}[function]
            ends = [
                (operands[: 1 - least], operands[1 - least :]) for operands in lists
            ]
            lists = [(joined(*first), *others) for first, others in ends]
        return host.Apply(function, tuple(map(self._size, zip(*lists, strict=True))))

    def _guard(self, column: tuple[host.Guard, ...]) -> host.Guard:
        """Return the template of conditions, which have one shape: only sizes differ."""
        match column[0]:
            case host.Truth() as first:
                return first
            case host.Compare(op):
                sides = [x for x in column if isinstance(x, host.Compare)]
                left, right = (
                    tuple(x.left for x in sides),
                    tuple(x.right for x in sides),
                )
                return host.Compare(op, self._size(left), self._size(right))
            case host.All():
                return host.All(
                    self._guards([x.guards for x in column if isinstance(x, host.All)])
                )
            case host.AnyOf():
                return host.AnyOf(
                    self._guards(
                        [x.guards for x in column if isinstance(x, host.AnyOf)]
                    )
                )
            case host.Not():
                return host.Not(
                    self._guard(
                        tuple(x.guard for x in column if isinstance(x, host.Not))
                    )
                )
            case _:
                assert_never(column[0])

    def _guards(
        self, lists: Sequence[tuple[host.Guard, ...]]
    ) -> tuple[host.Guard, ...]:
        return tuple(map(self._guard, zip(*lists, strict=True)))


def _differ(column: Column) -> bool:
    return any(x != column[0] for x in column)


def _short(name: str) -> str:
    """Return a name for a parameter: `rows` for the shader `softmax.top.rows_lanes32`."""
    last = name.lstrip("$").rpartition(".")[2]
    return last.partition("_")[0] if "." in name else last

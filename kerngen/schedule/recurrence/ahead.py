"""Reads of later turns of a recurrence, on their way while a turn is computed.

    var x_ahead0 = x[0];  ...  var x_ahead7 = x[7];
    for (var block = 0; block < m; block += 16) {
        {  // turn 0
            let x_now = x_ahead0;
            x_ahead0 = x[block + 8];
            ... x_now ...

No turn waits for memory then, unless eight of them take less time than a read.  What only
a condition makes valid, as `x[i - 1]` of `if i > 0`, is read in its own turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import final

from kerngen.ir.analysis.reads import free_indices, is_within
from kerngen.ir.nodes import (
    Binary,
    Expr,
    Index,
    Load,
    LocalValue,
    Select,
)
from kerngen.ir.walk import children, map_children, walk
from kerngen.schedule.lowering.builder import wgsl_type
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.values import LANES, Value
from kerngen.shader import tree as t


@final
@dataclass(frozen=True)
class Ahead:
    """Reads along an index, of so many turns ahead: each has a variable for every turn.

    Those that are the same in all turns, `fixed`, have one, which is read at first.
    """

    reads: tuple[Load, ...]
    fixed: tuple[Load, ...]
    along: Index
    turns: int
    _variables: dict[tuple[Load, int], Value] = field(
        default_factory=dict[tuple[Load, int], Value]
    )

    @classmethod
    def of(cls, exprs: tuple[Expr, ...], along: Index, turns: int) -> Ahead:
        """Find the reads of expressions that can be made ahead."""
        found = dict.fromkeys(load for expr in exprs for load in _always(expr))
        reads = tuple(x for x in found if along in free_indices(x))
        fixed = tuple(x for x in found if along not in free_indices(x))
        return cls(reads, fixed, along, turns)

    def declare(self, to: Lowerer) -> None:
        """Declare the variables; they are 0."""
        for load in self.fixed:
            self._declare(to, load, 0, "kept")
        for load in self.reads:
            for number in range(self.turns):
                self._declare(to, load, number, f"ahead{number}")

    def _declare(self, to: Lowerer, load: Load, number: int, ending: str) -> None:
        value = to.nested({self.along: t.ZERO}).lower(load)
        name = to.shader.fresh(f"{load.tensor.name}_{ending}")
        type_ = wgsl_type(load.type, LANES if value.wide else 1)
        to.block.append(t.Var(name, type=type_))
        self._variables[load, number] = Value(t.Ident(name), value.wide)

    def read_fixed(self, to: Lowerer) -> None:
        """Read what is the same in all turns."""
        self._read(to, self.fixed, 0)

    def read(self, to: Lowerer, turn: int, element: t.Expr) -> None:
        """Read for a turn, whose element is given, into its variables."""
        at = to.nested({self.along: element})
        self._read(at, self.reads, turn % self.turns)
        to.block.extend(at.block)

    def _read(self, to: Lowerer, reads: Iterable[Load], number: int) -> None:
        for load in reads:
            variable = self._variables[load, number].expr
            to.block.append(t.Assign(variable, to.lower(load).expr))

    def take(self, to: Lowerer, turn: int) -> Callable[[Expr], Expr]:
        """Name what was read for a turn; return a function that puts names for reads."""
        names: dict[Load, LocalValue] = {}
        for load in (*self.fixed, *self.reads):
            value = self._variables[
                load, 0 if load in self.fixed else turn % self.turns
            ]
            if load in self.reads:
                name = t.Ident(to.shader.fresh(f"{load.tensor.name}_now"))
                to.block.append(t.Let(name.name, value.expr))
                value = Value(name, value.wide)
            names[load] = LocalValue(f"ahead {len(to.locals)}", load.type)
            to.locals[names[load].name] = value
        return lambda expr: _replaced(expr, names)


def _replaced(expr: Expr, names: Mapping[Load, LocalValue]) -> Expr:
    """Return an expression with names of reads in their place."""
    if isinstance(expr, Load) and expr in names:
        return names[expr]
    return map_children(expr, lambda child: _replaced(child, names))


def _always(expr: Expr, *, chosen: bool = False) -> Iterator[Load]:
    """Yield the reads at places of indices alone.

    Of what a condition has `chosen`, only those that are within their tensor anyway.
    """
    if isinstance(expr, Load):
        inner = [node for child in children(expr) for node in walk(child)]
        known = not any(isinstance(node, Load | LocalValue) for node in inner)
        if is_within(expr) if chosen else known:
            yield expr
            return
    is_choice = isinstance(expr, Select)
    is_choice |= isinstance(expr, Binary) and expr.op in {"and", "or"}
    for number, child in enumerate(children(expr)):
        yield from _always(child, chosen=chosen or (is_choice and number > 0))

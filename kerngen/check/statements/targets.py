"""Checking the target of a statement: the tensor and the members that it writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal, TypeAlias, assert_never, final

from kerngen.check import faults as diag
from kerngen.check.environment import Environment
from kerngen.check.expressions.checker import Expressions, complete
from kerngen.check.expressions.index_ranges import introduce
from kerngen.check.expressions.places import Found, Place, Walk, find_place
from kerngen.check.expressions.subscripts import report_count
from kerngen.check.hints.left_sides import as_sum
from kerngen.check.hints.subscripts import unused_names
from kerngen.check.items.structs import DEEPEST
from kerngen.check.scope import Poison, Scope, Subscripted, TensorSymbol, ValueSymbol
from kerngen.check.statements.left_sides import check_left
from kerngen.ir import nodes as ir
from kerngen.ir.memory import FixedArray, Leaf, MemoryType, Struct
from kerngen.ir.types import Matrix, Scalar, ValueType, Vector
from kerngen.source.similar import closest, did_you_mean
from kerngen.source.text import Span
from kerngen.syntax import ast

_ValueKind: TypeAlias = Literal["let", "host", "constant", "dim", "scalar"]


_KINDS: Final[dict[str, _ValueKind]] = {
    "a let": "let",
    "a host": "host",
    "a constant": "constant",
    "a dim": "dim",
    "a scalar": "scalar",
}


def written_tensor(
    env: Environment, scope: Scope, node: ast.Assignment
) -> TensorSymbol | None:
    """Return the tensor that a statement writes, or None after a fault."""
    name = node.name
    symbol = scope.get(name.name)
    match symbol:
        case TensorSymbol(tensor=tensor) if tensor.role in {
            ir.Role.UPDATE,
            ir.Role.OUTPUT,
        }:
            return symbol
        case TensorSymbol(tensor=tensor) if tensor.role is ir.Role.INPUT:
            axes = ", ".join(map(env.length_text, tensor.extents))
            type_ = f"{tensor.memory.spelling}[{axes}]"
            env.faults.add(
                diag.WriteToInput(span=name.span, other=symbol.span, type=type_)
            )
        case Poison():
            pass
        case None:
            _report_unknown(env, scope, node)
        case _:
            summed = as_sum(scope, node) if isinstance(symbol, TensorSymbol) else ""
            value = symbol.value if isinstance(symbol, ValueSymbol) else None
            fault = diag.WriteToValue(
                span=name.span,
                case="sum" if summed else _KINDS.get(symbol.kind, "other"),
                declared=symbol.span,
                kind=symbol.kind,
                sum=summed,
                type=value.type.spelling if value else "",
            )
            env.faults.add(fault)
    return None


def _report_unknown(env: Environment, scope: Scope, node: ast.Assignment) -> None:
    """Report an unknown target; the tensor that was probably meant counts as written."""
    name = node.name
    suggestion = closest(name.name, scope.names())
    # So it is not reported as never written.  If no name is similar, it may be any output.
    outputs = (t.name for t in env.tensors if t.role is ir.Role.OUTPUT)
    env.written.update((suggestion,) if suggestion else outputs)
    env.reported.add(name.name)
    remedy = did_you_mean(suggestion)
    if not remedy:
        introduced = as_sum(scope, node) if node.op == "+=" else ""
        target = node.target.span.one_line()
        remedy = introduced or f"To name a value, write 'let {target} = ...;'."
    env.faults.add(diag.UnknownName(span=name.span, remedy=remedy))


def check_target(
    ex: Expressions, outer: Scope, node: ast.Assignment, symbol: TensorSymbol | None
) -> Place | None:
    """Check the left side of a statement; return the place that it writes.

    `ex` has the scope of the statement, which lies in `outer`; the indices of the left
    side are introduced there, even if there is no tensor.
    """
    if symbol is None:
        check_left(ex, outer, node, None)
        return None
    walk = _Target(ex, outer, node, symbol)
    found = walk.follow(node.target)
    if found is None or (isinstance(found, Place) and len(found.components) < 2):
        return found
    assert isinstance(node.target, ast.Member), "others are no components"
    walk.refuse(node.target.member.span, "components")
    return None


def report_whole(ex: Expressions, node: ast.Assignment, place: Place) -> None:
    """Report a struct or array assigned from something of another type."""
    part = "[k]"
    if isinstance(place.memory, Struct):
        part = f".{place.memory.members[0].name}"
    ex.env.faults.add(
        diag.TargetPart(
            span=node.name.span,
            case="copy" if node.op == "=" else "update",
            target=node.target.span.one_line(),
            type=place.memory.spelling,
            value=node.value.span.one_line(),
            part=part,
        )
    )


@final
@dataclass(frozen=True)
class _Target(Walk):
    """A walk to the place that a statement writes.

    Here subscripts of fixed arrays are literals, or new indices that range over the whole
    array.
    """

    outer: Scope
    node: ast.Assignment
    symbol: TensorSymbol

    def refuses(self, node: ast.Member | ast.Subscript) -> bool:
        """Leave the report of a tensor without subscripts to `check_left`."""
        del node
        return False

    def start(self, node: ast.Expr) -> Place | None:
        tensor, given = self.symbol.tensor, self.node.subscripts
        if (
            isinstance(node, ast.Subscript)
            and tensor.rank == 0
            and isinstance(tensor.element, Vector | Matrix)
            and all(isinstance(each, ast.Number) for each in given)
        ):  # A component or a column is meant: `at[0] = 1.0`.
            self._refuse_part(node, tensor.element)
            return None
        places = check_left(self.ex, self.outer, self.node, self.symbol)
        memory, is_known = self.symbol.tensor.memory, places is not None
        return Place(self.symbol, memory, places or (), is_known=is_known)

    def subscripts(
        self, array: Subscripted, node: ast.Subscript
    ) -> tuple[ir.Subscript, ...] | None:
        count = len(node.subscripts)
        if count != array.rank:
            names = [each.span.one_line() for each in node.subscripts]
            names += [
                name
                for name in islice(unused_names(self.ex), array.rank + count)
                if name not in names
            ]
            example = f"{array.name}[{', '.join(names[:array.rank])}]"
            report_count(self.ex, array, node.span, count, example)
            return None
        pairs = zip(node.subscripts, array.extents, strict=True)
        return complete([self._subscript(each, extent) for each, extent in pairs])

    def _subscript(self, node: ast.Expr, length: ir.Extent) -> ir.Subscript | None:
        assert isinstance(length, int), "arrays in elements have literal lengths"
        match node:
            case ast.Number(value=int(number)) if 0 <= number < length:
                return ir.Affine(ir.Constant(number, Scalar.I32), str(number))
            case ast.Name(name=name) if self.ex.scope.get(name) is None:
                return ir.IndexValue(introduce(self.ex, node, length))
            case _:
                self.refuse(node.span, "subscript", length=length)
                return None

    def part(self, base: Found, node: ast.Subscript) -> None:
        value = self.value(base, node.base)
        if value is not None:
            self._refuse_part(node, value.type)

    def _refuse_part(self, node: ast.Subscript, type_: ValueType) -> None:
        case: diag.TargetCase = "subscripted" if isinstance(type_, Vector) else "whole"
        span = node.subscripts[0].span.to(node.subscripts[-1].span)
        self.refuse(span, case, type_.spelling)

    def component(self, base: Found, node: ast.Member) -> Found | None:
        memory = base.memory if isinstance(base, Place) else None
        if isinstance(memory, Leaf) and isinstance(memory.type, Matrix):
            self.refuse(node.member.span, "whole", memory.spelling)
            return None
        return super().component(base, node)

    def read(self, place: Place, node: ast.Expr) -> ir.Expr:
        """Return the value of a place, written or not: it is read for its type alone."""
        del node
        return place.value()

    def refuse(
        self, span: Span, case: diag.TargetCase, type_: str = "", length: int = 0
    ) -> None:
        """Record a part that can't be written."""
        target = self.node.target.span.one_line()
        fault = diag.TargetPart(
            span=span, case=case, target=target, type=type_, length=length
        )
        self.ex.env.faults.add(fault)


MOST_COPIED: Final = 8192
"""The most values that the copies of a file may move: one copy of the largest struct fits."""


def copied_parts(
    ex: Expressions, node: ast.Assignment, target: Place
) -> list[tuple[Place, ir.Expr]] | None:
    """Return the parts that an assignment of whole structs copies, with their values.

    None if the right side is not a place of the target's type. Empty after a fault: if a
    part of it was never written, or the file's statements copy too many values.
    """
    source = find_place(ex, node.value)
    if source is None or source.memory != target.memory:
        return None
    if not Walk(ex).is_written(source, node.value):
        return []
    copied = ex.env.copied
    if copied.values > MOST_COPIED:
        return []
    # A name for an index over each array on the way: arrays nest no deeper than `DEEPEST`.
    levels = list(islice(unused_names(ex), DEEPEST))
    values = [*_values(target.memory, levels)]
    copied.values += len(values)
    if copied.values > MOST_COPIED:
        ex.env.faults.add(
            diag.TooMuchCopied(span=node.span, count=copied.values, limit=MOST_COPIED)
        )
        return []
    return [
        (target.inside(path, leaf), source.inside(path, leaf).value())
        for path, leaf in values
    ]


def _values(memory: MemoryType, names: list[str]) -> Iterator[tuple[ir.Path, Leaf]]:
    """Yield the path to every value, with an index over each array on the way."""
    match memory:
        case Leaf():
            yield (), memory
        case FixedArray(element=element, length=length):
            at = ir.At(ir.IndexValue(ir.Index(names[0], length)), length)
            for path, leaf in _values(element, names[1:]):
                yield (at, *path), leaf
        case Struct(members=members):
            for member in members:
                for path, leaf in _values(member.type, names):
                    yield (ir.Field(member.name), *path), leaf
        case _:
            assert_never(memory)

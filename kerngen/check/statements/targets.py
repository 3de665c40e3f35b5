"""Checking the target of a statement: the tensor and the members that it writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, Literal, TypeAlias, assert_never, final

from kerngen.check import faults as diag
from kerngen.check.environment import Environment
from kerngen.check.expressions.checker import Expressions
from kerngen.check.expressions.index_ranges import declare_index
from kerngen.check.expressions.places import Place, find_place, letters_of
from kerngen.check.hints.left_sides import as_sum, target_text
from kerngen.check.hints.subscripts import unused_names
from kerngen.check.items.structs import DEEPEST
from kerngen.check.scope import IndexSymbol, Poison, Scope, TensorSymbol, ValueSymbol
from kerngen.ir import nodes as ir
from kerngen.ir.memory import FixedArray, Leaf, MemoryType, Struct
from kerngen.ir.operators import swizzle_type
from kerngen.ir.types import Scalar, Vector
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
    """Record a misspelt target; what was meant then counts as written."""
    name = node.name
    suggestion = closest(name.name, scope.names())
    # Whatever was meant is not missed: with nothing alike, it may be any output.
    outputs = (t.name for t in env.tensors if t.role is ir.Role.OUTPUT)
    env.written.update((suggestion,) if suggestion else outputs)
    env.reported.add(name.name)
    remedy = did_you_mean(suggestion)
    if not remedy:
        introduced = as_sum(scope, node) if node.op == "+=" else ""
        target = target_text(node)
        remedy = introduced or f"To name a value, write 'let {target} = ...;'."
    env.faults.add(diag.UnknownName(span=name.span, remedy=remedy))


def check_target_parts(
    ex: Expressions, node: ast.Assignment, symbol: TensorSymbol
) -> Place | None:
    """Check the members of a target; return the place that they lead to.

    Subscripts of fixed arrays must be literals, or indices that range over the whole
    array.
    """
    target = _Target(ex, node)
    place: Place | None = Place(symbol, symbol.tensor.memory)
    for member in node.members:
        place = place and target.member(place, member)
    return place


def report_whole(ex: Expressions, node: ast.Assignment, place: Place) -> None:
    """Report a struct or array assigned from something of another type."""
    part = "[k]"
    if isinstance(place.memory, Struct):
        part = f".{place.memory.members[0].name}"
    case: diag.TargetCase = "copy" if node.op == "=" else "update"
    value = node.value.span.one_line()
    _Target(ex, node).refuse(node.name.span, place, case, value=value, part=part)


@final
@dataclass(frozen=True)
class _Target:
    """The left side of a statement, in which each step leads to a place."""

    ex: Expressions
    node: ast.Assignment

    def refuse(
        self,
        span: Span,
        place: Place,
        case: diag.TargetCase,
        *,
        listed: tuple[str, ...] = (),
        value: str = "",
        part: str = "",
        length: int = 0,
    ) -> None:
        """Record a part that can't be written."""
        self.ex.env.faults.add(
            diag.TargetPart(
                span=span,
                case=case,
                target=target_text(self.node),
                type=place.memory.spelling,
                listed=listed,
                value=value,
                part=part,
                length=length,
            )
        )

    def member(self, place: Place, member: ast.TargetMember) -> Place | None:
        """Step into a member of a struct, or to a component."""
        if place.component:
            self.refuse(member.span, place, "component")
            return None
        match place.memory:
            case Struct():
                inner = place.member(self.ex, member.name)
                return inner and self._element(inner, member)
            case Leaf(type=Vector() as vector) if not member.subscripts:
                letters = letters_of(member.name.name)
                type_ = swizzle_type(vector, letters)
                if isinstance(type_, Vector):
                    self.refuse(member.span, place, "components")
                    return None
                if type_ is None:
                    listed = (*"xyzw"[: vector.width],)
                    self.refuse(member.span, place, "letters", listed=listed)
                    return None
                return replace(place, component=letters)
            case _:
                self.refuse(member.span, place, "whole")
                return None

    def _element(self, place: Place, member: ast.TargetMember) -> Place | None:
        """Step into arrays by the subscripts of a member."""
        if not member.subscripts:
            return place
        match place.memory:
            case FixedArray(lengths=lengths):
                if len(member.subscripts) != len(lengths):
                    self.refuse(member.span, place, "axes", length=len(lengths))
                    return None
            case Leaf(type=Vector()):
                self.refuse(member.span, place, "subscripted")
                return None
            case Leaf() | Struct():
                self.refuse(member.span, place, "whole")
                return None
            case _:
                assert_never(place.memory)
        found: Place | None = place
        for subscript in member.subscripts:
            found = found and self._into(found, subscript, member.span)
        return found

    def _into(self, place: Place, node: ast.Expr, span: Span) -> Place | None:
        array, ex = place.memory, self.ex
        assert isinstance(array, FixedArray), "as many as there are lengths"
        match node:
            case ast.Number(value=int(number)) if 0 <= number < array.length:
                return place.element(
                    ir.Affine(ir.Constant(number, Scalar.I32), str(number))
                )
            case ast.Name(name=name) if ex.scope.get(name) is None:
                index = ir.Index(name, array.length)
                symbol = IndexSymbol(index, node.span, node.span)
                declare_index(ex, node, symbol)
                element = place.element(ir.IndexValue(index))
                return replace(element, indices=(*place.indices, index))
            case _:
                self.refuse(span, place, "subscript", length=array.length)
                return None


MOST_COPIED: Final = 8192
"""The values that the copies of a file may move: one of the largest struct does fit."""


def copied_parts(
    ex: Expressions, node: ast.Assignment, target: Place
) -> list[tuple[Place, ir.Expr]] | None:
    """Return the parts that an assignment of whole structs copies, with their values.

    None if the right side is not a place of the target's type. Empty if the file's
    statements copy too many values; the first such statement is reported.
    """
    source = find_place(ex, node.value)
    if source is None or source.memory != target.memory:
        return None
    copied = ex.env.copied
    if copied.values > MOST_COPIED:
        return []
    # Arrays are in one another to a depth that is limited.
    levels = list(islice(unused_names(ex), DEEPEST))
    values = [*_values(target.memory, levels)]
    copied.values += len(values)
    if copied.values > MOST_COPIED:
        ex.env.faults.add(
            diag.TooMuchCopied(span=node.span, count=copied.values, limit=MOST_COPIED)
        )
        return []
    parts: list[tuple[Place, ir.Expr]] = []
    for path, indices, leaf in values:
        part = replace(target.inside(path, leaf), indices=(*target.indices, *indices))
        parts.append((part, source.inside(path, leaf).value()))
    return parts


def _values(
    memory: MemoryType, names: list[str]
) -> Iterator[tuple[ir.Path, tuple[ir.Index, ...], Leaf]]:
    """Yield the path to every value, with an index over each array on the way."""
    match memory:
        case Leaf():
            yield (), (), memory
        case FixedArray(element=element, length=length):
            index = ir.Index(names[0], length)
            at = ir.At(ir.IndexValue(index), length)
            for path, indices, leaf in _values(element, names[1:]):
                yield (at, *path), (index, *indices), leaf
        case Struct(members=members):
            for member in members:
                for path, indices, leaf in _values(member.type, names):
                    yield (ir.Field(member.name), *path), indices, leaf
        case _:
            assert_never(memory)

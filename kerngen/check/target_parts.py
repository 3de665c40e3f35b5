"""The part of an element that a statement writes: `p[i].trail[k] = ...;`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, assert_never, final

from kerngen.check.faults_places import TargetPart
from kerngen.check.places import letters_of, report_unknown_field
from kerngen.check.ranges import introduce
from kerngen.check.scope import IndexSymbol, TensorSymbol, one_line
from kerngen.ir.memory import FixedArray, Leaf, MemoryType, Struct
from kerngen.ir.nodes import Affine, At, Constant, Field, Index, IndexValue, Path
from kerngen.ir.operators import swizzle_type
from kerngen.ir.types import Scalar, ValueType, Vector, scalar_of
from kerngen.source.counted import counted
from kerngen.source.text import Span
from kerngen.syntax import ast

if TYPE_CHECKING:
    from kerngen.check.expressions import Expressions


@final
@dataclass(frozen=True, slots=True)
class TargetSpot:
    """What is written of an element: see `kerngen.ir.nodes.Statement`.

    `indices` are those in the path, in order.
    """

    memory: MemoryType
    path: Path = ()
    component: str = ""
    indices: tuple[Index, ...] = ()

    @property
    def is_half(self) -> bool:
        """Whether it is kept as f16."""
        return isinstance(self.memory, Leaf) and self.memory.is_half

    @property
    def type(self) -> ValueType:
        """The type of what is written."""
        assert isinstance(self.memory, Leaf), "structs and arrays are written by part"
        return scalar_of(self.memory.type) if self.component else self.memory.type


_Step: TypeAlias = TargetSpot | str
"""Where a step leads to, or what to do instead; empty after a fault."""


def check_target_parts(
    ex: Expressions, node: ast.Assignment, symbol: TensorSymbol
) -> TargetSpot | None:
    """Return what the members of a target lead to.

    Subscripts of arrays are literals, or introduce an index over the whole array.
    """
    spot: _Step = TargetSpot(symbol.tensor.memory)
    span = node.name.span
    for member in node.members:
        assert isinstance(spot, TargetSpot), "a fault ends the loop"
        span = member.span
        spot = _member(ex, spot, member)
        if not isinstance(spot, TargetSpot):
            break
    if isinstance(spot, TargetSpot):
        return spot
    if spot:
        _report(ex, node, span, spot)
    return None


def report_whole(ex: Expressions, node: ast.Assignment, spot: TargetSpot) -> None:
    """Record a struct or an array that is given something else than its like."""
    if node.op != "=":
        _report(
            ex,
            node,
            node.name.span,
            f"A whole '{spot.memory.spelling}' can only be copied, with '='.",
        )
        return
    text = one_line(node.value.span.text)
    type_ = spot.memory.spelling
    part = "[k]"
    if isinstance(spot.memory, Struct):
        part = f".{spot.memory.members[0].name}"
    remedy = (
        f"'{text}' is not a whole '{type_}', so it can't be copied; write the "
        f"parts: '{part} = ...;'."
    )
    _report(ex, node, node.name.span, remedy)


def _report(ex: Expressions, node: ast.Assignment, span: Span, remedy: str) -> None:
    text = one_line(node.span.text.split("=")[0].strip(" +-*/"))
    ex.env.faults.add(TargetPart(span=span, text=text, remedy=remedy))


def _member(ex: Expressions, spot: TargetSpot, member: ast.TargetMember) -> _Step:
    if spot.component:
        return "A component has no members."
    name = member.name.name
    match spot.memory:
        case Struct() as struct:
            found = struct.member(name)
            if found is None:
                report_unknown_field(ex, struct, member.name)
                return ""
            inner = replace(spot, memory=found.type, path=(*spot.path, Field(name)))
            return _element(ex, inner, member)
        case Leaf(type=Vector() as vector) if not member.subscripts:
            letters = letters_of(name)
            type_ = swizzle_type(vector, letters)
            if isinstance(type_, Vector):
                return "Write one component at a time, or the whole vector."
            if type_ is None:
                listed = ", ".join(f"'{letter}'" for letter in "xyzw"[: vector.width])
                return f"'{vector.spelling}' has the components {listed}."
            return replace(spot, component=letters)
        case _:
            return f"'{spot.memory.spelling}' is written as a whole."


def _element(ex: Expressions, spot: TargetSpot, member: ast.TargetMember) -> _Step:
    """Step into arrays by the subscripts of a member."""
    if not member.subscripts:
        return spot
    match spot.memory:
        case FixedArray(lengths=lengths):
            if len(member.subscripts) != len(lengths):
                return f"It has {counted(len(lengths), 'axis', 'axes')}."
        case Leaf(type=Vector()):
            return "A component is written by its letter: '.x = ...'."
        case Leaf() | Struct():
            return f"'{spot.memory.spelling}' is written as a whole."
        case _:
            assert_never(spot.memory)
    for subscript in member.subscripts:
        assert isinstance(spot.memory, FixedArray), "as many as there are lengths"
        step = _place(ex, spot, spot.memory, subscript)
        if not isinstance(step, TargetSpot):
            return step
        spot = step
    return spot


def _place(
    ex: Expressions, spot: TargetSpot, array: FixedArray, node: ast.Expr
) -> _Step:
    match node:
        case ast.Number(value=int(number)) if 0 <= number < array.length:
            place = Affine(Constant(number, Scalar.I32), str(number))
            path = (*spot.path, At(place, array.length))
            return replace(spot, memory=array.element, path=path)
        case ast.Name(name=name) if ex.scope.get(name) is None:
            index = Index(name, array.length)
            symbol = IndexSymbol(index, node.span, node.span)
            introduce(ex, ast.Identifier(name, node.span), symbol)
            at = At(IndexValue(index), array.length)
            return replace(
                spot,
                memory=array.element,
                path=(*spot.path, at),
                indices=(*spot.indices, index),
            )
        case _:
            return (
                f"Use an index of its own, which ranges over all {array.length} "
                f"elements, or a literal from 0 to {array.length - 1}."
            )

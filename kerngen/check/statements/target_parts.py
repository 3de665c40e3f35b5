"""The part of an element that a statement writes: `p[i].trail[k] = ...;`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never, final

from kerngen.check.expressions.index_ranges import introduce
from kerngen.check.expressions.places import Place, letters_of
from kerngen.check.faults.places import TargetCase, TargetPart
from kerngen.check.scope import IndexSymbol, TensorSymbol, one_line
from kerngen.ir.memory import FixedArray, Leaf, Struct
from kerngen.ir.nodes import Affine, Constant, Index, IndexValue
from kerngen.ir.operators import swizzle_type
from kerngen.ir.types import Scalar, Vector
from kerngen.source.counted import counted
from kerngen.source.text import Span
from kerngen.syntax import ast

if TYPE_CHECKING:
    from kerngen.check.expressions.checker import Expressions


def check_target_parts(
    ex: Expressions, node: ast.Assignment, symbol: TensorSymbol
) -> Place | None:
    """Return what the members of a target lead to.

    Subscripts of arrays are literals, or introduce an index over the whole array.
    """
    target = _Target(ex, node)
    place: Place | None = Place(symbol, symbol.tensor.memory)
    for member in node.members:
        place = place and target.member(place, member)
    return place


def report_whole(ex: Expressions, node: ast.Assignment, place: Place) -> None:
    """Record a struct or an array that is given something else than its like."""
    part = "[k]"
    if isinstance(place.memory, Struct):
        part = f".{place.memory.members[0].name}"
    case: TargetCase = "copy" if node.op == "=" else "update"
    value = one_line(node.value.span.text)
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
        case: TargetCase,
        *,
        listed: str = "",
        value: str = "",
        part: str = "",
        length: int = 0,
    ) -> None:
        """Record a part that can't be written."""
        self.ex.env.faults.add(
            TargetPart(
                span=span,
                case=case,
                text=one_line(self.node.span.text.split("=")[0].strip(" +-*/")),
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
                    listed = ", ".join(f"'{x}'" for x in "xyzw"[: vector.width])
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
                    axes = counted(len(lengths), "axis", "axes")
                    self.refuse(member.span, place, "axes", listed=axes)
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
                return place.element(Affine(Constant(number, Scalar.I32), str(number)))
            case ast.Name(name=name) if ex.scope.get(name) is None:
                index = Index(name, array.length)
                symbol = IndexSymbol(index, node.span, node.span)
                introduce(ex, ast.Identifier(name, node.span), symbol)
                element = place.element(IndexValue(index))
                return replace(element, indices=(*place.indices, index))
            case _:
                self.refuse(span, place, "subscript", length=array.length)
                return None

"""The part of an element that a statement writes: `p[i].trail[k] = ...;`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, assert_never

from kerngen.check.expressions.index_ranges import introduce
from kerngen.check.expressions.places import Place, letters_of
from kerngen.check.faults.places import TargetPart
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


_Step: TypeAlias = Place | str
"""Where a step leads to, or what to do instead; empty after a fault."""


def check_target_parts(
    ex: Expressions, node: ast.Assignment, symbol: TensorSymbol
) -> Place | None:
    """Return what the members of a target lead to.

    Subscripts of arrays are literals, or introduce an index over the whole array.
    """
    place: _Step = Place(symbol, symbol.tensor.memory)
    span = node.name.span
    for member in node.members:
        assert isinstance(place, Place), "a fault ends the loop"
        span = member.span
        place = _member(ex, place, member)
        if not isinstance(place, Place):
            break
    if isinstance(place, Place):
        return place
    if place:
        _report(ex, node, span, place)
    return None


def report_whole(ex: Expressions, node: ast.Assignment, place: Place) -> None:
    """Record a struct or an array that is given something else than its like."""
    if node.op != "=":
        _report(
            ex,
            node,
            node.name.span,
            f"A whole '{place.memory.spelling}' can only be copied, with '='.",
        )
        return
    text = one_line(node.value.span.text)
    type_ = place.memory.spelling
    part = "[k]"
    if isinstance(place.memory, Struct):
        part = f".{place.memory.members[0].name}"
    remedy = (
        f"'{text}' is not a whole '{type_}', so it can't be copied; write the "
        f"parts: '{part} = ...;'."
    )
    _report(ex, node, node.name.span, remedy)


def _report(ex: Expressions, node: ast.Assignment, span: Span, remedy: str) -> None:
    text = one_line(node.span.text.split("=")[0].strip(" +-*/"))
    ex.env.faults.add(TargetPart(span=span, text=text, remedy=remedy))


def _member(ex: Expressions, place: Place, member: ast.TargetMember) -> _Step:
    if place.component:
        return "A component has no members."
    name = member.name.name
    match place.memory:
        case Struct():
            inner = place.member(ex, member.name)
            return _element(ex, inner, member) if inner else ""
        case Leaf(type=Vector() as vector) if not member.subscripts:
            letters = letters_of(name)
            type_ = swizzle_type(vector, letters)
            if isinstance(type_, Vector):
                return "Write one component at a time, or the whole vector."
            if type_ is None:
                listed = ", ".join(f"'{letter}'" for letter in "xyzw"[: vector.width])
                return f"'{vector.spelling}' has the components {listed}."
            return replace(place, component=letters)
        case _:
            return f"'{place.memory.spelling}' is written as a whole."


def _element(ex: Expressions, place: Place, member: ast.TargetMember) -> _Step:
    """Step into arrays by the subscripts of a member."""
    if not member.subscripts:
        return place
    match place.memory:
        case FixedArray(lengths=lengths):
            if len(member.subscripts) != len(lengths):
                return f"It has {counted(len(lengths), 'axis', 'axes')}."
        case Leaf(type=Vector()):
            return "A component is written by its letter: '.x = ...'."
        case Leaf() | Struct():
            return f"'{place.memory.spelling}' is written as a whole."
        case _:
            assert_never(place.memory)
    for subscript in member.subscripts:
        assert isinstance(place.memory, FixedArray), "as many as there are lengths"
        step = _into(ex, place, place.memory, subscript)
        if not isinstance(step, Place):
            return step
        place = step
    return place


def _into(ex: Expressions, place: Place, array: FixedArray, node: ast.Expr) -> _Step:
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
            return (
                f"Use an index of its own, which ranges over all {array.length} "
                f"elements, or a literal from 0 to {array.length - 1}."
            )

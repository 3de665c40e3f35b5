"""Checking reads: names, members, components and elements."""

from __future__ import annotations

from functools import reduce
from itertools import islice
from typing import TypeAlias, assert_never

from kerngen.check import faults as diag
from kerngen.check.expressions.checker import Expressions
from kerngen.check.expressions.places import Place, Subscripted, letters_of, memory_of
from kerngen.check.expressions.subscripts import check_subscripts, report_count
from kerngen.check.hints.subscripts import unused_names
from kerngen.check.hints.unknown import report_member, report_subscripts, report_unknown
from kerngen.check.scope import (
    IndexSymbol,
    ParameterSymbol,
    Poison,
    TensorSymbol,
    ValueSymbol,
    is_whole,
)
from kerngen.ir.memory import FixedArray, Leaf, Struct
from kerngen.ir.nodes import At, Expr, IndexValue, Load, Part, Swizzle
from kerngen.ir.operators import is_composite, part_type, swizzle_type
from kerngen.ir.types import Matrix, Scalar, Vector
from kerngen.syntax import ast

_Found: TypeAlias = Place | Expr | None
"""What a chain leads to: a place that may have parts, or a value; None after a fault."""


def check_name(ex: Expressions, node: ast.Name) -> Expr | None:
    """Check a bare name; return its value, or None after a fault."""
    symbol = ex.scope.get(node.name)
    match symbol:
        case None:
            report_unknown(ex, node)
            return None
        case ValueSymbol(value=value):
            return value
        case IndexSymbol(index=index):
            return IndexValue(index)
        case TensorSymbol() if not ex.rules.has_elements:
            ex.rules.refuse(ex, node.span, "a tensor")
            return None
        case TensorSymbol():
            return _value(ex, _read_element(ex, symbol, node), node)
        case ParameterSymbol(memory=memory):
            return _value(ex, Place(symbol, memory), node)
        case Poison():
            return None
        case _:
            assert_never(symbol)


def check_element(ex: Expressions, node: ast.Subscript) -> Expr | None:
    """Check a subscripted value; return its element or part, or None after a fault."""
    base = node.base
    if not isinstance(base, ast.Name):
        return check_chain(ex, node)
    symbol = ex.scope.get(base.name)
    has_parts = isinstance(symbol, ValueSymbol) and is_composite(symbol.value.type)
    if not ex.rules.has_elements and not has_parts:
        if not isinstance(symbol, Poison):
            ex.rules.refuse(ex, node.span, "a tensor")
        return None
    if symbol is None:
        for subscript in node.subscripts:
            if not isinstance(subscript, ast.Name):
                ex.check(subscript)
        report_unknown(ex, base)
        return None
    return check_chain(ex, node)


def check_chain(ex: Expressions, node: ast.Member | ast.Subscript) -> Expr | None:
    """Check a chain of members and subscripts; return the value that it leads to."""
    return _value(ex, _follow(ex, node), node)


def find_place(ex: Expressions, node: ast.Expr) -> Place | None:
    """Return the place in memory that an expression names, or None for a value."""
    if not isinstance(node, ast.Member | ast.Subscript | ast.Name):
        return None
    found = _follow(ex, node)
    return found if isinstance(found, Place) else None


# Values


def _value(
    ex: Expressions, found: _Found, node: ast.Expr, components: str = ""
) -> Expr | None:
    """Return the value at a place; of a struct or an array, only the parts have one.

    With `components`, no others of the vector are used, and need to be written before.
    """
    if not isinstance(found, Place):
        return found
    type_ = found.memory.spelling
    match found.memory:
        case Leaf():
            return _written_value(ex, found, node, components)
        case Struct(members=members):
            ex.env.faults.add(
                diag.StructAsValue(span=node.span, type=type_, member=members[0].name)
            )
        case FixedArray(lengths=lengths):
            indices = ", ".join(islice(unused_names(ex), len(lengths)))
            ex.env.faults.add(
                diag.ArrayAsValue(span=node.span, type=type_, indices=indices)
            )
        case _:
            assert_never(found.memory)
    return None


def _written_value(
    ex: Expressions, place: Place, node: ast.Expr, components: str
) -> Expr | None:
    root = place.root
    if isinstance(root, ParameterSymbol):
        return place.value()
    used = [*components] or [""]
    if any(ex.env.unwritten(root.tensor, place.memory, place.path, c) for c in used):
        fault = diag.ReadBeforeWrite(
            span=node.span, case="first", other=root.span, name=node.span.one_line()
        )
        ex.env.faults.add(fault)
        return None
    return place.value()


def _swizzle(ex: Expressions, value: Expr, node: ast.Member) -> Expr | None:
    """Return components of a vector, by one to four letters."""
    letters = letters_of(node.member.name)
    type_ = swizzle_type(value.type, letters)
    if type_ is not None:
        return Swizzle(value, letters, type_)
    if isinstance(value.type, Vector):
        components = "xyzw"[: value.type.width]
        ex.env.faults.add(
            diag.UnknownMember(
                span=node.member.span,
                type=value.type.spelling,
                components=(*components,),
            )
        )
    else:
        report_member(ex, node)
    return None


# Steps


def _follow(ex: Expressions, node: ast.Expr) -> _Found:
    match node:
        case ast.Member():
            if is_whole(ex.scope.of(node.base)):
                report_member(ex, node)
                return None
            return _member(ex, _follow(ex, node.base), node)
        case ast.Subscript(base=ast.Name(name=name)) if isinstance(
            symbol := ex.scope.get(name), TensorSymbol
        ) and not (
            symbol.tensor.rank == 0
            and isinstance(symbol.tensor.element, Vector | Matrix)
        ):
            return _read_element(ex, symbol, node)
        case ast.Subscript():
            if _has_no_elements(ex, node.base):
                report_subscripts(ex, node)
                return None
            return _subscript(ex, _follow(ex, node.base), node)
        case ast.Name(name=name):
            match symbol := ex.scope.get(name):
                case ParameterSymbol(memory=memory):
                    return Place(symbol, memory)
                case TensorSymbol() if isinstance(symbol.tensor.element, Struct):
                    return _read_element(ex, symbol, node)
                case _:
                    return ex.check(node)
        case _:
            return ex.check(node)


def _has_no_elements(ex: Expressions, node: ast.Expr) -> bool:
    """Whether this is an element of a tensor of scalars, complete or not.

    Or it takes some subscripts of an array, and leaves the rest out.
    """
    if not isinstance(node, ast.Subscript):
        return False
    symbol = ex.scope.of(node.base)
    if isinstance(symbol, TensorSymbol) and isinstance(symbol.tensor.element, Scalar):
        return True
    memory = memory_of(ex.scope, node.base)
    count = len(node.subscripts)
    return isinstance(memory, FixedArray) and count < len(memory.lengths)


def _read_element(ex: Expressions, symbol: TensorSymbol, node: ast.Expr) -> _Found:
    """Return an element of a tensor; of one with parts, a place."""
    tensor = symbol.tensor
    subscripts = node.subscripts if isinstance(node, ast.Subscript) else ()
    is_number = isinstance(tensor.element, Scalar)
    if is_number and ex.env.unwritten(tensor, tensor.memory):
        is_other = any(not isinstance(subscript, ast.Name) for subscript in subscripts)
        is_own = is_other and tensor.name == ex.env.current.target
        ex.env.faults.add(
            diag.ReadBeforeWrite(
                span=node.span,
                case="at once" if is_own else "first",
                other=symbol.span,
                name=tensor.name,
            )
        )
        return None
    places = check_subscripts(ex, Subscripted.of(symbol), node.span, subscripts)
    if places is None:
        return None
    load = Load(tensor, places)
    current = ex.env.current
    if current.in_let and tensor.name == current.target:
        current.own_reads.setdefault(load, node.span)
    return load if is_number else Place(symbol, tensor.memory, places)


def _member(ex: Expressions, base: _Found, node: ast.Member) -> _Found:
    components = ""
    if isinstance(base, Place):
        if isinstance(base.memory, Struct):
            return base.member(ex, node.member)
        letters = letters_of(node.member.name)
        if isinstance(base.memory, Leaf) and swizzle_type(base.memory.type, letters):
            components = letters
    value = _value(ex, base, node.base, components)
    return value and _swizzle(ex, value, node)


def _subscript(ex: Expressions, base: _Found, node: ast.Subscript) -> _Found:
    if isinstance(base, Place) and isinstance(base.memory, FixedArray):
        array = _subscripted(node, base.memory.lengths, base)
        places = check_subscripts(ex, array, node.span, node.subscripts)
        return None if places is None else reduce(Place.element, places, base)
    value = _value(ex, base, node.base)
    if value is None:
        return None
    known = part_type(value.type)
    if known is None:
        report_subscripts(ex, node)
        return None
    length, type_ = known
    vector = _subscripted(node, (length,))
    if isinstance(value.type, Matrix) and len(node.subscripts) == 2:
        apart = "".join(f"[{s.span.one_line()}]" for s in node.subscripts)
        report_count(ex, vector, node.span, 2, f"{vector.name}{apart}")
        return None
    places = check_subscripts(ex, vector, node.span, node.subscripts)
    return None if places is None else Part(value, At(places[0], length), type_)


def _subscripted(
    node: ast.Subscript, lengths: tuple[int, ...], base: Place | None = None
) -> Subscripted:
    """Return an array, a vector or a matrix as what its subscripts go into."""
    declared = base.declared if base else None
    text = node.base.span.one_line()
    return Subscripted(text, lengths, declared or node.base.span)

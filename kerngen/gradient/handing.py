"""The rules of derivation for operations on vectors and matrices.

v.yx with the adjoint d     gives v the adjoint vec3f(d.y, d.x, 0.0)
m * v with the adjoint d    gives v the adjoint d * m, and m that of columns d * v.x, ...
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Final, TypeAlias

from kerngen.check.files.checker import Checker
from kerngen.gradient.composites import (
    LETTERS,
    added,
    along,
    binary,
    by_components,
    direction_of,
    divided,
    inner,
    packed,
    part_of,
    part_types,
    parts_of,
    place_of,
    placed,
    times,
    total,
)
from kerngen.gradient.integers.conditions import BOOL, conjuncts, negated
from kerngen.gradient.integers.forms import number
from kerngen.gradient.terms import Term
from kerngen.ir import nodes as ir
from kerngen.ir.geometry import GEOMETRY
from kerngen.ir.types import Matrix, Scalar, ValueType, Vector
from kerngen.ir.walk import children, map_children, subscript_value
from kerngen.syntax.library import Library

_F32: Final = Scalar.F32

Handed: TypeAlias = Iterator[tuple[ir.Expr, Term]]
"""Operands, each with a term of its adjoint."""


def handed_on(expr: ir.Expr, term: Term) -> Handed:
    """Yield the operands of an operation, each with the adjoint that it receives."""
    rest, own = direction_of(term)
    for operand, adjoint in _adjoints(expr, own):
        for conditions, value in _branches(adjoint):
            found = along(rest, value)
            if found is not None:
                yield operand, found.under(*conditions)
    if isinstance(expr, ir.Part) and place_of(expr.at) is None:
        yield from _by_place(expr, rest, own)


def _branches(adjoint: ir.Expr) -> Iterator[tuple[tuple[ir.Expr, ...], ir.Expr]]:
    """Yield the values of an adjoint's branches, each with the conditions that lead to it."""
    if not isinstance(adjoint, ir.Select):
        yield (), adjoint
        return
    condition = adjoint.condition
    assert isinstance(condition, ir.Binary)
    opposite = replace(condition, op="!=") if condition.op == "==" else None
    for value, holds in (
        (adjoint.then, condition),
        (adjoint.otherwise, opposite or negated(condition)),
    ):
        for conditions, own in _branches(value):
            yield (*conjuncts(holds), *conditions), own


def has_components(expr: ir.Expr) -> bool:
    """Whether a value is a vector or matrix, or a function of whole ones."""
    parts = (expr, *children(expr))
    return any(not isinstance(part.type, Scalar) for part in parts)


def _adjoints(expr: ir.Expr, own: ir.Expr) -> Iterator[tuple[ir.Expr, ir.Expr]]:
    """Yield the operands of an operation whose adjoint is `own`, each with its adjoint."""
    match expr:
        case ir.Swizzle(operand=operand, components=components):
            yield operand, _spread(own, components, operand.type)
        case ir.Part(operand=operand, at=at):
            place = place_of(at)
            if place is not None:
                assert not isinstance(operand.type, Scalar)
                yield operand, placed(own, place, operand.type)
        case ir.Construct(type=type_, parts=parts):
            yield from _of_parts(type_, parts, own)
        case ir.BuiltinCall(builtin=name, arguments=arguments) if name in GEOMETRY:
            yield from zip(arguments, _of_geometry(expr, own), strict=True)
        case ir.BuiltinCall():
            yield from zip(_calls(expr), parts_of(own), strict=True)
        case ir.Binary():
            yield from _of_binary(expr, own)
        case _:
            raise AssertionError("has no components")


def _spread(own: ir.Expr, components: str, type_: ValueType) -> ir.Expr:
    """Return the adjoint of v from that of a swizzle, `v.yx`: 0 for letters that it lacks."""
    assert isinstance(type_, Vector)
    given = (own,) if len(components) == 1 else parts_of(own)
    pairs = [*zip(components, given, strict=True)]
    parts = (
        added([part for other, part in pairs if other == letter], _F32)
        for letter in LETTERS[: type_.width]
    )
    return packed(type_, tuple(parts))


def _by_place(expr: ir.Part, rest: Term, own: ir.Expr) -> Handed:
    """Yield a term for each component that `v[k]` may be, under a condition on k."""
    operand, at = expr.operand, expr.at
    assert not isinstance(operand.type, Scalar)
    value = subscript_value(at.place)
    if isinstance(at.place, ir.Clamped):
        limits = (value, number(0), number(at.length - 1))
        value = ir.BuiltinCall("clamp", limits, Scalar.I32)
    for place in _places(value, len(part_types(operand.type))):
        adjoint = along(rest, placed(own, place, operand.type))
        if adjoint is not None:
            holds = ir.Binary("==", value, number(place), BOOL)
            solved = adjoint.solved
            if isinstance(at.place, ir.IndexValue | ir.Affine):
                solved |= {holds}
            yield operand, replace(adjoint.under(holds), solved=solved)


def _places(value: ir.Expr, count: int) -> range:
    """Return the values that a subscript may have: an index stays below its extent."""
    extent = value.index.extent if isinstance(value, ir.IndexValue) else count
    return range(min(count, extent) if isinstance(extent, int) else count)


def _of_parts(
    type_: Vector | Matrix, parts: tuple[ir.Expr, ...], own: ir.Expr
) -> Iterator[tuple[ir.Expr, ir.Expr]]:
    """Yield the arguments of a constructor, `vec4f(v, s)`, each with its part of `own`."""
    if isinstance(type_, Matrix):
        yield from zip(parts, parts_of(own), strict=True)
        return
    if len(parts) == 1 and isinstance(parts[0].type, Scalar):
        yield parts[0], total(own)
        return
    first = 0
    for part in parts:
        if isinstance(part.type, Vector):
            width = part.type.width
            places = tuple(part_of(own, first + n) for n in range(width))
            yield part, packed(part.type, places)
            first += width
        else:
            yield part, part_of(own, first)
            first += 1


def _calls(expr: ir.BuiltinCall) -> Iterator[ir.Expr]:
    """Yield a built-in's calls for each component."""
    assert isinstance(expr.type, Vector)
    for place in range(expr.type.width):
        arguments = tuple(
            part_of(a, place) if isinstance(a.type, Vector) else a
            for a in expr.arguments
        )
        yield replace(expr, arguments=arguments, type=_F32)


# Operators


def _of_binary(expr: ir.Binary, own: ir.Expr) -> Iterator[tuple[ir.Expr, ir.Expr]]:
    """Yield the sides of an operation, each with its adjoint, of the type of the side."""
    left, right = expr.left, expr.right
    match expr.op:
        case "+":
            yield left, _for(left, own)
            yield right, _for(right, own)
        case "-":
            yield left, _for(left, own)
            yield right, _negative(_for(right, own))
        case "*":
            yield left, _of_left(left, right, own)
            yield right, _of_right(left, right, own)
        case "/":
            quotient = divided(own, right)
            yield left, _for(left, quotient)
            if isinstance(right.type, Scalar):
                square = binary("*", right, right)
                yield right, _negative(binary("/", inner(own, left), square))
            else:
                yield right, _negative(by_components(quotient, divided(left, right)))
        case "%":
            # x % y is x - trunc(x / y) * y, and trunc has the slope 0.
            whole = binary("/", left, right)
            steps = ir.BuiltinCall("trunc", (whole,), whole.type)
            yield left, _for(left, own)
            yield right, _negative(_against(right, own, steps))
        case _:
            raise AssertionError(f"'{expr.op}' is of integers")


def _negative(value: ir.Expr) -> ir.Expr:
    return binary("*", ir.Constant(-1.0, _F32), value)


def _for(side: ir.Expr, own: ir.Expr) -> ir.Expr:
    """Return the adjoint of an added side; of one number for all components, their sum."""
    return total(own) if isinstance(side.type, Scalar) else own


def _against(side: ir.Expr, own: ir.Expr, factor: ir.Expr) -> ir.Expr:
    """Return the adjoint of a side by which the components change by `factor` each."""
    if isinstance(side.type, Scalar):
        return inner(own, factor)
    return by_components(own, factor)


def _of_left(left: ir.Expr, right: ir.Expr, own: ir.Expr) -> ir.Expr:
    """Return the adjoint of `left` in `left * right`, `own` times the transpose of `right`.

    Two vectors are multiplied component by component, so their adjoints are, too.
    """
    match left.type, right.type:
        case Scalar(), _:
            return inner(own, right)
        case _, Scalar():
            return binary("*", right, own)
        case Vector(), Vector():
            return by_components(own, right)
        case Matrix() as type_, Vector():
            return ir.Construct(type_, tuple(times(own, c) for c in parts_of(right)))
        case Vector(), Matrix():
            return binary("*", right, own)
        case _:
            return binary("*", own, _transposed(right))


def _of_right(left: ir.Expr, right: ir.Expr, own: ir.Expr) -> ir.Expr:
    """Return the adjoint of `right` in `left * right`, the transpose of `left` times `own`."""
    match left.type, right.type:
        case _, Scalar():
            return inner(own, left)
        case Scalar(), _:
            return binary("*", left, own)
        case Vector(), Vector():
            return by_components(own, left)
        case Matrix(), Vector():
            return binary("*", own, left)
        case Vector(), Matrix() as type_:
            return ir.Construct(type_, tuple(times(left, c) for c in parts_of(own)))
        case _:
            return binary("*", _transposed(left), own)


def _transposed(matrix: ir.Expr) -> ir.Expr:
    if isinstance(matrix, ir.BuiltinCall) and matrix.builtin == "transpose":
        return matrix.arguments[0]
    assert isinstance(matrix.type, Matrix)
    type_ = Matrix(matrix.type.rows, matrix.type.columns)
    return ir.BuiltinCall("transpose", (matrix,), type_)


# Functions of whole vectors


def _of_geometry(call: ir.BuiltinCall, own: ir.Expr) -> Iterator[ir.Expr]:
    """Yield the adjoint of each argument of a call: its row's text, with the values put in."""
    by = dict(zip("xyz", call.arguments, strict=False)) | {"f": call, "d": own}

    def visit(expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.LocalValue):
            return by[expr.name]
        expr = map_children(expr, visit)
        match expr:
            case ir.Part(operand=ir.Construct() as whole, at=at):
                place = place_of(at)
                return expr if place is None else part_of(whole, place)
            case ir.Swizzle(operand=ir.Swizzle() as inner, components=letters):
                kept = "".join(inner.components[LETTERS.index(x)] for x in letters)
                return replace(inner, components=kept, type=expr.type)
            case _:
                return expr

    types = tuple(argument.type for argument in call.arguments)
    for place, _ in enumerate(call.arguments):
        yield visit(_template(call.builtin, types, call.type, place))


@cache
def _template(
    name: str, types: tuple[ValueType, ...], result: ValueType, place: int
) -> ir.Expr:
    """Return the adjoint of a function's argument as an expression of x, y, z, f and d.

    x, y and z are the arguments, f is the result and d its adjoint.  The text in the table
    is compiled as the body of a function.
    """
    adjoints = GEOMETRY[name].adjoints_of(types)
    typed = [*zip("xyz", types, strict=False), ("f", result), ("d", result)]
    parameters = ", ".join(f"{local}: {type_.spelling}" for local, type_ in typed)
    body = f"-> {types[place].spelling} {{ {adjoints[place]} }}"
    source = f"fn adjoint({parameters}) {body}\n"
    module = Checker(Library.of_text(source, "adjoint.kern")).module("adjoint.kern")
    return module.functions[0].body

"""Vectors and matrices in derivation: their parts, zeros, and products.

The adjoint of a vector is a sum of terms, as that of a number is.  One factor of each term
is a vector, its direction: `dy[i]` in `2 s[i] dy[i]`, where `s[i]` is a number.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Final, TypeAlias, assert_never

from kerngen.gradient.terms import Term, product_of
from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import as_literal
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.memory import Struct
from kerngen.ir.operators import composite_type
from kerngen.ir.types import Matrix, Scalar, ValueType, Vector, scalar_of
from kerngen.ir.walk import subscript_value

_F32: Final = Scalar.F32
LETTERS: Final = "xyzw"
ZERO: Final = ir.Constant(0.0, _F32)
UNIT: Final = ir.Constant(1.0, _F32)


def is_real(type_: ValueType | Struct) -> bool:
    """Whether a type is f32, or a vector or matrix of f32."""
    return not isinstance(type_, Struct) and scalar_of(type_) is _F32


def zero_of(type_: ValueType) -> ir.Expr:
    """Return the zero of a type."""
    match type_:
        case Scalar():
            return ZERO if type_ is _F32 else ir.Constant(0, type_)
        case Vector(scalar=scalar):
            return ir.Construct(type_, (zero_of(scalar),))
        case Matrix(columns=columns, column=column):
            return ir.Construct(type_, (zero_of(column),) * columns)
        case _:
            assert_never(type_)


def part_types(type_: Vector | Matrix) -> tuple[Scalar | Vector, ...]:
    """Return the types of a vector's components, or of a matrix's columns."""
    if isinstance(type_, Vector):
        return (type_.scalar,) * type_.width
    return (type_.column,) * type_.columns


Number: TypeAlias = tuple[int, ...]
"""The position of a number in a value: (1,) is `v.y`, (2, 0) is `m[2].x`, () a scalar."""


def numbers_of(type_: ValueType) -> tuple[Number, ...]:
    """Return the positions of all numbers in a value: (0,), (1,) for a vec2f."""
    if isinstance(type_, Scalar):
        return ((),)
    return tuple(
        (place, *rest)
        for place, part in enumerate(part_types(type_))
        for rest in numbers_of(part)
    )


def number_of(value: ir.Expr, number: Number) -> ir.Expr:
    """Return a number of a vector or matrix."""
    return reduce(part_of, number, value)


def binary(op: ir.BinaryOp, left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """Return an operation whose type follows from those of its sides."""
    sides = left.type, right.type
    if all(isinstance(side, Scalar) for side in sides):
        return ir.Binary(op, left, right, left.type)
    type_ = composite_type(op, *sides)
    assert type_ is not None, f"{sides[0].spelling} {op} {sides[1].spelling}"
    return ir.Binary(op, left, right, type_)


def part_of(value: ir.Expr, number: int) -> ir.Expr:
    """Return a component of a vector, or a column of a matrix, by its number.

    It is taken as deep inside as possible: `x` of `vec2f(a, b) + v` is `a + v.x`.
    """
    type_ = value.type
    assert not isinstance(type_, Scalar)
    if isinstance(value, ir.Construct):
        return _part_of_construct(value, number)
    scalar = part_types(type_)[number]
    match value:
        case ir.Unary(operand=operand):
            return ir.Unary("-", part_of(operand, number), scalar)
        case ir.Binary(op=op, left=left, right=right) if _is_by_parts(value):
            sides = (_part_or_number(side, number) for side in (left, right))
            return binary(op, *sides)
        case ir.Select(condition=condition, then=then, otherwise=otherwise):
            both = part_of(then, number), part_of(otherwise, number)
            return ir.Select(condition, *both, scalar)
        case ir.BuiltinCall(builtin=name) if (
            name in BUILTINS and value.builtin != "select"
        ):
            parts = tuple(_part_or_number(a, number) for a in value.arguments)
            return replace(value, arguments=parts, type=scalar)
        case ir.Swizzle(operand=operand, components=components):
            return part_of(operand, LETTERS.index(components[number]))
        case _:
            pass
    # A read or call that has no parts of its own: `m[1]`, `v.y`.
    if isinstance(type_, Matrix):
        at = ir.At(
            ir.Affine(ir.Constant(number, Scalar.I32), str(number)), type_.columns
        )
        return ir.Part(value, at, type_.column)
    return ir.Swizzle(value, LETTERS[number], type_.scalar)


def _is_by_parts(value: ir.Binary) -> bool:
    """Whether an operation works component by component: a product with a matrix doesn't."""
    left, right = value.left, value.right
    matrices = [isinstance(side.type, Matrix) for side in (left, right)]
    return not any(matrices) or (value.op != "*" and left.type == right.type)


def _part_or_number(value: ir.Expr, number: int) -> ir.Expr:
    return value if isinstance(value.type, Scalar) else part_of(value, number)


def _part_of_construct(value: ir.Construct, number: int) -> ir.Expr:
    """Return part `number` of a constructor: of `vec4f(v, s)`, number 1 is `v.y`."""
    if isinstance(value.type, Matrix):
        return value.parts[number]
    if len(value.parts) == 1 and isinstance(value.parts[0].type, Scalar):
        return value.parts[0]
    for part in value.parts:
        width = part.type.width if isinstance(part.type, Vector) else 1
        if number < width:
            return part if width == 1 else part_of(part, number)
        number -= width
    raise AssertionError("a vector has as many components as its parts")


def parts_of(value: ir.Expr) -> tuple[ir.Expr, ...]:
    """Return all components of a vector, or all columns of a matrix."""
    assert not isinstance(value.type, Scalar)
    return tuple(part_of(value, n) for n, _ in enumerate(part_types(value.type)))


def placed(part: ir.Expr, number: int, type_: Vector | Matrix) -> ir.Construct:
    """Return a vector or matrix with one part, and zeros for the others."""
    parts = list(map(zero_of, part_types(type_)))
    parts[number] = part
    return ir.Construct(type_, tuple(parts))


def place_of(at: ir.At) -> int | None:
    """Return the literal number that a part is read by, or None if it is computed."""
    return as_literal(subscript_value(at.place))


# Arithmetic that drops literal zeros and ones


def is_zero(value: ir.Expr) -> bool:
    """Whether a value is a literal 0."""
    if isinstance(value, ir.Construct):
        return all(map(is_zero, value.parts))
    return isinstance(value, ir.Constant) and not value.value


def times(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """Return a product; of two vectors, component by component."""
    if is_zero(left) or is_zero(right):
        type_ = left.type if isinstance(right.type, Scalar) else right.type
        return zero_of(type_)
    if left == UNIT:
        return right
    if right == UNIT:
        return left
    return binary("*", left, right)


def is_single(direction: ir.Expr) -> bool:
    """Whether all but one number of a vector or matrix are literal zeros."""
    return is_sparse(direction) and _count_nonzero(direction) == 1


def _count_nonzero(value: ir.Expr) -> int:
    if isinstance(value.type, Scalar):
        return not is_zero(value)
    return sum(map(_count_nonzero, parts_of(value)))


def placed_along(value: ir.Expr, direction: ir.Expr) -> ir.Expr:
    """Return a number times a direction, whose zeros stay zeros even if the number is NaN."""
    type_ = direction.type
    if isinstance(type_, Scalar) or is_zero(direction):
        return times(value, direction)
    return ir.Construct(
        type_, tuple(placed_along(value, part) for part in parts_of(direction))
    )


def added(parts: list[ir.Expr], type_: ValueType) -> ir.Expr:
    """Return the sum of several values, without zeros."""
    kept = [part for part in parts if not is_zero(part)]
    total = kept[0] if kept else zero_of(type_)
    for part in kept[1:]:
        total = binary("+", total, part)
    return total


def by_components(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """Return the product of two vectors, component by component."""
    if isinstance(left, ir.Construct) or isinstance(right, ir.Construct):
        assert isinstance(left.type, Vector)
        pairs = zip(parts_of(left), parts_of(right), strict=True)
        return packed(left.type, tuple(times(one, other) for one, other in pairs))
    return binary("*", left, right)


def divided(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """Return a quotient; a literal 0 stays 0, as 0 / 0 would be NaN."""
    if not isinstance(left, ir.Construct) or isinstance(right.type, Scalar):
        return binary("/", left, right)
    pairs = zip(parts_of(left), parts_of(right), strict=True)
    parts = (a if is_zero(a) else binary("/", a, b) for a, b in pairs)
    return ir.Construct(left.type, tuple(parts))


def inner(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """Return the inner product of two values of one type: the sum of products of numbers."""
    if isinstance(left.type, Scalar):
        return times(left, right)
    pairs = tuple(zip(parts_of(left), parts_of(right), strict=True))
    sparse = any(isinstance(v, ir.Construct) for v in (left, right))
    if isinstance(left.type, Matrix) or sparse:
        return added([inner(one, other) for one, other in pairs], _F32)
    return ir.BuiltinCall("dot", (left, right), _F32)


def total(value: ir.Expr) -> ir.Expr:
    """Return the sum of all components."""
    if isinstance(value.type, Scalar):
        return value
    return added([total(part) for part in parts_of(value)], _F32)


# Components that are alike


def packed(type_: Vector | Matrix, parts: tuple[ir.Expr, ...]) -> ir.Expr:
    """Return a vector or matrix made of parts, as one operation if all parts are alike.

    Before:  vec2f(2.0 * v.x, 2.0 * v.y)      vec2f(s, s)
    After:   2.0 * v                          vec2f(s)
    """
    if isinstance(type_, Matrix):
        return ir.Construct(type_, parts)
    found = _alike(parts)
    if found is None:
        return ir.Construct(type_, parts)
    return ir.Construct(type_, (found,)) if isinstance(found.type, Scalar) else found


def _alike(parts: tuple[ir.Expr, ...]) -> ir.Expr | None:
    """Return the vector with these components, or the scalar that all of them are."""
    first = parts[0]
    if all(part == first for part in parts):
        return first
    if any(type(part) is not type(first) for part in parts):
        return None
    match first:
        case ir.Swizzle(operand=operand):
            return _swizzled(operand, parts)
        case ir.Unary():
            inside = _alike(tuple(p.operand for p in parts if isinstance(p, ir.Unary)))
            return inside and ir.Unary("-", inside, inside.type)
        case ir.Binary(op="+" | "-" | "*" | "/" as op):
            own = [p for p in parts if isinstance(p, ir.Binary) and p.op == op]
            if len(own) < len(parts):
                return None
            left = _alike(tuple(p.left for p in own))
            right = _alike(tuple(p.right for p in own))
            return binary(op, left, right) if left and right else None
        case ir.BuiltinCall(builtin=name) if name in BUILTINS and BUILTINS[name].wide:
            return _alike_calls(name, parts)
        case _:
            return None


def _swizzled(operand: ir.Expr, parts: tuple[ir.Expr, ...]) -> ir.Expr | None:
    """Return components of one vector as a swizzle; all in order are the vector itself."""
    own = [p for p in parts if isinstance(p, ir.Swizzle) and p.operand == operand]
    if len(own) < len(parts):
        return None
    type_, letters = Vector(_F32, len(parts)), "".join(p.components for p in own)
    if operand.type == type_ and letters == LETTERS[: len(parts)]:
        return operand
    return ir.Swizzle(operand, letters, type_)


def _alike_calls(name: str, parts: tuple[ir.Expr, ...]) -> ir.Expr | None:
    """Return calls of a built-in as one of whole vectors: `exp(v.x), exp(v.y)` is `exp(v)`."""
    calls = [p for p in parts if isinstance(p, ir.BuiltinCall) and p.builtin == name]
    if len(calls) < len(parts):
        return None
    columns = zip(*(call.arguments for call in calls), strict=True)
    arguments: list[ir.Expr] = []
    type_ = Vector(_F32, len(parts))
    for column in columns:
        found = _alike(tuple(column))
        if found is None or (found.type is not _F32 and found.type != type_):
            return None
        whole = found.type == type_
        arguments.append(found if whole else ir.Construct(type_, (found,)))
    return ir.BuiltinCall(name, tuple(arguments), type_)


# Terms


def direction_of(term: Term) -> tuple[Term, ir.Expr]:
    """Split a term into its numbers, and its direction: the one vector or matrix factor.

    The direction is 1 if no factor is a vector or matrix.
    """
    for atom in term.factors:
        if not isinstance(atom.type, Scalar):
            factors = {a: e for a, e in term.factors.items() if a != atom}
            return replace(term, factors=factors), atom
    return term, UNIT


def type_of(term: Term) -> ValueType:
    """Return the type of a term's product."""
    return direction_of(term)[1].type if term.factors else _F32


def along(term: Term, value: ir.Expr) -> Term | None:
    """Return a scalar term times a value, or None if that is 0."""
    if is_zero(value):
        return None
    found = product_of(value)
    return term.times(found) if found.coefficient else None


def is_sparse(value: ir.Expr) -> bool:
    """Whether a vector or matrix is written with literal zeros among its parts."""
    return isinstance(value, ir.Construct) and any(map(_has_zero, value.parts))


def kept(value: ir.Expr, numbers: frozenset[Number]) -> ir.Expr:
    """Return a value with literal zeros for all numbers but those at the given positions."""
    type_ = value.type
    if numbers.issuperset(numbers_of(type_)):
        return value
    if isinstance(type_, Scalar):
        return zero_of(type_)
    parts = (
        kept(part, frozenset(n[1:] for n in numbers if n[0] == place))
        for place, part in enumerate(parts_of(value))
    )
    return ir.Construct(type_, tuple(parts))


def _has_zero(part: ir.Expr) -> bool:
    return is_zero(part) or is_sparse(part)

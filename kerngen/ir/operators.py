"""The result types of operators on vectors and matrices, by WGSL's rules.

Operators on scalars are not here: both sides have one type, which the checker compares.
"""

from __future__ import annotations

from typing import Final, assert_never

from kerngen.ir.nodes import BinaryOp
from kerngen.ir.types import Matrix, Scalar, ValueType, Vector, scalar_of

_COMPONENTWISE: Final = frozenset[BinaryOp](("+", "-", "*", "/", "%"))
_ON_BITS: Final = frozenset[BinaryOp](("&", "|", "^"))
_SHIFTS: Final = frozenset[BinaryOp](("<<", ">>"))


def composite_type(
    op: BinaryOp, left: ValueType, right: ValueType
) -> Vector | Matrix | None:
    """Return the type of `left op right`, where a side is a vector or matrix.

    Return None if there is no such operation (WGSL 8.7, Arithmetic Expressions).
    """
    match left, right:
        case Vector(), Vector():
            return _of_vectors(op, left, right)
        case (Vector() as vector, Scalar() as scalar):
            return vector if _mixes(op, vector, scalar) else None
        case (Scalar() as scalar, Vector() as vector):
            return vector if _mixes(op, vector, scalar) else None
        case Matrix(), Matrix() if op in {"+", "-"}:
            return left if left == right else None
        case _ if op == "*":
            return _product(left, right)
        case _:
            return None


def _of_vectors(op: BinaryOp, left: Vector, right: Vector) -> Vector | None:
    if op in _SHIFTS:
        counts = Vector(Scalar.U32, left.width)
        return left if right == counts and left.scalar.is_integer else None
    known = op in _COMPONENTWISE or (op in _ON_BITS and left.scalar.is_integer)
    return left if known and left == right else None


def _mixes(op: BinaryOp, vector: Vector, scalar: Scalar) -> bool:
    return op in _COMPONENTWISE and vector.scalar is scalar


def _product(left: ValueType, right: ValueType) -> Vector | Matrix | None:
    """Return the type of a product with a matrix: by a scalar, a vector or a matrix."""
    match left, right:
        case (Matrix(), Scalar.F32) | (Scalar.F32, Matrix()):
            return left if isinstance(left, Matrix) else _matrix(right)
        case Matrix(), Vector() if right == Vector(Scalar.F32, left.columns):
            return left.column
        case Vector(), Matrix() if left == right.column:
            return Vector(Scalar.F32, right.columns)
        case Matrix(), Matrix() if left.columns == right.rows:
            return Matrix(right.columns, left.rows)
        case _:
            return None


def _matrix(type_: ValueType) -> Matrix | None:
    return type_ if isinstance(type_, Matrix) else None


def is_composite(type_: ValueType) -> bool:
    """Whether values of a type have components: vectors and matrices do."""
    return not isinstance(type_, Scalar)


def swizzle_type(type_: ValueType, components: str) -> Scalar | Vector | None:
    """Return the type of a swizzle, as `xy`, of a value; None if it has no such components."""
    if not isinstance(type_, Vector) or not 1 <= len(components) <= 4:
        return None
    if not set(components) <= set("xyzw"[: type_.width]):
        return None
    scalar = type_.scalar
    return scalar if len(components) == 1 else Vector(scalar, len(components))


def part_type(type_: ValueType) -> tuple[int, Scalar | Vector] | None:
    """Return the number and the type of a value's components or columns; None for a scalar."""
    match type_:
        case Vector(scalar=scalar, width=width):
            return width, scalar
        case Matrix(columns=columns, column=column):
            return columns, column
        case Scalar():
            return None
        case _:
            assert_never(type_)


def fits_construct(type_: Vector | Matrix, parts: tuple[ValueType, ...]) -> bool:
    """Whether a vector or matrix of a type can be constructed of parts of these types."""
    if isinstance(type_, Matrix):
        return parts == (type_.column,) * type_.columns
    if any(isinstance(p, Matrix) or scalar_of(p) is not type_.scalar for p in parts):
        return False
    widths = [part.width if isinstance(part, Vector) else 1 for part in parts]
    return widths == [1] or sum(widths) == type_.width

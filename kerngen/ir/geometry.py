"""The table of built-ins on whole vectors and matrices, as `dot` and `cross`.

The built-ins of `kerngen.ir.builtins.table` work on each component of a vector; these don't.
Each is a function of WGSL of the same name (WGSL 17.5, Numeric Built-in Functions), and one
of `kerngen.runtime.geometry`, in snake case.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from kerngen.ir.types import Matrix, Scalar, ValueType, Vector

Types: TypeAlias = tuple[ValueType, ...]


@final
@dataclass(frozen=True, slots=True)
class Geometry:
    """A built-in on whole vectors or matrices: its row in the table.

    - `accepted`: its arguments in words, for messages
    - `typing`: a function of the arguments' types that returns the result's, or None
    - `adjoints`: its vector-Jacobian products, one for each argument, as expressions of the
      language over the arguments `x`, `y`, `z`, the result `f`, and `d`, the gradient by
      the result; or a function of the arguments' types that returns them

    So `dot(x, y)` has the adjoints `d * y` and `d * x`.
    """

    name: str
    arity: int
    accepted: str
    typing: Callable[[Types], ValueType | None]
    doc: str
    adjoints: tuple[str, ...] | Callable[[Types], tuple[str, ...]]

    def adjoints_of(self, given: Types) -> tuple[str, ...]:
        """Return the adjoint of each argument, as source text, for arguments of these types."""
        return self.adjoints(given) if callable(self.adjoints) else self.adjoints

    @property
    def numpy(self) -> str:
        """The NumPy form, as a template over the arguments."""
        places = ", ".join(f"{{{n}}}" for n in range(self.arity))
        return f"geometry.{_snake_case(self.name)}({places})"

    def result(self, given: Types) -> ValueType | None:
        """Return the result type for arguments of these types, or None if they don't fit."""
        return self.typing(given) if len(given) == self.arity else None


def _snake_case(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


def _is_float(type_: ValueType) -> bool:
    return isinstance(type_, Vector) and type_.scalar is Scalar.F32


def _alike(given: Types) -> bool:
    return all(type_ == given[0] for type_ in given)


def _product(given: Types) -> ValueType | None:
    first = given[0]
    return first.scalar if isinstance(first, Vector) and _alike(given) else None


def _measure(given: Types) -> ValueType | None:
    return Scalar.F32 if _is_float(given[0]) and _alike(given) else None


def _direction(given: Types) -> ValueType | None:
    return given[0] if _is_float(given[0]) and _alike(given) else None


def _cross(given: Types) -> ValueType | None:
    return given[0] if given == (Vector(Scalar.F32, 3),) * 2 else None


def _refracted(given: Types) -> ValueType | None:
    *directions, ratio = given
    return _direction(tuple(directions)) if ratio is Scalar.F32 else None


def _transposed(given: Types) -> ValueType | None:
    (type_,) = given
    return Matrix(type_.rows, type_.columns) if isinstance(type_, Matrix) else None


def _square(given: Types) -> ValueType | None:
    (type_,) = given
    square = isinstance(type_, Matrix) and type_.columns == type_.rows
    return Scalar.F32 if square else None


def _cofactors(given: Types) -> tuple[str, ...]:
    """Return the adjoint of a determinant: minors with signs, column by column."""
    # By Jacobi's formula, the derivative by an element is its cofactor.
    (type_,) = given
    assert isinstance(type_, Matrix)
    size = type_.columns
    columns = (
        ", ".join(_cofactor(column, row, size) for row in range(size))
        for column in range(size)
    )
    vectors = ", ".join(f"vec{size}f({column})" for column in columns)
    return (f"d * mat{size}x{size}f({vectors})",)


def _cofactor(column: int, row: int, size: int) -> str:
    """Return the cofactor of an element: the minor without its column and row, signed."""
    sign = "-" if (column + row) % 2 else ""
    rest = "xyzw"[:size].replace("xyzw"[row], "")
    others = [f"x[{other}].{rest}" for other in range(size) if other != column]
    if size == 2:
        return f"{sign}{others[0]}"
    small = f"mat{size - 1}x{size - 1}f"
    return f"{sign}determinant({small}({', '.join(others)}))"


_ONE = "(vecNf)"
_TWO = "(vecNf, vecNf)"

# A length of 0 has a kink, with slopes of both signs: their mean, 0, is taken.
_AT_NO_DISTANCE = "if f == 0.0 { 0.0 * x } else"

# `refract(x, y, z)` is `z * x - bent * y`, and 0 where the square is negative (total
# reflection).  Here, x is the direction, y the normal and z the ratio of the indices.
_COSINE = "dot(y, x)"
_SINE_SQUARED = f"(1.0 - {_COSINE} * {_COSINE})"
_SQUARE = f"1.0 - z * z * {_SINE_SQUARED}"
_LOST = f"if {_SQUARE} < 0.0"
_BENT = f"z * {_COSINE} + sqrt({_SQUARE})"
_RISE = f"({_COSINE} - z * {_SINE_SQUARED} / sqrt({_SQUARE}))"
_ALONG = f"dot(d, y) * (z + z * z * {_COSINE} / sqrt({_SQUARE}))"

_ROWS = (
    Geometry(
        "dot",
        2,
        "two vectors of one type",
        _product,
        "The sum of the products of the components.",
        ("d * y", "d * x"),
    ),
    Geometry(
        "length",
        1,
        _ONE,
        _measure,
        "The Euclidean length.",
        (f"{_AT_NO_DISTANCE} {{ d / f * x }}",),
    ),
    Geometry(
        "distance",
        2,
        _TWO,
        _measure,
        "The length of the difference.",
        (
            f"{_AT_NO_DISTANCE} {{ d / f * (x - y) }}",
            f"{_AT_NO_DISTANCE} {{ d / f * (y - x) }}",
        ),
    ),
    Geometry(
        "normalize",
        1,
        _ONE,
        _direction,
        "The vector divided by its length.",
        ("(d - dot(f, d) * f) / length(x)",),
    ),
    Geometry(
        "cross",
        2,
        "(vec3f, vec3f)",
        _cross,
        "The cross product.",
        ("cross(y, d)", "cross(d, x)"),
    ),
    Geometry(
        "reflect",
        2,
        _TWO,
        _direction,
        "The first vector, mirrored by the plane that the second is normal to.",
        ("reflect(d, y)", "-2.0 * (dot(y, d) * x + dot(y, x) * d)"),
    ),
    Geometry(
        "faceForward",
        3,
        "(vecNf, vecNf, vecNf)",
        _direction,
        "The first vector, negated unless the other two point apart.",
        ("if dot(y, z) < 0.0 { d } else { -d }", "0.0 * y", "0.0 * z"),
    ),
    Geometry(
        "refract",
        3,
        "(vecNf, vecNf, f32)",
        _refracted,
        "The first vector, refracted at a surface with the second as its normal.",
        (
            f"{_LOST} {{ 0.0 * x }} else {{ z * d - {_ALONG} * y }}",
            f"{_LOST} {{ 0.0 * y }} else {{ -({_BENT}) * d - {_ALONG} * x }}",
            f"{_LOST} {{ 0.0 }} else {{ dot(d, x) - dot(d, y) * {_RISE} }}",
        ),
    ),
    Geometry(
        "transpose",
        1,
        "(matCxRf)",
        _transposed,
        "Columns made rows.",
        ("transpose(d)",),
    ),
    Geometry("determinant", 1, "(matNxNf)", _square, "The determinant.", _cofactors),
)

GEOMETRY: Final = {row.name: row for row in _ROWS}
"""Every built-in on whole vectors or matrices by its name."""

"""The built-in functions of vectors and matrices as a whole, one row each.

Those of scalars (`kerngen.ir.builtins`) work on each component of a vector; these don't.
Every row is a function of WGSL's of the same name (WGSL 17.5, Numeric Built-in
Functions), and of `kerngen.runtime.geometry`'s.
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
    """One such function: `typing` gives the result's type, None if there is none."""

    name: str
    arity: int
    accepted: str
    typing: Callable[[Types], ValueType | None]
    doc: str

    @property
    def numpy(self) -> str:
        """The NumPy meaning, as a template over the arguments."""
        places = ", ".join(f"{{{n}}}" for n in range(self.arity))
        return f"geometry.{_snake_case(self.name)}({places})"

    def result(self, given: Types) -> ValueType | None:
        """Return the type for arguments of these types; None if there is no such form."""
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


_ONE = "(vecNf)"
_TWO = "(vecNf, vecNf)"

_ROWS = (
    Geometry(
        "dot",
        2,
        "two vectors of one type",
        _product,
        "The sum of the products of the components.",
    ),
    Geometry("length", 1, _ONE, _measure, "The Euclidean length."),
    Geometry("distance", 2, _TWO, _measure, "The length of the difference."),
    Geometry("normalize", 1, _ONE, _direction, "The vector divided by its length."),
    Geometry("cross", 2, "(vec3f, vec3f)", _cross, "The cross product."),
    Geometry(
        "reflect",
        2,
        _TWO,
        _direction,
        "The first vector, mirrored by the plane that the second is normal to.",
    ),
    Geometry(
        "faceForward",
        3,
        "(vecNf, vecNf, vecNf)",
        _direction,
        "The first vector, negated unless the other two point apart.",
    ),
    Geometry(
        "refract",
        3,
        "(vecNf, vecNf, f32)",
        _refracted,
        "The first vector, refracted at a surface with the second as its normal.",
    ),
    Geometry("transpose", 1, "(matCxRf)", _transposed, "Columns made rows."),
    Geometry("determinant", 1, "(matNxNf)", _square, "The determinant."),
)

GEOMETRY: Final = {row.name: row for row in _ROWS}
"""Every such function by its name."""

"""The axes of vectors and matrices in references, which come after those of a frame.

The array of a vector has one more axis than that of a scalar, and of a matrix two: its
columns and rows.  Where a scalar meets one of them, it gets as many axes of length 1:

    v[i] * mass[i], a vec3f by an f32    ->    v * mass[..., None]    (n, 3) by (n, 1)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import assert_never

from kerngen.emit.python_code import Code
from kerngen.ir.memory import Struct
from kerngen.ir.nodes import Tensor
from kerngen.ir.types import Matrix, Scalar, ValueType, Vector, scalar_of

ARRAY = "NDArray[Any]"
"""The annotation of arrays, but for those of structs."""

_BEHIND = re.compile(r"\[((?::|None)(?:, (?::|None))*|\.\.\.(?:, (?:\d+|:|None))*)\]$")
"""Subscripts at the end of a text to which those of components may be added.

They are `[:, None]`, of all axes of the frame, or `[..., 1, :]`.  Numbers are no part of the
first form: `x[0]` may leave out other axes of the frame.
"""


def components(type_: ValueType) -> tuple[int, ...]:
    """Return the lengths of a type's own axes: none for a scalar."""
    match type_:
        case Scalar():
            return ()
        case Vector(width=width):
            return (width,)
        case Matrix(columns=columns, rows=rows):
            return (columns, rows)
        case _:
            assert_never(type_)


def array_annotation(tensor: Tensor) -> str:
    """Return the annotation of a tensor's array."""
    return "NDArray[np.void]" if isinstance(tensor.element, Struct) else ARRAY


def is_float(type_: ValueType) -> bool:
    """Whether a scalar, or the components of a vector or matrix, are floats."""
    return scalar_of(type_) is Scalar.F32


def widest(*types: ValueType) -> ValueType:
    """Return the type with the most axes of its own."""
    return max(types, key=lambda type_: len(components(type_)))


def lift(code: Code, type_: ValueType, to: ValueType) -> Code:
    """Return a value of `type_` with axes added, so that it broadcasts against the type `to`.

    Python numbers need no axes.

    Before:  mass, an f32, to meet a vec3f
    After:   mass[..., None]
    """
    missing = len(components(to)) - len(components(type_))
    if code.weak or missing <= 0:
        return code
    return inner(code, ["None"] * missing)


def inner(array: Code, parts: Sequence[str]) -> Code:
    """Return `array` with subscripts for the own axes of its type, after those of the frame.

    Before:  x[:, None], 0        m[..., 1, :], 2
    After:   x[:, None, 0]        m[..., 1, 2]
    """
    given = _BEHIND.search(array.atom)
    before = given[1] if given else "..."
    text = array.atom[: given.start()] if given else array.atom
    if before.startswith("..."):
        before = before.removesuffix(", :")
    return Code(f"{text}[{', '.join([before, *parts])}]", fresh=array.fresh)


def as_one(name: str, type_: ValueType, to: ValueType) -> str:
    """Return the code of an array of the first component alone, for a value of `type_`.

    It has as many axes of length 1 as the type `to` has axes of its own.
    """
    if not components(type_) and not components(to):
        return name
    own, wanted = ["0"] * len(components(type_)), ["None"] * len(components(to))
    return f"{name}[{', '.join(['...', *own, *wanted])}]"

"""The element types of tensors, as marker classes that type checkers can tell apart.

`f32` stands both for the type in annotations (`Matrix[f32]`) and for the value that
constructors take (`ctx.matrix(array, f32)`).  So do the classes of vectors and matrices
in `leaves.py`, which like these have no instances, and the generated classes of structs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, final

import numpy as np
from numpy.typing import DTypeLike

from kerngen.runtime.errors import DtypeError
from kerngen.runtime.shapes import Shape


@final
@dataclass(frozen=True, slots=True)
class Number:
    """How memory keeps a number: its NumPy dtype, `struct` code, and finite range.

    `limit` is what the magnitude of a real must stay below, or it rounds to infinity.
    """

    name: str
    dtype: np.dtype[Any]
    code: str
    lowest: float
    highest: float
    limit: float = 0.0

    @property
    def is_integer(self) -> bool:
        """Whether it is i32 or u32."""
        return not self.limit

    @property
    def size(self) -> int:
        """The bytes of one."""
        return self.dtype.itemsize


_F32_MAX = (2 - 2.0**-23) * 2.0**127
F32 = Number("f32", np.dtype("<f4"), "f", -_F32_MAX, _F32_MAX, _F32_MAX + 2.0**103)
F16 = Number("f16", np.dtype("<f2"), "e", -65504.0, 65504.0, 65520.0)
I32 = Number("i32", np.dtype("<i4"), "i", -(2**31), 2**31 - 1)
U32 = Number("u32", np.dtype("<u4"), "I", 0, 2**32 - 1)


class Element:
    """What all element types have: the dtype of one in memory, gaps included."""

    __slots__ = ()

    DTYPE: ClassVar[np.dtype[Any]]


class Leaf(Element):
    """A scalar, vector or matrix: numbers of one type, in memory as WGSL keeps them.

    `shape` is that of a value: () of a scalar, (columns, rows) of a matrix.  `stride`
    is the distance from one vector to the next, in a tensor of them or in a matrix.
    """

    __slots__ = ()

    number: ClassVar[Number]
    shape: ClassVar[Shape] = ()
    stride: ClassVar[int] = 0

    def __init_subclass__(
        cls, *, of: Number, shape: Shape = (), stride: int = 0
    ) -> None:
        """Describe the type: `shape` numbers, and what vectors are rounded up to."""
        super().__init_subclass__()
        cls.number, cls.shape, cls.stride = of, shape, stride or of.size
        cls.DTYPE = leaf_dtype(of, shape, cls.stride, in_array=True)


def spaced(dtype: DTypeLike, stride: int) -> np.dtype[Any]:
    """Return a dtype for elements `stride` bytes apart: a record of one field, `value`.

    If they lie one behind the other, it is their own.
    """
    own: np.dtype[Any] = np.dtype(dtype)
    if own.itemsize == stride:
        return own
    return np.dtype({"names": ["value"], "formats": [own], "itemsize": stride})


def arrayed(dtype: np.dtype[Any], lengths: Shape) -> np.dtype[Any]:
    """Return the dtype of an array of elements; NumPy itself would nest sub-arrays."""
    return np.dtype((dtype.base, (*lengths, *dtype.shape))) if lengths else dtype


def leaf_dtype(
    number: Number, shape: Shape, stride: int, *, in_array: bool = False
) -> np.dtype[Any]:
    """Return the dtype of a value; `stride` is that of vectors, as in `Leaf`."""
    if not shape:
        return number.dtype
    vector = arrayed(number.dtype, shape[-1:])
    if in_array or len(shape) > 1:
        vector = spaced(vector, stride)
    return arrayed(vector, shape[:-1])


@final
class f32(Leaf, of=F32):
    """32-bit floats."""

    __slots__ = ()


@final
class f16(Leaf, of=F16):
    """16-bit floats: a storage type, read and computed as f32."""

    __slots__ = ()


@final
class i32(Leaf, of=I32):
    """Signed 32-bit integers."""

    __slots__ = ()


@final
class u32(Leaf, of=U32):
    """Unsigned 32-bit integers."""

    __slots__ = ()


E = TypeVar("E", bound=Element)


def check_element(element: object) -> None:
    """Refuse what is no element type: a NumPy dtype, or a name."""
    given: type[Any] | None = element if isinstance(element, type) else None
    dtype: object = getattr(given, "DTYPE", None)
    is_element = given is not None and issubclass(given, Element)
    if not is_element or not isinstance(dtype, np.dtype) or not dtype.itemsize:
        shown = given.__name__ if given is not None else repr(element)
        raise DtypeError(
            f"Expected an element type of kerngen.runtime (f32, f16, i32, u32, vec3f, "
            f"...) or the class of a struct, got {shown}."
        )


ELEMENTS: tuple[type[Leaf], ...] = (f32, f16, i32, u32)
"""Every scalar type."""

BY_DTYPE: dict[np.dtype[Any], type[Leaf]] = {
    element.number.dtype: element for element in ELEMENTS
}
"""The scalar type that holds a NumPy dtype exactly."""

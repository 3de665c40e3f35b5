"""The element types of tensors, as marker classes that type checkers distinguish.

`f32` is both the type in annotations (`Matrix[f32]`) and the value that
constructors take (`ctx.matrix(array, f32)`).  So do the classes of vectors and matrices
in `vector_types.py`, which like these have no instances, and the generated classes of structs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeAlias, TypeVar, cast, final

import numpy as np
from numpy.typing import DTypeLike

from kerngen.plan.hostmath import I32_MAX, I32_MIN, U32_MAX
from kerngen.runtime.errors import DtypeError
from kerngen.runtime.values.shapes import Shape


@final
@dataclass(frozen=True, slots=True)
class Number:
    """A number type in memory: its NumPy dtype, `struct` code, and finite range.

    Reals must be below `limit` in magnitude, or they round to infinity: it is the middle
    between `highest` and the next power of two.  Integers have no limit.
    """

    name: str
    dtype: np.dtype[Any]
    code: str
    lowest: float
    highest: float
    limit: float = 0.0
    bits: int = 0
    """The bits of an integer that shaders read out of a word, 4 or 8; else 0."""

    @property
    def is_integer(self) -> bool:
        """Whether the type is an integer type."""
        return not self.limit

    @property
    def shares_bytes(self) -> bool:
        """Whether two numbers share one byte, as those of `u4` do."""
        return self.bits == 4

    @property
    def size(self) -> int:
        """The size of a number in bytes: 1 where two share a byte."""
        return self.dtype.itemsize


_F32_MAX = (2 - 2.0**-23) * 2.0**127
"""The largest finite f32; half a unit in its last place, 2^103, is its distance to `limit`."""
F32 = Number("f32", np.dtype("<f4"), "f", -_F32_MAX, _F32_MAX, _F32_MAX + 2.0**103)
F16 = Number("f16", np.dtype("<f2"), "e", -65504.0, 65504.0, 65520.0)
I32 = Number("i32", np.dtype("<i4"), "i", I32_MIN, I32_MAX)
U32 = Number("u32", np.dtype("<u4"), "I", 0, U32_MAX)
U8 = Number("u8", np.dtype("u1"), "B", 0, 255, bits=8)
I8 = Number("i8", np.dtype("i1"), "b", -128, 127, bits=8)
U4 = Number("u4", np.dtype("u1"), "B", 0, 15, bits=4)
I4 = Number("i4", np.dtype("i1"), "b", -8, 7, bits=4)


class Element:
    """The base of all element types; `DTYPE` is the dtype of an element, with its gaps."""

    __slots__ = ()

    DTYPE: ClassVar[np.dtype[Any]]


class Leaf(Element):
    """The base of scalars, vectors and matrices: numbers of one type, in WGSL's layout.

    `shape` is that of a value: () for a scalar, (columns, rows) for a matrix.  `stride` is the
    distance in bytes from one vector to the next, in a tensor of vectors or in a matrix.
    """

    __slots__ = ()

    number: ClassVar[Number]
    shape: ClassVar[Shape] = ()
    stride: ClassVar[int] = 0
    dtype: ClassVar[np.dtype[Any]]
    """The dtype of a scalar type; vectors and matrices have no such attribute."""

    def __init_subclass__(
        cls, *, of: Number, shape: Shape = (), stride: int = 0
    ) -> None:
        """Set the type's shape, its numbers, and the stride of its vectors."""
        super().__init_subclass__()
        cls.number, cls.shape, cls.stride = of, shape, stride or of.size
        cls.DTYPE = leaf_dtype(of, shape, cls.stride, in_array=True)
        if not shape:
            # NumPy takes a class with a dtype for that: `t.dtype == f32` is true.
            cls.dtype = of.dtype


def spaced(dtype: DTypeLike, stride: int) -> np.dtype[Any]:
    """Return a record dtype with one field, `value`, for elements `stride` bytes apart.

    If the elements are adjacent, `dtype` itself is returned.
    """
    own: np.dtype[Any] = np.dtype(dtype)
    if own.itemsize == stride:
        return own
    return np.dtype({"names": ["value"], "formats": [own], "itemsize": stride})


def arrayed(dtype: np.dtype[Any], lengths: Shape) -> np.dtype[Any]:
    """Return the dtype of a flat sub-array of these lengths; NumPy itself would nest it."""
    return np.dtype((dtype.base, (*lengths, *dtype.shape))) if lengths else dtype


def leaf_dtype(
    number: Number, shape: Shape, stride: int, *, in_array: bool = False
) -> np.dtype[Any]:
    """Return the dtype of a scalar, vector or matrix, whose vectors are `stride` bytes apart.

    `in_array` is for an element of an array, with the gap behind its last vector.
    """
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


@final
class u8(Leaf, of=U8):
    """Unsigned 8-bit integers: a storage type, read as u32."""

    __slots__ = ()


@final
class i8(Leaf, of=I8):
    """Signed 8-bit integers: a storage type, read as i32."""

    __slots__ = ()


@final
class u4(Leaf, of=U4):
    """Unsigned 4-bit integers, two to a byte: a storage type, read as u32."""

    __slots__ = ()


@final
class i4(Leaf, of=I4):
    """Signed 4-bit integers, two to a byte: a storage type, read as i32."""

    __slots__ = ()


E = TypeVar("E", bound=Element)


ELEMENTS: tuple[type[Leaf], ...] = (f32, f16, i32, u32)
"""Every scalar type that kernels read and write."""

_HELD: tuple[type[Leaf], ...] = (*ELEMENTS, u8, i8)
"""The scalar types that have a NumPy dtype of their own; two u4 or i4 share a byte."""

BY_DTYPE: dict[np.dtype[Any], type[Leaf]] = {
    element.number.dtype: element for element in _HELD
}
"""The scalar type that holds a NumPy dtype exactly."""

NumpyType: TypeAlias = (
    "type[np.float32 | np.float16 | np.int32 | np.uint32] | np.dtype[Any]"
)
"""A type of NumPy's numbers, in place of the scalar type that holds them."""

_NEAREST: Final = {"f": "f32", "i": "i32", "u": "u32", "b": "u32"}
"""The scalar type to advise for a kind of NumPy dtype that none holds."""


def as_element(element: type[E] | NumpyType) -> type[E]:
    """Return an element type; NumPy's float32, float16, int32, uint32 are converted.

    Raises:
        DtypeError: If `element` is neither an element type nor one of these.
    """
    if isinstance(element, type) and issubclass(element, Element):
        stated: object = getattr(element, "DTYPE", None)
        if isinstance(stated, np.dtype) and stated.itemsize:
            return element
    dtype = _numpy_dtype(element)
    if dtype is not None and dtype in BY_DTYPE and not isinstance(element, str):
        return cast("type[E]", BY_DTYPE[dtype])
    shown = str(getattr(element, "__name__", repr(element)))
    nearest = _NEAREST.get(dtype.kind) if dtype else None
    hint = f" Write {nearest}." if nearest else ""
    names = {each.__name__ for each in BY_DTYPE.values()}
    if isinstance(element, str) and element in names:
        hint = f" Write {element}, without quotes."
    if isinstance(element, int):
        hint = " A shape of several lengths is a tuple: ctx.zeros((3, 4), f32)."
    raise DtypeError(
        f"Expected an element type of kerngen.runtime (f32, f16, i32, u32, vec3f, ...) "
        f"or the class of a struct, got {shown}.{hint}"
    )


def _numpy_dtype(element: object) -> np.dtype[Any] | None:
    """Return the dtype of a type of NumPy or Python, or of a name such as 'float32'."""
    known = (np.number, int, float)
    is_number = isinstance(element, type) and issubclass(element, known)
    if not is_number and not isinstance(element, np.dtype | str):
        return None
    try:
        return np.dtype(cast("DTypeLike", element)).newbyteorder("<")
    except TypeError:  # of names that NumPy does not know, and of groups of types
        return None

"""The element types of tensors, as marker classes that type checkers can tell apart.

`f32` stands both for the type in annotations (`Matrix[f32]`) and for the value that
constructors take (`ctx.matrix(array, f32)`).  The classes have no instances.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar, final

import numpy as np

from kerngen.runtime.errors import DtypeError


class Element:
    """What all element types have: a name, a NumPy dtype, and their finite range."""

    __slots__ = ()

    name: ClassVar[str]
    dtype: ClassVar[np.dtype[Any]]
    is_integer: ClassVar[bool] = False
    lowest: ClassVar[float]
    highest: ClassVar[float]


@final
class f32(Element):
    """32-bit floats."""

    __slots__ = ()

    name = "f32"
    dtype = np.dtype("<f4")
    highest = float(np.finfo(np.float32).max)
    lowest = -highest


@final
class f16(Element):
    """16-bit floats: a storage type, read and computed as f32."""

    __slots__ = ()

    name = "f16"
    dtype = np.dtype("<f2")
    highest = float(np.finfo(np.float16).max)
    lowest = -highest


@final
class i32(Element):
    """Signed 32-bit integers."""

    __slots__ = ()

    name = "i32"
    dtype = np.dtype("<i4")
    is_integer = True
    lowest = -(2**31)
    highest = 2**31 - 1


@final
class u32(Element):
    """Unsigned 32-bit integers."""

    __slots__ = ()

    name = "u32"
    dtype = np.dtype("<u4")
    is_integer = True
    lowest = 0
    highest = 2**32 - 1


E = TypeVar("E", bound=Element)


def check_element(element: object) -> None:
    """Refuse what is no element type: a NumPy dtype, or a name."""
    if not (isinstance(element, type) and issubclass(element, Element)):
        shown = element.__name__ if isinstance(element, type) else repr(element)
        raise DtypeError(
            f"Expected an element type of kerngen.runtime (f32, f16, i32, u32), got "
            f"{shown}."
        )


ELEMENTS: tuple[type[Element], ...] = (f32, f16, i32, u32)
"""Every element type."""

BY_DTYPE: dict[np.dtype[Any], type[Element]] = {
    element.dtype: element for element in ELEMENTS
}
"""The element type that holds a NumPy dtype exactly."""

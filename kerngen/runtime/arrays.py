"""From whatever NumPy accepts to the bytes of a tensor, never losing a value unsaid."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kerngen.runtime.elements import BY_DTYPE, Element
from kerngen.runtime.errors import DtypeError

_HINTS = {"f": "f32", "i": "i32", "u": "u32", "b": "u32"}


def guess_element(array: ArrayLike) -> type[Element]:
    """Return the element type that an array has already, or refuse."""
    dtype = np.asarray(array).dtype
    element = BY_DTYPE.get(dtype.newbyteorder("<"))
    if element is None:
        hint = _HINTS.get(dtype.kind)
        advice = f"; say which one you want: ctx.tensor(a, {hint})" if hint else ""
        raise DtypeError(f"No element type holds {dtype}{advice}.")
    return element


def convert(array: ArrayLike, element: type[Element]) -> NDArray[Any]:
    """Return an array as contiguous elements.

    Floats may round, but nothing turns into an infinity or wraps around, and floats
    never become integers.
    """
    source: NDArray[Any] = np.asarray(array)
    if source.dtype == element.dtype:
        return np.ascontiguousarray(source).reshape(source.shape)
    allowed = "biu" if element.is_integer else "biuf"
    if source.dtype.kind not in allowed:
        raise DtypeError(
            f"An array of {source.dtype} does not convert to {element.name} elements; "
            f"convert it first, by array.astype(...), if that is what you mean."
        )
    if element.is_integer:
        _check_range(source, element)
        return source.astype(element.dtype, order="C")
    return _to_floats(source, element)


def _check_range(source: NDArray[Any], element: type[Element]) -> None:
    if source.size == 0:
        return
    for extreme in (int(source.min()), int(source.max())):
        if not element.lowest <= extreme <= element.highest:
            raise DtypeError(f"The array holds {extreme}, which no {element.name} can.")


def _to_floats(source: NDArray[Any], element: type[Element]) -> NDArray[Any]:
    try:
        with np.errstate(over="raise", invalid="ignore"):
            return source.astype(element.dtype, order="C")
    except FloatingPointError:
        raise DtypeError(
            f"The array holds a number beyond the range of {element.name}."
        ) from None


def as_bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the bytes of a contiguous array, without a copy."""
    return array.reshape(-1).view(np.uint8)

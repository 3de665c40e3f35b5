"""Conversion of NumPy arrays to a tensor's bytes and back; misfits are errors.

A vector or matrix has axes of its own in NumPy, behind those of the tensor; in memory
there may be gaps between its parts.  A struct is a record of its `DTYPE`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kerngen.runtime.errors import ArgumentError, DtypeError, ShapeError
from kerngen.runtime.struct import Struct, check_instance, fit_of
from kerngen.runtime.values.elements import BY_DTYPE, Element, Number
from kerngen.runtime.values.fields import is_leaf
from kerngen.runtime.values.foreign import as_array
from kerngen.runtime.values.kinds import kind_of
from kerngen.runtime.values.packing import is_packed, pack4, unpack4
from kerngen.runtime.values.records import conform, numbers
from kerngen.runtime.values.shapes import Shape

Values: TypeAlias = ArrayLike | Struct | Sequence[Struct | Sequence[Struct]]
"""What a tensor is made from: whatever NumPy takes, records, or instances of structs."""

_HINTS = {"f": "f32", "i": "i32", "u": "u32", "b": "u32"}
"""The element type to advise for each kind of NumPy dtype that none holds exactly."""


def guess_element(array: Values) -> type[Element]:
    """Return the element type that matches an array's dtype; raise if there is none."""
    dtype = as_array(array).dtype
    element = BY_DTYPE.get(dtype.newbyteorder("<"))
    if element is not None:
        return element
    if dtype.kind in "VO":
        raise DtypeError(
            "Records and structs don't show their element type; give their class: "
            "ctx.tensor(a, Particle)."
        )
    hint = _HINTS.get(dtype.kind)
    advice = f"; give the type: ctx.tensor(a, {hint})" if hint else ""
    raise DtypeError(f"No element type holds {dtype}{advice}.")


def to_memory(array: Values, element: type[Element]) -> tuple[NDArray[Any], Shape]:
    """Return an array converted to the layout of a tensor in memory, and the tensor's shape."""
    if not is_leaf(element):
        records = _records(array, cast("type[Struct]", element))
        return records, records.shape
    data = convert(cast("ArrayLike", array), element.number)
    shape = outer_shape(data.shape, element)
    # Two to a byte; without gaps; or, as of vec3f, with a gap behind each vector.
    if is_packed(element):
        return pack4(data), shape
    if element.DTYPE.itemsize == element.number.size * math.prod(element.shape):
        return data, shape
    memory = np.zeros(shape, element.DTYPE)
    numbers(memory)[...] = data
    return memory, shape


def window(
    data: NDArray[np.uint8], element: type[Element], shape: Shape
) -> NDArray[Any]:
    """Return bytes in a tensor's layout as an array of elements, without a copy.

    Elements of 4 bits are copied, as NumPy has no dtype for them.
    """
    if is_leaf(element) and is_packed(element):
        return unpack4(data, shape, element)
    base, inner = element.DTYPE.base, element.DTYPE.shape
    elements = data.view(base).reshape((*shape, *inner))
    # A struct's record may have one field 'value', too, and no gap to leave out.
    return numbers(elements) if is_leaf(element) else elements


def from_memory(
    data: NDArray[np.uint8], element: type[Element], shape: Shape
) -> NDArray[Any]:
    """Return bytes in a tensor's layout as a contiguous array, without the gaps of vectors."""
    return np.ascontiguousarray(window(data, element, shape)).reshape(
        numpy_shape(shape, element)
    )


def copied(
    found: Sequence[NDArray[np.uint8]], into: Sequence[NDArray[np.uint8]]
) -> list[NDArray[np.uint8]]:
    """Return copies of the arrays `found`: in the arrays `into`, or else in new memory."""
    if not into:
        return [each.copy() for each in found]
    for each, goal in zip(found, into, strict=True):
        goal[...] = each
    return [*into]


def check_out(out: object, element: type[Element], shape: Shape) -> None:
    """Refuse an `out=` array that can't take a tensor's elements.

    Raises:
        DtypeError: If it is no array, or of another dtype.
        ShapeError: If it has another shape.
        ArgumentError: If it can't be written, or its elements don't lie in a row.
    """
    wanted, dtype = numpy_shape(shape, element), array_dtype(element)
    if not isinstance(out, np.ndarray):
        raise DtypeError(f"numpy: out is {kind_of(out)}; expected an array of {dtype}.")
    array = cast("NDArray[Any]", out)
    if array.dtype != dtype:
        raise DtypeError(f"numpy: out has dtype {array.dtype}; expected {dtype}.")
    if array.shape != wanted:
        raise ShapeError(f"numpy: out has shape {array.shape}; expected {wanted}.")
    if not (array.flags.c_contiguous and array.flags.writeable):
        raise ArgumentError(
            "numpy: out is read-only, or its elements are not contiguous in C order. "
            "np.empty(tensor.shape, tensor.dtype) makes an array that fits."
        )


def as_elements(array: ArrayLike, element: type[Element]) -> NDArray[Any]:
    """Return a reference's result converted to the dtype of the element type."""
    return np.asarray(array, dtype=array_dtype(element))


def array_dtype(element: type[Element]) -> np.dtype[Any]:
    """Return the dtype of the NumPy array for an element type, without vectors' axes."""
    return element.number.dtype if is_leaf(element) else element.DTYPE


def as_value(array: NDArray[Any], element: type[Element]) -> Any:
    """Return an array's only element as a Python value: a number, tuples, or a struct."""
    if not is_leaf(element):
        return cast("type[Struct]", element).unpack(array.tobytes())
    if not element.shape:
        return array.item()
    return fit_of(element)(array.reshape(element.shape))


def numpy_shape(shape: Shape, element: type[Element]) -> Shape:
    """Return the shape of a tensor's NumPy array, with the axes of vectors."""
    return (*shape, *element.shape) if is_leaf(element) else shape


def outer_shape(shape: Shape, element: type[Element]) -> Shape:
    """Return a NumPy array's shape without the axes of each vector or matrix."""
    inner = element.shape if is_leaf(element) else ()
    depth = len(shape) - len(inner)
    if depth < 0 or shape[depth:] != inner:
        raise ShapeError(
            f"An array of {element.__name__} elements ends in the axes {inner}, got "
            f"shape {shape}."
        )
    return shape[:depth]


def _records(array: Values, element: type[Struct]) -> NDArray[np.void]:
    """Return records or instances of a struct in its `DTYPE`."""
    try:
        source = as_array(array)
    except ShapeError:
        if isinstance(_first_of(array), Struct):
            # Some are instances: the error names the first item of a list that is none.
            if isinstance(array, list | tuple):
                for place, item in enumerate(cast("Sequence[object]", array)):
                    if not isinstance(item, list):
                        check_instance(item, element, (place,))
            raise
        raise _no_instances(element, "nested values") from None
    if source.dtype.names is None and source.size == 0:
        return np.zeros(source.shape, element.DTYPE)
    if source.dtype.names is None and source.dtype != object:
        raise _no_instances(element, f"an array of {source.dtype}")
    if source.dtype != object:
        return conform(source, element)
    # Instances of the class, in an array of objects.  `pack_array` checks them, too, but
    # names their places along one axis.
    if source.ndim != 1:
        for index in np.ndindex(source.shape):
            check_instance(source[index], element, index)
    return element.pack_array(source.reshape(-1).tolist()).reshape(source.shape)


def _first_of(values: object) -> object:
    """Return the first element in nested lists and tuples."""
    first: Any = values
    while isinstance(first, list | tuple) and first:
        first = cast("Sequence[Any]", first)[0]
    return cast("object", first)


def _no_instances(element: type[Struct], given: str) -> DtypeError:
    name = element.__name__
    return DtypeError(
        f"{name} elements are made of instances of {name} or of records, got {given}. Of "
        f"tuples, write [{name}(*values) for values in ...]; of NumPy's fields, an array "
        f"of {name}.DTYPE."
    )


def convert(array: ArrayLike, number: Number) -> NDArray[Any]:
    """Return an array as contiguous numbers of the type `number`, or raise.

    Floats may round, but nothing turns into an infinity or wraps around, and floats
    never become integers.
    """
    source = as_array(array)
    if source.dtype == number.dtype and not number.shares_bytes:
        return np.ascontiguousarray(source).reshape(source.shape)
    allowed = "biu" if number.is_integer else "biuf"
    if source.dtype.kind not in allowed:
        raise DtypeError(
            f"An array of {source.dtype} does not convert to {number.name} elements; "
            f"convert it first, by array.astype(...), if that is what you mean."
        )
    if number.is_integer:
        _check_range(source, number)
        return source.astype(number.dtype, order="C")
    return _to_floats(source, number)


def _check_range(source: NDArray[Any], number: Number) -> None:
    if source.size == 0:
        return
    for extreme in (int(source.min()), int(source.max())):
        if not number.lowest <= extreme <= number.highest:
            raise DtypeError(f"The array holds {extreme}, which no {number.name} can.")


def _to_floats(source: NDArray[Any], number: Number) -> NDArray[Any]:
    # NumPy raises for a finite number that becomes an infinity; NaN is converted.
    try:
        with np.errstate(over="raise", invalid="ignore"):
            return source.astype(number.dtype, order="C")
    except FloatingPointError:
        raise DtypeError(
            f"The array holds a number beyond the range of {number.name}."
        ) from None


def as_bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the bytes of a contiguous array, without a copy."""
    return array.reshape(-1).view(np.uint8)

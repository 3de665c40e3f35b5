"""Arrays of records, converted to a struct's own layout, field by field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from kerngen.runtime.errors import DtypeError
from kerngen.runtime.values.fields import Field, is_leaf

if TYPE_CHECKING:
    from kerngen.runtime.struct import Struct


def conform(records: NDArray[Any], element: type[Struct]) -> NDArray[np.void]:
    """Return records converted to a struct's `DTYPE`, contiguous.

    Records must have the struct's fields and types, at any offsets.
    """
    if records.dtype.names is None:
        raise DtypeError(
            f"Expected an array of {element.__name__}.DTYPE, got one of {records.dtype}."
        )
    if records.dtype == element.DTYPE:
        return np.ascontiguousarray(records).reshape(records.shape)
    made = np.zeros(records.shape, element.DTYPE)
    _fill(made, records, element, element.__name__)
    return made


def _fill(
    target: NDArray[Any], source: NDArray[Any], element: type[Struct], where: str
) -> None:
    """Copy the fields of records by name; `where` names the struct in errors."""
    given = source.dtype.names or ()
    wanted = [field.name for field in element.FIELDS]
    for name in given:
        if name not in wanted:
            raise DtypeError(f"The records have a field '{name}', which {where} lacks.")
    for field in element.FIELDS:
        if field.name not in given:
            raise DtypeError(f"The records lack the field '{field.name}' of {where}.")
        _fill_field(target[field.name], source[field.name], field, where)


def _fill_field(
    target: NDArray[Any], source: NDArray[Any], field: Field, where: str
) -> None:
    name = f"{where}.{field.name}"
    if is_leaf(field.type):
        target, source = numbers(target), numbers(source)
        same = source.dtype.newbyteorder("<") == target.dtype
    else:
        same = source.dtype.names is not None
    if not same or source.shape != target.shape:
        given = source.shape[target.ndim - len(field.shape) :]
        raise DtypeError(
            f"'{name}' of the records is {_described(source, given)}; expected "
            f"{_described(target, field.shape)}."
        )
    if is_leaf(field.type):
        target[...] = source
    else:
        _fill(target, source, cast("type[Struct]", field.type), name)


def numbers(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view of an array's numbers; of `spaced` records, their field `value`."""
    return array["value"] if array.dtype.names == ("value",) else array


def _described(array: NDArray[Any], shape: tuple[int, ...]) -> str:
    kind = "a record" if array.dtype.names else str(array.dtype)
    return f"{kind} of shape {shape}" if shape else kind

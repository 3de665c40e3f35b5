"""Arguments converted to float64: arrays, records and structs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from kerngen.runtime.calls.kernel import Kernel
from kerngen.runtime.reference import doubled, in_double
from kerngen.runtime.struct import Struct, UniformStruct
from kerngen.runtime.values.records import numbers
from kerngen.verify.meaning.values import Array
from kerngen.verify.trial import Given, refer


def reals(array: Array) -> Iterator[Array]:
    """Yield each array of floats in an array, with those of struct members."""
    for name in array.dtype.names or ():
        yield from reals(array[name])
    if array.dtype.kind == "f":
        yield array


def in_doubles(value: Any) -> Any:
    """Return an argument with its floats as float64; a struct becomes a record."""
    if isinstance(value, Struct):
        value = np.frombuffer(value.pack(), type(value).DTYPE)[0:1].reshape(())
    if not hasattr(value, "dtype"):
        return value
    array: Array = value
    return array.astype(doubled(array.dtype))


def with_reals(array: Array, values: Sequence[Array]) -> Array:
    """Return a copy of an array or of records with its floats replaced."""
    made = array.copy()
    for part, value in zip(reals(made), values, strict=True):
        part[...] = value
    return made


def results(kernel: Kernel, values: Mapping[str, Any]) -> dict[str, Array]:
    """Return the outputs of a kernel's reference by name, all in float64."""
    arrays = tuple(values[spec.name] for spec in kernel.inputs)
    scalars = tuple(
        (
            _struct(spec.element, values[spec.name])
            if issubclass(spec.element, Struct)
            else values[spec.name]
        )
        for spec in kernel.scalars
    )
    with in_double():
        found = refer(kernel, Given((), arrays, scalars))
    names = (spec.name for spec in kernel.outputs)
    return dict(zip(names, found, strict=True))


def _struct(type_: type[UniformStruct], record: Array) -> Any:
    """Return the struct that a record holds."""
    parts: dict[str, Any] = {}
    for field in type_.FIELDS:
        value = record[field.name]
        inner = field.type
        if issubclass(inner, Struct):
            parts[field.name] = _structs(inner, value)
        else:
            parts[field.name] = numbers(value).tolist()
    return type_(**parts)


def _structs(type_: type[Struct], records: Array) -> Any:
    if records.shape:
        return tuple(_structs(type_, each) for each in records)
    return _struct(type_, records)

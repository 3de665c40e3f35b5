"""The scalar arguments of a call: their types, their ranges, and the uniform struct."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from kerngen.runtime.elements import Element
from kerngen.runtime.errors import DtypeError, UniformRangeError

if TYPE_CHECKING:
    from kerngen.runtime.kernel import Kernel, ScalarSpec


def prepare(kernel: Kernel, scalars: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return checked scalars as Python numbers, and vectors as tuples of them."""
    if kernel.scalar_types == tuple(map(type, scalars)):
        # Packing checks the floats; guards and hosts need sound integers before that.
        for slot, lowest, highest in kernel.integer_ranges:
            if not lowest <= scalars[slot] <= highest:
                break
        else:
            return scalars
    return _normalise(kernel, scalars)


def _normalise(kernel: Kernel, scalars: Sequence[object]) -> tuple[Any, ...]:
    if len(scalars) != len(kernel.scalars):
        raise DtypeError(
            f"{kernel.name}: expected {len(kernel.scalars)} scalars, got "
            f"{len(scalars)}."
        )
    return tuple(
        (
            _scalar(kernel, spec, value)
            if spec.width == 1
            else _vector(kernel, spec, value)
        )
        for spec, value in zip(kernel.scalars, scalars, strict=True)
    )


def _vector(kernel: Kernel, spec: ScalarSpec, value: object) -> tuple[Any, ...]:
    parts = _parts(value)
    if parts is None or len(parts) != spec.width:
        raise DtypeError(
            f"{kernel.name}: scalar argument '{spec.name}' is {value!r}; expected "
            f"{spec.width} numbers ({spec.element.name})."
        )
    return tuple(_scalar(kernel, spec, part) for part in parts)


def _parts(value: object) -> tuple[object, ...] | None:
    if not isinstance(value, list | tuple | np.ndarray):
        return None
    return tuple(cast("Iterable[object]", value))


def _scalar(kernel: Kernel, spec: ScalarSpec, value: object) -> float | int:
    number = _number(value)
    allowed = int if spec.element.is_integer else (int, float)
    if isinstance(number, bool) or not isinstance(number, allowed):
        raise DtypeError(
            f"{kernel.name}: scalar argument '{spec.name}' is {value!r} "
            f"({type(value).__name__}); expected {_wanted(spec.element)}."
        )
    _check_range(kernel, spec, number)
    return number


def _number(value: object) -> object:
    """Return a NumPy scalar as Python's, and anything else as it is."""
    return cast("Any", value).item() if isinstance(value, np.generic) else value


def _check_range(kernel: Kernel, spec: ScalarSpec, value: float) -> None:
    """Refuse an integer that the element type cannot hold; packing checks floats."""
    element = spec.element
    if element.is_integer and not element.lowest <= value <= element.highest:
        raise UniformRangeError(
            f"{kernel.name}: scalar argument '{spec.name}' is {value}; {element.name} "
            f"holds {element.lowest} to {element.highest}."
        )


def _wanted(element: type[Element]) -> str:
    return f"an integer ({element.name})" if element.is_integer else "a number"


def pack(
    kernel: Kernel,
    dims: tuple[int, ...],
    scalars: tuple[Any, ...],
    data: bytearray,
    offset: int,
) -> None:
    """Compute the host values of a call and pack its uniform struct."""
    try:
        values = kernel.hosts(*dims, *scalars)
        kernel.uniform.pack_values_into(data, offset, values)
    except UniformRangeError as error:
        raise UniformRangeError(
            f"{kernel.name}: {error} Got {_given(kernel, scalars)}."
        ) from error
    except (ArithmeticError, ValueError, TypeError) as error:
        raise UniformRangeError(
            f"{kernel.name}: the host values can't be computed from "
            f"{_given(kernel, scalars)}: {error}."
        ) from error


def check_scalars(
    kernel: Kernel, dims: tuple[int, ...], scalars: tuple[Any, ...]
) -> None:
    """Raise what packing would raise."""
    pack(kernel, dims, scalars, bytearray(kernel.uniform.SIZE), 0)


def _given(kernel: Kernel, scalars: tuple[Any, ...]) -> str:
    pairs = zip(kernel.scalars, scalars, strict=True)
    return ", ".join(f"{spec.name}={value}" for spec, value in pairs) or "no scalars"

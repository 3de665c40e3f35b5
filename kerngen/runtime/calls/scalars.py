"""The scalar arguments of a call: numbers, vectors, matrices and structs.

Their types and ranges are checked here, and they are packed into the uniform struct.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from kerngen.runtime.errors import DtypeError, UniformRangeError
from kerngen.runtime.struct import fit_of
from kerngen.runtime.values.conversion import Misfit
from kerngen.runtime.values.elements import f32

if TYPE_CHECKING:
    from kerngen.runtime.calls.kernel import Kernel, ScalarSpec


def prepare(kernel: Kernel, scalars: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a call's scalars, checked, in their stored form: numbers, or tuples of them."""
    if kernel.scalar_types == tuple(map(type, scalars)):
        # The quick way, for Python's own numbers.  Packing checks floats; integers are
        # checked here, as guards and hosts compute with them before that.
        for slot, lowest, highest in kernel.integer_ranges:
            if not lowest <= scalars[slot] <= highest:
                break
        else:
            return scalars
    return _normalise(kernel, scalars)


def _normalise(kernel: Kernel, scalars: Sequence[object]) -> tuple[Any, ...]:
    """Return each scalar in its stored form; raise the error of the first misfit."""
    if len(scalars) != len(kernel.scalars):
        raise DtypeError(
            f"{kernel.place}: expected {len(kernel.scalars)} scalars, got "
            f"{len(scalars)}."
        )
    return tuple(
        _scalar(kernel, spec, value)
        for spec, value in zip(kernel.scalars, scalars, strict=True)
    )


def _scalar(kernel: Kernel, spec: ScalarSpec, value: object) -> object:
    try:
        return spec.fit(value)
    except Misfit as misfit:
        raise misfit.error(spec.name, f"{kernel.place}: scalar argument ") from None


def check_number(where: str, name: str, value: object) -> float:
    """Return `value` if it is a number that an f32 can have.

    The error names the place, `where`, and the value, `name`.

    Raises:
        DtypeError: If it is no number.
        UniformRangeError: If it is out of range.
    """
    try:
        return cast("float", fit_of(f32)(value))
    except Misfit as misfit:
        raise misfit.error(name, f"{where}: scalar argument ") from None


def pack(
    kernel: Kernel,
    dims: tuple[int, ...],
    scalars: tuple[Any, ...],
    data: bytearray,
    offset: int,
) -> None:
    """Compute the host values of a call, and pack its uniform struct in `data` at `offset`."""
    try:
        # Values are not checked first: `struct` fails for one that does not fit, and the
        # others cost nothing.
        values = kernel.hosts(*dims, *scalars)
        kernel.uniform.pack_values_into(data, offset, values)
    except UniformRangeError as error:
        # An argument that does not fit is reported by its name; what is left is a host.
        _normalise(kernel, scalars)
        raise UniformRangeError(
            f"{kernel.place}: {error} Got {_given(kernel, scalars)}."
        ) from error
    except (ArithmeticError, ValueError, TypeError) as error:
        raise UniformRangeError(
            f"{kernel.place}: the host values can't be computed from "
            f"{_given(kernel, scalars)}: {error}."
        ) from error


def check_scalars(
    kernel: Kernel, dims: tuple[int, ...], scalars: tuple[Any, ...]
) -> None:
    """Raise the errors that packing these scalars would raise; nothing is kept."""
    pack(kernel, dims, scalars, bytearray(kernel.uniform.SIZE), 0)


def _given(kernel: Kernel, scalars: tuple[Any, ...]) -> str:
    pairs = zip(kernel.scalars, scalars, strict=True)
    return ", ".join(f"{spec.name}={value}" for spec, value in pairs) or "no scalars"

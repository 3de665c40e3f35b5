"""What a shader binds, and what may be given for it; checked before the GPU is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from kerngen.runtime.errors import DtypeError, ShapeError
from kerngen.runtime.struct import fit_of
from kerngen.runtime.tensor import Tensor, is_tensor
from kerngen.runtime.values.codec import Codec
from kerngen.runtime.values.conversion import Misfit
from kerngen.runtime.values.elements import Element
from kerngen.runtime.values.fields import Field, is_leaf
from kerngen.runtime.values.kinds import kind_of
from kerngen.runtime.values.shapes import round_up

if TYPE_CHECKING:
    from kerngen.runtime.device.gpu import Descriptor

COMPUTE: Final = 4
"""The stage, as WebGPU numbers it."""


@final
@dataclass(frozen=True)
class Uniform:
    """A variable in the address space 'uniform': its value is packed at each dispatch."""

    name: str
    binding: int
    field: Field
    size: int
    visibility: int = COMPUTE

    @property
    def layout(self) -> Descriptor:
        """Its entry in the layout of a bind group."""
        buffer = {
            "type": "uniform",
            "has_dynamic_offset": True,
            "min_binding_size": self.size,
        }
        return {
            "binding": self.binding,
            "visibility": self.visibility,
            "buffer": buffer,
        }

    def checked(self, value: object, where: str) -> object:
        """Return a value as it is kept."""
        try:
            return fit_of(self.field.type, self.field.lengths)(value)
        except Misfit as misfit:
            raise misfit.error(where) from None

    def pack_into(self, data: bytearray, offset: int, value: Any) -> None:
        """Write a value that was checked, padding zeroed."""
        layout = _value_of(self)
        layout.pack_into(data, offset, value)


@final
class _Value:
    """The bytes of a uniform's value, which a struct of this one field has."""

    def __init__(self, of: Uniform) -> None:
        self._codec = Codec(of.name, (of.field,), of.size)
        self._of = of.field

    def pack_into(self, data: bytearray, offset: int, value: Any) -> None:
        flat = [value]
        for _ in self._of.shape:
            flat = [number for part in flat for number in part]
        if not is_leaf(self._of.type):
            flat = [self._of.type.bytes_of(part) for part in flat]  # type: ignore[attr-defined]  # a struct's
        self._codec.pack_into(data, offset, flat)


_VALUES: Final[dict[Uniform, _Value]] = {}


def _value_of(uniform: Uniform) -> _Value:
    found = _VALUES.get(uniform)
    if found is None:
        found = _VALUES[uniform] = _Value(uniform)
    return found


@final
@dataclass(frozen=True)
class Storage:
    """A variable in the address space 'storage': a tensor of `least` bytes or more."""

    name: str
    binding: int
    element: type[Element]
    least: int
    writes: bool = False
    visibility: int = COMPUTE

    @property
    def layout(self) -> Descriptor:
        """Its entry in the layout of a bind group."""
        kind = "storage" if self.writes else "read-only-storage"
        buffer = {"type": kind, "min_binding_size": self.least}
        return {
            "binding": self.binding,
            "visibility": self.visibility,
            "buffer": buffer,
        }

    def checked(self, value: object, where: str) -> object:
        """Return a tensor that can be bound."""
        expected = self.element.__name__
        if not is_tensor(value):
            raise DtypeError(
                f"'{where}' is {kind_of(value)}; expected a tensor of {expected}."
            )
        if not issubclass(value.element, self.element):
            raise DtypeError(
                f"'{where}' has elements of {value.element.__name__}; the shader has "
                f"{expected} there."
            )
        if bound_bytes(value) < self.least:
            raise ShapeError(
                f"'{where}' has {value.nbytes} bytes; the shader reads {self.least} or "
                f"more."
            )
        if value.offset % value.ctx.alignment:
            raise ShapeError(
                f"'{where}' begins at byte {value.offset} of its buffer; the adapter "
                f"binds at multiples of {value.ctx.alignment}, so copy it first."
            )
        return value


Binding: TypeAlias = Uniform | Storage


def bound_bytes(tensor: Tensor[Any, Any]) -> int:
    """Return how many bytes of a tensor are bound: `arrayLength()` counts what fits."""
    return round_up(tensor.nbytes, 4)

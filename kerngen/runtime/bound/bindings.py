"""The kinds of bindings of a shader, and checks of the values that users give for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

from kerngen.runtime.device.gpu import UNIFORM, Descriptor, GPUBuffer
from kerngen.runtime.errors import DtypeError, ShapeError, ValidationError
from kerngen.runtime.struct import fit_of
from kerngen.runtime.tensor import Tensor, is_tensor
from kerngen.runtime.values.codec import Codec
from kerngen.runtime.values.conversion import Misfit
from kerngen.runtime.values.elements import Element
from kerngen.runtime.values.fields import Field, is_leaf
from kerngen.runtime.values.kinds import kind_of
from kerngen.runtime.values.shapes import round_up

# The flags of WebGPU's `GPUShaderStage`.
VERTEX: Final = 1
FRAGMENT: Final = 2
COMPUTE: Final = 4

# Flags of `GPUTextureUsage`.
_TEXTURE_BINDING: Final = 4
_STORAGE_BINDING: Final = 8

GPUTextureView: TypeAlias = Any
"""A caller's `wgpu.GPUTextureView`."""

GPUSampler: TypeAlias = Any
"""A caller's `wgpu.GPUSampler`."""


@final
@dataclass(frozen=True)
class BufferBinding:
    """A range of the caller's own `wgpu.GPUBuffer`, which must have the usage UNIFORM.

    The range has `size` bytes from byte `offset` on; None: up to the end of the buffer.
    """

    buffer: GPUBuffer
    offset: int = 0
    size: int | None = None

    @property
    def nbytes(self) -> int:
        """The number of bytes that are bound."""
        whole: int = self.buffer.size
        return whole - self.offset if self.size is None else self.size

    def check(self, where: str, least: int) -> None:
        """Raise unless the shader can read `least` bytes; errors name the range `where`."""
        if not (hasattr(self.buffer, "usage") and hasattr(self.buffer, "map_state")):
            raise DtypeError(
                f"'{where}' is bound to {kind_of(self.buffer)}; expected a "
                f"wgpu.GPUBuffer."
            )
        if not self.buffer.usage & UNIFORM:
            raise ValidationError(f"'{where}': the buffer lacks the usage UNIFORM.")
        if self.offset < 0 or self.offset + self.nbytes > self.buffer.size:
            raise ShapeError(
                f"'{where}': {self.nbytes} bytes from {self.offset} on are not within "
                f"the {self.buffer.size} bytes of the buffer."
            )
        if self.nbytes < least:
            raise ShapeError(
                f"'{where}' has {self.nbytes} bytes; the shader reads {least} or more."
            )


@final
@dataclass(frozen=True)
class Uniform:
    """A shader's variable in the address space 'uniform'.

    Its value is packed at each dispatch, unless it is in a buffer of the caller's.
    """

    name: str
    binding: int
    field: Field
    size: int
    visibility: int = COMPUTE

    def layout(self) -> Descriptor:
        """Return the binding's entry for wgpu's `create_bind_group_layout`."""
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
        """Return a value in its stored form, or a `BufferBinding` as it is, or raise.

        Errors name the value `where`.
        """
        if isinstance(value, BufferBinding):
            value.check(where, self.size)
            return value
        try:
            return fit_of(self.field.type, self.field.lengths)(value)
        except Misfit as misfit:
            raise misfit.error(where) from None

    def pack_into(self, data: bytearray, offset: int, value: Any) -> None:
        """Store a checked value in `data` from byte `offset` on, with zeros as padding."""
        layout = _value_of(self)
        layout.pack_into(data, offset, value)


@final
class _Value:
    """Packs a uniform's value, as a struct with this one field."""

    def __init__(self, of: Uniform) -> None:
        self._codec = Codec(of.name, (of.field,), of.size)
        self._of = of.field

    def pack_into(self, data: bytearray, offset: int, value: Any) -> None:
        # A codec takes numbers one by one, and structs as their bytes.
        flat: list[Any] = [value]
        for _ in self._of.shape:
            flat = [number for part in flat for number in part]
        if not is_leaf(self._of.type):
            flat = [self._of.type.bytes_of(part) for part in flat]  # type: ignore[attr-defined]  # a struct's
        self._codec.pack_into(data, offset, flat)


_VALUES: Final[dict[Uniform, _Value]] = {}
"""The packers of uniforms, each made at its first use."""


def _value_of(uniform: Uniform) -> _Value:
    found = _VALUES.get(uniform)
    if found is None:
        found = _VALUES[uniform] = _Value(uniform)
    return found


@final
@dataclass(frozen=True)
class Storage:
    """A shader's variable in the address space 'storage': a tensor of `least` bytes or more."""

    name: str
    binding: int
    element: type[Element]
    least: int
    writes: bool = False
    visibility: int = COMPUTE

    def layout(self) -> Descriptor:
        """Return the binding's entry for wgpu's `create_bind_group_layout`."""
        kind = "storage" if self.writes else "read-only-storage"
        buffer = {"type": kind, "min_binding_size": self.least}
        return {
            "binding": self.binding,
            "visibility": self.visibility,
            "buffer": buffer,
        }

    def checked(self, value: object, where: str) -> object:
        """Return `value` if it is a tensor that can be bound; errors name it `where`."""
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


@final
@dataclass(frozen=True)
class Texture:
    """A texture that the shader samples or loads from."""

    name: str
    binding: int
    sample: str
    dimension: str
    multisampled: bool = False
    visibility: int = COMPUTE

    def layout(self) -> Descriptor:
        """Return the binding's entry for wgpu's `create_bind_group_layout`."""
        texture = {
            "sample_type": self.sample,
            "view_dimension": self.dimension,
            "multisampled": self.multisampled,
        }
        return {
            "binding": self.binding,
            "visibility": self.visibility,
            "texture": texture,
        }

    def checked(self, value: object, where: str) -> object:
        """Return `value` if it is a texture view that can be bound; errors name it `where`."""
        return _view(value, where, _TEXTURE_BINDING, "TEXTURE_BINDING")


@final
@dataclass(frozen=True)
class StorageTexture:
    """A texture that the shader loads from or stores to."""

    name: str
    binding: int
    format: str
    access: str
    dimension: str
    visibility: int = COMPUTE

    def layout(self) -> Descriptor:
        """Return the binding's entry for wgpu's `create_bind_group_layout`."""
        texture = {
            "access": self.access,
            "format": self.format,
            "view_dimension": self.dimension,
        }
        return {
            "binding": self.binding,
            "visibility": self.visibility,
            "storage_texture": texture,
        }

    def checked(self, value: object, where: str) -> object:
        """Return `value` if it is a texture view that can be bound; errors name it `where`."""
        view = _view(value, where, _STORAGE_BINDING, "STORAGE_BINDING")
        found: str = view.texture.format
        if found != self.format:
            raise DtypeError(
                f"'{where}' has the format {found}; the shader has {self.format} there."
            )
        return view


@final
@dataclass(frozen=True)
class Sampler:
    """A sampler of a shader; its kind is 'filtering', 'non-filtering' or 'comparison'."""

    name: str
    binding: int
    kind: str = "filtering"
    visibility: int = COMPUTE

    def layout(self) -> Descriptor:
        """Return the binding's entry for wgpu's `create_bind_group_layout`."""
        return {
            "binding": self.binding,
            "visibility": self.visibility,
            "sampler": {"type": self.kind},
        }

    def checked(self, value: object, where: str) -> object:
        """Return `value` if it is a sampler that can be bound; errors name it `where`."""
        if type(value).__name__ != "GPUSampler":
            raise DtypeError(
                f"'{where}' is {kind_of(value)}; expected a wgpu.GPUSampler."
            )
        return value


def _view(value: object, where: str, usage: int, word: str) -> Any:
    if type(value).__name__ != "GPUTextureView":
        raise DtypeError(
            f"'{where}' is {kind_of(value)}; expected a wgpu.GPUTextureView."
        )
    view: Any = value
    if not view.texture.usage & usage:
        raise ValidationError(f"'{where}': the texture lacks the usage {word}.")
    return view


Binding: TypeAlias = Uniform | Storage | Texture | StorageTexture | Sampler


def bound_bytes(tensor: Tensor[Any, Any]) -> int:
    """Return how many bytes of a tensor's buffer a bound shader sees: whole words of 4 bytes.

    WGSL's `arrayLength()` follows from this size.  Kernels, which are passed the lengths, bind
    storage padded to 16 bytes instead.
    """
    return round_up(tensor.nbytes, 4)

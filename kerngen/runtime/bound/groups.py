"""The base class of generated bind groups.

A generated class is a frozen dataclass with a field for each variable of the group, as
`Group0(params=params, forces=forces)`.  `BINDINGS` has the kind of each: a `Uniform`, which
is packed at each dispatch, a `Storage`, which is a tensor, a texture or a sampler.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, cast

from kerngen.runtime.bound.bindings import (
    Binding,
    BufferBinding,
    Uniform,
    bound_bytes,
)
from kerngen.runtime.context import Context
from kerngen.runtime.device.gpu import COPY_DST, UNIFORM, Descriptor, GPUDevice
from kerngen.runtime.errors import ContextError
from kerngen.runtime.tensor import is_tensor


class BindGroup:
    """The base of generated bind groups: each field is a variable of the shader.

    Values are checked when the group is made.
    """

    __slots__ = ()

    GROUP: ClassVar[int] = 0
    BINDINGS: ClassVar[tuple[Binding, ...]] = ()

    def __post_init__(self) -> None:
        """Check the value of each binding."""
        for binding in self.BINDINGS:
            value = getattr(self, binding.name)
            where = f"{type(self).__name__}.{binding.name}"
            kept = binding.checked(value, where)
            # The class is frozen: its own `__setattr__` raises.
            if kept is not value:
                object.__setattr__(self, binding.name, kept)
        self.context()  # raises if tensors are of several contexts

    def items(self) -> Iterator[tuple[Binding, Any]]:
        """Yield each binding with its value."""
        for binding in self.BINDINGS:
            yield binding, getattr(self, binding.name)

    # ---- for those who call wgpu themselves

    @classmethod
    def create_layout(cls, device: GPUDevice) -> Any:
        """Return a new `wgpu.GPUBindGroupLayout` of the group's bindings."""
        entries = [without_offset(each.layout()) for each in cls.BINDINGS]
        return device.create_bind_group_layout(label=cls.__name__, entries=entries)

    def create(self, device: GPUDevice) -> Any:
        """Return a new `wgpu.GPUBindGroup`; uniforms that are given as values get new buffers.

        Recorded work on the group's tensors is submitted.
        """
        entries = [
            {"binding": binding.binding, "resource": resource(device, binding, value)}
            for binding, value in self.items()
        ]
        layout = self.create_layout(device)
        return device.create_bind_group(
            label=type(self).__name__, layout=layout, entries=entries
        )

    def context(self) -> Context | None:
        """Return the context of the group's tensors; None if it has no tensor."""
        found: Context | None = None
        for binding, value in self.items():
            if not is_tensor(value):
                continue
            if found is not None and value.ctx is not found:
                raise ContextError(
                    f"'{type(self).__name__}.{binding.name}' is a tensor of another "
                    f"context than those before it."
                )
            found = value.ctx
        return found


def without_offset(entry: Descriptor) -> Descriptor:
    """Return a layout entry without its dynamic offset, which only our own dispatches set."""
    buffer = entry.get("buffer")
    if not isinstance(buffer, dict):
        return entry
    words = cast("Descriptor", buffer)
    fixed = {key: words[key] for key in words if key != "has_dynamic_offset"}
    return {**entry, "buffer": fixed}


def resource(device: GPUDevice, binding: Binding, value: Any) -> Any:
    """Return a binding's value in the form that wgpu's `create_bind_group` takes."""
    if isinstance(value, BufferBinding):
        return {"buffer": value.buffer, "offset": value.offset, "size": value.nbytes}
    if is_tensor(value):
        size = bound_bytes(value)
        return {"buffer": value.buffer, "offset": value.offset, "size": size}
    if isinstance(binding, Uniform):
        data = bytearray(binding.size)
        binding.pack_into(data, 0, value)
        usage = UNIFORM | COPY_DST
        buffer = device.create_buffer_with_data(data=bytes(data), usage=usage)
        return {"buffer": buffer, "offset": 0, "size": binding.size}
    return value

"""The vertex and fragment stages of render pipelines: descriptors that wgpu takes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, final

import numpy as np

from kerngen.runtime.bound.groups import BindGroup
from kerngen.runtime.bound.overrides import Programmable
from kerngen.runtime.device.gpu import Descriptor, GPUDevice
from kerngen.runtime.errors import ArgumentError

_FORMAT: Final = re.compile(r"(float|sint|uint|snorm|unorm)(8|16|32)(?:x([234]))?")
"""A vertex format of WebGPU: its class, the bits of a component, the number of them."""
_CLASSES: Final = {"snorm": "float", "unorm": "float"}
"""The class in a shader of formats whose integers are numbers from -1 or 0 to 1."""


@final
@dataclass(frozen=True, slots=True)
class Attribute:
    """An input of a vertex shader: its name, location and vertex format."""

    name: str
    location: int
    format: str


@final
@dataclass(frozen=True, slots=True)
class VertexBuffer:
    """The layout of a vertex buffer: a NumPy dtype, and the descriptor for a pipeline."""

    dtype: np.dtype[np.void]
    layout: Descriptor


class VertexShader(Programmable):
    """The base of generated vertex shaders."""

    __slots__ = ()

    GROUPS: ClassVar[tuple[type[BindGroup], ...]] = ()
    INPUTS: ClassVar[tuple[Attribute, ...]] = ()

    @classmethod
    def buffer(
        cls,
        *names: str,
        step_mode: str = "vertex",
        formats: Mapping[str, str] | None = None,
    ) -> VertexBuffer:
        """Return the layout of a buffer whose vertices have these inputs, or all, side by side.

        `formats` replaces formats by others of the same class: 'unorm8x4' for a vec4f.
        """
        inputs = cls._inputs(names, formats or {})
        used = [_chosen(cls.__name__, each, formats or {}) for each in inputs]
        dtypes = [_dtype(format_) for format_ in used]
        offsets = [0]
        for one in dtypes:
            # Attributes begin at multiples of 4 bytes, and so does each vertex.
            offsets.append(-(-(offsets[-1] + one.itemsize) // 4) * 4)
        dtype = np.dtype(
            {
                "names": [each.name for each in inputs],
                "formats": dtypes,
                "offsets": offsets[:-1],
                "itemsize": offsets[-1],
            }
        )
        attributes = [
            {"shader_location": each.location, "format": format_, "offset": offset}
            for each, format_, offset in zip(inputs, used, offsets, strict=False)
        ]
        layout = {
            "array_stride": offsets[-1],
            "step_mode": step_mode,
            "attributes": attributes,
        }
        return VertexBuffer(dtype, layout)

    @classmethod
    def _inputs(
        cls, names: tuple[str, ...], formats: Mapping[str, str]
    ) -> list[Attribute]:
        """Return the inputs with these names, or all; raise if there is none of a name."""
        known = {each.name: each for each in cls.INPUTS}
        chosen = names or tuple(known)
        for name in (*chosen, *formats):
            if name not in known:
                listed = ", ".join(f"'{each}'" for each in known)
                raise ArgumentError(
                    f"{cls.__name__}.buffer: there is no input '{name}'; there are "
                    f"{listed or 'none'}."
                )
        return [known[name] for name in chosen]

    def state(self, device: GPUDevice, *buffers: VertexBuffer) -> dict[str, Any]:
        """Return the `vertex` argument of `create_render_pipeline`.

        Raises ArgumentError unless each input of the shader is in exactly one of the buffers.
        """
        attributes = [
            attribute
            for buffer in buffers
            for attribute in _attributes_of(buffer.layout)
        ]
        found = sorted(attribute["shader_location"] for attribute in attributes)
        wanted = sorted(each.location for each in self.INPUTS)
        if found != wanted:
            raise ArgumentError(
                f"{type(self).__name__}.state: the buffers have the locations {found}; "
                f"the shader has {wanted}."
            )
        return {
            **self.programmed(device),
            "buffers": [buffer.layout for buffer in buffers],
        }


class FragmentShader(Programmable):
    """The base of generated fragment shaders; `OUTPUTS` are the locations of their outputs."""

    __slots__ = ()

    GROUPS: ClassVar[tuple[type[BindGroup], ...]] = ()
    OUTPUTS: ClassVar[tuple[int, ...]] = ()

    def state(self, device: GPUDevice, *targets: Descriptor | None) -> dict[str, Any]:
        """Return the `fragment` argument of `create_render_pipeline`.

        A target is None where nothing is drawn.  Raises ArgumentError if the shader has no
        output at the location of another target.
        """
        for number, target in enumerate(targets):
            if target is not None and number not in self.OUTPUTS:
                raise ArgumentError(
                    f"{type(self).__name__}.state: target {number} has no output; the "
                    f"shader has the locations {[*self.OUTPUTS]}."
                )
        return {**self.programmed(device), "targets": [*targets]}


def pipeline_layout(device: GPUDevice, *groups: type[BindGroup]) -> Any:
    """Return the layout of a pipeline that has these bind groups."""
    numbered = {group.GROUP: group for group in groups}
    layouts = [
        numbered.get(index, BindGroup).create_layout(device)
        for index in range(max(numbered, default=-1) + 1)
    ]
    return device.create_pipeline_layout(bind_group_layouts=layouts)


def _attributes_of(layout: Descriptor) -> Sequence[Mapping[str, Any]]:
    attributes: Any = layout["attributes"]
    return attributes  # type: ignore[no-any-return]  # `buffer` made it


def _chosen(owner: str, input_: Attribute, formats: Mapping[str, str]) -> str:
    """Return the format of an input, which has its class of numbers."""
    format_ = formats.get(input_.name, input_.format)
    found, wanted = _FORMAT.fullmatch(format_), _FORMAT.fullmatch(input_.format)
    assert wanted is not None, "generated modules have formats of WebGPU"
    if found is None or _CLASSES.get(found[1], found[1]) != wanted[1]:
        raise ArgumentError(
            f"{owner}.buffer: '{input_.name}' can't be '{format_}'; the shader reads "
            f"{wanted[1]} there, as of '{input_.format}'."
        )
    return format_


def _dtype(format_: str) -> np.dtype[Any]:
    """Return the dtype of a format: 'float32x3' is three float32."""
    found = _FORMAT.fullmatch(format_)
    assert found is not None, "it was checked"
    kind, bits, width = found[1], int(found[2]), int(found[3] or 1)
    letter = "f" if kind == "float" else "u" if kind in {"uint", "unorm"} else "i"
    one = np.dtype(f"<{letter}{bits // 8}")
    return one if width == 1 else np.dtype((one, (width,)))

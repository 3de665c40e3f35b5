"""Where probes run: on the GPU, which also says how small a buffer naga takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from kerngen.layout.types import StructLayout

from .probe import Bytes, Probe, has_halves, least_binding, writing_shader
from .scalars import places

wgpu: Any = import_module("wgpu")


class LayoutMismatchError(AssertionError):
    """A judge reads a struct otherwise than we lay it out."""


class Bench:
    """Runs probes on a device of wgpu."""

    def __init__(self, device: Any) -> None:
        """Take the device."""
        self._device = device

    @property
    def has_halves(self) -> bool:
        """Whether the adapter has f16."""
        return "shader-f16" in self._device.features

    def check(self, probe: Probe, data: Sequence[Bytes]) -> None:
        """Raise `LayoutMismatchError` where the GPU or naga disagrees with our layout."""
        module = self._module(probe.shader)
        inputs = [*map(self._buffer, data)]
        zeros = np.zeros(4 * len(probe.places), np.uint8)
        outputs = [self._buffer(zeros) for _ in probe.outputs]
        encoder = self._device.create_command_encoder()
        each = encoder.begin_compute_pass()
        for number, buffer in enumerate(inputs):
            stage = {"module": module, "entry_point": f"main{number}"}
            pipeline = self._device.create_compute_pipeline(
                layout="auto", compute=stage
            )
            others = dict(enumerate(outputs, len(inputs)))
            bound = _Bound(self._device, pipeline, number, buffer, others)
            _check_least(bound, probe)
            each.set_pipeline(pipeline)
            each.set_bind_group(0, bound.group(buffer.size))
            each.dispatch_workgroups(1)
        each.end()
        self._device.queue.submit([encoder.finish()])
        words = self._read(outputs[0], np.uint32)
        halves = self._read(outputs[-1], np.uint16)
        _compare(probe, probe.expected(data), words, halves)

    def check_writes(self, laid: StructLayout, data: Bytes, bits: Bytes) -> None:
        """Raise `LayoutMismatchError` where writes go elsewhere than our layout says.

        A shader writes `bits` to every scalar of the second element in `data`; all other
        bytes, padding too, must stay.
        """
        read = [*places(laid, laid.size, "b[one]", "{}")]
        shader = writing_shader(laid, read)
        stage = {"module": self._module(shader), "entry_point": "main"}
        pipeline = self._device.create_compute_pipeline(layout="auto", compute=stage)
        buffer, source = self._buffer(data), self._buffer(bits)
        others = {1: source, 2: source} if has_halves(read) else {1: source}
        encoder = self._device.create_command_encoder()
        each = encoder.begin_compute_pass()
        each.set_pipeline(pipeline)
        bound = _Bound(self._device, pipeline, 0, buffer, others)
        each.set_bind_group(0, bound.group(buffer.size))
        each.dispatch_workgroups(1)
        each.end()
        self._device.queue.submit([encoder.finish()])
        expected = data.copy()
        for number, place in enumerate(read):
            size = place.storage.size
            expected[place.offset : place.end] = bits[number * size :][:size]
        if self._read(buffer, np.uint8) != expected.tolist():
            raise LayoutMismatchError(f"Writes go elsewhere:\n{shader}")

    def _module(self, shader: str) -> Any:
        try:
            return self._device.create_shader_module(code=shader)
        except wgpu.GPUValidationError as error:
            raise LayoutMismatchError(f"naga: {error}\n{shader}") from None

    def _buffer(self, data: Bytes) -> Any:
        usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
        usage |= wgpu.BufferUsage.UNIFORM
        return self._device.create_buffer_with_data(data=data, usage=usage)

    def _read(self, buffer: Any, type_: npt.DTypeLike) -> list[int]:
        read = self._device.queue.read_buffer(buffer)
        values: list[int] = np.frombuffer(read, type_).tolist()
        return values


@dataclass(frozen=True)
class _Bound:
    """One binding of a probe, of which a part may be bound."""

    device: Any
    pipeline: Any
    number: int
    buffer: Any
    outputs: dict[int, Any]

    def group(self, size: int) -> Any:
        """Return the bind group with so many bytes of the input."""
        parts = {number: (out, out.size) for number, out in self.outputs.items()}
        parts[self.number] = self.buffer, size
        entries = [
            {"binding": number, "resource": {"buffer": buffer, "size": part}}
            for number, (buffer, part) in parts.items()
        ]
        layout = self.pipeline.get_bind_group_layout(0)
        return self.device.create_bind_group(layout=layout, entries=entries)

    def accepts(self, size: int) -> bool:
        """Whether naga takes so few bytes."""
        try:
            self.group(size)
        except wgpu.GPUValidationError:
            return False
        return True


def _check_least(bound: _Bound, probe: Probe) -> None:
    """Hold that naga takes a buffer of our size, and none that is smaller."""
    least = least_binding(probe.layouts[bound.number])
    for size, wanted in ((least, True), (least - 4, False)):
        if size > 0 and bound.accepts(size) is not wanted:
            text = f"b{bound.number} is taken in {size} bytes: {not wanted}"
            raise LayoutMismatchError(f"{text}\n{probe.shader}")


def _compare(
    probe: Probe, expected: list[int], words: list[int], halves: list[int]
) -> None:
    for number, (place, want) in enumerate(zip(probe.places, expected, strict=True)):
        found = (halves if place.is_half else words)[number]
        if found != want:
            where = f"{place.expression} at {place.offset}"
            text = f"{where}: {found:#x}, not {want:#x}"
            raise LayoutMismatchError(f"{text}\n{probe.shader}")

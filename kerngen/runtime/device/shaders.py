"""Caches of pipelines, found by their code, and of bind groups, found by their buffers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeAlias, final

from kerngen.runtime.caches import Cache
from kerngen.runtime.counters import Counters
from kerngen.runtime.device import gpu
from kerngen.runtime.device.native import MakeModule, bind_groups_of
from kerngen.runtime.errors import ValidationError

if TYPE_CHECKING:
    from kerngen.runtime.calls.call_plan import BoundCall

Bound: TypeAlias = tuple[int, int, int]
"""A bound range of a buffer: the block's number, the offset in it, and the bytes."""

GroupKey: TypeAlias = tuple[int, int, tuple[Bound, ...]]
"""The key of a bind group: the numbers of shader and uniform chunk, then the tensors.

(7, 12, ((30, 0, 4096), (31, 0, 4096))) binds, for shader 7, uniforms in block 12 and two
tensors of 4,096 bytes.  The chunk is -1 without uniforms.
"""

SUBGROUPS: Final = "enable subgroups;"
"""The directive that WGSL requires of a shader that uses subgroups."""

_PIPELINES = 4096
_GROUPS = 16384
"""The most compiled shaders and bind groups that a context keeps."""

_CALLS = _GROUPS
"""The most bound calls that a context keeps: as many as groups, as each has one at least.

A cycle of more calls than are kept takes twice as long.
"""

_COMMENTS: Final = re.compile(r"(?: *//[^\n]*|\n)+")
"""Comments and ends of lines.

WGSL has no string literals, so that `//` always begins a comment.
"""


@final
@dataclass(frozen=True, slots=True)
class ShaderKey:
    """The key of a pipeline in its cache: entry point, code, bindings and constants.

    `code` is without comments and empty lines, so that kernels share a pipeline whose
    shaders differ in their headers alone.  `uniform_bytes` is the size of the uniform
    struct, 0 if the entry point reads none; `writes` has an item for each tensor that it
    binds; `constants` are the values of overrides.
    """

    code: str
    entry: str
    uniform_bytes: int
    writes: tuple[bool, ...]
    constants: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(
        cls,
        text: str,
        entry: str,
        uniform_bytes: int,
        writes: tuple[bool, ...],
        constants: tuple[tuple[str, int], ...] = (),
    ) -> ShaderKey:
        """Return the key of a shader with this `text`, in which comments do not count."""
        code = _COMMENTS.sub("\n", text).strip()
        return cls(code, entry, uniform_bytes, writes, constants)


@final
@dataclass(frozen=True, slots=True, eq=False)
class CompiledShader:
    """A compiled pipeline, its number on the device (`uid`), and its bind group's layout."""

    uid: int
    label: str
    pipeline: gpu.Pipeline
    layout: gpu.BindGroupLayout
    uniform_bytes: int


@final
class ShaderCache:
    """The cache of pipelines: equal code with equal bindings is compiled once.

    Contexts on one device share the pipelines that are compiled with the same checks; each
    context counts its own hits and misses.
    """

    def __init__(
        self,
        device: gpu.Device,
        counters: Counters,
        make_module: MakeModule | None = None,
    ) -> None:
        """Share the pipelines that are compiled on the device already."""
        self._compiler = _compiler_of(device, make_module)
        self.cache: Cache[ShaderKey, CompiledShader] = Cache(
            "pipelines", _PIPELINES, self._compiler.shaders
        )
        self._counters = counters

    def compile(self, key: ShaderKey, text: str, label: str) -> CompiledShader:
        """Return the pipeline of a shader; it is compiled unless it is in the cache.

        `label` names the shader in errors.
        """
        with self._compiler.lock:
            known = self.cache.get(key)
            if known is not None:
                return known
            try:
                shader = self._compiler.compile(key, text, label)
            except Exception as error:
                raise gpu.translate(
                    error, f"to compile the shader of {label}"
                ) from error
            self._counters.pipelines_created += 1
            self.cache.put(key, shader)
            return shader

    def checked_module(self, text: str, label: str) -> gpu.ShaderModule:
        """Return a shader module of WGSL that kerngen did not emit, with all runtime checks."""
        with self._compiler.lock:
            return self._compiler.checked_module(text, label)

    def forget(self, shaders: frozenset[CompiledShader]) -> None:
        """Drop compiled shaders from the cache."""
        with self._compiler.lock:
            for key, shader in self.cache.entries():
                if shader in shaders:
                    self.cache.discard(key)


@final
class _Compiler:
    """The compiled shaders of a device; `shaders` and `compile` need the lock."""

    def __init__(self, device: gpu.Device, make_module: MakeModule) -> None:
        """Start with nothing compiled."""
        self.lock = Lock()
        self.shaders: dict[ShaderKey, CompiledShader] = {}
        self._device = device
        self._make_module = make_module
        self._numbers = count()
        self._enables_subgroups: bool | None = None
        self._layouts: dict[
            tuple[int, tuple[bool, ...]], tuple[gpu.BindGroupLayout, gpu.PipelineLayout]
        ] = {}
        """Layouts of bind groups and pipelines, by uniform bytes and written bindings."""

    def compile(self, key: ShaderKey, text: str, label: str) -> CompiledShader:
        """Return a new pipeline, with a number that no other one of the device has."""
        group_layout, pipeline_layout = self._layout(key.uniform_bytes, key.writes)
        module = self._make_module(label=label, code=self._accepted(text))
        pipeline = self._device.create_compute_pipeline(
            label=label,
            layout=pipeline_layout,
            compute={
                "module": module,
                "entry_point": key.entry,
                "constants": dict(key.constants),
            },
        )
        return CompiledShader(
            next(self._numbers), label, pipeline, group_layout, key.uniform_bytes
        )

    def checked_module(self, text: str, label: str) -> gpu.ShaderModule:
        """Return a new module with checks, also where kernels have none."""
        code = self._accepted(text)
        return self._device.create_shader_module(label=label, code=code)

    def _accepted(self, text: str) -> str:
        """Return a shader's text without the line that this naga refuses.

        naga 29 compiles subgroups, but not the line that enables them (gfx-rs/wgpu 5555).
        An empty line replaces it, so that naga's messages name lines of the file.
        """
        if f"\n{SUBGROUPS}\n" not in text:
            return text
        if self._enables_subgroups is None:
            self._enables_subgroups = self._accepts(SUBGROUPS)
        if self._enables_subgroups:
            return text
        return text.replace(f"\n{SUBGROUPS}\n", "\n\n", 1)

    def _accepts(self, text: str) -> bool:
        """Whether a text compiles; raise any error that is not about the text."""
        try:
            self._make_module(label="probe", code=text)
        except Exception as error:
            refusal = gpu.translate(error, "to compile a probe")
            if isinstance(refusal, ValidationError):
                return False
            raise refusal from error
        return True

    def _layout(
        self, uniform_bytes: int, writes: tuple[bool, ...]
    ) -> tuple[gpu.BindGroupLayout, gpu.PipelineLayout]:
        """Return the layouts for a shader's bindings: uniforms at 0, tensors from 1 on.

        Shaders with equal bindings share them.
        """
        known = self._layouts.get((uniform_bytes, writes))
        if known is not None:
            return known
        entries = [_storage_entry(i, writes=w) for i, w in enumerate(writes, start=1)]
        if uniform_bytes:
            entries.insert(0, _uniform_entry(uniform_bytes))
        group_layout = self._device.create_bind_group_layout(entries=entries)
        pipeline_layout = self._device.create_pipeline_layout(
            bind_group_layouts=[group_layout]
        )
        self._layouts[uniform_bytes, writes] = group_layout, pipeline_layout
        return group_layout, pipeline_layout


def _compiler_of(device: gpu.Device, unchecked: MakeModule | None) -> _Compiler:
    """Return a device's compiler: one with wgpu's checks, or one without if `unchecked`.

    Both are attributes of the device.  A dictionary with devices as weak keys would keep
    every device alive for ever, as its values, the pipelines, refer to their device.
    """
    name = "_kerngen_unchecked" if unchecked else "_kerngen"
    fresh = _Compiler(device, unchecked or device.create_shader_module)
    compiler: _Compiler = vars(device).setdefault(name, fresh)
    return compiler


def _uniform_entry(uniform_bytes: int) -> gpu.Descriptor:
    buffer = {
        "type": "uniform",
        "has_dynamic_offset": True,
        "min_binding_size": uniform_bytes,
    }
    return {"binding": 0, "visibility": "COMPUTE", "buffer": buffer}


def _storage_entry(binding: int, *, writes: bool) -> gpu.Descriptor:
    kind = "storage" if writes else "read-only-storage"
    return {"binding": binding, "visibility": "COMPUTE", "buffer": {"type": kind}}


@final
class BindGroups:
    """The cache of bind groups; a group is dropped when one of its buffers is freed."""

    def __init__(self, device: gpu.Device, counters: Counters) -> None:
        """Start empty."""
        self.cache: Cache[GroupKey, gpu.BindGroup] = Cache("bind groups", _GROUPS)
        self._device = device
        self._make = bind_groups_of(device)
        self._counters = counters
        self.changes = 0
        """How often groups were dropped: a group that was found before may be gone."""
        self.calls: dict[tuple[object, ...], BoundCall] = {}
        """The bound calls, by kernel and arguments: each has its bind groups."""
        self._users: dict[int, set[GroupKey]] = {}
        """The groups that bind a block, by the block's number."""
        self._probes: dict[bool, gpu.BindGroupLayout] = {}

    def create(
        self,
        key: GroupKey,
        shader: CompiledShader,
        uniforms: gpu.Buffer | None,
        buffers: Sequence[gpu.Buffer],
    ) -> gpu.BindGroup:
        """Create the bind group of a kernel's dispatch, and cache it under `key`."""
        bound = key[2]
        entries = [
            _bind(i, buffer, offset, size)
            for i, (buffer, (_, offset, size)) in enumerate(
                zip(buffers, bound, strict=True), start=1
            )
        ]
        if uniforms is not None and shader.uniform_bytes:
            entries.insert(0, _bind(0, uniforms, 0, shader.uniform_bytes))
        return self.make(key, shader.label, shader.layout, entries)

    def make(
        self,
        key: GroupKey,
        label: str,
        layout: gpu.BindGroupLayout,
        entries: Sequence[gpu.Descriptor],
    ) -> gpu.BindGroup:
        """Create a bind group with this layout and entries, and cache it under `key`."""
        try:
            group = self._make(label=label, layout=layout, entries=entries)
        except Exception as error:
            raise gpu.translate(error, f"to bind the arguments of {label}") from error
        self._counters.bind_groups_created += 1
        evicted = self.cache.put(key, group)
        if evicted is not None:
            self._unlink(evicted)
        for uid, _, _ in key[2]:
            self._users.setdefault(uid, set()).add(key)
        return group

    def probe(self, buffer: gpu.Buffer) -> None:
        """Raise wgpu's error if a buffer is destroyed: to submit its use would end the process.

        A bind group of the buffer is created, which wgpu refuses for a destroyed one.
        """
        is_storage = bool(buffer.usage & gpu.STORAGE)
        layout = self._probes.get(is_storage)
        if layout is None:
            kind = "read-only-storage" if is_storage else "uniform"
            entry = {"binding": 0, "visibility": "COMPUTE", "buffer": {"type": kind}}
            layout = self._device.create_bind_group_layout(entries=[entry])
            self._probes[is_storage] = layout
        self._device.create_bind_group(
            label="probe", layout=layout, entries=[_bind(0, buffer, 0, 4)]
        )

    def forget(self, uid: int) -> None:
        """Drop the bind groups of the block number `uid`, which was freed."""
        self._change()
        for key in self._users.pop(uid, ()):
            self.cache.discard(key)
            self._unlink(key)

    def forget_shaders(self, uids: frozenset[int]) -> None:
        """Drop the bind groups of the shaders numbered `uids`, which were dropped."""
        self._change()
        for key, _ in self.cache.entries():
            if key[0] in uids:
                self.cache.discard(key)
                self._unlink(key)

    def _unlink(self, key: GroupKey) -> None:
        """Forget which blocks a bind group uses."""
        for uid, _, _ in key[2]:
            if uid in self._users:
                self._users[uid].discard(key)

    def remember(self, key: tuple[object, ...], call: BoundCall) -> None:
        """Keep a bound call under its key; if there are too many, all others are dropped."""
        if len(self.calls) >= _CALLS:
            self.calls.clear()
        self.calls[key] = call

    def _change(self) -> None:
        """Note that groups were dropped, and drop the calls, which keep groups and buffers."""
        self.changes += 1
        self.calls.clear()

    def clear(self) -> None:
        """Drop all bind groups."""
        self._change()
        self.cache.clear()
        self._users.clear()


def _bind(binding: int, buffer: gpu.Buffer, offset: int, size: int) -> gpu.Descriptor:
    resource = {"buffer": buffer, "offset": offset, "size": size}
    return {"binding": binding, "resource": resource}

"""Dispatches of pipelines that `kerngen bind` generated: compile, bind and record.

A kernel binds one group: uniforms at 0, then its tensors.  A shader that others wrote may
have several groups, with textures and samplers, and several uniforms in each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, count
from typing import TYPE_CHECKING, Final, TypeAlias, final

from kerngen.runtime.bound.bindings import (
    Binding,
    BufferBinding,
    Sampler,
    Storage,
    StorageTexture,
    Texture,
    Uniform,
    bound_bytes,
)
from kerngen.runtime.caches import Cache
from kerngen.runtime.calls.call_plan import Capabilities, Origin, PlannedDispatch
from kerngen.runtime.counters import Counters
from kerngen.runtime.device import gpu
from kerngen.runtime.device.arena import CHUNK_BYTES, Chunk, UniformArena
from kerngen.runtime.device.memory import Memory
from kerngen.runtime.device.shaders import (
    BindGroups,
    Bound,
    CompiledShader,
    ShaderCache,
)
from kerngen.runtime.device.storage import Allocation, Lease
from kerngen.runtime.errors import AliasError, LimitError, ShapeError
from kerngen.runtime.values.shapes import round_up

if TYPE_CHECKING:
    from kerngen.runtime.bound.groups import BindGroup as Group
    from kerngen.runtime.bound.pipeline import ComputePipeline, Dispatch, Size

Entries: TypeAlias = tuple[Binding, ...]
"""The bindings of a bind group: the key of its layout."""

_numbers: Final = count(2)
"""Numbers of layouts, which are made negative: -2, -3, ...

A layout takes the place of a shader's number in the keys of bind groups, and those count up
from 0.  -1 is the number of the placeholder in `_step`.
"""


@final
@dataclass(frozen=True, slots=True, eq=False)
class NumberedLayout:
    """A bind group layout, with a number that identifies it."""

    uid: int
    layout: gpu.BindGroupLayout


@final
@dataclass(frozen=True, slots=True, eq=False)
class CompiledPipeline:
    """A compiled pipeline; `layouts` pairs each bind group's index with its layout."""

    pipeline: gpu.Pipeline
    layouts: tuple[tuple[int, NumberedLayout], ...]


@final
@dataclass(frozen=True, slots=True)
class BoundRange:
    """A range of a buffer that a dispatch binds, and whether its shader may write the range."""

    name: str
    lease: Lease[gpu.Buffer]
    offset: int
    nbytes: int
    writes: bool


@final
@dataclass(frozen=True, slots=True)
class BoundDispatch:
    """A dispatch ready to record; `groups` are (index, bind group, dynamic offsets).

    `leases` keep the buffers that the dispatch binds, `written` are the blocks that it may
    write, and `step` describes it to profiles.
    """

    name: str
    pipeline: gpu.Pipeline
    groups: tuple[tuple[int, gpu.BindGroup, tuple[int, ...]], ...]
    grid: Size
    leases: tuple[Lease[gpu.Buffer], ...]
    written: tuple[Allocation[gpu.Buffer], ...]
    step: PlannedDispatch
    kept: tuple[Group, ...]
    """The values that it binds, kept as long as the dispatch: a capture may replay it."""

    def encode(self, compute: gpu.ComputePass) -> None:
        """Record the dispatch in a compute pass."""
        compute.set_pipeline(self.pipeline)
        for index, group, offsets in self.groups:
            compute.set_bind_group(index, group, offsets)
        compute.dispatch_workgroups(*self.grid)


@final
class BoundPipelines:
    """Compiles and binds generated pipelines; callers must hold the context's lock."""

    def __init__(
        self,
        device: gpu.Device,
        capabilities: Capabilities,
        shaders: ShaderCache,
        memory: Memory,
        counters: Counters,
    ) -> None:
        """Start with nothing compiled."""
        self._memory = memory
        self._device = device
        self._capabilities = capabilities
        self._shaders = shaders
        self._counters = counters
        self._pipelines: Cache[ComputePipeline, CompiledPipeline] = Cache("bound", 1024)
        self._layouts: dict[Entries, NumberedLayout] = {}

    def ready(
        self, call: Dispatch, grid: Size, arena: UniformArena, bind_groups: BindGroups
    ) -> BoundDispatch:
        """Check a dispatch, compile its pipeline, bind it, and return it ready to record."""
        # Checks come before anything is packed or bound.
        pipeline, most = call.pipeline, self._capabilities.workgroups
        name = f"{pipeline.SHADER.name}:{pipeline.ENTRY}"
        if max(grid) > most:
            raise LimitError(
                f"{name}: {max(grid)} workgroups along an axis; the adapter runs {most}."
            )
        compiled = self._compiled(name, pipeline)
        used = [tuple(self._uses(name, group)) for group in call.groups]
        uses = [use for each in used for use in each]
        written = _check_aliases(name, uses)
        chunk, offsets = self._pack(call.groups, arena)
        groups = tuple(
            (index, self._bind(name, layout, group, each, chunk, bind_groups), starts)
            for (index, layout), group, each, starts in zip(
                compiled.layouts, call.groups, used, offsets, strict=True
            )
        )
        self._counters.calls += 1
        return BoundDispatch(
            name,
            compiled.pipeline,
            groups,
            grid,
            tuple(use.lease for use in uses),
            written,
            _step(name, compiled, grid),
            call.groups,
        )

    def _uses(self, name: str, group: Group) -> Iterator[BoundRange]:
        """Yield the buffers that a group binds: tensors, and uniforms in callers' buffers.

        Uniforms given as values are left out: `_pack` writes them to the arena.
        """
        for binding, value in group.items():
            if isinstance(binding, Storage):
                yield BoundRange(
                    binding.name,
                    value.lease,
                    value.offset,
                    bound_bytes(value),
                    binding.writes,
                )
            elif isinstance(value, BufferBinding):
                align = self._capabilities.uniform_alignment
                if value.offset % align:
                    raise ShapeError(
                        f"{name}: '{binding.name}' begins at byte {value.offset} of its "
                        f"buffer; the adapter binds at multiples of {align}."
                    )
                lease = self._memory.lease_foreign(value.buffer, value.nbytes)
                yield BoundRange(
                    binding.name, lease, value.offset, value.nbytes, writes=False
                )

    def clear(self) -> None:
        """Drop all compiled pipelines."""
        self._pipelines.clear()
        self._layouts.clear()

    def _compiled(self, name: str, pipeline: ComputePipeline) -> CompiledPipeline:
        """Return a pipeline's compiled form, compiled at its first dispatch."""
        found = self._pipelines.get(pipeline)
        if found is not None:
            return found
        try:
            found = self._compile(name, pipeline)
        except Exception as error:
            raise gpu.translate(error, f"to compile {name}") from error
        self._counters.pipelines_created += 1
        self._pipelines.put(pipeline, found)
        return found

    def _compile(self, name: str, pipeline: ComputePipeline) -> CompiledPipeline:
        numbered = {
            each.GROUP: self._layout(each.BINDINGS, pipeline.unfiltered)
            for each in pipeline.GROUPS
        }
        # A pipeline layout lists groups from 0 on: a shader with `@group(0)` and
        # `@group(2)` has an empty one between them.
        empty = self._layout((), frozenset())
        layouts = [
            numbered.get(index, empty) for index in range(max(numbered, default=-1) + 1)
        ]
        made = self._device.create_compute_pipeline(
            label=name,
            layout=self._device.create_pipeline_layout(
                bind_group_layouts=[each.layout for each in layouts]
            ),
            compute={
                "module": self._shaders.checked_module(pipeline.SHADER.code, name),
                "entry_point": pipeline.ENTRY,
                "constants": pipeline.constants,
            },
        )
        return CompiledPipeline(made, tuple(numbered.items()))

    def _layout(self, bindings: Entries, unfiltered: frozenset[str]) -> NumberedLayout:
        """Return the layout of these bindings, made if it is new."""
        key = tuple(without_filter(each, unfiltered) for each in bindings)
        found = self._layouts.get(key)
        if found is None:
            entries = [binding.layout() for binding in key]
            layout = self._device.create_bind_group_layout(entries=entries)
            found = self._layouts[key] = NumberedLayout(-next(_numbers), layout)
        return found

    def _pack(
        self, groups: Sequence[Group], arena: UniformArena
    ) -> tuple[Chunk | None, list[tuple[int, ...]]]:
        """Pack the uniforms of all groups; return the chunk, and each group's offsets.

        Each uniform begins at a multiple of the adapter's alignment:

            | camera ... pad | light ... pad | ...
            0                256             512      from `chunk.used` on

        A uniform in a caller's buffer has the dynamic offset 0.
        """
        align = self._capabilities.uniform_alignment
        uniforms = [
            [(b, value) for b, value in group.items() if isinstance(b, Uniform)]
            for group in groups
        ]
        total = sum(
            round_up(binding.size, align)
            for each in uniforms
            for binding, value in each
            if not isinstance(value, BufferBinding)
        )
        if not total:
            return None, [(0,) * len(each) for each in uniforms]
        # All uniforms of a dispatch are in one chunk, as the groups are bound to one buffer.
        if total > CHUNK_BYTES:
            raise LimitError(
                f"The uniforms of a dispatch have {total} bytes; {CHUNK_BYTES} fit."
            )
        chunk = arena.room(total)
        at, offsets = chunk.used, list[tuple[int, ...]]()
        for each in uniforms:
            starts: list[int] = []
            for binding, value in each:
                if isinstance(value, BufferBinding):
                    starts.append(0)
                    continue
                binding.pack_into(chunk.data, at, value)
                starts.append(at)
                at += round_up(binding.size, align)
            offsets.append(tuple(starts))
        chunk.used = at
        return chunk, offsets

    def _bind(
        self,
        name: str,
        layout: NumberedLayout,
        group: Group,
        used: Sequence[BoundRange],
        chunk: Chunk | None,
        bind_groups: BindGroups,
    ) -> gpu.BindGroup:
        """Return the bind group of a dispatch's values, made if it is new.

        Groups of buffers alone are cached by the numbers of their blocks.
        """
        bound: list[Bound] = []
        entries: list[gpu.Descriptor] = []
        others = False
        uses = {use.name: use for use in used}
        for binding, value in group.items():
            if isinstance(binding, Texture | StorageTexture | Sampler):
                others = True
                entries.append({"binding": binding.binding, "resource": value})
                continue
            use = uses.get(binding.name)
            if use is not None:
                block, offset, size = use.lease.block, use.offset, use.nbytes
            else:
                assert chunk is not None, "uniforms were packed"
                assert isinstance(binding, Uniform), "tensors are uses"
                block, offset, size = chunk.block, 0, binding.size
            bound.append((block.uid, offset, size))
            resource = {"buffer": block.memory, "offset": offset, "size": size}
            entries.append({"binding": binding.binding, "resource": resource})
        if others:
            # Views of textures, and samplers, are the caller's and have no number to find
            # a group by: it is made anew.
            try:
                return self._device.create_bind_group(
                    label=name, layout=layout.layout, entries=entries
                )
            except Exception as error:
                raise gpu.translate(
                    error, f"to bind the arguments of {name}"
                ) from error
        key = (layout.uid, -1, tuple(bound))
        known = bind_groups.cache.get(key)
        return known or bind_groups.make(key, name, layout.layout, entries)


def without_filter(binding: Binding, unfiltered: Collection[str]) -> Binding:
    """Return a texture or sampler as unfilterable, if `unfiltered` has its name; else as it is.

    WebGPU has two layouts for what WGSL declares alike: a `texture_2d<f32>` is 'float' or
    'unfilterable-float', its sampler 'filtering' or 'non-filtering'.
    """
    if binding.name not in unfiltered:
        return binding
    match binding:
        case Texture(sample="float"):
            return replace(binding, sample="unfilterable-float")
        case Sampler(kind="filtering"):
            return replace(binding, kind="non-filtering")
        case _:
            return binding


def _check_aliases(
    name: str, uses: Sequence[BoundRange]
) -> tuple[Allocation[gpu.Buffer], ...]:
    """Refuse aliases that WebGPU would refuse at the submission; return the written blocks.

    Two bindings of one buffer may both read it, or both write ranges that are apart.
    WebGPU's usages are those of a whole buffer, so one that is read and written is refused
    even if the ranges are apart.
    """
    for a, b in combinations(uses, 2):
        if a.lease.block is not b.lease.block or not (a.writes or b.writes):
            continue
        apart = a.offset + a.nbytes <= b.offset or b.offset + b.nbytes <= a.offset
        if a.writes and b.writes and apart:
            continue
        raise AliasError(
            f"{name}: '{a.name}' and '{b.name}' are in one buffer, and the shader may "
            f"write it; copy one of them."
        )
    return tuple(use.lease.block for use in uses if use.writes)


def _step(name: str, compiled: CompiledPipeline, grid: Size) -> PlannedDispatch:
    """Return the dispatch in the form that profiles take: as a kernel's, of stage 'bound'."""
    layout = (
        compiled.layouts[0][1].layout if compiled.layouts else gpu.BindGroupLayout(None)
    )
    shader = CompiledShader(-1, name, compiled.pipeline, layout, 0)
    origin = Origin(name, "bound", name.partition(":")[0])
    return PlannedDispatch(shader, (), tuple, grid[0], grid[1], origin)

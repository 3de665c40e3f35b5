"""The call plan: the part of a call that its shapes and the scalars in guards decide.

A `CallPlan` has the chosen shaders, compiled, with their workgroups.  `planner.py` makes it
once, and the shapes of the arguments find it again.  A `BoundCall` is a plan with memory for
all of its slots; the memory of the arguments finds it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from kerngen.plan.adapter import AdapterInfo
from kerngen.runtime.calls.checks import CheckedShapes
from kerngen.runtime.device.arena import Chunk
from kerngen.runtime.device.gpu import BindGroup, Buffer
from kerngen.runtime.device.pool import size_class
from kerngen.runtime.device.shaders import Bound, CompiledShader
from kerngen.runtime.device.storage import Allocation
from kerngen.runtime.tensor import Tensor, padded_size
from kerngen.runtime.values.elements import Element
from kerngen.runtime.values.packing import element_bytes
from kerngen.runtime.values.shapes import Shape

AnyTensor: TypeAlias = Tensor[Any, Any]
Pair: TypeAlias = tuple[int, int]
"""The numbers of two arguments, in order: tensor parameters, then outputs."""


@final
@dataclass(frozen=True, slots=True)
class Capabilities:
    """The limits and features of a device.

    `info` is what the guards of plans read.  `storage_buffers` is how many tensors a dispatch
    can bind, `workgroups` how many workgroups it can have along an axis; sizes and alignments
    are in bytes.
    """

    info: AdapterInfo
    storage_buffers: int
    binding_bytes: int
    buffer_bytes: int
    workgroups: int
    uniform_alignment: int
    storage_alignment: int
    timestamps: bool = False
    loop_turns: int | None = None
    """The turns of all its loops after which the adapter stops an invocation, or None."""
    of_adapter: frozenset[str] = frozenset()
    """The features that the device could have been opened with."""

    @property
    def tensor_bytes(self) -> int:
        """The size in bytes of the largest tensor that a kernel can be given."""
        return min(self.binding_bytes, self.buffer_bytes)

    def lack_of(self, feature: str) -> str:
        """Return why the device does not have `feature`, and what to do if anything helps."""
        if feature not in self.of_adapter:
            return f"the adapter lacks the feature '{feature}'"
        return (
            f"the device was opened without the feature '{feature}', which its adapter "
            f"has: add it to required_features"
        )


@final
@dataclass(frozen=True, slots=True)
class Origin:
    """Where a dispatch comes from: its stage, the schedule chosen for it, its shader."""

    stage: str
    strategy: str
    shader: str


@final
@dataclass(frozen=True, slots=True)
class PlannedDispatch:
    """One dispatch of a plan; `slots` number the tensors that it binds, as in `CallPlan`."""

    shader: CompiledShader
    slots: tuple[int, ...]
    pick: Callable[[Sequence[Bound]], tuple[Bound, ...]]
    """Return the bindings of `slots` from those of all slots; a part of a group's key."""
    x: int
    y: int
    origin: Origin


Ready: TypeAlias = tuple[PlannedDispatch, BindGroup]
"""A dispatch with its bind group."""


@final
@dataclass(frozen=True, slots=True)
class Made:
    """A tensor or buffer that a call makes: an output, a temporary or a scratch buffer.

    Its elements take `nbytes`, a bind group binds `padded` bytes of its block, and the block
    has `capacity` bytes: 5 f32 are 20, 32 and 256.
    """

    element: type[Element]
    shape: Shape
    nbytes: int
    padded: int
    capacity: int

    @classmethod
    def of(cls, element: type[Element], shape: Shape, largest: int) -> Made:
        """Return the sizes for a shape; `largest` is the most bytes that a buffer can have."""
        nbytes = element_bytes(element, shape)
        padded = padded_size(nbytes, element.DTYPE.itemsize)
        capacity = min(size_class(padded), largest)
        return cls(element, shape, nbytes, padded, capacity)


@final
@dataclass(slots=True, eq=False)
class CallPlan:
    """A kernel's dispatches for certain shapes, ready to be recorded.

    Slots number the tensor parameters, then outputs, temporaries and scratch buffers.
    `outputs` has the sizes of the outputs, `inner` those of temporaries and scratch buffers.

    - `written`: the slots of the arguments that a call writes
    - `conflicts`: pairs of arguments of which one is written, so that they may not overlap
    - `mixed`: the pairs of these that may not even lie in one buffer, as a dispatch reads one
      of the two and writes the other
    """

    signature: CheckedShapes
    steps: tuple[PlannedDispatch, ...]
    outputs: tuple[Made, ...]
    inner: tuple[Made, ...]
    written: tuple[int, ...]
    conflicts: tuple[Pair, ...]
    mixed: frozenset[Pair]
    stride: int
    """Bytes of the uniform struct in the arena, aligned; 0 if no step reads it."""
    packed_in: int = -1
    """The serial number of the recording in which a call last packed its struct."""
    packed: tuple[Any, ...] = ()
    """The scalars that were packed then."""
    packed_at: tuple[Chunk | None, int] = (None, 0)
    """The chunk that has them, and the offset there."""


@final
@dataclass(slots=True, eq=False)
class BoundCall:
    """A plan with memory for each slot, and its bind groups: ready to be recorded again.

    - `bindings`, `blocks`: the memory of all slots
    - `fresh`: the blocks that calls get from the pool: of new outputs, and of `inner`
    - `written`: the blocks of the arguments that the call writes
    """

    plan: CallPlan
    bindings: Sequence[Bound]
    blocks: Sequence[Allocation[Buffer]]
    fresh: Sequence[Allocation[Buffer]]
    written: Sequence[Allocation[Buffer]]
    chunk: Chunk | None = None
    """The chunk of uniforms that the bind groups in `ready` bind."""
    ready: Sequence[Ready] = ()
    bound_at: int = -1
    """`BindGroups.changes` when `ready` was made; if that has grown, groups may be gone."""
    noted_in: int = -1
    """The serial number of the recording that last noted the call's blocks."""

    @classmethod
    def on(
        cls,
        plan: CallPlan,
        given: Sequence[AnyTensor],
        fresh: Sequence[Allocation[Buffer]],
        borrowed: Sequence[Allocation[Buffer]],
    ) -> BoundCall:
        """Return a plan bound to the tensors `given`, and to `borrowed` blocks for `inner`."""
        blocks: list[Allocation[Buffer]] = [tensor.lease.block for tensor in given]
        written = [blocks[slot] for slot in plan.written]
        bindings = [tensor.binding for tensor in given]
        for number, block in enumerate(borrowed):
            bindings.append((block.uid, 0, plan.inner[number].padded))
        blocks += borrowed
        return cls(plan, bindings, blocks, fresh, written)

    def unbound(self) -> BoundCall:
        """Return the same call without bind groups, as another recorder makes its own."""
        return BoundCall(
            self.plan, self.bindings, self.blocks, self.fresh, self.written
        )

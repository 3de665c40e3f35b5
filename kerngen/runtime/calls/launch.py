"""The launcher: the path that every call of a kernel takes on a device.

The order is: check, plan, lease memory, pack the uniforms, bind, and only then record,
so that whatever raises leaves the recording as it was.  Each step is looked up first:

    the same arguments in the same memory    -> a `BoundCall`: nothing is checked or bound
    the same shapes, elements and guards     -> a `CallPlan`: nothing is planned
    new                                      -> checks, a plan, compiled shaders
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast, final

from kerngen.runtime.backend import AnyTensor
from kerngen.runtime.caches import Cache
from kerngen.runtime.calls.aliasing import Detour, check_overlap, find_detours
from kerngen.runtime.calls.call_plan import BoundCall, CallPlan, PlannedDispatch
from kerngen.runtime.calls.checks import check_arguments, check_out, resolve
from kerngen.runtime.calls.planner import Planner
from kerngen.runtime.calls.scalars import check_scalars, pack, prepare
from kerngen.runtime.counters import Counters
from kerngen.runtime.device.arena import Chunk, UniformArena
from kerngen.runtime.device.gpu import BindGroup, Buffer
from kerngen.runtime.device.memory import Memory
from kerngen.runtime.device.recorder import Recording
from kerngen.runtime.device.shaders import BindGroups, CompiledShader
from kerngen.runtime.device.storage import Allocation
from kerngen.runtime.device.transfer import Transfers
from kerngen.runtime.tensor import Tensor

if TYPE_CHECKING:
    from kerngen.runtime.calls.kernel import Kernel
    from kerngen.runtime.context import Context

PlanKey: TypeAlias = tuple[object, ...]
"""A kernel with element and shape of each argument, and the scalars of guards.

They decide all of a plan: `(kernel, (f32, (4, 8)), None, 3)` for a call with one tensor,
one output that is to be made, and one guard scalar.
"""

CallKey: TypeAlias = tuple[object, ...]
"""The same with the memory of each argument behind its element and shape.

Positions: the kernel, a pair for each tensor and each output, then the guards:
`(kernel, (f32, (4, 8)), (30, 0, 128), None, None, 3)`.
"""

_NOT_GIVEN: Final = (None, None)
"""The pair in a call's key for an output that is to be made."""


@final
class Launcher:
    """Launches kernels on a device; the caller of each method holds the context's lock."""

    def __init__(
        self,
        *,
        plans: Cache[PlanKey, CallPlan],
        planner: Planner,
        memory: Memory,
        bind_groups: BindGroups,
        arena: UniformArena,
        recorder: Recording,
        transfers: Transfers,
        counters: Counters,
    ) -> None:
        """Launch with these parts of a backend."""
        self.plans = plans
        self._planner = planner
        self._memory = memory
        self._bind_groups = bind_groups
        self._arena = arena
        self._recorder = recorder
        self._transfers = transfers
        self._counters = counters

    def launch(
        self,
        ctx: Context,
        kernel: Kernel,
        tensors: tuple[AnyTensor, ...],
        scalars: tuple[Any, ...],
        out: tuple[AnyTensor | None, ...],
    ) -> tuple[AnyTensor, ...]:
        """Check the arguments, record the kernel and return its outputs."""
        parts: list[object] = [kernel]
        for tensor in tensors + out:
            if tensor is None:
                parts += _NOT_GIVEN
                continue
            # Two comparisons in the usual case; `check_arguments` then finds what is
            # wrong, if anything is.
            if tensor.__class__ is not Tensor or tensor.ctx is not ctx:
                check_arguments(kernel, ctx, tensors, out)
            parts += tensor.signature, tensor.binding
        if scalars or kernel.scalars:
            scalars = prepare(kernel, scalars)
        if kernel.guard_slots:
            # 0.0 and -0.0 are equal as keys, but not for a guard with 1 / x: of zeros the
            # text is the key.
            values = (scalars[slot] for slot in kernel.guard_slots)
            parts += [value or repr(value) for value in values]
        # A call like an earlier one, in the same memory, needs no checks: the key has all
        # that they depend on.
        key = tuple(parts)
        call = self._bind_groups.calls.get(key)
        if call is None:
            return self._launch_new(ctx, kernel, tensors, scalars, out, key)
        plan = call.plan
        self.plans.hits += 1
        if scalars and not plan.stride:
            # Packing checks scalars; without a uniform struct nothing is packed.
            check_scalars(kernel, plan.signature.values, scalars)
        if call.fresh:
            results, fresh = self._place(ctx, plan, out)
            self._run(kernel, call, plan, key, (*tensors, *results), fresh, scalars)
        else:
            results = cast("tuple[AnyTensor, ...]", out)
            self.record(kernel, call, scalars)
        self._counters.calls += 1
        return results

    def forget(self, kernels: frozenset[Kernel]) -> frozenset[CompiledShader]:
        """Drop the plans of kernels; return the shaders that only these plans used."""
        plans = self.plans.entries()
        old = {key: plan for key, plan in plans if key[0] in kernels}
        self._bind_groups.calls.clear()
        for key in old:
            self.plans.discard(key)
        kept = {step.shader for _, plan in self.plans.entries() for step in plan.steps}
        used = {step.shader for plan in old.values() for step in plan.steps}
        return frozenset(used - kept)

    def _launch_new(
        self,
        ctx: Context,
        kernel: Kernel,
        tensors: tuple[AnyTensor, ...],
        scalars: tuple[Any, ...],
        out: tuple[AnyTensor | None, ...],
        key: CallKey,
    ) -> tuple[AnyTensor, ...]:
        """Launch a call that was not launched before in the same memory."""
        # Every second part of the key is an argument's element and shape: the plan's key.
        given = tensors + out
        signatures, guards = key[1 : 2 * len(given) : 2], key[2 * len(given) + 1 :]
        plan_key = (kernel, *signatures, *guards)
        plan = self.plans.get(plan_key)
        if plan is None:
            plan = self._make_plan(ctx, kernel, tensors, scalars, out)
            self.plans.put(plan_key, plan)
        detours = find_detours(kernel, given, self._check_aliases(kernel, plan, given))
        if detours or not plan.stride:
            # Copies may submit and so restart the arena: check first, pack later.
            check_scalars(kernel, plan.signature.values, scalars)
        results, fresh = self._place(ctx, plan, out)
        slots = (*tensors, *results)
        if not plan.steps:
            # Nothing runs: outputs are empty, or those of a gradient that is 0.
            for each in results:
                self._transfers.clear(each.lease, each.offset, each.nbytes)
        elif detours:
            self._run_around(ctx, kernel, plan, slots, fresh, scalars, detours)
        else:
            self._run(kernel, None, plan, key, slots, fresh, scalars)
        self._counters.calls += 1
        return results

    def _make_plan(
        self,
        ctx: Context,
        kernel: Kernel,
        tensors: tuple[AnyTensor, ...],
        scalars: tuple[Any, ...],
        out: tuple[AnyTensor | None, ...],
    ) -> CallPlan:
        """Check the arguments, and plan a call of their shapes."""
        check_arguments(kernel, ctx, tensors, out)
        signature = resolve(kernel, tensors, kernel.guards(scalars))
        check_out(kernel, signature, out)
        return self._planner.plan(kernel, signature)

    def _check_aliases(
        self, kernel: Kernel, plan: CallPlan, given: Sequence[AnyTensor | None]
    ) -> list[tuple[int, int]]:
        """Refuse overlaps; return the pairs that may not share a buffer but do."""
        shared: list[tuple[int, int]] = []
        for pair in plan.conflicts:
            first, second = given[pair[0]], given[pair[1]]
            if (
                first is not None
                and second is not None
                and first.lease.block is second.lease.block
            ):
                check_overlap(kernel, given, *pair)
                if pair in plan.mixed:
                    shared.append(pair)
        return shared

    def _pack(
        self, kernel: Kernel, plan: CallPlan, scalars: tuple[Any, ...]
    ) -> tuple[Chunk | None, int]:
        """Pack the uniform struct; return its chunk, and its offset there.

        A repeated call of a plan with the same scalars is packed once in a recording.
        """
        serial = self._recorder.serial
        # Compared by identity: 0.0 and -0.0 are equal, but differ in their bits.
        if plan.packed_in == serial and (
            plan.packed is scalars or all(map(is_, plan.packed, scalars))
        ):
            return plan.packed_at
        if not plan.stride:
            return None, 0
        chunk = self._arena.room(plan.stride)
        offset = chunk.used
        pack(kernel, plan.signature.values, scalars, chunk.data, offset)
        chunk.used = offset + plan.stride
        plan.packed_in, plan.packed, plan.packed_at = serial, scalars, (chunk, offset)
        return chunk, offset

    def _place(
        self, ctx: Context, plan: CallPlan, out: Sequence[AnyTensor | None]
    ) -> tuple[tuple[AnyTensor, ...], list[Allocation[Buffer]]]:
        """Lease the outputs that are not given; return all outputs, and the new blocks."""
        results: list[AnyTensor] = []
        fresh: list[Allocation[Buffer]] = []
        for number, made in enumerate(plan.outputs):  # `zip` would add 0.3 us
            given = out[number]
            if given is not None:
                results.append(given)
                continue
            lease = self._memory.lease_room(made.nbytes, made.capacity)
            output: AnyTensor = Tensor(ctx, made.element, made.shape, lease)
            results.append(output)
            fresh.append(lease.block)
        return tuple(results), fresh

    def _run_around(
        self,
        ctx: Context,
        kernel: Kernel,
        plan: CallPlan,
        given: Sequence[AnyTensor],
        fresh: list[Allocation[Buffer]],
        scalars: tuple[Any, ...],
        detours: Sequence[Detour],
    ) -> None:
        """Record a call on copies of some arguments: copy in, run, copy back."""
        slots = list(given)
        for detour in detours:
            element, shape = detour.tensor.signature
            memory = self._memory.lease(detour.tensor.nbytes, element.DTYPE.itemsize)
            slots[detour.slot] = Tensor(ctx, element, shape, memory)
        for detour in detours:
            if detour.copy_in:
                self._transfers.copy(detour.tensor, slots[detour.slot])
        self._run(kernel, None, plan, None, slots, fresh, scalars)
        for detour in detours:
            if detour.copy_back:
                self._transfers.copy(slots[detour.slot], detour.tensor)

    def _run(
        self,
        kernel: Kernel,
        call: BoundCall | None,
        plan: CallPlan,
        key: CallKey | None,
        given: Sequence[AnyTensor],
        fresh: list[Allocation[Buffer]],
        scalars: tuple[Any, ...],
    ) -> None:
        """Record a call, with memory for its temporaries in the meantime.

        `call` is the bound call that its key found, if one did.  If the pool now returns
        other blocks than that has, a new bound call is made.  It is kept under the key
        only if all of its bind groups were in their cache, which shows that its memory
        comes again: a program that passes a new view each time, as of a ring buffer, would
        fill the cache with calls that never come again.
        """
        memory, groups = self._memory, self._bind_groups
        borrowed: list[Allocation[Buffer]] = []
        try:
            for made in plan.inner:
                # One by one, so that after an error those borrowed so far are handed back.
                block = memory.borrow(made.nbytes, made.capacity)
                borrowed.append(block)
            fresh += borrowed
            # The pool returns the lowest free number: a repeated call gets the same blocks.
            if call is not None and call.fresh == fresh:
                self.record(kernel, call, scalars)
                return
            call = BoundCall.on(plan, given, fresh, borrowed)
            misses = groups.cache.misses
            self.record(kernel, call, scalars)
            if key is not None and groups.cache.misses == misses:
                groups.remember(key, call)
        finally:
            memory.hand_back(borrowed)

    def record(self, kernel: Kernel, call: BoundCall, scalars: tuple[Any, ...]) -> None:
        """Pack the uniforms of a checked call, find its bind groups, and record it.

        Every slot must have its memory.
        """
        chunk, offset = self._pack(kernel, call.plan, scalars)
        # Bound anew if groups were dropped since, or if the uniforms are in another chunk.
        if call.bound_at != self._bind_groups.changes or call.chunk is not chunk:
            self._bind(call, chunk)
        else:
            self._bind_groups.cache.hits += len(call.ready)
        self._recorder.record(kernel, call, offset)

    def _bind(self, call: BoundCall, chunk: Chunk | None) -> None:
        """Find the bind groups of a call."""
        call.bound_at = -1  # an interrupt may leave the rest undone
        call.ready = [
            (step, self._group(step, call, chunk)) for step in call.plan.steps
        ]
        call.chunk, call.bound_at = chunk, self._bind_groups.changes

    def _group(
        self, step: PlannedDispatch, call: BoundCall, chunk: Chunk | None
    ) -> BindGroup:
        """Return the bind group of a step, made if it is new.

        The offset of the uniforms in their chunk is no part of its key: it is dynamic.
        """
        chunk_uid = -1 if chunk is None else chunk.block.uid
        key = (step.shader.uid, chunk_uid, step.pick(call.bindings))
        group = self._bind_groups.cache.get(key)
        if group is not None:
            return group
        buffers = [call.blocks[slot].memory for slot in step.slots]
        uniforms = None if chunk is None else chunk.block.memory
        return self._bind_groups.create(key, step.shader, uniforms, buffers)

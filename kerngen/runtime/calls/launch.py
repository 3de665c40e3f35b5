"""The launcher: the path that every call of a kernel takes on a device.

The order is: check, plan, compute the uniforms, lease memory, bind, and only then
record, so that whatever raises leaves the recording as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import TYPE_CHECKING, Any, TypeAlias, final

from kerngen.runtime.backend import AnyTensor
from kerngen.runtime.caches import Cache
from kerngen.runtime.calls.aliasing import Detour, check_overlap, find_detours
from kerngen.runtime.calls.call_plan import CallPlan, Step
from kerngen.runtime.calls.checks import check_arguments, check_out, resolve
from kerngen.runtime.calls.planner import Planner
from kerngen.runtime.calls.scalars import check_scalars, pack, prepare
from kerngen.runtime.counters import Counters
from kerngen.runtime.device.arena import Chunk, UniformArena
from kerngen.runtime.device.gpu import BindGroup, Buffer
from kerngen.runtime.device.memory import Memory
from kerngen.runtime.device.recorder import Ready, Recording
from kerngen.runtime.device.shaders import BindGroups, Bound, CompiledShader
from kerngen.runtime.device.transfer import Transfers
from kerngen.runtime.tensor import Tensor

if TYPE_CHECKING:
    from kerngen.runtime.calls.kernel import Kernel
    from kerngen.runtime.context import Context

PlanKey: TypeAlias = tuple[object, ...]


@final
class Launcher:
    """Launches kernels; needs the context's lock throughout."""

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
        self._last: dict[CallPlan, tuple[int, list[Bound], list[Ready]]] = {}
        self._changes = bind_groups.changes

    def launch(
        self,
        ctx: Context,
        kernel: Kernel,
        tensors: tuple[AnyTensor, ...],
        scalars: tuple[Any, ...],
        out: tuple[AnyTensor | None, ...],
    ) -> tuple[AnyTensor, ...]:
        """Check the arguments, record the kernel and return its outputs."""
        given = (*tensors, *out)
        key: list[object] = [kernel]
        passed: list[AnyTensor] = []
        direct = True
        for tensor in given:
            if tensor is None:
                key.append(None)
                continue
            # Two comparisons in the usual case; `check_arguments` then finds what is
            # wrong, if anything is.
            if tensor.__class__ is not Tensor or tensor.ctx is not ctx:
                check_arguments(kernel, ctx, tensors, out)
            key.append(tensor.signature)
            passed.append(tensor)
            if not tensor.direct:
                direct = False
        if scalars or kernel.scalars:
            scalars = prepare(kernel, scalars)
        if kernel.guard_slots:
            # 0.0 and -0.0 are equal, but 1 / x differs.
            values = (scalars[slot] for slot in kernel.guard_slots)
            key += [value or repr(value) for value in values]
        # A call like an earlier one needs no checks: the plan is found by all they
        # depend on.
        plan_key = tuple(key)
        plan = self.plans.get(plan_key)
        if plan is None:
            plan = self._make_plan(ctx, kernel, tensors, scalars, out)
            self.plans.put(plan_key, plan)
        shared = self._check_aliases(kernel, plan, given)
        detours = [] if direct and not shared else find_detours(kernel, given, shared)
        if detours or not plan.stride:
            # Copies may submit and so restart the arena: check first, pack later.
            check_scalars(kernel, plan.signature.values, scalars)
        if detours or plan.inner or len(passed) < len(given):
            results = self._place(ctx, plan, given, passed, detours)
        else:
            results = tuple(passed[len(tensors) :])
        if plan.steps:
            self._run(kernel, plan, scalars, passed, detours)
        else:
            for each in results:
                self._transfers.clear(each.lease, each.offset, each.nbytes)
        self._counters.calls += 1
        return results

    def forget(self, kernels: frozenset[Kernel]) -> frozenset[CompiledShader]:
        """Drop the plans of kernels; return the shaders that no other plan uses."""
        plans = self.plans.entries()
        old = {key: plan for key, plan in plans if key[0] in kernels}
        self._last.clear()
        for key in old:
            self.plans.discard(key)
        kept = {step.shader for _, plan in self.plans.entries() for step in plan.steps}
        used = {step.shader for plan in old.values() for step in plan.steps}
        return frozenset(used - kept)

    def _make_plan(
        self,
        ctx: Context,
        kernel: Kernel,
        tensors: tuple[AnyTensor, ...],
        scalars: tuple[Any, ...],
        out: tuple[AnyTensor | None, ...],
    ) -> CallPlan:
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
        """Pack the uniform struct; return where it lies.

        The same numbers, the very same objects, are packed once in a recording.
        """
        serial = self._recorder.serial
        if plan.packed_in == serial and all(map(is_, plan.packed, scalars)):
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
        self,
        ctx: Context,
        plan: CallPlan,
        given: Sequence[AnyTensor | None],
        slots: list[AnyTensor],
        detours: Sequence[Detour],
    ) -> tuple[AnyTensor, ...]:
        """Lease outputs, temporaries and placeholders into the slots; return the outputs."""
        lease = self._memory.lease
        inputs = len(given) - len(plan.outputs)
        for number, (element, shape) in enumerate(plan.outputs):
            if given[inputs + number] is None:
                memory = lease(plan.output_bytes[number], element.DTYPE.itemsize)
                tensor: AnyTensor = Tensor(ctx, element, shape, memory)
                slots.insert(inputs + number, tensor)
        results = tuple(slots[inputs:])
        for detour in detours:
            element, shape = detour.tensor.signature
            memory = lease(detour.tensor.nbytes, element.DTYPE.itemsize)
            slots[detour.slot] = Tensor(ctx, element, shape, memory)
        for item in plan.inner:
            memory = lease(item.nbytes, item.element.DTYPE.itemsize)
            slots.append(Tensor(ctx, item.element, item.shape, memory))
        return results

    def _run(
        self,
        kernel: Kernel,
        plan: CallPlan,
        scalars: tuple[Any, ...],
        slots: Sequence[AnyTensor],
        detours: Sequence[Detour],
    ) -> None:
        """Pack, bind and record, with the copies of aliased arguments around it."""
        for detour in detours:
            if detour.copy_in:
                self._transfers.copy(detour.tensor, slots[detour.slot])
        self.record(kernel, plan, scalars, slots)
        for detour in detours:
            if detour.copy_back:
                self._transfers.copy(slots[detour.slot], detour.tensor)

    def record(
        self,
        kernel: Kernel,
        plan: CallPlan,
        scalars: tuple[Any, ...],
        slots: Sequence[AnyTensor],
    ) -> None:
        """Pack, bind and record a checked call; every slot has its memory."""
        chunk, offset = self._pack(kernel, plan, scalars)
        bound = self._bind(plan, slots, chunk)
        self._recorder.record(kernel, plan, slots, bound, offset)

    def _bind(
        self, plan: CallPlan, slots: Sequence[AnyTensor], chunk: Chunk | None
    ) -> list[Ready]:
        """Return the steps with their bind groups: those of the plan's last call, often."""
        bindings = [tensor.binding for tensor in slots]
        chunk_uid = -1 if chunk is None else chunk.block.uid
        if self._changes != self._bind_groups.changes:
            self.forget_bound()
        last = self._last.get(plan)
        if last is not None and last[0] == chunk_uid and last[1] == bindings:
            self._bind_groups.cache.hits += len(plan.steps)
            return last[2]
        bound = [
            (step, self._group(step, bindings, slots, chunk)) for step in plan.steps
        ]
        self._last[plan] = chunk_uid, bindings, bound
        return bound

    def _group(
        self,
        step: Step,
        bindings: Sequence[Bound],
        slots: Sequence[AnyTensor],
        chunk: Chunk | None,
    ) -> BindGroup:
        """Return the bind group of a step, made if it is new."""
        chunk_uid = -1 if chunk is None else chunk.block.uid
        key = (step.shader.uid, chunk_uid, step.pick(bindings))
        group = self._bind_groups.cache.get(key)
        if group is not None:
            return group
        buffers: list[Buffer] = [slots[i].lease.block.memory for i in step.slots]
        uniforms = None if chunk is None else chunk.block.memory
        return self._bind_groups.create(key, step.shader, uniforms, buffers)

    def forget_bound(self) -> None:
        """Drop the cached bindings of the last calls, so that buffers can be freed."""
        self._last.clear()
        self._changes = self._bind_groups.changes

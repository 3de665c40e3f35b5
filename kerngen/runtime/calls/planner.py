"""Planning a call: choose schedules and variants, count workgroups, compile shaders.

The dims of the call, such as {"m": 64, "n": 512}, become a `CallPlan` in three steps:

    select      the cases of the kernel's plan whose guards hold, and their dispatches
    count       sizes of outputs, temporaries and scratch buffers, and workgroups
    compile     each shader, with its bindings as slots
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, final

from kerngen.plan.select import (
    MOST_DISPATCHES,
    NoCaseError,
    Planned,
    SelectedDispatches,
    TooManyStepsError,
    select,
)
from kerngen.plan.size import Size, evaluate
from kerngen.plan.text import to_text
from kerngen.plan.tree import Dispatch
from kerngen.runtime.calls.call_plan import (
    CallPlan,
    Capabilities,
    Made,
    Origin,
    Pair,
    PlannedDispatch,
)
from kerngen.runtime.calls.checks import CheckedShapes
from kerngen.runtime.calls.choices import Choice
from kerngen.runtime.calls.ranges import is_zero, shape_of
from kerngen.runtime.device.shaders import Bound, ShaderCache, ShaderKey
from kerngen.runtime.errors import Error, FeatureError, LimitError
from kerngen.runtime.tensor import STORAGE_ALIGNMENT
from kerngen.runtime.values.elements import Element, f16, u32
from kerngen.runtime.values.fields import holds_half
from kerngen.runtime.values.shapes import Shape, round_up

if TYPE_CHECKING:
    from kerngen.runtime.calls.kernel import Dims, Kernel, Temporary


MOST_TERMS = 2**31
"""The most terms that a shader counts: from here on, counter plus stride may pass 32 bits."""


@final
class Planner:
    """Makes call plans for one device."""

    def __init__(self, capabilities: Capabilities, shaders: ShaderCache) -> None:
        """Plan within the capabilities."""
        self._capabilities = capabilities
        self._shaders = shaders

    def plan(self, kernel: Kernel, signature: CheckedShapes) -> CallPlan:
        """Return a call's plan: choose schedules and variants, and compile their shaders."""
        # 1. The dispatches.
        self._check_features(kernel)
        dims = signature.dims
        selection = self._select(kernel, dims)
        # 2. The memory of the call itself: temporaries, then scratch buffers of words.
        temporaries = _temporaries(kernel, signature, selection)
        inner = (
            *(self._made(spec.element, shape) for spec, shape in temporaries),
            *(
                self._made(u32, (_count(kernel, scratch.length, dims),))
                for scratch in selection.scratch
            ),
        )
        self._check_sizes(kernel, signature, inner)
        # 3. Slots number all tensors: parameters, outputs, temporaries; scratch follows.
        names = [spec.name for spec in kernel.tensors]
        names += [spec.name for spec, _ in temporaries]
        slots = {name: slot for slot, name in enumerate(names)}
        running = [] if is_zero(kernel, dims) else _recorded(kernel, selection, dims)
        steps = tuple(self._step(kernel, each, slots, dims) for each in running)
        outputs = [
            self._made(spec.element, shape)
            for spec, shape in zip(kernel.outputs, signature.outputs, strict=True)
        ]
        return CallPlan(
            signature=signature,
            steps=steps,
            outputs=tuple(outputs),
            inner=inner if steps else (),
            written=tuple(
                slot
                for slot, spec in enumerate(kernel.tensors)
                if spec.access != "read"
            ),
            conflicts=_conflicts(kernel),
            mixed=_mixed([each.dispatch for each in running], kernel),
            stride=self._stride(kernel, steps),
        )

    def choices(self, kernel: Kernel, dims: Dims) -> tuple[Choice, ...]:
        """Return the schedules that `plan` would choose, without compiling them."""
        selection = self._select(kernel, dims)
        running = _recorded(kernel, selection, dims)
        return tuple(
            Choice(
                stage=origin.stage,
                strategy=origin.strategy,
                shaders=tuple(r.dispatch.wgsl for r in running if r.origin is origin),
            )
            for origin in selection.strategies
        )

    def _made(self, element: type[Element], shape: Shape) -> Made:
        """Return a tensor of a plan, with its sizes."""
        return Made.of(element, shape, self._capabilities.buffer_bytes)

    def _stride(self, kernel: Kernel, steps: Sequence[PlannedDispatch]) -> int:
        """Return the bytes of the uniform struct in the arena, 0 if no step reads it."""
        if not any(step.shader.uniform_bytes for step in steps):
            return 0
        return round_up(kernel.uniform.SIZE, self._capabilities.uniform_alignment)

    def _check_features(self, kernel: Kernel) -> None:
        """Raise FeatureError if the kernel has f16 and the device lacks it."""
        if self._capabilities.info.f16:
            return
        elements = [(spec.name, spec.element) for spec in kernel.tensors]
        elements += [(spec.name, spec.element) for spec in kernel.temporaries]
        elements += [(spec.name, spec.element) for spec in kernel.scalars]
        for name, element in elements:
            if holds_half(element):
                held = "has f16 elements" if element is f16 else "holds f16 numbers"
                raise FeatureError(
                    f"{kernel.place}: '{name}' {held}; "
                    f"{self._capabilities.lack_of('shader-f16')}."
                )

    def _select(self, kernel: Kernel, dims: Dims) -> SelectedDispatches:
        """Return the selected dispatches for some dims, in order."""
        info = self._capabilities.info
        try:
            return select(kernel.body, dims, info)
        except NoCaseError as error:
            raise LimitError(
                f"{kernel.place}: no schedule of stage '{error.stages[0]}' fits the "
                f"adapter, which has {info.workgroup_bytes} bytes of workgroup memory, "
                f"{info.invocations} invocations and "
                f"{'subgroups' if info.subgroups else 'no subgroups'}."
            ) from None
        except TooManyStepsError as error:
            raise LimitError(
                f"{kernel.place}: stage '{error.stage}' takes {error.count} dispatches, "
                f"one for each step; a call may have {MOST_DISPATCHES}. Make several "
                "calls of fewer steps, each of which starts from the end of the last."
            ) from None

    def _check_sizes(
        self, kernel: Kernel, signature: CheckedShapes, inner: Sequence[Made]
    ) -> None:
        """Raise LimitError if a tensor of the call is larger than the adapter binds."""
        lengths = signature.dims
        specs = [
            (f"'{spec.name}'", self._made(spec.element, shape_of(spec.axes, lengths)))
            for spec in kernel.tensors
        ]
        specs += [("a temporary", item) for item in inner]
        limit = self._capabilities.tensor_bytes
        for name, item in specs:
            if round_up(item.nbytes, STORAGE_ALIGNMENT) > limit:
                raise LimitError(
                    f"{kernel.place}: {name} of shape {item.shape} takes {item.nbytes} "
                    f"bytes; the adapter binds at most {limit}."
                )

    def _step(
        self,
        kernel: Kernel,
        planned: Planned,
        slots: Mapping[str, int],
        dims: Dims,
    ) -> PlannedDispatch:
        """Return a dispatch with its shader compiled and its bindings as slots."""
        dispatch = planned.dispatch
        self._check_dispatch(kernel, dispatch, dims)
        x, y = self._fold(kernel, dispatch, _count(kernel, dispatch.groups, dims))
        text = kernel.shader(dispatch)
        key = ShaderKey.of(
            text,
            dispatch.entry,
            uniform_bytes=kernel.uniform.SIZE if dispatch.uses_uniform else 0,
            writes=tuple(binding.writes for binding in dispatch.bindings),
            constants=dispatch.constants,
        )
        # Scratch buffers are numbered by the selection, and come after all tensors.
        bound = tuple(
            (
                len(slots) + planned.scratch[binding.name]
                if binding.name in planned.scratch
                else slots[binding.name]
            )
            for binding in dispatch.bindings
        )
        origin = planned.origin
        return PlannedDispatch(
            shader=self._shaders.compile(
                key, text, f"'{kernel.name}' ({dispatch.wgsl})"
            ),
            slots=bound,
            pick=_picker(bound),
            x=x,
            y=y,
            origin=Origin(origin.stage, origin.strategy, dispatch.wgsl),
        )

    def _check_dispatch(self, kernel: Kernel, dispatch: Dispatch, dims: Dims) -> None:
        """Raise LimitError if the adapter can't run a dispatch of this size."""
        capabilities, what = self._capabilities, f"{kernel.place}: '{dispatch.wgsl}'"
        if len(dispatch.bindings) > capabilities.storage_buffers:
            raise LimitError(
                f"{what} binds {len(dispatch.bindings)} tensors; the adapter allows "
                f"{capabilities.storage_buffers}."
            )
        terms, trips = evaluate(dispatch.terms, dims), evaluate(dispatch.trips, dims)
        if terms >= MOST_TERMS:
            raise LimitError(
                f"{what} counts to {terms}; it can count to less than {MOST_TERMS}. "
                "Use smaller tensors."
            )
        most = capabilities.loop_turns
        if most and trips > most:
            raise LimitError(
                f"{what} runs a loop {trips} times, and this adapter silently stops "
                f"after {most}. Use smaller tensors here, or another adapter."
            )

    def _fold(self, kernel: Kernel, dispatch: Dispatch, groups: int) -> tuple[int, int]:
        """Return the workgroups in x and y, as equal rows; shaders skip those beyond.

        70,000 groups, where 65,535 are allowed along an axis, become 35,000 x 2.  Of
        131,071, which become 43,691 x 3, two are skipped.
        """
        limit = self._capabilities.workgroups
        if groups <= limit:
            return groups, 1
        if groups > limit * limit:
            raise LimitError(
                f"{kernel.place}: '{dispatch.wgsl}' needs {groups} workgroups; the "
                f"adapter runs at most {limit} x {limit}."
            )
        y = -(-groups // limit)
        return -(-groups // y), y


def _recorded(
    kernel: Kernel, selection: SelectedDispatches, dims: Dims
) -> list[Planned]:
    """Return the selected dispatches that have workgroups: none are of empty tensors."""
    return [
        each
        for each in selection.dispatches
        if _count(kernel, each.dispatch.groups, dims)
    ]


def _count(kernel: Kernel, size: Size, dims: Dims) -> int:
    """Return the value of a size: a number of workgroups, or of elements."""
    count = evaluate(size, dims)
    if count < 0:
        folder = kernel.folder
        place = f" in {folder}" if isinstance(folder, Path) else ""
        raise Error(
            f"{kernel.place}: its plan{place} asks for {count} workgroups or elements, "
            f"by '{to_text(size)}'. Run 'kerngen build' again."
        )
    return count


def _picker(
    slots: tuple[int, ...],
) -> Callable[[Sequence[Bound]], tuple[Bound, ...]]:
    """Return the function that selects the bindings of these slots, as a tuple."""
    # In C; of one slot, `itemgetter` would return the item and no tuple.
    if len(slots) > 1:
        return itemgetter(*slots)
    return lambda bindings: tuple(bindings[slot] for slot in slots)


def _temporaries(
    kernel: Kernel, signature: CheckedShapes, selection: SelectedDispatches
) -> list[tuple[Temporary, Shape]]:
    """Return the temporaries that a dispatch binds, with their shapes.

    Which ones are bound depends on the schedules: a fused one needs fewer.
    """
    bound = {b.name for each in selection.dispatches for b in each.dispatch.bindings}
    pairs = zip(kernel.temporaries, signature.temporaries, strict=True)
    return [(spec, shape) for spec, shape in pairs if spec.name in bound]


def _conflicts(kernel: Kernel) -> tuple[Pair, ...]:
    """Return the pairs of arguments of which at least one is written."""
    return tuple(
        (i, j)
        for (i, first), (j, second) in combinations(enumerate(kernel.tensors), 2)
        if not (first.access == second.access == "read")
    )


def _mixed(dispatches: Sequence[Dispatch], kernel: Kernel) -> frozenset[Pair]:
    """Return the pairs of arguments of which a dispatch reads one and writes the other.

    WebGPU refuses to bind one buffer in both ways, even if the ranges are apart.
    """
    numbers = {spec.name: number for number, spec in enumerate(kernel.tensors)}
    pairs: set[Pair] = set()
    for dispatch in dispatches:
        bound = [b for b in dispatch.bindings if b.name in numbers]
        for first, second in combinations(bound, 2):
            if first.writes != second.writes:
                i, j = sorted((numbers[first.name], numbers[second.name]))
                pairs.add((i, j))
    return frozenset(pairs)

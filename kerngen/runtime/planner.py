"""Making a plan: schedules, variants, workgroups and compiled shaders for some shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from operator import itemgetter
from typing import TYPE_CHECKING, final

from kerngen.plan.size import Size, evaluate, holds
from kerngen.plan.text import to_text
from kerngen.plan.tree import Dispatch, Schedule, Stage, Variant
from kerngen.runtime.checks import Signature
from kerngen.runtime.choices import Choice
from kerngen.runtime.elements import f16, u32
from kerngen.runtime.errors import Error, FeatureError, LimitError
from kerngen.runtime.fields import holds_half
from kerngen.runtime.plan import Capabilities, Inner, Origin, Pair, Plan, Step
from kerngen.runtime.ranges import shape_of
from kerngen.runtime.shaders import Bound, ShaderKey, Shaders
from kerngen.runtime.shapes import round_up
from kerngen.runtime.tensor import STORAGE_ALIGNMENT

if TYPE_CHECKING:
    from kerngen.runtime.kernel import Dims, Kernel


MOST_TERMS = 2**31
"""Above this, a lane's counter and its stride might pass 32 bits."""


@final
class Planner:
    """Makes plans for a device."""

    def __init__(self, capabilities: Capabilities, shaders: Shaders) -> None:
        """Plan within the capabilities."""
        self._capabilities = capabilities
        self._shaders = shaders

    def plan(self, kernel: Kernel, signature: Signature) -> Plan:
        """Choose schedules and variants, and compile what they run."""
        self._check_features(kernel)
        dims = signature.dims
        chosen = list(self._choose(kernel, dims))
        variants = [variant for _, _, variant in chosen]
        bound = _bound(variants)
        inner = _inner(kernel, signature, variants, bound)
        self._check_sizes(kernel, signature, inner)
        names = _slot_names(kernel, variants, bound)
        running = [
            (Origin(stage.name, schedule.strategy, d.wgsl), d, names[id(variant)])
            for stage, schedule, variant in chosen
            for d in _recorded(variant, dims)
        ]
        steps = tuple(self._step(kernel, *each, dims) for each in running)
        outputs = [
            Inner(spec.element, shape)
            for spec, shape in zip(kernel.outputs, signature.outputs, strict=True)
        ]
        return Plan(
            signature=signature,
            steps=steps,
            outputs=tuple((item.element, item.shape) for item in outputs),
            output_bytes=tuple(item.nbytes for item in outputs),
            inner=inner if steps else (),
            inner_bytes=sum(item.nbytes for item in inner),
            written=tuple(
                slot
                for slot, spec in enumerate(kernel.tensors)
                if spec.access != "read"
            ),
            conflicts=_conflicts(kernel),
            mixed=_mixed([dispatch for _, dispatch, _ in running], kernel),
            stride=self._stride(kernel, steps),
        )

    def choices(self, kernel: Kernel, dims: Dims) -> tuple[Choice, ...]:
        """Return what `plan` would run for some dims, compiling nothing."""
        return tuple(
            Choice(
                stage=stage.name,
                strategy=schedule.strategy,
                shaders=tuple(d.wgsl for d in _recorded(variant, dims)),
            )
            for stage, schedule, variant in self._choose(kernel, dims)
        )

    def _stride(self, kernel: Kernel, steps: Sequence[Step]) -> int:
        if not any(step.shader.uniform_bytes for step in steps):
            return 0
        return round_up(kernel.uniform.SIZE, self._capabilities.uniform_alignment)

    def _check_features(self, kernel: Kernel) -> None:
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

    def _choose(
        self, kernel: Kernel, dims: Dims
    ) -> Iterator[tuple[Stage, Schedule, Variant]]:
        """Yield what runs, in order; a schedule runs all the stages that it covers."""
        position = 0
        while position < len(kernel.stages):
            stage = kernel.stages[position]
            schedule, variant = self._choose_variant(kernel, stage, dims)
            yield stage, schedule, variant
            position += schedule.covers

    def _choose_variant(
        self, kernel: Kernel, stage: Stage, dims: Dims
    ) -> tuple[Schedule, Variant]:
        """Return the first schedule of a stage that applies, and its variant."""
        info = self._capabilities.info
        values = {**dims, **info.facts}
        for schedule in stage.schedules:
            if info.offers(schedule) and holds(schedule.when, values):
                for variant in schedule.variants:
                    if holds(variant.when, values):
                        return schedule, variant
        raise LimitError(
            f"{kernel.place}: no schedule of stage '{stage.name}' fits the adapter, "
            f"which has {info.workgroup_bytes} bytes of workgroup memory, "
            f"{info.invocations} invocations and "
            f"{'subgroups' if info.subgroups else 'no subgroups'}."
        )

    def _check_sizes(
        self, kernel: Kernel, signature: Signature, inner: Sequence[Inner]
    ) -> None:
        lengths = signature.dims
        specs = [
            (f"'{spec.name}'", Inner(spec.element, shape_of(spec.axes, lengths)))
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
        origin: Origin,
        dispatch: Dispatch,
        names: Mapping[str, int],
        dims: Dims,
    ) -> Step:
        capabilities = self._capabilities
        if len(dispatch.bindings) > capabilities.storage_buffers:
            raise LimitError(
                f"{kernel.place}: '{dispatch.wgsl}' binds {len(dispatch.bindings)} "
                f"tensors; the adapter allows {capabilities.storage_buffers}."
            )
        terms, trips = evaluate(dispatch.terms, dims), evaluate(dispatch.trips, dims)
        if terms >= MOST_TERMS:
            raise LimitError(
                f"{kernel.place}: '{dispatch.wgsl}' reduces {terms} terms; "
                f"it can count fewer than {MOST_TERMS}."
            )
        most = capabilities.loop_turns
        if most and trips > most:
            raise LimitError(
                f"{kernel.place}: '{dispatch.wgsl}' runs a loop {trips} "
                f"times, and this adapter silently stops after {most}. Use smaller "
                "tensors here, or another adapter."
            )
        x, y = self._fold(kernel, dispatch, _count(dispatch.groups, dims))
        text = kernel.shader(dispatch)
        key = ShaderKey.of(
            text,
            uniform_bytes=kernel.uniform.SIZE if dispatch.uses_uniform else 0,
            writes=tuple(binding.writes for binding in dispatch.bindings),
            constants=dispatch.constants,
        )
        label = f"'{kernel.name}' ({dispatch.wgsl})"
        slots = tuple(names[binding.name] for binding in dispatch.bindings)
        return Step(
            shader=self._shaders.compile(key, text, label),
            slots=slots,
            pick=_picker(slots),
            x=x,
            y=y,
            origin=origin,
        )

    def _fold(self, kernel: Kernel, dispatch: Dispatch, groups: int) -> tuple[int, int]:
        """Return the workgroups in x and y; shaders skip what is beyond the total."""
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


def _recorded(variant: Variant, dims: Dims) -> Iterator[Dispatch]:
    """Yield the dispatches that have workgroups."""
    return (each for each in variant.dispatches if _count(each.groups, dims))


def _count(size: Size, dims: Dims) -> int:
    """Return a number of things: workgroups, elements."""
    count = evaluate(size, dims)
    if count < 0:
        raise Error(
            f"A plan asks for {count} of '{to_text(size)}'. Run 'kerngen build' again."
        )
    return count


def _picker(
    slots: tuple[int, ...],
) -> Callable[[Sequence[Bound]], tuple[Bound, ...]]:
    if len(slots) > 1:
        return itemgetter(*slots)
    return lambda bindings: tuple(bindings[slot] for slot in slots)


def _bound(variants: Sequence[Variant]) -> frozenset[str]:
    """Return the names of all that the variants bind."""
    return frozenset(
        binding.name
        for variant in variants
        for dispatch in variant.dispatches
        for binding in dispatch.bindings
    )


def _inner(
    kernel: Kernel,
    signature: Signature,
    variants: Sequence[Variant],
    bound: frozenset[str],
) -> tuple[Inner, ...]:
    temporaries = [
        Inner(spec.element, shape)
        for spec, shape in zip(kernel.temporaries, signature.temporaries, strict=True)
        if spec.name in bound
    ]
    scratch = [
        Inner(u32, (_count(item.length, signature.dims),))
        for variant in variants
        for item in variant.scratch
    ]
    return (*temporaries, *scratch)


def _slot_names(
    kernel: Kernel, variants: Sequence[Variant], bound: frozenset[str]
) -> dict[int, dict[str, int]]:
    """Number the tensors by name, for each variant: scratch is a variant's own."""
    shared = [spec.name for spec in kernel.tensors]
    shared += [spec.name for spec in kernel.temporaries if spec.name in bound]
    common = {name: number for number, name in enumerate(shared)}
    following = len(shared)
    names: dict[int, dict[str, int]] = {}
    for variant in variants:
        own = {s.name: following + i for i, s in enumerate(variant.scratch)}
        names[id(variant)] = common | own
        following += len(variant.scratch)
    return names


def _conflicts(kernel: Kernel) -> tuple[Pair, ...]:
    """Return the pairs of arguments of which at least one is written."""
    return tuple(
        (i, j)
        for (i, first), (j, second) in combinations(enumerate(kernel.tensors), 2)
        if not (first.access == second.access == "read")
    )


def _mixed(dispatches: Sequence[Dispatch], kernel: Kernel) -> frozenset[Pair]:
    """Return the pairs of arguments that some dispatch binds, only one for writing."""
    numbers = {spec.name: number for number, spec in enumerate(kernel.tensors)}
    pairs: set[Pair] = set()
    for dispatch in dispatches:
        bound = [b for b in dispatch.bindings if b.name in numbers]
        for first, second in combinations(bound, 2):
            if first.writes != second.writes:
                i, j = sorted((numbers[first.name], numbers[second.name]))
                pairs.add((i, j))
    return frozenset(pairs)

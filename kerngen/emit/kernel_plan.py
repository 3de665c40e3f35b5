"""The plan of a kernel, as the runtime reads it, of what scheduling made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

from kerngen.emit.python_names import KernelNames, module_names
from kerngen.emit.signature import element_name, parameter_element
from kerngen.ir.nodes import Expr, Kernel, Module, Role, UniformValue
from kerngen.ir.sizes import SizeMaker
from kerngen.ir.subscript_checks import Gather as IrGather
from kerngen.ir.subscript_checks import RangeCheck as IrRangeCheck
from kerngen.ir.subscript_checks import checks_of
from kerngen.ir.walk import walk
from kerngen.plan.size import (
    ALWAYS,
    Guard,
    Size,
    Symbol,
    children,
)
from kerngen.plan.tree import (
    Access,
    DerivedDim,
    Dispatch,
    Gather,
    KernelPlan,
    ModulePlan,
    RangeCheck,
    ScalarPlan,
    Schedule,
    Stage,
    TemporaryPlan,
    TensorPlan,
    Term,
    Variant,
)
from kerngen.schedule.program import KernelProgram, ScheduledStage, Shader

_ACCESS: Final[dict[Role, Access]] = {
    Role.INPUT: "read",
    Role.UPDATE: "update",
    Role.OUTPUT: "write",
}


def emit_plan(
    module: Module, programs: Iterable[KernelProgram], source_sha: str
) -> ModulePlan:
    """Return the plans of a module's kernels."""
    names = module_names(module).kernels
    plans = tuple(plan_of(p, names[p.staged.kernel.name])[0] for p in programs)
    return ModulePlan(module.path, source_sha[:16], plans)


def plan_of(
    program: KernelProgram, names: KernelNames
) -> tuple[KernelPlan, tuple[tuple[Expr, bool], ...]]:
    """Return the plan of a kernel, with the names that Python has for its parameters.

    With it come the expressions of its `computed` symbols, and whether each wraps.
    """
    kernel = program.staged.kernel
    renamed = _renamed(names)
    hosts = {host.name: host.value for host in kernel.hosts}
    taken = frozenset((*kernel.lengths, *names.values.values()))
    maker = SizeMaker(hosts, renamed, taken)
    plan = KernelPlan(
        name=kernel.name,
        origin=f"{kernel.span.source.name}:{kernel.span.line}",
        dims=kernel.dims,
        tensors=tuple(
            TensorPlan(renamed(x.name), element_name(x), x.extents, _ACCESS[x.role])
            for x in kernel.tensors
        ),
        scalars=tuple(
            ScalarPlan(renamed(p.name), parameter_element(p)) for p in kernel.parameters
        ),
        stages=tuple(
            Stage(stage.name, tuple(_schedule(s, maker) for s in stage.schedules))
            for stage in program.stages
        ),
        temporaries=tuple(
            TemporaryPlan(renamed(x.name), element_name(x), x.extents)
            for x in program.temporaries
        ),
        derived=tuple(
            DerivedDim(dim.name, dim.text, maker.size(dim.value))
            for dim in kernel.derived
        ),
        checks=tuple(_range_checks(kernel, maker)),
        gathers=tuple(
            Gather(renamed(g.tensor), g.axis, g.extent, g.around)
            for g in checks_of(kernel)
            if isinstance(g, IrGather)
        ),
    )
    computed = tuple(maker.computed)
    read = dict.fromkeys(_scalars_read(plan))
    read |= dict.fromkeys(renamed(name) for e, _ in computed for name in _scalars(e))
    made = tuple(maker.computed.values())
    return (
        replace(plan, guards=tuple(n for n in read if n not in made), computed=made),
        computed,
    )


def _scalars(expr: Expr) -> Iterator[str]:
    """Yield the parameters that an expression reads."""
    for node in walk(expr):
        if isinstance(node, UniformValue) and not node.name.startswith("adapter."):
            yield node.name


def _renamed(names: KernelNames) -> Callable[[str], str]:
    return lambda name: names.values.get(name, name)


def _range_checks(kernel: Kernel, maker: SizeMaker) -> Iterator[RangeCheck]:
    wrapping = replace(maker, wraps=True)
    for check in checks_of(kernel):
        if isinstance(check, IrRangeCheck):
            yield RangeCheck(
                check.text,
                maker.name(check.tensor),
                check.axis,
                check.extent,
                tuple(Term(wrapping.size(c), extent) for extent, c in check.terms),
                check.around,
                wrapping.size(check.offset),
                check.is_guarded,
            )


def _schedule(schedule: ScheduledStage, maker: SizeMaker) -> Schedule:
    shaders = [shader for v in schedule.variants for shader in v.shaders]
    return Schedule(
        strategy=schedule.label,
        variants=tuple(
            Variant(
                variant.name,
                tuple(_dispatch(shader, maker) for shader in variant.shaders),
                variant.when,
                variant.scratch,
            )
            for variant in schedule.variants
        ),
        when=ALWAYS if schedule.guard is None else maker.guard(schedule.guard),
        workgroup_bytes=max(shader.workgroup_bytes for shader in shaders),
        invocations=max(shader.workgroup_size for shader in shaders),
        covers=schedule.covers,
        subgroups=any(shader.subgroups for shader in shaders),
    )


def _dispatch(shader: Shader, maker: SizeMaker) -> Dispatch:
    return Dispatch(
        wgsl=shader.stem,
        bindings=tuple(
            replace(binding, name=maker.name(binding.name))
            for binding in shader.bindings
        ),
        groups=shader.groups,
        uses_uniform=shader.uses_uniform,
        trips=shader.trips,
        terms=shader.terms,
        constants=shader.constants,
    )


# The scalars that decide how a call runs


def _scalars_read(plan: KernelPlan) -> dict[str, None]:
    """Return the scalars that guards, lengths and checks read, in that order."""
    known = {*plan.dims, *(dim.name for dim in plan.derived)}
    names = (name for size in _read(plan) for name in _symbols(size))
    read = (n for n in names if n not in known and not n.startswith("adapter."))
    # A part comes after what it is of, which messages show.
    return dict.fromkeys(x for n in read for x in (n.split(".")[0], n))


def _read(plan: KernelPlan) -> Iterator[Size | Guard]:
    for stage in plan.stages:
        yield from (schedule.when for schedule in stage.schedules)
    yield from (dim.value for dim in plan.derived)
    for check in plan.checks:
        yield check.offset
        yield from (term.coefficient for term in check.terms)


def _symbols(part: Size | Guard) -> Iterator[str]:
    if isinstance(part, Symbol):
        yield part.name
    for each in children(part):
        yield from _symbols(each)

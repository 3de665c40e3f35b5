"""From a scheduled kernel to its plan, as the runtime reads it.

    KernelProgram                     tree.KernelPlan
    StageChoice, ScheduledCase    ->  Choice, Case        of strategies
    Variant                       ->  Choice, Case        of shaders, by lengths
    DispatchShader                ->  Dispatch
    IR expressions                ->  sizes and guards    by a `SizeMaker`

Names become Python's on the way: `lambda` is `lambda_`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, final

from kerngen.check.items.gradients import kept_name
from kerngen.emit.python_names import KernelNames, kernel_names
from kerngen.emit.signature import element_name, parameter_element
from kerngen.ir.analysis.subscript_checks import (
    BoundedSubscript,
    ClampedRead,
    checks_of,
)
from kerngen.ir.module import Module
from kerngen.ir.nodes import Expr, Kernel, Role, UniformValue
from kerngen.ir.sizes import SizeMaker
from kerngen.ir.walk import walk
from kerngen.plan import tree
from kerngen.plan.size import (
    ALWAYS,
    any_of,
    symbols,
)
from kerngen.schedule.program import (
    DispatchShader,
    KernelProgram,
    ScheduledCase,
    StageChoice,
    Variant,
)

# The words of plans for the roles of tensors.
_ACCESS: Final[dict[Role, tree.Access]] = {
    Role.INPUT: "read",
    Role.UPDATE: "update",
    Role.OUTPUT: "write",
}


@final
@dataclass(frozen=True, slots=True)
class PlannedKernel:
    """A kernel with its plan, in which parameters have their Python names.

    `computed` has, for each `computed` symbol of the plan, its expression and whether its
    integers wrap.
    """

    kernel: Kernel
    plan: tree.KernelPlan
    computed: tuple[tuple[Expr, bool], ...]


def plan_kernels(
    module: Module, programs: Iterable[KernelProgram]
) -> tuple[PlannedKernel, ...]:
    """Return the plans of a module's kernels; `programs` are the scheduled kernels."""
    names = kernel_names(module)
    return tuple(plan_kernel(program, names) for program in programs)


def plan_kernel(
    program: KernelProgram, names_of: Mapping[str, KernelNames]
) -> PlannedKernel:
    """Return the plan of a kernel, in which its parameters have Python's names.

    `names_of` has the names of all kernels of the module, and of those that they are
    gradients of, by the kernel's name.
    """
    kernel = program.staged.kernel
    names = names_of[kernel.name]
    renamed = _renamed(names)
    hosts = {host.name: host.value for host in kernel.hosts}
    taken = frozenset((*kernel.lengths, *names.values.values()))
    parameters = (parameter.name for parameter in kernel.parameters)
    others = {name: renamed(name) for name in parameters if renamed(name) != name}
    maker = SizeMaker(hosts, renamed, taken, others)
    plan = replace(_plan(program, renamed, maker), gradient=_gradient(kernel, names_of))
    # The maker has noted the expressions that are no sizes, each with its symbol.
    computed = tuple(maker.computed)
    # Guards: the scalars that decide how a call runs, in the order of their first use.
    read = dict.fromkeys(_scalars_read(plan))
    read |= dict.fromkeys(renamed(name) for e, _ in computed for name in _scalars(e))
    made = tuple(maker.computed.values())
    guards = tuple(name for name in read if name not in made)
    return PlannedKernel(kernel, replace(plan, guards=guards, computed=made), computed)


def _plan(
    program: KernelProgram, renamed: Callable[[str], str], maker: SizeMaker
) -> tree.KernelPlan:
    """Return a plan but for its gradient, and for the scalars that its sizes read."""
    kernel = program.staged.kernel
    return tree.KernelPlan(
        name=kernel.name,
        origin=f"{kernel.span.source.name}:{kernel.span.line}",
        dims=kernel.dims,
        tensors=tuple(
            tree.TensorPlan(
                renamed(x.name), element_name(x), x.extents, _ACCESS[x.role]
            )
            for x in kernel.tensors
        ),
        scalars=tuple(
            tree.ScalarPlan(renamed(p.name), parameter_element(p))
            for p in kernel.parameters
        ),
        body=_sequence(program.choices, maker),
        temporaries=tuple(
            tree.TemporaryPlan(renamed(x.name), element_name(x), x.extents)
            for x in program.temporaries
        ),
        derived=tuple(
            tree.DerivedDim(dim.name, dim.text, maker.size(dim.value))
            for dim in kernel.derived
        ),
        requires=tuple(
            tree.Requirement(each.text, maker.guard(each.condition))
            for each in kernel.requires
        ),
        checks=tuple(_range_checks(kernel, maker)),
        gathers=tuple(
            tree.Gather(renamed(g.tensor), g.axis, g.extent, g.around)
            for g in checks_of(kernel)
            if isinstance(g, ClampedRead)
        ),
    )


def _scalars(expr: Expr) -> Iterator[str]:
    """Yield the parameters that an expression reads."""
    for node in walk(expr):
        if isinstance(node, UniformValue) and not node.name.startswith("adapter."):
            yield node.name


def _renamed(names: KernelNames) -> Callable[[str], str]:
    """Return the function from a kernel's names to Python's; others stay."""
    return lambda name: names.values.get(name, name)


def _gradient(
    kernel: Kernel, names_of: Mapping[str, KernelNames]
) -> tree.GradientOf | None:
    """Return the derivation of a gradient kernel, in Python's names."""
    gradient = kernel.gradient
    if gradient is None:
        return None
    renamed = _renamed(names_of[kernel.name])
    forward = names_of[gradient.kernel]
    theirs = _renamed(forward)
    own = {new for _, new in (*gradient.from_, *gradient.lengths)}
    lets = {x for x in gradient.given if x not in forward.outputs}
    kept = _renamed(names_of[kept_name(gradient.kernel)]) if lets else theirs
    arguments = (
        (kept(x) if x in lets else theirs(x), renamed(x))
        for x in kernel.order
        if x not in own
    )
    return tree.GradientOf(
        gradient.kernel,
        arguments=tuple((of, own) for of, own in arguments if of != own),
        by=tuple((theirs(of), renamed(own)) for of, own in gradient.by),
        from_=tuple((theirs(of), renamed(own)) for of, own in gradient.from_),
        given=tuple(map(renamed, gradient.given)),
        lengths=tuple((dim, renamed(own)) for dim, own in gradient.lengths),
    )


def _range_checks(kernel: Kernel, maker: SizeMaker) -> Iterator[tree.RangeCheck]:
    """Yield the checks of affine subscripts, with sizes in 32-bit arithmetic."""
    wrapping = replace(maker, wraps=True)
    for check in checks_of(kernel):
        if isinstance(check, BoundedSubscript):
            yield tree.RangeCheck(
                check.text,
                maker.name(check.tensor),
                check.axis,
                check.extent,
                tuple(
                    tree.AffineTerm(wrapping.size(c), extent)
                    for extent, c in check.terms
                ),
                check.around,
                wrapping.size(check.offset),
                check.is_guarded,
            )


def _sequence(choices: Iterable[StageChoice], maker: SizeMaker) -> tree.Sequence:
    return tuple(
        tree.Choice(_merged(_cases(choice, maker)), choice.stages) for choice in choices
    )


def _merged(cases: Iterable[tree.Case]) -> tuple[tree.Case, ...]:
    """Return cases; neighbours that differ in their condition alone are one, by `or`."""
    runs = groupby(cases, lambda case: replace(case, when=ALWAYS))
    return tuple(
        replace(case, when=any_of(*(each.when for each in run))) for case, run in runs
    )


def _cases(choice: StageChoice, maker: SizeMaker) -> Iterator[tree.Case]:
    yield from (_case(case, maker) for case in choice.cases)
    if choice.otherwise:
        yield tree.Case("", _sequence(choice.otherwise, maker))


def _case(case: ScheduledCase, maker: SizeMaker) -> tree.Case:
    """Return a case: the dispatches of its schedule, then choices for the later stages."""
    schedule = case.schedule
    rest = _sequence(case.rest, maker)
    body, scratch = _variants(schedule.variants, maker, alone=not rest)
    return tree.Case(
        name=schedule.label,
        body=(*body, *rest),
        when=ALWAYS if case.guard is None else maker.guard(case.guard),
        needs=schedule.needs,
        scratch=scratch,
    )


def _variants(
    variants: tuple[Variant, ...], maker: SizeMaker, *, alone: bool
) -> tuple[tree.Sequence, tuple[tree.Scratch, ...]]:
    """Return the choice between variants as steps, and the scratch memory of all of them.

    If they are `alone`, without other choices behind them, their common last steps and equal
    scratch memory are written once, for the case around them:

        reduce | scratch parts[m * s1]
          aligned | when n % 4 == 0 | run top(x, parts*)
          edge | run top:edge(x, parts*)
          run finish(top*, parts)                           the common end

    A single variant without a name or scratch memory is its steps.
    """
    cases = tuple(
        tree.Case(
            variant.name,
            _dispatches(variant, maker),
            maker.own(variant.when),
            scratch=tuple(
                replace(each, length=maker.own(each.length)) for each in variant.scratch
            ),
        )
        for variant in variants
    )
    first = cases[0]
    if len(cases) == 1 and not first.name and not first.scratch:
        return first.body, ()
    end = _end(cases) if alone else ()
    if not end:
        return (tree.Choice(cases),), ()
    own = (replace(each, body=each.body[: -len(end)], scratch=()) for each in cases)
    return (tree.Choice(_merged(own)), *end), first.scratch


def _end(cases: tuple[tree.Case, ...]) -> tree.Sequence:
    """Return the last steps of all cases, if they and the scratch memory are the same."""
    # Each case keeps one step at least; the longest common end is taken.
    first, *others = cases
    if not others or any(each.scratch != first.scratch for each in others):
        return ()
    most = min(len(each.body) for each in cases) - 1
    lengths = range(most, 0, -1)
    ends = (first.body[-length:] for length in lengths)
    same = (end for end in ends if all(x.body[-len(end) :] == end for x in others))
    return next(same, ())


def _dispatches(variant: Variant, maker: SizeMaker) -> tree.Sequence:
    """Return a variant's dispatches, of which the last ones may be repeated."""
    found = tuple(_dispatch(shader, maker) for shader in variant.shaders)
    if variant.again is None:
        return found
    first = len(found) - variant.repeated
    return (*found[:first], tree.Repeat(maker.own(variant.again), found[first:]))


def _dispatch(shader: DispatchShader, maker: SizeMaker) -> tree.Dispatch:
    return tree.Dispatch(
        wgsl=shader.name,
        bindings=tuple(
            replace(binding, name=maker.name(binding.name))
            for binding in shader.bindings
        ),
        groups=maker.own(shader.groups),
        uses_uniform=shader.uses_uniform,
        trips=maker.own(shader.trips),
        terms=maker.own(shader.terms),
        constants=shader.constants,
    )


# The scalars that decide how a call runs


def _scalars_read(plan: tree.KernelPlan) -> dict[str, None]:
    """Return the scalars that guards, lengths and checks read, in that order."""
    known = {*plan.dims, *(dim.name for dim in plan.derived)}
    names = (name for size in tree.sizes_of(plan) for name in symbols(size))
    read = (n for n in names if n not in known and not n.startswith("adapter."))
    # `camera` comes before its part `camera.width`: messages show the whole.
    return dict.fromkeys(x for n in read for x in (n.split(".")[0], n))

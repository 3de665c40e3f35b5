"""Checking gradient items: `kernel g = gradient of f by x given y;`.

The function that derives is passed in, as imports only go forward: `kerngen.gradient` comes
after `kerngen.check`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias, final

from kerngen.check import faults as diag
from kerngen.check.environment import Environment
from kerngen.check.files.checked_file import CheckedFile, link
from kerngen.check.schedules import Scheduled, check_schedule, report_faults
from kerngen.check.scope import Scope, TensorSymbol, ValueSymbol, parameter_symbol
from kerngen.ir import nodes as ir
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children
from kerngen.source.diagnostic import Faults
from kerngen.source.order import needed_first
from kerngen.source.similar import closest
from kerngen.source.text import Span
from kerngen.syntax import ast

Functions: TypeAlias = Mapping[str, ir.Function]


class Derive(Protocol):
    """A function that derives the kernel of a gradient item; `kerngen.gradient` has it."""

    def __call__(
        self,
        item: ast.GradientItem,
        kernel: ir.Kernel,
        functions: Functions,
        warnings: Faults,
    ) -> ir.Kernel:
        """Return the gradient of a kernel; raise `CompileError` if it has none.

        A warning is added to `warnings` for each read that makes the gradient slow.
        """
        ...


@final
@dataclass(frozen=True, slots=True)
class _Derivable:
    """A kernel, and the functions that it may call, by the names that it uses for them.

    `file` is None for a kernel of the file itself; else the names are those of that file.
    """

    kernel: ir.Kernel
    functions: Functions
    file: CheckedFile | None = None


def with_gradients(
    file: CheckedFile,
    program: ast.Program,
    scheduled: Mapping[str, Sequence[Scheduled]],
    derive: Derive | None,
) -> CheckedFile:
    """Return a file with the kernels of its gradient items, and their schedules."""
    items = [i for i in program.items if isinstance(i, ast.GradientItem)]
    if not items:
        return file
    assert derive is not None, "a checker without it is for files without gradients"
    faults, warnings = Faults(), Faults()
    for warning in file.module.warnings:
        warnings.add(warning)
    derived: dict[str, _Derivable] = {}
    sources = _sources(file, {item.kernel.name for item in items})
    for item in _in_order(faults, items, sources):
        source = sources.get(item.kernel.name)
        with faults.collect():
            if source is not None:
                made = derive(item, source.kernel, source.functions, warnings)
                # Later diagnostics point at the item, as derived statements have no text.
                doc = item.doc or made.doc
                body = tuple(replace(s, span=item.span) for s in made.body)
                made = replace(made, doc=doc, span=item.span, body=body)
                made = _scheduled(faults, file, scheduled[made.name], made)
                own = replace(source, kernel=made)
                sources[made.name] = derived[made.name] = own
    for each in _kept(faults, items, sources):
        derived[each.kernel.name] = each
    faults.raise_if_any()
    kernels = (*file.module.kernels, *(each.kernel for each in derived.values()))
    in_order = tuple(sorted(kernels, key=lambda kernel: kernel.span.start))
    return replace(
        file,
        module=replace(file.module, kernels=in_order, warnings=warnings.in_order()),
        derived_from={n: each.file for n, each in derived.items() if each.file},
    )


def _kept(
    faults: Faults, items: Sequence[ast.GradientItem], sources: Mapping[str, _Derivable]
) -> Iterator[_Derivable]:
    """Yield `f_kept` for each kernel f whose gradients are given some of its lets.

    It returns these lets, too: `kernel g = gradient of f by x given top;` makes an `f_kept`
    with the additional output `top`.
    """
    wanted: dict[str, dict[str, ast.Identifier]] = {}
    spans: dict[str, Span] = {}
    for item in items:
        source = sources.get(item.kernel.name)
        lets = lets_of(source.kernel) if source else {}
        found = {n.name: n for n in item.given if n.name in lets}
        if found:
            wanted.setdefault(item.kernel.name, {}).update(found)
            spans.setdefault(item.kernel.name, item.span)
    for kernel, given in wanted.items():
        source, first = sources[kernel], next(iter(given.values()))
        taken = sources.get(kept_name(source.kernel.name))
        if taken is None or taken.file:  # each file that asks has one of its own
            yield replace(source, kernel=kept(source.kernel, given, spans[kernel]))
            continue
        other, name = taken.kernel.span, taken.kernel.name
        faults.add(
            diag.DuplicateItem(span=first.span, other=other, kind="kernels", name=name)
        )


def _sources(file: CheckedFile, wanted: set[str]) -> dict[str, _Derivable]:
    """Return the kernels that gradients may be of: the file's, and `wanted` ones it uses."""
    own = link(file)
    functions = {function.name: function for function in own.functions}
    found = {k.name: _Derivable(k, functions) for k in own.kernels}
    for use in file.uses:
        if wanted & use.file.kernels.keys() - found.keys():
            module = link(use.file)
            functions = {function.name: function for function in module.functions}
            for kernel in module.kernels:
                found.setdefault(kernel.name, _Derivable(kernel, functions, use.file))
    return found


def _scheduled(
    faults: Faults, file: CheckedFile, scheduled: Sequence[Scheduled], kernel: ir.Kernel
) -> ir.Kernel:
    """Return a derived kernel with the schedules that its file has for it."""
    scope = file.kernels[kernel.name].scope
    _declare(scope, kernel)
    schedules = [
        check_schedule(each, Environment(each.faults, {}), scope) for each in scheduled
    ]
    report_faults(faults, scheduled)
    return replace(kernel, schedules=tuple(s for s in schedules if s is not None))


def _in_order(
    faults: Faults, items: Sequence[ast.GradientItem], known: Iterable[str]
) -> list[ast.GradientItem]:
    """Return items in an order in which a gradient of a gradient follows that one.

    An item is left out and reported if its kernel is unknown, or derived from itself.
    """
    by_name = {item.name.name: item for item in items}

    def derived(name: str) -> tuple[str, ...]:
        kernel = by_name[name].kernel.name
        return (kernel,) if kernel in by_name else ()

    names, cycles = needed_first(by_name, derived)
    faulty = {name for cycle in cycles for name in cycle}
    for first, *others in cycles:
        chain = ", and that ".join(f"is of '{name}'" for name in (*others, first))
        span = by_name[first].name.span
        faults.add(diag.DerivedFromItself(span=span, chain=f"it {chain}"))
    ordered: list[ast.GradientItem] = []
    for item in (by_name[name] for name in names):
        kernel = item.kernel
        if kernel.name in faulty:
            faulty.add(item.name.name)
        elif kernel.name in known or kernel.name in by_name:
            ordered.append(item)
        else:
            faulty.add(item.name.name)
            suggestion = closest(kernel.name, [*known, *by_name])
            faults.add(diag.NoKernelToDerive(span=kernel.span, suggestion=suggestion))
    return ordered


def _declare(scope: Scope, kernel: ir.Kernel) -> None:
    """Declare the dims, parameters, tensors and hosts of a derived kernel in its scope."""
    span = kernel.span
    for dim in kernel.dims:
        scope.put(dim, ValueSymbol("a dim", ir.DimValue(dim), span))
    for parameter in kernel.parameters:
        symbol = parameter_symbol(parameter.name, parameter.memory, span)
        scope.put(parameter.name, symbol)
    for tensor in kernel.tensors:
        scope.put(tensor.name, TensorSymbol(tensor, span))
    for host in kernel.hosts:
        value = ir.UniformValue(host.name, host.type)
        scope.put(host.name, ValueSymbol("a host", value, span))


def lets_of(kernel: ir.Kernel) -> dict[str, ir.Tensor]:
    """Return the lets of floats in a kernel, which a gradient may be given, by name."""
    targets = (statement.target for statement in kernel.body)
    return {
        target.name: target
        for target in targets
        if target.role is ir.Role.LET and target.element is Scalar.F32
    }


def kept_name(kernel: str) -> str:
    """Return the name of the kernel that also returns some of another's lets."""
    return f"{kernel}_kept"


def kept(kernel: ir.Kernel, names: Iterable[str], span: Span) -> ir.Kernel:
    """Return a kernel with some of its lets as additional outputs."""
    lets = lets_of(kernel)
    outputs = {
        lets[name]: replace(lets[name], role=ir.Role.OUTPUT)
        for name in dict.fromkeys(names)
    }

    def visit(expr: ir.Expr) -> ir.Expr:
        expr = map_children(expr, visit)
        if isinstance(expr, ir.Load) and expr.tensor in outputs:
            return replace(expr, tensor=outputs[expr.tensor])
        return expr

    body = tuple(
        replace(
            s,
            target=outputs.get(s.target, s.target),
            value=visit(s.value),
            text=s.text.removeprefix("let ") if s.target in outputs else s.text,
        )
        for s in kernel.body
    )
    name = kept_name(kernel.name)
    signature = kernel.signature.replace(kernel.name, name, 1)
    listed = ", ".join(f"`{tensor.name}`" for tensor in outputs)
    return replace(
        kernel,
        name=name,
        tensors=(*kernel.tensors, *outputs.values()),
        body=body,
        schedules=(),
        signature=", ".join((signature, *(_text(kernel, t) for t in outputs))),
        doc=f"{kernel.doc}\n\nReturns {listed}, too.".strip(),
        span=span,
        gradient=None,
    )


def _text(kernel: ir.Kernel, tensor: ir.Tensor) -> str:
    texts = {dim.name: dim.text for dim in kernel.derived}
    axes = ", ".join(texts.get(str(axis), str(axis)) for axis in tensor.extents)
    return f"{tensor.name}: f32[{axes}]"

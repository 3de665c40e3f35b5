"""Derive the kernel of a gradient item, with its diagnostics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from kerngen.check.items.gradients import lets_of
from kerngen.gradient import faults
from kerngen.gradient.derive import derive
from kerngen.gradient.fault import GradientError, Kind
from kerngen.gradient.members import has_real
from kerngen.gradient.text import expr_text
from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import affine_form
from kerngen.ir.types import Scalar
from kerngen.ir.walk import walk
from kerngen.source.diagnostic import CompileError, Diagnostic, Faults
from kerngen.source.similar import closest, did_you_mean
from kerngen.source.text import Span
from kerngen.syntax import ast


def derive_item(
    item: ast.GradientItem,
    kernel: ir.Kernel,
    functions: Mapping[str, ir.Function],
    warnings: Faults,
) -> ir.Kernel:
    """Return the kernel of `kernel g = gradient of f by x given y;`.

    A warning is added to `warnings` for each read whose clamp makes the gradient compare each
    element with every other one.

    Raises `CompileError` with every fault of the item's names, or the reason why the kernel
    can't be derived.
    """
    found = Faults()
    _check_names(found, item, kernel)
    found.raise_if_any()
    by, given = (tuple(name.name for name in names) for names in (item.by, item.given))
    try:
        derived = derive(
            kernel, name=item.name.name, by=by, given=given, functions=functions
        )
    except GradientError as error:
        raise CompileError([_fault(item, kernel, error)]) from None
    if _compares_clamped(derived):
        for statement, text in _clamped(kernel, by):
            warnings.add(
                faults.UnprovedClamp(
                    span=item.kernel.span, declared=statement.span, place=text
                )
            )
    return derived


def _compares_clamped(derived: ir.Kernel) -> bool:
    """Whether a sum is over all elements, by a condition on their clamped places."""
    return any(
        isinstance(side, ir.BuiltinCall) and side.builtin in {"min", "max", "clamp"}
        for statement in derived.body
        for node in walk(statement.value)
        if isinstance(node, ir.Reduce) and node.condition is not None
        for part in walk(node.condition)
        if isinstance(part, ir.Binary) and part.op == "=="
        for side in (part.left, part.right)
    )


def _clamped(
    kernel: ir.Kernel, by: tuple[str, ...]
) -> Iterator[tuple[ir.Statement, str]]:
    """Yield statements and the text of reads that are clamped as a condition guards them.

    Reads at a place that is looked up, `x[ids[i]]`, or that the program clamps itself, are
    meant to be clamped: they get no warning.
    """
    for statement in kernel.body:
        for node in walk(statement.value):
            if not isinstance(node, ir.Load) or node.type is not Scalar.F32:
                continue
            if node.tensor.role is not ir.Role.INPUT or node.tensor.name in by:
                forms = (
                    affine_form(s.value)
                    for s in node.subscripts
                    if isinstance(s, ir.Clamped)
                )
                if any(form is not None and form.terms for form in forms):
                    yield statement, expr_text(node)


def _check_names(found: Faults, item: ast.GradientItem, kernel: ir.Kernel) -> None:
    """Report names that the kernel lacks, and names that are listed twice."""
    tensors = [t for t in kernel.tensors if t.role is not ir.Role.OUTPUT]
    inputs = [*(t.name for t in tensors), *(p.name for p in kernel.parameters)]
    outputs = [t.name for t in kernel.tensors if t.role is ir.Role.OUTPUT]
    computed = [*outputs, *lets_of(kernel)]
    _check_twice(found, "by", item.by)
    _check_twice(found, "given", item.given)
    for name in item.by:
        if name.name not in inputs:
            remedy = did_you_mean(closest(name.name, inputs)) or (
                f"It has {_listed(inputs)}."
            )
            found.add(
                faults.ByUnknown(
                    span=name.span, kernel=kernel.name, name=name.name, remedy=remedy
                )
            )
    for name in item.given:
        if name.name not in computed:
            remedy = did_you_mean(closest(name.name, computed)) or (
                f"It computes {_listed(dict.fromkeys(computed))}."
            )
            found.add(
                faults.GivenUnknown(
                    span=name.span, kernel=kernel.name, name=name.name, remedy=remedy
                )
            )


def _check_twice(found: Faults, word: str, names: tuple[ast.Identifier, ...]) -> None:
    first: dict[str, Span] = {}
    for name in names:
        if name.name in first:
            found.add(
                faults.NamedTwice(
                    span=name.span, other=first[name.name], name=name.name, word=word
                )
            )
        first.setdefault(name.name, name.span)


def _others(item: ast.GradientItem, kernel: ir.Kernel) -> tuple[str, faults.OtherNames]:
    """Return other parameters that have gradients, as text, and which hint applies."""
    if len(item.by) > 1:
        return "", "one of several"
    own = {name.name for name in item.by}
    inputs = [t.name for t in kernel.tensors if has_real(t.memory) and _is_input(t)]
    scalars = [p.name for p in kernel.parameters if has_real(p.memory)]
    names = [f"'{name}'" for name in (*inputs, *scalars) if name not in own]
    return " or ".join(names[:3]), "alone" if names else "none"


def _is_input(tensor: ir.Tensor) -> bool:
    return tensor.role is ir.Role.INPUT


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none"


def _fault(item: ast.GradientItem, of: ir.Kernel, error: GradientError) -> Diagnostic:
    """Return the diagnostic for a failed derivation, at the name that it is about."""
    kernel, fields = item.kernel.name, error.fields
    others, case = _others(item, of)
    name = fields.get("name", "")
    named = {n.name: n.span for n in (*item.given, *item.by)}
    span = named.get(name, item.kernel.span)
    match error.kind:
        case Kind.BY_INTEGER:
            return faults.ByType(
                span=span, name=name, type=fields["type"], case=case, others=others
            )
        case Kind.IN_PLACE:
            return faults.InPlace(
                span=span, kernel=kernel, tensor=fields["tensor"], declared=error.span
            )
        case Kind.GIVEN_UNUSED:
            return faults.GivenUnneeded(span=span, name=name)
        case Kind.ZERO:
            return faults.ZeroGradient(
                span=span, kernel=kernel, name=name, case=case, others=others
            )
        case Kind.NO_DERIVATIVE:
            return faults.NoDerivative(
                span=span,
                kernel=kernel,
                reason=fields["reason"],
                case=error.lacking,
                declared=error.span,
            )
        case Kind.TOO_LARGE:
            return faults.GradientTooLarge(
                span=span, kernel=kernel, declared=error.span
            )
        case Kind.BY_UNKNOWN | Kind.BY_TWICE | Kind.GIVEN_UNKNOWN:
            raise AssertionError(f"{name} is checked before: {error}")
        case _:
            assert_never(error.kind)

"""Checking derivative items: `derivative of f(x: f32) { ... }`.

Each value becomes a function of its own, `f_by_x`, which gradients call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kerngen.check.environment import Environment, Signature, Signatures
from kerngen.check.faults.names import (
    DerivativeOfVectors,
    DerivativeParameters,
    DerivativeValues,
    DerivedTwice,
    UnknownDerivative,
)
from kerngen.check.items.functions import check_locals, inside_function
from kerngen.check.scope import Scope
from kerngen.ir.nodes import Function
from kerngen.ir.types import Scalar, ValueType
from kerngen.source.diagnostic import Faults
from kerngen.source.similar import closest
from kerngen.source.text import Span
from kerngen.syntax import ast


def check_derivatives(
    of_file: Environment,
    items: Iterable[ast.DerivativeItem],
    functions: tuple[Function, ...],
    own: Signatures,
    outer: Scope,
) -> tuple[Function, ...]:
    """Return all functions: those given with their derivatives, then the derivatives.

    `own` are the signatures of the file's functions.
    """
    faults = of_file.faults
    found = {function.name: function for function in functions}
    partials: list[Function] = []
    first: dict[str, Span] = {}
    for item in items:
        name = item.function.name
        if name not in own:
            meant = closest(name, own)
            faults.add(UnknownDerivative(span=item.function.span, suggestion=meant))
            continue
        if name in first:
            faults.add(DerivedTwice(span=item.function.span, other=first[name]))
            continue
        first[name] = item.function.span
        made = _partials(of_file, outer, item)
        if made is None or name not in found:
            continue
        found[name] = replace(
            found[name], partials=tuple(p.name if p else "" for p in made)
        )
        partials += [partial for partial in made if partial is not None]
    return (*found.values(), *partials)


def _partials(
    of_file: Environment, outer: Scope, item: ast.DerivativeItem
) -> tuple[Function | None, ...] | None:
    """Return the partial derivatives by parameter, None for one that is no f32."""
    signature = of_file.functions[item.function.name]
    if not _matches(of_file.faults, item, signature):
        return None
    floats = [p.name for p in signature.parameters if p.type is Scalar.F32]
    if len(item.values) != len(floats):
        _report_count(of_file.faults, item, floats)
        return None
    ex = inside_function(of_file, item.lets, outer)
    known = check_locals(ex, item.parameters, item.lets, signature)
    place = f"A derivative of '{signature.name}'"
    values = {
        name: ex.check_as(value, Scalar.F32, place, value.span)
        for name, value in zip(floats, item.values, strict=True)
    }
    if known is None or None in values.values():
        return None
    parameters, lets = known
    taken = {*of_file.functions}
    made: list[Function | None] = []
    for parameter in parameters:
        value = values.get(parameter.name)
        name = f"{signature.name}_by_{parameter.name}"
        while name in taken:
            name += "_"
        partial = value and Function(name, parameters, lets, value, Scalar.F32)
        made.append(partial)
    return tuple(made)


def _matches(faults: Faults, item: ast.DerivativeItem, signature: Signature) -> bool:
    """Whether a derivative is of a function of numbers, and takes what that takes."""
    result = signature.result
    types = [p.type for p in signature.parameters if p.type is not None]
    if result is None or len(types) < len(signature.parameters):
        return False
    strange: list[ValueType] = [t for t in types if not isinstance(t, Scalar)]
    if result is not Scalar.F32:
        strange = [result]
    if strange:
        fault = DerivativeOfVectors(span=item.function.span, type=strange[0].spelling)
        faults.add(fault)
        return False
    expected = _listed(
        [(p.name, p.type.spelling) for p in signature.parameters if p.type]
    )
    actual = _listed([(p.name.name, p.type.span.collapsed) for p in item.parameters])
    if actual != expected:
        faults.add(
            DerivativeParameters(
                span=item.function.span,
                other=signature.span,
                actual=actual,
                expected=expected,
            )
        )
    return actual == expected


def _listed(parameters: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{name}: {type_}" for name, type_ in parameters)


def _report_count(
    faults: Faults, item: ast.DerivativeItem, floats: Sequence[str]
) -> None:
    last = item.values[-1].span
    faults.add(
        DerivativeValues(
            span=item.values[0].span.to(last),
            name=item.function.name,
            expected=len(floats),
            actual=len(item.values),
            wanted=", ".join(f"by '{name}'" for name in floats) or "there is none",
        )
    )

"""Checking functions and their derivatives: all signatures first, so order is free."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from kerngen.check import faults as diag
from kerngen.check.environment import (
    Environment,
    FormalParameter,
    Signature,
    Signatures,
)
from kerngen.check.expressions.checker import Expressions
from kerngen.check.expressions.rules import FUNCTION
from kerngen.check.items.types import HALVES, resolve_value
from kerngen.check.scope import Poison, Scope, ValueSymbol
from kerngen.check.traverse import subexpressions, walk_syntax
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.geometry import GEOMETRY
from kerngen.ir.nodes import REDUCE_KINDS, Expr, Function, LocalValue
from kerngen.ir.types import CASTS, COMPOSITES, Scalar, ValueType
from kerngen.source.diagnostic import Faults
from kerngen.source.order import around, needed_first
from kerngen.source.similar import MOST_CHAINED, chained, closest
from kerngen.source.text import Span
from kerngen.syntax import ast
from kerngen.syntax.depth import LONGEST_CHAIN, continues

MOST_NESTED = 64
"""The deepest nesting of functions' expressions, calls included: within Python's stack."""

_TAKEN = frozenset([*CASTS, *COMPOSITES, *GEOMETRY, *HALVES, *REDUCE_KINDS, "bool"])


def check_signatures(
    faults: Faults, items: list[ast.FunctionItem], structs: Container[str]
) -> Signatures:
    """Return the signature of each function."""
    signatures: Signatures = {}
    for item in items:
        name = item.name.name
        if name in _TAKEN or name in BUILTINS:
            faults.add(diag.BuiltinClash(span=item.name.span))
            continue
        place = "A parameter of a function"
        parameters = tuple(
            FormalParameter(
                p.name.name, resolve_value(faults, p.type, place, structs), p.span
            )
            for p in item.parameters
        )
        result_place = "The result of a function"
        result = resolve_value(faults, item.result, result_place, structs)
        signatures.setdefault(name, Signature(name, parameters, result, item.name.span))
    return signatures


def check_functions(
    of_file: Environment, items: list[ast.FunctionItem], outer: Scope
) -> tuple[Function, ...]:
    """Return the functions, callees before callers."""
    ordered = _callees_first(of_file.faults, items)
    _check_depth(of_file.faults, ordered)
    checked = (_check_function(of_file, item, outer) for item in ordered)
    return tuple(function for function in checked if function is not None)


def _check_function(
    of_file: Environment, item: ast.FunctionItem, outer: Scope
) -> Function | None:
    """Check the body of a function; return it typed, or None after a fault."""
    ex = inside_function(of_file, item.lets, outer)
    signature = of_file.functions.get(item.name.name)
    known = check_locals(ex, item.parameters, item.lets, signature)
    wanted = signature.result if signature else None
    if wanted is None:
        ex.check(item.body)
        return None
    place = f"The result of '{item.name.name}'"
    body = ex.check_as(item.body, wanted, place, item.result.span)
    if body is None or known is None:
        return None
    parameters, lets = known
    return Function(item.name.name, parameters, lets, body, wanted, item.doc)


def inside_function(
    of_file: Environment, lets: tuple[ast.LetStatement, ...], outer: Scope
) -> Expressions:
    """Return a checker for the expressions of a function or derivative."""
    env = of_file.begin({let.name.name: let.name.span for let in lets})
    return Expressions(env, Scope(env.faults, outer, is_statement=True), FUNCTION)


def check_locals(
    ex: Expressions,
    parameters: tuple[ast.Parameter, ...],
    lets: tuple[ast.LetStatement, ...],
    signature: Signature | None,
) -> tuple[tuple[LocalValue, ...], tuple[tuple[LocalValue, Expr], ...]] | None:
    """Return the parameters and lets of a function; None where one has a fault."""
    declared = _declare_parameters(ex, parameters, signature)
    known: list[tuple[LocalValue, Expr]] = []
    for let in lets:
        value = ex.check(let.value)
        ex.env.later.pop(let.name.name, None)
        local = None if value is None else LocalValue(let.name.name, value.type)
        _declare(ex, let.name, local, "a let")
        if local is not None and value is not None:
            known.append((local, value))
    if declared is None or len(known) < len(lets):
        return None
    return declared, tuple(known)


def _declare_parameters(
    ex: Expressions, parameters: tuple[ast.Parameter, ...], signature: Signature | None
) -> tuple[LocalValue, ...] | None:
    locals_: list[LocalValue] = []
    for n, parameter in enumerate(parameters):
        formals = signature.parameters if signature else ()
        type_ = formals[n].type if n < len(formals) else None
        local = None if type_ is None else LocalValue(parameter.name.name, type_)
        _declare(ex, parameter.name, local, "a parameter")
        if local is not None:
            locals_.append(local)
    return tuple(locals_) if len(locals_) == len(parameters) else None


def _declare(
    ex: Expressions, name: ast.Identifier, local: LocalValue | None, kind: str
) -> None:
    symbol = (
        Poison(kind, name.span)
        if local is None
        else ValueSymbol(kind, local, name.span)
    )
    ex.scope.declare(name, symbol)
    ex.env.model.define(name.span, symbol)


# Order and depth


def _check_depth(faults: Faults, ordered: list[ast.FunctionItem]) -> None:
    """Report functions beyond the limit, but not again those that call them."""
    depths: dict[str, _Depth] = {}
    for item in ordered:
        bodies = (*(let.value for let in item.lets), item.body)
        found = [_depth(body, depths) for body in bodies]
        depth = _Depth(max(d.nesting for d in found), max(d.height for d in found))
        name = item.name
        if depth.nesting > MOST_NESTED or depth.height > LONGEST_CHAIN:
            faults.add(diag.CallsTooDeep(span=name.span, limit=MOST_NESTED))
            depth = _Depth(0, 0)
        depths[name.name] = depth


class _Depth(NamedTuple):
    """The depth of an expression: `nesting` has a chain as one level, `height` an operator."""

    nesting: int
    height: int


def _depth(expr: ast.Expr, depths: dict[str, _Depth]) -> _Depth:
    """Return how deep an expression nests, with the functions that it calls."""
    nesting, height = 0, 0
    if isinstance(expr, ast.Call):
        nesting, height = depths.get(expr.function.name, _Depth(0, 0))
    for child in subexpressions(expr):
        inner = _depth(child, depths)
        nesting = max(nesting, inner.nesting - continues(expr, child))
        height = max(height, inner.height)
    return _Depth(nesting + 1, height + 1)


def _callees_first(
    faults: Faults, items: list[ast.FunctionItem]
) -> list[ast.FunctionItem]:
    """Sort functions so that each follows those that it calls; report cycles.

    A cycle is reported at the function whose name is first in the alphabet, so the report is
    the same whichever function it was found from.
    """
    by_name = {item.name.name: item for item in reversed(items)}
    ordered, cycles = needed_first(
        (item.name.name for item in items),
        lambda name: (c.name for c in _calls(by_name[name]) if c.name in by_name),
    )
    for cycle in cycles:
        steps = around(cycle, min(cycle))
        calls = (
            _call_of(by_name[caller], called) for caller, called in pairwise(steps)
        )
        faults.add(
            diag.Recursion(
                span=by_name[steps[0]].name.span,
                chain=chained(steps, "calls"),
                calls=tuple(calls)[:MOST_CHAINED],
            )
        )
    return [by_name[name] for name in ordered]


def _call_of(item: ast.FunctionItem, called: str) -> Span:
    """Return the place of a function's first call of another one."""
    return next(name.span for name in _calls(item) if name.name == called)


def _calls(item: ast.FunctionItem) -> list[ast.Identifier]:
    bodies = [*(let.value for let in item.lets), item.body]
    return [
        node.function
        for body in bodies
        for node in walk_syntax(body)
        if isinstance(node, ast.Call)
    ]


def check_derivatives(
    of_file: Environment,
    items: Iterable[ast.DerivativeItem],
    functions: tuple[Function, ...],
    own: Signatures,
    outer: Scope,
) -> tuple[Function, ...]:
    """Return the given functions with the names of their derivatives, then the derivatives.

    The derivative of `f(x, y)` by x is a function `f_by_x` with the same parameters. `own`
    are the signatures of the file's functions.
    """
    faults = of_file.faults
    found = {function.name: function for function in functions}
    partials: list[Function] = []
    first: dict[str, Span] = {}
    for item in items:
        name = item.function.name
        if name not in own:
            meant = closest(name, own)
            faults.add(
                diag.UnknownDerivative(span=item.function.span, suggestion=meant)
            )
            continue
        if name in first:
            faults.add(diag.DerivedTwice(span=item.function.span, other=first[name]))
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
    """Return the partial derivative by each parameter, None for a parameter that is no f32."""
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
    """Whether a derivative is of a function of numbers, with the same parameters."""
    result = signature.result
    types = [p.type for p in signature.parameters if p.type is not None]
    if result is None or len(types) < len(signature.parameters):
        return False
    strange: list[ValueType] = [t for t in types if not isinstance(t, Scalar)]
    if result is not Scalar.F32:
        strange = [result]
    if strange:
        fault = diag.DerivativeOfVectors(
            span=item.function.span, type=strange[0].spelling
        )
        faults.add(fault)
        return False
    expected = _listed(
        [(p.name, p.type.spelling) for p in signature.parameters if p.type]
    )
    actual = _listed([(p.name.name, p.type.span.collapsed) for p in item.parameters])
    if actual != expected:
        faults.add(
            diag.DerivativeParameters(
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
        diag.DerivativeValues(
            span=item.values[0].span.to(last),
            name=item.function.name,
            expected=len(floats),
            actual=len(item.values),
            wanted=", ".join(f"by '{name}'" for name in floats) or "there is none",
        )
    )

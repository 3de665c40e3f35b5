"""Checking functions: all signatures first, so that their order does not matter."""

from __future__ import annotations

from collections.abc import Container
from itertools import pairwise
from typing import NamedTuple

from kerngen.check.environment import (
    Environment,
    FormalParameter,
    Signature,
    Signatures,
)
from kerngen.check.expressions.checker import Expressions
from kerngen.check.expressions.rules import FUNCTION
from kerngen.check.faults.names import BuiltinClash, CallsTooDeep, Recursion
from kerngen.check.items.types import HALVES, resolve_value
from kerngen.check.scope import Poison, Scope, ValueSymbol
from kerngen.check.traverse import subexpressions, walk_syntax
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.geometry import GEOMETRY
from kerngen.ir.nodes import REDUCE_KINDS, Expr, Function, LocalValue
from kerngen.ir.types import CASTS, COMPOSITES
from kerngen.source.diagnostic import Faults
from kerngen.source.order import around, needed_first
from kerngen.source.similar import MOST_CHAINED, chained
from kerngen.source.text import Span
from kerngen.syntax import ast
from kerngen.syntax.depth import LONGEST_CHAIN, continues

MOST_NESTED = 64
"""How deep the expressions of functions nest, calls included: within Python's stack."""

_TAKEN = frozenset([*CASTS, *COMPOSITES, *GEOMETRY, *HALVES, *REDUCE_KINDS, "bool"])


def check_signatures(
    faults: Faults, items: list[ast.FunctionItem], structs: Container[str]
) -> Signatures:
    """Return the signature of each function."""
    signatures: Signatures = {}
    for item in items:
        name = item.name.name
        if name in _TAKEN or name in BUILTINS:
            faults.add(BuiltinClash(span=item.name.span))
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
    """Report functions beyond the limit; those that call them are not reported too."""
    depths: dict[str, _Depth] = {}
    for item in ordered:
        bodies = (*(let.value for let in item.lets), item.body)
        found = [_depth(body, depths) for body in bodies]
        depth = _Depth(max(d.nesting for d in found), max(d.height for d in found))
        name = item.name
        if depth.nesting > MOST_NESTED or depth.height > LONGEST_CHAIN:
            faults.add(CallsTooDeep(span=name.span, limit=MOST_NESTED))
            depth = _Depth(0, 0)
        depths[name.name] = depth


class _Depth(NamedTuple):
    """How deep an expression nests: with chains as one level, and with each operator."""

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
    """Sort functions so that each follows those that it calls; a cycle is a fault.

    It is reported at one of its functions, whichever it was found from.
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
            Recursion(
                span=by_name[steps[0]].name.span,
                chain=chained(steps, "calls"),
                calls=tuple(calls)[:MOST_CHAINED],
            )
        )
    return [by_name[name] for name in ordered]


def _call_of(item: ast.FunctionItem, called: str) -> Span:
    """Return where a function calls another one first."""
    return next(name.span for name in _calls(item) if name.name == called)


def _calls(item: ast.FunctionItem) -> list[ast.Identifier]:
    bodies = [*(let.value for let in item.lets), item.body]
    return [
        node.function
        for body in bodies
        for node in walk_syntax(body)
        if isinstance(node, ast.Call)
    ]

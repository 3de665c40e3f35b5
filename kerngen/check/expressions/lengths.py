"""Lengths that the host computes: of outputs' axes, and of given index ranges."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final, final

from kerngen.check import faults as diag
from kerngen.check.environment import Environment
from kerngen.check.expressions.checker import Expressions
from kerngen.check.expressions.operators import floored
from kerngen.check.expressions.rules import HostSide
from kerngen.check.hints.unknown import report_unknown
from kerngen.check.scope import IndexSymbol, Poison, ValueSymbol
from kerngen.ir.builtins.evaluate import NotFiniteError, bounds, constant_value
from kerngen.ir.builtins.table import TRUNCATING
from kerngen.ir.nodes import DerivedDim, DimValue, Expr, Extent, UniformValue
from kerngen.ir.types import CASTS, Scalar
from kerngen.ir.walk import map_children
from kerngen.source.text import Span
from kerngen.syntax import ast

MAX_EXTENT: Final = bounds(Scalar.I32)[1]

_WORDS: Final = {"+": "plus", "-": "minus", "*": "times", "/": "div", "%": "mod"}
_LONGEST_NAME: Final = 32
"""A length whose text makes a longer name is named after its index or axis."""


_CALLED: Final = {
    **dict.fromkeys(
        ("cdiv", "ceil_div", "ceil", "div_up"),
        "'/' drops the fraction, so '(n + k - 1) / k' rounds up.",
    ),
    **dict.fromkeys(("floor", "trunc", "int"), "'/' drops the fraction."),
    "min": "Write 'if a < b { a } else { b }'.",
    "max": "Write 'if a > b { a } else { b }'.",
}
"""Hints for functions that a length can't call: how to write it without them."""


@final
@dataclass(frozen=True)
class LengthRules(HostSide):
    """The rules of a length: integer arithmetic, in which hosts are expanded.

    `place` names the length in diagnostics; `instead` is the hint if the length depends
    on an index.
    """

    place: str
    instead: str = ""

    def refusal(self, span: Span, what: str, declared: Span | None) -> diag.LengthReads:
        """Return the diagnostic for something that a length can't depend on."""
        return diag.LengthReads(
            span=span, place=self.place, what=what, declared=declared
        )

    def read(self, ex: Expressions, node: ast.Name, symbol: ValueSymbol) -> Expr | None:
        """Return the value of a name; a scalar that decides shapes must be an integer."""
        if not isinstance(symbol.value, UniformValue):
            return symbol.value
        value = ex.env.hosts.get(node.name, symbol.value)
        return _without_hosts(ex, value) if value.type.is_integer else None

    def unknown(self, ex: Expressions, node: ast.Name) -> None:
        """Report a name that is not declared, and may be meant as a scalar."""
        scalar = f"'{node.name}: u32'"
        remedy = f"Use a dim of the inputs, or take the length as a scalar: {scalar}."
        report_unknown(ex, node, remedy)

    def name(self, ex: Expressions, node: ast.Name) -> Expr | None:
        """Return a dim, scalar, constant or host; report outputs that come later."""
        symbol = ex.scope.get(node.name)
        if isinstance(symbol, IndexSymbol):
            fault = self.refusal(node.span, f"'{node.name}', an index", None)
            ex.env.faults.add(replace(fault, instead=self.instead))
            return None
        if isinstance(symbol, Poison) and symbol.kind == "an output":
            self.refuse(ex, node.span, f"'{node.name}', an output", symbol)
            return None
        return super().name(ex, node)

    def call(self, ex: Expressions, node: ast.Call, want: Scalar | None) -> Expr | None:
        """Return a cast between integers, or a floored division."""
        name, count = node.function.name, len(node.arguments)
        if name in CASTS and CASTS[name].is_integer and count == 1:
            return ex.check(node.arguments[0])
        if name in TRUNCATING and count == 2:
            return floored(ex, node)
        fault = self.refusal(node.span, f"the function '{name}'", None)
        ex.env.faults.add(replace(fault, instead=_CALLED.get(name, "")))
        return None


def _without_hosts(ex: Expressions, value: Expr) -> Expr:
    if isinstance(value, UniformValue) and value.name in ex.env.hosts:
        return _without_hosts(ex, ex.env.hosts[value.name])
    return map_children(value, lambda part: _without_hosts(ex, part))


def check_length(
    ex: Expressions, node: ast.Expr, place: str, name: str, *, instead: str = ""
) -> Extent | None:
    """Check a length: a literal, a dim, or an expression that the host computes.

    Return None after a fault.  An expression becomes a derived dim, which is named by its
    text, or `name` if that is too long.  `place` names the length in diagnostics, and
    `instead` is the hint if the length depends on an index.
    """
    env = ex.env
    value = ex.under(LengthRules(place, instead)).check(node)
    if value is None:
        return None
    if not value.type.is_integer:
        fault = diag.LengthType(span=node.span, place=place, actual=value.type.spelling)
        env.faults.add(fault)
        return None
    constant = _constant(value)
    if constant is not None:
        if 0 <= constant <= MAX_EXTENT:
            return constant
        env.faults.add(diag.LengthValue(span=node.span, place=place, value=constant))
        return None
    if isinstance(value, DimValue):
        return value.name
    return _derived(env, node, value, name)


def _constant(value: Expr) -> int | None:
    try:
        constant = constant_value(value)
    except NotFiniteError:
        return None
    return None if constant is None else int(constant)


def _derived(env: Environment, node: ast.Expr, value: Expr, name: str) -> str:
    """Return the name of a derived dim; equal values share one."""
    for dim in env.derived:
        if dim.value == value:
            return dim.name
    text = node.span.one_line(limit=80)
    dim = DerivedDim(_name(env, node, name), value, text)
    env.derived.append(dim)
    return dim.name


def _name(env: Environment, node: ast.Expr, otherwise: str) -> str:
    """Return a name for a length, by its text and not used in the kernel: `h_div_2`."""
    tokens: list[str] = re.findall(r"\w+|[-+*/%]", node.span.collapsed)
    wanted = "_".join(_WORDS.get(token, token) for token in tokens)
    if len(wanted) > _LONGEST_NAME or not wanted.isidentifier():
        wanted = otherwise
    if wanted in env.identifiers:
        wanted += "_length"
    taken = env.identifiers | {dim.name for dim in env.derived}
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name

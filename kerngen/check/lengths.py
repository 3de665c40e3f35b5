"""Lengths that the host computes: of an output's axes, and ranges given for indices."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final, final

from kerngen.check import faults_indices
from kerngen.check.environment import Environment
from kerngen.check.free_mixing import FreeMixing
from kerngen.check.scope import (
    FaultySymbol,
    IndexSymbol,
    Scope,
    Symbol,
    ValueSymbol,
    one_line,
)
from kerngen.check.text import collapse
from kerngen.check.unknown import report_unknown
from kerngen.ir.builtins.evaluate import NotFiniteError, bounds, constant_value
from kerngen.ir.builtins.table import TRUNCATING
from kerngen.ir.nodes import (
    DerivedDim,
    DimValue,
    Expr,
    Extent,
    UniformValue,
)
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children
from kerngen.source.text import Span
from kerngen.syntax import ast

MAX_EXTENT: Final = bounds(Scalar.I32)[1]

_WORDS: Final = {"+": "plus", "-": "minus", "*": "times", "/": "div", "%": "mod"}
_LONGEST_NAME: Final = 32
_CASTS: Final = frozenset(("i32", "u32"))


def check_length(
    env: Environment,
    scope: Scope,
    node: ast.Expr,
    place: str,
    name: str,
    *,
    instead: str = "",
) -> Extent | None:
    """Return a length: a literal, a dim, or what the host must compute at each call.

    `place` says what is so long, in the words of a diagnostic; `name` is what a derived
    dim is called where its text is too long for a name; `instead` is the hint where the
    length depends on an index.
    """
    value = LengthExpressions(env, scope, place, instead).check(node)
    if value is None:
        return None
    if not value.type.is_integer:
        fault = faults_indices.LengthType(
            span=node.span, place=place, actual=value.type.spelling
        )
        env.faults.add(fault)
        return None
    constant = _constant(value)
    if constant is not None:
        return _literal(env, node, place, constant)
    if isinstance(value, DimValue):
        return value.name
    return _derived(env, node, value, name)


def length_text(env: Environment, extent: Extent) -> str:
    """Return a length in the user's words."""
    texts = (dim.text for dim in env.derived if dim.name == extent)
    return next(texts, str(extent))


def _constant(value: Expr) -> int | None:
    try:
        constant = constant_value(value)
    except NotFiniteError:
        return None
    return None if constant is None else int(constant)


def _literal(env: Environment, node: ast.Expr, place: str, value: int) -> int | None:
    if 0 <= value <= MAX_EXTENT:
        return value
    fault = faults_indices.LengthValue(span=node.span, place=place, value=value)
    env.faults.add(fault)
    return None


def _derived(env: Environment, node: ast.Expr, value: Expr, name: str) -> str:
    """Return the name of a derived dim; equal values share one."""
    for dim in env.derived:
        if dim.value == value:
            return dim.name
    text = one_line(node.span.text, limit=80)
    dim = DerivedDim(_name(env, node, name), value, text)
    env.derived.append(dim)
    return dim.name


def _name(env: Environment, node: ast.Expr, otherwise: str) -> str:
    """Spell an expression as a name that the kernel's text does not hold: `h_div_2`."""
    tokens: list[str] = re.findall(r"\w+|[-+*/%]", collapse(node.span.text))
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


_CALLED: Final = {
    **dict.fromkeys(
        ("cdiv", "ceil_div", "ceil", "div_up"),
        "'/' drops the fraction, so '(n + k - 1) / k' rounds up.",
    ),
    **dict.fromkeys(("floor", "trunc", "int"), "'/' drops the fraction."),
    "min": "Write 'if a < b { a } else { b }'.",
    "max": "Write 'if a > b { a } else { b }'.",
}
"""How lengths are written without a function."""


@final
@dataclass(frozen=True)
class LengthExpressions(FreeMixing):
    """Integers over dims, scalars, constants and hosts."""

    place: str
    instead: str = ""

    def refuse(self, span: Span, what: str, symbol: Symbol | None = None) -> None:
        """Record something that a length can't depend on."""
        self.env.faults.add(
            faults_indices.LengthReads(
                span=span,
                place=self.place,
                what=what,
                declared=symbol.span if symbol else None,
            )
        )

    def _refuse_index(self, node: ast.Name) -> None:
        fault = faults_indices.LengthReads(
            span=node.span, place=self.place, what=f"'{node.name}', an index"
        )
        remedy = self.instead or fault.remedy
        self.env.faults.add(replace(fault, remedy=remedy))

    def check_name(self, node: ast.Name) -> Expr | None:
        """Return a dim, scalar or constant, or the whole value of a host."""
        symbol = self.scope.get(node.name)
        match symbol:
            case ValueSymbol(value=UniformValue() as scalar):
                return self._scalar(node, symbol.kind, scalar)
            case ValueSymbol(value=value):
                return value
            case None:
                remedy = (
                    "Use a dim of the inputs, or take the length as a scalar: "
                    f"'{node.name}: u32'."
                )
                report_unknown(self.env, self.scope, node, remedy)
            case FaultySymbol(kind=kind) if kind != "an output":
                pass
            case IndexSymbol():
                self._refuse_index(node)
            case _:
                self.refuse(node.span, f"'{node.name}', {symbol.kind}", symbol)
        return None

    def _scalar(self, node: ast.Name, kind: str, scalar: UniformValue) -> Expr | None:
        """Return a scalar that is an integer: it decides the shapes of a call."""
        value = self.env.hosts.get(node.name, scalar)
        if not value.type.is_integer:
            what = f"'{node.name}', {kind} of type '{value.type.spelling}'"
            self.refuse(node.span, what, self.scope.get(node.name))
            return None
        return self._without_hosts(value)

    def _without_hosts(self, value: Expr) -> Expr:
        if isinstance(value, UniformValue) and value.name in self.env.hosts:
            return self._without_hosts(self.env.hosts[value.name])
        return map_children(value, self._without_hosts)

    def check_member(self, node: ast.Member) -> Expr | None:
        """Refuse it."""
        self.refuse(node.span, f"the member '{one_line(node.span.text)}'")
        return None

    def check_call(self, node: ast.Call) -> Expr | None:
        """Return an integer cast, which changes nothing here, or a floored division."""
        name, count = node.function.name, len(node.arguments)
        if name in _CASTS and count == 1:
            return self.check(node.arguments[0])
        if name in TRUNCATING and count == 2:
            return self.floored(node)
        fault = faults_indices.LengthReads(
            span=node.span, place=self.place, what=f"the function '{name}'"
        )
        self.env.faults.add(replace(fault, remedy=_CALLED.get(name, fault.remedy)))
        return None

"""The rules of host values, lengths, guards and `require`: their number types mix.

A host reads dims, scalars, constants and earlier hosts, and calls functions.  A length
is made of integers alone; a guard and a `require` compare dims, integer scalars and
integer constants, and a guard asks for facts of the adapter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from kerngen.check.expressions.calls import check_call
from kerngen.check.expressions.checker import Expressions
from kerngen.check.expressions.reductions import KERNEL
from kerngen.check.expressions.rules import HostSide
from kerngen.check.faults.schedules import GuardReads, UnknownAdapterFact
from kerngen.check.faults.statements import HostReads, RequireReads
from kerngen.check.hints.unknown import report_unknown, report_unknown_function
from kerngen.check.scope import ParameterSymbol, ValueSymbol
from kerngen.ir import nodes as ir
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.geometry import GEOMETRY
from kerngen.ir.types import CASTS, COMPOSITES, Scalar
from kerngen.ir.walk import places_in, subscript_value, walk
from kerngen.source.diagnostic import Diagnostic
from kerngen.source.similar import closest
from kerngen.source.text import Span
from kerngen.syntax import ast

# Hosts


@final
class _HostRules(HostSide):
    def refusal(self, span: Span, what: str, declared: Span | None) -> Diagnostic:
        return HostReads(span=span, what=what, declared=declared)

    def read(
        self, ex: Expressions, node: ast.Name, symbol: ValueSymbol
    ) -> ir.Expr | None:
        return symbol.value

    def unknown(self, ex: Expressions, node: ast.Name) -> None:
        per_index = (
            "A host is one number; a 'let' has one per index: 'let t[i < n] = ...;'."
        )
        report_unknown(ex, node, per_index if len(node.name) == 1 else "")

    def member(self, ex: Expressions, node: ast.Member) -> ir.Expr | None:
        return self._part(ex, node)

    def subscript(self, ex: Expressions, node: ast.Subscript) -> ir.Expr | None:
        base: ast.Expr = node
        while isinstance(base, ast.Member | ast.Subscript):
            base = base.base
        name = base.name if isinstance(base, ast.Name) else ""
        if isinstance(ex.scope.get(name), ParameterSymbol):
            return self._part(ex, node)
        return super().subscript(ex, node)

    def _part(
        self, ex: Expressions, node: ast.Member | ast.Subscript
    ) -> ir.Expr | None:
        """Return a part of a parameter; its subscripts are literals."""
        value = ex.under(KERNEL).check(node)
        if value is None or all(_is_fixed(part) for part in walk(value)):
            return value
        self.refuse(ex, node.span, "an element by a number that varies")
        return None

    def call(
        self, ex: Expressions, node: ast.Call, want: Scalar | None
    ) -> ir.Expr | None:
        name = node.function.name
        if name in CASTS or name in ex.env.functions or name in BUILTINS:
            return check_call(ex, node, want)
        if name in GEOMETRY or name in COMPOSITES:
            what = f"'{name}', which computes with vectors"
            self.refuse(ex, node.function.span, what)
            return None
        report_unknown_function(ex, node)
        return None


HOST: Final = _HostRules()


def _is_fixed(expr: ir.Expr) -> bool:
    """Whether an expression reads parts of parameters by literals alone."""
    match expr:
        case ir.UniformValue(path=path):
            places = places_in(path)
        case ir.Part(at=at):
            places = places_in((at,))
        case ir.Load():
            return False
        case _:
            return True
    return all(isinstance(subscript_value(place), ir.Constant) for place in places)


# Guards and requires


def _known_integer(symbol: ValueSymbol) -> ir.Expr | None:
    """Return a dim, an integer scalar or an integer constant."""
    match symbol.value:
        case ir.DimValue() as dim:
            return dim
        case ir.UniformValue(type=type_) as scalar if type_.is_integer:
            return scalar if symbol.kind == "a scalar" else None
        case ir.ConstRef(value=value, type=type_) if type_.is_integer:
            return ir.Constant(value, type_)
        case _:
            return None


ADAPTER_FACTS: Final = {
    "workgroup_bytes": Scalar.I32,
    "invocations": Scalar.I32,
    "subgroups": Scalar.BOOL,
    "f16": Scalar.BOOL,
    "tensor_bytes": Scalar.I32,
}


class _CallRules(HostSide):
    def read(
        self, ex: Expressions, node: ast.Name, symbol: ValueSymbol
    ) -> ir.Expr | None:
        """Return a dim, an integer scalar or an integer constant."""
        return _known_integer(symbol)


@final
class _GuardRules(_CallRules):
    def refusal(self, span: Span, what: str, declared: Span | None) -> Diagnostic:
        return GuardReads(span=span, what=what, declared=declared)

    def unknown(self, ex: Expressions, node: ast.Name) -> None:
        if node.name in ex.env.indices:
            self.refuse(ex, node.span, f"'{node.name}', an index")
            return
        symbols = ((name, ex.scope.get(name)) for name in ex.scope.names())
        known = [
            f"'{name}'"
            for name, symbol in symbols
            if isinstance(symbol, ValueSymbol) and _known_integer(symbol) is not None
        ]
        listed = ", ".join(known) or "literals"
        report_unknown(ex, node, f"A guard reads {listed} and properties of 'adapter'.")

    def member(self, ex: Expressions, node: ast.Member) -> ir.Expr | None:
        """Return a fact of the adapter."""
        if not isinstance(node.base, ast.Name) or node.base.name != "adapter":
            self.refuse(ex, node.span, "members of anything but 'adapter'")
            return None
        name = node.member.name
        if name in ADAPTER_FACTS:
            return ir.UniformValue(f"adapter.{name}", ADAPTER_FACTS[name])
        ex.env.faults.add(
            UnknownAdapterFact(
                span=node.member.span,
                known=tuple(ADAPTER_FACTS),
                suggestion=closest(name, list(ADAPTER_FACTS)),
            )
        )
        return None


GUARD: Final = _GuardRules()


@final
@dataclass(frozen=True)
class RequireRules(_CallRules):
    """The rules of a `require`; `computed` are the names of lets and hosts."""

    computed: frozenset[str]

    def refusal(self, span: Span, what: str, declared: Span | None) -> Diagnostic:
        """Return the diagnostic for something unknown before a call, or no integer."""
        return RequireReads(span=span, what=what, declared=declared)

    def unknown(self, ex: Expressions, node: ast.Name) -> None:
        """Report a name that is a let or a host, or that is not declared."""
        if node.name in self.computed:
            self.refuse(ex, node.span, f"'{node.name}', which the kernel computes")
        else:
            report_unknown(ex, node)

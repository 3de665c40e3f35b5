"""The rules of places: what expressions may read there, and how number types mix.

One checker, `Expressions`, checks all expressions by the rules of their place:

| rules | reads | numbers |
| --- | --- | --- |
| `KERNEL`, in `reductions` | all names, elements of tensors, reductions | have one type |
| `FUNCTION`, `CONSTANT` | parameters or constants alone | have one type |
| `HOST` | dims, scalars, constants and earlier hosts; calls functions | mix freely |
| `LengthRules`, in `lengths` | the same, integers alone | mix freely |
| `GUARD`, `RequireRules` | dims, integer scalars, constants; guards: the adapter | mix freely |
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Final, assert_never, final

from kerngen.check import faults as diag
from kerngen.check.expressions.calls import check_call
from kerngen.check.expressions.checker import Expressions, Rules
from kerngen.check.expressions.operators import (
    check_binary,
    check_conditional,
    check_unary,
    floored,
)
from kerngen.check.expressions.places import check_chain, check_element, check_name
from kerngen.check.hints.unknown import (
    report_module,
    report_unknown,
    report_unknown_function,
)
from kerngen.check.scope import ParameterSymbol, Poison, ValueSymbol
from kerngen.ir import nodes as ir
from kerngen.ir.builtins.table import BUILTINS, TRUNCATING
from kerngen.ir.geometry import GEOMETRY
from kerngen.ir.nodes import Constant, Expr
from kerngen.ir.types import CASTS, COMPOSITES, Scalar
from kerngen.ir.walk import places_in, subscript_value, walk
from kerngen.source.diagnostic import Diagnostic
from kerngen.source.similar import closest
from kerngen.source.text import Span
from kerngen.syntax import ast
from kerngen.syntax.mistakes.foreign import MODULES

_INFINITY: Final = Constant(math.inf, Scalar.F32)


def _is_infinity(ex: Expressions, node: ast.Name) -> bool:
    """Whether a name is `inf`, the constant of every file that declares no other one."""
    if node.name != "inf" or "inf" in ex.env.later or ex.scope.get("inf") is not None:
        return False
    return not ex.env.current.binds("inf", node.span)


class NodeRules(Rules):
    """Rules with a method for each kind of node; by default those of a kernel's body."""

    def judge(
        self, ex: Expressions, node: ast.Expr, want: Scalar | None
    ) -> Expr | None:
        """Check an expression; return its typed form, or None after a fault."""
        match node:
            case ast.Number(value=value):
                return ex.literal(node.span, value, want)
            case ast.Boolean(value=value):
                return Constant(value, Scalar.BOOL)
            case ast.Name() if _is_infinity(ex, node):
                return _INFINITY
            case ast.Name():
                return self.name(ex, node)
            case ast.Call():
                return self.call(ex, node, want)
            case ast.Subscript():
                return self.subscript(ex, node)
            case ast.Member():
                return self.member(ex, node)
            case ast.Unary():
                return check_unary(ex, node, want)
            case ast.Binary():
                return check_binary(ex, node, want)
            case ast.Conditional():
                return check_conditional(ex, node, want)
            case ast.Reduction():
                return self.reduction(ex, node, want)
            case _:
                assert_never(node)

    def name(self, ex: Expressions, node: ast.Name) -> Expr | None:
        """Return the value of a bare name."""
        return check_name(ex, node)

    def member(self, ex: Expressions, node: ast.Member) -> Expr | None:
        """Return the value of a member or component."""
        base = node.base
        module = base.name if isinstance(base, ast.Name) else ""
        if module in MODULES and ex.scope.get(module) is None:
            report_module(ex, node)
            return None
        return check_chain(ex, node)

    def subscript(self, ex: Expressions, node: ast.Subscript) -> Expr | None:
        """Return the value of an element."""
        return check_element(ex, node)

    def call(self, ex: Expressions, node: ast.Call, want: Scalar | None) -> Expr | None:
        """Return the value of a call; literals in it take the type `want`."""
        return check_call(ex, node, want)

    def reduction(
        self, ex: Expressions, node: ast.Reduction, want: Scalar | None
    ) -> Expr | None:
        """Report a reduction: only a kernel's body may have one."""
        self.refuse(ex, node.span, "a reduction")
        return None


@final
class _FunctionRules(NodeRules):
    introduction = "Make it a parameter of the function."

    def refusal(self, span: Span, what: str, declared: Span | None) -> Diagnostic:
        return diag.FunctionReads(span=span, what=what)


@final
class _ConstantRules(NodeRules):
    must_fit = True
    introduction = "A constant is made of literals and other constants."

    def refusal(self, span: Span, what: str, declared: Span | None) -> Diagnostic:
        place = "A constant expression"
        return diag.NotConstant(span=span, place=place, name=span.one_line())


FUNCTION: Final = _FunctionRules()
CONSTANT: Final = _ConstantRules()


# The host


class HostSide(NodeRules):
    """The common rules of host expressions: names, operators, and integer divisions.

    No members, elements or other calls, unless a subclass allows them.
    """

    mixes = True

    @abstractmethod
    def read(self, ex: Expressions, node: ast.Name, symbol: ValueSymbol) -> Expr | None:
        """Return the value of a name, or None if it may not be read here."""

    def unknown(self, ex: Expressions, node: ast.Name) -> None:
        """Report a name that is not declared."""
        report_unknown(ex, node)

    def name(self, ex: Expressions, node: ast.Name) -> Expr | None:
        """Return a dim, scalar, constant or host, if it may be read."""
        symbol = ex.scope.get(node.name)
        match symbol:
            case ValueSymbol():
                value = self.read(ex, node, symbol)
                if value is None:
                    type_ = f" of type '{symbol.value.type.spelling}'"
                    what = f"'{node.name}', {symbol.kind}{type_}"
                    self.refuse(ex, node.span, what, symbol)
                return value
            case None:
                self.unknown(ex, node)
            case Poison():
                pass
            case _:
                self.refuse(ex, node.span, f"'{node.name}', {symbol.kind}", symbol)
        return None

    def member(self, ex: Expressions, node: ast.Member) -> Expr | None:
        """Report a member: host expressions have none."""
        self.refuse(ex, node.span, f"the member '{node.span.one_line()}'")
        return None

    def subscript(self, ex: Expressions, node: ast.Subscript) -> Expr | None:
        """Report a subscript: host expressions have none."""
        self.refuse(ex, node.span, "the elements of a tensor")
        return None

    def call(self, ex: Expressions, node: ast.Call, want: Scalar | None) -> Expr | None:
        """Return a floored division; report any other call."""
        if node.function.name in TRUNCATING and len(node.arguments) == 2:
            return floored(ex, node)
        self.refuse(ex, node.span, f"the function '{node.function.name}'")
        return None


# Hosts


@final
class _PartRules(NodeRules):
    """The rules of a part of a parameter that a host reads."""

    has_elements = True

    def refusal(self, span: Span, what: str, declared: Span | None) -> Diagnostic:
        return diag.HostReads(span=span, what=what, declared=declared)


_PART: Final = _PartRules()


@final
class _HostRules(HostSide):
    def refusal(self, span: Span, what: str, declared: Span | None) -> Diagnostic:
        return diag.HostReads(span=span, what=what, declared=declared)

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
        if isinstance(ex.scope.of(ast.chain_of(node)[0]), ParameterSymbol):
            return self._part(ex, node)
        return super().subscript(ex, node)

    def _part(
        self, ex: Expressions, node: ast.Member | ast.Subscript
    ) -> ir.Expr | None:
        """Return a part of a parameter; its subscripts are literals."""
        value = ex.under(_PART).check(node)
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
        return diag.GuardReads(span=span, what=what, declared=declared)

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
            diag.UnknownAdapterFact(
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
        return diag.RequireReads(span=span, what=what, declared=declared)

    def unknown(self, ex: Expressions, node: ast.Name) -> None:
        """Report a name that is a let or a host, or that is not declared."""
        if node.name in self.computed:
            self.refuse(ex, node.span, f"'{node.name}', which the kernel computes")
        else:
            report_unknown(ex, node)

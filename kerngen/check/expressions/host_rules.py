"""Rules of what the host computes before a kernel runs: its numbers mix freely.

A host reads dims, scalars, constants and earlier hosts, and calls functions.  A length
is made of integers alone; a guard and a `require` compare dims, integer scalars and
integer constants, and a guard asks for facts of the adapter.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from kerngen.check.expressions.calls import check_call
from kerngen.check.expressions.mixing import floored
from kerngen.check.expressions.rules import KERNEL, Rules
from kerngen.check.faults.indices import LengthReads
from kerngen.check.faults.requires import RequireReads
from kerngen.check.faults.schedules import GuardReads, UnknownAdapterFact
from kerngen.check.faults.statements import HostReads
from kerngen.check.hints.unknown_calls import report_unknown_function
from kerngen.check.hints.unknown_names import report_unknown
from kerngen.check.scope import (
    IndexSymbol,
    ParameterSymbol,
    Poison,
    Symbol,
    ValueSymbol,
    one_line,
)
from kerngen.ir.builtins.table import BUILTINS, TRUNCATING
from kerngen.ir.geometry import GEOMETRY
from kerngen.ir.nodes import (
    Constant,
    ConstRef,
    DimValue,
    Expr,
    Load,
    Part,
    UniformValue,
)
from kerngen.ir.types import CASTS, COMPOSITES, Scalar
from kerngen.ir.walk import map_children, places_in, subscript_value, walk
from kerngen.source.similar import closest
from kerngen.source.text import Span
from kerngen.syntax import ast

if TYPE_CHECKING:
    from kerngen.check.expressions.checker import Expressions


class _HostSide(Rules):
    """What the rules of the host share: names are looked up, and little else is known."""

    mixes = True

    @abstractmethod
    def read(self, ex: Expressions, node: ast.Name, symbol: ValueSymbol) -> Expr | None:
        """Return what a name is read as; None if it may not be read."""

    def unknown(self, ex: Expressions, node: ast.Name) -> None:
        """Record a name that nothing introduces."""
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
        """Refuse it."""
        self.refuse(ex, node.span, f"the member '{one_line(node.span.text)}'")
        return None

    def subscript(self, ex: Expressions, node: ast.Subscript) -> Expr | None:
        """Refuse it."""
        self.refuse(ex, node.span, "the elements of a tensor")
        return None

    def call(self, ex: Expressions, node: ast.Call, want: Scalar | None) -> Expr | None:
        """Return a floored division; refuse all else."""
        if node.function.name in TRUNCATING and len(node.arguments) == 2:
            return floored(ex, node)
        self.refuse(ex, node.span, f"the function '{node.function.name}'")
        return None


# Hosts


@final
class _HostRules(_HostSide):
    def refuse(
        self, ex: Expressions, span: Span, what: str, symbol: Symbol | None = None
    ) -> None:
        declared = symbol.span if symbol else None
        ex.env.faults.add(HostReads(span=span, what=what, declared=declared))

    def read(self, ex: Expressions, node: ast.Name, symbol: ValueSymbol) -> Expr | None:
        return symbol.value

    def unknown(self, ex: Expressions, node: ast.Name) -> None:
        per_index = (
            "A host is one number; a 'let' has one per index: 'let t[i < n] = ...;'."
        )
        report_unknown(ex, node, per_index if len(node.name) == 1 else "")

    def member(self, ex: Expressions, node: ast.Member) -> Expr | None:
        return self._part(ex, node)

    def subscript(self, ex: Expressions, node: ast.Subscript) -> Expr | None:
        base: ast.Expr = node
        while isinstance(base, ast.Member | ast.Subscript):
            base = base.base
        name = base.name if isinstance(base, ast.Name) else ""
        if isinstance(ex.scope.get(name), ParameterSymbol):
            return self._part(ex, node)
        return super().subscript(ex, node)

    def _part(self, ex: Expressions, node: ast.Member | ast.Subscript) -> Expr | None:
        """Return a part of a parameter; its subscripts are literals."""
        value = ex.under(KERNEL).check(node)
        if value is None or all(_is_fixed(part) for part in walk(value)):
            return value
        self.refuse(ex, node.span, "an element by a number that varies")
        return None

    def call(self, ex: Expressions, node: ast.Call, want: Scalar | None) -> Expr | None:
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


def _is_fixed(expr: Expr) -> bool:
    """Whether an expression reads parts of parameters by literals alone."""
    match expr:
        case UniformValue(path=path):
            places = places_in(path)
        case Part(at=at):
            places = places_in((at,))
        case Load():
            return False
        case _:
            return True
    return all(isinstance(subscript_value(place), Constant) for place in places)


# Lengths


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
class LengthRules(_HostSide):
    """Rules of a length: integers, hosts written out.

    `place` is what is so long, in the words of a diagnostic; `instead` the hint where
    the length depends on an index.
    """

    place: str
    instead: str = ""

    def refuse(
        self,
        ex: Expressions,
        span: Span,
        what: str,
        symbol: Symbol | None = None,
        instead: str = "",
    ) -> None:
        """Record what a length can't depend on."""
        declared = symbol.span if symbol else None
        ex.env.faults.add(
            LengthReads(
                span=span,
                place=self.place,
                what=what,
                declared=declared,
                instead=instead,
            )
        )

    def read(self, ex: Expressions, node: ast.Name, symbol: ValueSymbol) -> Expr | None:
        """Return a value; a scalar is an integer, for it decides the shapes of a call."""
        if not isinstance(symbol.value, UniformValue):
            return symbol.value
        value = ex.env.hosts.get(node.name, symbol.value)
        return _without_hosts(ex, value) if value.type.is_integer else None

    def unknown(self, ex: Expressions, node: ast.Name) -> None:
        """Record a name that nothing introduces, which may be meant to be a scalar."""
        scalar = f"'{node.name}: u32'"
        remedy = f"Use a dim of the inputs, or take the length as a scalar: {scalar}."
        report_unknown(ex, node, remedy)

    def name(self, ex: Expressions, node: ast.Name) -> Expr | None:
        """Return a dim, scalar, constant or host; refuse outputs whose turn is later."""
        symbol = ex.scope.get(node.name)
        if isinstance(symbol, IndexSymbol):
            self.refuse(ex, node.span, f"'{node.name}', an index", None, self.instead)
            return None
        if isinstance(symbol, Poison) and symbol.kind == "an output":
            self.refuse(ex, node.span, f"'{node.name}', an output", symbol)
            return None
        return super().name(ex, node)

    def call(self, ex: Expressions, node: ast.Call, want: Scalar | None) -> Expr | None:
        """Return an integer cast, which changes nothing here, or a floored division."""
        name, count = node.function.name, len(node.arguments)
        if name in CASTS and CASTS[name].is_integer and count == 1:
            return ex.check(node.arguments[0])
        if name in TRUNCATING and count == 2:
            return floored(ex, node)
        what = f"the function '{name}'"
        self.refuse(ex, node.span, what, instead=_CALLED.get(name, ""))
        return None


def _without_hosts(ex: Expressions, value: Expr) -> Expr:
    if isinstance(value, UniformValue) and value.name in ex.env.hosts:
        return _without_hosts(ex, ex.env.hosts[value.name])
    return map_children(value, lambda part: _without_hosts(ex, part))


# Guards and requires


def _known_integer(symbol: ValueSymbol) -> Expr | None:
    """Return a dim, an integer scalar or an integer constant."""
    match symbol.value:
        case DimValue() as dim:
            return dim
        case UniformValue(type=type_) as scalar if type_.is_integer:
            return scalar if symbol.kind == "a scalar" else None
        case ConstRef(value=value, type=type_) if type_.is_integer:
            return Constant(value, type_)
        case _:
            return None


ADAPTER_FACTS: Final = {
    "workgroup_bytes": Scalar.I32,
    "invocations": Scalar.I32,
    "subgroups": Scalar.BOOL,
    "f16": Scalar.BOOL,
}


@final
class _GuardRules(_HostSide):
    def refuse(
        self, ex: Expressions, span: Span, what: str, symbol: Symbol | None = None
    ) -> None:
        declared = symbol.span if symbol else None
        ex.env.faults.add(GuardReads(span=span, what=what, declared=declared))

    def read(self, ex: Expressions, node: ast.Name, symbol: ValueSymbol) -> Expr | None:
        return _known_integer(symbol)

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

    def member(self, ex: Expressions, node: ast.Member) -> Expr | None:
        """Return a fact of the adapter."""
        if not isinstance(node.base, ast.Name) or node.base.name != "adapter":
            self.refuse(ex, node.span, "members of anything but 'adapter'")
            return None
        name = node.member.name
        if name in ADAPTER_FACTS:
            return UniformValue(f"adapter.{name}", ADAPTER_FACTS[name])
        ex.env.faults.add(
            UnknownAdapterFact(
                span=node.member.span,
                name=name,
                known=", ".join(f"'{fact}'" for fact in ADAPTER_FACTS),
                suggestion=closest(name, list(ADAPTER_FACTS)),
            )
        )
        return None


GUARD: Final = _GuardRules()


@final
@dataclass(frozen=True)
class RequireRules(_HostSide):
    """Rules of a condition on a call; `computed` are the names of lets and hosts."""

    computed: frozenset[str]

    def refuse(
        self, ex: Expressions, span: Span, what: str, symbol: Symbol | None = None
    ) -> None:
        """Record what is not known before a call, or is no integer."""
        declared = symbol.span if symbol else None
        ex.env.faults.add(RequireReads(span=span, what=what, declared=declared))

    def read(self, ex: Expressions, node: ast.Name, symbol: ValueSymbol) -> Expr | None:
        """Return a dim, an integer scalar or an integer constant."""
        return _known_integer(symbol)

    def unknown(self, ex: Expressions, node: ast.Name) -> None:
        """Record a name that the kernel computes, or that nothing introduces."""
        if node.name in self.computed:
            self.refuse(ex, node.span, f"'{node.name}', which the kernel computes")
        else:
            report_unknown(ex, node)

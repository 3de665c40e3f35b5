"""The rules of places: what expressions may read there, and how number types mix.

One checker, `Expressions`, judges all expressions by the rules of their place:

| rules | reads | numbers |
| --- | --- | --- |
| `KERNEL` | all names, elements of tensors, reductions | have one type |
| `FUNCTION`, `CONSTANT` | parameters or constants alone | have one type |
| `HostSide`: hosts, lengths, guards, requires | what is known before a kernel runs | mix freely |
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Final, assert_never, final

from kerngen.check.expressions.calls import check_call
from kerngen.check.expressions.checker import Expressions, Rules
from kerngen.check.expressions.operators import (
    check_binary,
    check_conditional,
    check_unary,
    floored,
)
from kerngen.check.expressions.reads import check_chain, check_element, check_name
from kerngen.check.faults.statements import FunctionReads
from kerngen.check.faults.types import NotConstant
from kerngen.check.hints.unknown import report_module, report_unknown
from kerngen.check.scope import Poison, ValueSymbol
from kerngen.ir.builtins.table import TRUNCATING
from kerngen.ir.nodes import Constant, Expr
from kerngen.ir.types import Scalar
from kerngen.source.diagnostic import Diagnostic
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
        return FunctionReads(span=span, what=what)


@final
class _ConstantRules(NodeRules):
    must_fit = True
    introduction = "A constant is made of literals and other constants."

    def refusal(self, span: Span, what: str, declared: Span | None) -> Diagnostic:
        place = "A constant expression"
        return NotConstant(span=span, place=place, name=span.one_line())


FUNCTION: Final = _FunctionRules()
CONSTANT: Final = _ConstantRules()


# The host


class HostSide(NodeRules):
    """The common rules of host expressions: names of known values, and little else."""

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

"""The expression checker: from syntax to typed IR, by the rules of the place.

The typed form of a faulty expression is None.  Its fault is recorded once, at the innermost
expression that has it; those around it are None, too, and record nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar, final

from kerngen.check import faults as diag
from kerngen.check.environment import Environment
from kerngen.check.expressions.literals import literal, overflows
from kerngen.check.hints.conversions import conversion
from kerngen.check.scope import Scope, Symbol
from kerngen.ir.builtins.evaluate import NotFiniteError, bounds
from kerngen.ir.fold import fold
from kerngen.ir.nodes import Expr
from kerngen.ir.operators import is_composite
from kerngen.ir.types import Scalar, ValueType, scalar_of
from kerngen.source.diagnostic import Diagnostic, Faults
from kerngen.source.text import Span
from kerngen.syntax import ast

_T = TypeVar("_T")


def complete(parts: Collection[_T | None]) -> tuple[_T, ...] | None:
    """Return the checked parts of a whole, or None if any is None: it has a fault."""
    known = tuple(part for part in parts if part is not None)
    return known if len(known) == len(parts) else None


class Rules(ABC):
    """The rules of a place: what its expressions may read, and how number types mix."""

    mixes: ClassVar[bool] = False
    """Whether operands may have different types: the result is F32 if one of them is, else I32.

    If not, operands must have one type, and literals take that of the others.
    """
    has_elements: ClassVar[bool] = False
    """Whether tensors and reductions may be read."""
    must_fit: ClassVar[bool] = False
    """Whether an integer that overflows is a fault; at run time it wraps."""
    introduction: ClassVar[str] = (
        "Make it a parameter, a 'let' before this, or a 'const'."
    )
    """The hint for a name that is not declared, and similar to no other."""

    @abstractmethod
    def judge(
        self, ex: Expressions, node: ast.Expr, want: Scalar | None
    ) -> Expr | None:
        """Check an expression; return its typed form, or None after a fault."""

    @abstractmethod
    def refusal(self, span: Span, what: str, declared: Span | None) -> Diagnostic:
        """Return the diagnostic for something that can't be read here."""

    def refuse(
        self, ex: Expressions, span: Span, what: str, symbol: Symbol | None = None
    ) -> None:
        """Report that something can't be read here, and where it is declared."""
        ex.env.faults.add(self.refusal(span, what, symbol.span if symbol else None))


@final
@dataclass(frozen=True)
class Expressions:
    """Checks expressions in one scope, by the rules of their place.

    Subscripts are clamped where a condition may guard them: `in_branch` is set in a branch
    of an `if`, to the right of `and` or `or`, and in the body of a reduction with a
    condition; `guards` are these conditions.
    """

    env: Environment
    scope: Scope
    rules: Rules
    in_branch: bool = False
    guards: tuple[ast.Expr, ...] = ()

    def check(self, node: ast.Expr, want: Scalar | None = None) -> Expr | None:
        """Check an expression; return its typed form, or None after a fault."""
        value = self.rules.judge(self, node, want)
        self.env.model.add(self.scope, node, value)
        return value

    def check_all(
        self, nodes: Iterable[ast.Expr], want: Scalar | None = None
    ) -> tuple[Expr, ...] | None:
        """Check expressions; return their typed forms, or None after a fault in any."""
        return complete([self.check(node, want) for node in nodes])

    def trial(self) -> Expressions:
        """Return a checker in a scope of its own whose diagnostics are discarded."""
        reported = set(self.env.reported)
        env = replace(self.env, faults=Faults(), warnings=Faults(), reported=reported)
        return replace(
            self, env=env, scope=Scope(env.faults, self.scope, is_statement=True)
        )

    def under(self, rules: Rules) -> Expressions:
        """Return a checker in the same scope with other rules."""
        return replace(self, rules=rules)

    def literal(self, span: Span, value: float, want: Scalar | None) -> Expr | None:
        """Return a typed literal; where types mix, an integer is I32 if it fits."""
        if self.rules.mixes:
            is_large = value > bounds(Scalar.I32)[1]
            want = Scalar.U32 if is_large else None
        return literal(self.env.faults, span, value, want)

    def check_as(
        self, node: ast.Expr, want: ValueType, place: str, declared: Span | None = None
    ) -> Expr | None:
        """Check an expression whose place needs a type; return None if it has another.

        `declared` is the span where that type is declared.
        """
        value = self.check(node, scalar_of(want))
        if value is None or value.type == want:
            return value
        self.report_mismatch(node, value, want, place, declared)
        return None

    def report_mismatch(
        self,
        node: ast.Expr,
        value: Expr,
        want: ValueType,
        place: str,
        declared: Span | None = None,
    ) -> None:
        """Report a value whose type is not the one that its place needs."""
        self.env.faults.add(
            diag.TypeMismatch(
                span=node.span,
                declared=declared,
                place=place,
                expected=want.spelling,
                actual=value.type.spelling,
                remedy=conversion(node, value.type, want),
            )
        )

    def check_together(
        self, nodes: tuple[ast.Expr, ...], want: Scalar | None
    ) -> list[Expr | None]:
        """Check operands that share one type, which literals among them take."""
        if self.rules.mixes:
            return [self.check(node) for node in nodes]
        # Operands that have a type of their own are checked first, then the literals.
        kinds = [self.env.untyped.kind(node) for node in nodes]
        typed = {
            n: self.check(node, want)
            for n, (node, kind) in enumerate(zip(nodes, kinds, strict=True))
            if kind is None
        }
        shared = next((value.type for value in typed.values() if value), None)
        if shared is None or shared is Scalar.BOOL:
            numeric = want if want is not None and want.is_numeric else Scalar.I32
            shared = Scalar.F32 if Scalar.F32 in kinds else numeric
        scalar = scalar_of(shared)
        return [
            typed[n] if n in typed else self.check(node, scalar)
            for n, node in enumerate(nodes)
        ]

    def finish(self, expr: Expr, span: Span) -> Expr | None:
        """Fold the constants at the top of an expression; report an overflow."""
        if self.rules.mixes:
            return expr
        if self.rules.must_fit and overflows(self.env.faults, span, expr):
            return None
        try:
            return fold(expr)
        except NotFiniteError:
            self.env.faults.add(diag.NotFinite(span=span, type=expr.type.spelling))
            return None

    def guarded(self, condition: ast.Expr) -> Expressions:
        """Return a checker for expressions that a condition guards."""
        return replace(self, in_branch=True, guards=(*self.guards, condition))

    def condition(self, node: ast.Expr, guard: ast.Expr | None = None) -> Expr | None:
        """Check an expression that must be a bool."""
        inner = self.guarded(guard) if guard else self
        value = inner.check(node)
        if value is None or value.type is Scalar.BOOL:
            return value
        text = node.span.one_line()
        self.env.faults.add(
            diag.ConditionType(
                span=node.span,
                actual=value.type.spelling,
                operand=f"{text}.x" if is_composite(value.type) else text,
            )
        )
        return None

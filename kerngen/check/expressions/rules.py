"""Rules: what expressions may read where they are, and how their numbers mix there.

One checker, `Expressions`, judges all expressions by the rules of their place:

| rules | reads | numbers |
| --- | --- | --- |
| `KERNEL` | all names, elements of tensors, reductions | have one type |
| `FUNCTION`, `CONSTANT` | parameters or constants alone | have one type |
| `HostRules` and its like | what is known before a kernel runs | mix freely |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final, final

from kerngen.check.expressions.calls import check_call
from kerngen.check.expressions.reads import check_chain, check_element, check_name
from kerngen.check.faults.statements import FunctionReads
from kerngen.check.faults.types import NotConstant
from kerngen.check.hints.no_parts import report_module
from kerngen.check.scope import Symbol, one_line
from kerngen.ir.nodes import Expr
from kerngen.ir.types import Scalar
from kerngen.source.text import Span
from kerngen.syntax import ast
from kerngen.syntax.mistakes.foreign import MODULES

if TYPE_CHECKING:
    from kerngen.check.expressions.checker import Expressions


class Rules(ABC):
    """The rules of one kind of place; without more, those of a kernel's body."""

    mixes: ClassVar[bool] = False
    """Whether operands keep their types: an operation is F32 if one of them is, else I32.

    Otherwise operands have one type, and literals take that of the others.
    """
    has_elements: ClassVar[bool] = False
    """Whether tensors and reductions may be read."""
    must_fit: ClassVar[bool] = False
    """Whether an integer that overflows is a fault; at run time it wraps."""
    introduction: ClassVar[str] = (
        "Make it a parameter, a 'let' before this, or a 'const'."
    )
    """What to do about a name that nothing introduces."""

    @abstractmethod
    def refuse(
        self, ex: Expressions, span: Span, what: str, symbol: Symbol | None = None
    ) -> None:
        """Record what can't be read here, and where that is declared."""

    def name(self, ex: Expressions, node: ast.Name) -> Expr | None:
        """Return the value of a bare name."""
        return check_name(ex, node)

    def member(self, ex: Expressions, node: ast.Member) -> Expr | None:
        """Return the value of a member or component."""
        base = node.base
        module = base.name if isinstance(base, ast.Name) else ""
        if module in MODULES and ex.scope.get(module) is None:
            report_module(ex, node, module)
            return None
        return check_chain(ex, node)

    def subscript(self, ex: Expressions, node: ast.Subscript) -> Expr | None:
        """Return the value of an element."""
        return check_element(ex, node)

    def call(self, ex: Expressions, node: ast.Call, want: Scalar | None) -> Expr | None:
        """Return the value of a call; literals in it take the type `want`."""
        return check_call(ex, node, want)


@final
class _KernelRules(Rules):
    has_elements = True

    def refuse(
        self, ex: Expressions, span: Span, what: str, symbol: Symbol | None = None
    ) -> None:
        raise AssertionError(f"a kernel may read {what}")


@final
class _FunctionRules(Rules):
    introduction = "Make it a parameter of the function."

    def refuse(
        self, ex: Expressions, span: Span, what: str, symbol: Symbol | None = None
    ) -> None:
        ex.env.faults.add(FunctionReads(span=span, what=what))


@final
class _ConstantRules(Rules):
    must_fit = True
    introduction = "A constant is made of literals and other constants."

    def refuse(
        self, ex: Expressions, span: Span, what: str, symbol: Symbol | None = None
    ) -> None:
        ex.env.faults.add(
            NotConstant(
                span=span, place="A constant expression", name=one_line(span.text)
            )
        )


KERNEL: Final = _KernelRules()
FUNCTION: Final = _FunctionRules()
CONSTANT: Final = _ConstantRules()

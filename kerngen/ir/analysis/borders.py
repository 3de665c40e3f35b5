"""Proofs that the condition around a read keeps it inside its axis.

`if t > 0 { h[t - 1] } else { 0.0 }` reads `h` where `t - 1 >= 0`.  The proof takes one
condition at a time: `t - 1`, less what the condition makes no less than 0, is a sum that
is never negative, whatever the lengths.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.linear import Lengths, length_of
from kerngen.ir.types import Scalar
from kerngen.ir.walk import children, subscript_value

Condition: TypeAlias = tuple[ir.Expr, bool]
"""An expression of type bool, and whether it is true or false."""

_NEGATED: Final[dict[ir.BinaryOp, ir.BinaryOp]] = {
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
    "==": "!=",
    "!=": "==",
}
_MINUS_ONE: Final = ir.Constant(-1, Scalar.I32)
_SMALL: Final = 1 << 16
ONE: Final = ir.Constant(1, Scalar.I32)
"""The number 1 of subscripts."""


def reads_under(
    expr: ir.Expr, tensor: ir.Tensor, under: tuple[Condition, ...] = ()
) -> Iterator[tuple[ir.Load, tuple[Condition, ...]]]:
    """Yield each read of a tensor, with the conditions under which it is evaluated."""
    match expr:
        case ir.Select(condition=condition, then=then, otherwise=otherwise):
            yield from reads_under(condition, tensor, under)
            yield from reads_under(then, tensor, (*under, (condition, True)))
            yield from reads_under(otherwise, tensor, (*under, (condition, False)))
        case ir.Binary(op="and" | "or" as op, left=left, right=right):
            yield from reads_under(left, tensor, under)
            yield from reads_under(right, tensor, (*under, (left, op == "and")))
        case ir.Reduce(
            condition=ir.Select() | ir.Binary() | ir.Unary() as condition, body=body
        ):
            yield from reads_under(condition, tensor, under)
            yield from reads_under(body, tensor, (*under, (condition, True)))
        case _:
            if isinstance(expr, ir.Load) and expr.tensor == tensor:
                yield expr, under
            for child in children(expr):
                yield from reads_under(child, tensor, under)


@final
@dataclass(frozen=True)
class Borders:
    """Proves that reads under conditions stay inside their axes, by the lengths."""

    lengths: Lengths

    def excludes(
        self, load: ir.Load, axis: int, under: tuple[Condition, ...], shift: int
    ) -> bool:
        """Whether conditions keep a read inside of the axis along which it is shifted."""
        wanted = place = subscript_value(load.subscripts[axis])
        if shift > 0:
            last = difference(length_of(load.tensor.extents[axis]), ONE)
            wanted = difference(last, place)
        facts = self._all_facts(under)
        return any(self._follows(wanted, fact) for fact in facts)

    def follows(self, condition: ir.Expr, fact: ir.Expr) -> bool:
        """Whether a condition is true wherever an expression is not negative.

        `t > 0` is true where `t - 3` is not negative.  Of sums that may wrap, as that of
        `t * 1000000000 > 0`, nothing follows.
        """
        if not _never_wraps(condition):
            return False
        # Were it false, two numbers would not be negative whose sum is at most -1.
        below = difference(_MINUS_ONE, fact)
        return any(
            self.lengths.never_negative(difference(below, other))
            for other in self._facts(condition, False, ())
        )

    def _all_facts(self, under: tuple[Condition, ...]) -> tuple[ir.Expr, ...]:
        """Return the expressions that conditions make non-negative, repeatedly applied.

        `t - 1` is not where `t != 0`, and so `t - 2` is not if `t != 1` as well.
        """
        known: tuple[ir.Expr, ...] = ()
        while True:
            facts = tuple(x for each in under for x in self._facts(*each, known))
            if len(facts) == len(known):
                return facts
            known = facts

    def _follows(self, wanted: ir.Expr, fact: ir.Expr) -> bool:
        return self.lengths.never_negative(difference(wanted, fact))

    def _facts(
        self, condition: ir.Expr, holds: bool, known: tuple[ir.Expr, ...]
    ) -> Iterator[ir.Expr]:
        """Yield expressions that a condition keeps from being negative: `t - 1` of `t > 0`."""
        match condition:
            case ir.Unary(op="not", operand=operand):
                yield from self._facts(operand, not holds, known)
            case ir.Binary(op="and" | "or" as op, left=left, right=right):
                if holds == (op == "and"):
                    yield from self._facts(left, holds, known)
                    yield from self._facts(right, holds, known)
            case ir.Binary(op=op, left=left, right=right) if op in _NEGATED:
                # The arithmetic of u32 wraps below 0, so that it proves nothing.
                if left.type is Scalar.I32:
                    sides = difference(left, right), difference(right, left)
                    yield from self._compared(
                        op if holds else _NEGATED[op], *sides, known
                    )
            case _:
                return

    def _compared(
        self, op: ir.BinaryOp, up: ir.Expr, down: ir.Expr, known: tuple[ir.Expr, ...]
    ) -> Iterator[ir.Expr]:
        """Yield expressions that are not negative where a comparison holds."""
        match op:
            case "<":
                yield difference(down, ONE)
            case "<=":
                yield down
            case ">":
                yield difference(up, ONE)
            case ">=":
                yield up
            case "==":
                yield from (up, down)
            case "!=":
                # At an end of its range, not equal is beyond.
                for each in (up, down):
                    at_end = any(self._follows(each, fact) for fact in known)
                    if at_end or self.lengths.never_negative(each):
                        yield difference(each, ONE)
            case _:
                return


def difference(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """Return `left - right`, of integers."""
    return ir.Binary("-", left, right, Scalar.I32)


def _never_wraps(expr: ir.Expr) -> bool:
    """Whether an expression has nothing but indices and lengths, and small numbers beside them."""
    match expr:
        case ir.IndexValue() | ir.DimValue():
            return True
        case ir.Constant(value=value):
            return abs(value) <= _SMALL
        case ir.Unary(op="not", operand=operand):
            return _never_wraps(operand)
        case ir.Binary(op="+" | "-", left=left, right=ir.Constant() as right):
            is_bare = isinstance(left, ir.IndexValue | ir.DimValue)
            return is_bare and _never_wraps(right)
        case ir.Binary(op=op, left=left, right=right) if op in _NEGATED:
            return _never_wraps(left) and _never_wraps(right)
        case _:
            return False

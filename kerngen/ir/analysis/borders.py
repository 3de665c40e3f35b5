"""Proofs that the condition around a read keeps it inside its axis.

    if t > 0 { h[t - 1] } else { 0.0 }

From `t > 0` follows the fact that `t - 1` is at least 0.  The read needs `t - 1 >= 0`: the
proof is that the needed expression less the fact, here 0, is never negative, whatever the
lengths (`linear.py`).  One condition at a time is used.
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
"""Numbers up to it are taken not to overflow beside an index or a length."""

ONE: Final = ir.Constant(1, Scalar.I32)
"""The literal 1, as an i32."""


def reads_under(
    expr: ir.Expr, tensor: ir.Tensor, under: tuple[Condition, ...] = ()
) -> Iterator[tuple[ir.Load, tuple[Condition, ...]]]:
    """Yield each read of a tensor in an expression, with the conditions that must hold for it.

    They begin with `under`, the conditions around the expression itself.
    """
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
    """Proves from the conditions around a read that it stays inside its axes.

    `lengths` are the kernel's: a proof is for all values that they may have.
    """

    lengths: Lengths

    def excludes(
        self, load: ir.Load, axis: int, under: tuple[Condition, ...], shift: int
    ) -> bool:
        """Whether the conditions in `under` keep a read inside an axis.

        A read at a negative `shift`, as `h[t - 1]`, must not be below 0; one at a positive
        `shift`, as `h[t + 1]`, must not be above the last element.
        """
        wanted = place = subscript_value(load.subscripts[axis])
        if shift > 0:
            last = difference(length_of(load.tensor.extents[axis]), ONE)
            wanted = difference(last, place)
        facts = self._all_facts(under)
        return any(self._follows(wanted, fact) for fact in facts)

    def follows(self, condition: ir.Expr, fact: ir.Expr) -> bool:
        """Whether a condition is proven to hold wherever the expression `fact` is not negative.

        So `t > 0` follows from the fact `t - 3`.  A condition with sums that may wrap, as
        `t * 1000000000 > 0`, is never proven.
        """
        if not _never_wraps(condition):
            return False
        # By contradiction: if it were false, `other` and `fact` would not be negative, but
        # their sum is at most -1, as -1 - fact - other is never negative.
        below = difference(_MINUS_ONE, fact)
        return any(
            self.lengths.never_negative(difference(below, other))
            for other in self._facts(condition, False, ())
        )

    def _all_facts(self, under: tuple[Condition, ...]) -> tuple[ir.Expr, ...]:
        """Return the expressions that some conditions together keep from being negative.

        From `t != 0` follows `t - 1`, and from that and `t != 1` follows `t - 2`: so the
        conditions are applied until there are no new facts.
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
        """Yield expressions that a condition keeps from being negative: `t - 1` for `t > 0`.

        `holds` is whether the condition is true or false.
        """
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
                # A difference that is at least 0, and is not 0, is at least 1.
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
    """Whether a condition compares indices and lengths alone, plus or minus small numbers."""
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

"""Conditions taken apart: `j <= i and keep[j] != 0` is two, which both must hold."""

from __future__ import annotations

from collections.abc import Iterator

from kerngen.ir.nodes import Binary, Expr, Unary


def all_parts(condition: Expr, *, holds: bool) -> Iterator[tuple[Expr, bool]]:
    """Yield conditions that all hold, or all fail, where `condition` is `holds`.

    `a and b` is true where both are; `a or b` is false where neither is.
    """
    match condition:
        case Unary("not", operand):
            yield from all_parts(operand, holds=not holds)
        case Binary("and", left, right) if holds:
            yield from all_parts(left, holds=True)
            yield from all_parts(right, holds=True)
        case Binary("or", left, right) if not holds:
            yield from all_parts(left, holds=False)
            yield from all_parts(right, holds=False)
        case _:
            yield condition, holds

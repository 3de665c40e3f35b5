"""Sizes and conditions of plans in JavaScript, over `d`, which has BigInts by name.

    m * ceil_div(n, 4096)   becomes   d.m * $host.ceilDiv(d.n, 4096n)
    n % 4 == 0              becomes   d.n % 4n === 0n

BigInts are exact, as the integers of Python.  They can't be divided by zero, as WGSL's can.
"""

from __future__ import annotations

from typing import Final

from kerngen.plan.size import Guard, Size
from kerngen.plan.text import Printer, Words

JAVASCRIPT: Final = Words(
    both=" && ",
    either=" || ",
    negation="!({})",
    comparisons={"==": "===", "!=": "!=="},
    literal="{}n",
    negative="({}n)",
    name="d.{}",
    part='d["{}"]',
    select="({} ? {} : {})",
    calls={
        "/": "$host.div({})",
        "%": "$host.rem({})",
        "abs": "$host.abs({})",
        "ceil_div": "$host.ceilDiv({})",
        "floor_div": "$host.floorDiv({})",
        "max": "$host.max({})",
        "min": "$host.min({})",
        "mod": "$host.mod({})",
        "shift_left": "$host.shiftLeft({})",
        "shift_right": "$host.shiftRight({})",
        "wrap_i32": "BigInt.asIntN(32, {})",
        "wrap_u32": "BigInt.asUintN(32, {})",
    },
    operators={"bit_and": " & ", "bit_or": " | ", "bit_xor": " ^ "},
)


def as_function(part: Size | Guard, printer: Printer) -> str:
    """Return a size or a condition as a function of `d`; one that has a name is that."""
    if isinstance(part, Guard):
        return f"(d) => {printer.guard(part)}"
    text = printer.size(part)
    return text.removesuffix("(d)") if part in printer.names else f"(d) => {text}"

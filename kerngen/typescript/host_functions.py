"""Arithmetic of the host in JavaScript: functions that a module has where it calls them.

Integers are BigInts, exact; division by zero is as in WGSL.  Printed expressions call
`$host.ceilDiv(d.n, 4n)`; a module that has some defines these, and no others:

    const $host = { ceilDiv: (a, b) => ... };
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

HOST: Final = "$host"

_FUNCTIONS: Final = {
    "abs": "(x) => (x < 0n ? -x : x)",
    # Quotients and remainders: x / 0 is x, and x % 0 is 0.
    "div": "(a, b) => (b ? a / b : a)",
    "rem": "(a, b) => (b ? a % b : 0n)",
    "ceilDiv": "(a, b) => (b ? a / b + BigInt(a % b !== 0n && a < 0n === b < 0n) : a)",
    "floorDiv": "(a, b) => (b ? a / b - BigInt(a % b !== 0n && a < 0n !== b < 0n) : a)",
    "mod": "(a, b) => (b ? ((a % b) + b) % b : 0n)",
    "shiftLeft": "(a, by) => a << (by & 31n)",
    "shiftRight": "(a, by) => a >> (by & 31n)",
    "min": "(a, b) => (b < a ? b : a)",
    "max": "(a, b) => (b > a ? b : a)",
    # A bound that is NaN makes it so.
    "clamp": (
        "(x, low, high) => "
        "(low !== low || high !== high ? NaN : high < (x = low > x ? low : x) ? high : x)"
    ),
    # A float as an integer saturates at the nearest f32 within.
    "toI32": (
        "(x) => BigInt(Math.trunc(Math.min(Math.max(x || 0, -2147483648), 2147483520)))"
    ),
    "toU32": "(x) => BigInt(Math.trunc(Math.min(Math.max(x || 0, 0), 4294967040)))",
    # The nearest integer; of two, the even one.
    "round": ("(x, up = Math.round(x)) => (up - x === 0.5 && up % 2 ? up - 1 : up)"),
    # IEEE 754 has 1 to any power as 1.
    "pow": (
        "(a, b) => (a === 1 || (a === -1 && Math.abs(b) === Infinity) ? 1 : a ** b)"
    ),
}

_CALL: Final = re.compile(r"\$host\.(\w+)\(")


def host_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the definitions of what lines of a module call."""
    called = {name for line in lines for name in _CALL.findall(line)}
    if called:
        yield ""
        yield f"const {HOST} = {{"
        yield from (f"  {n}: {t}," for n, t in _FUNCTIONS.items() if n in called)
        yield "};"

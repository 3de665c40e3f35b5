"""Weights of attention scaled by a power of two, so that their sums can't overflow.

Each weight exp(score - top) is at most 1, and is multiplied with the share 1 / 2^n, for up to
2^n keys: so a total is at most 1.  A sum of weights times values is then no larger than the
largest value, and overflows nowhere where the equations, which divide each weight by the
total first, do not.  A power of two changes the exponent of a number, and none of its digits.

    let share = bitcast<f32>((127u - n) << 23u);         // 1 / 2^n
    score_0_0 = exp(score_0_0 - top_0.x) * share;
"""

from __future__ import annotations

from kerngen.ir.nodes import Extent
from kerngen.schedule.flash.attention import MEAN, SUM, TOP, TOTAL
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.identities import infinity
from kerngen.schedule.lowering.values import Value
from kerngen.shader import tree as t

_ONE = 127
"""The exponent of 1.0 as f32 has it; its bits begin at bit 23."""


def share(shader: ShaderBuilder, keys: Extent) -> t.Expr:
    """Return the factor of all weights in WGSL: 1 / 2^n, with the least 2^n >= `keys`."""
    return _power(t.Binary("-", t.u32(_ONE), _doublings(shader, keys)))


def row_values(
    shader: ShaderBuilder, keys: Extent, row: tuple[t.Expr, t.Expr]
) -> dict[str, Value]:
    """Return the local values `TOP` and `TOTAL` of a row: largest score and scaled total.

    In a row without keys the total is 0; its largest score is -inf, the maximum of no terms.
    """
    top, total = row
    none = infinity(shader, negative=True)
    largest = t.call("select", top, none, total.equals(t.Literal("0.0")))
    return {TOP.name: Value(largest), TOTAL.name: Value(total * _whole(shader, keys))}


def sum_values(
    shader: ShaderBuilder, keys: Extent, value: Value, total: t.Expr
) -> dict[str, Value]:
    """Return the local values `SUM` and `MEAN`, from a scaled sum and the row's scaled total.

    `value` is one sum, or a vector of four.
    """
    return {
        SUM.name: Value(value.expr * _whole(shader, keys), value.wide),
        MEAN.name: Value(t.Binary("/", value.expr, total), value.wide),
    }


def _whole(shader: ShaderBuilder, keys: Extent) -> t.Expr:
    """Return 2^n, with which scaled sums are multiplied to be those of the equations."""
    return _power(_doublings(shader, keys) + _ONE)


def _power(exponent: t.Expr) -> t.Expr:
    """Return the f32 with these bits of exponent, and no others."""
    return t.call("bitcast<f32>", t.Binary("<<", exponent, t.u32(23)))


def _doublings(shader: ShaderBuilder, keys: Extent) -> t.Expr:
    """Return the least n with 2^n keys or more; of no keys it is that of one, 0."""
    below = t.Binary("-", t.call("max", shader.extent(keys), t.ONE), t.ONE)
    return t.Binary("-", t.u32(32), t.call("countLeadingZeros", below))

"""Weights of attention scaled by a power of two, so that their sums can't overflow.

The total of as many shares as there are keys is at most 1.  So a weighted mean is no
larger than the largest value on the way, either, and overflows nowhere where the equations
divide each weight by the total first.  Powers of two change no bit of a number.
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
    """Return the scale of the weights: 1 / 2^n, for up to 2^n keys."""
    return _power(t.Binary("-", t.u32(_ONE), _doublings(shader, keys)))


def row_values(
    shader: ShaderBuilder, keys: Extent, row: tuple[t.Expr, t.Expr]
) -> dict[str, Value]:
    """Return `TOP` and `TOTAL` for a row's largest score and scaled total."""
    top, total = row
    none = infinity(shader, negative=True)
    largest = t.call("select", top, none, total.equals(t.Literal("0.0")))
    return {TOP.name: Value(largest), TOTAL.name: Value(total * _whole(shader, keys))}


def sum_values(
    shader: ShaderBuilder, keys: Extent, value: Value, total: t.Expr
) -> dict[str, Value]:
    """Return the values of `SUM` and `MEAN`, from one scaled sum or a vector of four."""
    return {
        SUM.name: Value(value.expr * _whole(shader, keys), value.wide),
        MEAN.name: Value(t.Binary("/", value.expr, total), value.wide),
    }


def _whole(shader: ShaderBuilder, keys: Extent) -> t.Expr:
    return _power(_doublings(shader, keys) + _ONE)


def _power(exponent: t.Expr) -> t.Expr:
    return t.call("bitcast<f32>", t.Binary("<<", exponent, t.u32(23)))


def _doublings(shader: ShaderBuilder, keys: Extent) -> t.Expr:
    """Return n, where 2^n is the number of keys or more."""
    below = t.Binary("-", t.call("max", shader.extent(keys), t.ONE), t.ONE)
    return t.Binary("-", t.u32(32), t.call("countLeadingZeros", below))

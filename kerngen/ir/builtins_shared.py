"""The rows of the built-ins that take integers: alone, or as well as f32.

Sections named in `source` are those of the WGSL specification.
"""

from __future__ import annotations

from kerngen.ir.builtin import Accuracy, Builtin, Overload
from kerngen.ir.types import Scalar

F32, I32, U32, BOOL = Scalar.F32, Scalar.I32, Scalar.U32, Scalar.BOOL

EXACT = Accuracy(source="exact (WGSL 15.7.4)")


def same(count: int, *types: Scalar) -> tuple[Overload, ...]:
    """Return overloads with `count` arguments and a result of one type."""
    return tuple(Overload((scalar,) * count, scalar) for scalar in types)


def _choice(scalar: Scalar) -> Overload:
    return Overload((scalar, scalar, BOOL), scalar)


SHARED_ROWS = (
    Builtin(
        "abs",
        same(1, F32, I32, U32),
        "abs({0})",
        "np.abs({0})",
        EXACT,
        "The absolute value; of the lowest i32, that i32.",
    ),
    Builtin(
        "sign",
        same(1, F32, I32),
        "sign({0})",
        "np.sign({0})",
        EXACT,
        "-1, 0 or 1.",
    ),
    Builtin(
        "min",
        same(2, F32, I32, U32),
        "min({0}, {1})",
        "np.minimum({0}, {1})",
        EXACT,
        "The smaller of two numbers.",
    ),
    Builtin(
        "max",
        same(2, F32, I32, U32),
        "max({0}, {1})",
        "np.maximum({0}, {1})",
        EXACT,
        "The larger of two numbers.",
    ),
    Builtin(
        "clamp",
        same(3, F32, I32, U32),
        "clamp({0}, {1}, {2})",
        "np.clip({0}, {1}, {2})",
        EXACT,
        "The first argument, kept between the second and the third.",
    ),
    Builtin(
        "select",
        tuple(_choice(scalar) for scalar in (F32, I32, U32, BOOL)),
        "select({0}, {1}, {2})",
        "np.where({2}, {1}, {0})",
        EXACT,
        "The second argument where the third is true, else the first.",
    ),
)

INTEGER_ROWS = (
    Builtin(
        "floor_div",
        same(2, I32, U32),
        "floor_div({0}, {1})",
        "ref.floor_div({0}, {1})",
        EXACT,
        "The quotient rounded down, as Python's `//`; of a division by 0, the dividend.",
    ),
    Builtin(
        "mod",
        same(2, I32, U32),
        "floor_mod({0}, {1})",
        "ref.mod({0}, {1})",
        EXACT,
        "The remainder with the divisor's sign, as Python's `%`; of a division by 0, 0.",
    ),
    Builtin(
        "countOneBits",
        same(1, I32, U32),
        "countOneBits({0})",
        "ref.count_one_bits({0})",
        EXACT,
        "How many bits are set.",
    ),
    Builtin(
        "countLeadingZeros",
        same(1, I32, U32),
        "countLeadingZeros({0})",
        "ref.count_leading_zeros({0})",
        EXACT,
        "How many zeros precede the highest set bit; 32 if none is set.",
    ),
    Builtin(
        "countTrailingZeros",
        same(1, I32, U32),
        "countTrailingZeros({0})",
        "ref.count_trailing_zeros({0})",
        EXACT,
        "How many zeros follow the lowest set bit; 32 if none is set.",
    ),
    Builtin(
        "firstLeadingBit",
        same(1, I32, U32),
        "firstLeadingBit({0})",
        "ref.first_leading_bit({0})",
        EXACT,
        "The place of the highest bit that differs from the sign; all ones if none.",
    ),
    Builtin(
        "firstTrailingBit",
        same(1, I32, U32),
        "firstTrailingBit({0})",
        "ref.first_trailing_bit({0})",
        EXACT,
        "The place of the lowest set bit; all ones if none is set.",
    ),
    Builtin(
        "reverseBits",
        same(1, I32, U32),
        "reverseBits({0})",
        "ref.reverse_bits({0})",
        EXACT,
        "The bits in reverse order.",
    ),
    Builtin(
        "extractBits",
        tuple(Overload((scalar, U32, U32), scalar) for scalar in (I32, U32)),
        "extractBits({0}, {1}, {2})",
        "ref.extract_bits({0}, {1}, {2})",
        EXACT,
        "Bits of the first argument: from which place on, how many; an i32 keeps the sign.",
        wide=False,
    ),
    Builtin(
        "insertBits",
        tuple(Overload((scalar, scalar, U32, U32), scalar) for scalar in (I32, U32)),
        "insertBits({0}, {1}, {2}, {3})",
        "ref.insert_bits({0}, {1}, {2}, {3})",
        EXACT,
        "The first argument with bits of the second put in: from which place on, how many.",
        wide=False,
    ),
)

"""The rows of built-ins on the bits of integers.

The functions compute with Python's integers, negative ones for i32 alone.  Results may have
more than 32 bits: `evaluate.py` wraps them.
"""

from __future__ import annotations

import struct
from typing import Final

from kerngen.ir.builtins.helpers import BITS
from kerngen.ir.builtins.row import Builtin, Overload, same
from kerngen.ir.types import Scalar

I32, U32 = Scalar.I32, Scalar.U32


def _bits(value: int) -> int:
    """Return the lower 32 bits of an integer, which are those of an i32 or u32."""
    return value & 0xFFFFFFFF


def _count_ones(value: int) -> int:
    return _bits(value).bit_count()


def _leading_zeros(value: int) -> int:
    return 32 - _bits(value).bit_length()


def _trailing_zeros(value: int) -> int:
    # `bits & -bits` is the lowest set bit.
    bits = _bits(value)
    return (bits & -bits).bit_length() - 1 if bits else 32


def _first_leading(value: int) -> int:
    return _bits(~value if value < 0 else value).bit_length() - 1


def _first_trailing(value: int) -> int:
    return _trailing_zeros(value) if value else -1


def _reverse(value: int) -> int:
    return int(f"{_bits(value):032b}"[::-1], 2)


def bit_field(offset: int, count: int) -> tuple[int, int]:
    """Return the offset and the width of a bit field, cut to 32 bits as WGSL does."""
    start = min(offset, 32)
    return start, min(count, 32 - start)


def _extract(value: int, offset: int, count: int) -> int:
    start, width = bit_field(offset, count)
    return (_bits(value) >> start) & ((1 << width) - 1)


def _extract_signed(value: int, offset: int, count: int) -> int:
    """Return a bit field as a number in two's complement."""
    bits = _extract(value, offset, count)
    _, width = bit_field(offset, count)
    return bits - (1 << width) if width and bits >> (width - 1) else bits


def _insert(value: int, new: int, offset: int, count: int) -> int:
    start, width = bit_field(offset, count)
    mask = ((1 << width) - 1) << start
    return (_bits(value) & ~mask) | ((_bits(new) << start) & mask)


def _bits_of(value: float) -> int:
    """Return the bits of the nearest f32."""
    return int.from_bytes(struct.pack("<f", value), "little")


_FIELD: Final = "at = $host.min(o, 32n), n = $host.min(c, 32n - at)"
"""The offset and the width of a bit field in JavaScript, both cut to 32 bits."""

BIT_ROWS = (
    Builtin(
        name="bits",
        overloads=(Overload((Scalar.F32,), U32),),
        doc="The bits of an f32: its sign, its exponent, its fraction.",
        helper=BITS,
        numpy="ref.bits({0})",
        javascript_of_bits="(x) => BigInt(new Uint32Array(Float32Array.of(x).buffer)[0])",
        scalar=_bits_of,
    ),
    Builtin(
        name="countOneBits",
        overloads=same(1, I32, U32),
        doc="How many bits are set.",
        numpy="ref.count_one_bits({0})",
        javascript_of_bits=(
            "(x) => BigInt(BigInt.asUintN(32, x).toString(2).replaceAll('0', '').length)"
        ),
        scalar=_count_ones,
    ),
    Builtin(
        name="countLeadingZeros",
        overloads=same(1, I32, U32),
        doc="How many zeros precede the highest set bit; 32 if none is set.",
        numpy="ref.count_leading_zeros({0})",
        javascript_of_bits="(x) => BigInt(Math.clz32(Number(BigInt.asUintN(32, x))))",
        scalar=_leading_zeros,
    ),
    Builtin(
        name="countTrailingZeros",
        overloads=same(1, I32, U32),
        doc="How many zeros follow the lowest set bit; 32 if none is set.",
        numpy="ref.count_trailing_zeros({0})",
        javascript_of_bits=(
            "(x) => x ? BigInt(31 - Math.clz32(Number(BigInt.asIntN(32, x & -x)))) : 32n"
        ),
        scalar=_trailing_zeros,
    ),
    Builtin(
        name="firstLeadingBit",
        overloads=same(1, I32, U32),
        doc="The place of the highest bit that differs from the sign; all ones if none.",
        numpy="ref.first_leading_bit({0})",
        javascript_of_bits="(x) => BigInt(31 - Math.clz32(Number(x < 0n ? ~x : x)))",
        scalar=_first_leading,
    ),
    Builtin(
        name="firstTrailingBit",
        overloads=same(1, I32, U32),
        doc="The place of the lowest set bit; all ones if none is set.",
        numpy="ref.first_trailing_bit({0})",
        javascript_of_bits="(x) => BigInt(31 - Math.clz32(Number(x & -x)))",
        scalar=_first_trailing,
    ),
    Builtin(
        name="reverseBits",
        overloads=same(1, I32, U32),
        doc="The bits in reverse order.",
        numpy="ref.reverse_bits({0})",
        javascript_of_bits=(
            "(x) => BigInt('0b' + [...BigInt.asUintN(32, x).toString(2)"
            ".padStart(32, '0')].reverse().join(''))"
        ),
        scalar=_reverse,
    ),
    Builtin(
        name="extractBits",
        overloads=tuple(Overload((t, U32, U32), t) for t in (I32, U32)),
        doc="Bits of the first argument: from which place on, how many; an i32 keeps the sign.",
        numpy="ref.extract_bits({0}, {1}, {2})",
        javascript_of_bits=(
            f"(x, o, c, {_FIELD}) => BigInt.{{as_int}}(Number(n), x >> at)"
        ),
        scalar=_extract,
        signed=_extract_signed,
        wide=False,
        takes_bit_field=True,
    ),
    Builtin(
        name="insertBits",
        overloads=tuple(Overload((t, t, U32, U32), t) for t in (I32, U32)),
        doc="The first argument with bits of the second put in: from which place on, how many.",
        numpy="ref.insert_bits({0}, {1}, {2}, {3})",
        javascript_of_bits=(
            f"(x, y, o, c, {_FIELD}, m = ((1n << n) - 1n) << at) => "
            "(x & ~m) | ((y << at) & m)"
        ),
        scalar=_insert,
        wide=False,
        takes_bit_field=True,
    ),
)

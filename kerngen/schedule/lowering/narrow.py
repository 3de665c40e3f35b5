"""How shaders read and write integers of 8 and 4 bits, packed into words of 32.

Element e of a tensor of `u4` is bits 4 (e % 8) to 4 (e % 8) + 3 of word e / 8:

    bits        31 .. 28   ...   7 .. 4   3 .. 0
    word 0      element 7  ...   1        0

A shader has a function for each such tensor that it reads: of one element, or of four
neighbours, which are in one word as the first one's number is a multiple of four.  An
invocation that writes computes all elements of a word, as no two invocations may write one.
"""

from __future__ import annotations

from typing import Final

from kerngen.ir.types import Storage
from kerngen.schedule.lowering.values import LANES

WORD: Final = 32

_ONE: Final = """\
// Element `at` of {name}, whose words hold {count} each.
fn {function}(at: u32) -> {kind}32 {{
    return extractBits({word}, at % {count}u * {bits}u, {bits}u);
}}"""

_FOUR: Final = """\
// Four neighbours of {name}, vector `at`: shifted to the upper end of a word, and down.
fn {function}(at: u32) -> vec4{kind} {{
    return ({four} << vec4u({shifts})) >> vec4u({down}u);
}}"""


def reader(function: str, name: str, storage: Storage, lanes: int) -> str:
    """Return the text of a WGSL function that reads one narrow integer, or four.

    `function` and `name` are the names in the shader of the function and of the tensor.  The
    function's argument `at` is the number of an element, or of a vector of four.  For four
    elements of a tensor `w` of u4:

        let half = w[at / 2u] >> (at % 2u * 16u);
        return (vec4u(half) << vec4u(28u, 24u, 20u, 16u)) >> vec4u(28u);

    The shift up drops the other elements, and the shift down extends the sign of an i4.
    WGSL's `unpack4xU8` is not used: not every browser has it (docs/decisions/0020).
    """
    bits, count = storage.bits, storage.per_word
    signed = storage in {Storage.I8, Storage.I4}

    def cast(word: str) -> str:
        return f"bitcast<i32>({word})" if signed else word

    # Two vectors of four are in a word of 4-bit integers, one in a word of bytes.
    vectors = count // LANES
    part = f"{name}[at / {vectors}u] >> (at % {vectors}u * {LANES * bits}u)"
    whole = part if vectors > 1 else f"{name}[at]"
    kind = "i" if signed else "u"
    return (_FOUR if lanes > 1 else _ONE).format(
        function=function,
        name=name,
        kind=kind,
        count=count,
        bits=bits,
        word=cast(f"{name}[at / {count}u]"),
        four=f"vec4{kind}({cast(whole)})",
        shifts=", ".join(f"{32 - bits * n}u" for n in range(1, LANES + 1)),
        down=32 - bits,
    )


_PACK_ONE: Final = """\
// An element of {name} as bits of its word, at place `place` of {count}.
fn {function}(value: {kind}32, place: u32) -> u32 {{
    return ({value} & {mask}u) << (place * {bits}u);
}}"""

_PACK_FOUR: Final = """\
// Four neighbours of {name} as bits of their word, at place `place` of {vectors}.
fn {function}(value: vec4{kind}, place: u32) -> u32 {{
    let parts = ({value} & vec4u({mask}u)) << vec4u({shifts});
    return {joined};
}}"""


def packer(function: str, name: str, storage: Storage, lanes: int) -> str:
    """Return the text of a WGSL function that shifts one element, or four, to a place.

    The place is in a word of 32 bits.  `function` and `name` are the names in the shader of the
    function and of the tensor.
    """
    # Four bytes are a whole word, which has no place in one; four of 4 bits are half of it.
    bits, signed = storage.bits, storage in {Storage.I8, Storage.I4}
    vector = "u32" if lanes == 1 else "vec4u"
    joined, whole = "parts.x | parts.y | parts.z | parts.w", bits * LANES == WORD
    return (_PACK_FOUR if lanes > 1 else _PACK_ONE).format(
        function=function,
        name=name,
        kind="i" if signed else "u",
        count=storage.per_word,
        vectors=storage.per_word // LANES,
        bits=bits,
        mask=(1 << bits) - 1,
        value=f"bitcast<{vector}>(value)" if signed else "value",
        shifts=", ".join(f"{bits * n}u" for n in range(LANES)),
        joined=joined if whole else f"({joined}) << (place * {bits * LANES}u)",
    )

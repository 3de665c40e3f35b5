"""How shaders read integers of 8 and 4 bits, which are packed into words of 32.

Element e of a tensor of `u4` is bits 4 (e % 8) to 4 (e % 8) + 3 of word e / 8.  A shader
has a function for each such tensor that it reads: of one element, or of four neighbours,
which lie in one word as their number is a multiple of four.
"""

from __future__ import annotations

from typing import Final

from kerngen.ir.types import Storage
from kerngen.schedule.lowering.values import LANES

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

    `function` and `name` are the names in the shader of the function and of the tensor.
    Four integers are read by their vector's number.
    """
    bits, count = storage.bits, storage.per_word
    signed = storage in {Storage.I8, Storage.I4}

    def cast(word: str) -> str:
        return f"bitcast<i32>({word})" if signed else word

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

"""What inputs are made of: right and wrong programs, and words that have broken things."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.check.programs import ROOT, TOKEN

FOLDERS: Final = (
    "tests/cases/accept",
    "tests/cases/reject",
    "tests/syntax/cases",
    "dsl",
)

PROGRAMS: Final = tuple(
    file.read_text("utf-8")
    for folder in FOLDERS
    for file in sorted(Path(ROOT, folder).rglob("*.kern"))
    if file.is_file()
)
"""Every program of the tests and of the standard kernels."""

PIECES: Final = tuple(tuple(TOKEN.findall(text)) for text in PROGRAMS)
"""The same, cut into tokens, blanks among them."""

NUMBERS: Final = (
    *"0 1 2 3 16 127 128 255 256 65535 65536 2147483647 2147483648 4294967295".split(),
    *"4294967296 9223372036854775807 9223372036854775808 1099511627776".split(),
    *"18446744073709551616 0x0 0xffffffff 0x100000000 1e999999 1e-999999".split(),
    *"1.0 0.0 3.4028235e38 3.5e38 1.4e-45 1e-46 65504.0 65520.0 16777217.0".split(),
    f"1{'0' * 400}",
    f"0x{'f' * 5000}",
    "9" * 5000,
    f"1.{'0' * 5000}1",
)
"""Limits of types and of what reads numbers, and what lies beyond them."""

NAMES: Final = (
    *"x y n i k f32 i32 u32 f16 bool vec2f vec3i vec4h mat4x4f mat2x3h S".split(),
    *"class def lambda match case type async await None True print len range".split(),
    *"self cls out ctx np gpu real ref main select array ptr fn var override".split(),
    *"private function storage uniform index count DTYPE pack unpack WGSL ABI".split(),
    *"_ __ ___ _1 __init__ __class__ __dict__ _WGSL x_ x__ k_reference KUniform".split(),
    *"KOutput annotations Any NDArray hostmath geometry lane element".split(),
)
"""Names that Python, WGSL, the runtime or the compiler itself use."""

WORDS: Final = (
    *"use const struct fn kernel schedule when mut let host if else true false".split(),
    *"or and not sum prod max min -> ; : , . @ ( ) [ ] { } = += -= *= /= ==".split(),
    *"!= < <= > >= | ^ & << >> + - * / % ~ && || ! ? ** // /// //! /* */".split(),
    *"exp log sqrt pow abs clamp fma dot cross determinant transpose".split(),
    *"normalize round floor erf is_nan extractBits insertBits countOneBits".split(),
    *"map reduce rows gemv gemm generic tile micro pad buffers lanes split stream slices".split(),
    *"@size @align adapter.f16 adapter.workgroup_bytes .x .xyzw [0] [i]".split(),
    '"a.kern"',
    '"../a.kern"',
    '"',
    '"""',
    "\\",
    "\n",
    "\r\n",
    "\r",
    "\t",
    " ",
)
"""Every word of the language, words of others, and blanks."""

CHARACTERS: Final = (
    *"\0\x0b\x0c\x1b\x7f\x85\xa0\xad\u0131\u017f\u0430\u2028\u2029\u202e\ufeff",
    *"\ufffe\U0001f600\uff21\u00b2\u0664\u00e9",
    "e\u0301",
)
"""Characters that look like others, end lines, turn text round, or are none."""

BYTES: Final = (
    *(b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x80"),
    *(b"\xef\xbb\xbf", b"\xff\xfe", b"\x00", b"\x1a", b"\x80"),
)
"""Bytes that are no UTF-8, or that mark the beginning or the end of a file."""

"""Folding does what a shader could not, and leaves the rest as it is written."""

from __future__ import annotations

import pytest

from kerngen.ir.dump import dump_expr
from tests.compile import checked

KEPT = {
    "1 + 2 * 3": "(1 + (2 * 3))",
    "ONE": "ONE",
    "ONE + 1": "(ONE + 1)",
    "k[i] / 2": "(k[i] / 2)",
    "k[i] << 31": "(k[i] << 31u)",
    "-k[i]": "(-k[i])",
}

FOLDED = {
    "2147483647 + 1": "-2147483648",
    "BIG + 1": "-2147483648",
    "-1 - BIG - 1": "2147483647",
    "65536 * 65536": "0",
    "7 / 2": "3",
    "-7 / 2": "-3",
    "-7 % 4": "-3",
    "1 / 0": "1",
    "k[i] / 0": "k[i]",
    "k[i] % 0": "0",
    "k[i] / (ONE - 1)": "k[i]",
    "k[i] % (ONE - 1)": "0",
    "mod(-7, 4)": "1",
    "mod(7, -4)": "-1",
    "floor_div(-7, 4)": "-2",
    "floor_div(-2147483647 - 1, -1)": "-2147483648",
    "1 << 40": "256",
    "k[i] << 40": "(k[i] << 8u)",
    "-1 >> 1": "-1",
    "-BIG": "-2147483647",
    "~0": "-1",
    "abs(-3)": "3",
    "max(ONE, 3)": "3",
    "i32(1e10)": "2147483520",
    "i32(u32(3))": "3",
    "countOneBits(255)": "8",
    "extractBits(k[i], 40, 3)": "extractBits(k[i], 32u, 0u)",
    "extractBits(k[i], 8, 8)": "extractBits(k[i], 8u, 8u)",
    "extractBits(k[i], 30, 8)": "extractBits(k[i], 30u, 2u)",
}


def folded(expression: str) -> str:
    module = checked(
        "const ONE: i32 = 1;\nconst BIG: i32 = 2147483647;\n"
        f"kernel f(k: i32[n]) -> y: i32[n] {{ y[i] = {expression}; }}",
    )
    (kernel,) = module.kernels
    return dump_expr(kernel.body[0].value)


@pytest.mark.parametrize(("expression", "expected"), [*KEPT.items(), *FOLDED.items()])
def test_fold(expression: str, expected: str) -> None:
    assert folded(expression) == expected

"""What folding leaves in a shader is a valid constant expression to both compilers."""

from __future__ import annotations

from pathlib import Path

import pytest

from kerngen.compiler import compile_text
from kerngen.source.diagnostic import CompileError
from tests.judges.tint import refused

PARAMETERS = "x: f32[n], k: i32[n], u: u32[n], s: i32, t: f32"

EXPRESSIONS = {
    "f32": [
        "x[i] * (0.5 * HALF) + sqrt(HALF) + f32(MOST) + f32(3 / 2)",
        "x[i] / 0.0 + x[i] % 0.0 + 3.4028235e38 + 1e-45",
        "(if 1 < 2 and x[i] > 0 { 1 } else { 1.5e30 * 1e5 }) + f32(i / 0)",
        "clamp(x[i], HALF, 2.0) + smoothstep(0.0, HALF, x[i]) + pow(2.0, x[i])",
        "select(1, 2, YES) + ldexp(x[i], 128) + quantizeToF16(0.1) + tanh(90.0)",
        "degrees(1.0) + fract(-0.25) + exp(-200.0) + exp(80.0)",
    ],
    "f16": [
        "65504.0",
        "-65504.0 * HALF + 1e-9",
        "x[i] + 7e4",
        "if x[i] > 0.0 { 7e4 } else { -7e4 }",
        "big",
        "-big * 2.0",
        "HUGE * t",
    ],
    "i32": [
        "k[i] / 0 + k[i] % 0 + k[i] / (MOST - MOST) + 1 / 0 + s % (2 - 2)",
        "MOST + 1 + MOST * MOST - -LEAST + k[i] * (2147483647 * 2)",
        "(k[i] << 33) + (1 << 40) + (MOST << 1) + (-1 >> 31) + (1 << u[i])",
        "abs(LEAST) + -LEAST + i32(3e10) + i32(u32(3000000000)) + ~0 + k[i]",
        "extractBits(k[i], 20, 30) + insertBits(k[i], 5, 40, 1) + LEAST / -1 + LEAST % -1",
    ],
    "u32": [
        "u[i] + (0 - 1) + 4294967295 * 2 + u32(LEAST) + u32(-1.5) + u32(1e20)",
        "(u[i] << 32) + (1 << 31 << 1) + reverseBits(1) + countLeadingZeros(0)",
    ],
}
CONSTANTS = (
    "const HALF: f32 = 0.5; const MOST: i32 = 2147483647; "
    "const LEAST: i32 = -2147483648; const YES: bool = true; const HUGE: f32 = 7e4;"
)


def shaders(type_: str, folder: Path) -> list[Path]:
    outputs = ", ".join(f"y{n}: {type_}[n]" for n, _ in enumerate(EXPRESSIONS[type_]))
    body = "".join(f"y{n}[i] = {e}; " for n, e in enumerate(EXPRESSIONS[type_]))
    body = f"let big = HUGE; {body} y0[i] += y1[i];"
    text = f"{CONSTANTS} kernel f({PARAMETERS}) -> {outputs} {{ {body} }}"
    try:
        compiled = compile_text(text, "constants.kern")
    except CompileError as error:
        pytest.fail(str(error))
    written: list[Path] = []
    for name, content in compiled.files.items():
        if name.endswith(".wgsl"):
            file = folder / Path(name).name
            file.write_bytes(content)
            written.append(file)
    return written


@pytest.mark.parametrize("type_", sorted(EXPRESSIONS))
def test_tint_accepts_what_is_left(type_: str, tmp_path: Path) -> None:
    files = shaders(type_, tmp_path)
    assert files
    assert refused(files) == {}

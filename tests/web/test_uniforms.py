"""The bytes of uniform structs, in node against Python: standard kernels, and odd hosts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kerngen.emit.targets import Target
from kerngen.runtime.calls.kernel import Kernel
from kerngen.source.diagnostic import CompileError
from tests.compile import built
from tests.numeric.cases import standard_kernels
from tests.web.built import build
from tests.web.uniforms import compare

pytestmark = pytest.mark.web

FEW, MANY = 12, 100
"""How many kernels with random hosts there are, by default and in nightly runs."""

ODD = """
fn square(x: f32) -> f32 { let y = x * x; y }
fn twice(i: i32) -> i32 { i * 2 }

kernel odd(x: f32[m, n], a: f32, b: f32, i: i32, j: i32, u: u32, v: vec3f, t: mat2x3f)
        -> y: f32[m, n] {
    host s1 = square(a) + 1 / b;
    host s2 = i / (j + 1) + i % (j + 3) + (i << 2) + (i >> 1);
    host s3 = pow(a, b) + sqrt(abs(b)) + exp(min(a, 3.0)) - log(max(b, 0.5));
    host s4 = clamp(a, -1.0, 1.0) + round(a * 2.5) + floor(b) + ceil(a) + trunc(b);
    host s5 = v.y * t[1].z + (if a > b { a } else { b }) * f32(i);
    host s6 = twice(i) + m * n - (if m > n { m } else { n });
    host s7 = f32(m) / f32(n + 1) + inverseSqrt(a * a + 1) + fract(b);
    host s8 = mod(i, 7) + floor_div(j, 3) + i32(a);
    y[p, q] = x[p, q] * s1 + f32(s2) + s3 + s4 + s5 + f32(s6) + s7 + f32(s8) + f32(u) + v.x;
}
"""

BITS = """
kernel of_bits(x: f32[n], a: f32, i: i32, u: u32, at: u32, width: u32) -> y: f32[n] {
    host s1 = bits(a * 0.5);
    host s2 = countOneBits(i) + 100 * countLeadingZeros(i) + 10000 * countTrailingZeros(i);
    host s3 = firstLeadingBit(i) + 100 * firstTrailingBit(i);
    host s4 = firstLeadingBit(u);
    host s5 = firstTrailingBit(u);
    host s6 = reverseBits(i);
    host s7 = extractBits(i, at, width);
    host s8 = extractBits(u, at, width);
    host s9 = insertBits(u, 1234567, at, width);
    host t1 = smoothstep(-1.0, 3.0, a);
    host t2 = ldexp(a, i);
    let all = f32(s1 + s2 + s3 + s4 + s5 + s6 + s7 + s8 + s9);
    y[p] = x[p] + t1 + t2 + all;
}
"""


def test_standard_kernels(package: Path, generated: Path) -> None:
    assert package.is_dir()
    cases = standard_kernels()
    assert compare(generated, [(case.module, case.kernel) for case in cases]) > 1000


@pytest.mark.parametrize(("name", "text"), [("odd", ODD), ("bits", BITS)])
def test_odd_hosts(package: Path, tmp_path: Path, name: str, text: str) -> None:
    assert package.is_dir()
    (tmp_path / f"{name}.kern").write_text(text, "utf-8")
    build([tmp_path / f"{name}.kern"], tmp_path, Target.TYPESCRIPT)
    with built(text) as (kernel,):
        assert compare(tmp_path, [(name, kernel)] * 10) > 50


FLOATS = ("a", "b", "v.y", "1.5", "0.25", "f32(i)", "f32(m)", "f32(u)", "f32(n)")
INTEGERS = ("i", "j", "m", "n", "0", "2", "3", "7", "(-5)", "100000")
OF_FLOATS = {
    1: "abs floor ceil round trunc sqrt exp log sign fract sin cos tanh saturate exp2 log2",
    2: "min max pow step atan2",
    3: "clamp mix fma smoothstep",
}
OF_INTEGERS = {
    1: "abs sign countOneBits reverseBits firstLeadingBit",
    2: "min max mod floor_div",
    3: "clamp",
}
HEAD = "x: f32[m, n], a: f32, b: f32, i: i32, j: i32, u: u32, v: vec3f"


def drawn(rng: random.Random, kind: str, depth: int) -> str:
    """A host expression of floats, `f`, or of integers, `i`; or a condition, `?`."""

    def inner(of: str = kind) -> str:
        return drawn(rng, of, depth - 1)

    if kind == "?":
        of = rng.choice("fi")
        left, right = drawn(rng, of, max(depth - 1, 0)), drawn(rng, of, 0)
        return f"{left} {rng.choice(('<', '>', '<=', '>='))} {right}"
    if not depth:
        return rng.choice(FLOATS if kind == "f" else INTEGERS)
    match rng.randrange(6):
        case 0 | 1:
            operators = "+-*/" if kind == "f" else "+-*/%&|^"
            return f"({inner()} {rng.choice(operators)} {inner()})"
        case 2 | 3:
            count = rng.choice((1, 2, 3))
            names = (OF_FLOATS if kind == "f" else OF_INTEGERS)[count].split()
            # Python refuses to clamp integers beyond 64 bits: products are left out there.
            deep = 0 if kind == "i" and count == 3 else depth - 1
            given = ", ".join(drawn(rng, kind, deep) for _ in range(count))
            return f"{rng.choice(names)}({given})"
        case 4:
            return f"(if {inner('?')} {{ {inner()} }} else {{ {inner()} }})"
        case _ if kind == "f":
            return rng.choice((f"f32({inner('i')})", f"(-{inner()})"))
        case _:
            return rng.choice((f"i32({inner('f')})", f"({inner()} >> u)"))


def random_texts(rng: random.Random, count: int) -> Iterator[tuple[str, str]]:
    """Yield kernels that check, by their names; few divide by a constant 0."""
    while count:
        name = f"drawn_{count}"
        values = [drawn(rng, kind, 3) for kind in "fififi"]
        hosts = "".join(f" host s{k} = {value};" for k, value in enumerate(values))
        total = " + ".join(f"f32(s{k})" for k in range(len(values)))
        text = (
            f"kernel {name}({HEAD}) -> y: f32[m, n] {{{hosts} "
            f"y[p, q] = x[p, q] + {total} + a + b + f32(i + j) + f32(u) + v.x; }}"
        )
        try:
            with built(text):
                pass
        except CompileError:
            continue
        yield name, text
        count -= 1


@pytest.mark.parametrize("number", [FEW, pytest.param(MANY, marks=pytest.mark.nightly)])
def test_random_hosts(package: Path, tmp_path: Path, number: int) -> None:
    assert package.is_dir()
    with ExitStack() as stack:
        listed: list[tuple[str, Kernel]] = []
        for name, text in random_texts(random.Random(number), number):
            (tmp_path / f"{name}.kern").write_text(text, "utf-8")
            build([tmp_path / f"{name}.kern"], tmp_path, Target.TYPESCRIPT)
            listed += [(name, kernel) for kernel in stack.enter_context(built(text))]
        assert compare(tmp_path, listed) > 10 * number

"""The bytes of uniform structs, in node against Python: standard kernels, and odd hosts."""

from __future__ import annotations

import random
from base64 import b64decode
from math import isfinite
from pathlib import Path
from typing import Any

import pytest

from kerngen.emit.targets import Target
from kerngen.runtime import UniformRangeError
from kerngen.runtime.calls.kernel import Kernel
from kerngen.runtime.calls.ranges import derive
from kerngen.runtime.calls.scalars import pack
from kerngen.runtime.values.fields import is_leaf
from tests.compile import built
from tests.numeric.cases import standard_kernels
from tests.web import node
from tests.web.built import build

pytestmark = pytest.mark.web

DRAWS = 20

JOB = """
import { derive } from "@/check.js";
import { guardsOf, scalarsOf } from "@/kernel.js";
import { pack } from "@/launch.js";

const number = (value) => Array.isArray(value) ? value.map(number)
  : typeof value === "string" ? Number(value) : value;

function one(kernel, { dims, scalars: given }) {
  const size = kernel.uniform?.size ?? 0;
  const view = new DataView(new ArrayBuffer(size));
  try {
    const scalars = scalarsOf(kernel, Object.fromEntries(
      Object.entries(given).map(([name, value]) => [name, number(value)])));
    const lengths = { ...dims, ...guardsOf(kernel, scalars) };
    derive(kernel, lengths);
    pack(kernel, lengths, scalars, view);
  } catch (error) {
    return error.name;
  }
  return Buffer.from(view.buffer).toString("base64");
}

export default async (given) => {
  const found = [];
  for (const [module, kernel, calls] of given) {
    const own = (await import(`./${module}.js`))[kernel].kernel;
    found.push(calls.map((call) => one(own, call)));
  }
  return found;
};
"""

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


def value(rng: random.Random, kernel: Kernel, slot: int) -> Any:
    element = kernel.scalars[slot].element
    assert is_leaf(element)

    def number() -> float:
        if not element.number.is_integer:
            return rng.choice((0.0, 1.0, -1.5, 2.5, 0.1, 1e-3, 300.0, 1e30))
        least = 0 if element.number.name == "u32" else -9
        return rng.choice((0, 1, 2, 3, 1000, rng.randint(least, 10**9)))

    values = [number() for _ in range(6)]
    match element.shape:
        case ():
            return values[0]
        case (width,):
            return values[:width]
        case (columns, rows):
            return [values[c * rows : (c + 1) * rows] for c in range(columns)]
        case _:
            raise AssertionError(element)


def as_json(value: float | list[Any]) -> Any:
    if isinstance(value, list):
        return [as_json(each) for each in value]
    return value if isfinite(value) else str(value).replace("inf", "Infinity")


def draw(rng: random.Random, kernel: Kernel) -> dict[str, Any]:
    dims = {dim: rng.choice((0, 1, 2, 5, 64, 4097, 70_000)) for dim in kernel.dims}
    slots = range(len(kernel.scalars))
    scalars = {kernel.scalars[slot].name: value(rng, kernel, slot) for slot in slots}
    return {"dims": dims, "scalars": scalars}


def in_python(kernel: Kernel, call: dict[str, Any]) -> bytes | str:
    data = bytearray(kernel.uniform.SIZE)
    scalars = tuple(spec.fit(call["scalars"][spec.name]) for spec in kernel.scalars)
    try:
        lengths = {**call["dims"], **kernel.guards(scalars)}
        derive(kernel, lengths)
        values = tuple(lengths[dim] for dim in kernel.lengths)
        pack(kernel, values, scalars, data, 0)
    except UniformRangeError as error:
        return type(error).__name__
    except ValueError as error:
        return type(error).__name__
    return bytes(data)


def compare(folder: Path, listed: list[tuple[str, Kernel]]) -> int:
    rng = random.Random(3)
    calls = [[draw(rng, kernel) for _ in range(DRAWS)] for _, kernel in listed]
    sent = [
        [
            module,
            kernel.name,
            [
                {**c, "scalars": {k: as_json(v) for k, v in c["scalars"].items()}}
                for c in own
            ],
        ]
        for (module, kernel), own in zip(listed, calls, strict=True)
    ]
    compared = 0
    results = node.run(folder, JOB, sent)
    for (_, kernel), own, found in zip(listed, calls, results, strict=True):
        for call, got in zip(own, found, strict=True):
            want = in_python(kernel, call)
            shown = want if isinstance(want, str) else want.hex()
            actual = got if isinstance(want, str) else b64decode(got).hex()
            assert actual == shown, (kernel.name, call)
            compared += not isinstance(want, str)
    return compared


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

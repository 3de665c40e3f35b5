"""The bytes of uniform structs, in node against Python: calls are drawn for kernels."""

from __future__ import annotations

import random
from base64 import b64decode
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from kerngen.runtime import UniformRangeError
from kerngen.runtime.calls.kernel import Kernel
from kerngen.runtime.calls.ranges import derive
from kerngen.runtime.calls.scalars import pack
from kerngen.runtime.values.fields import is_leaf
from tests.web import node

DRAWS = 20
"""How many calls of each kernel."""

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


def _words(data: bytes | str) -> list[int] | str:
    """The words of a struct; a NaN may have any bits."""
    if isinstance(data, str):
        return data
    words = np.frombuffer(data, "<u4")
    is_nan = (words & 0x7FFFFFFF) > 0x7F800000
    return [*map(int, np.where(is_nan, 0x7FC00000, words))]


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
            actual = got if isinstance(want, str) else _words(b64decode(got))
            assert actual == _words(want), (kernel.name, call)
            compared += not isinstance(want, str)
    return compared

"""Names that every object of JavaScript has something of, in every place of a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kerngen.emit.targets import Target
from tests.web.browser import Browser
from tests.web.built import build

pytestmark = pytest.mark.web

NAMES = (
    *("constructor", "toString", "__proto__", "hasOwnProperty", "valueOf"),
    *("isPrototypeOf", "toLocaleString", "propertyIsEnumerable"),
)
KERNEL = """
struct S{number} {{ {0}: f32, {1}: vec2f }}
kernel k{number}({0}: f32[{1}], s: S{number}[{1}], {2}: f32 = 2.0, {3}: u32)
        -> {4}: f32[{1} + {3}], {5}: f32[] {{
    require {3} < 100;
    host {6} = {2} * f32({3}) + f32({1});
    let {7}[i] = {0}[i] * {6} + s[i].{0} + s[i].{1}.y;
    {4}[i] = {7}[min(i, {1} - 1)];
    {5} = sum[i] {7}[i];
}}
"""
"""A kernel with names as a tensor and a field, a dim and a field, a scalar with a default
and one without, outputs, a host and a temporary."""

RUN = """
import * as module from "http://HOST/generated/MODULE.js";
export default async (ctx, names) => {
  const found = {};
  for (const [kernel, struct, x, field, dim, scalar] of names) {
    const call = module[kernel];
    const record = { [x]: 10, [field]: [0, 20] };
    const tensors = [
      ctx.tensor(new Float32Array([1, 2, 3]), [3]),
      ctx.tensor([record, record, record], [3], module[struct]),
    ];
    const all = call(...tensors, { [scalar]: 1, out: {} });
    const given = Object.entries(all).map(([name, each]) => [name, ctx.empty(each.shape, "f32")]);
    call(...tensors, { [scalar]: 1, out: Object.fromEntries(given.slice(0, 1)) });
    const read = [...Object.values(all), given[0][1]].map(async (each) => [...(await each.read())]);
    const chosen = ctx.choices(call, { [dim]: 3, [scalar]: 1 });
    const thrown = [];
    for (const run of [
      () => call(...tensors),
      () => call(tensors[0], ctx.zeros([4], module[struct]), { [scalar]: 1 }),
      () => ctx.tensor([{}], [1], module[struct]),
      () => call(tensors[0], [record], { [scalar]: 1 }),
    ])
      try {
        run();
      } catch (error) {
        thrown.push(`${error.name}: ${error.message}`.replace(/\\(.*?\\): /, ""));
      }
    found[kernel] = [await Promise.all(read), chosen.length, ...thrown];
  }
  return found;
};
"""


@pytest.mark.parametrize(
    "turns", [(0, 5), pytest.param((1, 2, 3, 4, 6, 7), marks=pytest.mark.nightly)]
)
def test_they_are_names_like_others(
    firefox: Browser, generated: Path, tmp_path: Path, turns: tuple[int, ...]
) -> None:
    """Each in another place by turns."""
    module = f"names{len(turns)}"
    orders = [[*NAMES[turn:], *NAMES[:turn]] for turn in turns]
    texts = [KERNEL.format(*each, number=i) for i, each in enumerate(orders)]
    (tmp_path / f"{module}.kern").write_text("".join(texts), "utf-8")
    build([tmp_path / f"{module}.kern"], generated, Target.TYPESCRIPT)
    given = [
        [f"k{i}", f"S{i}", _python(x), _python(dim), dim, _python(scalar)]
        for i, (x, dim, _, scalar, *_) in enumerate(orders)
    ]
    found: dict[str, Any] = firefox.run(RUN.replace("MODULE", module), given)
    sums = [35, 40, 45]
    for kernel, struct, x, _, dim, scalar in given:
        read, chosen, missing, other, empty, records = found[kernel]
        assert read == [[*sums, 45], [120], [*sums, 45]], kernel
        assert chosen > 2
        assert missing == (
            f"DtypeError: {kernel} scalar argument '{scalar}' is undefined; expected an "
            "integer (u32)."
        )
        assert other == (
            f"ShapeError: {kernel} argument 's' has shape [4]; expected [{dim}=3]: "
            f"{dim} is 3 from '{x}' axis 0."
        )
        assert empty == (
            f"DtypeError: '{struct}.{x}' is undefined; expected a number (f32)."
        )
        assert records == (
            f"DtypeError: {kernel} argument 's' is an Array; expected a tensor. Make one by "
            f"ctx.tensor(s, shape, {struct})."
        )


def _python(name: str) -> str:
    """The name in Python, which is also that of an option: it may not begin with `_`."""
    return "proto___" if name == "__proto__" else name

"""What the host computes for a call, in node against Python: all of it, or both refuse.

Shapes are drawn for every standard kernel, some of them wrong: the lengths and the errors
of both must be the same, and so must what runs, with its workgroups, loops and buffers.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kerngen.plan.adapter import AdapterInfo
from kerngen.plan.select import NoCaseError, select
from kerngen.plan.size import MOST, Size, Values, evaluate
from kerngen.runtime import Error
from kerngen.runtime.calls.checks import resolve_lengths
from kerngen.runtime.calls.kernel import Kernel
from kerngen.runtime.values.fields import is_leaf
from tests.numeric.cases import Case, standard_kernels
from tests.web import node

pytestmark = pytest.mark.web

DRAWS = 320
ADAPTERS = (
    AdapterInfo(32768, 1024, subgroups=False, f16=True),
    AdapterInfo(16384, 256, subgroups=False, f16=False),
    AdapterInfo(49152, 1024, subgroups=True, f16=True),
    AdapterInfo(1024, 64, subgroups=True, f16=True),
)
LENGTHS = (
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    16,
    63,
    64,
    128,
    129,
    1000,
    4096,
    70_000,
    2**20,
    2**31 - 1,
)

JOB = """
import { resolve } from "@/check.js";
import "@/index.js";
import { select } from "@/planner.js";
import { evaluate } from "@/sizes.js";

const counted = (size, values) => {
  try {
    return evaluate(size, values);
  } catch (error) {
    return error.name;
  }
};

function one(kernel, { shapes, guards, limits }) {
  let lengths;
  try {
    lengths = resolve(kernel, shapes, guards);
  } catch (error) {
    return [error.name, error.message];
  }
  try {
    const { dispatches, scratch, values } = select(kernel, lengths, { limits });
    return [
      lengths,
      dispatches.map((dispatch) => [
        dispatch.wgsl,
        counted(dispatch.groups, values),
        counted(dispatch.trips, values),
        counted(dispatch.terms, values),
        dispatch.scratch,
        dispatch.constants ?? {},
      ]),
      scratch.map(([name, length]) => [name, counted(length, values)]),
    ];
  } catch (error) {
    return [error.name];
  }
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


def draw(rng: random.Random, case: Case) -> dict[str, Any]:
    """Arguments of a call; one in eight has a length that may not fit."""
    kernel = case.kernel
    most = rng.choice((5, 11, len(LENGTHS)))
    dims = {dim: rng.choice(LENGTHS[:most]) for dim in kernel.dims}
    lengths = {**dims, **_computed(kernel, dims)}
    shapes = [
        [axis if isinstance(axis, int) else lengths[axis] for axis in spec.axes]
        for spec in kernel.inputs
    ]
    if rng.random() < 0.125 and shapes and shapes[-1]:
        shapes[-1][rng.randrange(len(shapes[-1]))] += rng.choice((1, 3))
    if rng.random() < 0.05 and shapes:
        shapes[0] = [*shapes[0], 2]
    guards = {name: _scalar(rng, kernel, name, dims) for name in kernel.guard_scalars}
    info = rng.choice(ADAPTERS)
    return {"shapes": shapes, "guards": guards, "limits": info.facts, "info": info}


def _computed(kernel: Kernel, dims: dict[str, int]) -> dict[str, int]:
    """The lengths of inputs' axes that are computed from dims."""
    axes = {axis for spec in kernel.inputs for axis in spec.axes}
    return {
        each.name: int(evaluate(each.value, dims))
        for each in kernel.derived
        if each.name in axes
    }


def _scalar(
    rng: random.Random, kernel: Kernel, name: str, dims: dict[str, int]
) -> float:
    spec = next(each for each in kernel.scalars if each.name == name)
    assert is_leaf(spec.element)
    if not spec.element.number.is_integer:
        return rng.choice((0.5, 1.0, 2.0))
    number = rng.choice((0, 1, 2, 3, 5, *dims.values()))
    return min(number, int(spec.element.number.highest))


def in_python(kernel: Kernel, call: dict[str, Any]) -> list[Any]:
    shapes = [tuple(shape) for shape in call["shapes"]]
    try:
        lengths = resolve_lengths(kernel, shapes, call["guards"])
    except Error as error:
        return [type(error).__name__, str(error)]
    try:
        selection = select(kernel.body, lengths, call["info"])
    except NoCaseError:
        return ["LimitError"]
    return [
        lengths,
        [
            [
                each.dispatch.wgsl,
                counted(each.dispatch.groups, lengths),
                counted(each.dispatch.trips, lengths),
                counted(each.dispatch.terms, lengths),
                dict(each.scratch),
                dict(each.dispatch.constants),
            ]
            for each in selection.dispatches
        ],
        [[item.name, counted(item.length, lengths)] for item in selection.scratch],
    ]


def in_javascript(result: list[Any]) -> list[Any]:
    """A result with its sentence in JavaScript's words: shapes are in brackets."""
    match result:
        case [str(name), str(text)]:
            shape = r"(has shape|; expected) \(((?:[^()]|\([^()]*\))*?),?\)"
            return [name, re.sub(shape, r"\1 [\2]", text)]
        case _:
            return result


def counted(size: Size, lengths: Values) -> int | str:
    value = evaluate(size, lengths)
    return "LimitError" if abs(value) >= MOST else value


def numbers(result: list[Any]) -> Iterator[int]:
    """Count what was evaluated."""
    match result:
        case [lengths, [*dispatches], [*scratch]]:
            yield from (len(lengths), 3 * len(dispatches), len(scratch))
        case _:
            yield 1


def test_calls(package: Path, generated: Path) -> None:
    assert package.is_dir()
    rng = random.Random(7)
    cases = standard_kernels()
    calls = [[draw(rng, case) for _ in range(DRAWS)] for case in cases]
    job = [
        [
            case.module,
            case.kernel.name,
            [{k: v for k, v in each.items() if k != "info"} for each in own],
        ]
        for case, own in zip(cases, calls, strict=True)
    ]
    results = node.run(generated, JOB, job)
    evaluated = refused = 0
    for case, own, found in zip(cases, calls, results, strict=True):
        for call, got in zip(own, found, strict=True):
            want = in_python(case.kernel, call)
            assert got == in_javascript(want), (str(case), call)
            evaluated += sum(numbers(want))
            refused += isinstance(want[0], str)
    assert evaluated > 250_000
    assert refused > 5_000

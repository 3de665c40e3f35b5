"""Standard kernels in a browser, by their schedules and variants, against oracles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kerngen.plan.read import read_plan
from kerngen.plan.tree import KernelPlan
from kerngen.typescript.module import host_lines
from kerngen.typescript.plans import Additions, plan_function
from tests.numeric.cases import Arrays, Case, Scalars, standard_kernels
from tests.numeric.tolerance import expect, shader_arithmetic
from tests.numeric.ways import Way, some, ways
from tests.web.browser import ROOT, Browser, JobError
from tests.web.calls import begin, results

pytestmark = pytest.mark.web

CASES = standard_kernels()
WAYS = [way for case in CASES for way in ways(case)]
SIZES = (1, 33, 132)
KERNELS = ROOT / "generated" / "kerngen_kernels"


@cache
def plans(module: str) -> dict[str, KernelPlan]:
    text = Path(KERNELS, "wgsl", module, f"{module}.plan").read_text("utf-8")
    return {each.name: each for each in read_plan(text).kernels}


def hold_to_oracle(page: Browser, way: Way) -> None:
    """Run a kernel one way at several sizes; a device without subgroups refuses some."""
    case = way.case
    waiting: list[tuple[int, Arrays, Scalars]] = []
    has_subgroups = page.do("describe")["limits"]["adapter.subgroups"]
    lacking = not has_subgroups and any(s.needs.subgroups for s in way.strategies)
    plan = replace(plans(case.module)[case.kernel.name], body=way.way.body, computed=())
    made = plan_function(plan, Additions())
    text = "\n".join([*host_lines([made]), f"return ({made})();"])
    for seed, size in enumerate(SIZES):
        rng = np.random.default_rng(seed)
        arrays, scalars = way.draw(rng, dict.fromkeys(case.kernel.dims, size))
        waiting.append(
            (
                begin(page, case.module, case.kernel, arrays.values(), scalars, text),
                arrays,
                scalars,
            )
        )
    for number, arrays, scalars in waiting:
        if lacking:
            with pytest.raises(JobError, match=r"LimitError: .* no subgroups"):
                page.finish(number)
            continue
        expected = expect(case.oracle, way.arithmetic, arrays, scalars)
        for want, got in zip(expected, results(page, case.kernel, number), strict=True):
            want.check(got, str(way))


@pytest.mark.parametrize("way", list(some(WAYS, most=1)))
def test_schedule(firefox: Browser, way: Way) -> None:
    hold_to_oracle(firefox, way)


def spread() -> Iterator[Any]:
    """One way of each strategy and variant, but tiles, which SwiftShader compiles long.

    By default the first and the last variant of each strategy, and two with subgroups:
    tests/judges asks Tint about all shaders.
    """
    kinds: dict[tuple[str, str], Way] = {}
    for way in WAYS:
        if not way.halves and way.kind[0] not in ("gemm", "flash"):
            kinds.setdefault(way.kind, way)
    lanes = [way for way in WAYS if "subgroups" in str(way) and not way.halves]
    variants: dict[str, list[Way]] = {}
    for (strategy, _), way in kinds.items():
        variants.setdefault(strategy, []).append(way)
    default = {*lanes[:: len(lanes) // 2]}
    default.update(way for each in variants.values() for way in (each[0], each[-1]))
    for way in dict.fromkeys((*kinds.values(), *lanes[:: len(lanes) // 6])):
        marks = [] if way in default else [pytest.mark.nightly]
        yield pytest.param(way, marks=marks, id=str(way))


@pytest.mark.parametrize("way", list(spread()))
def test_schedule_in_chromium(chromium: Browser, way: Way) -> None:
    """By Tint, and with subgroups; what needs more than SwiftShader has is refused."""
    limits = chromium.do("describe")["limits"]
    if any(s.needs.invocations > limits["adapter.invocations"] for s in way.strategies):
        with pytest.raises(JobError, match=r"LimitError: .* fits the adapter"):
            hold_to_oracle(chromium, way)
    else:
        hold_to_oracle(chromium, way)


def called() -> Iterator[Any]:
    """A kernel of each module by default; a driver compiles attention for many seconds."""
    by_module = {case.module: case for case in CASES if "attention" not in str(case)}
    for case in CASES:
        marks = [] if by_module.get(case.module) is case else [pytest.mark.nightly]
        yield pytest.param(case, marks=marks, id=str(case))


@pytest.mark.parametrize("case", list(called()))
def test_as_called(production: Browser, case: Case) -> None:
    """With all choices left to the runtime, as users call it in production."""
    sums = [each for way in ways(case) for each in way.summations]
    arithmetic = shader_arithmetic(lambda n: max(each.depth(n) for each in sums))
    longest = min((each.longest for each in sums if each.longest), default=5000)
    rng = np.random.default_rng(2)
    dims = dict.fromkeys(case.kernel.dims, min(36, longest))
    scalars = case.scalars(rng)
    arrays = case.arrays(rng, case.fit(dims, scalars))
    number = begin(production, case.module, case.kernel, arrays.values(), scalars)
    expected = expect(case.oracle, arithmetic, arrays, scalars)
    for want, got in zip(
        expected, results(production, case.kernel, number), strict=True
    ):
        want.check(got, str(case))

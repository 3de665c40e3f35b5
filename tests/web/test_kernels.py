"""Standard kernels in a browser, by their schedules and variants, against oracles."""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import replace
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kerngen.plan.read import read_plan
from kerngen.plan.tree import KernelPlan
from kerngen.plan.write import kernel_lines
from kerngen.runtime.fields import is_leaf
from tests.numeric.cases import Case, standard_kernels
from tests.numeric.tolerance import expect
from tests.numeric.ways import Way, some, ways

from .browser import ROOT, Browser, JobError

pytestmark = pytest.mark.web

CASES = standard_kernels()
WAYS = [way for case in CASES for way in ways(case)]
SIZES = (1, 33, 132)
KERNELS = ROOT / "generated" / "kerngen_kernels"


@cache
def plans(module: str) -> dict[str, KernelPlan]:
    text = Path(KERNELS, "wgsl", module, f"{module}.plan").read_text("utf-8")
    return {each.name: each for each in read_plan(text).kernels}


def tensors(case: Case, arrays: dict[str, NDArray[Any]]) -> list[dict[str, Any]]:
    """Arguments as JSON; f16 go as f32, which the page makes f16 of."""
    listed: list[dict[str, Any]] = []
    for spec in case.kernel.inputs:
        assert is_leaf(spec.element)
        array = arrays[spec.name]
        name = spec.element.__name__
        sent = array.astype(np.float32) if name == "f16" else array
        data = b64encode(np.ascontiguousarray(sent).tobytes()).decode()
        listed.append({"data": data, "shape": array.shape, "element": name})
    return listed


def received(each: dict[str, Any]) -> NDArray[Any]:
    dtype = each["dtype"].removesuffix("Array").lower()
    return np.frombuffer(b64decode(each["data"]), dtype).reshape(each["shape"])


def as_json(value: float) -> float | str:
    return value if isfinite(value) else str(value).replace("inf", "Infinity")


def hold_to_oracle(page: Browser, way: Way) -> None:
    """Run a kernel one way at several sizes; a device without subgroups refuses some."""
    case, waiting = way.case, []
    has_subgroups = page.do("describe")["limits"]["subgroups"]
    lacking = not has_subgroups and any(s.needs.subgroups for s in way.strategies)
    plan = replace(plans(case.module)[case.kernel.name], body=way.way.body)
    text = "\n".join(kernel_lines(plan))
    for seed, size in enumerate(SIZES):
        rng = np.random.default_rng(seed)
        arrays, scalars = way.draw(rng, dict.fromkeys(case.kernel.dims, size))
        number = page.start(
            "call",
            module=case.module,
            kernel=case.kernel.name,
            plan=text,
            tensors=tensors(case, arrays),
            scalars={name: as_json(value) for name, value in scalars.items()},
        )
        waiting.append((number, arrays, scalars))
    for number, arrays, scalars in waiting:
        if lacking:
            with pytest.raises(JobError, match=r"LimitError: .* no subgroups"):
                page.finish(number)
            continue
        actual = [received(each) for each in page.finish(number)["arrays"]]
        expected = expect(case.oracle, way.arithmetic, arrays, scalars)
        for want, got in zip(expected, actual, strict=True):
            want.check(got, str(way))


@pytest.mark.parametrize("way", list(some(WAYS, most=4)))
def test_schedule(firefox: Browser, way: Way) -> None:
    hold_to_oracle(firefox, way)

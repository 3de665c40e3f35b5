"""The digits demo learns, on a real adapter, by as many dispatches as it should."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from kerngen.runtime import Context, Counters, Tensor, f32, u32
from kerngen.runtime.calls.kernel import Kernel

pytestmark = pytest.mark.nightly
EXAMPLE = Path(__file__).parents[2] / "examples" / "digits.py"

STEP = Counter(
    # forward
    matmul_nt_bias=2,
    gelu=1,
    # backward
    mean_cross_entropy_gradient=1,
    matmul_nn=1,
    gelu_gradient=1,
    matmul_tn=2,
    column_sum=2,
    # clip and update, four parameters
    sum_squares=1,
    add_sum_squares=3,
    clip_by_norm=4,
    adamw=4,
)
DISPATCHES = {"sum_squares": 2}  # partial sums, their sum
"""The kernels that take more than one dispatch.

`add_sum_squares` is of few numbers, and `column_sum` of few rows.
"""


@pytest.fixture(scope="module")
def digits() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("digits_example", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each kernel is called."""
    counts: Counter[str] = Counter()
    launch = Kernel.launch

    def count(kernel: Kernel, *args: Any) -> tuple[Tensor[Any, Any], ...]:
        counts[kernel.name] += 1
        return launch(kernel, *args)

    monkeypatch.setattr(Kernel, "launch", count)
    return counts


def test_it_learns(digits: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert digits.main(["--epochs", "5"]) == 0
    output = capsys.readouterr().out
    assert "(software)" in output or "(gpu)" in output, output
    assert "epoch  5 of 5: test loss" in output


def test_a_bad_result_fails(
    digits: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert digits.main(["--epochs", "0"]) == 1
    assert "not above 95%" in capsys.readouterr().err


def test_a_step_is_these_dispatches(
    digits: ModuleType, ctx: Context, called: Counter[str]
) -> None:
    assert ctx.kind != "reference"
    rng = np.random.default_rng(0)
    network = digits.Network(ctx, rng)
    images = ctx.matrix(rng.random((32, 64)), f32)
    labels = ctx.vector(rng.integers(0, 10, 32), u32)
    done: list[Counters] = []
    ctx.submit()
    for _ in range(4):
        called.clear()
        before = ctx.counters.snapshot()
        with ctx.batch():
            network.train(images, labels)
        done.append(ctx.counters - before)
        assert called == STEP
    expected = sum(count * DISPATCHES.get(name, 1) for name, count in STEP.items())
    for step in done:
        assert (step.calls, step.dispatches) == (STEP.total(), expected)
        assert (step.encoders, step.passes, step.submits) == (1, 1, 1)
    steady = done[-1]
    assert (steady.pipelines_created, steady.buffers_created) == (0, 0)
    assert steady.bind_groups_created == 0

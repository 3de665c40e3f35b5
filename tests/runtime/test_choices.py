"""What a context says that a kernel would run is what it then runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.runtime import Choice, Context, f32
from kerngen_kernels import gemv, layout, matmul, softmax
from tests.runtime.dispatches import watch_dispatches


@pytest.fixture(scope="module")
def ctx(ctx: Context) -> Iterator[Context]:
    """A context on a device of its own: a shared one labels a shader by its first user."""
    device = ctx.device.adapter.request_device_sync()
    with gpu.open(device=device) as opened:
        yield opened
    device.destroy()


def dispatched(
    ctx: Context, monkeypatch: pytest.MonkeyPatch, function: Any, *shapes: Any, **k: int
) -> list[str]:
    """Call a kernel with zeros of these shapes, and return the labels of its shaders."""
    labels = watch_dispatches(ctx, monkeypatch)
    function(*(ctx.zeros(shape, f32) for shape in shapes), **k)
    return labels


def chosen(choices: tuple[Choice, ...], kernel: str) -> list[str]:
    return [f"'{kernel}' ({name})" for each in choices for name in each.shaders]


@pytest.mark.parametrize("k", [3, 20, 24, 70_000])
@pytest.mark.parametrize("n", [0, 1, 100])
def test_schedules_and_variants(
    ctx: Context, monkeypatch: pytest.MonkeyPatch, n: int, k: int
) -> None:
    choices = ctx.choices(gemv.gemv, n=n, k=k)
    labels = dispatched(ctx, monkeypatch, gemv.gemv, (n, k), k)
    assert chosen(choices, "gemv") == labels
    assert (labels == []) == (n == 0)


def test_stages_that_run_together(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    choices = ctx.choices(softmax.softmax, m=200, n=30)
    labels = dispatched(ctx, monkeypatch, softmax.softmax, (200, 30))
    assert chosen(choices, "softmax") == labels
    assert [choice.strategy for choice in choices] == ["rows"]


def test_scalars_that_lengths_read(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    choices = ctx.choices(layout.slice_columns, m=3, n=9, start=2, count=4)
    labels = dispatched(
        ctx, monkeypatch, layout.slice_columns, (3, 9), start=2, count=4
    )
    assert chosen(choices, "slice_columns") == labels


def test_the_reference_runs_every_stage() -> None:
    with gpu.open(adapter="reference") as ctx:
        assert ctx.choices(matmul.matmul_nt, m=1, k=2, n=3) == (
            Choice("c", "reference", ()),
        )


@pytest.mark.parametrize(
    "dims",
    [
        {},
        {"n": 1},
        {"n": 1, "k": -1},
        {"n": 1, "m": 2},
        {"n": 1, "k": 1.5},
        {"n": 1, "k": "2"},
    ],
)
def test_dims_must_fit(ctx: Context, dims: dict[str, Any]) -> None:
    with pytest.raises(gpu.ShapeError, match=r"gemv .*: choices need n, k, .* got \{"):
        ctx.choices(gemv.gemv, **dims)


@pytest.mark.parametrize("function", [np.dot, len, dispatched, 3])
def test_other_functions_are_refused(ctx: Context, function: Any) -> None:
    with pytest.raises(gpu.DtypeError, match="expected a kernel's function"):
        ctx.choices(function, n=1)

"""What emitted references refuse when they are called directly, and what they don't."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.runtime.calls.kernel import Kernel
from tests.compile import loaded

MATMUL = """
    kernel f(a: f32[m, k], b: f32[k, n], alpha: f32 = 1.0) -> c: f32[m, n] {
        c[i, j] = alpha * sum[p] a[i, p] * b[p, j];
    }
"""
PART = "kernel f(x: f32[n], at: i32) -> y: f32[n - 2] { y[i] = x[i + at]; }"
SQUARED = "kernel f(x: f32[n], k: u32) -> y: f32[n] { y[i] = x[i + i32(k) * i32(k)]; }"
DIAGONAL = "kernel f(x: f32[n, 3]) -> y: f32[n] { y[i] = x[i, i]; }"
TOTAL = "kernel f(x: f32[n]) -> y: f32[] { y = sum[i] x[i]; }"
GATHER = """
    kernel f(x: f32[h], at: i32[n]) -> y: f32[n] {
        let e[i < h - 4] = x[i];
        y[i] = e[at[i]];
    }
"""
SHORT = "kernel f(x: f32[h], k: i32) -> y: f32[h - k * 2] { y[i] = x[i]; }"


def zeros(*shape: int) -> Any:
    """Return zeros that take no memory, however many they are."""
    return np.broadcast_to(np.float32(0), shape)


REFUSED: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    (
        MATMUL,
        (zeros(2, 3), zeros(1, 4)),
        {},
        "argument 'b' has shape (1, 4); expected (k=3, n): k is 3 from 'a' axis 1.",
    ),
    (
        MATMUL,
        ([[1.0]], [1.0]),
        {},
        "argument 'b' has shape (1,) (rank 1); expected (k=1, n) (rank 2).",
    ),
    (
        TOTAL,
        (zeros(2**31),),
        {},
        "argument 'x' has shape (2147483648,); expected (n,): n is 2147483648, and a",
    ),
    (
        PART,
        (zeros(6),),
        {"at": 3},
        "the subscript 'i + at' of 'x' goes from 3 to 6, but axis 0 has length 6. Got n=6",
    ),
    (PART, (zeros(6),), {"at": -1}, "the subscript 'i + at' of 'x' goes from -1 to 2"),
    (PART, (zeros(1),), {"at": 0}, "the length 'n - 2' is -1; expected 0 to"),
    (
        DIAGONAL,
        (zeros(4, 3),),
        {},
        "the subscript 'i' of 'x' goes from 0 to 3, but axis",
    ),
    (
        GATHER,
        (zeros(4), [0]),
        {},
        "axis 0 of 'e' is gathered from, and it is empty (h - 4 = 0).",
    ),
]


@pytest.mark.parametrize(("text", "arrays", "scalars", "message"), REFUSED)
def test_what_does_not_fit_is_refused(
    text: str, arrays: tuple[Any, ...], scalars: dict[str, Any], message: str
) -> None:
    with pytest.raises(gpu.ShapeError) as caught:
        loaded(text).f_reference(*arrays, **scalars)
    kernel, _, said = str(caught.value).partition(": ")
    assert re.fullmatch(r"f \(dsl/sample\.kern:\d+\)", kernel)
    assert said.startswith(message)


GUARDED = (
    " A bare index is not clamped, even where a condition guards it; "
    "write 'i + 0' to have it clamped there."
)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("x[i, i]", ""),
        (
            "if i < 3 { x[i, i] } else { 0.0 }",
            GUARDED,
        ),
        (
            "select(0.0, 1.0, i < 3 and x[i, i] > 0.0)",
            GUARDED,
        ),
        ("if x[i, i] > 0.0 { 1.0 } else { 0.0 }", ""),
    ],
)
def test_a_bare_index_is_explained_where_a_condition_guards_it(
    value: str, hint: str
) -> None:
    text = f"kernel f(x: f32[n, 3]) -> y: f32[n] {{ y[i] = {value}; }}"
    with pytest.raises(gpu.ShapeError) as caught:
        loaded(text).f_reference(zeros(4, 3))
    start = (
        "the subscript 'i' of 'x' goes from 0 to 3, but axis 1 has length 3. Got n=4."
    )
    assert str(caught.value).endswith(start + hint)


def test_an_axis_of_one_element_is_not_broadcast() -> None:
    text = "kernel f(x: f32[n], v: f32[k]) -> y: f32[2 * n] { y[i] = v[i]; }"
    with pytest.raises(gpu.ShapeError) as caught:
        loaded(text).f_reference(zeros(2), zeros(1))
    assert str(caught.value).endswith(
        "the subscript 'i' of 'v' goes from 0 to 3, but axis 0 has length 1. "
        "Got n=2, k=1. An axis of length 1 is not broadcast."
    )


LET = "let a[i < m, j] = x[1] * f32(i) * w[j];"
NOTHING_READ = [
    ("y: f32[m, n] { y[i, j] = x[0] * z[i]; }", (0, 2)),
    ("y: f32[m, n] { y[i, j] = x[i + 1] * z[i]; }", (2, 3)),
    ("y: f32[n, m] { y[j, i] = x[i32(z[i])] * x[k - 1]; }", (0, 2)),
    ("y: f32[n, m] { y[j, i] = x[m - i]; }", (0, 2)),
    ("y: f32[m, n] { y[i, j] = z[i]; y[i, j] += x[2]; }", (0, 2)),
    (f"y: f32[m] {{ {LET} y[i] = z[i] + 0.0 * f32(i) + sum[j] a[i, j]; }}", (1, 2)),
    ("y: f32[m] { y[i] = z[i] + sum[j] w[j] * x[1]; }", (1, 2)),
    ("y: f32[m] { y[i] = z[i] + sum[j] w[j] * x[j + 1] * x[0]; }", (0, 2)),
    ("y: f32[m] { y[i] = z[i] + sum[j, p] w[j] * x[p] * z[9]; }", (1, 2)),
    ("y: f32[m] { y[i] = z[i] + sum[j] w[j] * max[p < 2] x[p + 1]; }", (2, 2)),
    ("y: f32[m] { y[i] = z[i]; y[i] += sum[j] z[i] * x[i32(w[j])]; }", (0, 2)),
]
"""Kernels that read beyond `x`, had `n` a value; each with the lengths of `x` and `z`."""


@pytest.mark.parametrize(("text", "lengths"), NOTHING_READ)
def test_what_is_empty_reads_nothing(text: str, lengths: tuple[int, int]) -> None:
    k, m = lengths
    x, z, w = np.ones(k), np.full(m, 3.0), np.ones(0)
    kernel = loaded(f"kernel f(x: f32[k], z: f32[m], w: f32[n]) -> {text}")
    got = kernel.f_reference(x, z, w)
    if got.ndim == 1:
        np.testing.assert_array_equal(got, z)
    else:
        assert sorted(got.shape) == [0, m]


def test_scalars_are_refused_as_by_the_binding() -> None:
    with pytest.raises(gpu.DtypeError, match=r"'at' is 0\.5 .* expected an integer"):
        loaded(PART).f_reference(zeros(6), at=0.5)


def test_a_start_wraps_as_the_check_has_it() -> None:
    x = np.arange(4.0)
    got = loaded(SQUARED).f_reference(x, k=2**16)
    np.testing.assert_array_equal(got, x)


def test_lengths_are_named_as_they_are_written() -> None:
    kernel: Kernel = loaded(SHORT)._F
    with gpu.open(adapter="reference") as ctx:
        x, out = ctx.empty(5, gpu.f32), ctx.empty(4, gpu.f32)
        with pytest.raises(gpu.ShapeError, match=r"expected \(h - k \* 2 = 3,\)\."):
            kernel.launch(ctx, (x,), (1,), (out,))

"""Strategy `scan` of recurrences, against loops in float64: directions, axes, lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from kerngen.runtime.calls.kernel import Kernel
from kerngen.source.diagnostic import CompileError
from kerngen.verify.guarded import guarded
from tests.budget import sampled
from tests.compile import built

Array = NDArray[Any]
TEXT = """
kernel ahead(a: f32[m, n], x: f32[m, n], k: f32) -> y: f32[m, n], z: f32[m, n] {
    let h[i, t] = (if t > 0 { a[i, t] * h[i, t - 1] } else { 0.0 }) + x[i, t];
    y[i, t] = h[i, t];
    z[i, t] = k * h[i, t] + 1.0;
}
kernel back(a: f32[m, n], x: f32[m, n]) -> y: f32[m, n] {
    let h[i, t] =
        (if t < n - 1 { h[i, t + 1] * a[i, t + 1] } else { 0.0 }) - x[i, t];
    y[i, t] = h[i, t];
}
kernel across(a: f32[n, m], x: f32[n, m]) -> y: f32[n, m] {
    let h[t, i] = if t > 0 { (h[t - 1, i] - x[t, i]) * a[t, i] } else { x[t, i] };
    y[t, i] = h[t, i];
}
kernel anew(a: f32[m, n], x: f32[m, n]) -> y: f32[m, n] {
    let h[i, t] =
        if t > 0 and a[i, t] > 0.0 { h[i, t - 1] / 2.0 + x[i, t] } else { x[i, t] };
    y[i, t] = h[i, t];
}
"""
SHAPES = ((3, 8), (2, 7), (5, 0), (0, 4), (2, 1030), (1, 9001), (2, 8196))
"""One tile and several, of vectors and of scalars; parts of either."""


def stepped(step: Callable[[int, Array], Array], m: int, n: int) -> Array:
    """Return the states of m rows after each of n steps."""
    states, state = np.zeros((m, n)), np.zeros(m)
    for t in range(n):
        states[:, t] = state = step(t, state)
    return states


def meaning(a: Array, x: Array) -> tuple[Array, ...]:
    """Return what each kernel gives of its recurrence, in float64."""
    m, n = x.shape
    p, q = a.astype(np.float64).T, x.astype(np.float64).T
    ahead = stepped(lambda t, h: (p[t] * h if t else 0) + q[t], m, n)
    back = stepped(lambda t, h: (p[n - t] * h if t else 0) - q[n - 1 - t], m, n)
    across = stepped(lambda t, h: (h - q[t]) * p[t] if t else q[t], m, n)
    anew = stepped(lambda t, h: np.where((p[t] > 0) & (t > 0), h / 2, 0) + q[t], m, n)
    return ahead, back[:, ::-1], across.T, anew


def run(ctx: gpu.Context, kernel: Kernel, scalars: Any, *given: Array) -> list[Array]:
    """Return what the device gives."""
    tensors = tuple(ctx.tensor(np.ascontiguousarray(x)) for x in given)
    made = kernel.launch(ctx, tensors, scalars, kernel.no_out)
    return [tensor.numpy() for tensor in made]


def near(found: Array, wanted: Array) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("options", sampled(["", "lanes(2)", "lanes(32)"], 3))
def test_every_direction_and_length(ctx: gpu.Context, options: str) -> None:
    text = f"{TEXT} schedule ahead, back, across, anew {{ scan {options} }}"
    with built(text) as (ahead, back, across, anew):
        for m, n in SHAPES:
            random = np.random.default_rng(n)
            a, x = random.uniform(-1, 1, (2, m, n)).astype(np.float32)
            wanted = meaning(a, x)
            y, z = run(ctx, ahead, (0.5,), a, x)
            near(y, wanted[0])
            near(z, 0.5 * wanted[0] + 1)
            (y,) = run(ctx, back, (), a, x)
            near(y, wanted[1])
            (y,) = run(ctx, across, (), a.T, x.T)
            near(y, wanted[2])
            if n > 20:  # a NaN is gone where the sum begins anew
                x[:, 5], a[:, 9] = np.nan, -1
            *_, anew_ = meaning(a, x)
            (y,) = run(ctx, anew, (), a, x)
            near(y, anew_)


def test_factors_that_overflow_lose_no_row_of_zeros(ctx: gpu.Context) -> None:
    """As in a loop: the product of factors is infinite, what it multiplies is 0."""
    n = 3000
    a, x = np.full((1, n), 2, np.float32), np.zeros((1, n), np.float32)
    x[0, n - 3] = 1
    with built(f"{TEXT} schedule ahead {{ scan }}") as (ahead, *_):
        y, _ = run(ctx, ahead, (0.0,), a, x)
        np.testing.assert_array_equal(y[0, -3:], [1, 2, 4])
        np.testing.assert_array_equal(y[0, :-3], 0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("3.5 * h[t - 1] * (1.0 - h[t - 1])", r"a step is not 'a \* h \+ b'"),
        ("max(h[t - 1], x[t])", r"a step is not 'a \* h \+ b'"),
    ],
)
def test_what_is_no_scan(text: str, reason: str) -> None:
    source = (
        f"kernel f(x: f32[n]) -> y: f32[n] {{"
        f" let h[t] = if t > 0 {{ {text} }} else {{ x[t] }}; y[t] = h[t]; }}"
        " schedule f { scan }"
    )
    with pytest.raises(CompileError, match=reason):
        compile_text(source, "f.kern")


def test_an_order_that_is_fixed(ctx: gpu.Context) -> None:
    x = np.random.default_rng(1).standard_normal((3, 9001)).astype(np.float32)
    with built(f"{TEXT} schedule ahead {{ scan }}") as (ahead, *_):
        first, *others = (run(ctx, ahead, (1.0,), np.cos(x), x)[0] for _ in range(5))
        for other in others:
            np.testing.assert_array_equal(first, other)


def test_rows_whose_factors_grow_are_done_again(ctx: gpu.Context) -> None:
    """By default, as products of factors may overflow where no state does."""
    a, x = np.full((1, 2000), 0.5, np.float32), np.zeros((1, 2000), np.float32)
    a[0, 100:290], x[0, 0] = 2, 1
    with built(TEXT) as (ahead, back, *_):
        y, _ = run(ctx, ahead, (1.0,), a, x)
        near(y, meaning(a, x)[0])
        for n in (600, 601, 9001):
            a, x = np.random.default_rng(n).uniform(-1, 1, (2, 3, n)).astype(np.float32)
            # 2 * 1 - 1 is 1 for ever; in any other grouping, 2^n - 2^n.
            a[1], x[1] = 2, -1
            x[1, 0] = 1
            y, _ = run(ctx, ahead, (1.0,), a, x)
            near(y[::2], meaning(a[::2], x[::2])[0])
            np.testing.assert_array_equal(y[1], 1)
            a[2], x[2, 3] = 0.5, np.inf  # 0.5^200 is 0
            y, _ = run(ctx, ahead, (1.0,), a, x)
            np.testing.assert_array_equal(y[2, 3:], np.inf)
            (y,) = run(ctx, back, (), a[:, ::-1], -x[:, ::-1])
            np.testing.assert_array_equal(y[1, 1:-1], 1)


def test_states_that_overflow_stay_infinite(ctx: gpu.Context) -> None:
    """As in a loop: lanes halve the terms of which no one sums both."""
    with built(TEXT) as (ahead, back, *_):
        for n, first, second in ((600, 0, 200), (2001, 100, 600), (20000, 5, 9000)):
            a, x = np.ones((1, n), np.float32), np.zeros((1, n), np.float32)
            x[0, [first, second]], a[0, second + 1 :] = 3e38, 0.5
            y, _ = run(ctx, ahead, (1.0,), a, x)
            assert (y[0, second:] == np.inf).all()
            (y,) = run(ctx, back, (), a[:, ::-1], x[:, ::-1])
            assert (y[0, : n - second] == -np.inf).all()


def test_rows_whose_factors_do_not_grow_are_left(ctx: gpu.Context) -> None:
    """Whatever lies in memory: a loop gives other last digits than a scan."""
    bare = f"{TEXT} schedule ahead {{ scan }}"
    careful = bare.replace("scan }", "scan redo(1) }")
    with guarded() as held, built(bare) as (left, *_), built(careful) as (ahead, *_):
        for m, n in ((2, 1030), (3, 1032), (1, 9001), (1, 9004)):
            a, x = np.random.default_rng(n).uniform(0, 1, (2, m, n)).astype(np.float32)
            y, _ = run(held.ctx, ahead, (0.5,), a, x)
            wanted, _ = run(ctx, left, (0.5,), a, x)
            np.testing.assert_array_equal(y, wanted)


def test_what_is_written_over_is_not_scanned_by_default() -> None:
    source = (
        "kernel f(mut x: f32[n], a: f32[n]) {"
        " let h[t] = (if t > 0 { a[t] * h[t - 1] } else { 0.0 }) + x[t]; x[t] = h[t]; }"
    )
    (stage,) = compile_text(source, "f.kern").programs[0].stages
    assert [each.label for each in stage.schedules] == ["recur"]
    with pytest.raises(CompileError, match="'x' is written over"):
        compile_text(f"{source} schedule f {{ scan redo(1) }}", "f.kern")

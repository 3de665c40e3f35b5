"""Lets that read themselves, against loops in NumPy's float64 or in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.plan.tree import dispatches_in
from kerngen.runtime import i32, vec2f
from tests.compile import loaded

Array = NDArray[Any]
TEXT = (Path(__file__).parent / "recurrences.kern").read_text("utf-8")


@pytest.fixture(scope="module")
def kernels() -> Any:
    return loaded(TEXT)


def drawn(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def averages(x: Array, decay: float) -> Array:
    """Return exponential moving averages along the last axis."""
    y = x.astype(np.float64)
    for t in range(1, x.shape[-1]):
        y[..., t] = decay * y[..., t - 1] + (1 - decay) * y[..., t]
    return y


@pytest.mark.parametrize("shape", [(3, 7), (3, 8), (1, 1), (5, 0), (0, 4), (70, 2)])
def test_averages_of_rows(
    kernels: Any, either: gpu.Context, shape: tuple[int, int]
) -> None:
    x = drawn(*shape)
    y = kernels.ema(either.tensor(x), decay=0.75).numpy()
    np.testing.assert_allclose(y, averages(x, 0.75), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(7, 3), (1, 1), (2, 70)])
def test_averages_from_the_end(
    kernels: Any, either: gpu.Context, shape: tuple[int, int]
) -> None:
    x = drawn(*shape)
    y = kernels.ema_back(either.tensor(x), decay=0.5).numpy()
    wanted = 2 * averages(x.T[:, ::-1], 0.5)[:, ::-1].T
    np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 40])
def test_a_filter_of_order_two(kernels: Any, either: gpu.Context, n: int) -> None:
    x, a, b = drawn(n), 0.5, -0.25
    y = kernels.iir(either.tensor(x), a=a, b=b).numpy()
    wanted = x.astype(np.float64)
    for t in range(n):
        wanted[t] += a * wanted[t - 1] if t > 0 else 0.0
        wanted[t] += b * wanted[t - 2] if t > 1 else 0.0
    np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-6)


def test_a_dim_is_a_place_on_an_axis_of_another_length(either: gpu.Context) -> None:
    """Of as many steps as there are factors, what is left; and a row of that number."""
    kernels: Any = loaded(
        "kernel left(a: f32[n], factor: f32[steps], rows: f32[m, n], mut z: f32[m, n])"
        " -> y: f32[n] {"
        " let x[i, s < steps + 1] = if s > 0 { x[i, s - 1] * factor[s - 1] } else { a[i] };"
        " y[i] = x[i, steps] + rows[steps, i]; z[steps, j] = a[j]; }"
    )
    a, factor = np.array([1, 2], np.float32), np.array([2, 3], np.float32)
    rows = np.array([[0, 0], [0, 0], [4, 8]], np.float32)
    given, z = [either.tensor(x) for x in (a, factor, rows)], either.tensor(rows)
    y = kernels.left(*given, z)
    np.testing.assert_array_equal(y.numpy(), [10, 20])
    np.testing.assert_array_equal(z.numpy(), [[0, 0], [0, 0], [1, 2]])
    few = either.tensor(rows[:2])
    with pytest.raises(gpu.ShapeError, match="'steps' of 'rows'"):
        kernels.left(*given[:2], few, few)


@pytest.mark.parametrize("steps", [0, 1, 2, 60])
def test_fibonacci_wraps(kernels: Any, either: gpu.Context, steps: int) -> None:
    y = kernels.fibonacci(steps=steps, ctx=either).numpy()
    numbers = [1, 1]
    while len(numbers) < steps:
        numbers.append((numbers[-1] + numbers[-2]) % 2**32)
    assert y.tolist() == numbers[:steps]
    y = kernels.fibonacci_by_cases(steps=steps, ctx=either).numpy()
    assert y.tolist() == [0, *numbers][:steps]


def test_the_logistic_map_is_evaluated_in_order(kernels: Any, ctx: gpu.Context) -> None:
    start, r = np.array([0.3, 0.7, 0.123], np.float32), np.float32(3.9)
    orbit = kernels.logistic(ctx.tensor(start), r=float(r), steps=12).numpy()
    for t in range(1, 12):
        z = orbit[:, t - 1]
        # One step of f32, from where the orbit is: three roundings, however fused.
        wanted = r.astype(np.float64) * z * (1 - z.astype(np.float64))
        np.testing.assert_allclose(orbit[:, t], wanted, rtol=4e-7)


def test_mandelbrot(kernels: Any, either: gpu.Context) -> None:
    plane = np.linspace(-2, 0.75, 12)[:, None] + 1j * np.linspace(-1.2, 1.21, 9)
    points = plane.ravel()
    c = np.stack([points.real, points.imag], -1).astype(np.float32)
    got = kernels.mandelbrot(either.tensor(c, vec2f), steps=30).numpy()
    z, count = np.zeros(len(points), complex), np.zeros(len(points), int)
    exact = c[:, 0].astype(float) + 1j * c[:, 1]
    for _ in range(30):
        inside = abs(z) <= 2
        z = np.where(inside, z * z + exact, z)
        count += inside
    # Rounding may move a point that is at the edge of the circle.
    assert np.mean(got == count) > 0.97


def test_newton_and_what_follows_the_loop(kernels: Any, either: gpu.Context) -> None:
    a = np.array([0.25, 1, 2, 100, 3e4], np.float32)
    y, more = kernels.root(either.tensor(a))
    x = np.maximum(a.astype(np.float64), 1)
    for _ in range(8):
        x = 0.5 * (x + a / x)
    np.testing.assert_allclose(y.numpy(), x, rtol=1e-6)
    np.testing.assert_allclose(more.numpy(), 2 * x, rtol=1e-6)


@pytest.mark.parametrize("count", [1, 2, 100])
def test_binary_search(kernels: Any, either: gpu.Context, count: int) -> None:
    edges = np.sort(drawn(count))
    x = np.concatenate([drawn(50, seed=1), edges])
    at = kernels.locate(either.tensor(edges), either.tensor(x)).numpy()
    np.testing.assert_array_equal(at, np.searchsorted(edges, x, "right"))


def test_a_loop_is_read_where_each_row_ends(kernels: Any, either: gpu.Context) -> None:
    x, lengths = drawn(5, 6), np.array([0, 1, 6, 3, 9], np.int32)
    y = kernels.ragged(either.tensor(x), either.tensor(lengths, i32)).numpy()
    wanted = [x[i, :n].astype(np.float64).sum() for i, n in enumerate(lengths)]
    np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-6)


def test_selective_scan(kernels: Any, either: gpu.Context) -> None:
    b, n, d, s = 2, 9, 5, 3
    x, u, c = drawn(b, n, d), drawn(b, n, s, seed=1), drawn(b, n, s, seed=2)
    a, dt = -abs(drawn(d, s, seed=3)), abs(drawn(b, n, d, seed=4))
    y = kernels.selective_scan(*map(either.tensor, (x, a, dt, u, c))).numpy()
    h, wanted = np.zeros((b, d, s)), np.zeros((b, n, d))
    for t in range(n):
        step = dt[:, t, :, None].astype(np.float64)
        h = np.exp(step * a) * h + step * u[:, t, None, :] * x[:, t, :, None]
        wanted[:, t] = (h * c[:, t, None, :]).sum(-1)
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)


def test_two_recurrences_in_one_loop(kernels: Any, either: gpu.Context) -> None:
    x = drawn(3, 20) + np.float32(1)
    worst, ever = kernels.drawdown(either.tensor(x))
    falls = np.minimum(x - np.maximum.accumulate(x, 1), 0)
    falls[:, 0] = 0
    np.testing.assert_array_equal(worst.numpy(), np.minimum.accumulate(falls, 1))
    np.testing.assert_array_equal(ever.numpy(), np.logical_or.accumulate(x < 0, 1))


def test_all_steps_are_stored_for_a_reduction(
    kernels: Any, either: gpu.Context
) -> None:
    x = drawn(4, 11)
    y = kernels.mean_of_average(either.tensor(x)).numpy()
    h = x.astype(np.float64)
    for t in range(1, 11):
        h[:, t] += 0.5 * h[:, t - 1]
    np.testing.assert_allclose(y, h.mean(1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 20])
def test_a_distance_beyond_the_length(
    kernels: Any, either: gpu.Context, n: int
) -> None:
    x = np.arange(1, n + 1, dtype=np.int32)
    y = kernels.stride(either.tensor(x, i32)).numpy()
    assert y.tolist() == [sum(x[t % 3 : t + 1 : 3]) for t in range(n)]


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        ("ema", "scan_redo1"),
        ("root", "loop"),
        ("mandelbrot", "loop"),
        ("ragged", "loop"),
    ],
)
def test_what_is_not_read_is_not_stored(kernels: Any, name: str, strategy: str) -> None:
    kernel = getattr(kernels, f"_{name.upper()}")
    (choice,) = kernel.body
    assert choice.cases[0].name == strategy
    assert not kernel.temporaries


# ---- a dispatch for each step


@pytest.mark.parametrize("steps", [0, 1, 30])
def test_power_iteration(kernels: Any, either: gpu.Context, steps: int) -> None:
    half = drawn(70, 70)
    m = half + half.T
    v = kernels.power(either.tensor(m), steps=steps).numpy()
    wanted = np.ones(70)
    for _ in range(steps):
        wanted = m.astype(np.float64) @ wanted
        wanted /= np.linalg.norm(wanted)
    wanted /= np.linalg.norm(wanted)
    np.testing.assert_allclose(v, wanted, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (9, 1), (0, 3), (4, 0), (12, 130)])
def test_dynamic_programming_row_by_row(
    kernels: Any, either: gpu.Context, shape: tuple[int, int]
) -> None:
    cost = np.random.default_rng(0).integers(0, 9, shape).astype(np.float32)
    total = kernels.descent(either.tensor(cost)).numpy()
    wanted = cost.copy()
    for t in range(1, shape[0]):
        wide = np.pad(wanted[t - 1], 1, constant_values=np.inf)
        wanted[t] += np.minimum(np.minimum(wide[:-2], wide[1:-1]), wide[2:])
    np.testing.assert_array_equal(total, wanted)


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_the_game_of_life_goes_down(
    kernels: Any, either: gpu.Context, steps: int
) -> None:
    alive = (drawn(9, 11) > 0).astype(np.int32)
    after = kernels.life(either.tensor(alive, i32), steps=steps).numpy()
    for _ in range(steps):
        shifts = [(u, v) for u in (-1, 0, 1) for v in (-1, 0, 1)]
        around = sum(np.roll(alive, shift, (0, 1)) for shift in shifts) - alive
        alive = ((around == 3) | ((around == 2) & (alive == 1))).astype(np.int32)
    np.testing.assert_array_equal(after, alive)


@pytest.mark.parametrize("steps", [1, 6])
def test_an_lstm(kernels: Any, either: gpu.Context, steps: int) -> None:
    x, w, r = drawn(steps, 2, 5), drawn(4, 7, 5, seed=1), drawn(4, 7, 7, seed=2)
    y = kernels.lstm(*map(either.tensor, (x, w, r))).numpy()

    def sigmoid(a: Array) -> Array:
        return 1 / (1 + np.exp(-a))

    h, c = np.zeros((2, 7)), np.zeros((2, 7))
    for t in range(steps):
        gates = np.einsum("gjk,qk->gqj", w.astype(np.float64), x[t])
        gates += np.einsum("gjk,qk->gqj", r.astype(np.float64), h)
        i, f, g, o = gates
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        np.testing.assert_allclose(y[t], h, rtol=1e-4, atol=1e-5)


def test_more_steps_than_a_call_may_have_are_refused(
    kernels: Any, ctx: gpu.Context
) -> None:
    alive = ctx.tensor(np.zeros((2, 2), np.int32), i32)
    match = r"life .* stage 'g' takes 5001 dispatches, .* a call may have 4096"
    with pytest.raises(gpu.LimitError, match=match):
        kernels.life(alive, steps=5000)
    assert kernels.life(alive, steps=3).numpy().shape == (2, 2)


def test_two_steps_in_turn_are_enough_where_the_last_is_read(kernels: Any) -> None:
    kept = {t.name: t.axes for t in kernels._POWER.temporaries}
    assert kept["x"] == ("n", 2)
    (all_steps,) = kernels._DESCENT.temporaries
    assert all_steps.axes == ("m", "n")


@pytest.mark.parametrize(
    ("name", "ends"), [("mandelbrot", True), ("locate", True), ("root", False)]
)
def test_loops_end_when_nothing_changes(kernels: Any, name: str, ends: bool) -> None:
    kernel = getattr(kernels, f"_{name.upper()}")
    (dispatch,) = dispatches_in(kernel.body)
    assert ("break;" in kernel.shader(dispatch)) == ends


def test_steps_are_captured(kernels: Any, ctx: gpu.Context) -> None:
    alive = ctx.tensor(np.zeros((5, 5), np.int32), i32)
    with ctx.capture() as step:
        after = kernels.life(alive, steps=2)
    glider = np.array([[0, 1, 0], [0, 0, 1], [1, 1, 1]], np.int32)
    alive.copy_from(np.pad(glider, (0, 2)))
    step.replay()
    assert after.numpy().sum() == 5

"""The checks of the self-test: each runs kernels and returns their largest error."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kerngen.jit import compile as compile_source
from kerngen.runtime import Context, FeatureError, f16, f32

_BOUND: Final = 1e-4
"""The largest error, relative to the largest value; a broken kernel's is far above it."""

PROBE: Final = """
struct Inner { a: f32, b: vec3f }
struct Outer { first: u32, inner: Inner, columns: mat3x2f, tail: f32[3], last: i32 }

kernel in_uniform(p: Outer) -> y: f32[18] {
    y[i] = if i == 0 { f32(p.first) } else if i == 1 { p.inner.a }
        else if i < 5 { p.inner.b[i - 2] }
        else if i < 11 { p.columns[(i - 5) / 2][(i - 5) % 2] }
        else if i < 14 { p.tail[i - 11] } else { f32(p.last) };
}

kernel in_storage(p: Outer[n]) -> y: f32[n, 18] {
    y[e, i] = if i == 0 { f32(p[e].first) } else if i == 1 { p[e].inner.a }
        else if i < 5 { p[e].inner.b[i - 2] }
        else if i < 11 { p[e].columns[(i - 5) / 2][(i - 5) % 2] }
        else if i < 14 { p[e].tail[i - 11] } else { f32(p[e].last) };
}
"""

"""Kernels that read the fields of a struct one by one, from uniform and storage buffers."""

_SUBGROUPS: Final = """
kernel totals(x: f32[m, n]) -> s: f32[m] { s[i] = sum[j] x[i, j]; }
schedule totals { reduce subgroups(1) }
"""


KERNELS: Final = """
kernel gelu(x: f32[n]) -> y: f32[n] {
    y[i] = 0.5 * x[i] * (1.0 + tanh(0.7978845608 * (x[i] + 0.044715 * x[i] * x[i] * x[i])));
}

kernel total(x: f32[n]) -> s: f32[] { s = sum[i] x[i]; }

kernel softmax(x: f32[m, n]) -> y: f32[m, n] {
    let top[i] = max[j] x[i, j];
    let e[i, j] = exp(x[i, j] - top[i]);
    let all[i] = sum[j] e[i, j];
    y[i, j] = e[i, j] / all[i];
}

kernel matmul(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] {
    c[i, j] = sum[p] a[i, p] * b[p, j];
}

kernel gemv(w: f32[m, n], x: f32[n]) -> y: f32[m] { y[i] = sum[j] w[i, j] * x[j]; }
"""
"""One kernel for each way to run a stage: elementwise, reductions, rows, products."""

_HALF: Final = "kernel widen(x: f16[n]) -> y: f32[n] { y[i] = x[i]; }"


class Skip(Exception):  # noqa: N818 - it is no error
    """Raised if the adapter lacks a feature that a check needs."""


class Wrong(Exception):  # noqa: N818 - an error of the adapter's
    """Raised if a kernel's result is wrong."""


def _expect(holds: object, otherwise: str) -> None:
    """Raise `Wrong` unless a condition is true; `assert` may be switched off by -O."""
    if not holds:
        raise Wrong(otherwise)


def _array(*shape: int) -> NDArray[np.float32]:
    """Return random numbers of f32, the same at every run."""
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def _close(got: NDArray[Any], expected: NDArray[Any]) -> str:
    _expect(got.shape == expected.shape, f"shape {got.shape}, not {expected.shape}")
    _expect(np.isfinite(got).all(), "values that are not finite")
    scale = float(np.abs(expected).max(initial=1.0))
    error = float(np.abs(got - expected).max(initial=0.0)) / scale
    _expect(error <= _BOUND, f"off by {error:.1e} of the largest value")
    return f"off by {error:.1e}"


def _kernels() -> Any:
    return compile_source(KERNELS, name="doctor_kernels")


def _memory(ctx: Context) -> str:
    array = _array(1001)
    _expect(
        np.array_equal(ctx.tensor(array).numpy(), array), "different bytes came back"
    )
    return "the same bytes"


def _map(ctx: Context) -> str:
    x = _array(5003)
    y = _kernels().gelu(ctx.vector(x, f32)).numpy()
    wide = x.astype(np.float64)
    inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
    return _close(y, 0.5 * wide * (1 + np.tanh(inner)))


def _reduction(ctx: Context) -> str:
    x = _array(100_003)
    # Relative to the sum of magnitudes, as the sum itself is near 0.
    total = _kernels().total(ctx.vector(x, f32)).numpy()
    scale = np.abs(x.astype(np.float64)).sum()
    return _close(total / scale, x.astype(np.float64).sum() / scale)


def _rows(ctx: Context) -> str:
    x = _array(5, 1030)
    y = _kernels().softmax(ctx.matrix(x, f32)).numpy()
    exponentials = np.exp(x.astype(np.float64))
    return _close(y, exponentials / exponentials.sum(axis=1, keepdims=True))


def _products(ctx: Context) -> str:
    # Lengths for the aligned variant of the tiles, and for the one with edges.
    for m, k, n in ((128, 64, 128), (65, 33, 70)):
        a, b = _array(m, k), _array(k, n)
        c = _kernels().matmul(ctx.matrix(a, f32), ctx.matrix(b, f32)).numpy()
        error = _close(c, a.astype(np.float64) @ b)
    return error


def _vector_product(ctx: Context) -> str:
    w, x = _array(70, 300), _array(300)
    y = _kernels().gemv(ctx.matrix(w, f32), ctx.vector(x, f32)).numpy()
    return _close(y, w.astype(np.float64) @ x)


def _halves(ctx: Context) -> str:
    x = _array(1001).astype(np.float16)
    try:
        widen = compile_source(_HALF, name="doctor_half").widen
        y = widen(ctx.vector(x, f16)).numpy()
    except FeatureError:
        raise Skip("the adapter has no f16") from None
    return _close(y, x.astype(np.float64))


def _subgroups(ctx: Context) -> str:
    x = _array(3, 5000)
    if "subgroup" not in ctx.device.features:
        raise Skip("the adapter has no subgroups")
    totals = compile_source(_SUBGROUPS, name="doctor_subgroups").totals
    return _close(totals(ctx.matrix(x, f32)).numpy(), x.sum(axis=1, dtype=np.float64))


def _numbers() -> tuple[list[float], Any]:
    """Return a struct's numbers in order, and the struct."""
    numbers = [float(n) for n in range(3, 18)]
    module = compile_source(PROBE, name="doctor_layout")
    pairs = tuple((numbers[5 + 2 * c], numbers[6 + 2 * c]) for c in range(3))
    inner = module.Inner(a=numbers[1], b=tuple(numbers[2:5]))
    tail, last = tuple(numbers[11:14]), int(numbers[14])
    return numbers, module.Outer(int(numbers[0]), inner, pairs, tail, last)


def _uniform_layout(ctx: Context) -> str:
    numbers, value = _numbers()
    module = compile_source(PROBE, name="doctor_layout")
    got = module.in_uniform(p=value, ctx=ctx).numpy()[:15]
    _expect(got.tolist() == numbers, f"read {got.tolist()}, not {numbers}")
    return "every field is at the right place"


def _storage_layout(ctx: Context) -> str:
    numbers, value = _numbers()
    module = compile_source(PROBE, name="doctor_layout")
    got = module.in_storage(ctx.vector([value] * 3, module.Outer)).numpy()[:, :15]
    _expect(got.tolist() == [numbers] * 3, f"read {got.tolist()}, not {numbers}")
    return "every field is at the right place"


def _timestamps(ctx: Context) -> str:
    x = ctx.vector(_array(100_000), f32)
    try:
        with ctx.timed() as span:
            y = _kernels().gelu(x)
    except FeatureError:
        raise Skip("the adapter has no timestamps") from None
    seconds = span.seconds
    _expect(np.isfinite(y.numpy()).all(), "values that are not finite")
    _expect(0 <= seconds < 60, f"a kernel is said to take {seconds} s")
    return f"a kernel takes {seconds * 1e6:.0f} us"


CHECKS: Final[Mapping[str, Callable[[Context], str]]] = {
    "upload and download": _memory,
    "layout of uniform structs": _uniform_layout,
    "layout of structs in tensors": _storage_layout,
    "elementwise (gelu)": _map,
    "reduction (sum)": _reduction,
    "rows (softmax)": _rows,
    "products (matmul)": _products,
    "matrix times vector (gemv)": _vector_product,
    "f16": _halves,
    "subgroups": _subgroups,
    "timestamps": _timestamps,
}
"""The checks by their names in the report."""

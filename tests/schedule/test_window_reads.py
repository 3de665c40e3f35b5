"""Factors that are read in windows: places as sums, and strides by phases.

Results are compared with sums over windows by NumPy, in float64.
"""

from __future__ import annotations

from collections.abc import Generator
from types import ModuleType

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from tests.compile import DSL, built_module
from tests.numeric.oracles_images import conv2d, conv2d_input_gradient

GEMM = "gemm tile(16, 32, 16) micro(4, 4)"


def program() -> str:
    """Return `conv2d` and its gradient in tiles, and a kernel that leaves out row 0."""
    text = (DSL / "conv.kern").read_text("utf-8")
    begin, end = (text.index(x) for x in ("kernel conv2d(", "/// As `conv2d`, plus"))
    conv = text[begin:end]
    inner = conv.replace("kernel conv2d", "kernel inner").replace(
        "on_axis(i * step + u * skip - edge, h)",
        "i * step + u * skip - edge > 0 and i * step + u * skip - edge < i32(h)",
    )
    assert inner.count("> 0") == 1
    gradient = "kernel input_gradient = gradient of conv2d by x;\n"
    schedules = f"schedule conv2d, inner, input_gradient {{ {GEMM} }}\n"
    function = text[text.index("fn on_axis") : text.index("/// y[n, f, i] =")]
    return function + conv + inner + gradient + schedules


@pytest.fixture(scope="module")
def made() -> Generator[ModuleType]:
    with built_module(program()) as module:
        yield module


@pytest.mark.parametrize(
    ("rows", "columns", "stride", "pad"),
    [(1, 1, 1, 0), (1, 1, 2, 0), (1, 1, 1, 1), (1, 2, 1, 0), (3, 3, 1, 1)],
)
def test_small_windows_are_those_of_numpy(
    ctx: gpu.Context, made: ModuleType, rows: int, columns: int, stride: int, pad: int
) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 5, 7, 9), dtype=np.float32)
    k = rng.standard_normal((6, 5, rows, columns), dtype=np.float32)
    how = {"stride": stride, "pad": pad, "dilation": 1}
    image, weights = x.astype(np.float64), k.astype(np.float64)
    want = conv2d(image, weights, **how)
    y = made.conv2d(ctx.tensor(x), ctx.tensor(k), **how)
    np.testing.assert_allclose(y.numpy(), want, atol=2e-5)
    image[:, :, 0] = 0.0
    without = made.inner(ctx.tensor(x), ctx.tensor(k), **how)
    left = conv2d(image, weights, **how)
    np.testing.assert_allclose(without.numpy(), left, atol=2e-5)
    dy = rng.standard_normal(want.shape, dtype=np.float32)
    dx = made.input_gradient(ctx.tensor(k), ctx.tensor(dy), h_len=7, w_len=9, **how)
    wanted = conv2d_input_gradient(
        weights, dy.astype(np.float64), h_len=7, w_len=9, **how
    )
    np.testing.assert_allclose(dx.numpy(), wanted, atol=2e-5)


def codes() -> list[str]:
    """Return the shaders with windows: of `conv2d`, of `inner`, and two of the gradient."""
    programs = compile_text(program(), "conv.kern").programs
    shaders = (shader for each in programs for shader in each.shaders)
    windowed = (x.code for x in shaders if x.variant != "pointwise")
    return [code for code in windowed if "a_tile" in code]


def test_the_place_of_a_term_is_added_to_that_of_a_result() -> None:
    text, *_ = codes()
    assert "let b_0_h_0 = b_0_i_0 * u32(u.step) - u32(u.edge);" in text
    assert "let b_0_h = b_0_u * u32(u.skip);" in text
    assert "let is_inside = h < u.h && w < u.w;" in text


def test_another_condition_is_kept_whole() -> None:
    _, inner, *_ = codes()
    assert "let is_inside" not in inner


def test_no_place_is_divided_in_the_loop() -> None:
    *_, undivided, phased = codes()
    for code in (undivided, phased):
        function = code[code.index("fn b_element") :]
        assert not set("/%") & set(function[: function.index("}")])
        assert "_divided" not in code
    assert "first_multiple" in phased


STRIDED = """
kernel halved(x: f32[b, c, h], k: f32[o, c, r]) -> y: f32[b, o, h / 2] {
    y[n, f, i] = sum[q, u] k[f, q, u] * if
        i * 2 + i32(u) - 1 >= 0 and i * 2 + i32(u) - 1 < i32(h)
    {
        x[n, q, i * 2 + u - 1]
    } else {
        0.0
    };
}
kernel gradient_of_halved = gradient of halved by x;
kernel moved(x: f32[b, c, h], k: f32[o, c, r], lambda: u32)
    -> y: f32[b, o, (h + lambda - 1) / lambda] {
    require lambda > 0;
    host by = i32(lambda);
    y[n, f, i] = sum[q, u] k[f, q, u] * if
        i * by - u >= 0 and i * by - u < i32(h)
    {
        x[n, q, i * by - u]
    } else {
        0.0
    };
}
kernel gradient_of_moved = gradient of moved by x;
schedule gradient_of_halved, gradient_of_moved { GEMM }
"""


@pytest.mark.parametrize("length", [8, 13, 40])
def test_strides_of_the_program_and_of_the_call(ctx: gpu.Context, length: int) -> None:
    rng = np.random.default_rng(length)
    k = rng.standard_normal((4, 3, 3), dtype=np.float32)
    with built_module(STRIDED.replace("GEMM", GEMM)) as module:
        for name, step, first, sign in (("halved", 2, -1, 1), ("moved", 3, 0, -1)):
            places = length // 2 if name == "halved" else -(-length // 3)
            dy = rng.standard_normal((2, 4, places), dtype=np.float32)
            want = np.zeros((2, 3, length))
            for i in range(places):
                for u in range(3):
                    place = i * step + first + sign * u
                    if 0 <= place < length:
                        want[:, :, place] += np.einsum(
                            "nf,fq->nq", dy[:, :, i], k[:, :, u]
                        )
            given = {} if name == "halved" else {"lambda_": 3}
            function = getattr(module, f"gradient_of_{name}")
            found = function(ctx.tensor(k), ctx.tensor(dy), h_len=length, **given)
            np.testing.assert_allclose(found.numpy(), want, atol=1e-5)


SQUARE = """
kernel square(x: f16[b, c, h, h], k: f32[o, c, 3, 3]) -> y: f32[b, o, h, h] {
    y[n, f, i, j] = sum[q, u, v] k[f, q, u, v] * if
        i + u - 1 >= 0 and i + u - 1 < i32(h) and j + v - 1 >= 0 and j + v - 1 < i32(h)
    {
        x[n, q, i + u - 1, j + v - 1]
    } else {
        0.0
    };
}
schedule square { GEMM }
"""


def test_axes_of_the_same_length_and_halves(ctx: gpu.Context) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2, 3, 11, 11)).astype(np.float16)
    k = rng.standard_normal((5, 3, 3, 3), dtype=np.float32)
    with built_module(SQUARE.replace("GEMM", GEMM)) as module:
        found = module.square(ctx.tensor(x), ctx.tensor(k)).numpy()
    want = conv2d(
        x.astype(np.float64), k.astype(np.float64), stride=1, pad=1, dilation=1
    )
    np.testing.assert_allclose(found, want, atol=2e-5)


STRIDED_GRADIENT = """
kernel conv(x: f32[b, c, h], k: f32[o, c, r], SCALARS) -> y: f32[b, o, (h - 1) / 2 + 1] {
    HOSTS
    y[n, f, i] = sum[q, u] k[f, q, u] * if
        i * by + u * skip - 1 >= 0 and i * by + u * skip - 1 < i32(h)
    {
        x[n, q, i * by + u * skip - 1]
    } else {
        0.0
    };
}
kernel g = gradient of conv by x;
"""
UNBATCHED = """
kernel conv(x: f32[c, h], k: f32[o, c, r], a: u32) -> y: f32[o, (h + a - 1) / a] {
    host by = i32(a);
    y[f, i] = sum[q, u] k[f, q, u] * if i * by + u >= 0 and i * by + u < i32(h) {
        x[q, i * by + u]
    } else {
        0.0
    };
}
kernel g = gradient of conv by x;
"""
NEGATIVE = """
kernel g(k: f32[o, c, r], dy: f32[b, o, p], h_len: u32, by: i32) -> dx: f32[b, c, h_len] {
    dx[n, q, i] = sum[f, u] k[f, q, u] * if
        (i + 1 - u) % by == 0 and (i + 1 - u) / by >= 0 and (i + 1 - u) / by < i32(p)
    {
        dy[n, f, (i + 1 - u) / by]
    } else {
        0.0
    };
}
"""


def strided(scalars: str, hosts: str) -> str:
    """Return a convolution with its gradient, whose stride is 2 however it is given."""
    return STRIDED_GRADIENT.replace("SCALARS", scalars).replace("HOSTS", hosts)


GRADIENTS: dict[str, tuple[str, dict[str, int]]] = {
    "i32 scalar": (strided("by: i32, skip: i32", ""), {"by": 2, "skip": 3}),
    "expression": (
        strided("a: u32", "host by = abs(i32(a) - 4); host skip = 1;"),
        {"a": 2},
    ),
    "u32 in the place": (
        strided("a: u32, skip: i32", "host by = i32(a << 1);"),
        {"a": 1, "skip": 2},
    ),
    "no batch": (UNBATCHED, {"a": 2}),
    "no batch, stride 1": (UNBATCHED, {"a": 1}),
    "negative": (NEGATIVE, {"by": -2}),
    "negative, 1": (NEGATIVE, {"by": -1}),
    "by 3": (NEGATIVE, {"by": 3}),
}


@pytest.mark.parametrize("schedule", [f"schedule g {{ {GEMM} }}", ""])
@pytest.mark.parametrize("name", GRADIENTS)
def test_a_strided_gradient_is_that_of_its_reference(
    ctx: gpu.Context, name: str, schedule: str
) -> None:
    text, scalars = GRADIENTS[name]
    rng = np.random.default_rng(1)
    k = rng.standard_normal((16, 9, 3), dtype=np.float32)
    places = -(-21 // scalars["a"]) if text == UNBATCHED else 11
    batch = () if text == UNBATCHED else (2,)
    dy = rng.standard_normal((*batch, 16, places), dtype=np.float32)
    given = {**scalars, "h_len": 21}
    with built_module(f"{text}\n{schedule}") as module:
        found = module.g(ctx.tensor(k), ctx.tensor(dy), **given)
        want = module.g_reference(k.astype(np.float64), dy.astype(np.float64), **given)
    np.testing.assert_allclose(found.numpy(), want, atol=2e-5)


OTHERS = {
    "a constant quotient": ("x: f32[b, c, m, start]", "x[n, q, m / 2, j + v]"),
    "an unsigned condition": (
        "x: f32[b, c, start]",
        "if u32(j + v - 1) >= 0 and j + v - 1 < i32(start) { x[n, q, j + v - 1] } else { 0.0 }",
    ),
    "words of the compiler": (
        "x: f32[b, is_inside, start]",
        "if j + v - 1 >= 0 and j + v - 1 < i32(start) { x[n, q, j + v - 1] } else { 0.0 }",
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_reads_that_look_like_windows(ctx: gpu.Context, name: str) -> None:
    parameter, read = OTHERS[name]
    channels = "is_inside" if "is_inside" in parameter else "c"
    text = f"""
kernel conv({parameter}, k: f32[o, {channels}, r]) -> y: f32[b, o, start - r + 1] {{
    y[n, f, j] = sum[q, v] k[f, q, v] * {read};
}}
schedule conv {{ {GEMM} }}
"""
    rng = np.random.default_rng(2)
    shape = (2, 9, 5, 14) if "m, start" in parameter else (2, 9, 14)
    x = rng.standard_normal(shape, dtype=np.float32)
    k = rng.standard_normal((10, 9, 3), dtype=np.float32)
    with built_module(text) as module:
        found = module.conv(ctx.tensor(x), ctx.tensor(k)).numpy()
        want = module.conv_reference(x.astype(np.float64), k.astype(np.float64))
    np.testing.assert_allclose(found, want, atol=2e-5)

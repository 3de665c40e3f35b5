"""Gradients as items: kernels like any other, from the text to the adapter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kerngen.compiler import compile_text
from kerngen.ir.module import Module
from kerngen.ir.nodes import FunctionCall, Kernel
from kerngen.ir.walk import walk
from kerngen.runtime import ArgumentError, Context, ShapeError, f32
from kerngen.source.diagnostic import CompileError
from tests.compile import DSL, built_files, built_module, checked, loaded

SOFTMAX = (DSL / "softmax.kern").read_text("utf-8")
SOURCE = """
const SLOPE: f32 = 0.1;

fn leaky(x: f32) -> f32 {
    if x > 0.0 { x } else { SLOPE * x }
}

/// Not the slope of `bent`, so that it is seen whose is used.
fn bent(x: f32, k: i32, y: f32) -> f32 {
    x * y * f32(k)
}

derivative of bent(x: f32, k: i32, y: f32) {
    let twice = 2.0 * f32(k);
    twice * y, 3.0 * leaky(x)
}

/// Each row by its length.
kernel unit(x: f32[m, n], gain: f32 = 1.0) -> y: f32[m, n] {
    let length[i] = sqrt(sum[j] x[i, j] * x[i, j]);
    y[i, j] = gain * x[i, j] / length[i];
}

/// By hand, this takes a while.
kernel unit_gradient = gradient of unit by x, gain;
kernel unit_second = gradient of unit_gradient by x;

kernel bend(x: f32[n], z: f32[n]) -> y: f32[n] {
    y[i] = bent(x[i], 2, z[i]) + leaky(x[i]);
}

kernel bend_gradient = gradient of bend by x, z;

kernel ends(x: f32[n]) -> y: f32[n / 2] {
    require n % 2 == 0;
    y[i] = x[i] * x[i + n / 2];
}

kernel ends_gradient = gradient of ends by x;

schedule unit_gradient when n > 8 and gain_off { rows }
"""
RIGHT = SOURCE.replace(" and gain_off", "")


def differences(
    function: Callable[[Any], Any], x: Any, weight: Any, step: float = 1e-6
) -> Any:
    """Return the gradient of `sum(weight * function(x))` by central differences."""
    slope = np.zeros_like(x)
    for place in np.ndindex(*x.shape):
        moved = [x.copy(), x.copy()]
        moved[0][place] += step
        moved[1][place] -= step
        above, below = (np.sum(weight * function(each)) for each in moved)
        slope[place] = (above - below) / (2 * step)
    return slope


def test_a_derived_kernel_is_like_any_other(ctx: Context) -> None:
    rng = np.random.default_rng(2)
    x, dy = rng.standard_normal((2, 3, 9))
    with built_module(RIGHT) as module:
        wanted = differences(lambda at: module.unit_reference(at, gain=1.5), x, dy)
        found = module.unit_gradient_reference(x, dy, gain=1.5)
        np.testing.assert_allclose(found[0], wanted, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(found[1], (dy * module.unit_reference(x)).sum())
        dx, dgain = module.unit_gradient(
            ctx.matrix(x, f32), ctx.matrix(dy, f32), gain=1.5
        )
        np.testing.assert_allclose(dx.numpy(), wanted, rtol=2e-4, atol=2e-5)
        np.testing.assert_allclose(dgain.numpy(), found[1], rtol=2e-4)
        doc = str(module.unit_gradient.__doc__)
        assert doc.startswith("By hand, this takes a while.")
        assert "kernel unit_gradient(" in doc


def test_a_gradient_is_derived_again() -> None:
    rng = np.random.default_rng(3)
    x, dy, weight = rng.standard_normal((3, 2, 4))
    (kernel,) = (k for k in checked(RIGHT).kernels if k.name == "unit_second")
    with built_module(RIGHT) as module:

        def first(at: Any) -> Any:
            return module.unit_gradient_reference(at, dy)[0]

        given = {"x": x, "dy": dy, "ddx": weight, "ddgain": np.zeros(())}
        arrays = [given[tensor.name] for tensor in kernel.tensors[:-1]]
        found = module.unit_second_reference(*arrays)
        wanted = differences(first, x, weight)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)


def test_a_let_that_is_given_is_returned_by_a_kernel_of_its_own() -> None:
    text = f"{RIGHT}\nkernel brief = gradient of unit by x given length, y;\n"
    x, dy = np.random.default_rng(6).standard_normal((2, 3, 4))
    with built_module(text) as module:
        y, length = module.unit_kept_reference(x)
        np.testing.assert_array_equal(y, module.unit_reference(x))
        np.testing.assert_allclose(length, np.linalg.norm(x, axis=1))
        assert "unit_kept(" in str(module.unit_kept.__doc__)
        names = {"length": length, "y": y, "dy": dy, "x": x}
        (kernel,) = (k for k in checked(text).kernels if k.name == "brief")
        inputs = [names[tensor.name] for tensor in kernel.tensors[:-1]]
        found = module.brief_reference(*inputs)
        np.testing.assert_allclose(found, module.unit_gradient_reference(x, dy)[0])
    clash = text + "kernel unit_kept(x: f32[n]) -> y: f32[n] { y[i] = x[i]; }"
    with pytest.raises(CompileError, match="two kernels called 'unit_kept'"):
        checked(clash)


def test_a_function_has_the_derivative_that_the_user_gave() -> None:
    drawn: Any = np.random.default_rng(4).standard_normal((3, 5))
    x, z, dy = drawn
    bend: Any = np.where(x > 0, 1.0, 0.1)
    slope: Any = x * bend
    with built_module(RIGHT) as module:
        dx, dz = module.bend_gradient_reference(x, z, dy)
        np.testing.assert_allclose(dx, dy * (4 * z + bend))
        np.testing.assert_allclose(dz, dy * 3 * slope)


def test_what_a_kernel_requires_its_gradient_requires() -> None:
    x: Any = np.arange(6.0)
    dy: Any = np.arange(3.0)
    with built_module(RIGHT) as module:
        wanted = differences(module.ends_reference, x, dy)
        np.testing.assert_allclose(module.ends_gradient_reference(x, dy), wanted)
        with pytest.raises(ShapeError, match=r"ends_gradient .* needs 'n % 2 == 0'"):
            module.ends_gradient_reference(np.arange(7.0), dy)


CUT = """
kernel rotated(x: f32[n, d], angle: f32[n, r], turns: u32) -> y: f32[n] {
    require 2 * r <= d;
    require turns < 8;
    y[i] = sum[j < r] x[i, j + r];
}

kernel rotated_gradient = gradient of rotated by x;
"""


def test_what_is_required_of_what_the_gradient_does_not_read() -> None:
    """It takes the lengths and the scalar for that, as it takes those that it reads."""
    dy: Any = np.array([1.0, 2.0])
    with built_module(CUT) as module:
        gradient: Any = module.rotated_gradient_reference
        found = gradient(dy, d_len=4, r_len=2, turns=0)
        np.testing.assert_allclose(found, dy[:, None] * [0, 0, 1, 1])
        with pytest.raises(ArgumentError, match="needs '2 \\* r_len <= d_len'"):
            gradient(dy, d_len=3, r_len=2, turns=0)
        with pytest.raises(ArgumentError, match="needs 'turns < 8'"):
            gradient(dy, d_len=4, r_len=2, turns=8)


COMPUTED = """
kernel pairs(x: f32[h, k], z: f32[s]) -> y: f32[2 * h, s - k + 1] {
    y[i, j] = sum[p] x[i / 2, p] * z[j + p];
}

kernel padded(x: f32[h], margin: u32) -> y: f32[h + 2 * margin] {
    y[i] = if i < h { x[min(i, h - 1)] } else { 0.0 };
}

kernel g = gradient of pairs by x, z;
kernel alone = gradient of pairs by z;
kernel unpadded = gradient of padded by x;
kernel again = gradient of unpadded by dy;
"""


def test_lengths_that_the_kernel_computes_are_required_of_its_gradients() -> None:
    """`dy` is as long as `y`: with more of it, the gradient would be another one.

    A scalar in that length is taken for the check alone.
    """
    x, z, dy = np.ones((2, 3)), np.ones(5), np.ones((4, 3))
    with built_module(COMPUTED) as module:
        built: Any = module
        np.testing.assert_allclose(built.g_reference(x, z, dy)[0], np.full((2, 3), 6.0))
        for wrong, sentence in (
            (np.ones((5, 3)), r"needs 'q == 2 \* h': q is 5, h is 2, 2 \* 2 is 4"),
            (np.ones((4, 2)), r"needs 'r == s - k \+ 1': r is 2"),
        ):
            with pytest.raises(ShapeError, match=sentence):
                built.g_reference(x, z, wrong)
        with pytest.raises(ShapeError, match="needs 'r == s_len - k \\+ 1'"):
            built.alone_reference(x, np.ones((4, 2)), s_len=5)
        found = built.unpadded_reference(np.arange(4.0), h_len=2, margin=1)
        np.testing.assert_allclose(found, [0.0, 1.0])
        sentence = r"needs 'p == h_len \+ 2 \* margin'"
        with pytest.raises(ShapeError, match=sentence):
            built.unpadded_reference(np.ones(5), h_len=2, margin=1)


STRIDED = """
kernel every(x: f32[n], stride: u32) -> y: f32[n / stride] {
    y[i] = x[i * i32(stride)] * x[i * i32(stride)];
}

kernel g = gradient of every by x;
"""


def test_what_a_length_is_divided_by_is_positive() -> None:
    """The forward kernel takes n / 0 for n, where its subscript has no inverse."""
    x, dy = np.arange(1.0, 7.0), np.ones(3)
    with built_module(STRIDED) as module:
        built: Any = module
        np.testing.assert_allclose(
            built.g_reference(x, dy, stride=2), 2 * x * [1, 0, 1, 0, 1, 0]
        )
        with pytest.raises(ArgumentError, match="needs 'stride > 0': stride is 0"):
            built.g_reference(x, np.ones(6), stride=0)


def test_schedules_of_derived_kernels_are_checked() -> None:
    with pytest.raises(CompileError) as caught:
        checked(SOURCE)
    assert [fault.code for fault in caught.value.diagnostics] == ["KG0201"]
    (kernel,) = (k for k in checked(RIGHT).kernels if k.name == "unit_gradient")
    assert [schedule.strategy for schedule in kernel.schedules] == ["rows"]


def test_softmax_is_the_kernel_that_was_written_by_hand() -> None:
    """The statements are the same but for the names of lets and indices."""
    item = "kernel derived = gradient of softmax by x given y;"
    module = compile_text(f"{SOFTMAX}\n{item}\n", "s.kern").module
    kernels = {kernel.name: kernel for kernel in module.kernels}
    derived, written = kernels["derived"], kernels["softmax_gradient"]
    assert [len(s.indices) for s in derived.body] == [
        len(s.indices) for s in written.body
    ]
    rng = np.random.default_rng(5)
    y, dy = rng.random((2, 3, 7)).astype(np.float32)
    with built_module(f"{SOFTMAX}\n{item}\n") as built:
        np.testing.assert_array_equal(
            built.derived_reference(y, dy), built.softmax_gradient_reference(y, dy)
        )


USED = """
use "c.kern";
const SCALE: f32 = 0.5;
fn part(x: f32) -> f32 { SCALE * x * deep(x) }
fn whole(n: i32) -> f32 { f32(n) * SCALE + shallow(n) }
kernel f(x: f32[n]) -> y: f32[n] { y[i] = part(x[i]) * whole(i); }
"""
DEEPEST = """
const HALF: f32 = 0.25;
fn deep(x: f32) -> f32 { HALF * x + 1.0 }
fn shallow(n: i32) -> f32 { if n > 2 { HALF } else { 0.0 } }
"""
USER = """
use "b.kern";
const HALF: f32 = 9.0;
fn deep(x: f32) -> f32 { x }
fn shallow(n: i32) -> f32 { f32(n) }
kernel g = gradient of f by x;
kernel h = gradient of g by dy;
kernel own(x: f32[n]) -> y: f32[n] { y[i] = deep(x[i]) + shallow(i) * HALF; }
"""


def kernel_of(module: Module, name: str) -> Kernel:
    (found,) = (kernel for kernel in module.kernels if kernel.name == name)
    return found


def test_a_kernel_of_another_file_keeps_its_functions() -> None:
    """Those of its own file, and of files that this one does not see."""
    module = checked(USER, b=USED, c=DEEPEST)
    known = {function.name for function in module.functions}
    for name in ("g", "h"):
        kernel = kernel_of(module, name)
        calls = {
            node.function
            for statement in kernel.body
            for node in walk(statement.value)
            if isinstance(node, FunctionCall)
        }
        assert calls <= known
    x, dy, more = np.arange(1.0, 5.0), np.full(4, 2.0), np.full(4, 3.0)
    index = np.arange(4)
    slope = (0.25 * x + 0.5) * (0.5 * index + np.where(index > 2, 0.25, 0))
    with built_files({"a.kern": USER, "b.kern": USED, "c.kern": DEEPEST}) as (
        built,
        *_,
    ):
        np.testing.assert_allclose(built.g_reference(x, dy), dy * slope)
        np.testing.assert_allclose(built.h_reference(x, more), more * slope)
        np.testing.assert_allclose(built.own_reference(x), x + 9 * index)


def test_each_file_that_gives_a_let_has_a_kernel_that_returns_it() -> None:
    """A file's own one is no clash with that of the file that it uses."""
    files = {
        "used.kern": """
        kernel f(x: f32[n], w: f32[n]) -> y: f32[n] {
            let g[i] = exp(x[i]);
            let h[i] = sqrt(w[i]);
            y[i] = g[i] * h[i];
        }
        kernel by_x = gradient of f by x given g;
        """,
        "a.kern": 'use "used.kern"; kernel both = gradient of f by x, w given g, h;',
    }
    x, w, dy = np.random.default_rng(8).uniform(0.5, 2.0, (3, 4))
    with built_files(files) as (used, own):
        y, g = used.f_kept_reference(x, w)
        np.testing.assert_allclose(used.by_x_reference(w, g, dy), dy * y)
        _, g, h = own.f_kept_reference(x, w)
        dx, dw = own.both_reference(w, g, h, dy)
        np.testing.assert_allclose(dx, dy * np.exp(x) * np.sqrt(w))
        np.testing.assert_allclose(dw, dy * np.exp(x) / (2 * np.sqrt(w)))


def test_product_of_hessian_and_vector() -> None:
    """Two items: the gradient of a gradient by x, given a vector, is the Hessian times it."""
    module = loaded("""
        /// Rosenbrock's function.
        kernel valley(x: f32[n]) -> y: f32[] {
            y = sum[i when i + 1 < n]
                (100.0 * (x[i + 1] - x[i] * x[i]) * (x[i + 1] - x[i] * x[i])
                    + (1.0 - x[i]) * (1.0 - x[i]));
        }
        kernel slope = gradient of valley by x;
        kernel curvature = gradient of slope by x;
        """)
    x = np.array([0.5, -1.25, 2.0, 0.75])
    v = np.array([1.0, 0.5, -2.0, 0.25])
    hessian = np.zeros((4, 4))
    for i in range(3):
        hessian[i, i] += 1200.0 * x[i] ** 2 - 400.0 * x[i + 1] + 2.0
        hessian[i + 1, i + 1] += 200.0
        hessian[i, i + 1] -= 400.0 * x[i]
        hessian[i + 1, i] -= 400.0 * x[i]
    got = module.curvature_reference(x=x, dy=np.array(1.0), ddx=v)
    np.testing.assert_allclose(got, hessian @ v, rtol=1e-12)

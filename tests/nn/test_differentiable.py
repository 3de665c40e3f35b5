"""Kernels of one's own as functions of variables: values and gradients, in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen import nn
from kerngen.jit import compile as compiled
from kerngen.runtime import DtypeError, f32, u32
from kerngen.train import Trainer
from kerngen_kernels import elementwise, norm, softmax
from kerngen_kernels import nn as kernels
from tests.compile import built_files

Array = NDArray[Any]

Ours: TypeAlias = Callable[[Mapping[str, nn.Variable]], nn.Variable]
Theirs: TypeAlias = Callable[[Mapping[str, Array]], Any]
"""A loss of parameters by name."""

STEP = 1e-5
TOLERANCE = 2e-5
"""Of the largest element: f32's rounding."""

SOURCE = """
/// An activation with a setting.
kernel softplus(x: f32[n], beta: f32 = 1.0) -> y: f32[n] {
    y[i] = log(1.0 + exp(beta * x[i])) / beta;
}
kernel softplus_gradient = gradient of softplus by x;

/// A layer with three inputs, whose gradients come from two kernels.
kernel gated(x: f32[m, k], w: f32[n, k], lambda: f32[n]) -> y: f32[m, n] {
    let h[i, j] = sum[q] x[i, q] * w[j, q];
    y[i, j] = h[i, j] * lambda[j] + tanh(h[i, j]);
}
kernel gated_by_one = gradient of gated by x;
kernel gated_by_all = gradient of gated by w, lambda given h;

/// A loss of whole numbers, too, whose gradient has no input with its dim.
kernel total(x: f32[m, n], rate: f32) -> y: f32[] {
    y = rate * sum[i, j] x[i, j];
}
kernel total_gradient = gradient of total by x;

/// Three outputs: one of integers.
kernel parts(x: f32[n], w: u32[n]) -> low: f32[n], high: f32[], count: u32[n] {
    low[i] = x[i] * x[i] * f32(w[i]);
    high = sum[i] sin(x[i]);
    count[i] = w[i] + 1;
}
kernel parts_gradient = gradient of parts by x;

/// Names that Python knows as something else: a class, and two that become one.
struct Weights {
    first: f32,
}
kernel renamed(Weights: f32[n], lambda_: f32[n], lambda: f32[n]) -> y: f32[n] {
    y[i] = lambda_[i] * lambda_[i] + sin(lambda[i]) + exp(Weights[i]);
}
kernel renamed_by_class = gradient of renamed by Weights;
kernel renamed_by_keyword = gradient of renamed by lambda;

kernel plain(x: f32[n]) -> y: f32[n] { y[i] = x[i]; }

// Compiled in a tenth of the time that tiles take.
schedule gated, gated_by_one, gated_by_all { generic }
"""


@pytest.fixture(scope="module")
def own() -> ModuleType:
    return compiled(SOURCE)


def draw(*shape: int) -> Array:
    rng = np.random.default_rng(sum(shape) + len(shape))
    return rng.uniform(0.2, 1.5, shape).astype(np.float32)


def by_differences(loss: Theirs, arrays: dict[str, Array]) -> dict[str, Array]:
    """Return the gradients of a NumPy function, by central differences in float64."""
    given = {name: array.astype(np.float64) for name, array in arrays.items()}
    found: dict[str, Array] = {}
    for name, array in given.items():
        found[name] = np.empty_like(array)
        for place in np.ndindex(array.shape):
            middle = array[place]
            array[place] = middle + STEP
            above = float(loss(given))
            array[place] = middle - STEP
            found[name][place] = (above - float(loss(given))) / (2 * STEP)
            array[place] = middle
    return found


def check(
    ctx: gpu.Context,
    ours: Ours,
    theirs: Theirs,
    **arrays: Array,
) -> None:
    """Hold the gradients of a loss to differences of NumPy's."""
    trainer = Trainer(ctx, arrays)
    loss = ours(trainer.parameters)
    expected = float(theirs({n: a.astype(np.float64) for n, a in arrays.items()}))
    assert loss.item() == pytest.approx(expected, rel=TOLERANCE)
    trainer.backward(loss)
    for name, gradient in by_differences(theirs, arrays).items():
        scale = np.abs(gradient).max()
        actual = trainer.gradients[name].numpy()
        np.testing.assert_allclose(actual, gradient, rtol=0, atol=TOLERANCE * scale)


def test_an_activation(ctx: gpu.Context, own: ModuleType) -> None:
    """Its scalar is that of the call, or the default."""
    softplus = nn.differentiable(own.softplus)
    check(
        ctx,
        lambda p: nn.mean(softplus(nn.scale(p["x"], 2.0))),
        lambda p: np.mean(np.log1p(np.exp(2 * p["x"]))),
        x=draw(7),
    )
    check(
        ctx,
        lambda p: nn.mean(softplus(p["x"], beta=2.5)),
        lambda p: np.mean(np.log1p(np.exp(2.5 * p["x"])) / 2.5),
        x=draw(7),
    )


def gated(x: Array, w: Array, gain: Array) -> Array:
    h = x @ w.T
    return np.asarray(np.mean(h * gain + np.tanh(h)))


def test_a_layer(ctx: gpu.Context, own: ModuleType) -> None:
    """Two kernels of gradients, one of which is given a let; a keyword as a name."""
    layer = nn.differentiable(own.gated)
    check(
        ctx,
        lambda p: nn.mean(layer(p["x"], p["w"], lambda_=p["gain"])),
        lambda p: gated(p["x"], p["w"], p["gain"]),
        x=draw(3, 4),
        w=draw(5, 4),
        gain=draw(5),
    )


def test_names_that_python_has_otherwise(ctx: gpu.Context, own: ModuleType) -> None:
    """A gradient calls them what its kernel does, also where it reads `lambda` alone."""
    function = nn.differentiable(own.renamed)
    constant = draw(4)
    check(
        ctx,
        lambda p: nn.mean(function(p["w"], ctx.tensor(constant, f32), p["x"])),
        lambda p: np.mean(constant**2 + np.sin(p["x"]) + np.exp(p["w"])),
        w=draw(4),
        x=draw(4),
    )


def test_constants_need_no_gradient(ctx: gpu.Context, own: ModuleType) -> None:
    layer = nn.differentiable(own.gated)
    w, gain = draw(5, 4), draw(5)
    check(
        ctx,
        lambda p: nn.mean(layer(p["x"], ctx.tensor(w, f32), ctx.tensor(gain, f32))),
        lambda p: gated(p["x"], w, gain),
        x=draw(3, 4),
    )
    y = layer(*(ctx.tensor(a, f32) for a in (draw(3, 4), w, gain)))
    assert not y.needs_gradient


def test_lengths_that_no_tensor_has(ctx: gpu.Context, own: ModuleType) -> None:
    total = nn.differentiable(own.total)
    check(
        ctx,
        lambda p: total(p["x"], rate=0.5),
        lambda p: 0.5 * p["x"].sum(),
        x=draw(3, 5),
    )


def test_several_outputs(ctx: gpu.Context, own: ModuleType) -> None:
    """Each has its part in the gradient; integers are tensors."""
    parts = nn.differentiable(own.parts)
    weights = np.arange(6, dtype=np.uint32)

    def ours(p: Mapping[str, nn.Variable]) -> nn.Variable:
        low, high, numbers = parts(p["x"], ctx.tensor(weights, u32))
        assert (numbers.numpy() == weights + 1).all()
        return nn.add(nn.mean(low), nn.scale(high, 3.0))

    check(
        ctx,
        ours,
        lambda p: np.mean(p["x"] ** 2 * weights) + 3 * np.sin(p["x"]).sum(),
        x=draw(6),
    )


def test_twice_the_same_variable(ctx: gpu.Context, own: ModuleType) -> None:
    layer = nn.differentiable(own.gated)
    gain = draw(3)
    check(
        ctx,
        lambda p: nn.mean(layer(p["x"], p["x"], ctx.tensor(gain, f32))),
        lambda p: gated(p["x"], p["x"], gain),
        x=draw(3, 4),
    )


def test_a_gradient_of_another_module(ctx: gpu.Context) -> None:
    swish = nn.differentiable(elementwise.swish, kernels.swish_gradient)
    check(
        ctx,
        lambda p: nn.mean(swish(p["x"])),
        lambda p: np.mean(p["x"] / (1 + np.exp(-p["x"]))),
        x=draw(6),
    )


APART = """
use "layers.kern";
const x: f32 = 3.0;
const gain: f32 = 2.0;
const size: f32 = 1.0;
kernel own(z: f32[n]) -> y: f32[n] { y[i] = x * gain * size * z[i]; }
kernel by_x = gradient of layer by x;
kernel by_others = gradient of layer by lambda, gain given size;
"""
LAYERS = """
struct Gains { first: f32 }
kernel layer(x: f32[n], lambda_: f32[n], lambda: f32[n], Gains: f32[n], gain: f32)
    -> y: f32[n] {
    let size = exp(sum[i] lambda[i] * lambda[i] * gain);
    y[i] = sin(lambda_[i]) * x[i] * x[i] * size + Gains[i] * lambda[i];
}
kernel held(g: Gains[n]) -> y: f32[n] { y[i] = g[i].first; }
"""


def test_a_gradient_of_another_file_that_calls_arguments_otherwise(
    ctx: gpu.Context,
) -> None:
    """Each module has names at its top that its kernels' parameters can't have."""
    files = {"apart.kern": APART, "layers.kern": LAYERS}
    first, second = draw(4), draw(3, 4)[0]

    def theirs(p: Mapping[str, Array]) -> Any:
        size = np.exp(0.5 * np.sum(p["y"] ** 2))
        return (np.sin(first) * p["x"] ** 2 * size + second * p["y"]).mean()

    with built_files(files) as (apart, layers):
        function = nn.differentiable(layers.layer, apart.by_x, apart.by_others)
        w, c = ctx.tensor(first, f32), ctx.tensor(second, f32)
        check(
            ctx,
            lambda p: nn.mean(function(p["x"], w, p["y"], Gains_=c, gain=0.5)),
            theirs,
            x=draw(4),
            y=draw(2, 4)[1],
        )


def test_several_gradients_of_a_standard_kernel(ctx: gpu.Context) -> None:
    layernorm = nn.differentiable(norm.layernorm)
    weights = draw(3, 5)

    def ours(p: Mapping[str, nn.Variable]) -> nn.Variable:
        y = layernorm(p["x"], p["gain"], p["bias"], eps=0.1)
        return nn.mean(nn.mul(y, ctx.tensor(weights, f32)))

    def theirs(p: Mapping[str, Array]) -> Any:
        d = p["x"] - p["x"].mean(1, keepdims=True)
        z = d / np.sqrt(p["x"].var(1, keepdims=True) + 0.1)
        return ((z * p["gain"] + p["bias"]) * weights).mean()

    check(ctx, ours, theirs, x=draw(3, 5), gain=draw(5), bias=draw(5) + 1)


def test_what_was_overwritten_is_refused(ctx: gpu.Context, own: ModuleType) -> None:
    trainer = Trainer(ctx, {"x": draw(4)})
    loss = nn.mean(nn.differentiable(own.softplus)(trainer.parameters["x"]))
    trainer.tensors["x"].copy_from(np.zeros(4))
    with pytest.raises(nn.GraphError, match="overwritten"):
        trainer.backward(loss)


def test_a_captured_step(ctx: gpu.Context, own: ModuleType) -> None:
    """Several outputs, whose zeros must be there at each replay."""
    parts = nn.differentiable(own.parts)
    trainer = Trainer(ctx, {"x": draw(6)})
    ones = ctx.tensor(np.ones(6, np.uint32), u32)
    with trainer.capture() as step:
        low, high, _ = parts(trainer.parameters["x"], ones)
        trainer.backward(nn.add(nn.mean(low), high))
        trainer.adamw_step(lr=0.01)
    for _ in range(3):
        x = trainer.tensors["x"].numpy().astype(np.float64)
        step.replay()
        expected = 2 * x / 6 + np.cos(x)
        np.testing.assert_allclose(
            trainer.gradients["x"].numpy(), expected, atol=TOLERANCE
        )


def test_wrong_use(ctx: gpu.Context, own: ModuleType) -> None:
    x = nn.parameter(ctx.zeros(3, f32), ctx.zeros(3, f32))
    with pytest.raises(
        nn.GraphError, match=r"no gradient of it\. Add 'kernel plain_gr"
    ):
        nn.differentiable(own.plain)
    with pytest.raises(nn.GraphError, match="is the gradient of 'total'; expected"):
        nn.differentiable(own.plain, own.total_gradient)
    with pytest.raises(nn.GraphError, match="is not derived from another kernel"):
        nn.differentiable(own.plain, own.softplus)
    with pytest.raises(
        DtypeError, match="differentiable: expected a kernel's function"
    ):
        nn.differentiable(np.tanh)
    softplus = nn.differentiable(own.softplus)
    with pytest.raises(nn.GraphError, match="no 'out'"):
        softplus(x, out=ctx.zeros(3, f32))
    with pytest.raises(DtypeError, match="no argument 'bet'; did you mean 'beta'"):
        softplus(x, bet=2.0)
    with pytest.raises(DtypeError, match="the tensor to write is given by name"):
        softplus(x, x)
    scores = nn.differentiable(softmax.softmax)
    with pytest.raises(gpu.ShapeError):
        scores(x)
    rms = nn.differentiable(norm.rmsnorm, norm.rmsnorm_gradient)
    with pytest.raises(nn.GraphError, match=r"no gradient by 'gain'.*by gain;"):
        rms(ctx.zeros((2, 3), f32), x)
    with pytest.raises(nn.GraphError, match=r"'beta' is a scalar.*'beta: f32\[\]'"):
        softplus(ctx.zeros(3, f32), beta=x)

"""Gradients by vectors and matrices, on an adapter and beside PyTorch's in float64."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

from kerngen.runtime import Context
from tests.compile import loaded
from tests.gradient.cases import VECTORS

ITEMS = """
kernel transformed_gradient = gradient of transformed by m, x, t;
kernel measured_gradient = gradient of measured by x, z;
kernel means_gradient = gradient of means by x;
"""
SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "transformed": ((5, 3, 3), (5, 3), (4, 3)),
    "measured": ((5, 3), (5, 3)),
    "means": ((4, 6, 3),),
}


@pytest.fixture(scope="module")
def module() -> Any:
    return loaded(VECTORS.read_text("utf-8") + ITEMS)


def _drawn(name: str) -> list[Any]:
    random = np.random.default_rng(4)
    return [random.uniform(0.2, 1.8, shape) for shape in SHAPES[name]]


def _seeds(name: str) -> list[Any]:
    random = np.random.default_rng(5)
    shapes = {"transformed": [(5, 3), (5, 3)], "measured": [(5, 3)]}
    return [random.normal(size=s) for s in shapes.get(name, [(4, 6, 3)])]


def _derived(module: Any, name: str) -> list[Any]:
    """Return what the reference of a gradient gives."""
    values, seeds = _drawn(name), _seeds(name)
    scalars = {"t": values.pop()} if name == "transformed" else {}
    result = getattr(module, f"{name}_gradient_reference")(*values, *seeds, **scalars)
    return [*result] if isinstance(result, tuple) else [result]


def test_gradients_by_vectors_on_an_adapter(ctx: Context, module: Any) -> None:
    values = [value.astype(np.float32) for value in (*_drawn("transformed"),)]
    seeds = [seed.astype(np.float32) for seed in _seeds("transformed")]
    types = (module.mat3x3f, module.vec3f, module.vec3f, module.vec3f)
    m, x, t = values
    tensors = [
        ctx.vector(value, type_)
        for value, type_ in zip((m, x, *seeds), types, strict=True)
    ]
    found = module.transformed_gradient(*tensors, t=t)
    for got, wanted in zip(found, _derived(module, "transformed"), strict=True):
        np.testing.assert_allclose(got.numpy(), wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.torch
@pytest.mark.parametrize("name", SHAPES)
def test_gradients_by_vectors_are_those_of_torch(module: Any, name: str) -> None:
    torch: Any = import_module("torch")

    def transformed(m: Any, x: Any, t: Any) -> list[Any]:
        """Matrices are arrays of their columns."""
        whole = torch.cat([x, torch.ones_like(x[:, :1])], 1)
        product = torch.einsum("ncr,nc->nr", m, x) + whole @ t
        return [product, torch.einsum("nr,ncr->nc", x, m)]

    def measured(x: Any, z: Any) -> list[Any]:
        length = torch.linalg.vector_norm
        unit = torch.nn.functional.normalize(z - 3.0 * x, dim=1)
        whole = torch.linalg.cross(x, z) * length(x, dim=1, keepdim=True)
        return [whole + unit * length(x - z, dim=1, keepdim=True)]

    def means(x: Any) -> list[Any]:
        deviation = x - x.mean(1, keepdim=True)
        variance = (deviation * deviation).mean(1, keepdim=True)
        return [deviation / torch.sqrt(variance + 0.01)]

    functions: dict[str, Any] = {
        "transformed": transformed,
        "measured": measured,
        "means": means,
    }
    inputs = [torch.tensor(v, requires_grad=True) for v in _drawn(name)]
    results = functions[name](*inputs)
    torch.autograd.backward(results, [torch.tensor(s) for s in _seeds(name)])
    for got, each in zip(_derived(module, name), inputs, strict=True):
        np.testing.assert_allclose(got, each.grad.numpy(), rtol=1e-10, atol=1e-10)


def test_slope_of_a_length_of_zero() -> None:
    """It is 0, the mean of both sides, as that of `abs` is; as PyTorch's."""
    made = loaded("""
        kernel f(x: vec3f[n], z: vec3f[n]) -> y: f32[n] {
            y[i] = length(x[i]) + distance(x[i], z[i]);
        }
        kernel g = gradient of f by x, z;
        """)
    x = np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 4.0]])
    dx, dz = made.g_reference(x, x, np.ones(2))
    np.testing.assert_allclose(dx, [[0.0, 0.0, 0.0], [0.6, 0.0, 0.8]])
    np.testing.assert_array_equal(dz, np.zeros((2, 3)))

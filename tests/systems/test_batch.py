"""What the operations of a batch compute, and how a batch is used."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

import kerngen.runtime as gpu
from kerngen.batch import Batch, BatchBuffer
from kerngen.runtime import Context, f32
from tests.numeric.oracles import gelu, swish
from tests.numeric.oracles_layers import softmax

Array: TypeAlias = NDArray[np.float64]


def normals(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


UNARY: Mapping[
    str, tuple[Callable[[Batch, BatchBuffer], BatchBuffer], Callable[[Array], Any]]
] = {
    "relu": (Batch.relu, lambda x: np.maximum(x, 0)),
    "leaky_relu": (Batch.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x)),
    "a slope": (lambda b, x: b.leaky_relu(x, 0.5), lambda x: np.where(x > 0, x, x / 2)),
    "scale": (lambda b, x: b.scale(x, -3.0), lambda x: -3 * x),
    "sigmoid": (Batch.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "tanh": (Batch.tanh, np.tanh),
    "swish": (Batch.swish, swish),
    "gelu": (Batch.gelu, gelu),
    "softmax": (Batch.softmax, softmax),
}

BINARY: Mapping[
    str,
    tuple[
        Callable[[Batch, BatchBuffer, BatchBuffer], BatchBuffer],
        Callable[[Array, Array], Any],
    ],
] = {
    "add": (Batch.add, np.add),
    "sub": (Batch.sub, np.subtract),
    "mul": (Batch.mul, np.multiply),
    "dot": (Batch.dot, np.vdot),
}

SHAPES = [(7,), (8,), (1,), (3, 5), (2, 3, 4), (0,), (4, 0), (0, 4)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_buffer(
    ctx: Context, name: str, shape: tuple[int, ...]
) -> None:
    queue, expected = UNARY[name]
    if name == "softmax" and shape[-1] == 0:
        expected = np.copy  # of no elements, where NumPy's max refuses
    array = 3 * normals(*shape)
    batch = Batch(ctx)
    y = queue(batch, batch.upload(array))
    batch.execute()
    result = batch.read(y)
    assert result.dtype == np.float32
    assert result.shape == y.shape == shape
    np.testing.assert_allclose(
        result, expected(array.astype(np.float64)), rtol=2e-6, atol=1e-6
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_buffers(
    ctx: Context, name: str, shape: tuple[int, ...]
) -> None:
    queue, expected = BINARY[name]
    a, b = normals(*shape, seed=1), normals(*shape, seed=2)
    batch = Batch(ctx)
    c = queue(batch, batch.upload(a), batch.upload(b))
    batch.execute()
    exact = np.asarray(expected(a.astype(np.float64), b.astype(np.float64)))
    result = batch.read(c)
    assert result.dtype == np.float32
    assert result.shape == c.shape == exact.shape
    np.testing.assert_allclose(result, exact, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize(
    "mkn", [(1, 64, 64), (1, 7, 5), (2, 7, 5), (128, 16, 64), (3, 0, 4), (0, 3, 4)]
)
def test_products_of_matrices(ctx: Context, mkn: tuple[int, int, int]) -> None:
    m, k, n = mkn
    a, b = normals(m, k, seed=1), normals(k, n, seed=2)
    batch = Batch(ctx)
    product = batch.matmul(batch.upload(a), batch.upload(b))
    flat = batch.matmul(
        batch.upload(a.reshape(-1)), batch.upload(b.reshape(-1)), m=m, k=k, n=n
    )
    batch.execute()
    assert (product.shape, flat.shape) == ((m, n), (m * n,))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(batch.read(product), exact, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(
        batch.read(flat), batch.read(product).reshape(-1), strict=True
    )


def test_a_chain_in_flat_buffers_as_the_reference_system_has_it(ctx: Context) -> None:
    x, w = normals(2 * 3), normals(3 * 3, seed=1)
    batch = Batch(ctx)
    old = batch.upload(x)
    product = batch.matmul(old, batch.upload(w), 2, 3, 3)
    new = batch.add(old, batch.relu(product))
    batch.execute()
    exact = x + np.maximum((x.reshape(2, 3) @ w.reshape(3, 3)).reshape(-1), 0)
    np.testing.assert_allclose(batch.read(new), exact, rtol=1e-5, atol=1e-6)


def test_an_upload_is_what_the_array_was_at_the_call(ctx: Context) -> None:
    array = np.ones(4, np.float32)
    batch = Batch(ctx)
    x = batch.upload(array)
    array[:] = 7
    batch.execute()
    array[:] = 8
    np.testing.assert_array_equal(batch.read(x), np.ones(4))


def test_other_numbers_are_converted(ctx: Context) -> None:
    batch = Batch(ctx)
    arrays: list[ArrayLike] = [
        [1.5, 2.5],
        np.arange(3),
        np.float64(0.1),
        np.ones(2, np.float16),
        True,
    ]
    handles = [batch.upload(array) for array in arrays]
    batch.execute()
    for array, handle in zip(arrays, handles, strict=True):
        expected = np.asarray(array, np.float32)
        np.testing.assert_array_equal(batch.read(handle), expected, strict=True)


def test_a_batch_goes_on_after_it_is_executed(ctx: Context) -> None:
    batch = Batch(ctx)
    x = batch.upload([1.0, -2.0])
    y = batch.relu(x)
    batch.execute()
    z = batch.add(y, batch.upload([10.0, 20.0]))
    assert batch.num_operations == 1
    batch.execute()
    np.testing.assert_array_equal(batch.read(x), [1, -2])
    np.testing.assert_array_equal(batch.read(z), [11, 20])


def test_results_are_read_without_blocking(ctx: Context) -> None:
    batch = Batch(ctx)
    handles = [batch.scale(batch.upload(np.arange(5)), n) for n in range(3)]
    batch.execute()

    async def read() -> list[NDArray[np.float32]]:
        return await asyncio.gather(*map(batch.read_async, handles))

    for n, array in enumerate(asyncio.run(read())):
        np.testing.assert_array_equal(array, n * np.arange(5, dtype=np.float32))


def test_operations_and_buffers_are_counted(ctx: Context) -> None:
    batch = Batch(ctx)
    assert (batch.num_operations, batch.num_buffers) == (0, 0)
    x = batch.upload(np.ones(3))
    y = batch.mul(batch.swish(x), batch.import_buffer(ctx.zeros(3, f32)))
    assert (batch.num_operations, batch.num_buffers) == (2, 4)
    assert repr(batch) == f"Batch({ctx!r}: 2 operations queued, 4 buffers)"
    batch.execute()
    assert (batch.num_operations, batch.num_buffers) == (0, 2)
    del x
    assert (y.shape, batch.num_buffers) == ((3,), 1)
    assert repr(y) == "BatchBuffer(shape=(3,))"


def test_swish_and_the_product_that_reads_it_are_one_dispatch(ctx: Context) -> None:
    gate, up = normals(9), normals(9, seed=1)

    def dispatches(*, between: bool) -> int:
        batch = Batch(ctx)
        x, y = batch.upload(gate), batch.upload(up)
        active = batch.swish(x)
        first = batch.relu(active) if between else batch.relu(y)
        product = batch.mul(first, active)
        before = ctx.counters.snapshot()
        batch.execute()
        exact = gate / (1 + np.exp(-gate.astype(np.float64)))
        np.testing.assert_allclose(batch.read(active), exact, rtol=1e-6)
        other = np.maximum(exact if between else up, 0)
        np.testing.assert_allclose(batch.read(product), exact * other, rtol=1e-6)
        return (ctx.counters - before).dispatches

    assert dispatches(between=False) == 2
    assert dispatches(between=True) == 3


def test_products_that_must_not_be_joined_to_a_swish(ctx: Context) -> None:
    x = normals(8)
    batch = Batch(ctx)
    s, t = batch.swish(batch.upload(x)), batch.swish(batch.upload(-x))
    square, both, again = batch.mul(s, s), batch.mul(s, t), batch.mul(t, s)
    batch.execute()
    p, q = x / (1 + np.exp(-x)), -x / (1 + np.exp(x))
    for handle, exact in ((square, p * p), (both, p * q), (again, p * q)):
        np.testing.assert_allclose(batch.read(handle), exact, rtol=1e-6)


def test_a_batch_on_numpy_alone() -> None:
    with gpu.open(adapter="reference") as ctx:
        batch = Batch(ctx)
        x = batch.upload(normals(2, 8))
        y = batch.softmax(batch.mul(batch.swish(x), x))
        batch.execute()
        np.testing.assert_allclose(batch.read(y).sum(-1), [1, 1], rtol=1e-6)

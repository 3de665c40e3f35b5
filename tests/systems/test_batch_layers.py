"""The feed-forward blocks of a Qwen3-4B: few shaders, one submission, little memory.

All layers share one set of weights, 300 MB at the real sizes.  The smaller ones are
multiples of what schedules ask about, as the real ones are: of 64 columns and 16 terms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias, final

import numpy as np
import pytest
from numpy.typing import NDArray

from kerngen.batch import Batch, BatchBuffer
from kerngen.runtime import Context, Counters, Matrix, f32
from kerngen_kernels import elementwise, matmul
from tests.conftest import open_software_context
from tests.numeric.oracles import swish

Array: TypeAlias = NDArray[Any]

LAYERS = 36
MOST_SHADERS = 4
REAL = (2560, 9728)
SMALL = (256, 512)


@pytest.fixture
def fresh() -> Iterator[Context]:
    """Return a context that has compiled nothing yet."""
    with open_software_context() as ctx:
        yield ctx


@final
@dataclass(frozen=True)
class Block:
    """The weights of a block, in NumPy and on the device."""

    arrays: tuple[Array, Array, Array]
    tensors: tuple[Matrix[f32], Matrix[f32], Matrix[f32]]

    @classmethod
    def draw(cls, ctx: Context, sizes: tuple[int, int]) -> Block:
        """Draw random weights."""
        hidden, inner = sizes
        gate, up, down = (
            normals(rows, columns) / np.float32(np.sqrt(rows))
            for rows, columns in ((hidden, inner), (hidden, inner), (inner, hidden))
        )
        tensors = ctx.matrix(gate, f32), ctx.matrix(up, f32), ctx.matrix(down, f32)
        return cls((gate, up, down), tensors)

    def queue(self, batch: Batch, x: BatchBuffer, layers: int) -> list[BatchBuffer]:
        """Queue a chain of layers; return its input and the first few results."""
        gate, up, down = (batch.import_buffer(tensor) for tensor in self.tensors)
        held = [x]
        for _ in range(layers):
            gated = batch.mul(batch.swish(batch.matmul(x, gate)), batch.matmul(x, up))
            x = batch.matmul(gated, down)
            if len(held) < 3:
                held.append(x)
        return held

    def exact(self, x: Array) -> Array:
        """Compute a layer in float64."""
        gate, up, down = (array.astype(np.float64) for array in self.arrays)
        x = x.astype(np.float64)
        result: Array = (swish(x @ gate) * (x @ up)) @ down
        return result

    def check(self, batch: Batch, held: list[BatchBuffer]) -> None:
        """Hold each result to what the layer makes of the one before."""
        results = [batch.read(handle) for handle in held]
        for x, y in pairwise(results):
            exact = self.exact(x)
            np.testing.assert_allclose(y, exact, rtol=0, atol=1e-5 * abs(exact).max())


def normals(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def run(ctx: Context, sizes: tuple[int, int], rows: int, layers: int) -> Counters:
    """Run a chain of layers, check the first ones, and return what it took."""
    block = Block.draw(ctx, sizes)
    batch = Batch(ctx)
    held = block.queue(batch, batch.upload(normals(rows, sizes[0])), layers)
    assert batch.num_operations == 5 * layers
    before = ctx.counters.snapshot()
    batch.execute()
    took = ctx.counters - before
    block.check(batch, held)
    return took


@pytest.mark.parametrize("rows", [1, 2, pytest.param(128, marks=pytest.mark.nightly)])
def test_all_layers_compile_four_shaders_at_most_and_submit_once(
    fresh: Context, rows: int
) -> None:
    took = run(fresh, SMALL, rows, LAYERS)
    assert took.pipelines_created == fresh.caches["pipelines"].misses <= MOST_SHADERS
    assert (took.submits, took.encoders, took.passes) == (1, 1, 1)
    again = run(fresh, SMALL, rows, 2)
    assert (again.pipelines_created, again.submits) == (0, 1)


def test_the_real_sizes_need_four_shaders_at_most_at_any_number_of_rows(
    ctx: Context,
) -> None:
    hidden, inner = REAL
    for rows in [*range(1, 70), 127, 128, 129, 256, 1000, 1024]:
        found = [
            *ctx.choices(matmul.matmul_nn, m=rows, k=hidden, n=inner),
            *ctx.choices(elementwise.swish_mul, n=rows * inner),
            *ctx.choices(matmul.matmul_nn, m=rows, k=inner, n=hidden),
        ]
        shaders = {shader for choice in found for shader in choice.shaders}
        assert 2 <= len(shaders) <= MOST_SHADERS, f"{rows} rows: {sorted(shaders)}"


def test_all_layers_need_the_memory_of_one(fresh: Context) -> None:
    def buffers(layers: int) -> int:
        fresh.trim()
        return run(fresh, SMALL, 2, layers).buffers_created

    buffers(1)  # makes room for uniform structs, which stays
    assert buffers(LAYERS) == buffers(4)


@pytest.mark.nightly
def test_one_layer_of_the_real_sizes(fresh: Context) -> None:
    took = run(fresh, REAL, 1, 1)
    assert took.pipelines_created <= MOST_SHADERS
    assert took.submits == 1


@pytest.mark.nightly
@pytest.mark.parametrize(("rows", "layers"), [(1, LAYERS), (2, 2)])
def test_more_layers_of_the_real_sizes(fresh: Context, rows: int, layers: int) -> None:
    took = run(fresh, REAL, rows, layers)
    assert took.pipelines_created <= MOST_SHADERS
    assert took.submits == 1

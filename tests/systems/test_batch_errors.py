"""What a batch refuses, in which words, and what it keeps when it fails."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.batch import Batch
from kerngen.runtime import (
    Context,
    ContextError,
    DtypeError,
    LimitError,
    ShapeError,
    StateError,
    UniformRangeError,
    ValidationError,
    f32,
    u32,
)
from tests.conftest import open_software_context


def test_a_result_is_read_only_after_its_execution(ctx: Context) -> None:
    batch = Batch(ctx)
    x = batch.upload(np.ones((2, 3)))
    with pytest.raises(StateError, match=r"read: .*\(2, 3\) .*call execute\(\) first"):
        batch.read(x)
    batch.execute()
    y = batch.relu(x)
    assert batch.read(x).shape == (2, 3)
    with pytest.raises(RuntimeError, match=r"call execute\(\) first"):
        batch.read(y)


def test_a_handle_of_another_batch(ctx: Context) -> None:
    batch, other = Batch(ctx), Batch(ctx)
    x, y = batch.upload(np.ones(3)), other.upload(np.ones(3))
    other.execute()
    with pytest.raises(ContextError, match=r"add: 'b' belongs to another batch\."):
        batch.add(x, y)
    with pytest.raises(ContextError, match="read: the argument belongs to another"):
        batch.read(y)
    assert batch.num_operations == 0


def test_what_is_no_handle(ctx: Context) -> None:
    batch = Batch(ctx)
    array: Any = np.ones(3)
    with pytest.raises(
        DtypeError, match=r"relu: 'x' is a numpy.ndarray; .*batch\.upload"
    ):
        batch.relu(array)
    none: Any = None
    with pytest.raises(DtypeError, match="read: the argument is None"):
        batch.read(none)
    with pytest.raises(ContextError, match=r"Batch: expected a context.* got None"):
        Batch(none)


def wrongly(batch: Batch) -> Any:
    """Return a batch whose types nobody checks."""
    return batch


MISFITS: dict[str, tuple[Callable[[Batch, Any, Any], object], str]] = {
    "add": (
        Batch.add,
        r"add: 'a' has shape \(2, 3\) and 'b' has shape \(4,\); expected the same",
    ),
    "sub": (Batch.sub, r"sub: 'a' has shape \(2, 3\) and 'b' has shape \(4,\)"),
    "mul": (Batch.mul, r"mul: 'a' has shape \(2, 3\) and 'b' has shape \(4,\)"),
    "dot": (Batch.dot, r"dot: 'a' has shape \(2, 3\) and 'b' has shape \(4,\)"),
    "no matrix": (
        Batch.matmul,
        r"matmul: 'b' has shape \(4,\); expected a matrix\. Give m, k and n to",
    ),
    "inner": (
        lambda b, x, _: b.matmul(x, x),
        r"'a' has shape \(2, 3\) and 'b' has shape \(2, 3\); .* 3 is not 2",
    ),
    "too few": (
        lambda b, x, y: b.matmul(x, y, m=2, k=3, n=2),
        r"'b' has shape \(4,\), 4 elements; m=2, k=3, n=2 expect 6, .* \(3, 2\)",
    ),
    "too many": (
        lambda b, x, y: b.matmul(x, y, m=1, k=3, n=1),
        r"'a' has shape \(2, 3\), 6 elements; m=1, k=3, n=1 expect 3",
    ),
    "half given": (
        lambda b, x, _: wrongly(b).matmul(x, x, m=2, n=3),
        r"given together or not at all; k is missing",
    ),
    "no integer": (
        lambda b, x, _: wrongly(b).matmul(x, x, m=2.0, k=3, n=2),
        r"A shape is a tuple of integers, got \[2\.0, 3, 2\]",
    ),
    "no axis": (
        lambda b, x, _: b.softmax(b.dot(x, x)),
        r"softmax: 'x' has shape \(\); expected a last axis",
    ),
}


@pytest.mark.parametrize("name", MISFITS)
def test_shapes_that_do_not_fit(ctx: Context, name: str) -> None:
    queue, text = MISFITS[name]
    batch = Batch(ctx)
    x, y = batch.upload(np.ones((2, 3))), batch.upload(np.ones(4))
    with pytest.raises(ShapeError, match=text):
        queue(batch, x, y)


def test_scalars_are_checked_when_they_are_given(ctx: Context) -> None:
    batch = Batch(ctx)
    x = batch.upload(np.ones(3))
    word: Any = "2"
    with pytest.raises(DtypeError, match=r"scale: scalar argument 'alpha' is '2'"):
        batch.scale(x, word)
    with pytest.raises(UniformRangeError, match=r"leaky_relu: .*'slope' is 1e\+40"):
        batch.leaky_relu(x, 1e40)
    assert batch.num_operations == 0


def test_arrays_that_do_not_convert(ctx: Context) -> None:
    batch = Batch(ctx)
    with pytest.raises(DtypeError, match="complex128 does not convert to f32"):
        batch.upload(np.ones(3, np.complex128))
    with pytest.raises(DtypeError, match="beyond the range of f32"):
        batch.upload(np.full(3, 1e300))
    with pytest.raises(DtypeError, match=r"on the device already; .*import_buffer"):
        batch.upload(ctx.zeros(3, f32))
    assert batch.num_buffers == 0


def test_buffers_that_cannot_be_imported(ctx: Context) -> None:
    usage: Any = import_module("wgpu").BufferUsage
    device: Any = ctx.device
    small = device.create_buffer(size=16, usage=usage.STORAGE)
    vertices = device.create_buffer(size=64, usage=usage.VERTEX)
    batch = Batch(ctx)
    with pytest.raises(ShapeError, match=r"ends at byte 20 .*, the buffer at byte 16"):
        batch.import_buffer(small, 5)
    with pytest.raises(ShapeError, match="does not know its shape"):
        batch.import_buffer(small)
    with pytest.raises(ValidationError, match="lacks the usage STORAGE"):
        batch.import_buffer(vertices, 4)
    with pytest.raises(
        DtypeError, match=r"expected a wgpu\.GPUBuffer, got a numpy.ndarray"
    ):
        batch.import_buffer(np.ones(3), 3)
    with pytest.raises(DtypeError, match=r"the tensor has u32 elements; .* with f32"):
        batch.import_buffer(ctx.zeros(3, u32))
    with pytest.raises(ShapeError, match=r"6 elements do not fit the shape \(4,\)"):
        batch.import_buffer(ctx.zeros((2, 3), f32), 4)
    with pytest.raises(ShapeError, match=r"no negative lengths, got \(-1,\)"):
        batch.import_buffer(small, -1)
    with pytest.raises(ShapeError, match=r"a tuple of integers, got 2\.5"):
        wrongly(batch).import_buffer(ctx.zeros((2, 3), f32), 2.5)


def test_what_belongs_to_another_context(ctx: Context) -> None:
    with open_software_context() as other:
        tensor = other.zeros(3, f32)
        buffer = tensor.buffer
        batch = Batch(ctx)
        with pytest.raises(ContextError, match="import_buffer: the tensor belongs to"):
            batch.import_buffer(tensor)
        with pytest.raises(ContextError, match="the buffer belongs to another device"):
            batch.import_buffer(buffer, 3)


def test_a_closed_context() -> None:
    ctx = open_software_context()
    batch = Batch(ctx)
    x = batch.upload(np.ones(3))
    batch.execute()
    y = batch.relu(x)
    ctx.close()
    with pytest.raises(ContextError, match="The context is closed"):
        batch.execute()
    with pytest.raises(ContextError, match="The context is closed"):
        batch.read(x)
    with pytest.raises(StateError):
        batch.read(y)


def test_a_failed_execution_runs_nothing_and_loses_nothing() -> None:
    limits = {**gpu.WEBGPU_LIMITS, "max-storage-buffer-binding-size": 4096}
    with gpu.open(adapter="software", limits=limits) as ctx:
        batch = Batch(ctx)
        x = batch.upload(np.arange(1024))
        y = batch.scale(x, 2.0)
        row, column = batch.upload(np.ones((64, 1))), batch.upload(np.ones((1, 64)))
        large = batch.matmul(row, column)
        del row, column
        before = batch.num_operations, batch.num_buffers
        for _ in range(2):
            with pytest.raises(LimitError, match="matmul") as caught:
                batch.execute()
            assert caught.value.__notes__ == [
                "No operation of the batch counts as run: all 2 are still queued."
            ]
            assert (batch.num_operations, batch.num_buffers) == before
            for handle in (x, y, large):
                with pytest.raises(StateError):
                    batch.read(handle)


def test_a_failed_execution_can_be_repeated(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = Batch(ctx)
    y = batch.relu(batch.scale(batch.upload([-1.0, 2.0]), 2.0))
    lost = MemoryError("no room for now")

    def fail(*_: object) -> None:
        raise lost

    with monkeypatch.context() as patch:
        patch.setattr(ctx.backend, "launch", fail)
        with pytest.raises(MemoryError):
            batch.execute()
    batch.execute()
    np.testing.assert_array_equal(batch.read(y), [0, 4])


def test_an_execution_that_an_enclosing_batch_lost(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = ctx.device.queue
    batch = Batch(ctx)
    x = batch.import_buffer(ctx.vector([1.0], f32))
    y = batch.relu(x)

    def fail(*_: object) -> None:
        raise ValueError

    def execute() -> None:
        with ctx.batch():
            batch.execute()

    with monkeypatch.context() as patch:
        patch.setattr(queue, "submit", fail)
        with pytest.raises(ValidationError, match="relu"):
            execute()
    with pytest.raises(StateError, match=r"shape \(1,\), was never computed"):
        batch.read(y)
    with pytest.raises(StateError, match=r"scale: 'x', of shape \(1,\), was never"):
        batch.scale(y, 2.0)
    np.testing.assert_array_equal(batch.read(x), [1])

"""Making tensors from arrays, and reading them back."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import kerngen.runtime as gpu
from kerngen.runtime import (
    Context,
    DtypeError,
    Element,
    ShapeError,
    Tensor,
    f16,
    f32,
    i32,
    u32,
)
from kerngen.runtime.caches import Cache
from kerngen.runtime.device import transfer
from kerngen.runtime.device.limits import Limits
from kerngen.runtime.device.pool import Pool, size_class
from kerngen.runtime.values.elements import Leaf
from kerngen_kernels import elementwise


def test_makers_keep_rank_and_element(ctx: Context) -> None:
    tensors: tuple[Tensor[i32, Any], ...] = (
        ctx.scalar(5, i32),
        ctx.vector([5], i32),
        ctx.matrix([[5]], i32),
        ctx.tensor3([[[5]]], i32),
        ctx.tensor4([[[[5]]]], i32),
    )
    for rank, tensor in enumerate(tensors):
        assert tensor.ndim == rank
        assert tensor.element is i32
        assert tensor.item() == 5
        assert tensor.size == 1
        assert tensor.nbytes == 4
        assert repr(tensor) == f"Tensor(i32[{', '.join('1' * rank)}], software)"


def test_wrong_ranks(ctx: Context) -> None:
    wrong: Any = ctx
    with pytest.raises(ShapeError, match=r"ctx.matrix\(...\) takes an array of rank 2"):
        wrong.matrix(np.zeros(3), f32)
    with pytest.raises(ShapeError, match="rank 0"):
        wrong.scalar([1.0], f32)
    with pytest.raises(ShapeError, match="a single element"):
        ctx.zeros(3, f32).item()
    with pytest.raises(ShapeError, match="no negative"):
        ctx.zeros((3, -1), f32)
    with pytest.raises(ShapeError, match="tuple of integers"):
        wrong.zeros((3, 1.5), f32)


@pytest.mark.parametrize(
    ("array", "element", "message"),
    [
        ([1.5], i32, "An array of float64 does not convert to i32"),
        ([1 + 2j], f32, "complex128 does not convert to f32"),
        (["a"], f32, "does not convert"),
        ([2**31], i32, "2147483648, which no i32 can"),
        ([-1], u32, "-1, which no u32 can"),
        ([1e39], f32, "beyond the range of f32"),
        ([70000.0], f16, "beyond the range of f16"),
    ],
)
def test_values_are_never_lost_unsaid(
    ctx: Context, array: list[Any], element: type[Element], message: str
) -> None:
    with pytest.raises(DtypeError, match=message):
        ctx.vector(array, element)


@pytest.mark.parametrize(
    ("array", "hint"),
    [([1.5], "f32"), ([1], "i32"), ([True], "u32"), ([1 + 1j], "complex128")],
)
def test_a_tensor_without_a_stated_element(
    ctx: Context, array: list[Any], hint: str
) -> None:
    with pytest.raises(DtypeError, match=hint):
        ctx.tensor(array)


@pytest.mark.parametrize("element", [f32, f16, i32, u32])
def test_a_tensor_guesses_only_what_is_certain(
    ctx: Context, element: type[Leaf]
) -> None:
    array = np.arange(6).reshape(2, 3).astype(element.number.dtype)
    assert ctx.tensor(array).element is element
    swapped = array.astype(array.dtype.newbyteorder(">"))
    np.testing.assert_array_equal(ctx.tensor(swapped).numpy(), array)
    np.testing.assert_array_equal(ctx.tensor(array.T).numpy(), array.T)
    np.testing.assert_array_equal(ctx.tensor(array[:, ::2]).numpy(), array[:, ::2])


shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)


@given(
    array=st.sampled_from([np.float16, np.float32, np.int32, np.uint32]).flatmap(
        lambda dtype: hnp.arrays(dtype, shapes)
    )
)
def test_arrays_come_back_bit_by_bit(ctx: Context, array: Any) -> None:
    tensor = ctx.tensor(array)
    assert tensor.shape == array.shape
    assert tensor.numpy().tobytes() == array.tobytes()
    assert np.asarray(tensor).dtype == array.dtype


def test_arrays_of_several_pieces(monkeypatch: Any) -> None:
    """They are whole, and in order with what is recorded before and after."""
    monkeypatch.setattr(transfer, "PIECE", 64)
    first, then = np.arange(99, dtype=np.float32), np.ones(99, np.float32)
    with gpu.open(adapter="software") as ctx:
        x = ctx.vector(first, f32)
        y = elementwise.neg(x)
        x.copy_from(then)
        np.testing.assert_array_equal(elementwise.neg(x).numpy(), -then)
        np.testing.assert_array_equal(y.numpy(), -first)


def test_numpy_reads_tensors(ctx: Context) -> None:
    x = ctx.vector([1.0, 2.0], f32)
    assert np.mean(x) == 1.5
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="must copy"):
        np.array(x, copy=False)


def test_zeros_are_zeros_in_used_memory(ctx: Context) -> None:
    for _ in range(3):
        x = ctx.vector(np.full(99, 7.0), f32)
        del x
        np.testing.assert_array_equal(
            ctx.zeros((9, 11), f32).numpy(), np.zeros((9, 11))
        )


@given(nbytes=st.integers(1, 1 << 40))
def test_size_classes_waste_at_most_a_quarter(nbytes: int) -> None:
    capacity, wasted = size_class(nbytes), 4 if nbytes <= 8 << 20 else 64
    assert capacity >= nbytes
    assert capacity % 16 == 0
    assert capacity == 256 or capacity < nbytes * (1 + 1 / wasted) + 1
    assert size_class(capacity) == capacity


def test_a_large_free_block_serves_what_is_somewhat_smaller() -> None:
    """Prompts of many lengths must not leave a free buffer of each."""
    made: list[int] = []

    def create(nbytes: int) -> int:
        made.append(nbytes)
        return nbytes

    pool = Pool[int](
        "storage",
        numbers=count(),
        create=create,
        destroy=lambda _: None,
        limits=Limits(),
        largest=1 << 40,
    )
    for megabytes, of in ((40, 40), (39, 40), (33, 40), (31, 31), (32, 40), (31, 31)):
        block = pool.acquire(megabytes << 20)
        assert block.capacity == of << 20
        pool.release(block)
    assert made == [40 << 20, 31 << 20]
    assert pool.free_bytes == sum(made)


def test_a_cache_counts_and_forgets_the_oldest() -> None:
    cache: Cache[int, str] = Cache("words", 2)
    for key in (1, 2, 3):
        assert cache.get(key) is None
        cache.put(key, str(key))
    assert (cache.get(1), cache.get(3)) == (None, "3")
    assert (cache.hits, cache.misses, len(cache)) == (1, 4, 2)
    assert repr(cache) == "Cache(words: 2 entries, 1 hits, 4 misses)"


def test_the_contexts_caches_have_names(ctx: Context) -> None:
    x = ctx.zeros(777, f32)
    x.numpy()
    del x
    before = {name: (cache.hits, cache.misses) for name, cache in ctx.caches.items()}
    ctx.zeros(777, f32).numpy()
    after = {name: (cache.hits, cache.misses) for name, cache in ctx.caches.items()}
    changed = {
        name: (after[name][0] - hits, after[name][1] - misses)
        for name, (hits, misses) in before.items()
    }
    assert changed == {
        "plans": (0, 0),
        "pipelines": (0, 0),
        "bind groups": (0, 0),
        "storage": (1, 0),
        "uploads": (0, 0),
        "readbacks": (1, 0),
    }


def test_errors_are_pythons_own_too() -> None:
    assert issubclass(gpu.ShapeError, ValueError)
    assert issubclass(gpu.DtypeError, TypeError)
    assert issubclass(gpu.OutOfMemoryError, MemoryError)

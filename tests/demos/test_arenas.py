"""Arenas of examples/qwen3: large buffers, of which tensors are views."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples.qwen3 import load_model
from examples.qwen3.arenas import Arenas
from kerngen.runtime import Context, Tensor, f16, f32, i4, i8
from tests.demos.decoders import Sizes, make


def buffers(tensors: list[Tensor[Any, Any]]) -> list[int]:
    """The numbers of the buffers that have them."""
    return [tensor.binding[0] for tensor in tensors]


@pytest.mark.parametrize("element", [f32, f16, i8, i4])
def test_tensors_of_a_shape_share_a_buffer(ctx: Context, element: Any) -> None:
    shape = (5, 24)
    arenas = Arenas(ctx, 3, [(shape, element)])
    rng = np.random.default_rng(1)
    arrays = [rng.integers(-8, 8, shape).astype(np.int8) for _ in range(4)]
    kept = [arenas.matrix(array, element) for array in arrays]
    for array, tensor in zip(arrays, kept, strict=True):
        assert np.array_equal(tensor.numpy(), array)
        assert tensor.direct
    first, *_, beyond = buffers(kept)
    assert buffers(kept) == [first, first, first, beyond]
    assert first != beyond
    other = arenas.empty((24, 5), element)
    assert other.binding[0] not in {first, beyond}


def test_no_buffer_of_several_is_larger_than_wanted(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("examples.qwen3.arenas.LARGE", 2 * 512 * 4)
    arenas = Arenas(ctx, 5, [((16, 32), f32)])
    numbers = buffers([arenas.empty((16, 32), f32) for _ in range(5)])
    assert [numbers.count(n) for n in sorted(set(numbers))] == [2, 2, 1]
    alone = buffers([arenas.empty((32, 32), f32) for _ in range(2)])
    assert len(set(alone)) == 2


def test_tensors_are_alone_where_the_adapter_binds_less_than_all(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Context, "max_tensor_bytes", 4 * 512 * 4)
    arenas = Arenas(ctx, 5, [((16, 32), f32), ((16, 32), i8)])
    numbers = buffers([arenas.empty((16, 32), f32) for _ in range(5)])
    assert len(set(numbers)) == 5
    assert len(set(buffers([arenas.empty((16, 32), i8) for _ in range(5)]))) == 1


def test_kinds_of_a_type_share_buffers_of_like_sizes(
    ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("examples.qwen3.arenas.LARGE", 10 * 512 * 4)
    small, large = (16, 32), (32, 32)
    arenas = Arenas(ctx, 6, [(small, f32), (large, f32), (small, f16)])
    layers = [[arenas.empty(shape, f32) for shape in (small, large)] for _ in range(6)]
    numbers = buffers([tensor for layer in layers for tensor in layer])
    assert [numbers.count(n) for n in sorted(set(numbers))] == [6, 6]
    halves = buffers([arenas.empty(small, f16) for _ in range(6)])
    assert len(set(halves)) == 1
    assert not {*halves} & {*numbers}


def test_what_ends_within_a_word_is_alone(ctx: Context) -> None:
    """A kernel would write what the next one has in the last word."""
    arenas = Arenas(ctx, 2, [((3, 5), i8)])
    odd = [arenas.empty((3, 5), i8) for _ in range(2)]
    assert len(set(buffers(odd))) == 2
    assert all(tensor.direct for tensor in odd)


def test_a_tensor_may_be_empty(ctx: Context) -> None:
    arenas = Arenas(ctx, 2, [((0, 8), f32)])
    assert [arenas.empty((0, 8), f32).shape for _ in range(3)] == [(0, 8)] * 3


def test_layers_of_a_model_share_buffers(ctx: Context, tmp_path: Path) -> None:
    make(tmp_path, Sizes(layers=12, width=32, hidden=64))
    model = load_model(tmp_path, ctx=ctx, storage=f32)
    cache = model.make_cache(16)
    for name in ("qkv", "output", "gated", "down"):
        of_layers = [getattr(layer, name) for layer in model.weights.layers]
        assert len(set(buffers(of_layers))) == 1, name
    assert len(set(buffers([*cache.keys]))) == len(set(buffers([*cache.values]))) == 1

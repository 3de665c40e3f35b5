"""Arenas: where tensors lie, and that what lies there is theirs alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kerngen.runtime as gpu
from kerngen.train.arena import ALIGNMENT, Arena, Layout, Span, lay_out
from kerngen_kernels import elementwise
from tests.budget import examples

SHAPES = st.dictionaries(
    st.text("abcxyz.", min_size=1, max_size=4),
    st.lists(st.integers(1, 9), max_size=3).map(tuple),
    min_size=1,
    max_size=12,
)


def elements(layout: Layout) -> list[set[int]]:
    """The elements that each tensor takes, numbered across segments."""
    bases = np.cumsum([0, *layout.segments])
    return [
        set(range(bases[p.segment] + p.start, bases[p.segment] + p.start + p.length))
        for p in layout.places.values()
    ]


@given(SHAPES, st.integers(12, 40))
def test_tensors_lie_apart_aligned_and_within(
    shapes: dict[str, tuple[int, ...]], blocks: int
) -> None:
    most = blocks * ALIGNMENT
    layout = lay_out(shapes, most * 4)
    taken = elements(layout)
    assert [p.shape for p in layout.places.values()] == list(shapes.values())
    together: set[int] = set()
    assert sum(map(len, taken)) == len(together.union(*taken))
    assert all(p.start % ALIGNMENT == 0 for p in layout.places.values())
    assert all(0 < length <= most for length in layout.segments)
    assert all(p.stop <= layout.segments[p.segment] for p in layout.places.values())


@given(SHAPES, st.integers(12, 40), st.data())
def test_spans_hold_the_named_tensors_and_no_others(
    shapes: dict[str, tuple[int, ...]], blocks: int, data: st.DataObject
) -> None:
    layout = lay_out(shapes, blocks * ALIGNMENT * 4)
    names = data.draw(st.lists(st.sampled_from(sorted(shapes)), unique=True))
    for name, place in layout.places.items():
        inside = [
            span
            for span in layout.spans(names)
            if span.segment == place.segment
            and span.start < place.stop
            and place.start < span.stop
        ]
        assert bool(inside) == (name in names)


def test_all_tensors_are_one_span_for_each_segment() -> None:
    layout = lay_out({f"t{i}": (100,) for i in range(10)}, 3 * 128 * 4)
    assert layout.segments == (384, 384, 384, 128)
    expected = [Span(i, 0, length) for i, length in enumerate(layout.segments)]
    assert layout.spans(list(layout.places)) == expected


def test_names_that_are_wrong() -> None:
    layout = lay_out({"weight": (2,)}, 4096)
    with pytest.raises(gpu.UnknownNameError, match=r"'wieght'\. Did you mean 'weight'"):
        layout.spans(["wieght"])
    with pytest.raises(gpu.ShapeError, match="'weight' is named twice"):
        layout.spans(["weight", "weight"])


def test_tensors_that_do_not_fit() -> None:
    with pytest.raises(gpu.LimitError, match=r"'big' of shape \(65,\) takes 260 bytes"):
        lay_out({"big": (65,)}, 256)
    with pytest.raises(gpu.ShapeError, match=r"'none' has shape \(0, 3\)"):
        lay_out({"none": (0, 3)}, 256)


@settings(max_examples=examples(20))
@given(SHAPES, st.integers(12, 20))
def test_what_is_written_is_read_and_gaps_stay_zero(
    ctx: gpu.Context, shapes: dict[str, tuple[int, ...]], blocks: int
) -> None:
    arena = Arena(ctx, lay_out(shapes, blocks * ALIGNMENT * 4))
    rng = np.random.default_rng(0)
    arrays = {n: rng.normal(size=s).astype(np.float32) for n, s in shapes.items()}
    arena.write(arrays)
    for name, array in arena.read().items():
        np.testing.assert_array_equal(array, arrays[name])
        np.testing.assert_array_equal(arena.tensors[name].numpy(), arrays[name])
    total = sum(np.count_nonzero(segment.numpy()) for segment in arena.segments)
    assert total == sum(np.count_nonzero(array) for array in arrays.values())


def test_views_are_bound_where_they_lie(ctx: gpu.Context) -> None:
    arena = Arena(ctx, lay_out({"a": (3,), "b": (5,), "c": (2, 2)}, 4096))
    before = ctx.counters.snapshot()
    for tensor in arena.tensors.values():
        elementwise.neg(tensor.reshape(-1))
    assert (ctx.counters - before).copies == 0

"""Stores at a position: of structs and vectors, bounds at the call, and what is copied."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kerngen.runtime import Context, ShapeError, f32, u32, vec3f
from tests.compile import built_module

SOURCE = """
struct Ball { pos: vec3f, spin: f32[2] }

kernel drop(mut balls: Ball[n], from_: Ball[m], at: u32[]) {
    balls[at + u32(i)] = from_[i];
    balls[0].spin[k] += 1.0;
}

kernel paint(mut p: vec3f[t], s: f32[n], second: u32[]) {
    p[i + 2].y = s[i];
    p[second] = vec3f(7.0, 8.0, 9.0);
}

kernel put(mut m: f32[r, n], v: f32[n], row: i32) {
    m[row, j] = v[j];
}

kernel append(mut cache: f32[t, n], v: f32[s, n], at: i32 = 0) {
    cache[at + i, j] = v[i, j];
}
"""


@pytest.fixture(scope="module")
def module() -> Iterator[ModuleType]:
    with built_module(SOURCE) as module:
        yield module


def test_vectors_and_their_components(ctx: Context, module: ModuleType) -> None:
    p, s = np.ones((5, 3), np.float32), np.array([2, 3, 4], np.float32)
    outside = p.copy()
    outside[2:, 1] = s
    inside = outside.copy()
    inside[3] = 7, 8, 9
    for second, meant in ((3, inside), (5, outside)):
        given = ctx.tensor(p, vec3f)
        module.paint(
            given, ctx.vector(s, f32), ctx.tensor(np.array(second, np.uint32), u32)
        )
        np.testing.assert_array_equal(given.numpy(), meant)
        referred = p.copy()
        module.paint_reference(referred, s, np.array(second, np.uint32))
        np.testing.assert_array_equal(referred, meant)


def test_structs_are_copied_to_a_position(ctx: Context, module: ModuleType) -> None:
    balls: NDArray[Any] = np.zeros(5, module.Ball.DTYPE)
    others: NDArray[Any] = np.zeros(2, module.Ball.DTYPE)
    others["pos"] = [[1, 2, 3], [4, 5, 6]]
    others["spin"] = [[1, 2], [3, 4]]
    given = ctx.tensor(balls, module.Ball)
    at = np.array(4, np.uint32)
    module.drop(given, ctx.tensor(others, module.Ball), ctx.tensor(at, u32))
    expected = balls.copy()
    expected[4] = others[0]
    expected["spin"][0] += 1
    module.drop_reference(balls, others, at)
    for found in (given.numpy(), balls):
        for name in ("pos", "spin"):
            np.testing.assert_array_equal(found[name], expected[name])


@pytest.mark.parametrize(("row", "name"), [(-1, "-1 to -1"), (4, "4 to 4")])
def test_a_row_outside_is_refused(
    ctx: Context, module: ModuleType, row: int, name: str
) -> None:
    m, v = np.ones((4, 3), np.float32), np.zeros(3, np.float32)
    message = f"the subscript 'row' of 'm' goes from {name}, but axis 0 has length 4"
    given = ctx.matrix(m, f32)
    with pytest.raises(ShapeError, match=message):
        module.put(given, ctx.vector(v, f32), row=row)
    with pytest.raises(ShapeError, match=message):
        module.put_reference(m, v, row=row)
    np.testing.assert_array_equal(given.numpy(), 1)


def test_rows_past_the_end_are_refused_and_none_are_not(
    ctx: Context, module: ModuleType
) -> None:
    cache = ctx.matrix(np.zeros((4, 3), np.float32), f32)
    with pytest.raises(ShapeError, match=r"'at \+ i' of 'cache' goes from 2 to 4"):
        module.append(cache, ctx.matrix(np.ones((3, 3), np.float32), f32), at=2)
    module.append(cache, ctx.matrix(np.ones((0, 3), np.float32), f32), at=9)
    np.testing.assert_array_equal(cache.numpy(), 0)

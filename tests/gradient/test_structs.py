"""Gradients by members of structs, against differences.

The kernels are of second degree in each number: with any step, differences are exact but
for the rounding of a struct's f32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from kerngen.runtime import Context
from tests.compile import built_module, loaded

SOURCE: Final = (Path(__file__).parent / "structs.kern").read_text("utf-8")
ITEMS: Final = """
kernel energy_gradient = gradient of energy by b, s;
kernel moved_gradient = gradient of moved by b, d;
"""
STEP: Final = 2.0**-5


@pytest.fixture(scope="module")
def module() -> Any:
    return loaded(SOURCE + ITEMS)


def _floats(records: Any) -> Iterator[Any]:
    """Yield a view of every member that is a float."""
    if records.dtype.names:
        for name in records.dtype.names:
            yield from _floats(records[name])
    elif records.dtype.kind == "f":
        yield records


def _drawn(type_: Any, count: int, seed: int) -> Any:
    """Return records of multiples of 1/16, whose products are exact."""
    random = np.random.default_rng(seed)
    records: Any = np.zeros(count, type_.DTYPE)
    for member in _floats(records):
        member[...] = random.integers(4, 30, member.shape) / 16
    if "id" in records.dtype.names:
        records["id"] = random.integers(0, 4, count)
    return records


def _slopes(records: Any, value: Callable[[Any], float]) -> Iterator[Any]:
    """Yield the differences of a value by each float member."""
    for place, member in enumerate(_floats(records)):
        slope = np.zeros(member.shape)
        for at in np.ndindex(member.shape):
            sides = list[float]()
            for step in (STEP, -STEP):
                moved = records.copy()
                [*_floats(moved)][place][at] += step
                sides.append(value(moved))
            slope[at] = (sides[0] - sides[1]) / (2 * STEP)
        yield slope


def _check(got: Any, records: Any, value: Callable[[Any], float]) -> None:
    for found, wanted in zip(_floats(got), _slopes(records, value), strict=True):
        # Members of f16 are rounded to that.
        tolerance = 1e-3 if found.dtype == np.float16 else 2e-5
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
    if "id" in got.dtype.names:
        assert not got["id"].any()


def test_by_structs_of_a_tensor_and_a_parameter(module: Any) -> None:
    b, s = _drawn(module.Body, 3, 1), _drawn(module.Spring, 1, 2)
    dy = np.array([1.0, -0.5, 2.0])

    def value(b: Any, s: Any) -> float:
        parameter = module.Spring.unpack(s.tobytes())
        return float((module.energy_reference(b, s=parameter) * dy).sum())

    parameter = module.Spring.unpack(s.tobytes())
    db, ds = module.energy_gradient_reference(b, dy, s=parameter)
    _check(db, b, lambda moved: value(moved, s))
    _check(np.asarray(ds).reshape(1), s, lambda moved: value(b, moved))


def test_by_structs_of_what_returns_structs(module: Any) -> None:
    b, dy = _drawn(module.Body, 3, 3), _drawn(module.Body, 3, 4)
    d = np.random.default_rng(5).integers(4, 30, (3, 3)) / 16

    def value(b: Any) -> float:
        pairs = zip(_floats(module.moved_reference(b, d)), _floats(dy), strict=True)
        return float(sum((one.astype(float) * other).sum() for one, other in pairs))

    db, dd = module.moved_gradient_reference(b, d, dy)
    _check(db, b, value)
    wanted = b["spring"]["stiffness"][:, None] * dy["pos"]
    wanted[:, 0] += 2.0 * dy["spring"]["weights"].sum(axis=1)
    np.testing.assert_allclose(dd, wanted)


def test_by_structs_on_an_adapter(ctx: Context, module: Any) -> None:
    b, s = _drawn(module.Body, 3, 1), _drawn(module.Spring, 1, 2)
    dy = np.array([1.0, -0.5, 2.0])
    parameter = module.Spring.unpack(s.tobytes())
    records = ctx.vector(b, module.Body)
    found = module.energy_gradient(records, ctx.vector(dy, module.f32), s=parameter)
    wanted = module.energy_gradient_reference(b, dy, s=parameter)
    for got, reference in zip(found, wanted, strict=True):
        pairs = zip(_floats(got.numpy()), _floats(reference), strict=True)
        for one, other in pairs:
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-6)


def test_members_that_are_reductions() -> None:
    text = """
    struct Pair { a: f32, b: f32 }
    kernel f(x: f32[n, m]) -> y: Pair[n] {
        y[i].a = max[j] x[i, j];
        y[i].b = prod[j] x[i, j];
    }
    kernel g = gradient of f by x;
    """
    x = np.array([[1.0, 3.0, 2.0], [4.0, 0.5, 4.0]])
    with built_module(text) as module:
        dy: Any = np.zeros(2, module.Pair.DTYPE)
        dy["a"], dy["b"] = [1.0, 2.0], [0.25, 0.5]
        found = module.g_reference(x, dy)
    top = np.array([[0, 1.0, 0], [0.5, 0, 0.5]])
    wanted = dy["a"][:, None] * top + dy["b"][:, None] * x.prod(1, keepdims=True) / x
    np.testing.assert_allclose(found, wanted, rtol=1e-6)

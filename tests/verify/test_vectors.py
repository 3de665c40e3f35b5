"""Functions of vectors and matrices of the oracle, against NumPy and the accuracy rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from kerngen.ir.types import Matrix, Scalar, Vector
from kerngen.verify.meaning import number
from kerngen.verify.meaning.number import BoundedArray
from kerngen.verify.meaning.vectors import (
    components,
    concatenated,
    multiplied,
    of_geometry,
    stacked,
    widened,
)

U = 2.0**-23
INF = np.inf
VEC3, VEC2 = Vector(Scalar.F32, 3), Vector(Scalar.F32, 2)
MAT23 = Matrix(2, 3)
"""Two columns of three."""

Values = Any


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def n(value: Any, error: float = 0.0) -> BoundedArray:
    values = np.asarray(value, np.float64)
    return BoundedArray(values, np.full(values.shape, error), np.abs(values))


def drawn(*shape: int, seed: int = 0) -> Values:
    values = np.random.default_rng(seed).uniform(0.5, 2.0, shape)
    return values.astype(np.float32).astype(np.float64)


A, B, W = drawn(5, 3, seed=1), drawn(5, 3, seed=2), drawn(5, seed=3)


def unit(x: Values) -> Values:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def reflect(x: Values, y: Values) -> Values:
    return x - 2 * (x * y).sum(-1)[:, None] * y


def refract(x: Values, y: Values, ratio: Values) -> Values:
    along = (x * y).sum(-1)
    rest = 1 - ratio**2 * (1 - along**2)
    factor = (ratio * along + np.sqrt(np.maximum(rest, 0)))[:, None]
    return np.where(rest[:, None] < 0, 0, ratio[:, None] * x - factor * y)


def dot(x: Values, y: Values) -> Values:
    return (x * y).sum(-1)


def length(x: Values) -> Values:
    return dot(x, x) ** 0.5


def distance(x: Values, y: Values) -> Values:
    return length(x - y)


def face_forward(x: Values, y: Values, z: Values) -> Values:
    return x * (1 - 2 * (dot(y, z) >= 0))[:, None]


def columns(matrix: Values) -> Values:
    """A matrix as NumPy has it: rows, then columns."""
    return matrix.swapaxes(-1, -2)


FUNCTIONS: dict[str, tuple[Callable[..., Values], tuple[Values, ...], float]] = {
    "dot": (dot, (A, B), 12),
    "length": (length, (A,), 30),
    "distance": (distance, (A, -B), 30),
    "normalize": (unit, (A,), 40),
    "cross": (np.cross, (A, B), 20),
    "reflect": (reflect, (A, unit(B)), 60),
    "refract": (refract, (unit(A), -unit(B), 0.4 + W / 10), 200),
    "faceForward": (face_forward, (A, B * np.sign(W - 1)[:, None], A), 0),
    "determinant": (np.linalg.det, (drawn(4, 3, 3),), 700),
    "transpose": (columns, (drawn(4, 2, 3),), 0),
}
"""Their meaning, arguments, and how many ulps of 2 a bound must not be above."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_vectors(name: str) -> None:
    meaning, arguments, ulps = FUNCTIONS[name]
    found = of_geometry(name, [n(each) for each in arguments], VEC3)
    np.testing.assert_allclose(found.value, meaning(*arguments), rtol=1e-12, atol=1e-14)
    assert (found.error <= ulps * 2 * U).all()
    assert (found.error > 0).all() == (ulps > 0)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_rough_vectors_may_give_is_in_the_bound(name: str) -> None:
    meaning, arguments, _ = FUNCTIONS[name]
    off = 2.0**-10
    found = of_geometry(name, [n(each, off) for each in arguments], VEC3)
    rng = np.random.default_rng(9)
    worst: Values = np.zeros(found.value.shape)
    for _ in range(40):
        moved = [x + off * rng.choice((-1, 1), x.shape) for x in arguments]
        worst = np.maximum(worst, np.abs(meaning(*moved) - found.value))
    known = np.isfinite(found.error)
    assert (worst <= found.error * (1 + 1e-9))[known].all()
    assert known.all() or name == "refract"
    assert (found.error <= 40 * worst + 1e-3)[known].all()


def test_a_unit_vector_may_be_a_product_with_the_reciprocal_of_the_length() -> None:
    """`x * inverseSqrt(dot(x, x))`: 2 ulps of the root, and of each product 1/2."""
    unit_, length_ = (of_geometry(f, [n(A)], VEC3) for f in ("normalize", "length"))
    quotient = number.divide(n(A), length_.map(lambda part: part[:, None]))
    room = unit_.error - quotient.error
    np.testing.assert_allclose(room, 4 * U * unit_.value, rtol=1e-3)


def test_a_determinant_may_be_off_by_its_largest_product() -> None:
    found = of_geometry("determinant", [n(100 * np.eye(3))], MAT23)
    assert found.value == 1e6
    assert found.error == pytest.approx(64 * U * 1e6)


def test_determinants_of_several_axes() -> None:
    matrices = drawn(5, 4, 2, 2)
    found = of_geometry("determinant", [n(matrices)], Matrix(2, 2))
    np.testing.assert_allclose(found.value, np.linalg.det(matrices))


def test_cross_products_of_several_axes() -> None:
    left, right = np.arange(18.0).reshape(2, 3, 3) ** 2, np.ones((2, 3, 3)) * [3, 1, 2]
    found = of_geometry(
        "cross", [number.real(left), number.real(right)], Vector(Scalar.F32, 3)
    )
    np.testing.assert_array_equal(found.value, np.cross(left, right))


def test_light_is_not_bent_beyond_the_critical_angle() -> None:
    """Where `1 - ratio^2 (1 - dot^2)` is below 0, here -0.2, the vector is 0."""
    along = np.array([[np.sqrt(1 - 1.2 / 1.44), np.sqrt(1.2 / 1.44), 0.0]])
    normal = np.array([[1.0, 0.0, 0.0]])
    found = of_geometry("refract", [n(along), n(normal), n([1.2])], VEC3)
    np.testing.assert_array_equal(found.value, 0.0)
    np.testing.assert_array_equal(found.error, 0.0)


def test_a_length_that_may_be_0_is_unknown() -> None:
    assert of_geometry("length", [n([[0.5, 0.0]], 0.25)], VEC2).error == INF
    assert of_geometry("length", [n([[1.0, 0.0]], 0.3)], VEC2).error == INF
    assert np.isfinite(of_geometry("length", [n([[1.0, 0.0]], 0.125)], VEC2).error)


def test_a_direction_that_may_be_either_is_both() -> None:
    x, y = n([[1.0, 2.0]]), n([[1.0, 0.0]])
    found = of_geometry("faceForward", [x, y, n([[0.0, 1.0]], 0.1)], VEC2)
    assert found.error.tolist() == [[2.0, 4.0]]
    total = of_geometry("refract", [n([[1.0, 0]]), n([[0.0, 1]]), n([2.0])], VEC2)
    assert total.value.tolist() == [[0, 0]]
    assert total.error.tolist() == [[0, 0]]


def test_integer_vectors_are_multiplied_exactly() -> None:
    type_ = Vector(Scalar.I32, 2)
    left = number.unsure_where([[2**30, 1], [3, 4]], [[False, False], [True, False]])
    found = of_geometry("dot", [left, number.known([[2, 5], [6, 7]])], type_)
    assert found.value.tolist() == [-(2**31) + 5, 46]
    assert found.unsure.tolist() == [False, True]
    right = of_geometry("dot", [number.known([[2, 5], [6, 7]]), left], type_)
    assert right.unsure.tolist() == [False, True]


def test_products_with_matrices() -> None:
    left, right = drawn(4, 2, 3), drawn(4, 4, 2, seed=1)
    tall, wide = drawn(4, 3, seed=2), drawn(4, 2, seed=3)
    by = Matrix(4, 2)
    found = multiplied(n(left), n(right), MAT23, by)
    expected = columns(columns(left) @ columns(right))
    np.testing.assert_allclose(found.value, expected, rtol=1e-12)
    assert (found.error <= 6 * 8 * U).all()
    assert (found.error > 0).all()
    found = multiplied(n(left), n(wide), MAT23, VEC2)
    expected = (columns(left) @ wide[..., None])[..., 0]
    np.testing.assert_allclose(found.value, expected, rtol=1e-12)
    found = multiplied(n(tall), n(left), VEC3, MAT23)
    expected = (tall[:, None] @ columns(left))[:, 0]
    np.testing.assert_allclose(found.value, expected, rtol=1e-12)


def test_parts_are_put_together() -> None:
    assert components(Scalar.F32) == ()
    assert components(VEC3) == (3,)
    assert components(MAT23) == (2, 3)
    rows = [n([1, 2], 0.5), n([3, 4], 0.25)]
    beside = stacked([rows[0], n(7.0)], -1)
    assert beside.value.tolist() == [[1, 7], [2, 7]]
    assert beside.error.tolist() == [[0.5, 0], [0.5, 0]]
    below = concatenated([n([[1, 2], [3, 4]], 0.5), n([[5.0]])])
    assert below.value.tolist() == [[1, 2, 5], [3, 4, 5]]
    assert below.error.tolist() == [[0.5, 0.5, 0]] * 2
    parts = [n(np.full(shape, 1.0)) for shape in ((2, 1, 2), (1, 3, 1), (2,))]
    assert concatenated(parts).shape == (2, 3, 5)


def test_a_scalar_meets_every_component() -> None:
    assert widened(n([1, 2]), Scalar.F32, VEC3).shape == (2, 1)
    assert widened(n([1, 2]), Scalar.F32, MAT23).shape == (2, 1, 1)
    assert widened(n([1, 2]), Scalar.F32, Scalar.F32).shape == (2,)
    assert widened(n([1, 2]), VEC2, MAT23).shape == (2,)

"""Vector and matrix functions of generated NumPy references.

The components of a vector are the last axis of its array; of a matrix, columns and rows
are the last two.  The axes before them are broadcast against each other.  Functions of
the kernel language are called as there, in words joined by `_`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = NDArray[Any]
Typed: TypeAlias = Callable[[ArrayLike], Array]
"""A function that makes an array of a type: `ref.i32`, `ref.u32` or a `ref.Real`."""

# Vectors and matrices from their parts


def vector(typed: Typed, *components: ArrayLike) -> Array:
    """Return the vectors that have these scalars as components."""
    return np.stack(np.broadcast_arrays(*map(typed, components)), axis=-1)


def splat(typed: Typed, width: int, component: ArrayLike) -> Array:
    """Return the vectors that have one scalar in all components."""
    return np.repeat(typed(component)[..., None], width, axis=-1)


def join(*vectors: Array) -> Array:
    """Return vectors made of the components of several vectors, in their order."""
    around = np.broadcast_shapes(*(v.shape[:-1] for v in vectors))
    parts = [np.broadcast_to(v, (*around, v.shape[-1])) for v in vectors]
    return np.concatenate(parts, axis=-1)


def matrix(*columns: Array) -> Array:
    """Return the matrices that have these vectors as columns."""
    return np.stack(np.broadcast_arrays(*columns), axis=-2)


# Parts of vectors and matrices


def component(v: Array, place: ArrayLike) -> Array:
    """Return the component of each vector at a place, clamped to them."""
    return _at(v, place, 1)[..., 0]


def column(m: Array, place: ArrayLike) -> Array:
    """Return the column of each matrix at a place, clamped to them."""
    return _at(m, place, 2)[..., 0, :]


def _at(x: Array, place: ArrayLike, rank: int) -> Array:
    """Return the elements at positions along the first of the last `rank` axes."""
    around, inner = x.shape[:-rank], x.shape[-rank:]
    places = np.clip(np.asarray(place, np.int64), 0, inner[0] - 1)
    around = np.broadcast_shapes(around, places.shape)
    places = np.broadcast_to(places, around).reshape(*around, *(1,) * rank)
    return np.take_along_axis(np.broadcast_to(x, (*around, *inner)), places, -rank)


# Products


# An array of a matrix has columns before rows, so that it is the transpose of what NumPy's
# `matmul` takes for the matrix: m v is v^T m^T there.


def matrix_by_vector(m: Array, v: Array) -> Array:
    """Return the columns times the components, summed."""
    return np.asarray(np.matmul(v[..., None, :], m)[..., 0, :])


def vector_by_matrix(v: Array, m: Array) -> Array:
    """Return the dot product of the vector and each column."""
    return np.asarray(np.matmul(m, v[..., None])[..., 0])


def matrix_by_matrix(a: Array, b: Array) -> Array:
    """Return the matrix whose columns are `a` times those of `b`."""
    return np.asarray(np.matmul(b, a))


# Functions of the kernel language


def dot(a: Array, b: Array) -> Array:
    """Return the sum of the products of the components; integers wrap."""
    products = a * b
    return np.asarray(np.sum(products, axis=-1, dtype=products.dtype))


def length(v: Array) -> Array:
    """Return the Euclidean length."""
    return np.asarray(np.sqrt(dot(v, v)))


def distance(a: Array, b: Array) -> Array:
    """Return the length of the difference."""
    return length(a - b)


def normalize(v: Array) -> Array:
    """Return the vector divided by its length."""
    return np.asarray(v / length(v)[..., None])


def cross(a: Array, b: Array) -> Array:
    """Return the cross product."""
    return np.cross(a, b)


def reflect(v: Array, normal: Array) -> Array:
    """Return a vector mirrored by the plane that has this normal."""
    return np.asarray(v - 2 * dot(normal, v)[..., None] * normal)


def face_forward(v: Array, incident: Array, normal: Array) -> Array:
    """Return a vector, negated unless the other two point apart."""
    return np.asarray(np.where((dot(incident, normal) < 0)[..., None], v, -v))


def refract(v: Array, normal: Array, ratio: Array) -> Array:
    """Return a vector refracted at a surface; zeros where it is reflected in whole."""
    along = dot(normal, v)
    rest = 1 - ratio * ratio * (1 - along * along)
    factor = ratio * along + np.sqrt(np.maximum(rest, 0))
    refracted = ratio[..., None] * v - factor[..., None] * normal
    return np.asarray(np.where(rest[..., None] < 0, 0, refracted))


def transpose(m: Array) -> Array:
    """Return a new array that has the rows as columns."""
    return np.swapaxes(m, -1, -2).copy()


def determinant(m: Array) -> Array:
    """Return the determinant."""
    return np.asarray(np.linalg.det(m))

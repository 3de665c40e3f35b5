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
    """Return an array of vectors from arrays of their components, one array for each."""
    return np.stack(np.broadcast_arrays(*map(typed, components)), axis=-1)


def splat(typed: Typed, width: int, component: ArrayLike) -> Array:
    """Return an array of vectors of `width` equal components, from an array of scalars."""
    return np.repeat(typed(component)[..., None], width, axis=-1)


def join(*vectors: Array) -> Array:
    """Return longer vectors: the components of `vectors` one behind the other."""
    around = np.broadcast_shapes(*(v.shape[:-1] for v in vectors))
    parts = [np.broadcast_to(v, (*around, v.shape[-1])) for v in vectors]
    return np.concatenate(parts, axis=-1)


def matrix(*columns: Array) -> Array:
    """Return an array of matrices from arrays of their columns, one array for each."""
    return np.stack(np.broadcast_arrays(*columns), axis=-2)


# Parts of vectors and matrices


def component(v: Array, place: ArrayLike) -> Array:
    """Return component number `place` of each vector; a place outside is clamped."""
    return _at(v, place, 1)[..., 0]


def column(m: Array, place: ArrayLike) -> Array:
    """Return column number `place` of each matrix; a place outside is clamped."""
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
    """Return the product of each matrix and vector: the sum of columns times components."""
    return np.asarray(np.matmul(v[..., None, :], m)[..., 0, :])


def vector_by_matrix(v: Array, m: Array) -> Array:
    """Return the product of each vector and matrix: the dot product with each column."""
    return np.asarray(np.matmul(m, v[..., None])[..., 0])


def matrix_by_matrix(a: Array, b: Array) -> Array:
    """Return the product of matrices: its columns are `a` times the columns of `b`."""
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
    """Return `v`, negated unless `incident` and `normal` point to opposite sides."""
    return np.asarray(np.where((dot(incident, normal) < 0)[..., None], v, -v))


def refract(v: Array, normal: Array, ratio: Array) -> Array:
    """Return `v` refracted at a surface; zeros where it is totally reflected."""
    along = dot(normal, v)
    rest = 1 - ratio * ratio * (1 - along * along)
    factor = ratio * along + np.sqrt(np.maximum(rest, 0))
    refracted = ratio[..., None] * v - factor[..., None] * normal
    return np.asarray(np.where(rest[..., None] < 0, 0, refracted))


def transpose(m: Array) -> Array:
    """Return the transposed matrices, as a new array."""
    return np.swapaxes(m, -1, -2).copy()


def determinant(m: Array) -> Array:
    """Return the determinant."""
    return np.asarray(np.linalg.det(m))

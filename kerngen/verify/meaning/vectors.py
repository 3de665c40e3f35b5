"""Vectors and matrices of the oracle's numbers: components are the last axes.

Where WGSL defines an accuracy as 'inherited from' a formula, that formula is computed
here: `length(v)` as `sqrt(dot(v, v))`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from kerngen.ir.types import Matrix, Scalar, ValueType, Vector, scalar_of
from kerngen.verify.meaning import number
from kerngen.verify.meaning.functions import of_floats, wrap
from kerngen.verify.meaning.number import BoundedArray, joined

_NORMALIZE_ULPS: Final = 4.0
"""Ulps by which `x * inverseSqrt(dot(x, x))` may be off beyond `x / length(x)`."""
_DETERMINANT_ULPS: Final = 64.0
"""WGSL has no bound; this is one for elimination with the largest pivots."""


def components(type_: ValueType) -> tuple[int, ...]:
    """Return the shape of a value's components."""
    match type_:
        case Vector(width=width):
            return (width,)
        case Matrix(columns=columns, rows=rows):
            return (columns, rows)
        case _:
            return ()


def widened(operand: BoundedArray, type_: ValueType, to: ValueType) -> BoundedArray:
    """Return a scalar with axes added, to broadcast against the components of type `to`."""
    missing = len(components(to)) - len(components(type_))
    if not missing or components(type_):
        return operand
    return operand.map(lambda part: part.reshape((*part.shape, *(1,) * missing)))


def stacked(parts: Sequence[BoundedArray], axis: int) -> BoundedArray:
    """Return numbers stacked along a new axis."""
    return joined(parts, lambda each: np.stack(np.broadcast_arrays(*each), axis))


def concatenated(parts: Sequence[BoundedArray]) -> BoundedArray:
    """Return the components of several vectors, one after the other."""
    around = np.broadcast_shapes(*(part.value.shape[:-1] for part in parts))
    spread = [
        part.map(lambda x: np.broadcast_to(x, (*around, x.shape[-1]))) for part in parts
    ]
    return joined(spread, lambda each: np.concatenate(each, -1))


def summed(terms: BoundedArray, axis: int) -> BoundedArray:
    """Return the sum of components along an axis."""
    return number.total(
        terms.map(lambda part: np.moveaxis(part, axis, 0)), number.Join()
    )


def multiplied(
    left: BoundedArray, right: BoundedArray, a: ValueType, b: ValueType
) -> BoundedArray:
    """Return a product of which one side is a matrix."""
    if isinstance(a, Matrix) and isinstance(b, Matrix):
        pairs = number.multiply(left[..., None, :, :], right[..., :, :, None])
        return summed(pairs, -2)
    if isinstance(a, Matrix):
        return summed(number.multiply(left, right[..., :, None]), -2)
    return summed(number.multiply(left[..., None, :], right), -1)


def of_geometry(
    name: str, given: Sequence[BoundedArray], first: ValueType
) -> BoundedArray:
    """Apply a built-in of whole vectors or matrices."""
    scalar = scalar_of(first)
    if name == "dot" and scalar is not Scalar.F32:
        left, right = given
        value = wrap((left.value * right.value).sum(-1), scalar)
        return number.unsure_where(value, (left.error + right.error).sum(-1) > 0)
    return _GEOMETRY[name](*given)


def _dot(left: BoundedArray, right: BoundedArray) -> BoundedArray:
    return summed(number.multiply(left, right), -1)


def _length(vector: BoundedArray) -> BoundedArray:
    square = _dot(vector, vector)
    vague = square.error > square.value / 2
    error = np.where(vague, np.inf, square.error)
    return of_floats("sqrt", [BoundedArray(square.value, error, square.size)])


def _distance(left: BoundedArray, right: BoundedArray) -> BoundedArray:
    return _length(number.subtract(left, right))


def _transpose(matrix: BoundedArray) -> BoundedArray:
    return matrix.map(lambda part: np.swapaxes(part, -1, -2))


def _normalize(vector: BoundedArray) -> BoundedArray:
    quotient = number.divide(vector, _length(vector)[..., None])
    return number.inexact(quotient.value, quotient.error, _NORMALIZE_ULPS)


def _cross(left: BoundedArray, right: BoundedArray) -> BoundedArray:
    def entry(i: int, j: int) -> BoundedArray:
        return number.subtract(
            number.multiply(left[..., i], right[..., j]),
            number.multiply(left[..., j], right[..., i]),
        )

    return stacked([entry(1, 2), entry(2, 0), entry(0, 1)], -1)


def _reflect(vector: BoundedArray, normal: BoundedArray) -> BoundedArray:
    twice = number.multiply(number.real(2.0), _dot(normal, vector))
    return number.subtract(vector, number.multiply(twice[..., None], normal))


def _face_forward(
    vector: BoundedArray, incident: BoundedArray, normal: BoundedArray
) -> BoundedArray:
    apart = number.compare(_dot(incident, normal), number.real(0.0), np.less)
    return number.choose(apart[..., None], vector, number.negate(vector))


def _refract(
    vector: BoundedArray, normal: BoundedArray, ratio: BoundedArray
) -> BoundedArray:
    # WGSL: k = 1 - ratio^2 (1 - dot(normal, vector)^2); 0 if k < 0, else
    # ratio vector - (ratio dot(normal, vector) + sqrt(k)) normal.
    one = number.real(1.0)
    along = _dot(normal, vector)
    rest = number.multiply(
        number.multiply(ratio, ratio),
        number.subtract(one, number.multiply(along, along)),
    )
    rest = number.subtract(one, rest)
    factor = number.add(number.multiply(ratio, along), of_floats("sqrt", [rest]))
    bent = number.subtract(
        number.multiply(ratio[..., None], vector),
        number.multiply(factor[..., None], normal),
    )
    whole = number.compare(rest, number.real(0.0), np.less)
    return number.choose(whole[..., None], number.real(0.0), bent)


def _determinant(matrix: BoundedArray) -> BoundedArray:
    # The sum over all permutations: the sign by their inversions, times a product.
    size = matrix.value.shape[-1]
    most = np.abs(matrix.value) + matrix.error
    value, error = np.zeros(most.shape[:-2]), np.zeros(most.shape[:-2])
    for order in itertools.permutations(range(size)):
        turns = sum(a > b for a, b in itertools.combinations(order, 2))
        chosen = (..., range(size), order)
        exact, grown = matrix.value[chosen].prod(-1), most[chosen].prod(-1)
        value = value + (-1.0) ** turns * exact
        error = error + grown - np.abs(exact)
    own = _DETERMINANT_ULPS * number.ULP * most.max((-1, -2)) ** size
    return number.inexact(value, error + own, 0.0)


_GEOMETRY: Final[Mapping[str, Callable[..., BoundedArray]]] = {
    "dot": _dot,
    "length": _length,
    "distance": _distance,
    "normalize": _normalize,
    "cross": _cross,
    "reflect": _reflect,
    "faceForward": _face_forward,
    "refract": _refract,
    "transpose": _transpose,
    "determinant": _determinant,
}

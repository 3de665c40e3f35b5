"""Vectors and matrices of the interpreter: tuples, computed number by number."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from . import numbers
from .functions import Accuracy, real_function
from .memory import is_composite, is_matrix, parts_of, scalar_of, vector
from .numbers import Real, UndecidedError

Numbers: TypeAlias = tuple[Any, ...]
Apply: TypeAlias = Callable[[Any, Any], Any]
Accuracies: TypeAlias = Mapping[str, Accuracy]

LETTERS: Final = {letter: n % 4 for n, letter in enumerate("xyzwrgba")}

_NORMALIZE_ULPS = 4.0
"""What `x * inverseSqrt(dot(x, x))` may be off by beyond a division."""
_DETERMINANT_ULPS = 64.0
"""WGSL has no bound; this is one for elimination with the largest pivots."""


def component_type(type_: str, letters: str) -> str:
    """Return the type of some components."""
    scalar = scalar_of(type_)
    return scalar if len(letters) == 1 else vector(scalar, len(letters))


def swizzled(letters: str) -> Callable[[Numbers], Any]:
    """Return what takes components of a vector."""
    places = [LETTERS[letter] for letter in letters]
    if len(places) == 1:
        return lambda value: value[places[0]]
    return lambda value: tuple(value[place] for place in places)


def construct(type_: str, given: Sequence[str]) -> Callable[[Sequence[Any]], Any]:
    """Return what makes a vector or matrix of parts that have these types."""
    width = len(parts_of(type_))
    if is_matrix(type_):
        rows = len(parts_of(str(parts_of(type_)[0])))
        if not is_composite(given[0]):
            return lambda parts: tuple(zip(*[iter(parts)] * rows, strict=True))
        return tuple
    if list(given) == [scalar_of(type_)]:
        return lambda parts: (parts[0],) * width
    known = [is_composite(part) for part in given]

    def join(parts: Sequence[Any]) -> Numbers:
        pairs = zip(known, parts, strict=True)
        return tuple(x for whole, part in pairs for x in (part if whole else (part,)))

    return join


# Operators


def operation(op: str, left: str, right: str, apply: Apply) -> tuple[str, Apply]:
    """Return the type of `left op right`, and what computes it."""
    if op == "*" and is_matrix(left) and is_composite(right):
        return _after_matrix(left, right)
    if op == "*" and is_matrix(right) and is_composite(left):
        rows = len(parts_of(right))
        return vector("f32", rows), lambda v, m: tuple(_dot(v, c) for c in m)
    type_ = left if is_composite(left) else right
    return type_, _each(apply, is_composite(left), is_composite(right), type_)


def _each(apply: Apply, left: bool, right: bool, type_: str) -> Apply:
    """Return what applies an operation number by number; a scalar goes with each."""
    if is_matrix(type_):
        apply = _each(apply, left, right, str(parts_of(type_)[0]))
    if left and right:
        return lambda a, b: tuple(map(apply, a, b))
    if left:
        return lambda a, b: tuple(apply(x, b) for x in a)
    return lambda a, b: tuple(apply(a, x) for x in b)


def _after_matrix(left: str, right: str) -> tuple[str, Apply]:
    column = str(parts_of(left)[0])
    if not is_matrix(right):
        return column, _by_vector
    columns, rows = len(parts_of(right)), len(parts_of(column))
    type_ = f"mat{columns}x{rows}f"
    return type_, lambda a, b: tuple(_by_vector(a, column) for column in b)


def _by_vector(matrix: Numbers, by: Numbers) -> Numbers:
    return tuple(_dot(row, by) for row in zip(*matrix, strict=True))


def _dot(left: Numbers, right: Numbers) -> Real:
    return numbers.total(list(map(numbers.multiply, left, right)))


# Functions


def geometry_type(name: str, first: str) -> str:
    """Return the type of a function's result, by that of its first argument."""
    match name:
        case "dot":
            return scalar_of(first)
        case "transpose":
            rows = len(parts_of(str(parts_of(first)[0])))
            return f"mat{rows}x{len(parts_of(first))}f"
        case "length" | "distance" | "determinant":
            return "f32"
        case _:
            return first


def geometry(
    name: str, first: str, accuracies: Accuracies
) -> Callable[[Sequence[Any]], Any]:
    """Return what computes a function from its arguments."""
    whole = scalar_of(first)
    if name == "dot" and whole != "f32":
        return lambda given: _whole_dot(given[0], given[1], whole)
    compute = _GEOMETRY[name]
    return lambda given: compute(given, accuracies)


def _whole_dot(left: Numbers, right: Numbers, type_: str) -> int:
    return numbers.wrap(sum(a * b for a, b in zip(left, right, strict=True)), type_)


def _minus(left: Numbers, right: Numbers) -> Numbers:
    return tuple(map(numbers.subtract, left, right))


def _length(value: Numbers, accuracies: Accuracies) -> Real:
    square = _dot(value, value)
    if square[1] > square[0] / 2:
        raise UndecidedError("the length of next to nothing")
    return real_function("sqrt", [square], accuracies)


def _normalize(value: Numbers, accuracies: Accuracies) -> Numbers:
    length = _length(value, accuracies)
    quotients = [numbers.divide(x, length) for x in value]
    return tuple(numbers.inexact(v, e, _NORMALIZE_ULPS) for v, e, _ in quotients)


def _cross(left: Numbers, right: Numbers) -> Numbers:
    def entry(i: int, j: int) -> Real:
        terms = numbers.multiply(left[i], right[j]), numbers.multiply(left[j], right[i])
        return numbers.subtract(*terms)

    return entry(1, 2), entry(2, 0), entry(0, 1)


def _reflect(value: Numbers, normal: Numbers) -> Numbers:
    twice = numbers.multiply(numbers.leaf(2.0), _dot(normal, value))
    return _minus(value, tuple(numbers.multiply(twice, x) for x in normal))


def _face_forward(value: Numbers, incident: Numbers, normal: Numbers) -> Numbers:
    apart = numbers.order(_dot(incident, normal), numbers.leaf(0.0)) < 0
    return value if apart else tuple(map(numbers.negate, value))


def _determinant(matrix: Numbers) -> Real:
    size = len(matrix)
    value = error = 0.0
    for order in itertools.permutations(range(size)):
        turns = sum(a > b for a, b in itertools.combinations(order, 2))
        product = (-1.0) ** turns
        grown = 1.0
        for column, row in enumerate(order):
            x, e, _ = matrix[column][row]
            product *= x
            grown *= abs(x) + e
        value += product
        error += grown - abs(product)
    most = max(abs(x) + e for column in matrix for x, e, _ in column)
    own = _DETERMINANT_ULPS * numbers.ULP * most**size
    return numbers.inexact(value, error + own, 0.0)


_GEOMETRY: Final[Mapping[str, Callable[[Sequence[Any], Accuracies], Any]]] = {
    "dot": lambda given, _: _dot(given[0], given[1]),
    "length": lambda given, by: _length(given[0], by),
    "distance": lambda given, by: _length(_minus(given[0], given[1]), by),
    "normalize": lambda given, by: _normalize(given[0], by),
    "cross": lambda given, _: _cross(given[0], given[1]),
    "reflect": lambda given, _: _reflect(given[0], given[1]),
    "faceForward": lambda given, _: _face_forward(given[0], given[1], given[2]),
    "transpose": lambda given, _: tuple(zip(*given[0], strict=True)),
    "determinant": lambda given, _: _determinant(given[0]),
}
"""The functions of whole vectors and matrices."""

GEOMETRY: Final = frozenset(_GEOMETRY)

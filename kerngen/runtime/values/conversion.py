"""Checks of values of fields and parameters, and their stored form: nested tuples."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import isinf
from typing import Any, TypeAlias, cast, final

import numpy as np
from numpy.typing import NDArray

from kerngen.runtime.errors import DtypeError, ShapeError, UniformRangeError
from kerngen.runtime.values.bits import NARROW, widen
from kerngen.runtime.values.elements import Number
from kerngen.runtime.values.kinds import with_article
from kerngen.runtime.values.shapes import Shape

One: TypeAlias = Callable[[Any], object]
"""Checks one number or struct, and returns it in its stored form."""


@final
class Misfit(Exception):  # noqa: N818 - it never reaches the user
    """A value does not fit; `path` are its indices in the whole, `kind` is the public error."""

    def __init__(
        self,
        kind: type[DtypeError | ShapeError | UniformRangeError],
        given: str,
        rule: str,
    ) -> None:
        """Describe a value by its fault; the path is added on the way up."""
        super().__init__()
        self.kind = kind
        self.path: tuple[int, ...] = ()
        self._texts = given, rule

    def error(self, name: str, before: str = "") -> Exception:
        """Return the public error, of class `kind`, for the value called `name`.

        `before` precedes the name in the message.
        """
        given, rule = self._texts
        path = "".join(f"[{index}]" for index in self.path)
        return self.kind(f"{before}'{name}{path}' is {given}; {rule}.")


def normalise(value: object, shape: Shape, one: One) -> object:
    """Return `value`, which must have this shape, as nested tuples; raise Misfit if unfit.

    `one` checks and returns each number.
    """
    if not shape:
        return one(value)
    items = _items(value)
    if items is None or len(items) != shape[0]:
        wanted = " x ".join(map(str, shape))
        raise Misfit(ShapeError, _shown(value), f"expected {wanted} values")
    inner = shape[1:]
    kept: list[object] = []
    try:
        for item in items:
            value = normalise(item, inner, one) if inner else one(item)
            kept.append(value)
    except Misfit as misfit:
        misfit.path = (len(kept), *misfit.path)
        raise
    return tuple(kept)


def _items(value: object) -> tuple[object, ...] | list[object] | None:
    """Return the items of a sequence or array, or None for anything else."""
    if isinstance(value, tuple | list):
        return cast("tuple[object, ...] | list[object]", value)
    # They can be iterated over, but are no vectors.
    if isinstance(value, str | bytes | dict | set):
        return None
    if hasattr(value, "__array__"):
        array: NDArray[Any] = np.asarray(value)
        listed = (widen(array) if array.dtype.char in NARROW else array).tolist()
        return cast("list[object]", listed) if array.ndim else None
    return (
        tuple(cast("Iterable[object]", value)) if hasattr(value, "__iter__") else None
    )


def _shown(value: object) -> str:
    shape: object = getattr(value, "shape", ())
    if shape:
        return f"an array of shape {shape}"
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:76]} ..."


def of_number(number: Number) -> One:
    """Return a function that checks a number of this type, and returns it as Python's own."""
    return _integers(number) if number.is_integer else _reals(number)


def _integers(number: Number) -> One:
    def one(value: Any) -> object:
        kept = value if type(value) is int else _plain(value)
        if type(kept) is not int:
            raise _not_of(number, value)
        if not number.lowest <= kept <= number.highest:
            raise _out_of_range(number, value)
        return kept

    return one


def _reals(number: Number) -> One:
    limit = number.limit

    def one(value: Any) -> object:
        kept = value if type(value) is float else _real(value, number)
        # Beyond the limit it would round to an infinity.  `kept - kept` is 0 for finite
        # numbers, NaN for infinities and NaN, which are allowed.
        if not -limit < kept < limit and kept - kept == 0:
            raise _out_of_range(number, value)
        return kept

    return one


def _real(value: Any, number: Number) -> float:
    kept = _plain(value)
    if type(kept) is float:
        # A finite longdouble may be more than Python's floats hold.
        if isinf(kept) and np.isfinite(value):
            raise _out_of_range(number, value)
        return kept
    if type(kept) is not int:
        raise _not_of(number, value)
    try:
        return float(kept)
    except OverflowError:
        raise _out_of_range(number, value) from None


def _plain(value: object) -> Any:
    """Return a number of NumPy's, or of a derived class, as Python's own."""
    if isinstance(value, np.generic | np.ndarray) and np.ndim(cast("Any", value)) == 0:
        array: NDArray[Any] = np.asarray(cast("Any", value))
        return (widen(array) if array.dtype.kind == "f" else array).item()
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return float(value) if isinstance(value, float) else None


def _not_of(number: Number, value: object) -> Misfit:
    noun = "an integer" if number.is_integer else "a number"
    given = f"{_shown(value)} ({type(value).__name__})"
    return Misfit(DtypeError, given, f"expected {noun} ({number.name})")


def _out_of_range(number: Number, value: object) -> Misfit:
    rule = f"{number.name} holds {number.lowest} to {number.highest}"
    return Misfit(UniformRangeError, _shown(value), rule)


def not_a(wanted: type, value: object) -> Misfit:
    """Return the misfit of a value that is not an instance of the struct's class `wanted`."""
    actual, expected = type(value).__name__, wanted.__name__
    if actual == expected:
        actual = f"{type(value).__module__}.{actual}"
        expected = f"{wanted.__module__}.{expected}"
    return Misfit(
        DtypeError, f"{_shown(value)} ({actual})", f"expected {with_article(expected)}"
    )

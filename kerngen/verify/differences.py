"""Check gradients against finite differences of their functions, in float64.

For a function `y = f(x)`, its gradient `dx` of a given `dy`, any direction v and a small
step h, the two inner products

    <dy, (f(x + h v) - f(x - h v)) / 2 h>    and    <dx, v>

agree: one number checks all elements of a gradient, without a formula for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import numpy as np

from kerngen.plan.tree import Case
from kerngen.runtime import ShapeError, UniformRangeError
from kerngen.runtime.calls.kernel import Kernel
from kerngen.runtime.reference import doubled, in_double
from kerngen.runtime.struct import Struct, UniformStruct
from kerngen.runtime.values.records import numbers
from kerngen.verify.calls.canned_calls import call_at
from kerngen.verify.calls.sizes import Fitting, Sizes, longest
from kerngen.verify.fault import Fault
from kerngen.verify.meaning.programs import Subject
from kerngen.verify.meaning.values import Array
from kerngen.verify.trial import Given, refer
from kerngen.verify.ways import Way

_STEPS: Final = (1e-5, 2.5e-6)
"""The steps h: for smooth functions of values about 1, differences are right to some 1e-10.

Where the two steps give different slopes, as over a kink, nothing is compared. Nor is NaN
where an axis is shorter than 2: the deviation of one number is 0, whose root has no slope.
"""
_CLOSE: Final = 1e-6
"""The tolerance, relative to the sizes of the terms of both inner products."""
_ROUNDING: Final = 1e-9
"""The tolerance for rounding, relative to the values that are subtracted, plus 1.

2^-52 / h is 9e-11 for the shorter step; the rest is room for sums.
"""
_LENGTHS: Final = (2, 3, 4, 5, 7)
"""The lengths of axes that are drawn."""

Values: TypeAlias = Mapping[str, Any]


@final
@dataclass(frozen=True)
class InnerProducts:
    """Two inner products that should agree for a parameter, and their tolerance."""

    by: str
    expected: float
    got: float
    bound: float

    @property
    def is_held(self) -> bool:
        """Whether the two inner products agree within the tolerance."""
        return abs(self.got - self.expected) <= self.bound

    @property
    def share(self) -> float:
        """The error as a share of the tolerance, which is 0 where all values are."""
        error = abs(self.got - self.expected)
        return error / self.bound if error else 0.0

    @property
    def fault(self) -> Fault:
        """The disagreement, in words."""
        text = (
            f"the gradient by '{self.by}' is {self.got:.9g} along a direction, where "
            f"differences are {self.expected:.9g} within {self.bound:.3g}"
        )
        numbers = (self.got, self.expected, self.bound)
        return Fault("gradient", text, 0, "", (), *numbers)


def products(subject: Subject, seed: int) -> tuple[Sizes, list[InnerProducts]]:
    """Return the lengths of a call drawn from a seed, and the products to compare.

    There are none if no call suits both kernels, or if the function is not smooth
    there.
    """
    given = _given(subject, seed)
    if given is None:
        return (), []
    try:
        with np.errstate(all="ignore"):
            return given.sizes, [*_products(subject, given, seed)]
    except (ShapeError, UniformRangeError):
        return given.sizes, []


def _given(subject: Subject, seed: int) -> Given | None:
    """Return a call of the forward kernel: of positive numbers; by odd seeds of any sign."""
    assert subject.forward is not None
    rng = np.random.default_rng(seed)
    way = Way(subject.forward.runtime, "", Case("", ()), Case("", ()))
    fitting = Fitting(subject.forward, way)
    wanted = ((name, int(rng.choice(_LENGTHS))) for name in fitting.names)
    sizes = fitting.near(tuple(wanted))
    if sizes is None or any(length < 1 for _, length in sizes):
        return None  # a stride of 0 has no gradient
    plain = call_at(fitting, sizes)
    most = longest(sizes)

    def filled(array: Array) -> Array:
        if array.dtype.kind in "iu":
            return rng.integers(0, most, array.shape).astype(array.dtype)
        wide = in_doubles(array)
        return with_reals(wide, [number(part.shape) for part in reals(wide)])

    def number(shape: tuple[int, ...]) -> Array:
        signs = rng.choice((-1.0, 1.0), shape) if seed % 2 else 1.0
        return np.asarray(rng.uniform(0.2, 1.8, shape) * signs)

    arrays = tuple(map(filled, plain.arrays))
    scalars = (in_doubles(x) for x in _scalars(subject.forward, plain, rng))
    whole = tuple(filled(x) if _is_record(x) else x for x in scalars)
    return Given(sizes, arrays, whole)


def _is_record(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def _scalars(
    forward: Subject, plain: Given, rng: np.random.Generator
) -> tuple[Any, ...]:
    """Return the scalars of a call, with numbers for those without a default.

    They ascend: where `low` is above `high`, a clamp has no meaning.
    """
    pairs = zip(forward.kernel.parameters, forward.runtime.scalars, strict=True)
    drawn = [p.default is None and s.python_type is float for p, s in pairs]
    numbers = iter(sorted(rng.uniform(0.3, 0.9, len(drawn)).tolist()))
    return tuple(
        next(numbers) if is_drawn else value
        for is_drawn, value in zip(drawn, plain.scalars, strict=True)
    )


def _products(subject: Subject, given: Given, seed: int) -> Iterator[InnerProducts]:
    """Yield the two inner products for each parameter that the gradient is by."""
    about, forward = subject.runtime.derivation, subject.forward
    assert forward is not None
    # The forward call: outputs y, and random weights dy for them.
    kernel, rng = forward.runtime, np.random.default_rng((seed, 1))
    values = _named(kernel, given)
    first = results(kernel, values)
    weights = {name: _like(y, rng.normal) for name, y in first.items() if [*reals(y)]}
    # The gradient's arguments: those of the forward call, what is given, dy and lengths.
    known = values | first | _lengths(kernel, values)
    if subject.kept:
        lets = subject.kept.outputs[len(kernel.outputs) :]
        found = results(subject.kept, _named(subject.kept, given))
        known |= {spec.name: found[spec.name] for spec in lets}
    known |= {own: known[of] for of, own in about.arguments}
    known |= {tensor: weights[of] for of, tensor in about.from_}
    known |= {scalar: known[f"{dim} (length)"] for dim, scalar in about.lengths}
    gradients = results(subject.runtime, known)
    noise = _ROUNDING * _sizes(weights, first)
    # For each parameter a random direction, and the slope along it by both steps.
    for name, output in about.by:
        direction = [rng.normal(size=part.shape) for part in reals(gradients[output])]
        if not direction:
            continue
        slopes = [
            _slopes(kernel, values, weights, name, [step * part for part in direction])
            for step in _STEPS
        ]
        pairs = zip(reals(gradients[output]), direction, strict=True)
        got = [found * part for found, part in pairs]
        (expected, size), (again, _) = (
            (slope / step, total / step)
            for (slope, total), step in zip(slopes, _STEPS, strict=True)
        )
        bound = _CLOSE * (size + _sum(map(np.abs, got))) + noise
        degenerate = np.isnan(bound) and any(length < 2 for _, length in given.sizes)
        is_smooth = np.isfinite(expected) and not abs(expected - again) > bound
        if is_smooth and not degenerate:
            yield InnerProducts(name, expected, _sum(got), bound)


def _named(kernel: Kernel, given: Given) -> dict[str, Any]:
    """Return the arguments of a call by their names."""
    arrays = zip((spec.name for spec in kernel.inputs), given.arrays, strict=True)
    scalars = zip((spec.name for spec in kernel.scalars), given.scalars, strict=True)
    return {**dict(arrays), **dict(scalars)}


def _slopes(
    kernel: Kernel, values: Values, weights: Values, name: str, step: list[Array]
) -> tuple[float, float]:
    """Return `<dy, (f(x + step) - f(x - step)) / 2>`, and the same with magnitudes added."""
    back = [-part for part in step]
    above, below = (
        results(kernel, {**values, name: _moved(values[name], by)})
        for by in (step, back)
    )
    parts = [
        weight * (one - other) / 2
        for y in weights
        for weight, one, other in zip(
            *map(reals, (weights[y], above[y], below[y])), strict=True
        )
    ]
    return _sum(parts), _sum(map(np.abs, parts))


def _moved(value: Any, by: list[Array]) -> Any:
    if isinstance(value, float | int):
        return float(value + by[0])
    array = np.asarray(value)
    return with_reals(array, [x + y for x, y in zip(reals(array), by, strict=True)])


def _like(array: Array, draw: Callable[..., Array]) -> Array:
    """Return an array or records whose floats are drawn; other members are as they were."""
    return with_reals(array, [draw(size=part.shape) for part in reals(array)])


def _lengths(kernel: Kernel, values: Values) -> dict[str, int]:
    return {
        f"{axis} (length)": length
        for spec in kernel.inputs
        for axis, length in zip(spec.axes, np.shape(values[spec.name]), strict=False)
    }


def _sizes(weights: Values, values: Mapping[str, Array]) -> float:
    """Return the sum of the magnitudes of the values that differences subtract."""
    return _sum(
        np.abs(weight) * (1 + np.abs(part))
        for y in weights
        for weight, part in zip(reals(weights[y]), reals(values[y]), strict=True)
    )


def _sum(parts: Iterable[Array]) -> float:
    return float(sum(part.sum() for part in parts))


# Arguments converted to float64: arrays, records and structs.


def reals(array: Array) -> Iterator[Array]:
    """Yield each array of floats in an array, with those of struct members."""
    for name in array.dtype.names or ():
        yield from reals(array[name])
    if array.dtype.kind == "f":
        yield array


def in_doubles(value: Any) -> Any:
    """Return an argument with its floats as float64; a struct becomes a record."""
    if isinstance(value, Struct):
        value = np.frombuffer(value.pack(), type(value).DTYPE).reshape(())
    if not hasattr(value, "dtype"):
        return value
    array: Array = value
    return array.astype(doubled(array.dtype))


def with_reals(array: Array, values: Sequence[Array]) -> Array:
    """Return a copy of an array or of records with its floats replaced."""
    made = array.copy()
    for part, value in zip(reals(made), values, strict=True):
        part[...] = value
    return made


def results(kernel: Kernel, values: Mapping[str, Any]) -> dict[str, Array]:
    """Return the outputs of a kernel's reference by name, all in float64."""
    arrays = tuple(values[spec.name] for spec in kernel.inputs)
    scalars = tuple(
        (
            _struct(spec.element, values[spec.name])
            if issubclass(spec.element, Struct)
            else values[spec.name]
        )
        for spec in kernel.scalars
    )
    with in_double():
        found = refer(kernel, Given((), arrays, scalars))
    names = (spec.name for spec in kernel.outputs)
    return dict(zip(names, found, strict=True))


def _struct(type_: type[UniformStruct], record: Array) -> Any:
    """Return a record's values as a struct."""
    parts: dict[str, Any] = {}
    for field in type_.FIELDS:
        value = record[field.name]
        inner = field.type
        if issubclass(inner, Struct):
            parts[field.name] = _structs(inner, value)
        else:
            parts[field.name] = numbers(value).tolist()
    return type_(**parts)


def _structs(type_: type[Struct], records: Array) -> Any:
    if records.shape:
        return tuple(_structs(type_, each) for each in records)
    return _struct(type_, records)

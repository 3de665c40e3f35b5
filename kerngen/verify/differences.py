"""Gradients held to differences of their functions, in float64.

For any v, `<dy, (f(x + h v) - f(x - h v)) / 2 h>` is `<dx, v>`: one product of numbers
checks all of a gradient, without a formula of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import numpy as np

from kerngen.plan.tree import Case
from kerngen.runtime import ShapeError, UniformRangeError
from kerngen.runtime.calls.kernel import Kernel
from kerngen.verify.fault import Fault
from kerngen.verify.meaning.programs import Subject
from kerngen.verify.meaning.values import Array
from kerngen.verify.plain import call_at
from kerngen.verify.sizes import Fitting, Sizes
from kerngen.verify.trial import Given, refer
from kerngen.verify.ways import Way

_STEPS: Final = (1e-5, 2.5e-6)
"""Of smooth values of about 1, differences are then right to some 1e-10.

Where the two steps differ, as over a kink, nothing is compared; and no NaN where an axis is
shorter than 2, as the deviation of one number is 0, and its root has no slope.
"""
_CLOSE: Final = 1e-6
_ROUNDING: Final = 1e-9
"""Of the values that are subtracted, and of 1: 2^-52 / h, with room for sums."""
_LENGTHS: Final = (2, 3, 4, 5, 7)

Values: TypeAlias = Mapping[str, Any]


@final
@dataclass(frozen=True)
class Product:
    """Both products for a parameter of a call, and how far they may be apart."""

    by: str
    expected: float
    got: float
    bound: float

    @property
    def is_held(self) -> bool:
        """Whether the gradient is what the differences give."""
        return abs(self.got - self.expected) <= self.bound

    @property
    def fault(self) -> Fault:
        """What is wrong, in words."""
        text = (
            f"the gradient by '{self.by}' is {self.got:.9g} along a direction, where "
            f"differences are {self.expected:.9g} within {self.bound:.3g}"
        )
        numbers = (self.got, self.expected, self.bound)
        return Fault("gradient", text, 0, "", (), *numbers)


def products(subject: Subject, seed: int) -> tuple[Sizes, list[Product]]:
    """Return the lengths of a call that follows from a seed, and its products.

    There are none if no call was found that both kernels take, or where the function is
    not smooth.
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
    """Return a call of the forward kernel: positive numbers, or every other time any."""
    assert subject.forward is not None
    rng = np.random.default_rng(seed)
    way = Way(subject.forward.runtime, "", Case("", ()), Case("", ()))
    fitting = Fitting(subject.forward, way)
    wanted = ((name, int(rng.choice(_LENGTHS))) for name in fitting.names)
    sizes = fitting.near(tuple(wanted))
    if sizes is None or any(length < 1 for _, length in sizes):
        return None  # a stride of 0 has no gradient
    plain = call_at(fitting, sizes)
    longest = max((length for _, length in sizes), default=1)

    def filled(array: Array) -> Array:
        if array.dtype.kind == "f":
            signs = rng.choice((-1.0, 1.0), array.shape) if seed % 2 else 1.0
            return np.asarray(rng.uniform(0.2, 1.8, array.shape) * signs)
        if array.dtype.kind in "iu":
            return rng.integers(0, max(longest, 1), array.shape).astype(array.dtype)
        return array

    return Given(
        sizes, tuple(map(filled, plain.arrays)), _scalars(subject.forward, plain, rng)
    )


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


def _products(subject: Subject, given: Given, seed: int) -> Iterator[Product]:
    about, forward = subject.runtime.derivation, subject.forward
    assert forward is not None
    kernel, rng = forward.runtime, np.random.default_rng((seed, 1))
    values: dict[str, Any] = dict(
        zip((spec.name for spec in kernel.inputs), given.arrays, strict=True)
    )
    values |= zip((spec.name for spec in kernel.scalars), given.scalars, strict=True)
    first = _run(kernel, values)
    weights = {
        name: rng.normal(size=y.shape)
        for name, y in first.items()
        if y.dtype.kind == "f"
    }
    known = values | _run(subject.kept or kernel, values) | _lengths(kernel, values)
    known |= {tensor: weights[of] for of, tensor in about.from_}
    known |= {scalar: known[f"{dim} (length)"] for dim, scalar in about.lengths}
    gradients = _run(subject.runtime, known)
    noise = _ROUNDING * _sum(weights, first)
    for name, output in about.by:
        direction = rng.normal(size=np.shape(values[name]))
        slopes = [
            _slopes(kernel, values, weights, name, step * direction) for step in _STEPS
        ]
        got = gradients[output] * direction
        (expected, size), (again, _) = (
            (slope / step, total / step)
            for (slope, total), step in zip(slopes, _STEPS, strict=True)
        )
        bound = _CLOSE * (size + float(np.abs(got).sum())) + noise
        degenerate = np.isnan(bound) and any(length < 2 for _, length in given.sizes)
        is_smooth = np.isfinite(expected) and not abs(expected - again) > bound
        if is_smooth and not degenerate:
            yield Product(name, expected, float(got.sum()), bound)


def _slopes(
    kernel: Kernel, values: Values, weights: Values, name: str, step: Array
) -> tuple[float, float]:
    """Return half the weighted difference between both sides, and of its parts' sizes."""
    above, below = (
        _run(kernel, {**values, name: _moved(values[name], by)}) for by in (step, -step)
    )
    parts = [weights[y] * (above[y] - below[y]) / 2 for y in weights]
    return (
        float(sum(part.sum() for part in parts)),
        float(sum(np.abs(part).sum() for part in parts)),
    )


def _moved(value: Any, by: Array) -> Any:
    moved = value + by
    return float(moved) if isinstance(value, float | int) else np.asarray(moved)


def _run(kernel: Kernel, values: Values) -> dict[str, Array]:
    """Return the outputs of a kernel's reference by name."""
    arrays = tuple(values[spec.name] for spec in kernel.inputs)
    scalars = tuple(values[spec.name] for spec in kernel.scalars)
    results = refer(kernel, Given((), arrays, scalars))
    names = (spec.name for spec in kernel.outputs)
    return dict(zip(names, results, strict=True))


def _lengths(kernel: Kernel, values: Values) -> dict[str, int]:
    return {
        f"{axis} (length)": length
        for spec in kernel.inputs
        for axis, length in zip(spec.axes, np.shape(values[spec.name]), strict=False)
    }


def _sum(weights: Values, values: Mapping[str, Array]) -> float:
    return float(
        sum((np.abs(weights[y]) * (1 + np.abs(values[y]))).sum() for y in weights)
    )

"""Gradients of random programs, each beside central differences of the program itself.

Both are references, in float64: `<dy, (f(x + h v) - f(x - h v)) / 2 h>` is `<dx, v>`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from kerngen.gradient import GradientError, derive
from kerngen.ir.module import Module
from kerngen.ir.nodes import Kernel, Role
from kerngen.ir.types import Scalar
from kerngen.runtime.errors import Error, ShapeError
from kerngen.source.diagnostic import CompileError
from tests.compile import checked
from tests.gradient.differences import inputs_by, is_differentiable, references

from .programs import Program

Array: TypeAlias = NDArray[Any]
Values: TypeAlias = Mapping[str, Any]
Run: TypeAlias = Callable[[Values], list[Array]]

STEPS: Final = (1e-5, 3e-6)
"""Two steps: where their differences differ, there is a kink or a jump within them."""

CLOSE: Final = 1e-5
"""Of the largest share that an element has in the derivative."""

LARGEST: Final = 1e6
"""Beside larger results, a double has too few digits of what is added to them."""

MOST: Final = 6
"""Lengths are at most this: of most programs, each element takes many terms."""


@final
class Verdict(Enum):
    """What came of a program."""

    RIGHT = "right"
    REFUSED = "refused"
    """There is no gradient by any of its parameters, or it has no reals."""
    UNDECIDED = "undecided"
    """It is not called so, or is not smooth there, or not finite."""


@final
class WrongGradientError(AssertionError):
    """A gradient that is not what differences give."""


def check(program: Program) -> Verdict:
    """Derive a program by each of its reals, and compare.

    Raises `WrongGradientError`.
    """
    try:
        module = checked(program.text)
    except CompileError:
        return Verdict.REFUSED
    (kernel,) = module.kernels
    if not is_differentiable(kernel) or _has_others(kernel):
        return Verdict.REFUSED
    verdicts: list[Verdict] = []
    functions = {function.name: function for function in module.functions}
    for by in inputs_by(kernel):
        try:
            gradient = derive(kernel, name="derived", by=(by,), functions=functions)
        except GradientError:
            continue
        verdicts.append(_compare(program, module, kernel, gradient, by))
    if not verdicts:
        return Verdict.REFUSED
    return Verdict.RIGHT if Verdict.RIGHT in verdicts else Verdict.UNDECIDED


def _has_others(kernel: Kernel) -> bool:
    """Whether there are tensors or scalars of f16, vectors, matrices or structs."""
    kinds = {"f32", "i32", "u32", "bool"}
    memories = [
        *(t.memory for t in kernel.tensors),
        *(p.memory for p in kernel.parameters),
    ]
    return any(memory.spelling not in kinds for memory in memories)


def _compare(
    program: Program, module: Module, kernel: Kernel, gradient: Kernel, by: str
) -> Verdict:
    rng = np.random.default_rng(program.seed)
    values = _values(program, kernel, rng)
    with (
        references(module, kernel, gradient) as (forward, backward),
        np.errstate(all="ignore"),
    ):
        try:
            results = _called(kernel, forward, values)
        except Error:
            return Verdict.UNDECIDED
        if any(np.abs(result).max(initial=0.0) > LARGEST for result in results):
            return Verdict.UNDECIDED
        outputs = [t for t in kernel.tensors if t.role is Role.OUTPUT]
        weights = {
            tensor.name: rng.normal(size=result.shape)
            for tensor, result in zip(outputs, results, strict=True)
            if tensor.element is Scalar.F32
        }
        direction = rng.normal(size=np.shape(values[by]))

        def along(step: float) -> float:
            sides = [
                _called(kernel, forward, {**values, by: values[by] + sign * direction})
                for sign in (step, -step)
            ]
            pairs = zip(outputs, *sides, strict=True)
            return sum(
                float((weights[t.name] * (above - below)).sum()) / (2 * step)
                for t, above, below in pairs
                if t.name in weights
            )

        known = _known(kernel, gradient, values, weights)
        try:
            (slope,) = _called(gradient, backward, known)
        except ShapeError as error:
            # Nothing may be read of an empty axis, under a condition either.
            if "it is empty" in str(error):
                return Verdict.UNDECIDED
            raise
        shares = slope * direction
        wanted = [along(step) for step in STEPS]
    return _verdict(program, by, shares, wanted)


def _verdict(program: Program, by: str, shares: Array, wanted: list[float]) -> Verdict:
    largest = float(np.abs(shares[np.isfinite(shares)]).max(initial=1.0))
    scale = max(largest, *map(abs, wanted))
    if not np.isfinite(wanted).all() or scale > LARGEST:
        return Verdict.UNDECIDED
    with np.errstate(all="ignore"):
        found = float(shares.sum())
    if abs(wanted[0] - wanted[1]) > 0.1 * CLOSE * scale:
        return Verdict.UNDECIDED
    if not abs(found - wanted[1]) <= CLOSE * scale:
        what = f"by {by}: {found} is not {wanted[1]}"
        raise WrongGradientError(f"{what}\n{program!r}")
    return Verdict.RIGHT


def _values(
    program: Program, kernel: Kernel, rng: np.random.Generator
) -> dict[str, Any]:
    """Return all arguments; reals are drawn anew, so that none are equal by chance."""
    sizes = {dim: min(size, MOST) for dim, size in program.sizes.items()}
    given = program.arrays(sizes)
    values: dict[str, Any] = dict(program.scalars)
    for tensor in kernel.tensors:
        if tensor.role is Role.OUTPUT:
            continue
        shape = given[tensor.name].shape
        if tensor.element is Scalar.F32:
            values[tensor.name] = rng.normal(size=shape)
        else:
            kind = np.uint32 if tensor.element is Scalar.U32 else np.int32
            values[tensor.name] = np.array(given[tensor.name].cells, kind).reshape(
                shape
            )
    for parameter in kernel.parameters:
        if parameter.memory.spelling == "f32":
            values[parameter.name] = rng.normal()
    return values


def _called(
    kernel: Kernel, function: Callable[..., Any], values: Values
) -> list[Array]:
    tensors = [t for t in kernel.tensors if t.role is not Role.OUTPUT]
    scalars = {p.name: values[p.name] for p in kernel.parameters}
    found = function(*(np.asarray(values[t.name]) for t in tensors), **scalars)
    results: list[Any] = [*found] if isinstance(found, tuple) else [found]
    return [np.asarray(each) for each in results]


def _known(
    kernel: Kernel,
    gradient: Kernel,
    values: Values,
    weights: Mapping[str, Array],
) -> dict[str, Any]:
    """Return what a gradient is called with."""
    about = gradient.gradient
    assert about is not None
    lengths: dict[str | int, int] = {}
    for tensor in kernel.tensors:
        if tensor.role is not Role.OUTPUT:
            lengths |= zip(tensor.extents, np.shape(values[tensor.name]), strict=True)
    return {
        **values,
        **{name: weights[output] for output, name in about.from_},
        **{name: lengths[dim] for dim, name in about.lengths},
    }

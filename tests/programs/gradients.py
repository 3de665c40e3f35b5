"""Gradients of random programs, each beside central differences of the program itself.

Both are references, in float64: `<dy, (f(x + h v) - f(x - h v)) / 2 h>` is `<dx, v>`.
Vectors, matrices and structs are one x: v is along all of their floats.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from kerngen.gradient import GradientError, derive
from kerngen.gradient.members import has_real
from kerngen.ir.memory import MemoryType
from kerngen.ir.module import Module
from kerngen.ir.nodes import Kernel, Role
from kerngen.runtime.calls.kernel import Kernel as RuntimeKernel
from kerngen.runtime.errors import Error, ShapeError
from kerngen.runtime.struct import Struct
from kerngen.source.diagnostic import CompileError
from kerngen.verify.differences import in_doubles, reals, results, with_reals
from kerngen.verify.meaning.values import blank_array
from tests.compile import checked
from tests.gradient.differences import program as lowered
from tests.gradient.differences import runtimes

from .programs import Program

Array: TypeAlias = NDArray[Any]
Values: TypeAlias = Mapping[str, Any]

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


def check(program: Program, most: int | None = None) -> Verdict:
    """Derive a program by each of its reals, or by so many, and compare.

    Raises `WrongGradientError`.
    """
    try:
        module = checked(program.text)
    except CompileError:
        return Verdict.REFUSED
    (kernel,) = module.kernels
    if any(tensor.role is Role.UPDATE for tensor in kernel.tensors):
        return Verdict.REFUSED
    rng = np.random.default_rng(program.seed)
    names = rng.permutation(_reals_of(kernel)).tolist()
    found = ((name, _derived(module, name)) for name in names)
    gradients = dict(islice(((name, each) for name, each in found if each), most))
    if not gradients:
        return Verdict.REFUSED
    if most is None:  # By night they have shaders, too.
        for each in gradients.values():
            lowered(module, each)
    with (
        runtimes(module, kernel, *gradients.values()) as (forward, *backward),
        np.errstate(all="ignore"),
    ):
        trial = Trial.of(program, kernel, forward, rng)
        if trial is None:
            return Verdict.UNDECIDED
        named = _python_names(kernel, forward)
        verdicts = [
            trial.verdict(named[name], each)
            for name, each in zip(gradients, backward, strict=True)
        ]
    return Verdict.RIGHT if Verdict.RIGHT in verdicts else Verdict.UNDECIDED


def _derived(module: Module, by: str) -> Kernel | None:
    (kernel,) = module.kernels
    functions = {function.name: function for function in module.functions}
    try:
        return derive(kernel, name=f"by_{by}", by=(by,), functions=functions)
    except GradientError:
        return None


def _reals_of(kernel: Kernel) -> list[str]:
    """Return the parameters with floats in them."""
    memories: dict[str, MemoryType] = {
        t.name: t.memory for t in kernel.tensors if t.role is Role.INPUT
    }
    memories |= {p.name: p.memory for p in kernel.parameters}
    return [name for name, memory in memories.items() if has_real(memory)]


@final
@dataclass(frozen=True)
class Trial:
    """A call of a program, with the derivatives by its results."""

    program: Program
    forward: RuntimeKernel
    values: Values
    weights: Mapping[str, Array]
    rng: np.random.Generator

    @classmethod
    def of(
        cls,
        program: Program,
        kernel: Kernel,
        forward: RuntimeKernel,
        rng: np.random.Generator,
    ) -> Trial | None:
        """Return a trial, None if the program is not called so, or its results are large."""
        values = _values(program, kernel, forward, rng)
        try:
            first = results(forward, values)
        except Error:
            return None
        parts = (x for y in first.values() for x in reals(y))
        if any(np.abs(x).max(initial=0) > LARGEST for x in parts):
            return None
        weights = {name: _drawn(y, rng) for name, y in first.items() if [*reals(y)]}
        return cls(program, forward, values, weights, rng)

    def verdict(self, by: str, backward: RuntimeKernel) -> Verdict:
        """Compare a gradient with differences in a random direction."""
        known = _known(self.forward, backward, self.values, self.weights)
        try:
            (slope,) = results(backward, known).values()
        except ShapeError as error:
            # Nothing may be read of an empty axis, under a condition either.
            if "it is empty" in str(error):
                return Verdict.UNDECIDED
            raise
        shapes = (part.shape for part in reals(np.asarray(self.values[by])))
        direction = [self.rng.normal(size=shape) for shape in shapes]
        pairs = zip(reals(slope), direction, strict=True)
        shares = np.concatenate([(one * other).ravel() for one, other in pairs])
        wanted = [self._along(by, direction, step) for step in STEPS]
        return _verdict(self.program, by, shares, wanted)

    def _along(self, by: str, direction: list[Array], step: float) -> float:
        sides = [
            results(
                self.forward,
                {**self.values, by: _moved(self.values[by], sign, direction)},
            )
            for sign in (step, -step)
        ]
        return sum(
            float((weight * (above - below)).sum()) / (2 * step)
            for name, weights in self.weights.items()
            for weight, above, below in zip(
                reals(weights), *(reals(y[name]) for y in sides), strict=True
            )
        )


def _moved(value: Any, step: float, direction: list[Array]) -> Any:
    array = np.asarray(value)
    pairs = zip(reals(array), direction, strict=True)
    moved = with_reals(array, [part + step * by for part, by in pairs])
    return float(moved) if isinstance(value, float) else moved


def _drawn(array: Array, rng: np.random.Generator) -> Array:
    """Return an array or records with other floats."""
    return with_reals(array, [rng.normal(size=part.shape) for part in reals(array)])


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


def _python_names(kernel: Kernel, runtime: RuntimeKernel) -> dict[str, str]:
    """Return what parameters are called in Python: not as structs, nor as keywords."""
    tensors = (t.name for t in kernel.tensors if t.role is Role.INPUT)
    names = zip(tensors, (spec.name for spec in runtime.inputs), strict=True)
    scalars = zip(kernel.parameters, runtime.scalars, strict=True)
    return {**dict(names), **{p.name: spec.name for p, spec in scalars}}


def _values(
    program: Program, kernel: Kernel, runtime: RuntimeKernel, rng: np.random.Generator
) -> dict[str, Any]:
    """Return all arguments; reals are drawn anew, so that none are equal by chance."""
    sizes = {dim: min(size, MOST) for dim, size in program.sizes.items()}
    given = program.arrays(sizes)
    tensors = [t for t in kernel.tensors if t.role is Role.INPUT]
    values: dict[str, Any] = {}
    for tensor, spec in zip(tensors, runtime.inputs, strict=True):
        array = _with_integers(blank_array(spec.element, given[tensor.name].shape), rng)
        values[spec.name] = _drawn(in_doubles(array), rng)
    for parameter, scalar in zip(kernel.parameters, runtime.scalars, strict=True):
        value = program.scalars[parameter.name]
        if issubclass(scalar.element, Struct):
            record = _with_integers(np.zeros((), scalar.element.DTYPE), rng)
            value = _drawn(in_doubles(record), rng)
        elif has_real(parameter.memory):
            shape = np.shape(value)
            value = rng.normal(size=shape) if shape else float(rng.normal())
        values[scalar.name] = value
    return values


def _with_integers(array: Array, rng: np.random.Generator) -> Array:
    """Fill an array, or members of records, with small integers."""
    for name in array.dtype.names or ():
        _with_integers(array[name], rng)
    if array.dtype.kind in "iu":
        array[...] = rng.integers(-2 if array.dtype.kind == "i" else 0, 6, array.shape)
    return array


def _known(
    forward: RuntimeKernel,
    backward: RuntimeKernel,
    values: Values,
    weights: Mapping[str, Array],
) -> dict[str, Any]:
    """Return what a gradient is called with."""
    about = backward.derivation
    lengths: dict[str | int, int] = {}
    for spec in forward.inputs:
        lengths |= zip(spec.axes, np.shape(values[spec.name]), strict=False)
    return {
        **values,
        **{name: weights[output] for output, name in about.from_},
        **{name: lengths[dim] for dim, name in about.lengths},
    }

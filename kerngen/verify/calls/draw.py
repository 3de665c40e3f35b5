"""Random calls by hypothesis: lengths, contents, scalars, and layouts in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from hypothesis import reject
from hypothesis import strategies as st

from kerngen.ir.builtins.evaluate import bounds
from kerngen.ir.memory import Leaf
from kerngen.ir.nodes import Kernel, Parameter, Role
from kerngen.ir.types import scalar_of
from kerngen.runtime.calls.kernel import ScalarSpec
from kerngen.runtime.calls.ranges import shape_of
from kerngen.verify.calls.sizes import LONGEST, Fitting, Sizes
from kerngen.verify.meaning.values import (
    FLOATS,
    INTEGERS,
    Array,
    blank_array,
    fill,
    scalar_value,
)

ARRANGEMENTS: Final = ("apart", "together", "the same", "given")
"""The layouts of a call's tensors in memory.

- apart: each input is in a buffer of its own;
- together: inputs of one element type are views of one buffer;
- the same: inputs that are only read, of one type and shape, are one tensor;
- given: outputs are passed by `out=`.
"""

_OFTEN: Final = {"whole": 3, "even": 3, "positive": 2}
"""Weights of the kinds of numbers that are drawn more often than once."""
_KINDS: Final = [kind for kind in FLOATS for _ in range(_OFTEN.get(kind, 1))]
_SCALARS: Final = (1.0, 0.5, 2.0, 0.0, -2.5, 0.3, 1e-8, 1e-3, 100.0)
"""Usual values of float scalars, simple ones first: factors, a small `eps`, a rate."""


@final
@dataclass(frozen=True)
class Drawn:
    """A drawn call: its lengths and scalars, and from what its arrays are filled.

    For each input, `kinds` has the kind of its floats and of its integers, and `bounds` a
    length of the call, below which integers of the kind 'places' are.
    """

    sizes: Sizes
    scalars: tuple[Any, ...]
    kinds: tuple[tuple[str, str], ...]
    bounds: tuple[int, ...]
    seed: int
    arrangement: str
    turn: int

    def arrays(self, fitting: Fitting) -> list[Array]:
        """Return the input arrays."""
        lengths = fitting.lengths(self.sizes)
        assert lengths is not None
        made: list[Array] = []
        for n, (tensor, spec) in enumerate(
            zip(inputs_of(fitting.subject.kernel), fitting.kernel.inputs, strict=True)
        ):
            array = blank_array(spec.element, shape_of(spec.axes, lengths))
            fill(tensor.memory, array, self.kinds[n], self.seed + 7 * n, self.bounds[n])
            made.append(array)
        if self.arrangement == "the same":
            _repeat(made, fitting)
        return made


def _repeat(arrays: list[Array], fitting: Fitting) -> None:
    """Give inputs that are to be one tensor the same contents."""
    for first, second in twins(fitting, arrays):
        arrays[second] = arrays[first]


def twins(fitting: Fitting, arrays: Sequence[Array]) -> list[tuple[int, int]]:
    """Return pairs of inputs that may be passed as the same tensor."""
    specs = fitting.kernel.inputs
    found: list[tuple[int, int]] = []
    for n, spec in enumerate(specs):
        for earlier in range(n):
            other = specs[earlier]
            alike = other.element is spec.element and (
                arrays[earlier].shape == arrays[n].shape
            )
            if alike and other.access == spec.access == "read":
                found.append((earlier, n))
                break
    return found


def inputs_of(kernel: Kernel) -> list[Any]:
    """Return the tensor parameters of a kernel."""
    return [tensor for tensor in kernel.tensors if tensor.role is not Role.OUTPUT]


def calls(fitting: Fitting) -> st.SearchStrategy[Drawn]:
    """Return a hypothesis strategy for calls that run in the wanted way."""

    # `fitting` is no argument of it: hypothesis would print all of it.
    @st.composite
    def calls(draw: Callable[..., Any]) -> Drawn:
        return _call(draw, fitting)

    return calls()


def _call(draw: Callable[..., Any], fitting: Fitting) -> Drawn:
    """Draw a call: sizes that suit the way first, as all else depends on them."""
    sizes = fitting.near(
        tuple((name, draw(_length(fitting, name))) for name in fitting.names)
    )
    if sizes is None:
        reject()
    lengths = [length for _, length in sizes] or [1]
    inputs = fitting.kernel.inputs
    kinds = st.tuples(st.sampled_from(_KINDS), st.sampled_from(INTEGERS))
    seed = draw(st.integers(0, 9999))
    return Drawn(
        sizes=sizes,
        scalars=tuple(_scalars(draw, fitting, dict(sizes), seed)),
        kinds=tuple(draw(kinds) for _ in inputs),
        bounds=tuple(draw(st.sampled_from(lengths)) for _ in inputs),
        seed=seed,
        arrangement=draw(st.sampled_from(ARRANGEMENTS)),
        turn=draw(st.integers(0, 4)),
    )


def _length(fitting: Fitting, name: str) -> st.SearchStrategy[int]:
    """Return the lengths to draw: where schedules change, short ones, and any."""
    if name not in fitting.kernel.dims:
        return st.integers(0, 4)
    telling = st.sampled_from(fitting.telling)
    return st.one_of(telling, st.integers(0, 40), st.integers(0, LONGEST))


def _scalars(
    draw: Callable[..., Any], fitting: Fitting, sizes: Mapping[str, int], seed: int
) -> Iterator[Any]:
    parameters = fitting.subject.kernel.parameters
    for n, (parameter, spec) in enumerate(
        zip(parameters, fitting.kernel.scalars, strict=True)
    ):
        if spec.name in sizes:
            yield sizes[spec.name]
        elif spec.python_type is float:
            yield draw(_float(parameter))
        elif spec.python_type is int:
            yield draw(_integer(parameter))
        else:
            yield _composite(draw, parameter, spec, seed + 1000 + n)


def _float(parameter: Parameter) -> st.SearchStrategy[float]:
    default = parameter.default
    usual = [float(default)] * 4 if isinstance(default, int | float) else []
    small = st.floats(-100.0, 100.0, width=32)
    return st.one_of(st.sampled_from([*usual, *_SCALARS]), small)


def _integer(parameter: Parameter) -> st.SearchStrategy[int]:
    assert isinstance(parameter.memory, Leaf)
    low, high = bounds(scalar_of(parameter.memory.type))
    default = parameter.default
    usual = [int(default)] * 2 if isinstance(default, int) else []
    ends = st.sampled_from([*usual, 1, 2, 0, low, high])
    return st.one_of(st.integers(0, 8), ends, st.integers(low, high))


def _composite(
    draw: Callable[..., Any], parameter: Parameter, spec: ScalarSpec, seed: int
) -> Any:
    """Draw a vector, a matrix or a struct."""
    kind = draw(st.sampled_from(("whole", "even", "unit")))
    array = blank_array(spec.element, ())
    fill(parameter.memory, array, (kind, "few"), seed, 1)
    return scalar_value(parameter.memory, spec.element, array)

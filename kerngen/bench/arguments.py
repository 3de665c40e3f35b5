"""Arguments for timing a kernel: random tensors in rotation, and scalars."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from kerngen.jit import load
from kerngen.runtime import Context, Struct, Tensor, f16, f32
from kerngen.runtime.calls.choices import KernelFunction, kernel_of
from kerngen.runtime.calls.kernel import Kernel, ScalarSpec, TensorSpec
from kerngen.runtime.calls.ranges import derive, shape_of
from kerngen.runtime.values.fields import is_leaf
from kerngen.runtime.values.packing import element_bytes

Sizes: TypeAlias = Mapping[str, int]
"""The lengths of a call by dim name, and the integer scalars that are chosen."""
AnyTensor: TypeAlias = Tensor[Any, Any]

ROTATED_BYTES: Mapping[str, int] = {"gpu": 2**28, "software": 2**26, "reference": 0}
"""The bytes of all sets of inputs that are rotated, by kind: more than caches have."""
MOST_SETS = 64
"""The most sets of inputs, of small ones."""
_BLOCK = 2**16
"""Random words of a tensor, which are then repeated: the host draws no more."""
_SOURCE = Path(__file__).with_suffix(".kern")


def rotations(nbytes: int, kind: str) -> int:
    """Return the number of sets of inputs to rotate, if one set has `nbytes` bytes."""
    return min(MOST_SETS, ROTATED_BYTES[kind] // max(nbytes, 1) + 1)


def own_sizes(kernel: Kernel, sizes: Sizes) -> Sizes:
    """Return the sizes that a kernel needs; KeyError if one is missing."""
    return {name: sizes[name] for name in kernel.size_names}


def all_lengths(kernel: Kernel, sizes: Sizes) -> dict[str, int]:
    """Return the length of every dim of a kernel: of those in `sizes`, and of derived ones.

    Raises ShapeError where a call of these sizes would.
    """
    lengths = dict(sizes)
    derive(kernel, lengths)
    return lengths


def tensor_bytes(kernel: Kernel, sizes: Sizes) -> dict[str, int]:
    """Return the size in bytes of each tensor of a call."""
    lengths = all_lengths(kernel, sizes)
    return {spec.name: _nbytes(spec, lengths) for spec in kernel.tensors}


def moved_bytes(kernel: Kernel, sizes: Sizes) -> int:
    """Return the bytes that a call must move: inputs read once, outputs written once."""
    taken = tensor_bytes(kernel, sizes)
    return sum((1 + (s.access == "update")) * taken[s.name] for s in kernel.tensors)


def _nbytes(spec: TensorSpec, lengths: Sizes) -> int:
    return element_bytes(spec.element, shape_of(spec.axes, lengths))


@final
@dataclass(frozen=True, slots=True)
class Integers:
    """The ranges of the random integers in a call's tensors.

    - `below`: the name of a dim that they are less than; by default the smallest dim
    - `starts`, `entries`: the tensor with the starts of the rows of a sparse matrix, and
      the dim of all its entries
    - `columns`: the tensor with a sparse matrix's columns.  Its numbers are not repeated:
      the elements that they read would stay in caches.
    """

    below: str = ""
    starts: str = ""
    entries: str = ""
    columns: str = ""


ANY: Final = Integers()
LONGEST: Final = 512
"""The longest row of a sparse matrix has one of this many parts of all entries."""


def inputs(
    ctx: Context,
    kernel: Kernel,
    sizes: Sizes,
    seed: int,
    integers: Integers = ANY,
    before: Sequence[AnyTensor] = (),
) -> tuple[AnyTensor, ...]:
    """Return random inputs for one call; what it updates is that of the call `before`, if any."""
    lengths = all_lengths(kernel, sizes)
    dims = (integers.below,) if integers.below else kernel.dims
    bound = min((lengths[dim] for dim in dims), default=1)

    def made(number: int, spec: TensorSpec) -> AnyTensor:
        if before and spec.access == "update":
            return before[number]
        shape = shape_of(spec.axes, lengths)
        if spec.name == integers.starts:
            starts = row_starts(shape[0] - 1, lengths[integers.entries], seed)
            return ctx.tensor(starts, spec.element)
        if spec.name == integers.columns:
            columns = np.random.default_rng(seed).integers(0, bound, shape, np.uint32)
            return ctx.tensor(columns, spec.element)
        return random_tensor(ctx, spec.element, shape, seed + number, bound)

    return tuple(made(number, spec) for number, spec in enumerate(kernel.inputs))


def row_starts(rows: int, entries: int, seed: int) -> NDArray[np.uint32]:
    """Return the starts of the rows of a sparse matrix, and the end of the last one.

    Their lengths are random, except that one in the middle is much longer.
    """
    longest = entries // LONGEST
    cuts = np.random.default_rng(seed).integers(0, entries - longest + 1, rows + 1)
    cuts.sort()
    cuts[0], cuts[-1] = 0, entries - longest
    cuts[rows // 2 + 1 :] += longest
    return cuts.astype(np.uint32)


def random_tensor(
    ctx: Context, element: Any, shape: tuple[int, ...], seed: int, bound: int = 2
) -> AnyTensor:
    """Return random numbers: floats in [0, 1), or integers below `bound`."""
    size = math.prod(shape)
    if element in {f32, f16} and size:
        made = load(_SOURCE)
        draw = made.uniform if element is f32 else made.uniform_half
        drawn: AnyTensor = draw(count=size, seed=seed, ctx=ctx)
        return drawn.reshape(shape)
    rng = np.random.default_rng(seed)
    if is_leaf(element) and element.number.bits:
        number = element.number
        ends = int(number.lowest), int(number.highest) + 1
        return ctx.tensor(rng.integers(*ends, shape, number.dtype), element)
    numbers = element.DTYPE.itemsize * size // 4 + 1
    if is_leaf(element) and element.number.is_integer:
        words = rng.integers(0, max(bound, 1), min(numbers, _BLOCK), np.uint32)
    elif is_leaf(element) and element.DTYPE.itemsize % 4:
        halves = rng.random(2 * min(numbers, _BLOCK)).astype(np.float16)
        words = halves.view(np.uint32)
    else:
        words = rng.random(min(numbers, _BLOCK), np.float32).view(np.uint32)
    data = np.resize(words, numbers).tobytes()
    array = np.frombuffer(data, element.DTYPE, size).reshape(shape)
    return ctx.tensor(array, element)


def scalars(function: KernelFunction, sizes: Sizes) -> tuple[Any, ...]:
    """Return the scalars of a call.

    They are the chosen ones, else defaults, else 0.5 for floats, 1 for integers, and zeros
    for structs.
    """
    kernel = kernel_of(function)
    defaults = inspect.signature(function).parameters.values()
    given = {
        p.name: p.default for p in defaults if p.default is not inspect.Parameter.empty
    }
    given |= sizes
    return tuple(given.get(spec.name, _stand_in(spec)) for spec in kernel.scalars)


def _stand_in(spec: ScalarSpec) -> Any:
    element = spec.element
    if issubclass(element, Struct):
        return element.unpack(bytes(element.SIZE))
    if not is_leaf(element):
        raise TypeError(spec)
    number = 1 if element.number.is_integer else 0.5
    return np.full(element.shape, number) if element.shape else number


def input_bytes(kernel: Kernel, sizes: Sizes) -> int:
    """Return the bytes of a set of inputs."""
    taken = tensor_bytes(kernel, sizes)
    return sum(taken[spec.name] for spec in kernel.inputs)


def sets(
    ctx: Context, kernel: Kernel, sizes: Sizes, integers: Integers = ANY
) -> Iterator[tuple[tuple[AnyTensor, ...], tuple[AnyTensor, ...]]]:
    """Yield the sets of inputs to rotate, each with the outputs.

    What calls write, outputs and tensors that they update, is the same for all: so a call begins
    when the one before has written it.  Small calls with outputs of their own would run at
    once: on an H200, 135 x 3017 by 3017 x 112 in two tiles, which takes 344 us, seemed to take 6.
    """
    lengths = all_lengths(kernel, sizes)
    outputs = tuple(
        ctx.empty(shape_of(spec.axes, lengths), spec.element) for spec in kernel.outputs
    )
    made: tuple[AnyTensor, ...] = ()
    for number in range(rotations(input_bytes(kernel, sizes), ctx.kind)):
        made = inputs(ctx, kernel, sizes, 100 * number, integers, made)
        yield made, outputs

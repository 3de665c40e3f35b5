"""Benchmark cases: work of a certain size, with its minimal cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias, final

from kerngen.bench.arguments import (
    ANY,
    Integers,
    Sizes,
    input_bytes,
    moved_bytes,
    scalars,
    sets,
    tensor_bytes,
)
from kerngen.bench.measure import Launch
from kerngen.runtime import Context
from kerngen.runtime.calls.choices import KernelFunction, kernel_of

Prepare: TypeAlias = Callable[[Context], Launch]
"""A function that makes the inputs on a context, and returns the launch of the work."""


class Unit(Enum):
    """The unit of a case's rate: bytes or operations per second."""

    BYTES = "bytes"
    OPERATIONS = "operations"


@final
@dataclass(frozen=True, slots=True)
class BenchCase:
    """A benchmark case: work of a certain size, with its minimal cost.

    - `bytes`, `operations`: the least that the work must move and compute; 0 if unknown
    - `largest`: the size of its largest tensor, in bytes
    - `prepare`: makes its inputs on a context, and returns its launch
    - `twin`: its key in the tables of other libraries
    - `inputs`: the bytes of a set of its inputs, for peers that rotate such; 0 if they are `bytes`
    """

    name: str
    sizes: Sizes
    unit: Unit
    bytes: int
    operations: int
    largest: int
    prepare: Prepare
    twin: str = ""
    inputs: int = 0

    @property
    def rotated(self) -> int:
        """The bytes of each set of inputs that launches read in turn."""
        return self.inputs or self.bytes

    @property
    def label(self) -> str:
        """The sizes as text: `m=1, k=4096`."""
        return ", ".join(f"{name}={size}" for name, size in self.sizes.items())

    def refusal(self, ctx: Context) -> str:
        """Return why a context can't run the case, or "" if it can."""
        if self.largest > ctx.max_tensor_bytes:
            return (
                f"a tensor takes {mebibytes(self.largest)}, and the adapter binds at "
                f"most {mebibytes(ctx.max_tensor_bytes)}"
            )
        return ""


def mebibytes(nbytes: int) -> str:
    """Return a number of bytes as text in MiB."""
    return f"{nbytes / 2**20:.4g} MiB"


def kernel_case(
    function: KernelFunction,
    sizes: Sizes,
    operations: int,
    *,
    name: str = "",
    twin: str = "",
    moved: int | None = None,
    integers: Integers = ANY,
) -> BenchCase:
    """Return the case for a call of one kernel.

    Raises ShapeError where the sizes fit no call.
    """
    kernel = kernel_of(function)
    intense = operations > 16 * max(moved_bytes(kernel, sizes), 1)

    def prepare(ctx: Context) -> Launch:
        values = scalars(function, sizes)
        rotated = [*sets(ctx, kernel, sizes, integers)]

        def launch(turn: int) -> object:
            inputs, outputs = rotated[turn % len(rotated)]
            return kernel.launch(ctx, inputs, values, outputs)

        return launch

    return BenchCase(
        name or kernel.name,
        sizes,
        Unit.OPERATIONS if intense else Unit.BYTES,
        moved_bytes(kernel, sizes) if moved is None else moved,
        operations,
        max(tensor_bytes(kernel, sizes).values(), default=0),
        prepare,
        twin,
        input_bytes(kernel, sizes),
    )

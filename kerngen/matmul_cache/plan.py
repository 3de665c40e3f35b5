"""The plan of a product: kernel, schedule and parts, with the reason.

The runtime decides by which schedule a kernel runs; this module asks it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, TypeAlias, final

from kerngen.matmul_cache.layouts import LAYOUTS, Axis, Layout, weight_shape
from kerngen.matmul_cache.split import F32_BYTES, RowRange, split_weight
from kerngen.runtime import Choice, Context, LimitError
from kerngen.runtime.tensor import STORAGE_ALIGNMENT
from kerngen.runtime.values.shapes import round_up

ScheduleName: TypeAlias = Literal["gemv", "skinny", "tiled", "reference", "empty"]


@final
@dataclass(frozen=True, slots=True)
class PlannedPart:
    """Rows `start` to `stop` of a weight, and the kernel that multiplies them.

    `strategy` is as in a `Choice` of the runtime; `shaders` are the WGSL files that run.
    """

    start: int
    stop: int
    strategy: str
    shaders: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class MatmulPlan:
    """The plan of a product: `[m, k]` times a weight with k inputs and n outputs.

    - `schedule`: 'gemv' (a matrix times a vector), 'skinny' (few rows or results, no tiles),
      'tiled', 'reference' (NumPy, without a device) or 'empty' (no elements).  All parts
      of the weight have it, but a last, shorter one may have another.
    - `kernel`: its name as `module.kernel` of `kerngen_kernels`
    - `axis`: the axis along which the weight is split into parts; None for one part
    - `why`: the reason for the schedule, as a sentence
    """

    m: int
    k: int
    n: int
    layout: Layout
    schedule: ScheduleName
    kernel: str
    parts: tuple[PlannedPart, ...]
    axis: Axis | None
    why: str


_REASONS: Mapping[ScheduleName, str] = {
    "gemv": "a product with one vector has no tile to fill and reads each weight once",
    "skinny": "so few rows or results fill no tiles, and rows share each weight that is read",
    "tiled": "the rows share tiles of the weight",
    "reference": "there is no device, and NumPy runs the kernel's reference",
    "empty": "the result has no elements, and nothing runs",
}

_JOINED: Mapping[Axis, str] = {
    "n": "whose results are put side by side",
    "k": "whose products are added up",
}


def make_plan(ctx: Context, m: int, k: int, n: int, layout: Layout) -> MatmulPlan:
    """Return the plan of a product on a context.

    Raises:
        LimitError: If the adapter can bind no row of the weight, or not all of x or of
            the result.
    """
    ranges = split_weight(layout, k, n, ctx.max_tensor_bytes)
    _check_binds(ctx, "x", (m, k))
    _check_binds(ctx, "The result", (m, n))
    kernels = LAYOUTS[layout]
    parts = tuple(_plan_part(ctx, rows, m, k, n, layout) for rows in ranges)
    schedule = _name(parts[0].strategy, m, n)
    axis = kernels.axis if len(parts) > 1 else None
    return MatmulPlan(
        m=m,
        k=k,
        n=n,
        layout=layout,
        schedule=schedule,
        kernel=kernels.vector_name if m == 1 else kernels.matrix_name,
        parts=parts,
        axis=axis,
        why=f"With m = {m} and n = {n}, {_REASONS[schedule]}; "
        f"{_say_split(ctx, k * n * F32_BYTES, len(parts), axis)}.",
    )


def _check_binds(ctx: Context, what: str, shape: tuple[int, int]) -> None:
    rows, columns = shape
    nbytes = rows * columns * F32_BYTES
    if round_up(nbytes, STORAGE_ALIGNMENT) <= ctx.max_tensor_bytes:
        return
    advice = "fewer rows at a time" if rows > 1 else "by several smaller weights"
    raise LimitError(
        f"{what} of shape {shape} takes {nbytes} bytes, and the adapter binds at most "
        f"{ctx.max_tensor_bytes}. Multiply {advice}."
    )


def _plan_part(
    ctx: Context, rows: RowRange, m: int, k: int, n: int, layout: Layout
) -> PlannedPart:
    start, stop = rows
    choices = _choices(ctx, stop - start, m, k, n, layout)
    return PlannedPart(
        start=start,
        stop=stop,
        strategy=choices[0].strategy,
        shaders=tuple(chain.from_iterable(choice.shaders for choice in choices)),
    )


def _choices(
    ctx: Context, rows: int, m: int, k: int, n: int, layout: Layout
) -> Sequence[Choice]:
    """Return the runtime's choices for a part with `rows` rows of the weight."""
    kernels = LAYOUTS[layout]
    if m == 1:
        # Both kernels call the weight's rows n and its columns k.
        _, columns = weight_shape(layout, k, n)
        return ctx.choices(kernels.vector, n=rows, k=columns)
    dims = {"m": m, "k": k, "n": n, kernels.axis: rows}
    return ctx.choices(kernels.matrix, **dims)


def _name(strategy: str, m: int, n: int) -> ScheduleName:
    """Return the schedule's name for users, by the strategy that the runtime chose."""
    if 0 in {m, n}:
        return "empty"
    match strategy.partition("_")[0]:
        case "reference":
            return "reference"
        case "gemm":
            return "tiled"
        case _:
            return "gemv" if 1 in {m, n} else "skinny"


def _say_split(ctx: Context, nbytes: int, parts: int, axis: Axis | None) -> str:
    if axis is None:
        return f"the weight's {nbytes} bytes are bound as a whole"
    return (
        f"the weight's {nbytes} bytes exceed the {ctx.max_tensor_bytes} that the adapter "
        f"binds, and are stored in {parts} parts along {axis}, {_JOINED[axis]} on the device"
    )

"""Partial derivatives of built-ins: computed, and as central differences in float64.

A partial is an expression of the language; the reference of a kernel computes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.ir.builtins.row import Builtin, Variation
from kerngen.ir.types import Scalar
from kerngen.runtime.calls.kernel import Kernel
from tests.compile import kernels_in, loaded

Array: TypeAlias = NDArray[np.float64]

STEP: Final = 1e-5
"""Of differences: truncated they are off by its square, rounded by 2e-16 / 1e-5."""
COARSE: Final = 0.5
"""Of differences of what is rounded to f16, whose values are 2^-7 apart near 8."""
TIES: Final = (-1.0, 0.0, 0.5, 1.0)
COUNT: Final = 200


def parameters(row: Builtin) -> list[tuple[str, Scalar]]:
    """The names and types of the f32 overload's arguments."""
    (overload,) = (o for o in row.overloads if o.result is Scalar.F32)
    return [*zip("xyz", overload.parameters, strict=False)]


def kernel_text(row: Builtin) -> str:
    """A kernel of the function's value and its partials; truth travels as i32."""
    assert row.partials
    typed = parameters(row)
    tensors: list[str] = []
    formal: list[str] = []
    given: list[str] = []
    for letter, scalar in typed:
        is_truth = scalar is Scalar.BOOL
        tensors.append(f"{letter}: {'i32' if is_truth else scalar.spelling}[n]")
        formal.append(f"{letter}: {scalar.spelling}")
        given.append(f"{letter}[i] > 0" if is_truth else f"{letter}[i]")
    functions = "".join(
        f"fn {row.name}_{n}({', '.join([*formal, 'f: f32'])}) -> f32 {{ {text} }}\n"
        for n, text in enumerate(row.partials)
    )
    places = range(len(row.partials))
    outputs = ", ".join(["value: f32[n]", *(f"d{n}: f32[n]" for n in places)])
    call = f"{row.name}({', '.join(given)})"
    slopes = (f"d{n}[i] = {row.name}_{n}({', '.join(given)}, f[i]);" for n in places)
    return (
        f"{functions}kernel {row.name}_slopes({', '.join(tensors)}) -> {outputs} {{ "
        f"let f[i] = {call}; value[i] = f[i]; {' '.join(slopes)} }}\n"
    )


def kernels_of(rows: Iterable[Builtin]) -> dict[str, Kernel]:
    """A kernel for each row that has partials, by its name."""
    chosen = [row for row in rows if row.partials]
    made = kernels_in(loaded("".join(map(kernel_text, chosen))))
    return dict(zip([row.name for row in chosen], made, strict=True))


def computed(kernel: Kernel, points: Array) -> list[Array]:
    """The value and the partials at points, whose columns are the arguments."""
    columns = [
        column if spec.element is gpu.f32 else column.astype(np.int32)
        for column, spec in zip(points.T, kernel.inputs, strict=True)
    ]
    found: Any = kernel.reference(*columns)
    return list(found)


def drawn(row: Builtin, *, with_ties: bool = True) -> Array:
    """Points of the domain: at random, its corners, and ties."""
    random = np.random.default_rng(7)
    columns: list[Array] = []
    corners: list[tuple[float, ...]] = []
    for (low, high), (_, scalar) in zip(row.intervals, parameters(row), strict=True):
        if scalar is not Scalar.F32:
            columns.append(random.integers(0, 2, COUNT).astype(np.float64))
            corners.append((0.0, 1.0))
            continue
        columns.append(random.uniform(max(low, -8.0), min(high, 8.0), COUNT))
        corners.append((low, high, *(x for x in TIES if low <= x <= high)))
    points = np.stack(columns, -1)
    stepped = row.variation in (Variation.STEPS, Variation.JUMPS)
    bends = stepped or row.name == "smoothstep"  # at its edges
    if with_ties and not bends:
        points = np.concatenate([points, [*product(*corners)]])
    return points if row.condition is None else points[row.condition(*points.T)]


def differences(row: Builtin, kernel: Kernel, points: Array, place: int) -> Array:
    """Central differences along an argument, and how far off they are by rounding.

    At the edge of what has a value they are the limit, an infinite one.
    """
    low, _ = row.intervals[place]
    size = np.abs(points[:, place])
    scale = np.where(size > 0, size, 1.0) if low >= 0 else np.maximum(size, 1.0)
    step = COARSE if row.name == "quantizeToF16" else STEP * scale
    ends: list[Array] = []
    for sign in (-1, 1):
        moved = points.copy()
        moved[:, place] += sign * step
        ends.append(computed(kernel, moved)[0])
    (below, above), here = ends, computed(kernel, points)[0]
    edge = np.where(np.isnan(below), above - here, here - below)
    slope = (above - below) / (2 * step)
    slope = np.where(np.isnan(slope), np.copysign(np.inf, edge), slope)
    most = np.nanmax(np.abs([below, above, here]), axis=0)
    return np.stack([slope, 1e-15 * most / step])


def within(row: Builtin, points: Array, place: int) -> NDArray[np.bool_]:
    """Where the function is defined on both sides: bounds of `clamp` that meet are not."""
    condition = row.condition
    kept = np.ones(len(points), np.bool_)
    for sign in (-1, 1):
        moved = points.copy()
        moved[:, place] += sign * STEP * np.maximum(np.abs(points[:, place]), 1.0)
        kept &= True if condition is None else condition(*moved.T)
    return kept


def check_partials(row: Builtin, kernel: Kernel) -> None:
    """Hold all partials of a row to differences, wherever they are drawn."""
    points = drawn(row)
    with np.errstate(all="ignore"):
        _, *partials = computed(kernel, points)
        typed = zip(parameters(row), partials, strict=True)
        for place, ((_, scalar), got) in enumerate(typed):
            if scalar is not Scalar.F32:
                assert not got.any()
                continue
            kept = within(row, points, place)
            wanted, noise = differences(row, kernel, points[kept], place)
            relative = 0.02 if row.name == "quantizeToF16" else 1e-6
            found = got[kept]
            close = np.abs(found - wanted) <= relative * np.abs(wanted) + noise
            wrong = ~(close | (found == wanted))
            assert not wrong.any(), (points[kept][wrong], found[wrong], wanted[wrong])

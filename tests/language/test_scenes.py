"""Structs, vectors and matrices in kernels: device and reference against loops."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.ir.builtins.table import BUILTINS, Builtin
from kerngen.ir.strategies import OPTIONS
from kerngen.ir.types import Scalar
from kerngen.runtime.calls.kernel import Kernel
from tests.budget import in_turn, sampled
from tests.compile import built, built_module, unless_unfit
from tests.language.scenes import CASES, Array, Case

SIZES = (0, 1, 6, 67)
TOLERANCE = 2e-5


def numbers_of(value: Any) -> Iterator[NDArray[np.float64]]:
    """The numbers of an array, or of each member of a record, without padding."""
    if isinstance(value, dict):
        for part in cast("dict[str, Any]", value).values():
            yield from numbers_of(part)
        return
    array = np.asarray(value)
    if array.dtype.names is None:
        yield array.astype(np.float64)
        return
    for name in array.dtype.names:
        yield from numbers_of(array[name])


def compare(found: Any, expected: Any, what: str) -> None:
    pairs = zip(numbers_of(found), numbers_of(expected), strict=True)
    for number, (one, other) in enumerate(pairs):
        assert one.size == other.size, f"{what}, member {number}"
        flat, wanted = one.reshape(-1), other.reshape(-1)
        np.testing.assert_allclose(
            flat, wanted, TOLERANCE, TOLERANCE, err_msg=f"{what}, member {number}"
        )


@pytest.mark.parametrize(("case", "strategy"), in_turn(CASES, OPTIONS, 6))
def test_kernels_give_what_loops_give(
    ctx: gpu.Context, case: Case, strategy: str
) -> None:
    text = f"{case.text}\nschedule f {{ {strategy} }}" if strategy else case.text
    with unless_unfit(strategy), built_module(text) as module:
        for size in SIZES:
            if size == 0 and case.name == "the nearest sphere":
                continue
            check(ctx, case, module, size)


def check(ctx: gpu.Context, case: Case, module: ModuleType, size: int) -> None:
    (kernel,) = (x for x in vars(module).values() if isinstance(x, Kernel))
    tensors, scalars = case.given(module, np.random.default_rng(size), size)
    values = tuple(scalars.values())
    inputs = [spec for spec in kernel.tensors if spec.access != "write"]
    changed = [n for n, spec in enumerate(inputs) if spec.access == "update"]
    with np.errstate(all="ignore"):
        expected = case.meaning(*(array.copy() for array in tensors), **scalars)

    given = tuple(
        ctx.tensor(array, spec.element)
        for array, spec in zip(tensors, inputs, strict=True)
    )
    made = kernel.launch(ctx, given, values)
    found = [given[n].numpy() for n in changed] + [t.numpy() for t in made]
    for number, wanted in enumerate(expected):
        compare(found[number], wanted, f"n = {size}, tensor {number}")

    copies = [array.copy() for array in tensors]
    referred: Any = kernel.reference(*copies, **scalars)
    results: list[Any] = [*referred] if isinstance(referred, tuple) else [referred]
    twins = [copies[n] for n in changed] + [r for r in results if r is not None]
    for number, wanted in enumerate(expected):
        compare(twins[number], wanted, f"reference, n = {size}, tensor {number}")


# Built-ins work on each component


def _with_floats(row: Builtin) -> bool:
    overloads = [o for o in row.overloads if set(o.parameters) == {Scalar.F32}]
    return any(o.result is Scalar.F32 for o in overloads)


@pytest.mark.parametrize("width", sampled([3, 2, 4], 3))
def test_built_ins_of_vectors_are_those_of_their_components(
    ctx: gpu.Context, width: int
) -> None:
    rows = [row for row in BUILTINS.values() if _with_floats(row)]
    assert len(rows) > 30
    rng = np.random.default_rng(width)
    arrays = [rng.uniform(0.1, 0.9, (5, width)).astype(np.float32) for _ in range(3)]
    for part in range(0, len(rows), 7):
        _compare_rows(ctx, rows[part : part + 7], width, arrays)


def _compare_rows(
    ctx: gpu.Context, rows: list[Builtin], width: int, arrays: list[Array]
) -> None:
    vector, axes = f"vec{width}f", f"f32[n, {width}]"
    text = f"""
    {_kernel("whole", rows, f"{vector}[n]", "i")}
    {_kernel("single", rows, axes, "i, k")}
    """
    with built(text) as (first, second):
        vectors = tuple(ctx.tensor(array, getattr(gpu, vector)) for array in arrays)
        numbers = tuple(ctx.tensor(array, gpu.f32) for array in arrays)
        wholes = first.launch(ctx, vectors, ())
        singles = second.launch(ctx, numbers, ())
        for row, one, other in zip(rows, wholes, singles, strict=True):
            np.testing.assert_array_max_ulp(one.numpy(), other.numpy(), 4)
            assert np.isfinite(one.numpy()).all() or row.name == "acosh", row.name


def _kernel(name: str, rows: list[Builtin], type_: str, at: str) -> str:
    """A kernel with an output per row; it reads all of its inputs."""
    outputs = ", ".join(f"y{n}: {type_}" for n, _ in enumerate(rows))
    reads = [f"{letter}[{at}]" for letter in "abc"]
    calls = [f"{row.name}({', '.join(reads[: row.arity])})" for row in rows]
    body = [f"y{n}[{at}] = {call};" for n, call in enumerate(calls)]
    inputs = ", ".join(f"{letter}: {type_}" for letter in "abc")
    body.append(f"y0[{at}] += 0.0 * ({' + '.join(reads)});")
    return f"kernel {name}({inputs}) -> {outputs} {{ {' '.join(body)} }}"

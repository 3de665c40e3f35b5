"""Vectors, matrices and structs, on the device and in references, against loops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.ir.strategies import OPTIONS
from kerngen.runtime.calls.kernel import Kernel
from tests.budget import in_turn, sampled
from tests.compile import built, module_of, unless_unfit
from tests.language.composites import COMPOSITES, Array, Composite, Real
from tests.language.records import RECORDS

ALL = (*COMPOSITES, *RECORDS)
TOLERANCE = {"float16": 1e-3, "float32": 2e-5, "float64": 1e-12}


@pytest.mark.parametrize(
    ("case", "real"),
    sampled(
        [(case, real) for case in ALL for real in case.reals],
        3,
        lambda each: f"{each[0]}-{each[1].__name__}",
    ),
)
def test_references(case: Composite, real: Real) -> None:
    with built(case.text) as (kernel,):
        arguments, meant = prepare(case, kernel, real)
        made = kernel.reference(*arguments, **case.scalars(module_of(kernel)))
        check(list(outcome(kernel, made, arguments)), meant, real)


@pytest.mark.parametrize(("case", "strategy"), in_turn(ALL, OPTIONS, 8))
def test_devices(ctx: gpu.Context, case: Composite, strategy: str) -> None:
    text = f"{case.text}\nschedule f {{ {strategy} }}" if strategy else case.text
    with unless_unfit(strategy), built(text) as (kernel,):
        arguments, meant = prepare(case, kernel, np.float32)
        scalars = case.scalars(module_of(kernel))
        tensors = [
            ctx.tensor(array, spec.element)
            for array, spec in zip(arguments, kernel.inputs, strict=True)
        ]
        given = tuple(scalars[spec.name] for spec in kernel.scalars)
        out = (None,) * len(kernel.outputs)
        made = kernel.launch(ctx, tuple(tensors), given, out)
        arrays = [tensor.numpy() for tensor in (*made, *tensors)]
        split = len(made)
        check(list(outcome(kernel, arrays[:split], arrays[split:])), meant, np.float32)


def prepare(
    case: Composite, kernel: Kernel, real: Real
) -> tuple[tuple[Any, ...], list[Any]]:
    """Return the arguments, and what is meant to become of them."""
    module = module_of(kernel)
    arguments = case.arguments(module, real)
    wide = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in arguments]
    return arguments, list(case.meaning(*wide, **case.scalars(module)))


def outcome(kernel: Kernel, made: Any, arguments: Any) -> Iterator[Array]:
    """Yield the outputs, then the tensors that change."""
    yield from made if isinstance(made, tuple | list) else (made,)
    for array, spec in zip(arguments, kernel.inputs, strict=True):
        if spec.access == "update":
            yield array


def check(got: list[Array], meant: list[Any], real: Real) -> None:
    assert len(got) == len(meant)
    for array, wanted in zip(got, meant, strict=True):
        if array.dtype.names:
            assert array.dtype.names == tuple(wanted)
            for member in array.dtype.names:
                check_values(plain(array[member]), np.asarray(wanted[member]))
        else:
            values = np.asarray(wanted)
            assert array.dtype == (real if values.dtype == np.float64 else values.dtype)
            check_values(array, values)


def plain(array: NDArray[Any]) -> Array:
    return array["value"] if array.dtype.names else array


def check_values(array: Array, wanted: Array) -> None:
    assert array.shape == wanted.shape
    if array.dtype.kind != "f":
        assert array.dtype == wanted.dtype
        assert array.tolist() == wanted.tolist()
        return
    tolerance = TOLERANCE[array.dtype.name]
    np.testing.assert_allclose(array, wanted, rtol=tolerance, atol=tolerance)

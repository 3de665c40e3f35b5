"""Holding what kernels give to what NumPy says that they mean."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import kerngen.runtime as gpu
from kerngen.compiler import Compiler
from kerngen.ir.staging.passes import form_stages
from kerngen.runtime.calls.kernel import Kernel
from kerngen.schedule import schedule_kernel
from kerngen.schedule.defaults import default_choices
from kerngen.source.diagnostic import CompileError
from tests.budget import is_night
from tests.compile import DSL, PATH, built, library_of
from tests.language.cases import Array, Arrays, Case, Inputs

SMALL_TILES = "gemm tile(16, 32, 8) micro(4, 4)"
"""Tiles that Mesa compiles in 0.1 CPU seconds: chosen ones take it 0.4 to 0.8."""


def fitting(case: Case, strategy: str) -> str:
    """The case's text with a schedule for all the stages that the strategy fits."""
    return f"{case.text}\nschedule f {{ {strategy} }}" if strategy else case.text


@contextmanager
def kernel_of(case: Case, strategy: str, *, large: bool = False) -> Generator[Kernel]:
    """Build a case; by day with small tiles where others are chosen, unless `large`.

    Those are chosen wherever tiles fit; by day it spares the compiler half of what it
    does for a product.
    """
    fits = not (strategy or large) and fits_tiles(case)
    if not (strategy or large):
        assert chooses_tiles(case) is fits
    given = SMALL_TILES if fits and not is_night() else strategy
    with built(fitting(case, given)) as (kernel,):
        yield kernel


def chooses_tiles(case: Case) -> bool:
    """Whether the compiler runs a stage of a case with `gemm`, if the user asks for none."""
    module = Compiler(library_of({PATH: case.text}, beside=DSL)).module(PATH)
    checked_tasks = vars(schedule_kernel)["_checked_tasks"]
    return any(
        choice.strategy == "gemm"
        for kernel in module.kernels
        for task in checked_tasks(form_stages(kernel), module)
        for choice in default_choices(task)
    )


def fits_tiles(case: Case) -> bool:
    """Whether `gemm` fits a stage of a case."""
    compiler = Compiler(library_of({PATH: fitting(case, SMALL_TILES)}, beside=DSL))
    try:
        compiler.check(PATH)
    except CompileError as error:
        if [fault.code for fault in error.diagnostics] != ["KG0751"]:
            raise
        return False
    return True


def check(ctx: gpu.Context, case: Case, kernel: Kernel, size: int) -> None:
    """Compare what the device and what the reference give with what NumPy says."""
    arrays = case.arguments(Inputs(size), size)
    meaning: Callable[..., Arrays] = case.meaning
    meant = meaning(*arrays)
    ran = [*run(ctx, case, kernel, arrays)]
    referred = [*refer(case, kernel, arrays)]
    assert len(ran) == len(referred) == len(meant)
    for got, reference, wanted in zip(ran, referred, meant, strict=True):
        np.testing.assert_array_equal(got, wanted, strict=False, err_msg=f"n = {size}")
        np.testing.assert_array_equal(reference, wanted, err_msg=f"n = {size}")
        assert got.shape == np.shape(reference) == np.shape(wanted)
        assert got.dtype == np.asarray(reference).dtype


def run(
    ctx: gpu.Context, case: Case, kernel: Kernel, arrays: Arrays
) -> Iterator[Array]:
    """Yield the tensors that change, then the outputs, from the device."""
    tensors = tuple(
        ctx.tensor(array, spec.element)
        for array, spec in zip(arrays, kernel.inputs, strict=True)
    )
    scalars = tuple(scalar_values(case, kernel))
    outputs = [spec for spec in kernel.tensors if spec.access == "write"]
    made = kernel.launch(ctx, tensors, scalars, (None,) * len(outputs))
    for tensor, spec in zip(tensors, kernel.tensors, strict=False):
        if spec.access == "update":
            yield tensor.numpy()
    for tensor in made:
        yield tensor.numpy()


def scalar_values(case: Case, kernel: Kernel) -> Iterator[Any]:
    """Yield the scalars in order; the only default among the cases is 2.0."""
    for spec in kernel.scalars:
        yield case.scalars.get(spec.name, 2.0)


def refer(case: Case, kernel: Kernel, arrays: Arrays) -> Iterator[Array]:
    """Yield the same from the NumPy reference."""
    copies = [array.copy() for array in arrays]
    made = kernel.reference(*copies, **case.scalars)
    for array, spec in zip(copies, kernel.tensors, strict=False):
        if spec.access == "update":
            yield array
    if made is not None:
        yield from made if isinstance(made, tuple) else (made,)

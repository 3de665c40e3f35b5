"""Random kernels on the adapter against the interpreter, exactly."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import kerngen.runtime as gpu
from kerngen.emit import emit_binding
from kerngen.ir.fold import fold
from kerngen.ir.nodes import Expr, Extent, Kernel, Module, Schedule
from kerngen.ir.staging import form_stages
from kerngen.ir.verify_stages import verify_stages
from kerngen.ir.walk import map_children
from kerngen.runtime import kernel as run_time
from kerngen.schedule.lower import lower
from kerngen.schedule.program import KernelProgram
from kerngen.source.diagnostic import CompileError
from tests.emit.interpreter import Interpreter, TooLargeError
from tests.language.random_kernels import SCALARS, SPAN, TENSORS, draw_arrays, kernels
from tests.numeric.generated import imported

LARGEST = 2.0**19
"""Sums of up to nine such numbers are exact in f32."""

TILE = (("tile", (32, 16, 4)), ("micro", (4, 4)))
WAYS = (
    (),
    (Schedule(None, None, "generic", (), SPAN),),
    (Schedule(None, None, "reduce", (), SPAN),),
    (Schedule(None, None, "gemm", TILE, SPAN),),
)
"""The compiler's own choice, the strategy that accepts every stage, and two more."""

SIZES = st.sampled_from((1, 2, 3, 4, 5, 8))

_numbers = count()

quick = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def folded(kernel: Kernel) -> Kernel:
    """The kernel as the checker would hand it on: without constants to compute."""

    def visit(expr: Expr) -> Expr:
        return fold(map_children(expr, visit))

    return replace(
        kernel,
        body=tuple(replace(s, value=visit(s.value)) for s in kernel.body),
        signature="kernel random()",
        order=(*(x.name for x in TENSORS), *(x.name for x in kernel.parameters)),
    )


def fits(kernel: Kernel, schedules: tuple[Schedule, ...]) -> bool:
    """Whether a schedule suits some stage of the kernel."""
    try:
        lower_alone(replace(kernel, schedules=schedules), "random")
    except CompileError as error:
        if [fault.code for fault in error.diagnostics] != ["KG0751"]:
            raise
        return False
    return True


def lower_alone(kernel: Kernel, name: str) -> tuple[Module, KernelProgram]:
    """Form and verify the kernel's stages, and lower them."""
    module = Module(f"{name}.kern", "", (), (kernel,))
    staged = form_stages(kernel)
    assert verify_stages(staged) == []
    return module, lower(staged, module, stem=name, origin="a test")


@contextmanager
def on_the_host(kernel: Kernel) -> Generator[run_time.Kernel]:
    """Lower and emit a kernel, and import what came out."""
    name = f"random_{next(_numbers)}"
    module, program = lower_alone(kernel, name)
    files = {f"{name}.py": emit_binding(module, (program,), "0" * 64).encode()}
    for stage in program.stages:
        for schedule in stage.schedules:
            for variant in schedule.variants:
                for shader in variant.shaders:
                    files[f"wgsl/{shader.stem}.wgsl"] = shader.text.encode()
    with imported(name, files) as (described,):
        yield described


def run(ctx: gpu.Context, kernel: run_time.Kernel, arrays: dict[str, Any]) -> list[Any]:
    """The tensor that changes, then the outputs."""
    tensors = {
        name: ctx.tensor(array.astype(np.float32) if array.dtype == float else array)
        for name, array in arrays.items()
    }
    outputs = kernel.launch(
        ctx,
        tuple(tensors.values()),
        tuple(SCALARS.values()),
        (None,) * len(kernel.outputs),
    )
    return [tensor.numpy() for tensor in (tensors["p"], *outputs)]


def hold_to_interpreter(ctx: gpu.Context, how: settings) -> None:
    """Run random kernels in every way that fits them."""

    @how
    @given(kernels(), st.tuples(*[SIZES] * 3), st.integers(0, 99))
    def check(kernel: Kernel, sizes: tuple[int, int, int], seed: int) -> None:
        lengths: dict[Extent, int] = {**dict(zip("mkn", sizes, strict=True)), 3: 3}
        arrays = draw_arrays(lengths, seed)
        theirs = {name: array.copy() for name, array in arrays.items()}
        folded_kernel = folded(kernel)
        assume(form_stages(folded_kernel).stages)
        try:
            outputs = Interpreter(kernel, theirs, SCALARS, LARGEST).run()
        except TooLargeError:
            assume(False)
            return
        expected = [theirs["p"], *outputs]
        for way in WAYS:
            if not fits(folded_kernel, way):
                continue
            with on_the_host(replace(folded_kernel, schedules=way)) as described:
                got = run(ctx, described, arrays)
            for mine, wanted in zip(got, expected, strict=True):
                np.testing.assert_array_equal(mine, wanted, err_msg=str(way))

    check()


def test_random_kernels(ctx: gpu.Context) -> None:
    hold_to_interpreter(ctx, quick)


@pytest.mark.nightly
def test_many_random_kernels(ctx: gpu.Context) -> None:
    hold_to_interpreter(ctx, settings(quick, max_examples=2000))

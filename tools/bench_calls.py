"""Measure what the runtime costs in Python: calls, first calls and imports.

    python tools/bench_calls.py

Recording one call of `relu` is to take at most 4 microseconds with `out=`, and 6 with a
new output; one of two dispatches with a temporary at most 9. Finishing and submitting are
apart.  First calls and imports run in processes of their
own: the first call of a small kernel is to take at most 30 ms beyond opening the device,
of a product 300 ms; importing the runtime and one module 120 ms beyond NumPy and wgpu.
"""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from itertools import cycle
from statistics import median
from time import perf_counter, thread_time
from typing import Any

import kerngen.runtime as gpu
from kerngen.runtime import f32
from kerngen_kernels import elementwise, matmul, norm, optim, reduction, softmax

CALLS, RUNS, PROCESSES = 1000, 15, 5

IMPORT = """
import time, numpy, wgpu
start = time.perf_counter()
import kerngen.runtime
{module}
print(time.perf_counter() - start)
"""
MODULES = (
    "",
    "from kerngen_kernels import elementwise",
    "from kerngen_kernels import matmul",
)

FIRST = """
import time, numpy
import kerngen.runtime as gpu
from kerngen.runtime import f32
from kerngen_kernels import {module}
start = time.perf_counter()
ctx = gpu.open()
opened = time.perf_counter()
a = ctx.tensor(numpy.ones({shape}, numpy.float32))
a.numpy()
ready = time.perf_counter()
y = {module}.{call}
ctx.submit()
called = time.perf_counter()
y.numpy()
print(opened - start, ready - opened, called - ready, time.perf_counter() - called)
"""
FIRSTS = (
    ("elementwise", "add(a, a)", "(1000,)"),
    ("elementwise", "relu(a)", "(1003,)"),
    ("softmax", "softmax(a)", "(512, 1024)"),
    ("matmul", "matmul_nn(a, a)", "(1024, 1024)"),
    ("matmul", "matmul_nt(a, a)", "(1023, 1023)"),
)


def calls(ctx: gpu.Context) -> dict[str, Callable[[], object]]:
    """Calls that write to tensors that are there already."""
    x, y, z = (ctx.zeros(4096, f32) for _ in range(3))
    a, b, c = (ctx.zeros((64, 64), f32) for _ in range(3))
    long, ring = ctx.zeros(1 << 16, f32), ctx.zeros((1 << 14, 64), f32)
    views = cycle(ring[i : i + 1].reshape(-1) for i in range(len(ring)))
    m, v, row = ctx.zeros(4096, f32), ctx.zeros(4096, f32), ctx.zeros(64, f32)
    return {
        "relu, 2 tensors": lambda: elementwise.relu(x, out=y),
        "add, 3 tensors": lambda: elementwise.add(x, y, out=z),
        "axpy, 2 tensors, 1 scalar": lambda: elementwise.axpy(x, y, alpha=0.5),
        "fma, 4 tensors": lambda: elementwise.fma(x, y, m, out=z),
        "softmax, 2 tensors": lambda: softmax.softmax(a, out=b),
        "matmul_nn, 3 tensors": lambda: matmul.matmul_nn(a, b, out=c),
        "rmsnorm, 3 tensors": lambda: norm.rmsnorm(a, row, out=b),
        "adamw, 4 tensors, 6 scalars": lambda: optim.adamw(x, y, m, v, lr=1e-3, step=7),
        "add, a new output": lambda: elementwise.add(x, y),
        "sum, 2 dispatches, a temporary": lambda: reduction.sum(long),
        "relu of a view, in a new bind group": lambda: elementwise.relu(
            next(views), out=row
        ),
        "set_bind_group and dispatch alone": bare(ctx),
    }


def bare(ctx: gpu.Context) -> Callable[[], None]:
    """Return what wgpu has to do for any call, with a pass that is never ended."""
    x = ctx.zeros(4096, f32)
    elementwise.relu(x, out=ctx.zeros(4096, f32))
    backend: Any = ctx.backend
    group, *_ = backend._bind_groups.cache._entries.values()  # noqa: SLF001
    compute = ctx.device.create_command_encoder().begin_compute_pass()

    def work() -> None:
        compute.set_bind_group(0, group, (0,))
        compute.dispatch_workgroups(1, 1)

    return work


def recorded(
    ctx: gpu.Context, call: Callable[[], object], calls: int = CALLS
) -> tuple[float, float]:
    """Return what one recorded call takes, and to finish and submit one, in seconds."""
    call()
    ctx.submit()
    with ctx.batch():
        start = thread_time()
        for _ in range(calls):
            call()
        stop = thread_time()
        ctx.submit()
        end = thread_time()
    ctx.zeros(1, f32).numpy()
    return (stop - start) / calls, (end - stop) / calls


def print_calls(ctx: gpu.Context) -> None:
    """Print a row for each call: recording, and what finishing and submitting adds."""
    print(f"{'microseconds per call':34} {'record':>7} {'best':>7} {'submit':>7}")
    for name, call in calls(ctx).items():
        times = [recorded(ctx, call) for _ in range(RUNS)]
        record, submit = ([each[i] * 1e6 for each in times] for i in (0, 1))
        print(
            f"{name:34} {median(record):7.2f} {min(record):7.2f} {median(submit):7.2f}"
        )


def print_replays_and_reads(ctx: gpu.Context) -> None:
    """Print what a dispatch of a replay takes, and a read of 4 KB by the wall clock."""
    x, y = ctx.zeros(1024, f32), ctx.zeros(1024, f32)
    with ctx.capture() as step:
        for _ in range(CALLS // 2):
            elementwise.relu(x, out=y)
            elementwise.axpy(x, y, alpha=0.5)
    times = [recorded(ctx, step.replay, 1) for _ in range(RUNS)]
    for name, column in zip(
        ("record", "submit"), zip(*times, strict=True), strict=True
    ):
        each = median(column) / CALLS * 1e6
        print(f"{f'a dispatch of a replay, {name}':34} {each:7.2f}")
    reads: list[float] = []
    for _ in range(20 * RUNS):
        start = perf_counter()
        y.numpy()
        reads.append(perf_counter() - start)
    print(f"{'a read of 4 KB, by the wall clock':34} {median(reads) * 1e6:7.2f}")


def in_processes(program: str) -> list[float]:
    """Run a program in some new processes; return the medians of what they print."""
    command = [sys.executable, "-c", program]
    lines = [
        subprocess.check_output(command, text=True)  # noqa: S603 - our own programs
        for _ in range(PROCESSES)
    ]
    columns = zip(*(map(float, line.split()) for line in lines), strict=True)
    return [median(column) * 1e3 for column in columns]


def print_imports() -> None:
    """Print what imports take beyond those of NumPy and wgpu."""
    print(f"\n{'milliseconds to import, beyond numpy and wgpu':54} {'':>7}")
    for module in MODULES:
        (time,) = in_processes(IMPORT.format(module=module))
        print(f"{module or 'import kerngen.runtime':54} {time:7.1f}")


def print_first_calls() -> None:
    """Print what first calls take."""
    names = ("open", "upload", "call", "run")
    print(f"\n{'milliseconds in a new process':38}", *(f"{n:>7}" for n in names))
    for module, call, shape in FIRSTS:
        times = in_processes(FIRST.format(module=module, call=call, shape=shape))
        print(f"{f'{module}.{call} {shape}':38}", *(f"{time:7.1f}" for time in times))


def main() -> None:
    """Print all tables."""
    ArgumentParser(description=__doc__).parse_args()
    with gpu.open() as ctx:
        print(f"{ctx}, {CALLS} calls, median of {RUNS}")
        print_calls(ctx)
        print_replays_and_reads(ctx)
    print_imports()
    print_first_calls()


if __name__ == "__main__":
    main()

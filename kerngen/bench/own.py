"""Benchmark cases for a user's own kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from itertools import repeat
from math import ceil, prod
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from kerngen.bench.arguments import Sizes, all_lengths, own_sizes, tensor_bytes
from kerngen.bench.case import BenchCase, kernel_case
from kerngen.compiler import CompiledModule
from kerngen.jit.memory import functions
from kerngen.runtime.calls.choices import kernel_of
from kerngen.runtime.calls.kernel import Kernel
from kerngen.schedule.costs import Polynomial, bytes_moved, operations
from kerngen.schedule.program import KernelProgram

LARGEST_BYTES: Final = {"gpu": 2**26, "software": 2**22, "reference": 2**18}
"""The most bytes of a tensor at default sizes, by kind of adapter."""


def own_cases(
    compiled: CompiledModule,
    module: ModuleType,
    only: str,
    chosen: tuple[Sizes, ...],
    kind: str,
) -> Iterator[BenchCase]:
    """Yield the cases of a source's kernels, or of `only` one, at the chosen sizes.

    Raises ShapeError where sizes fit no call, and KeyError where one is missing.
    """
    of = functions(compiled, module)
    for program in compiled.programs:
        name = program.staged.kernel.name
        if only in {"", name}:
            function = of[name]
            for sizes in chosen or (default_sizes(kernel_of(function), kind),):
                yield _case(program, function, sizes)


def _case(
    program: KernelProgram, function: Callable[..., Any], sizes: Sizes
) -> BenchCase:
    staged = program.staged
    kernel = kernel_of(function)
    used = own_sizes(kernel, sizes)
    lengths = all_lengths(kernel, used)
    moved = bytes_moved(staged.stages, staged.temporaries)
    done = operations(staged.stages, program.functions)
    return kernel_case(
        function,
        used,
        evaluate(done, lengths),
        moved=evaluate(moved, lengths),
    )


def standard_folders() -> list[Path]:
    """Return the folders of the standard kernels' modules, if installed."""
    spec = find_spec("kerngen_kernels")
    folders = (spec and spec.submodule_search_locations) or ()
    return [Path(each).resolve() for each in folders]


def evaluate(polynomial: Polynomial, lengths: Mapping[str, int]) -> int:
    """Return the value of a cost polynomial for some lengths."""
    return ceil(
        sum(
            coefficient * prod(e if isinstance(e, int) else lengths[e] for e in extents)
            for extents, coefficient in polynomial.items()
        )
    )


def default_sizes(kernel: Kernel, kind: str) -> Sizes:
    """Return one length for all axes: a power of two that keeps tensors modest."""
    names = kernel.size_names
    best: Sizes = {}
    for power in range(29):
        sizes: Sizes = dict(zip(names, repeat(2**power), strict=False))
        if max(tensor_bytes(kernel, sizes).values(), default=0) > LARGEST_BYTES[kind]:
            break
        best = sizes
    return best

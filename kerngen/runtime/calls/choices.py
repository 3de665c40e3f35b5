"""`Context.choices`: which schedules a kernel would run for some dims."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import SupportsIndex, TypeAlias, final

from kerngen.plan.tree import dispatches_in
from kerngen.plan.wgsl import compact
from kerngen.runtime.calls.kernel import KERNEL, Dims, Kernel
from kerngen.runtime.calls.ranges import derive
from kerngen.runtime.errors import DtypeError, ShapeError, UnknownNameError

KernelFunction: TypeAlias = Callable[..., object]
"""A function of a generated module, `kerngen_kernels.matmul.matmul_nt` for one."""


@final
@dataclass(frozen=True, slots=True)
class Choice:
    """The schedule that runs a stage, and any stages right after it.

    `strategy` is the schedule's, with the options that were asked for: 'gemv',
    'gemv_rows4', 'gemm', ...; or 'reference', where NumPy runs the kernel.  `shaders`
    name what is dispatched, in order, without what would have no workgroups:
    'softmax.y.map' is entry point `main` of `softmax.y.map.wgsl`, and
    'softmax.y.map:edge' is `edge` of that file.
    """

    stage: str
    strategy: str
    shaders: tuple[str, ...]


def kernel_of(function: KernelFunction) -> Kernel:
    """Return the kernel that a generated function launches.

    Raises:
        DtypeError: If the function is not a generated one.
    """
    kernel = getattr(function, KERNEL, None)
    if isinstance(kernel, Kernel):
        return kernel
    raise DtypeError(
        f"choices: expected a kernel's function, as in kerngen_kernels.matmul.matmul_nt, "
        f"got {function!r}."
    )


def wgsl(function: KernelFunction, shader: str) -> str:
    """Return the text of a shader, by its name in `Choice.shaders`.

    Raises:
        DtypeError: If the function is not a generated one.
        UnknownNameError: If its kernel has no such shader.
    """
    kernel = kernel_of(function)
    known = {dispatch.wgsl: dispatch for dispatch in dispatches_in(kernel.body)}
    if shader not in known:
        raise UnknownNameError(
            f"{kernel.place}: there is no shader '{shader}': there are "
            f"{', '.join(known) or 'none'}."
        )
    return compact(kernel.shader(known[shader]))


def all_dims(kernel: Kernel, given: Dims) -> dict[str, int]:
    """Return the given dims with the derived ones added.

    Raises:
        ShapeError: If a dim is missing, unknown, negative, or no integer.
    """
    expected = kernel.size_names
    if set(given) != set(expected) or not all(_is_dim(given[x]) for x in kernel.dims):
        raise ShapeError(
            f"{kernel.place}: choices need {', '.join(expected)}, and dims are integers "
            f"of 0 or more; got {dict(given)}."
        )
    lengths = dict(given)
    derive(kernel, lengths)
    return lengths


def _is_dim(value: object) -> bool:
    return isinstance(value, SupportsIndex) and value.__index__() >= 0

"""The functions and constants that a module's kernels use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kerngen.ir.module import Module
from kerngen.ir.nodes import ConstRef, Expr, Function, FunctionCall, Kernel
from kerngen.ir.walk import walk


def kernel_expressions(kernel: Kernel) -> Iterator[Expr]:
    """Yield all expressions of a kernel: its values, and the conditions on its calls."""
    yield from (host.value for host in kernel.hosts)
    yield from (statement.value for statement in kernel.body)
    for schedule in kernel.schedules:
        if schedule.guard is not None:
            yield schedule.guard


def function_expressions(function: Function) -> Iterator[Expr]:
    """Yield a function's lets in order, then its value."""
    yield from (value for _, value in function.lets)
    yield function.body


def called_functions(expressions: Iterable[Expr]) -> frozenset[str]:
    """Return the names of the user's functions that the expressions call directly."""
    return frozenset(
        node.function
        for expression in expressions
        for node in walk(expression)
        if isinstance(node, FunctionCall)
    )


def used_functions(module: Module) -> tuple[Function, ...]:
    """Return the functions that the kernels call, also indirectly; callees first."""
    wanted: set[str] = set()
    for kernel in module.kernels:
        wanted |= called_functions(kernel_expressions(kernel))
    for function in reversed(module.functions):
        if function.name in wanted:
            wanted |= called_functions(function_expressions(function))
    return tuple(function for function in module.functions if function.name in wanted)


def used_constants(module: Module) -> dict[str, float | int | bool]:
    """Return the `const` items that functions and kernels read, in order of use."""
    expressions = [
        *(e for f in used_functions(module) for e in function_expressions(f)),
        *(e for kernel in module.kernels for e in kernel_expressions(kernel)),
    ]
    return {
        node.name: node.value
        for expression in expressions
        for node in walk(expression)
        if isinstance(node, ConstRef)
    }

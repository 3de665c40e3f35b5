"""Sizes of axes and domains, for the host and as WGSL, and trip counts of loops.

A `Size` is a formula that the host evaluates at each call, as for the number of workgroups;
`to_wgsl` writes the same formula into a shader: `ceil_div(n, 64)` is `(u.n + 63u) >> 6u`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import assert_never

from kerngen.ir.nodes import Expr, Extent, Index, Reduce
from kerngen.ir.walk import children
from kerngen.plan import size as host
from kerngen.plan.size import ZERO, Size, add
from kerngen.schedule.extents import MergedExtent
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.task import Task
from kerngen.shader import tree as t


def extent_size(extent: Extent) -> host.Size:
    """Return the length of an axis."""
    match extent:
        case int(length):
            return host.Literal(length)
        case MergedExtent():
            return host.product_of(map(extent_size, extent.axes))
        case str(dim):
            return host.Symbol(dim)


def domain_size(indices: Iterable[Index]) -> host.Size:
    """Return the number of elements of a domain."""
    return host.product_of(extent_size(index.extent) for index in indices)


def all_divisible(extents: Iterable[Extent], by: int) -> host.Guard:
    """Return the guard that every axis length is a multiple of `by`."""
    return host.all_of(*(host.divides(by, extent_size(extent)) for extent in extents))


def at_most(indices: Iterable[Index], most: int) -> host.Guard:
    """Return the guard that a domain has at most `most` elements."""
    return host.compare("<=", domain_size(indices), most)


def to_wgsl(
    size: host.Size,
    shader: ShaderBuilder,
    named: Mapping[host.Size, t.Expr] | None = None,
) -> t.Expr:
    """Return a size as a WGSL expression, in u32.

    `named` has variables of the shader for some sizes, which are used for these.
    """
    known = named or {}
    if size in known:
        return known[size]
    match size:
        case host.Literal(value):
            return t.u32(value)
        case host.Symbol(name):
            return shader.extent(name)
        # In u32: a size that a shader computes must stay below 2^32.
        case host.Apply(function, operands):
            return _apply(function, [to_wgsl(each, shader, known) for each in operands])
        case host.Select(host.Compare(op, left, right), then, otherwise):
            chosen = t.Binary(
                op, to_wgsl(left, shader, known), to_wgsl(right, shader, known)
            )
            either = (to_wgsl(each, shader, known) for each in (otherwise, then))
            return t.call("select", *either, chosen)
        case host.Select():
            raise AssertionError(f"no shader computes {size}")
        case _:
            assert_never(size)


def _apply(function: str, operands: list[t.Expr]) -> t.Expr:
    match function, operands:
        case "+", _:
            return reduce(t.add, operands)
        case "*", _:
            return reduce(t.multiply, operands)
        case "%", [left, right]:
            return left % right
        case "/", [left, right]:
            return left // right
        case "ceil_div", [left, right]:
            return ceil_division(left, right)
        case _:
            return t.call(function, *operands)


def ceil_division(value: t.Expr, by: t.Expr) -> t.Expr:
    """Return the WGSL of `value / by`, rounded up."""
    number = t.as_int(by)
    above = t.Binary("-", value + by, t.ONE) if number is None else value + (number - 1)
    return above // by


# Trip counts of an invocation's loops: llvmpipe ends loops after 65,535 turns in all, so that
# the runtime refuses calls with more there.


def loop_trips(task: Task, shared: Mapping[Reduce, Size]) -> Size:
    """Return how many trips the loops of an invocation take in a stage, all added up.

    `shared` has the trips of reductions whose terms several invocations share; all other
    reductions are serial loops over all terms.
    """
    return add(*(_trips(value, shared) for value in task.values))


def serial_trips(exprs: Iterable[Expr]) -> Size:
    """Return how many trips the loops for reductions in some expressions take, if serial."""
    return add(*(_trips(expr, {}) for expr in exprs))


def nested_trips(outermost: Size, inner: tuple[Index, ...]) -> Size:
    """Return the trips of a loop of `outermost` turns and of the loops over `inner` in it."""
    if not inner:
        return outermost
    first, *rest = inner
    return outermost * (nested_trips(extent_size(first.extent), tuple(rest)) + 1)


def _trips(expr: Expr, shared: Mapping[Reduce, Size]) -> Size:
    inner = add(*(_trips(child, shared) for child in children(expr)))
    if not isinstance(expr, Reduce):
        return inner
    own = shared.get(expr)
    if own is None:
        first, *rest = expr.indices
        own = nested_trips(extent_size(first.extent), tuple(rest))
    return own * (inner + 1) if inner != ZERO else own

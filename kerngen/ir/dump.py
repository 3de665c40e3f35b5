"""The typed IR as text, for tests and for reading.

Expressions are in full parentheses, and indices have their extents where they are bound:

    output y[i < n]: f32 = (sum[j < k] (a[i, j] * x[j]))

`1` is an i32, `1u` a u32 and `1.0` an f32; `~` marks a clamped subscript, as in `x[~ids[i]]`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from kerngen.ir import nodes as ir
from kerngen.ir.module import Module
from kerngen.ir.store import StoreAt
from kerngen.ir.types import Scalar
from kerngen.ir.walk import subscript_value

_INDENT = "    "


def dump_module(module: Module) -> str:
    """Return a module as text."""
    blocks = [*map(_function, module.functions), *map(dump_kernel, module.kernels)]
    return "\n".join(blocks)


def dump_kernel(kernel: ir.Kernel) -> str:
    """Return a kernel as text."""
    lines = [f"kernel {kernel.name}", *(_INDENT + line for line in _lines(kernel))]
    return "\n".join(lines) + "\n"


def dump_expr(expr: ir.Expr) -> str:
    """Return an expression as text."""
    match expr:
        case ir.Constant(value=value, type=scalar):
            return _constant(value, scalar)
        case ir.ConstRef(name=name) | ir.DimValue(name=name) | ir.LocalValue(name=name):
            return name
        case ir.IndexValue(index=index):
            return index.name
        case ir.UniformValue(name=name, path=path):
            return name + _path(path)
        case ir.Load(tensor=tensor, subscripts=subscripts, path=path):
            places = f"[{', '.join(map(_subscript, subscripts))}]" if subscripts else ""
            return tensor.name + places + _path(path)
        case ir.Swizzle(operand=operand, components=components):
            return f"{dump_expr(operand)}.{components}"
        case ir.Part(operand=operand, at=at):
            return dump_expr(operand) + _path((at,))
        case ir.Construct(type=type_, parts=parts):
            return type_.spelling + _list(parts, "()")
        case ir.Unary(op=op, operand=operand):
            space = " " if op == "not" else ""
            return f"({op}{space}{dump_expr(operand)})"
        case ir.Binary(op=op, left=left, right=right):
            return f"({dump_expr(left)} {op} {dump_expr(right)})"
        case ir.Select(condition=condition, then=then, otherwise=otherwise):
            shown = map(dump_expr, (condition, then, otherwise))
            return "(if {} {{ {} }} else {{ {} }})".format(*shown)
        case ir.Cast(operand=operand, is_halved=True):
            return f"f32(f16({dump_expr(operand)}))"
        case ir.Cast(operand=operand, type=scalar):
            return f"{scalar.spelling}({dump_expr(operand)})"
        case ir.BuiltinCall(builtin=name, arguments=arguments):
            return name + _list(arguments, "()")
        case ir.FunctionCall(function=name, arguments=arguments):
            return name + _list(arguments, "()")
        case ir.Reduce(kind=kind, indices=indices, body=body, condition=condition):
            when = f" when {dump_expr(condition)}" if condition else ""
            return f"({kind}[{_binders(indices)}{when}] {dump_expr(body)})"
        case StoreAt(value=value, places=places):
            return f"at [{', '.join(map(_subscript, places))}] {dump_expr(value)}"
        case _:
            assert_never(expr)


def _path(path: ir.Path) -> str:
    steps = (
        f".{step.name}" if isinstance(step, ir.Field) else f"[{_subscript(step.place)}]"
        for step in path
    )
    return "".join(steps)


def _subscript(subscript: ir.Subscript) -> str:
    """Return a subscript as text: `~` marks one that is clamped."""
    mark = "~" if isinstance(subscript, ir.Clamped) else ""
    return mark + dump_expr(subscript_value(subscript))


def _constant(value: float, scalar: Scalar) -> str:
    match scalar:
        case Scalar.BOOL:
            return "true" if value else "false"
        case Scalar.U32:
            return f"{value}u"
        case Scalar.F32 | Scalar.I32:
            return repr(value)
        case _:
            assert_never(scalar)


def _list(expressions: tuple[ir.Expr, ...], brackets: str) -> str:
    return brackets[0] + ", ".join(map(dump_expr, expressions)) + brackets[1]


def _binders(indices: tuple[ir.Index, ...]) -> str:
    return ", ".join(f"{index.name} < {index.extent}" for index in indices)


def _tensor(tensor: ir.Tensor) -> str:
    axes = ", ".join(map(str, tensor.extents))
    return f"{tensor.role.value} {tensor.name}: {tensor.memory.spelling}[{axes}]"


def _function(function: ir.Function) -> str:
    parameters = ", ".join(f"{p.name}: {p.type.spelling}" for p in function.parameters)
    lines = [f"fn {function.name}({parameters}) -> {function.type.spelling}"]
    for local, value in function.lets:
        let = f"let {local.name}: {local.type.spelling} = {dump_expr(value)}"
        lines.append(_INDENT + let)
    lines.append(_INDENT + dump_expr(function.body))
    return "\n".join(lines) + "\n"


def _lines(kernel: ir.Kernel) -> Iterator[str]:
    if kernel.dims:
        yield f"dims {', '.join(kernel.dims)}"
    for each in kernel.requires:
        yield f"require {dump_expr(each.condition)}"
    for dim in kernel.derived:
        yield f"derived {dim.name} = {dump_expr(dim.value)}"
    yield from map(_tensor, kernel.tensors)
    for parameter in kernel.parameters:
        default = "" if parameter.default is None else f" = {parameter.default}"
        yield f"scalar {parameter.name}: {parameter.memory.spelling}{default}"
    for host in kernel.hosts:
        yield f"host {host.name}: {host.type.spelling} = {dump_expr(host.value)}"
    yield from map(_statement, kernel.body)
    yield from map(_schedule, kernel.schedules)


def _statement(statement: ir.Statement) -> str:
    target = statement.target
    indices = f"[{_binders(statement.indices)}]" if statement.indices else ""
    component = f".{statement.component}" if statement.component else ""
    place = f"{target.name}{indices}{_path(statement.path)}{component}"
    value = dump_expr(statement.value)
    order = _order(statement) if statement.along else ""
    return f"{target.role.value} {place}: {target.memory.spelling}{order} = {value}"


def _order(statement: ir.Statement) -> str:
    """Return the order of a let that reads itself: ` along t - 1`, or ` along t + 1`."""
    along = statement.along
    assert along is not None, "asked for lets that read themselves"
    sign = "+" if along.descending else "-"
    return f" along {statement.indices[along.axis].name} {sign} {along.distance}"


def _schedule(schedule: ir.Schedule) -> str:
    guard = f" when {dump_expr(schedule.guard)}" if schedule.guard else ""
    options = "".join(
        f" {name}({', '.join(map(str, values))})" for name, values in schedule.options
    )
    stage = f".{schedule.stage}" if schedule.stage else ""
    return f"schedule{stage}{guard}: {schedule.strategy}{options}"

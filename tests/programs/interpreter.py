"""A slow interpreter of syntax trees: what a program means, by the language's page alone.

It shares nothing with the compiler but the parser: no checker, no IR, no printer.  One
element is computed at a time, in Python's numbers; `numbers` carries how far an f32
result may be off.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kerngen.syntax import ast

from . import hosts
from .expressions import At, Body, Compiled, Scope, literal_kind
from .functions import Accuracy
from .numbers import Real, UndecidedError, Value, leaf
from .tensors import Array, IllegalCallError

Tensors: TypeAlias = Mapping[str, Array]

MOST_WORK = 60_000
"""Elements times terms; a program that takes more is discarded."""


@dataclass
class Interpreter:
    """Runs one kernel of a program on arrays, which its `mut` parameters change."""

    program: ast.Program
    accuracies: Mapping[str, Accuracy]
    work: int = MOST_WORK
    functions: dict[str, ast.FunctionItem] = field(init=False)
    constants: dict[str, Compiled] = field(init=False)

    def __post_init__(self) -> None:
        items = self.program.items
        self.functions = {
            i.name.name: i for i in items if isinstance(i, ast.FunctionItem)
        }
        self.constants = {}
        for item in items:
            if isinstance(item, ast.ConstItem):
                self.constants[item.name.name] = self._constant(item)

    def _constant(self, item: ast.ConstItem) -> Compiled:
        scope = Scope(self.functions, self.accuracies, values=dict(self.constants))
        compiled = Body(scope, self).of(item.value, item.type.name.name)
        value = compiled.run({})
        return Compiled(item.type.name.name, lambda _: value)

    def run(
        self, name: str, arrays: Mapping[str, Any], scalars: Mapping[str, Any]
    ) -> dict[str, Array]:
        """Run a kernel; return every tensor that it may have written."""
        (kernel,) = (
            item
            for item in self.program.items
            if isinstance(item, ast.KernelItem) and item.name.name == name
        )
        call = Call(self, kernel)
        call.bind(arrays, scalars)
        for statement in kernel.body:
            call.execute(statement)
        written = [p.name.name for p in kernel.parameters if p.mutable]
        written += [p.name.name for p in kernel.outputs]
        return {name: call.scope.tensors[name] for name in written}

    def spend(self, amount: int) -> None:
        """Give up on what takes too long."""
        self.work -= amount
        if self.work < 0:
            raise UndecidedError("too much work")


class Call:
    """One call of one kernel."""

    def __init__(self, interpreter: Interpreter, kernel: ast.KernelItem) -> None:
        self.interpreter = interpreter
        self.kernel = kernel
        self.scope = Scope(
            interpreter.functions,
            interpreter.accuracies,
            values=dict(interpreter.constants),
        )
        self.on_host = hosts.HostScope(interpreter.functions)
        for name, constant in interpreter.constants.items():
            value = constant.run({})
            self.on_host.values[name] = value[0] if isinstance(value, tuple) else value

    # Arguments

    def bind(self, arrays: Mapping[str, Any], scalars: Mapping[str, Any]) -> None:
        """Bind arguments and dims, and make the outputs."""
        for parameter in self.kernel.parameters:
            name, axes = parameter.name.name, parameter.type.axes
            if axes is None:
                self._bind_scalar(name, parameter.type.name.name, scalars[name])
                continue
            array = Array.of(arrays[name], parameter.type.name.name)
            self.scope.tensors[name] = array
            for axis, length in zip(axes, array.shape, strict=True):
                if isinstance(axis, ast.Name) and axis.name not in self.on_host.values:
                    self._bind_integer(axis.name, length)
        for output in self.kernel.outputs:
            shape = tuple(self.length(axis) for axis in output.type.axes or ())
            array = Array.empty(shape, output.type.name.name)
            self.scope.tensors[output.name.name] = array

    def _bind_scalar(self, name: str, type_: str, value: Any) -> None:
        """Bind a scalar, or each component of a vector under a name of its own."""
        if type_.startswith("vec"):
            parts: tuple[float, ...] = value
            for component, part in zip("xyzw", parts, strict=False):
                self._bind_scalar(f"{name}.{component}", "f32", part)
            return
        self.on_host.values[name] = value
        bound: Value = leaf(value) if type_ == "f32" else int(value)
        self.scope.values[name] = Compiled(type_, lambda _: bound)

    def _bind_integer(self, name: str, value: int) -> None:
        self.on_host.values[name] = value
        self.scope.values[name] = Compiled("i32", lambda _: value)

    def length(self, axis: ast.Expr) -> int:
        """Compute the length of an axis or a given range, on the host."""
        value = hosts.evaluate(axis, self.on_host)
        assert isinstance(value, int)
        if value < 0:
            raise IllegalCallError("negative length")
        return value

    # Statements

    def execute(self, statement: ast.Statement) -> None:
        """Run one statement over its whole domain, as if at once."""
        match statement:
            case ast.HostStatement():
                self._host(statement)
            case ast.LetStatement(name=name, binders=binders, value=value):
                ranges = self.ranges(binders, value, self.scope)
                typed = Body(self.scope.within(ranges), self.interpreter, self).of(
                    value
                )
                cells = self._over(ranges, typed.run)
                shape = tuple(ranges.values())
                self.scope.tensors[name.name] = Array(typed.type, shape, cells)
            case ast.Assignment():
                self._assign(statement)

    def _host(self, statement: ast.HostStatement) -> None:
        name = statement.name.name
        value = hosts.evaluate(statement.value, self.on_host)
        if isinstance(value, int):
            if not -(2**31) <= value < 2**31:
                raise UndecidedError("host out of range")
            self._bind_integer(name, value)
            return
        self.on_host.values[name] = value
        rounded = hosts.rounded(value)
        self.scope.values[name] = Compiled("f32", lambda _: rounded)

    def _assign(self, statement: ast.Assignment) -> None:
        target = self.scope.tensors[statement.name.name]
        names = [s.name for s in statement.subscripts if isinstance(s, ast.Name)]
        ranges = dict(zip(names, target.shape, strict=True))
        value: ast.Expr = statement.value
        if statement.op != "=":
            span = statement.span
            own: ast.Expr = ast.Name(statement.name.name, span)
            if statement.subscripts:
                own = ast.Subscript(own, statement.subscripts, span)
            operator: Any = statement.op[0]
            value = ast.Binary(operator, own, value, span)
        typed = Body(self.scope.within(ranges), self.interpreter, self).of(
            value, target.type
        )
        assert typed.type == target.type
        target.write(self._over(ranges, typed.run))

    def _over(
        self, ranges: Mapping[str, int], run: Callable[[At], Value]
    ) -> list[Value]:
        self.interpreter.spend(math.prod(ranges.values()))
        return [run(at) for at in domain(ranges)]

    # Indices

    def ranges(
        self, binders: Sequence[ast.Binder], body: ast.Expr, scope: Scope
    ) -> dict[str, int]:
        """Find what indices range over: what is given, or what they first subscript."""
        found: dict[str, int] = {}
        for binder in binders:
            if binder.bound is not None:
                found[binder.name.name] = self.length(binder.bound)
                continue
            name = binder.name.name
            found[name] = next(
                scope.tensors[tensor].shape[axis]
                for tensor, axis in bare_uses(name, body)
            )
        return found


def domain(ranges: Mapping[str, int]) -> Iterator[At]:
    """Yield every combination of indices, the last one fastest."""
    for values in itertools.product(*map(range, ranges.values())):
        yield dict(zip(ranges, values, strict=True))


def bare_uses(name: str, expr: ast.Expr) -> Iterator[tuple[str, int]]:
    """Yield the tensors and axes that a name subscripts by itself, as they are read."""
    match expr:
        case ast.Subscript(base=ast.Name(name=tensor), subscripts=subscripts):
            for axis, subscript in enumerate(subscripts):
                if isinstance(subscript, ast.Name) and subscript.name == name:
                    yield tensor, axis
                else:
                    yield from bare_uses(name, subscript)
        case ast.Unary(operand=operand):
            yield from bare_uses(name, operand)
        case ast.Binary(left=left, right=right):
            yield from bare_uses(name, left)
            yield from bare_uses(name, right)
        case ast.Call(arguments=arguments):
            for argument in arguments:
                yield from bare_uses(name, argument)
        case ast.Conditional(condition=condition, then=then, otherwise=otherwise):
            for part in (condition, then, otherwise):
                yield from bare_uses(name, part)
        case ast.Reduction(body=body):
            yield from bare_uses(name, body)
        case _:
            return


__all__ = ["Interpreter", "Real", "literal_kind"]

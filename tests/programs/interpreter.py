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
from .expressions import Body, Compiled, Scope, literal_kind
from .functions import Accuracy
from .memory import (
    Fixed,
    Memory,
    Record,
    element_of,
    is_composite,
    parts_of,
    read_as,
    records_of,
    scalar_of,
)
from .numbers import Real, UndecidedError, Value
from .reductions import At
from .targets import Spot, spot_of
from .tensors import Array, Given, IllegalCallError, taken

Tensors: TypeAlias = Mapping[str, Array]

MOST_WORK = 60_000
"""Elements times terms; a program that takes more is discarded."""


@dataclass
class Interpreter:
    """Runs one kernel of a program on arrays, which its `mut` parameters change."""

    program: ast.Program
    accuracies: Mapping[str, Accuracy]
    work: int = MOST_WORK
    noted: set[str] = field(default_factory=set[str])
    """What of vectors, matrices and structs the program uses."""
    records: dict[str, Record] = field(init=False)
    functions: dict[str, ast.FunctionItem] = field(init=False)
    constants: dict[str, Compiled] = field(init=False)

    def __post_init__(self) -> None:
        items = self.program.items
        self.records = records_of(self.program)
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
        return Compiled(compiled.type, lambda _: value)

    def run(
        self, name: str, arrays: Mapping[str, Given], scalars: Mapping[str, Any]
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
            memory = element_of(parameter.type, self.interpreter.records)
            if axes is None:
                self._bind_value(name, memory, scalars[name])
                continue
            given = arrays[name]
            array = Array.of(memory, given.shape, given.cells)
            self.scope.tensors[name] = array
            for axis, length in zip(axes, array.shape, strict=True):
                if isinstance(axis, ast.Name) and axis.name not in self.on_host.values:
                    self._bind_integer(axis.name, length)
        for output in self.kernel.outputs:
            shape = tuple(self.length(axis) for axis in output.type.axes or ())
            memory = element_of(output.type, self.interpreter.records)
            self.scope.tensors[output.name.name] = Array.empty(shape, memory)

    def _bind_value(self, name: str, memory: Memory, value: Any) -> None:
        """Bind a scalar, or a vector, matrix or struct, of which hosts read parts."""
        for path, number in hosts.numbers_of(name, memory, value):
            self.on_host.values[path] = number
        bound = taken(memory, value)
        self.scope.values[name] = Compiled(memory, lambda _: bound)

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
                ranges = self.ranges(binders, (value,), self.scope, name.name)
                typed = Body(self.scope.within(ranges), self.interpreter, self).of(
                    value
                )
                cells = self._over(ranges, typed.run)
                if is_composite(typed.type):
                    self.interpreter.noted.add("let of composites")
                if typed.type == "bool":
                    self.interpreter.noted.add("let of truths")
                shape = tuple(ranges.values())
                self.scope.tensors[name.name] = Array(typed.type, shape, cells)
            case ast.Assignment():
                self._assign(statement)
            case ast.RequireStatement():
                raise AssertionError("random programs require nothing")

    def _host(self, statement: ast.HostStatement) -> None:
        name = statement.name.name
        value = hosts.evaluate(statement.value, self.on_host)
        if self.on_host.reads_parts:
            self.interpreter.noted.add("host of a part")
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
        spot = spot_of(target.memory, statement.target)
        value: ast.Expr = statement.value
        if statement.op != "=":
            operator: Any = statement.op[0]
            value = ast.Binary(statement.target, operator, value, span=statement.span)
        body = Body(self.scope.within(ranges | spot.ranges), self.interpreter, self)
        want = read_as(spot.memory) if isinstance(spot.memory, str) else None
        typed = body.of(value, want and scalar_of(want))
        assert typed.memory == (want or spot.memory)
        if not spot.steps:
            target.write_all(self._over(ranges, typed.run))
            return
        self._note(spot, typed)
        self.interpreter.spend(math.prod((ranges | spot.ranges).values()))
        places = list(domain(ranges | spot.ranges))
        values = [typed.run(at) for at in places]
        for at, result in zip(places, values, strict=True):
            cell = target.flat([at[name] for name in names])
            target.write(cell, spot.path(at), result)

    def _note(self, spot: Spot, value: Compiled) -> None:
        """Note what kind of part a statement writes."""
        if not isinstance(value.memory, str):
            self.interpreter.noted.add("copy of a part")
        elif spot.is_component:
            self.interpreter.noted.add("component as a target")
        else:
            self.interpreter.noted.add("member as a target")
        if spot.ranges:
            self.interpreter.noted.add("array by index as a target")
        elif any(isinstance(step, int) for step in spot.in_arrays):
            self.interpreter.noted.add("array by number as a target")

    def _over(
        self, ranges: Mapping[str, int], run: Callable[[At], Value]
    ) -> list[Value]:
        self.interpreter.spend(math.prod(ranges.values()))
        return [run(at) for at in domain(ranges)]

    # Indices

    def ranges(
        self,
        binders: Sequence[ast.Binder],
        terms: tuple[ast.Expr, ...],
        scope: Scope,
        let: str = "",
    ) -> dict[str, int]:
        """Find what indices range over: what is given, or what they first subscript.

        Those of a let that subscript nothing range over what its readers do.
        """
        found: dict[str, int] = {}
        for place, binder in enumerate(binders):
            name = binder.name.name
            if binder.bound is not None:
                found[name] = self.length(binder.bound)
                continue
            uses = (use for term in terms for use in bare_uses(name, term))
            known = next(uses, None)
            if known is None:
                self.interpreter.noted.add("range by reads")
                found[name] = self._read_over(let, place)
                continue
            base, axis = known
            found[name] = lengths_of(base, scope)[axis]
        return found

    def _read_over(self, let: str, axis: int) -> int:
        """Find the length that assignments read a let's axis over: it must be one."""
        (length,) = {
            length
            for statement in self.kernel.body
            if isinstance(statement, ast.Assignment)
            for left, length in zip(
                statement.subscripts,
                self.scope.tensors[statement.name.name].shape,
                strict=True,
            )
            if isinstance(left, ast.Name)
            for base, at in bare_uses(left.name, statement.value)
            if isinstance(base, ast.Name) and (base.name, at) == (let, axis)
        }
        return length


def domain(ranges: Mapping[str, int]) -> Iterator[At]:
    """Yield every combination of indices, the last one fastest."""
    for values in itertools.product(*map(range, ranges.values())):
        yield dict(zip(ranges, values, strict=True))


def bare_uses(name: str, expr: ast.Expr) -> Iterator[tuple[ast.Expr, int]]:
    """Yield what a name subscripts by itself, and which axis, as they are read."""
    match expr:
        case ast.Subscript(base=base, subscripts=subscripts):
            yield from bare_uses(name, base)
            for axis, subscript in enumerate(subscripts):
                if isinstance(subscript, ast.Name) and subscript.name == name:
                    yield base, axis
                else:
                    yield from bare_uses(name, subscript)
        case ast.Member(base=base):
            yield from bare_uses(name, base)
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
        case ast.Reduction():
            for part in expr.terms:
                yield from bare_uses(name, part)
        case _:
            return


def lengths_of(base: ast.Expr, scope: Scope) -> tuple[int, ...]:
    """Return the lengths that subscripts range over."""
    if isinstance(base, ast.Name) and base.name in scope.tensors:
        array = scope.tensors[base.name]
        if array.shape:
            return array.shape
    memory = _memory(base, scope)
    lengths: list[int] = []
    while isinstance(memory, Fixed):
        lengths.append(memory.length)
        memory = memory.element
    return tuple(lengths) or (len(parts_of(memory)),)


def _memory(expr: ast.Expr, scope: Scope) -> Memory:
    match expr:
        case ast.Name(name=name) if name in scope.tensors:
            return scope.tensors[name].memory
        case ast.Name(name=name):
            return scope.values[name].memory
        case ast.Subscript(base=ast.Name(name=name)) if name in scope.tensors:
            return scope.tensors[name].memory
        case ast.Subscript(base=base, subscripts=subscripts):
            memory = _memory(base, scope)
            for _ in subscripts:
                memory = parts_of(memory)[0]
            return memory
        case ast.Member(base=base, member=member):
            record = _memory(base, scope)
            assert isinstance(record, Record)
            return parts_of(record)[record.place(member.name)]
        case _:
            raise AssertionError(expr)


__all__ = ["Interpreter", "Real", "literal_kind"]

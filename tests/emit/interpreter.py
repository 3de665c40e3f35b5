"""A slow interpreter of kernels: one element at a time, in Python's numbers.

It says what a kernel means, and shares nothing with the printers.  Floats are doubles;
integers wrap at 32 bits by hand.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray

from kerngen.ir.nodes import (
    Binary,
    BinaryOp,
    BuiltinCall,
    Cast,
    Constant,
    ConstRef,
    DimValue,
    Expr,
    Extent,
    FunctionCall,
    Index,
    IndexValue,
    Kernel,
    Load,
    LocalValue,
    Reduce,
    ReduceKind,
    Role,
    Select,
    Unary,
    UniformValue,
)
from kerngen.ir.types import Scalar

Number: TypeAlias = Any
At: TypeAlias = Mapping[Index, int]
Array: TypeAlias = NDArray[Any]

DTYPES = {Scalar.F32: np.float64, Scalar.I32: np.int32, Scalar.U32: np.uint32}
LARGEST = 2.0**50
"""Beyond this, sums of doubles no longer hold integers for sure."""


class TooLargeError(Exception):
    """A value is no longer exact: the example proves nothing."""


def wrap(value: int, of: Scalar) -> int:
    """Return what 32 bits make of an integer."""
    bits = value & 0xFFFFFFFF
    return bits - 2**32 if of is Scalar.I32 and bits >= 2**31 else bits


def idiv(x: int, y: int) -> int:
    if y == 0:
        return x
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


OPERATORS: dict[BinaryOp, Callable[[Number, Number], Number]] = {
    "or": lambda x, y: x or y,
    "and": lambda x, y: x and y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "|": lambda x, y: x | y,
    "^": lambda x, y: x ^ y,
    "&": lambda x, y: x & y,
    "<<": lambda x, y: x << y % 32,
    ">>": lambda x, y: x >> y % 32,
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": idiv,
    "%": lambda x, y: 0 if y == 0 else x - idiv(x, y) * y,
}
BUILTINS: dict[str, Callable[..., Number]] = {"max": max, "min": min, "abs": abs}
HIGHEST = (2 - 2.0**-23) * 2.0**127
EMPTY: dict[tuple[ReduceKind, Scalar], Number] = {
    **{("sum", of): 0 for of in Scalar},
    **{("prod", of): 1 for of in Scalar},
    ("max", Scalar.F32): -HIGHEST,
    ("min", Scalar.F32): HIGHEST,
    ("max", Scalar.I32): -(2**31),
    ("min", Scalar.I32): 2**31 - 1,
    ("max", Scalar.U32): 0,
    ("min", Scalar.U32): 2**32 - 1,
}
JOIN: dict[str, Callable[[Number, Number], Number]] = {
    "sum": OPERATORS["+"],
    "prod": OPERATORS["*"],
    "max": max,
    "min": min,
}


class Interpreter:
    """Runs one kernel on arrays, which its `mut` parameters change."""

    def __init__(
        self,
        kernel: Kernel,
        arrays: dict[str, Array],
        scalars: Mapping[str, Number],
        largest: float = LARGEST,
    ) -> None:
        self.kernel = kernel
        self.largest = largest
        self.arrays = dict(arrays)
        self.scalars = scalars
        self.dims = {
            extent: length
            for tensor in kernel.tensors
            if tensor.role is not Role.OUTPUT
            for extent, length in zip(
                tensor.extents, arrays[tensor.name].shape, strict=True
            )
        }

    def run(self) -> tuple[Array, ...]:
        """Run the statements in order; return the outputs."""
        for statement in self.kernel.body:
            target = statement.target
            shape = [self.length(extent) for extent in target.extents]
            result = np.zeros(shape, DTYPES[target.element])
            for at in self.domain(statement.indices, {}):
                place = tuple(at[index] for index in statement.indices)
                result[place] = self.value(statement.value, at)
            if target.role is Role.UPDATE:
                self.arrays[target.name][...] = result
            else:
                self.arrays[target.name] = result
        return tuple(
            self.arrays[tensor.name]
            for tensor in self.kernel.tensors
            if tensor.role is Role.OUTPUT
        )

    def length(self, extent: Extent) -> int:
        return extent if isinstance(extent, int) else self.dims[extent]

    def domain(self, indices: tuple[Index, ...], outer: At) -> Iterator[At]:
        ranges = [range(self.length(index.extent)) for index in indices]
        for values in itertools.product(*ranges):
            yield {**outer, **dict(zip(indices, values, strict=True))}

    def value(self, expr: Expr, at: At) -> Number:
        """Return the value of an expression at one element, wrapped."""
        value = self.evaluate(expr, at)
        if expr.type.is_integer:
            return wrap(value, expr.type)
        if expr.type is Scalar.F32:
            self.check(value)
        return value

    def check(self, value: float) -> None:
        """Give up on a float that may not be exact."""
        if abs(value) > self.largest:
            raise TooLargeError

    def evaluate(self, expr: Expr, at: At) -> Number:
        match expr:
            case Constant(value=value) | ConstRef(value=value):
                return value
            case IndexValue(index=index):
                return at[index]
            case DimValue(name=name):
                return self.dims[name]
            case UniformValue(name=name, component=component):
                value = self.scalars[name]
                return value if component is None else value["xyzw".index(component)]
            case Load():
                return self.load(expr, at)
            case Unary(op="-", operand=operand):
                return -self.value(operand, at)
            case Unary(op="~", operand=operand):
                return ~self.value(operand, at)
            case Unary(operand=operand):
                return not self.value(operand, at)
            case Binary(op=op, left=left, right=right):
                return OPERATORS[op](self.value(left, at), self.value(right, at))
            case Select(condition=condition, then=then, otherwise=otherwise):
                taken = then if self.value(condition, at) else otherwise
                return self.value(taken, at)
            case Cast(operand=operand, type=to):
                value = self.value(operand, at)
                return float(value) if to is Scalar.F32 else saturate(value, to)
            case BuiltinCall(builtin=name, arguments=arguments):
                return BUILTINS[name](*(self.value(x, at) for x in arguments))
            case Reduce():
                return self.reduce(expr, at)
            case LocalValue() | FunctionCall():
                raise NotImplementedError
            case _:
                assert_never(expr)

    def load(self, expr: Load, at: At) -> Number:
        array = self.arrays[expr.tensor.name]
        places = [
            min(max(int(self.value(subscript, at)), 0), length - 1)
            for subscript, length in zip(expr.subscripts, array.shape, strict=True)
        ]
        return array[tuple(places)].item()

    def reduce(self, expr: Reduce, at: At) -> Number:
        total = EMPTY[expr.kind, expr.type]
        size = 1.0
        for inner in self.domain(expr.indices, at):
            term = self.value(expr.body, inner)
            total = JOIN[expr.kind](total, term)
            total = wrap(total, expr.type) if expr.type.is_integer else total
            if expr.kind == "prod" and expr.type is Scalar.F32:
                size *= max(abs(term), 1.0)
                self.check(size)
        return total


def saturate(value: Number, to: Scalar) -> int:
    """Convert to an integer: floats saturate, integers wrap."""
    if not isinstance(value, float):
        return int(value)
    low, high = (-(2**31), 2147483520) if to is Scalar.I32 else (0, 4294967040)
    return int(min(max(value, low), high))

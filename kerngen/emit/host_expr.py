"""Print host expressions in Python: values of hosts, and guards of schedules.

They are computed in Python's own numbers: integers exactly, floats in double.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, final

from kerngen.emit.calls import FunctionInfo, fill_template
from kerngen.emit.members import literal_place
from kerngen.emit.python_code import Code, Precedence, binary, call, number
from kerngen.ir import nodes as ir
from kerngen.ir.analysis.signs import is_natural
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.geometry import GEOMETRY
from kerngen.ir.types import Scalar, scalar_of
from kerngen.ir.walk import walk

ValueName: TypeAlias = Callable[[ir.DimValue | ir.UniformValue], str]
"""How a dim or scalar is spelled in the place of the expression."""

# By type: conversions that saturate, as in WGSL; conversions of NumPy's results to Python
# numbers; and arrays for functions that NumPy computes.
_CASTS = {
    Scalar.F32: "float",
    Scalar.I32: "hostmath.to_i32",
    Scalar.U32: "hostmath.to_u32",
    Scalar.BOOL: "bool",
}
_RESULTS = {**_CASTS, Scalar.I32: "int", Scalar.U32: "int"}
_ARRAYS = {
    Scalar.F32: "ref.DOUBLE",
    Scalar.I32: "ref.i32",
    Scalar.U32: "ref.u32",
    Scalar.BOOL: "np.asarray",
}
# Operators with another meaning in Python: `//` rounds down, and shifts take any count.
_FUNCTIONS_OF_INTEGERS = {
    "/": "hostmath.idiv",
    "%": "hostmath.irem",
    "<<": "hostmath.shift_left",
    ">>": "hostmath.shift_right",
}
_FUNCTIONS_OF_FLOATS = {"/": "hostmath.divide", "%": "hostmath.remainder"}
_OPERATORS_OF_NATURALS = {"/": "//", "%": "%"}
"""Python's own operators, used if no side is negative and the divisor is not 0."""


def _is_leaf(expr: ir.Expr) -> bool:
    """Whether an expression is a value that is within 32 bits already."""
    leaves = (
        ir.Constant | ir.ConstRef | ir.DimValue | ir.UniformValue | ir.Swizzle | ir.Part
    )
    return isinstance(expr, leaves)


def _wrapped(expr: ir.Expr, code: Code) -> Code:
    """Return code that wraps an integer to 32 bits, if it may exceed them."""
    if _is_leaf(expr):
        return code
    wrap = "wrap_u32" if expr.type is Scalar.U32 else "wrap_i32"
    return call(f"hostmath.{wrap}", [code.text])


def _host_function(expr: ir.BuiltinCall) -> str:
    """Return a built-in's function for Python's numbers, or "" if NumPy computes it."""
    row = BUILTINS.get(expr.builtin)
    return row.host if row else ""


def warns(expr: ir.Expr) -> bool:
    """Whether the host computes some of an expression by NumPy, which may print warnings."""
    return any(
        isinstance(node, ir.FunctionCall)
        or (isinstance(node, ir.BuiltinCall) and not _host_function(node))
        for node in walk(expr)
    )


@final
@dataclass(frozen=True, slots=True)
class HostPrinter:
    """Prints host expressions in Python, given the names of values and functions.

    `value` returns the Python text of a dim or scalar, or of a part of one.  With `wraps`,
    operands of quotients are wrapped to 32 bits, as a kernel computes them:

        (m * n) / 4     ->  hostmath.idiv(m * n, 4)
        with `wraps`    ->  hostmath.idiv(hostmath.wrap_i32(m * n), 4)
    """

    value: ValueName
    constants: Mapping[str, str]
    functions: Mapping[str, FunctionInfo]
    wraps: bool = False

    def print(self, expr: ir.Expr) -> Code:
        """Return the expression as Python code."""
        match expr:
            case ir.Constant(value=value):
                return number(value)
            case ir.ConstRef(name=name):
                return Code(self.constants[name])
            case ir.DimValue():
                return Code(self.value(expr))
            case ir.UniformValue():
                return Code(self.value(expr))
            case ir.Swizzle(operand=operand, components=components):
                return self._part(operand, "xyzw".index(components))
            case ir.Part(operand=operand, at=at):
                return self._part(operand, literal_place(at))
            case ir.Unary():
                return self._unary(expr)
            case ir.Binary():
                return self._binary(expr)
            case ir.Select():
                return self._select(expr)
            case ir.Cast(operand=operand, type=type_):
                return call(_CASTS[scalar_of(type_)], [self.print(operand).text])
            case ir.BuiltinCall():
                return self._builtin(expr)
            case ir.FunctionCall():
                return self._function(expr)
            case _:
                raise AssertionError(f"not a host expression: {expr}")

    def _part(self, operand: ir.Expr, place: int | None) -> Code:
        """Return a part of a vector or matrix, which is a tuple on the host."""
        assert place is not None, "the host knows the place"
        return Code(f"{self.print(operand).atom}[{place}]")

    def _unary(self, expr: ir.Unary) -> Code:
        operand = self.print(expr.operand)
        if expr.op == "not":
            return Code(f"not {operand.at(Precedence.NOT)}", Precedence.NOT)
        return Code(f"{expr.op}{operand.at(Precedence.UNARY)}", Precedence.UNARY)

    def _binary(self, expr: ir.Binary) -> Code:
        left, right = self.print(expr.left), self.print(expr.right)
        # `n // 4` is easier to read than a call, where it is the same.
        plain = not self.wraps or all(map(_is_leaf, (expr.left, expr.right)))
        divisor = isinstance(expr.right, ir.Constant) and expr.right.value != 0
        natural = divisor and is_natural(expr, wraps=False)
        if expr.op in _OPERATORS_OF_NATURALS and natural and plain:
            op, level = _OPERATORS_OF_NATURALS[expr.op], Precedence.PRODUCT
            return Code(f"{left.at(level)} {op} {right.at(Precedence.UNARY)}", level)
        integer = scalar_of(expr.type).is_integer
        functions = _FUNCTIONS_OF_INTEGERS if integer else _FUNCTIONS_OF_FLOATS
        if expr.op in functions:
            if self.wraps:
                left, right = _wrapped(expr.left, left), _wrapped(expr.right, right)
            return call(functions[expr.op], [left.text, right.text])
        return binary(expr.op, left, right)

    def _select(self, expr: ir.Select) -> Code:
        condition = self.print(expr.condition).at(Precedence.OR)
        then = self.print(expr.then).at(Precedence.OR)
        otherwise = self.print(expr.otherwise).text
        return Code(f"{then} if {condition} else {otherwise}", Precedence.CONDITIONAL)

    def _builtin(self, expr: ir.BuiltinCall) -> Code:
        arguments = [self.print(argument) for argument in expr.arguments]
        if self.wraps:
            arguments = [*map(_wrapped, expr.arguments, arguments)]
        if function := _host_function(expr):
            return call(function, [argument.text for argument in arguments])
        arrays = [
            call(_ARRAYS[scalar_of(argument.type)], [code.text])
            for argument, code in zip(expr.arguments, arguments, strict=True)
        ]
        row = GEOMETRY.get(expr.builtin) or BUILTINS[expr.builtin]
        return self._number(expr, fill_template(row.numpy, arrays))

    def _function(self, expr: ir.FunctionCall) -> Code:
        """Return a call of a user's function, which takes arrays, as a Python number."""
        function = self.functions[expr.function]
        arguments = ["ref.DOUBLE"] if function.needs_real else []
        arguments += [
            f"{_ARRAYS[scalar_of(argument.type)]}({self.print(argument).text})"
            for argument in expr.arguments
        ]
        return self._number(expr, call(function.name, arguments))

    def _number(self, expr: ir.Expr, code: Code) -> Code:
        """Return a result of NumPy's as a Python number: `float(...)`."""
        return call(_RESULTS[scalar_of(expr.type)], [code.text])

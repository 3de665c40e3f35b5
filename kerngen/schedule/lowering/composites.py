"""Lower operations on vectors and matrices that scalars don't have.

WGSL computes with constants when it compiles, and refuses what overflows or divides by
zero there.  Scalars are folded before (`kerngen.ir.fold`); a constant vector becomes a
variable where an operation could fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kerngen.ir import nodes as ir
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.operators import is_composite
from kerngen.ir.types import Matrix, Scalar, ValueType, Vector, scalar_of
from kerngen.ir.walk import subscript_value
from kerngen.layout.types import LeafLayout
from kerngen.schedule.lowering import memory
from kerngen.schedule.lowering.builder import wgsl_type
from kerngen.schedule.lowering.loads import place_of_load
from kerngen.schedule.lowering.ranks import helper_of
from kerngen.schedule.lowering.values import COMPONENTS, Value
from kerngen.shader import tree as t

if TYPE_CHECKING:
    from kerngen.schedule.lowering.expressions import Lowerer

_FAILING: Final = frozenset({"/", "%", "<<", ">>"})
"""Operators of integers that WGSL refuses for some constants on the right alone: a division
by 0, or a shift by 32."""


def lanes_of(type_: ValueType, value: Value) -> int:
    """Return a value's number of components in WGSL: a vector's width; for a scalar, 1 or 4."""
    return type_.width if isinstance(type_, Vector) else value.lanes


def lower_part(to: Lowerer, expr: ir.Part) -> t.Expr:
    """Return a component of a vector or a column of a matrix, by its number.

    If the operand is an element of a tensor or of the uniform, only that part is read.
    """
    match expr.operand:
        case ir.Load():
            place, laid = place_of_load(to, expr.operand)
        case ir.UniformValue():
            place, laid = to.uniform_place(expr.operand)
        case operand:
            return _part_of_value(to, expr, operand)
    return memory.read_part(place, laid, memory.lower_at(to, expr.at))


def _part_of_value(to: Lowerer, expr: ir.Part, operand: ir.Expr) -> t.Expr:
    """Return a part of a value; if its number varies, the value is put in a variable first."""
    value = to.lower(operand).expr
    varies = not isinstance(subscript_value(expr.at.place), ir.Constant)
    if varies and not _is_place(to, operand):
        value = variable(to, value)
    return value[memory.lower_at(to, expr.at)]


def _is_place(to: Lowerer, expr: ir.Expr) -> bool:
    """Whether an expression is read from memory as it lies there."""
    match expr:
        case ir.Part(operand=operand):
            return _is_place(to, operand)
        case ir.Load():
            return not expr.memory.is_half
        case ir.UniformValue():
            _, laid = to.uniform_place(expr)
            return isinstance(laid, LeafLayout) and not laid.leaf.is_half
        case _:
            return False


def variable(to: Lowerer, value: t.Expr) -> t.Expr:
    """Emit a `var` with `value`, and return its name: WGSL does not take it for a constant."""
    return _declared(to, t.Var, value)


def _declared(to: Lowerer, form: type[t.Let | t.Var], value: t.Expr) -> t.Expr:
    name = to.shader.fresh(f"{to.label}_value")
    to.block.append(form(name, value))
    return t.Ident(name)


def _operand(to: Lowerer, expr: ir.Expr, *, apart: bool) -> t.Expr:
    """Return an operand; if `apart`, a constant is put in a variable (`variable`)."""
    value = to.lower(expr).expr
    return variable(to, value) if apart and ir.is_constant(expr) else value


def lower_operation(to: Lowerer, expr: ir.Binary) -> t.Expr:
    """Return the WGSL of a binary operation with a vector or matrix as its result."""
    both = ir.is_constant(expr)
    left = _operand(to, expr.left, apart=both)
    fails = expr.op in _FAILING and scalar_of(expr.type).is_integer
    right = _operand(to, expr.right, apart=fails)
    if expr.op == "%" and scalar_of(expr.type) is Scalar.I32:
        assert isinstance(expr.type, Vector), "matrices have no remainder"
        helper = to.shader.helper("remainder", expr.type.width)
        sides = (expr.left, left), (expr.right, right)
        return t.Call(helper, tuple(_splat(expr.type, *side) for side in sides))
    return t.Binary(expr.op, left, right)


def _splat(type_: Vector, expr: ir.Expr, value: t.Expr) -> t.Expr:
    return value if is_composite(expr.type) else t.call(type_.spelling, value)


def lower_componentwise(to: Lowerer, expr: ir.BuiltinCall) -> t.Expr:
    """Return the WGSL of a built-in that is applied to each component of its arguments."""
    assert isinstance(expr.type, Vector), "called for vectors"
    width, apart = expr.type.width, ir.is_constant(expr)
    arguments = [_operand(to, part, apart=apart) for part in expr.arguments]
    if name := helper_of(expr.builtin):
        return t.Call(to.shader.helper(name, width), tuple(arguments))
    # WGSL has the function for vectors, or it is called for each component.
    row = BUILTINS[expr.builtin]
    if row.wide:
        type_ = wgsl_type(expr.type.scalar, width)
        return t.Template(row.template, tuple(arguments), type_)
    parts = [named(to, argument) for argument in arguments]
    scalar = expr.type.scalar.spelling
    calls = (
        t.Template(row.template, tuple(t.Member(v, component) for v in parts), scalar)
        for component in COMPONENTS[:width]
    )
    return t.Call(expr.type.spelling, tuple(calls))


def lower_geometry(
    to: Lowerer, expr: ir.BuiltinCall, operands: tuple[t.Expr, ...]
) -> t.Expr:
    """Return the WGSL of a built-in on whole vectors or matrices, such as `dot`.

    A transpose that is not square is put in a variable: Mesa's drivers crash on a product of
    two such transposes if they see them in one expression.
    """
    if ir.is_constant(expr):
        operands = tuple(variable(to, operand) for operand in operands)
    call = t.Call(expr.builtin, operands)
    turned = expr.type if expr.builtin == "transpose" else None
    if isinstance(turned, Matrix) and turned.columns != turned.rows:
        return variable(to, call)
    return call


def named(to: Lowerer, value: t.Expr) -> t.Expr:
    """Emit a `let` for `value` and return its name; a name is returned as it is."""
    return value if isinstance(value, t.Ident) else _declared(to, t.Let, value)


def lower_choice(
    to: Lowerer, expr: ir.Select, sides: tuple[t.Expr, t.Expr], condition: t.Expr
) -> t.Expr:
    """Return the WGSL that chooses between two vectors or matrices, `sides`, by `condition`.

    `sides` are the value if false and the value if true, as for WGSL's `select`.  That does not
    take matrices: their columns are chosen one by one.  Constants are put in variables, as naga
    panics on a choice between constant vectors.
    """
    falsy, truthy = sides
    if ir.is_constant(expr):
        falsy = variable(to, falsy)
    # Of matrices, each column is chosen, so all parts have names.
    if not isinstance(expr.type, Matrix):
        return t.call("select", falsy, truthy, condition)
    falsy, truthy, chosen = (named(to, part) for part in (falsy, truthy, condition))
    columns = (
        t.call("select", falsy[n], truthy[n], chosen) for n in range(expr.type.columns)
    )
    return t.Call(expr.type.spelling, tuple(columns))


def halved_columns(to: Lowerer, value: t.Expr, type_: Matrix) -> t.Expr:
    """Return a matrix with its components rounded to f16, column by column."""
    whole = named(to, value)
    helper = to.shader.helper("nearest_f16", type_.rows)
    columns = (t.call(helper, whole[n]) for n in range(type_.columns))
    return t.Call(type_.spelling, tuple(columns))

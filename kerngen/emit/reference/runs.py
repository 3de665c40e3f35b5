"""Slices in references: the parts of axes that subscripts read.

A subscript reads a run of its axis if it is an index, or an index times a literal above 0,
plus terms that are one number at a time: loop variables, dims and scalars.

    x[i]             ->    x[:m], or x where its axis is the range of i
    x[u + i]         ->    x[u : u + m], in a loop over u
    x[2 * i + 1]     ->    x[1 : 1 + 2 * m : 2]
    x[i + j]         ->    no slice: a gather
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from typing import TypeAlias, final

from kerngen.emit.host_expr import HostPrinter
from kerngen.emit.python_code import Code, Precedence, binary, call
from kerngen.emit.reference.scope import FunctionBody
from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import AffineForm, as_literal, subscript_form
from kerngen.ir.analysis.reads import free_indices
from kerngen.ir.analysis.requirements import Known
from kerngen.ir.analysis.subscript_checks import checked, may_be_empty
from kerngen.ir.types import Scalar
from kerngen.ir.walk import subscript_value

Frame: TypeAlias = tuple[ir.Index, ...]
"""The indices of the axes of an array, in order: see `axes.py`."""

_SHORT = re.compile(r"-?\w*")
"""The bounds of a slice around whose colon black sets no space: names and numbers."""


@final
@dataclass(frozen=True)
class AxisSlice:
    """Elements of an axis along `index`: each `step`-th from `start` on.

    Without an index it is the one element at `start`, which is an affine form over loop
    variables, dims and scalars.
    """

    index: ir.Index | None
    step: int
    start: AffineForm


def axes_read(load: ir.Load) -> list[tuple[ir.Subscript, ir.Extent]]:
    """Return the subscript and the length of each axis of a tensor that a read has.

    The axes of fixed arrays in its elements are among them.
    """
    inner = [(step.place, step.length) for step in load.path if isinstance(step, ir.At)]
    return [*zip(load.subscripts, load.tensor.extents, strict=True), *inner]


def run_of(subscript: ir.Subscript, loops: Container[ir.Index]) -> AxisSlice | None:
    """Return the slice of its axis that a subscript reads; None if it reads no slice.

    An index in `loops` is one number at a time.
    """
    form = subscript_form(subscript)
    if form is None:
        return None
    # Indices of loops are numbers; of others, a slice has one, with a step above 0.
    own = [index for index in form.terms if index not in loops]
    rest = {index: c for index, c in form.terms.items() if index in loops}
    start = AffineForm(form.offset, rest)
    match own:
        case []:
            return AxisSlice(None, 1, start)
        case [index]:
            step = form.coefficient(index)
            return (
                AxisSlice(index, step, start) if step is not None and step > 0 else None
            )
        case _:
            return None


def read_axes(expr: ir.Expr, loops: Container[ir.Index]) -> Frame | None:
    """Return the indices along the axes of what a read yields.

    None if a subscript reads no slice, or if `expr` is no read.
    """
    if not isinstance(expr, ir.Load):
        return None
    runs = [run_of(subscript, loops) for subscript, _ in axes_read(expr)]
    if None in runs:
        return None
    return tuple(run.index for run in runs if run and run.index)


def read_regardless(expr: ir.Expr, indices: Frame) -> Frame:
    """Return those of `indices` on which some slice that `expr` reads does not depend.

    Only slices that the host checks count.  If such an index has an empty range, nothing should
    be read or checked; NumPy would read all the same, and the arrays would be too short.
    """
    missed: set[ir.Index] = set()
    for subscript, _ in checked(expr, (), Known()):
        own = free_indices(subscript_value(subscript))
        if run_of(subscript, own.difference(indices)):
            missed.update(index for index in indices if index not in own)
    return tuple(i for i in indices if i in missed and may_be_empty(i.extent))


def run_text(scope: FunctionBody, run: AxisSlice, extent: ir.Extent) -> str:
    """Return a slice as Python text, `u : u + n`, or `:` for the whole axis."""
    start = _start(scope, run.start)
    if run.index is None:
        return (start or Code("0")).text
    if start is None and run.step == 1 and run.index.extent == extent:
        return ":"
    # The end is start + step * length: behind the last element, by a step.
    length = Code(scope.extent(run.index.extent))
    if run.step != 1:
        length = binary("*", Code(str(run.step)), length)
    end = length if start is None else binary("+", start, length)
    parts = [start.text if start else "", end.text]
    parts += [] if run.step == 1 else [str(run.step)]
    is_short = all(_SHORT.fullmatch(part) for part in parts)
    return (":" if is_short else " : ").join(parts).strip()


def _start(scope: FunctionBody, form: AffineForm) -> Code | None:
    """Return the start of a slice as Python code, `2 * u - 1`; None for 0."""
    printer = HostPrinter(
        lambda node: _value(scope, node), scope.constants, scope.functions, wraps=True
    )
    # Loop variables by their coefficients, then the offset: `u - 1` rather than `u + -1`.
    total: Code | None = None
    for index, coefficient in form.terms.items():
        term = Code(scope.loops[index])
        if as_literal(coefficient) != 1:
            term = binary("*", _wrapped(printer, coefficient), term)
        total = term if total is None else binary("+", total, term)
    literal = as_literal(form.offset)
    if literal == 0:
        return total
    if total is None:
        return _wrapped(printer, form.offset)
    if literal is not None and literal < 0:
        magnitude = ir.Constant(-literal, Scalar.I32)
        return binary("-", total, printer.print(magnitude))
    offset = _wrapped(printer, form.offset)
    return binary("+", total, Code(offset.at(Precedence.SUM)))


def _wrapped(printer: HostPrinter, expr: ir.Expr) -> Code:
    """Return code that wraps an integer to 32 bits, as the check of subscripts does."""
    if isinstance(expr, ir.Cast):
        return _wrapped(printer, expr.operand)
    code = printer.print(expr)
    return code if _is_narrow(expr) else call("hostmath.wrap_i32", [code.text])


def _is_narrow(expr: ir.Expr) -> bool:
    """Whether an integer is within i32, whatever dims and scalars are."""
    if isinstance(expr, ir.Binary):
        lengths = _is_length(expr.left) and _is_length(expr.right)
        return lengths and expr.op in ("-", "/", "%")
    return expr.type is Scalar.I32 and not isinstance(expr, ir.Unary)


def _is_length(expr: ir.Expr) -> bool:
    literal = as_literal(expr)
    return isinstance(expr, ir.DimValue) or (literal is not None and literal >= 0)


def _value(scope: FunctionBody, node: ir.DimValue | ir.UniformValue) -> str:
    return (
        scope.dim(node.name) if isinstance(node, ir.DimValue) else scope.argument(node)
    )

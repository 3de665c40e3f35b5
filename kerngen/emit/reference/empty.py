"""Print reductions over no terms: their value, and guards against reading nothing."""

from __future__ import annotations

from collections.abc import Callable

from kerngen.emit.python_code import Code
from kerngen.emit.reference.runs import Frame, read_regardless
from kerngen.emit.reference.scope import ExpressionPrinter, FunctionBody
from kerngen.ir.nodes import Reduce, ReduceKind
from kerngen.ir.types import Scalar, scalar_of

# The arrays of neutral values, and the limits of `max` and `min`.
_EMPTY: dict[ReduceKind, str] = {
    "sum": "np.zeros({shape}, {dtype})",
    "prod": "np.ones({shape}, {dtype})",
    "max": "np.full({shape}, {limit}, {dtype})",
    "min": "np.full({shape}, {limit}, {dtype})",
    "argmax": "np.full({shape}, -1, {dtype})",
    "argmin": "np.full({shape}, -1, {dtype})",
}
# NumPy's `max` of nothing raises; of i32 and u32 the neutral values are the extremes.
_LIMITS: dict[tuple[ReduceKind, Scalar], str] = {
    ("max", Scalar.F32): "-np.inf",
    ("max", Scalar.I32): "ref.LOWEST_I32",
    ("max", Scalar.U32): "ref.LOWEST_U32",
    ("min", Scalar.F32): "np.inf",
    ("min", Scalar.I32): "ref.HIGHEST_I32",
    ("min", Scalar.U32): "ref.HIGHEST_U32",
}


def limit_of(expr: Reduce) -> str | None:
    """Return the code of the neutral value of a `max` or `min`; None for others."""
    return _LIMITS.get((expr.kind, scalar_of(expr.type)))


def empty_array(scope: FunctionBody, expr: Reduce, outer: Frame) -> str:
    """Return the code of an array of a reduction's neutral value, in the shape of a frame."""
    return _EMPTY[expr.kind].format(
        shape=scope.shape(outer, expr.type),
        dtype=scope.dtype(expr.type),
        limit=limit_of(expr),
    )


def write_empty(printer: ExpressionPrinter, expr: Reduce, outer: Frame) -> str:
    """Write a variable that has a reduction's neutral value, and return its name."""
    scope = printer.scope
    total = scope.fresh(f"{expr.kind}_over_{'_'.join(i.name for i in expr.indices)}")
    scope.writer.line(f"{total} = {empty_array(scope, expr, outer)}")
    return total


def unless_empty(
    printer: ExpressionPrinter, expr: Reduce, outer: Frame, value: Callable[[], Code]
) -> Code:
    """Return the code of a reduction, made by `value()`, so that it is right for empty ranges.

    If the reduction reads elements that don't depend on all its indices, a variable is written
    that has the neutral value, and gets the reduction's in an `if` that tests the lengths.

    Before:  sum[p] a[p] * b[0, p]
    After:   sum_over_p = np.zeros((), real.dtype)
             if k:
                 sum_over_p = np.einsum("p,p->", a, b[0], optimize=True)
    """
    scope = printer.scope
    indices = read_regardless(expr.body, expr.indices)
    if not indices:
        return value()
    total = write_empty(printer, expr, outer)
    lengths = dict.fromkeys(scope.extent(index.extent) for index in indices)
    with scope.block(f"if {' and '.join(lengths)}:"):
        scope.writer.line(f"{total} = {value().text}")
    return Code(total, fresh=True)

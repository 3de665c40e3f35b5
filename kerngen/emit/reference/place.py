"""Print `argmax` and `argmin`: over axes of an array, or by loops."""

from __future__ import annotations

from functools import partial

from kerngen.emit.python_code import Code, call
from kerngen.emit.reference.axes import align, find_carrier
from kerngen.emit.reference.empty import unless_empty, write_empty
from kerngen.emit.reference.keyed import print_keyed_place
from kerngen.emit.reference.runs import Frame
from kerngen.emit.reference.scope import ExpressionPrinter
from kerngen.ir.analysis.reads import free_indices
from kerngen.ir.nodes import Reduce


def print_place(printer: ExpressionPrinter, expr: Reduce, frame: Frame) -> Code:
    """Return the code of an `argmax` or `argmin`, aligned with the frame."""
    # 1. By key; 2. over an axis of a tensor as large as all terms; 3. by loops.
    by_key = print_keyed_place(printer, expr, frame)
    if by_key is not None:
        return by_key
    outer = tuple(index for index in frame if index in free_indices(expr))
    wanted = frozenset((*outer, *expr.indices))
    inner = find_carrier(expr, wanted, printer.scope.loops)
    if inner is None:
        return align(_by_loops(printer, expr, outer), outer, frame)
    kept = tuple(index for index in inner if index in outer)
    found = partial(_over_axis, printer, expr, inner)
    return align(unless_empty(printer, expr, kept, found), kept, frame)


def _over_axis(printer: ExpressionPrinter, expr: Reduce, inner: Frame) -> Code:
    """
    Compute the body over the axes of a tensor, then find the place along one of them.

    Before:  argmax[j when c[j]] x[i, j]
    After:   ref.argmax(x, 1, c)
    """
    axis = inner.index(expr.indices[0])
    arguments = [printer.print(expr.body, inner).text, str(axis)]
    if expr.condition is not None:
        arguments.append(printer.print(expr.condition, inner).text)
    return Code(call(f"ref.{expr.kind}", arguments).text, fresh=True)


def _by_loops(printer: ExpressionPrinter, expr: Reduce, outer: Frame) -> Code:
    """
    Compare one slice after the other with the best so far.

    Before:  argmin[p] a[i, p] + b[p, j]
    After:   for p in range(k):
                 ref.find(np.less, best, argmin_over_p, p, a[:, p, None] + b[p])
    """
    # Two arrays as large as the result: the best terms, and their places, from -1 on.
    scope, (index,) = printer.scope, expr.indices
    place = write_empty(printer, expr, outer)
    best = scope.fresh("best")
    dtype = scope.dtype(expr.body.type)
    scope.writer.line(f"{best} = np.zeros({scope.shape(outer, expr.type)}, {dtype})")
    better = "np.greater" if expr.kind == "argmax" else "np.less"
    with scope.loops_over(expr.indices):
        term = printer.print(expr.body, outer).text
        arguments = [better, best, place, scope.loops[index], term]
        if expr.condition is not None:
            arguments.append(printer.print(expr.condition, outer).text)
        scope.writer.line(call("ref.find", arguments).text)
    return Code(place, fresh=True)

"""Print reductions: by einsum if possible, else over axes of an array, else by loops.

    sum[p] a[i, p] * b[p, j]      einsum, as factors are arrays of their own
    max[j] exp(x[i, j])           np.max(np.exp(x), axis=1): as large as x, which is read
    max[p] a[i, p] + b[p, j]      a loop over p: the terms would be m * k * n numbers

Loops accumulate an array as large as the result, so that no temporary is much larger
than what the kernel reads or writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from functools import reduce as fold
from string import ascii_letters

from kerngen.emit.python_code import Code, tuple_text
from kerngen.emit.reference.axes import align, find_carrier
from kerngen.emit.reference.empty import limit_of, unless_empty, write_empty
from kerngen.emit.reference.keyed import print_keyed
from kerngen.emit.reference.load import sliced
from kerngen.emit.reference.place import print_place
from kerngen.emit.reference.runs import Frame, read_axes, read_regardless
from kerngen.emit.reference.scope import ExpressionPrinter
from kerngen.emit.reference.types import components, is_float
from kerngen.ir.analysis.conditions import unconditional
from kerngen.ir.analysis.reads import free_indices
from kerngen.ir.nodes import Binary, Expr, Index, Load, Reduce, ReduceKind
from kerngen.ir.types import Scalar, ValueType
from kerngen.ir.walk import factors_of

# The lines that add a slice to a total in place.
_ACCUMULATE: dict[ReduceKind, str] = {
    "sum": "{total} += {part}",
    "prod": "{total} *= {part}",
    "max": "np.maximum({total}, {part}, out={total})",
    "min": "np.minimum({total}, {part}, out={total})",
}


def print_reduce(printer: ExpressionPrinter, expr: Reduce, frame: Frame) -> Code:
    """Return the code of a reduction, aligned with the frame."""
    if expr.finds_place:
        return print_place(printer, expr, frame)
    found = print_keyed(printer, expr, frame)
    if found is not None:
        return found
    # The condition becomes a branch of the body, whose other branch is the neutral value.
    expr = unconditional(expr)
    # 2.0 * (sum[p] x[p]) for sum[p] 2.0 * x[p].
    constant, varying = _split_factors(expr, frame)
    if constant:
        rest = replace(expr, body=_product(varying, expr.type))
        return printer.print(_product([*constant, rest], expr.type), frame)
    # The axes of the result: it is computed over these, then aligned with the frame.
    outer = tuple(index for index in frame if index in free_indices(expr))
    is_sum = expr.kind == "sum" and isinstance(expr.type, Scalar)
    if is_sum and _is_einsum(printer, expr, varying, frame):
        product = partial(_einsum, printer, expr, varying, outer)
        return align(unless_empty(printer, expr, outer, product), outer, frame)
    wanted = frozenset((*outer, *expr.indices))
    inner = find_carrier(expr.body, wanted, printer.scope.loops)
    if inner is not None:
        kept = tuple(index for index in inner if index in outer)
        reduced = partial(_over_axes, printer, expr, inner)
        value = unless_empty(printer, expr, kept, reduced)
        return align(value, kept, frame, expr.type)
    return align(_by_loops(printer, expr, outer), outer, frame, expr.type)


def _product(factors: list[Expr], type_: ValueType) -> Expr:
    return fold(lambda left, right: Binary("*", left, right, type_), factors)


def _split_factors(expr: Reduce, frame: Frame) -> tuple[list[Expr], list[Expr]]:
    """Split a sum's body into factors without axes, which are multiplied last, and others."""
    if not isinstance(expr.type, Scalar):
        return [], [expr.body]
    factors = [*factors_of(expr.body)]
    if expr.kind != "sum":
        return [], factors
    axes = {*frame, *expr.indices}
    constant = [
        factor
        for factor in factors
        if axes.isdisjoint(free_indices(factor))
        and not read_regardless(factor, expr.indices)
    ]
    varying = [factor for factor in factors if factor not in constant]
    return (constant, varying) if varying else ([], factors)


def _axes_of(factor: Expr, expr: Reduce, frame: Frame) -> frozenset[Index]:
    """Return the indices of the frame and the reduction that a factor depends on."""
    indices = {*frame, *expr.indices}
    return free_indices(factor) & indices


def _is_einsum(
    printer: ExpressionPrinter, expr: Reduce, factors: list[Expr], frame: Frame
) -> bool:
    """Return whether the sum's body is a product of arrays no larger than its inputs."""
    # `repeats`: a diagonal, x[i, i], which einsum computes without a second factor.
    covered = frozenset[Index]()
    repeats = False
    for factor in factors:
        axes = _axes_of(factor, expr, frame)
        bare = read_axes(factor, printer.scope.loops)
        if bare is None and find_carrier(factor, axes, printer.scope.loops) is None:
            return False
        repeats |= bare is not None and len(set(bare)) < len(bare)
        covered |= axes
    complete = covered.issuperset(expr.indices)
    return complete and (len(factors) > 1 or repeats)


def _einsum(
    printer: ExpressionPrinter, expr: Reduce, factors: list[Expr], outer: Frame
) -> Code:
    """
    Print a sum of products.

    Before:  sum[p] a[i, p] * b[p, j]
    After:   np.einsum("ip,pj->ij", a, b, optimize=True)
    """
    operands = [_operand(printer, expr, factor, outer) for factor in factors]
    letters = letters_for(index.name for axes, _ in operands for index in axes)
    subscripts = ",".join(
        "".join(letters[index.name] for index in axes) for axes, _ in operands
    )
    result = "".join(letters[index.name] for index in outer)
    arguments = [f'"{subscripts}->{result}"', *(text for _, text in operands)]
    if len(operands) > 1:
        arguments.append("optimize=True")
    return Code(f"np.einsum({', '.join(arguments)})", fresh=True)


def _operand(
    printer: ExpressionPrinter, expr: Reduce, factor: Expr, outer: Frame
) -> tuple[Frame, str]:
    """Return the axes and the text of a factor, as an array of its own."""
    loops = printer.scope.loops
    axes = read_axes(factor, loops)
    if axes is not None and isinstance(factor, Load):
        return axes, sliced(printer.scope, factor).text
    carrier = find_carrier(factor, _axes_of(factor, expr, outer), loops)
    assert carrier is not None, "checked by _is_einsum"
    return carrier, printer.print(factor, carrier).text


def _over_axes(printer: ExpressionPrinter, expr: Reduce, inner: Frame) -> Code:
    """
    Compute the body over the axes of a tensor it reads, then reduce some of them.

    Before:  sum[j] exp(x[i, j] - top[i])
    After:   np.sum(np.exp(x - top[:, None]), axis=1)
    """
    body = printer.print(expr.body, inner)
    axes = [str(axis) for axis, index in enumerate(inner) if index in expr.indices]
    arguments = [body.text]
    if len(axes) < len(inner) or components(expr.type):
        arguments.append(f"axis={axes[0] if len(axes) == 1 else tuple_text(axes)}")
    # `max` and `min` of nothing are the limit; sums of int32 would be int64 by default.
    limit = limit_of(expr)
    if limit is not None:
        arguments.append(f"initial={limit}")
    elif not is_float(expr.type):
        arguments.append(f"dtype={printer.scope.dtype(expr.type)}")
    return Code(f"np.{expr.kind}({', '.join(arguments)})", fresh=True)


def _by_loops(printer: ExpressionPrinter, expr: Reduce, outer: Frame) -> Code:
    """
    Accumulate one slice after the other.

    Before:  max[p] a[i, p] + b[p, j]
    After:   for p in range(k):
                 np.maximum(c_max, a[:, p, None] + b[p], out=c_max)
    """
    scope = printer.scope
    total = write_empty(printer, expr, outer)
    with scope.loops_over(expr.indices):
        part = printer.print(expr.body, outer)
        scope.writer.line(_ACCUMULATE[expr.kind].format(total=total, part=part.text))
    return Code(total, fresh=True)


# The letters for indices in einsum's subscripts


def letters_for(names: Iterable[str]) -> dict[str, str]:
    """Return einsum's letter for each index: its own name, its initial, or an unused one."""
    listed = list(dict.fromkeys(names))
    letters = {name: name for name in listed if len(name) == 1 and name.isalpha()}
    for name in listed:
        if name not in letters:
            wanted = (name.strip("_").lower()[:1], *ascii_letters)
            taken = set(letters.values())
            letters[name] = next(x for x in wanted if x.isalpha() and x not in taken)
    return letters

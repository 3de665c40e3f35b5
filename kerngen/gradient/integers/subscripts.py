"""Normalise subscripts as the checker does: bare, affine, or clamped.

`i` is an `IndexValue`; `2 * i + u` is `Affine`, and checked at the call; `i / 2`, or `i - 1`
in a branch of an `if`, is `Clamped`.
"""

from __future__ import annotations

from dataclasses import replace

from kerngen.gradient.text import expr_text
from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import affine_form
from kerngen.ir.analysis.extremes import stays_inside
from kerngen.ir.analysis.requirements import known_of
from kerngen.ir.types import Scalar
from kerngen.ir.walk import children, map_children, subscript_value


def formed(expr: ir.Expr) -> ir.Expr:
    """Return an expression with all subscripts normalised."""
    return _subscripted(expr, is_guarded=False)


def _subscripted(expr: ir.Expr, *, is_guarded: bool) -> ir.Expr:
    """Return an expression with normalised subscripts; `is_guarded` in a condition's branch."""
    if isinstance(expr, ir.Load):
        moved = tuple(
            _formed(subscript, extent, is_guarded=is_guarded)
            for subscript, extent in zip(
                expr.subscripts, expr.tensor.extents, strict=True
            )
        )
        path = _path_subscripted(expr.path, is_guarded=is_guarded)
        return replace(expr, subscripts=moved, path=path)
    if isinstance(expr, ir.UniformValue) and expr.path:
        path = _path_subscripted(expr.path, is_guarded=is_guarded)
        return replace(expr, path=path)
    if isinstance(expr, ir.Part):
        operand = _subscripted(expr.operand, is_guarded=is_guarded)
        (at,) = _path_subscripted((expr.at,), is_guarded=is_guarded)
        assert isinstance(at, ir.At)
        return replace(expr, operand=operand, at=at)
    parts = children(expr)
    if not parts:
        return expr
    guards = isinstance(expr, ir.Select | ir.Reduce) or (
        isinstance(expr, ir.Binary) and expr.op in {"and", "or"}
    )
    guards = guards and len(parts) > 1
    # The first part, of a choice its condition, is evaluated in any case.
    first = next(iter(parts))

    def visit(child: ir.Expr) -> ir.Expr:
        later = guards and child is not first
        return _subscripted(child, is_guarded=is_guarded or later)

    return map_children(expr, visit)


def _path_subscripted(path: ir.Path, *, is_guarded: bool) -> ir.Path:
    return tuple(
        (
            replace(step, place=_formed(step.place, step.length, is_guarded=is_guarded))
            if isinstance(step, ir.At)
            else step
        )
        for step in path
    )


def _formed(
    subscript: ir.Subscript, extent: ir.Extent, *, is_guarded: bool
) -> ir.Subscript:
    """Return a subscript in the form that the checker would give it."""
    value = _subscripted(subscript_value(subscript), is_guarded=is_guarded)
    if isinstance(value, ir.IndexValue):
        if value.index.extent == extent or not is_guarded:
            return value
        # A bare index is not clamped, even where a condition guards it.
        value = ir.Binary("+", value, ir.Constant(0, Scalar.I32), Scalar.I32)
    form = affine_form(value)
    if form is None or (is_guarded and not stays_inside(form, extent)):
        return ir.Clamped(value)
    return ir.Affine(value, expr_text(value))


def without_needless_clamps(kernel: ir.Kernel) -> ir.Kernel:
    """Return a kernel without clamps that its requirements make unnecessary."""
    known = known_of(kernel)

    def place(subscript: ir.Subscript, extent: ir.Extent) -> ir.Subscript:
        if not isinstance(subscript, ir.Clamped):
            return subscript
        form = affine_form(subscript.value)
        if form is None or not known.keeps_inside(form, extent):
            return subscript
        return ir.Affine(subscript.value, expr_text(subscript.value))

    def visit(node: ir.Expr) -> ir.Expr:
        node = map_children(node, visit)
        if not isinstance(node, ir.Load):
            return node
        pairs = zip(node.subscripts, node.tensor.extents, strict=True)
        subscripts = tuple(place(s, e) for s, e in pairs)
        return (
            node
            if subscripts == node.subscripts
            else replace(node, subscripts=subscripts)
        )

    body = tuple(replace(s, value=visit(s.value)) for s in kernel.body)
    return replace(kernel, body=body)

"""Bounds of subscripts: `x[i + 1]`, with i over all of x, is out of bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kerngen.check.faults.indices import SubscriptOutside
from kerngen.check.hints.borders import Side, choice_at_border, last_element, reaches
from kerngen.check.scope import one_line
from kerngen.ir.analysis.extremes import stays_inside
from kerngen.ir.nodes import Affine, Subscript
from kerngen.source.text import Span
from kerngen.syntax import ast

if TYPE_CHECKING:
    from kerngen.check.expressions.checker import Expressions
    from kerngen.check.expressions.subscripts import Subscripted


def is_out_of_bounds(
    ex: Expressions,
    tensor: Subscripted,
    places: tuple[Subscript, ...],
    span: Span,
    nodes: tuple[ast.Expr, ...],
) -> bool:
    """Whether an affine subscript leaves its axis for all lengths; that is a fault.

    One that moves is told once per tensor and statement: who minds one border will mind
    the others.  A let that reads itself has an order to begin with: `recursion` looks at
    its borders.
    """
    if ex.env.current.in_let and tensor.name == ex.env.current.target:
        return False
    sides = [
        Side(tensor, axis, place.value, node)
        for axis, (place, node) in enumerate(zip(places, nodes, strict=True))
        if isinstance(place, Affine)
    ]
    outside = [side for side in sides if stays_inside(side.form, side.extent) is False]
    moves = False
    for side in outside:
        remedy = last_element(ex.env, side)
        if side.form.terms:
            if moves:
                continue
            moves = True
            ex.scope.poison(tensor.name, "a tensor", tensor.span)
            remedy = choice_at_border(
                ex.env, side, sides, one_line(span.text, limit=80)
            )
        ex.env.faults.add(
            SubscriptOutside(
                span=side.node.span,
                text=one_line(side.node.span.text),
                reaches=reaches(ex.env, side.form, side.extent),
                axis=side.axis,
                tensor=tensor.name,
                length=ex.env.length_text(side.extent),
                remedy=remedy,
            )
        )
    return bool(outside)

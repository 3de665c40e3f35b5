"""Warnings of quotients in subscripts whose dividend can be negative.

`x[(i - 1) % n]` reads element 0 where `i` is 0, and who thinks in Python means the last
one.  In a branch of an `if` nothing is reported: its condition is there to prevent it.
"""

from __future__ import annotations

from typing import Literal, TypeGuard

from kerngen.check.environment import Environment
from kerngen.check.faults_indices import NegativeDividend
from kerngen.check.scope import one_line
from kerngen.check.traverse import walk_syntax
from kerngen.ir.nodes import Binary, Expr
from kerngen.ir.signs import may_be_negative
from kerngen.ir.types import Scalar
from kerngen.ir.walk import walk
from kerngen.syntax import ast


def warn_of_negatives(env: Environment, node: ast.Expr, value: Expr) -> None:
    """Record a warning for each quotient in a subscript that may round up."""
    typed = [
        part for part in walk(value) if isinstance(part, Binary) and _divides(part.op)
    ]
    written = [
        part
        for part in walk_syntax(node)
        if isinstance(part, ast.Binary) and _divides(part.op)
    ]
    if len(typed) != len(written):  # some were computed: only the others are typed
        written = [part for part in written if not _is_of_literals(part)]
    for quotient, place in zip(typed, written, strict=False):
        if quotient.type is Scalar.I32 and may_be_negative(quotient.left):
            _warn(env, place)


def _warn(env: Environment, place: ast.Binary) -> None:
    if not _divides(place.op):
        return
    env.warnings.add(
        NegativeDividend(
            span=place.span,
            operator=place.op,
            left=one_line(place.left.span.text, limit=60),
            right=one_line(place.right.span.text, limit=60),
        )
    )


def _divides(op: str) -> TypeGuard[Literal["/", "%"]]:
    return op in {"/", "%"}


def _is_of_literals(node: ast.Expr) -> bool:
    return not any(isinstance(part, ast.Name) for part in walk_syntax(node))

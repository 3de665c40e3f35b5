"""Checking reductions, and the rules of a kernel's body: nothing else may have reductions."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, final

from kerngen.check import faults as diag
from kerngen.check.expressions.checker import Expressions
from kerngen.check.expressions.index_ranges import bind_indices
from kerngen.check.expressions.operators import NUMBERS, check_operand, report_operand
from kerngen.check.expressions.rules import NodeRules
from kerngen.check.scope import Scope
from kerngen.ir.analysis.conditions import conditional
from kerngen.ir.nodes import Expr, Reduce
from kerngen.ir.types import Matrix, Scalar
from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Span
from kerngen.syntax import ast


@final
class _KernelRules(NodeRules):
    has_elements = True

    def refusal(self, span: Span, what: str, declared: Span | None) -> Diagnostic:
        raise AssertionError(f"a kernel may read {what}")

    def reduction(
        self, ex: Expressions, node: ast.Reduction, want: Scalar | None
    ) -> Expr | None:
        return _reduction(ex, node, want)


KERNEL: Final = _KernelRules()


def _reduction(
    ex: Expressions, node: ast.Reduction, want: Scalar | None
) -> Expr | None:
    inner = replace(ex, scope=Scope(ex.env.faults, ex.scope))
    with bind_indices(inner, node.binders, node.terms, node.kind) as indices:
        condition = inner.condition(node.condition) if node.condition else None
        terms = inner.guarded(node.condition) if node.condition else inner
        finds_place = node.kind in {"argmax", "argmin"}
        body = terms.check(node.body, None if finds_place else want)
    if body is None or indices is None or (node.condition and condition is None):
        return None
    if finds_place:
        return _place(ex, node, Reduce(node.kind, indices, body, Scalar.I32, condition))
    if isinstance(body.type, Matrix) and node.kind != "sum":  # WGSL has none either
        text = node.body.span.one_line()
        if not isinstance(node.body, ast.Name | ast.Member | ast.Subscript):
            text = f"({text})"
        remedy = f"Take a column of each: '{text}[0]'."
        taken = "numbers and vectors"
        report_operand(ex, node.kind, node.body, body.type, taken, remedy)
        return None
    if not check_operand(ex, node.kind, node.body, body.type, NUMBERS, want):
        return None
    return conditional(Reduce(node.kind, indices, body, body.type, condition))


def _place(ex: Expressions, node: ast.Reduction, reduce: Reduce) -> Expr | None:
    """Check `argmax` or `argmin`: it has one index, and compares numbers."""
    if len(reduce.indices) > 1:
        ex.env.faults.add(
            diag.PlaceOfSeveral(
                span=node.binders[1].name.span,
                kind=node.kind,
                names=tuple(index.name for index in reduce.indices),
                of=node.kind.removeprefix("arg"),
            )
        )
        return None
    actual = reduce.body.type
    if not isinstance(actual, Scalar):
        remedy = "Choose a number of each, such as a component or its length."
        report_operand(ex, node.kind, node.body, actual, "numbers", remedy)
        return None
    accepted = check_operand(ex, node.kind, node.body, actual, NUMBERS)
    return reduce if accepted else None

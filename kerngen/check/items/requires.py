"""Checking `require`: conditions on a call, and the facts that they prove."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, Literal

from kerngen.check.environment import Environment
from kerngen.check.expressions.checker import Expressions
from kerngen.check.expressions.host_rules import RequireRules
from kerngen.check.faults.statements import AlwaysMet, NeverMet, RequireType
from kerngen.check.scope import Scope
from kerngen.ir.analysis.requirements import Known
from kerngen.ir.nodes import Expr, Parameter, Requirement
from kerngen.ir.types import Scalar
from kerngen.ir.walk import walk
from kerngen.syntax import ast

_LONGEST: Final = 80


def check_requires(
    env: Environment,
    scope: Scope,
    item: ast.KernelItem,
    dims: Sequence[str],
    parameters: Sequence[Parameter],
) -> Known:
    """Return the facts that a kernel's `require`s prove about every call.

    `a and b` are two conditions, so that a message shows the one that does not hold.
    """
    unsigned = [p.name for p in parameters if p.memory.spelling == Scalar.U32.value]
    values = (s for s in item.equations if not isinstance(s, ast.Assignment))
    computed = frozenset(statement.name.name for statement in values)
    ex = Expressions(env, scope, RequireRules(computed))
    known = Known((), dims, unsigned, env.derived, env.hosts)
    for statement in item.requires:
        for node in _conjuncts(statement.condition):
            condition = _condition(ex, node)
            if condition is None or not _tells(env, item, known, node, condition):
                continue
            text = node.span.one_line(limit=_LONGEST)
            requirement = Requirement(condition, text, node.span)
            known = replace(known, requires=(*known.requires, requirement))
    return known


def _conjuncts(node: ast.Expr) -> Iterator[ast.Expr]:
    if isinstance(node, ast.Binary) and node.op == "and":
        yield from _conjuncts(node.left)
        yield from _conjuncts(node.right)
    else:
        yield node


def _condition(ex: Expressions, node: ast.Expr) -> Expr | None:
    value = ex.check(node)
    if value is None:
        return None
    if any(part.type is Scalar.F32 for part in walk(value)):
        ex.rules.refuse(ex, node.span, "numbers with a fraction")
        return None
    if value.type is Scalar.BOOL:
        return value
    text = node.span.one_line()
    example = f"{text} == 0" if "%" in text else f"{text} > 0"
    ex.env.faults.add(RequireType(span=node.span, example=example))
    return None


def _tells(
    env: Environment,
    item: ast.KernelItem,
    known: Known,
    node: ast.Expr,
    condition: Expr,
) -> bool:
    """Whether a condition holds of some calls and not of others; report it if not."""
    guard = known.guard(condition)
    found = known.facts.decide(guard)
    if found is None:
        return True
    alone = replace(known, requires=()).facts.decide(guard) is not None
    case: Literal["alone", "beside"] = "alone" if alone else "beside"
    kind = AlwaysMet if found else NeverMet
    env.faults.add(kind(span=node.span, case=case, kernel=item.name.name))
    return False

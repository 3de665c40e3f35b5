"""Lengths that the host computes: of an output's axes, and ranges given for indices."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kerngen.check.environment import Environment
from kerngen.check.expressions.host_rules import LengthRules
from kerngen.check.faults.indices import LengthType, LengthValue
from kerngen.check.scope import one_line
from kerngen.check.text import collapse
from kerngen.ir.builtins.evaluate import NotFiniteError, bounds, constant_value
from kerngen.ir.nodes import DerivedDim, DimValue, Expr, Extent
from kerngen.ir.types import Scalar
from kerngen.syntax import ast

if TYPE_CHECKING:
    from kerngen.check.expressions.checker import Expressions

MAX_EXTENT: Final = bounds(Scalar.I32)[1]

_WORDS: Final = {"+": "plus", "-": "minus", "*": "times", "/": "div", "%": "mod"}
_LONGEST_NAME: Final = 32


def check_length(
    ex: Expressions, node: ast.Expr, place: str, name: str, *, instead: str = ""
) -> Extent | None:
    """Return a length: a literal, a dim, or what the host must compute at each call.

    `place` says what is so long, in the words of a diagnostic; `name` is what a derived
    dim is called where its text is too long for a name; `instead` is the hint where the
    length depends on an index.
    """
    env = ex.env
    value = ex.under(LengthRules(place, instead)).check(node)
    if value is None:
        return None
    if not value.type.is_integer:
        fault = LengthType(span=node.span, place=place, actual=value.type.spelling)
        env.faults.add(fault)
        return None
    constant = _constant(value)
    if constant is not None:
        return _literal(env, node, place, constant)
    if isinstance(value, DimValue):
        return value.name
    return _derived(env, node, value, name)


def _constant(value: Expr) -> int | None:
    try:
        constant = constant_value(value)
    except NotFiniteError:
        return None
    return None if constant is None else int(constant)


def _literal(env: Environment, node: ast.Expr, place: str, value: int) -> int | None:
    if 0 <= value <= MAX_EXTENT:
        return value
    fault = LengthValue(span=node.span, place=place, value=value)
    env.faults.add(fault)
    return None


def _derived(env: Environment, node: ast.Expr, value: Expr, name: str) -> str:
    """Return the name of a derived dim; equal values share one."""
    for dim in env.derived:
        if dim.value == value:
            return dim.name
    text = one_line(node.span.text, limit=80)
    dim = DerivedDim(_name(env, node, name), value, text)
    env.derived.append(dim)
    return dim.name


def _name(env: Environment, node: ast.Expr, otherwise: str) -> str:
    """Spell an expression as a name that the kernel's text does not hold: `h_div_2`."""
    tokens: list[str] = re.findall(r"\w+|[-+*/%]", collapse(node.span.text))
    wanted = "_".join(_WORDS.get(token, token) for token in tokens)
    if len(wanted) > _LONGEST_NAME or not wanted.isidentifier():
        wanted = otherwise
    if wanted in env.identifiers:
        wanted += "_length"
    taken = env.identifiers | {dim.name for dim in env.derived}
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name

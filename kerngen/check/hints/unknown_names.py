"""Unknown names, and what may be meant by them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from kerngen.check.environment import Environment
from kerngen.check.faults.indices import IndexAsValue
from kerngen.check.faults.names import UnknownName, UsedBeforeDefinition
from kerngen.check.traverse import walk_syntax
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.geometry import GEOMETRY
from kerngen.ir.types import CASTS, COMPOSITES
from kerngen.source.similar import closest, did_you_mean
from kerngen.syntax import ast
from kerngen.syntax.mistakes import foreign

if TYPE_CHECKING:
    from kerngen.check.expressions.checker import Expressions

_MOST_SUGGESTED: Final = 30


def _why_undefined(
    ex: Expressions, name: str
) -> Literal["constant", "own", "mutual", "later"]:
    """Return why a value has no definition before its use."""
    env = ex.env
    if ex.rules.must_fit:
        return "constant"
    if env.current.in_let and env.current.target == name:
        return "own"
    if env.current.in_let and _reads(env, name, env.current.target):
        return "mutual"
    return "later"


def _reads(env: Environment, let: str, name: str) -> bool:
    """Whether a let further down reads a name."""
    return any(
        isinstance(part, ast.Name) and part.name == name
        for statement in env.current.body[env.current.place :]
        if isinstance(statement, ast.LetStatement) and statement.name.name == let
        for part in walk_syntax(statement.value)
    )


def report_unknown(ex: Expressions, node: ast.Name, otherwise: str = "") -> None:
    """Record an unknown name, the first time it is met.

    `otherwise` is the hint where nothing is like it.
    """
    name, env = node.name, ex.env
    if name in env.reported:
        return
    if name in env.later:
        env.faults.add(
            UsedBeforeDefinition(
                span=node.span,
                other=env.later[name],
                name=name,
                case=_why_undefined(ex, name),
            )
        )
    elif name in env.indices or env.current.binds(name, node.span):
        env.blame_use(name)
        env.faults.add(
            IndexAsValue(span=node.span, name=name, declared=env.indices.get(name))
        )
        return
    else:
        # Comparing takes time, and nobody minds the hints of so many.
        few = len(env.reported) < _MOST_SUGGESTED
        known = [*ex.scope.names(), *env.later] if few else []
        remedy = did_you_mean(closest(name, known))
        if name in BUILTINS or name in GEOMETRY or name in env.functions:
            remedy = f"It is a function: call it, as in '{name}(x)'."
        elif name in CASTS or name in COMPOSITES:
            remedy = f"It is a type: '{name}(x)' makes a value of it."
        if name in foreign.VALUES:
            remedy = f"Write {foreign.VALUES[name]}."
        remedy = remedy or otherwise
        if not remedy and env.current.in_let and len(name) == 1:
            written = f"'let {env.current.target}[{name} < n] = ...;'"
            remedy = f"An index is introduced on the left, with its range: {written}."
        remedy = remedy or ex.rules.introduction
        env.faults.add(UnknownName(span=node.span, name=name, remedy=remedy))
    env.reported.add(name)

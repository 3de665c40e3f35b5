"""Names that stand for nothing where they are used."""

from __future__ import annotations

from kerngen.check.environment import Environment
from kerngen.check.faults_indices import IndexAsValue
from kerngen.check.faults_names import UnknownName, UsedBeforeDefinition
from kerngen.check.scope import Scope, closest, did_you_mean
from kerngen.syntax import ast, foreign


def report_unknown(env: Environment, scope: Scope, node: ast.Name) -> None:
    """Record a name that stands for nothing, the first time it is met."""
    name = node.name
    if name in env.reported or name in env.current.unbound:
        return
    if name in env.later:
        env.faults.add(
            UsedBeforeDefinition(span=node.span, other=env.later[name], name=name)
        )
    elif name in env.current.bound or name in env.indices:
        env.faults.add(IndexAsValue(span=node.span, name=name))
        return
    else:
        remedy = did_you_mean(closest(name, scope.names()))
        if name in foreign.VALUES:
            remedy = f"Write {foreign.VALUES[name]}."
        env.faults.add(UnknownName(span=node.span, name=name, remedy=remedy))
    env.reported.add(name)

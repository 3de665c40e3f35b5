"""What a statement writes: whether it may, and what to write instead."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from kerngen.check.environment import Environment
from kerngen.check.faults.names import UnknownName
from kerngen.check.faults.statements import WriteToInput, WriteToValue
from kerngen.check.hints.whole_statements import as_sum, target_text
from kerngen.check.scope import (
    Poison,
    Scope,
    TensorSymbol,
    ValueSymbol,
)
from kerngen.ir.nodes import Role
from kerngen.source.similar import closest, did_you_mean
from kerngen.syntax import ast

_ValueKind: TypeAlias = Literal["let", "host", "constant", "dim", "scalar"]


_KINDS: Final[dict[str, _ValueKind]] = {
    "a let": "let",
    "a host": "host",
    "a constant": "constant",
    "a dim": "dim",
    "a scalar": "scalar",
}


def written_tensor(
    env: Environment, scope: Scope, node: ast.Assignment
) -> TensorSymbol | None:
    """Return the tensor that is written, if it may be; if not, that is a fault."""
    name = node.name
    symbol = scope.get(name.name)
    match symbol:
        case TensorSymbol(tensor=tensor) if tensor.role in {Role.UPDATE, Role.OUTPUT}:
            return symbol
        case TensorSymbol(tensor=tensor) if tensor.role is Role.INPUT:
            _report_input(env, name, symbol)
        case Poison():
            pass
        case None:
            _report_unknown(env, scope, node)
        case _:
            summed = as_sum(scope, node) if isinstance(symbol, TensorSymbol) else ""
            value = symbol.value if isinstance(symbol, ValueSymbol) else None
            fault = WriteToValue(
                span=name.span,
                case="sum" if summed else _KINDS.get(symbol.kind, "other"),
                declared=symbol.span,
                name=name.name,
                kind=symbol.kind,
                sum=summed,
                type=value.type.spelling if value else "",
            )
            env.faults.add(fault)
    return None


def _report_input(env: Environment, name: ast.Identifier, symbol: TensorSymbol) -> None:
    axes = ", ".join(env.length_text(extent) for extent in symbol.tensor.extents)
    env.faults.add(
        WriteToInput(
            span=name.span,
            other=symbol.span,
            name=name.name,
            type=f"{symbol.tensor.memory.spelling}[{axes}]",
        )
    )


def _report_unknown(env: Environment, scope: Scope, node: ast.Assignment) -> None:
    """Record a misspelt target; what was meant then counts as written."""
    name = node.name
    suggestion = closest(name.name, scope.names())
    # Whatever was meant is not missed: with nothing alike, it may be any output.
    outputs = (t.name for t in env.tensors if t.role is Role.OUTPUT)
    env.written.update((suggestion,) if suggestion else outputs)
    env.reported.add(name.name)
    remedy = did_you_mean(suggestion)
    if not remedy:
        introduced = as_sum(scope, node) if node.op == "+=" else ""
        target = target_text(node)
        remedy = introduced or f"To name a value, write 'let {target} = ...;'."
    env.faults.add(UnknownName(span=name.span, name=name.name, remedy=remedy))

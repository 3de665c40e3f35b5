"""What a statement writes: whether it may, and what to write instead."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from kerngen.check.environment import Environment
from kerngen.check.expressions.subscripts import example_read
from kerngen.check.faults.names import UnknownName
from kerngen.check.faults.statements import WriteToInput, WriteToValue
from kerngen.check.scope import (
    Poison,
    Scope,
    TensorSymbol,
    ValueSymbol,
    one_line,
)
from kerngen.check.traverse import bare_subscripts, walk_syntax
from kerngen.ir.builtins import BUILTINS
from kerngen.ir.geometry import GEOMETRY
from kerngen.ir.nodes import Role
from kerngen.ir.types import CASTS, COMPOSITES
from kerngen.source.similar import closest, did_you_mean
from kerngen.syntax import ast

_LONGEST_EXAMPLE = 80

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
        target = _text_of_target(node)
        remedy = introduced or f"To name a value, write 'let {target} = ...;'."
    env.faults.add(UnknownName(span=name.span, name=name.name, remedy=remedy))


def free_indices(scope: Scope, node: ast.Assignment) -> tuple[str, ...]:
    """Return the indices on the right that stand for nothing, each once."""
    known = {part.name for part in node.subscripts if isinstance(part, ast.Name)}
    for part in walk_syntax(node.value):
        if isinstance(part, ast.Reduction):
            known.update(binder.name.name for binder in part.binders)
    names = (part.name for _, _, part in bare_subscripts(node.value))
    found = dict.fromkeys(name for name in names if scope.get(name) is None)
    return tuple(name for name in found if name not in known)


def as_sum(scope: Scope, node: ast.Assignment) -> str:
    """Return the hint for one who adds up as if in a loop over free indices."""
    free = free_indices(scope, node)
    if node.op != "+=" or not free:
        return ""
    symbol = scope.get(node.name.name)
    is_output = isinstance(symbol, TensorSymbol) and symbol.tensor.role is Role.OUTPUT
    value = one_line(node.value.span.text, limit=_LONGEST_EXAMPLE)
    if isinstance(node.value, ast.Binary) and node.value.op != "*":
        value = f"({value})"
    written = f"{'' if is_output else 'let '}{_text_of_target(node)}"
    return f"To add up, write '{written} = sum[{', '.join(free)}] {value};'."


def elementwise(
    env: Environment, scope: Scope, node: ast.Assignment, symbol: TensorSymbol
) -> str:
    """Return a statement about whole tensors as one about their elements."""
    example = example_read(env, scope, symbol.tensor)
    subscripts = example.removeprefix(symbol.tensor.name)
    start, source = node.value.span.start, node.span.source.text
    text = source[start : node.value.span.end]
    if node.subscripts or len(text) > _LONGEST_EXAMPLE or "\n" in text:
        return example
    parts = [*walk_syntax(node.value)]
    if any(_is_no_element(env, scope, part) for part in parts):
        return f"{example} {node.op} ...;"
    read = [part.base for part in parts if isinstance(part, ast.Subscript)]
    for part in reversed(parts):
        whole = scope.get(part.name) if isinstance(part, ast.Name) else None
        if not isinstance(whole, TensorSymbol) or any(part is base for base in read):
            continue
        if whole.tensor.rank == symbol.tensor.rank:
            at = part.span.end - start
            text = f"{text[:at]}{subscripts}{text[at:]}"
    return f"{example} {node.op} {text};"


def _is_no_element(env: Environment, scope: Scope, part: ast.Expr) -> bool:
    """Whether a part has no twin that is about one element: `x.T`, or `zeros(n)`."""
    match part:
        case ast.Member(base=ast.Name(name=name)):
            return isinstance(scope.get(name), TensorSymbol)
        case ast.Call(function=function):
            known = {*env.functions, *BUILTINS, *GEOMETRY, *CASTS, *COMPOSITES}
            return function.name not in known
        case _:
            return False


def _text_of_target(node: ast.Assignment) -> str:
    source, begin = node.span.source.text, node.name.span.start
    text = source[begin : node.value.span.start].rstrip()
    return one_line(text.removesuffix(node.op))

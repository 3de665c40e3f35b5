"""Statements to write instead: a sum for a loop, elements for whole tensors."""

from __future__ import annotations

from kerngen.check.environment import Environment
from kerngen.check.hints.examples import example_read
from kerngen.check.scope import Scope, TensorSymbol, one_line
from kerngen.check.traverse import bare_subscripts, walk_syntax
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.geometry import GEOMETRY
from kerngen.ir.nodes import Role
from kerngen.ir.types import CASTS, COMPOSITES
from kerngen.syntax import ast

_LONGEST_EXAMPLE = 80


def free_indices(scope: Scope, node: ast.Assignment) -> tuple[str, ...]:
    """Return the unknown indices on the right, each once."""
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
    written = f"{'' if is_output else 'let '}{target_text(node)}"
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


def target_text(node: ast.Assignment) -> str:
    """Return the left side as it is written, on one line."""
    source, begin = node.span.source.text, node.name.span.start
    text = source[begin : node.value.span.start].rstrip()
    return one_line(text.removesuffix(node.op))

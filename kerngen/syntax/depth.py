"""Limits on the nesting of expressions, and on the length of operator chains.

Later stages walk expressions by recursion.  Within the limits, no program of a user ends in a
RecursionError, and no generated file exceeds the limits that Tint and type checkers have.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Final, final

from kerngen.source.diagnostic import Diagnostic, Faults
from kerngen.source.text import Span
from kerngen.syntax import ast
from kerngen.syntax.faults import LongChain, NestedTooDeep, TooManyIndices

LIMIT: Final = 128
"""The deepest nesting of an expression, where a chain such as `a + b + c` is one level."""

LONGEST_CHAIN: Final = 240
"""The deepest nesting where each operator is a level: pyright reads 256."""

MOST_CALLS: Final = 180
"""The deepest nesting where each factor of a product is a level, too.

In generated Python, matrices are multiplied by calls; Python reads 200 nested parentheses.
"""

MOST_INDICES: Final = 16
"""The most indices in scope at one place, and the most axes: Python nests 20 loops."""

_FRAMES: Final = 4000
"""Python's recursion limit: each level of an expression takes several frames."""

_CHAINS: Final[dict[ast.BinaryOp, str]] = {
    "+": "sum",
    "-": "sum",
    "*": "product",
    "and": "and",
    "or": "or",
    "&": "&",
    "|": "|",
    "^": "^",
}
"""The kind of chain that an operator belongs to: `+` and `-` are mixed in one."""


@contextmanager
def deep_recursion() -> Generator[None]:
    """Raise Python's recursion limit in a block, as far as deep expressions need."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def continues(expr: ast.Expr, first: ast.Expr) -> bool:
    """Whether an expression continues the operator chain of its first operand."""
    if not isinstance(expr, ast.Binary) or expr.left is not first:
        return False
    chain = _CHAINS.get(expr.op)
    return isinstance(first, ast.Binary) and chain == _CHAINS.get(first.op, "")


def split_by_depth(
    items: tuple[ast.Item, ...], faults: Faults
) -> tuple[tuple[ast.Item, ...], tuple[ast.Item, ...]]:
    """Return the items within the limits, and those beyond, which are reported."""
    deep = {id(item) for item in items if _reported(item, faults)}
    return (
        tuple(item for item in items if id(item) not in deep),
        tuple(item for item in items if id(item) in deep),
    )


@final
@dataclass(frozen=True, slots=True)
class _Place:
    """A node with its depth, counted in three ways, and the chain that it belongs to, if any.

    - `nesting`: a chain is one level
    - `calls`: each factor of a product is a level of its own
    - `height`: each operator is
    - `indices`: how many indices are in scope
    """

    node: object
    nesting: int = 0
    calls: int = 0
    height: int = 0
    chain: ast.Expr | None = None
    indices: int = 0

    def fault(self) -> Diagnostic | None:
        """Return the diagnostic, or None."""
        if (
            isinstance(self.node, ast.TypeName)
            and len(self.node.axes or ()) > MOST_INDICES
        ):
            return TooManyIndices(span=self.node.span, noun="axes", limit=MOST_INDICES)
        if self.indices + len(_introduced(self.node)) > MOST_INDICES:
            last = _introduced(self.node)[-1]
            return TooManyIndices(span=last, noun="indices", limit=MOST_INDICES)
        if not isinstance(self.node, ast.Expr):
            return None
        if self.nesting > LIMIT:
            return NestedTooDeep(span=self.node.span, limit=LIMIT)
        for depth, limit in ((self.calls, MOST_CALLS), (self.height, LONGEST_CHAIN)):
            if depth > limit:
                whole = self.chain or self.node
                return LongChain(span=whole.span, limit=limit)
        return None

    def below(self) -> Iterator[_Place]:
        """Yield the parts of the node, with their depths."""
        node = self.node
        indices = self.indices + len(_introduced(node))
        for child in _children(node):
            nesting, calls, height, chain = self.nesting, self.calls, self.height, None
            if isinstance(child, ast.Expr):
                height += 1
                if isinstance(node, ast.Expr) and continues(node, child):
                    chain = self.chain or node
                    calls += isinstance(node, ast.Binary) and node.op == "*"
                else:
                    nesting += 1
                    calls += 1
            yield _Place(child, nesting, calls, height, chain, indices)


def _introduced(node: object) -> tuple[Span, ...]:
    """Return the places of the indices that a node introduces for the nodes inside."""
    match node:
        case ast.Reduction(binders=found) | ast.LetStatement(binders=found):
            return tuple(binder.name.span for binder in found)
        case ast.Assignment(subscripts=subscripts):
            return tuple(subscript.span for subscript in subscripts)
        case _:
            return ()


def _reported(item: ast.Item, faults: Faults) -> bool:
    """Report the first expression of an item that is beyond a limit; return if there is one.

    The walk has a stack of its own: recursion would fail on just the deep expressions.
    """
    pending = [_Place(item)]
    while pending:
        place = pending.pop()
        fault = place.fault()
        if fault is not None:
            faults.add(fault)
            return True
        pending.extend(place.below())
    return False


def _children(node: object) -> Iterator[object]:
    """Yield the parts of a node that have parts themselves."""
    kind: type = type(node)
    for name in _parts_of(kind):
        part = getattr(node, name)
        if isinstance(part, tuple):
            yield from part
        elif not isinstance(part, _PLAIN):
            yield part


_PLAIN: Final = (str, int, float, type(None), ast.Identifier)


@cache
def _parts_of(kind: type) -> tuple[str, ...]:
    """Return the names of a node's parts."""
    names = (field.name for field in fields(kind)) if is_dataclass(kind) else ()
    return tuple(name for name in names if name != "span")

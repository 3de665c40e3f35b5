"""The limit on how deep expressions nest.

Later stages walk expressions by recursion.  The limit keeps them well within Python's
own, so that nothing a user writes can end in a RecursionError.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from kerngen.source.diagnostic import Faults
from kerngen.syntax import ast
from kerngen.syntax.faults import NestedTooDeep

LIMIT = 128


def check_depth(program: ast.Program, faults: Faults) -> None:
    """Report an expression that lies deeper than `LIMIT`, at most one per item."""
    for item in program.items:
        pending: list[tuple[object, int]] = [(item, 0)]
        while pending:
            node, depth = pending.pop()
            if isinstance(node, ast.Expr):
                depth += 1
                if depth > LIMIT:
                    faults.add(NestedTooDeep(span=node.span, limit=LIMIT))
                    break
            pending.extend((child, depth) for child in _children(node))


def _children(node: object) -> Iterator[object]:
    if isinstance(node, tuple):
        yield from node
    elif is_dataclass(node):
        for field in fields(node):
            if field.name != "span":
                yield getattr(node, field.name)

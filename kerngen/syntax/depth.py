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


def split_by_depth(
    items: tuple[ast.Item, ...], faults: Faults
) -> tuple[tuple[ast.Item, ...], tuple[ast.Item, ...]]:
    """Tell the items within `LIMIT` from those beyond; report one place in each."""
    deep = {id(item) for item in items if _reported(item, faults)}
    return (
        tuple(item for item in items if id(item) not in deep),
        tuple(item for item in items if id(item) in deep),
    )


def _reported(item: ast.Item, faults: Faults) -> bool:
    """Whether an expression of an item lies deeper than `LIMIT`; then report it."""
    pending: list[tuple[object, int]] = [(item, 0)]
    while pending:
        node, depth = pending.pop()
        if isinstance(node, ast.Expr):
            depth += 1
            if depth > LIMIT:
                faults.add(NestedTooDeep(span=node.span, limit=LIMIT))
                return True
        pending.extend((child, depth) for child in _children(node))
    return False


def _children(node: object) -> Iterator[object]:
    if isinstance(node, tuple):
        yield from node
    elif is_dataclass(node):
        for field in fields(node):
            if field.name != "span":
                yield getattr(node, field.name)

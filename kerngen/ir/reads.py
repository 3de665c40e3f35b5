"""Questions about what an expression or a statement reads."""

from __future__ import annotations

from collections.abc import Iterator

from kerngen.ir.nodes import (
    ConstRef,
    Expr,
    Index,
    IndexValue,
    Load,
    Reduce,
    Statement,
    Tensor,
)
from kerngen.ir.walk import children, walk


def loads(expr: Expr) -> Iterator[Load]:
    """Yield every tensor read, those inside of subscripts and reductions included."""
    return (node for node in walk(expr) if isinstance(node, Load))


def tensors_read(expr: Expr) -> Iterator[Tensor]:
    """Yield the tensor of every read."""
    return (load.tensor for load in loads(expr))


def holds_reduce(expr: Expr) -> bool:
    """Whether a reduction stands anywhere in the expression."""
    return any(isinstance(node, Reduce) for node in walk(expr))


def is_at(load: Load, indices: tuple[Index, ...]) -> bool:
    """Whether the read is of the element that `indices` name, in their order."""
    return load.subscripts == tuple(IndexValue(index) for index in indices)


def read_elsewhere(statement: Statement) -> set[Tensor]:
    """Return what a statement reads at another element than its own.

    With indices in its path it writes part of an element, and others of its own domain
    the rest: then the whole element is another's, but for the part itself.
    """
    return {
        load.tensor for load in loads(statement.value) if not _is_own(load, statement)
    }


def _is_own(load: Load, statement: Statement) -> bool:
    rank = statement.target.rank
    if rank == len(statement.indices):
        return is_at(load, statement.indices)
    return (
        load.tensor == statement.target
        and is_at(load, statement.indices[:rank])
        and load.path == statement.path
    )


def names_in(statement: Statement) -> Iterator[str]:
    """Yield what a statement names: its target, indices, and constants it reads."""
    yield statement.target.name
    yield from (index.name for index in statement.indices)
    for node in walk(statement.value):
        if isinstance(node, ConstRef):
            yield node.name
        elif isinstance(node, Reduce):
            yield from (index.name for index in node.indices)


def outer_reductions(expr: Expr) -> Iterator[Reduce]:
    """Yield the reductions that stand in no other, from left to right."""
    if isinstance(expr, Reduce):
        yield expr
        return
    for child in children(expr):
        yield from outer_reductions(child)


def free_indices(expr: Expr) -> frozenset[Index]:
    """Return the indices that the expression uses and does not bind."""
    match expr:
        case IndexValue(index):
            return frozenset({index})
        case Reduce(_, indices, body):
            return free_indices(body) - frozenset(indices)
        case _:
            parts = (free_indices(child) for child in children(expr))
            return frozenset[Index]().union(*parts)

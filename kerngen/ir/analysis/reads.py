"""The reads of expressions and statements: of which tensors, elements and indices."""

from __future__ import annotations

from collections.abc import Iterator

from kerngen.ir import nodes as ir
from kerngen.ir.store import StoreAt
from kerngen.ir.walk import children, subscript_value, walk


def loads(expr: ir.Expr) -> Iterator[ir.Load]:
    """Yield all reads in an expression, those in subscripts and reductions included."""
    return (node for node in walk(expr) if isinstance(node, ir.Load))


def is_within(load: ir.Load) -> bool:
    """Whether a read has a bare index over the whole axis as each subscript, and no path."""
    places = zip(load.subscripts, load.tensor.extents, strict=True)
    return not load.path and all(
        isinstance(place, ir.IndexValue) and place.index.extent == extent
        for place, extent in places
    )


def tensors_read(expr: ir.Expr) -> Iterator[ir.Tensor]:
    """Yield the tensor of every read in an expression; one that is read twice comes twice."""
    return (load.tensor for load in loads(expr))


def holds_reduce(expr: ir.Expr) -> bool:
    """Whether the expression contains a reduction."""
    return any(isinstance(node, ir.Reduce) for node in walk(expr))


def is_at(load: ir.Load, indices: tuple[ir.Index, ...]) -> bool:
    """Whether a read is of the element at exactly these indices, in order."""
    return load.subscripts == tuple(ir.IndexValue(index) for index in indices)


def clashes(statement: ir.Statement) -> bool:
    """Whether a statement reads other elements of its target than the one that it writes.

    Reads of struct members that the statement does not write do not count.
    """
    return any(
        load.tensor == statement.target
        and not is_own(load, statement)
        and not are_apart(load.path, statement.path)
        for load in loads(statement.value)
    )


def are_apart(one: ir.Path, other: ir.Path) -> bool:
    """Whether two paths surely lead to different parts of an element: `.pos` and `.mass`."""
    for mine, yours in zip(one, other, strict=False):
        match mine, yours:
            case ir.Field(name), ir.Field(other_name) if name != other_name:
                return True
            case ir.At(place=place), ir.At(place=other_place):
                places = subscript_value(place), subscript_value(other_place)
                known = all(isinstance(value, ir.Constant) for value in places)
                if known and places[0] != places[1]:
                    return True
            case _:
                pass
    return False


def places_of(statement: ir.Statement) -> tuple[ir.Subscript, ...]:
    """Return the subscripts of a statement's target, one for each axis."""
    if isinstance(statement.value, StoreAt):
        return statement.value.places
    return tuple(map(ir.IndexValue, statement.indices[: statement.target.rank]))


def is_own(load: ir.Load, statement: ir.Statement) -> bool:
    """Whether a statement reads the very element that it writes, or would write there.

    Where the path of a statement has indices, as in `lights[i].color[j] = ...`, each
    invocation writes one part of an element.  Then reads of the element's other parts are not
    its own, as other invocations write those.
    """
    if isinstance(statement.value, StoreAt) and load.tensor == statement.target:
        return load.subscripts == places_of(statement) and load.path == statement.path
    rank = statement.target.rank
    if rank == len(statement.indices):
        return is_at(load, statement.indices)
    return (
        load.tensor == statement.target
        and is_at(load, statement.indices[:rank])
        and load.path == statement.path
    )


def names_in(statement: ir.Statement) -> Iterator[str]:
    """Yield the names in a statement: its target, indices, and constants."""
    yield statement.target.name
    yield from (index.name for index in statement.indices)
    for node in walk(statement.value):
        if isinstance(node, ir.ConstRef):
            yield node.name
        elif isinstance(node, ir.Reduce):
            yield from (index.name for index in node.indices)


def outer_reductions(expr: ir.Expr) -> Iterator[ir.Reduce]:
    """Yield the reductions that are not inside another reduction, from left to right."""
    if isinstance(expr, ir.Reduce):
        yield expr
        return
    for child in children(expr):
        yield from outer_reductions(child)


def free_indices(expr: ir.Expr) -> frozenset[ir.Index]:
    """Return the indices that an expression uses and no reduction in it binds."""
    match expr:
        case ir.IndexValue(index):
            return frozenset({index})
        case _:
            parts = (free_indices(child) for child in children(expr))
            free = frozenset[ir.Index]().union(*parts)
            return (
                free - frozenset(expr.indices) if isinstance(expr, ir.Reduce) else free
            )

"""The free and bound indices of expressions, cached.

Derivation asks for them again and again.  The cache is by the identity of an expression, as
its hash would take as long as the search.  It keeps the expression, so that no other one gets
its identity.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from kerngen.ir.nodes import Expr, Index, IndexValue, Reduce
from kerngen.ir.walk import children

_Indices: TypeAlias = frozenset[Index]

_NONE: Final = _Indices()
_MOST_KNOWN: Final = 50_000
"""The most expressions in the cache, which is then emptied."""
_known: Final[dict[int, tuple[Expr, _Indices, _Indices]]] = {}


def free_indices(expr: Expr) -> _Indices:
    """Return the indices that an expression uses and does not bind."""
    return _found(expr)[1]


def indices_in(expr: Expr) -> _Indices:
    """Return the indices that an expression uses or binds."""
    return _found(expr)[2]


def _found(expr: Expr) -> tuple[Expr, _Indices, _Indices]:
    known = _known.get(id(expr))
    if known is not None and known[0] is expr:
        return known
    if isinstance(expr, IndexValue):
        free = whole = frozenset((expr.index,))
    else:
        parts = [*map(_found, children(expr))]
        free = _NONE.union(*(part[1] for part in parts))
        whole = _NONE.union(*(part[2] for part in parts))
        if isinstance(expr, Reduce):
            free, whole = free.difference(expr.indices), whole.union(expr.indices)
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    _known[id(expr)] = expr, free, whole
    return _known[id(expr)]

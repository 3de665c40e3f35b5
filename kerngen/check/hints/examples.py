"""Examples in hints: unused names for indices, and reads with all their subscripts."""

from __future__ import annotations

from collections.abc import Container, Iterator
from itertools import chain, combinations, count, islice
from operator import itemgetter
from typing import Final

from kerngen.check.environment import Environment
from kerngen.check.expressions.checker import Expressions
from kerngen.check.expressions.places import Subscripted
from kerngen.check.scope import IndexSymbol, Poison, Scope
from kerngen.ir.nodes import Tensor
from kerngen.syntax import ast

INDEX_NAMES = "ijklpqrstuvwabcdefghmnoxyz"


_MOST_WAYS: Final = 100
"""To give the subscripts that are there to the axes of a tensor of very many."""


def free_names(
    env: Environment, scope: Scope, taken: Container[str] = ()
) -> Iterator[str]:
    """Yield names for new indices, that are neither declared nor in `taken`."""
    for name in chain(INDEX_NAMES, (f"i{n}" for n in count())):
        symbol = scope.get(name)
        is_free = symbol is None or isinstance(symbol, IndexSymbol)
        if is_free and name not in env.later and name not in taken:
            yield name


def unused_names(ex: Expressions) -> Iterator[str]:
    """Yield names for indices that are not declared: i, j, k and so on."""
    usual = free_names(ex.env, ex.scope)
    return (name for name in usual if ex.scope.get(name) is None)


def example_read(env: Environment, scope: Scope, tensor: Tensor | Subscripted) -> str:
    """Return how an element of a tensor is written: `x[i, j]`."""
    names = ", ".join(islice(free_names(env, scope), tensor.rank))
    return f"{tensor.name}[{names}]" if names else tensor.name


def completed(
    ex: Expressions, tensor: Subscripted, subscripts: tuple[ast.Expr, ...]
) -> str:
    """Return a read with its missing subscripts added.

    Of `x[j]` where x has the axes m and n, and i ranges over m: `x[i, j]`.
    """
    if len(subscripts) > tensor.rank:
        return example_read(ex.env, ex.scope, tensor)
    given = [subscript.span.one_line() for subscript in subscripts]
    # What an index has its range from is not to be this read.
    own = {subscript.span for subscript in subscripts}
    symbols = {name: ex.scope.get(name) for name in ex.scope.names()}
    indices = (s for s in symbols.values() if isinstance(s, IndexSymbol))
    ranges = {s.index.name: s.index.extent for s in indices if s.origin not in own}
    # An index that subscripts nothing else is meant for what is left out.
    lost = ((n, s) for n, s in symbols.items() if isinstance(s, Poison))
    idle = [name for name, symbol in lost if symbol.kind == "an index"]

    def filled(axes: tuple[int, ...]) -> tuple[int, list[str]]:
        """Return how many indices range over their axes, where these get what is given."""
        names = [""] * tensor.rank
        for axis, name in zip(axes, given, strict=True):
            names[axis] = name
        for axis, extent in enumerate(tensor.extents):
            fitting = (name for name, its in ranges.items() if its == extent)
            unused = (
                name for name in (*fitting, *idle) if name not in (*names, *given)
            )
            free = free_names(ex.env, ex.scope, (*names, *given))
            names[axis] = names[axis] or next(chain(unused, free))
        pairs = zip(names, tensor.extents, strict=True)
        return sum(ranges.get(name) == extent for name, extent in pairs), names

    ways = map(filled, combinations(range(tensor.rank), len(given)))
    _, names = max(islice(ways, _MOST_WAYS), key=itemgetter(0))
    return f"{tensor.name}[{', '.join(names)}]" if names else tensor.name

"""Matching of expressions up to the names of indices.

The pattern `exp(x[i, j])`, free in i and j, matches `exp(x[k, p])`: i is k, and j is p.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias, final

from kerngen.gradient.terms import Factors, substituted
from kerngen.ir.nodes import Expr, Index, IndexValue, Load, Reduce
from kerngen.ir.walk import children, subscript_value, walk, with_children

Renaming: TypeAlias = dict[Index, Index]


@final
@dataclass(frozen=True)
class ProductPattern:
    """Factors to find in a product; the indices in `free` may have any names."""

    factors: tuple[tuple[Expr, Fraction], ...]
    free: frozenset[Index]


def renamings(
    pattern: ProductPattern, factors: Factors, *, whole: bool
) -> Iterator[tuple[Renaming, int]]:
    """Yield the renamings under which a product contains a pattern, and how many times.

    A factor to the power -3/2 contains one to -1/2 three times.  With `whole`, the product
    may have no other factors.
    """
    if whole and len(pattern.factors) != len(factors):
        return
    for renaming in _matched(pattern.factors, pattern.free, factors, {}):
        times = min(
            _times(exponent, factors[matched])
            for (_, exponent), matched in zip(pattern.factors, renaming[1], strict=True)
        )
        if times >= 1:
            yield renaming[0], times


def _times(exponent: Fraction, found: Fraction) -> int:
    return int(found / exponent) if found / exponent >= 1 else 0


def _matched(
    wanted: Sequence[tuple[Expr, Fraction]],
    free: frozenset[Index],
    factors: Factors,
    renaming: Renaming,
    used: tuple[Expr, ...] = (),
) -> Iterator[tuple[Renaming, tuple[Expr, ...]]]:
    """Yield each way to match all wanted factors, by backtracking.

    Each is a renaming, with the factors that match the wanted ones, in their order.
    """
    if not wanted:
        yield renaming, used
        return
    (first, exponent), *rest = wanted
    for atom, own in factors.items():
        if atom in used or not _times(exponent, own):
            continue
        trial = dict(renaming)
        if same(first, atom, free, trial):
            yield from _matched(rest, free, factors, trial, (*used, atom))


def same(pattern: Expr, expr: Expr, free: frozenset[Index], renaming: Renaming) -> bool:
    """Whether an expression matches a pattern; the renaming of indices is extended."""
    if type(pattern) is not type(expr):
        return False
    if isinstance(pattern, IndexValue) and isinstance(expr, IndexValue):
        return _renamed(pattern.index, expr.index, free, renaming)
    if isinstance(pattern, Reduce):
        return pattern == expr
    if isinstance(pattern, Load) and isinstance(expr, Load):
        if pattern.tensor != expr.tensor or pattern.path != expr.path:
            return False
        pairs = zip(pattern.subscripts, expr.subscripts, strict=True)
        return all(
            same(subscript_value(a), subscript_value(b), free, renaming)
            for a, b in pairs
        )
    mine, theirs = children(pattern), children(expr)
    if [*map(type, mine)] != [*map(type, theirs)]:
        return False
    if not mine:
        return pattern == expr
    if with_children(pattern, theirs) != expr:
        return False
    return all(same(a, b, free, renaming) for a, b in zip(mine, theirs, strict=True))


def _renamed(
    own: Index, found: Index, free: frozenset[Index], renaming: Renaming
) -> bool:
    """Whether an index may be renamed to another one; the renaming is extended if so.

    Ranges must be equal, and no two indices get the same name.
    """
    if own not in free:
        return own == found
    if own in renaming:
        return renaming[own] == found
    if own.extent != found.extent or found in renaming.values():
        return False
    renaming[own] = found
    return True


def anonymous(indices: Sequence[Index], value: Expr) -> Hashable:
    """Return a value over some indices as a key: equal up to the names of all indices."""
    bound = (
        i for node in walk(value) if isinstance(node, Reduce) for i in node.indices
    )
    by: dict[Index, Expr] = {
        index: IndexValue(replace(index, name=f"#{place}"))
        for place, index in enumerate(dict.fromkeys((*indices, *bound)))
    }
    return tuple(index.extent for index in indices), substituted(value, by)

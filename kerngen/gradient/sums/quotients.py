"""Sums of products at a quotient and the remainder of an index, as lets over both.

    Before:  dx[p, i] = sum[q] dy[q, i / 2] * k[q, p, i % 2];
    After:   let x_terms[p, s, u] = sum[q] dy[q, s] * k[q, p, u];
             dx[p, i] = x_terms[p, i / 2, i % 2];

So a product of matrices stays one, as that of patches of an image.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from kerngen.gradient.indices import free_indices
from kerngen.gradient.render import rendered
from kerngen.gradient.simplify import split
from kerngen.gradient.sums.borders import Let
from kerngen.gradient.terms import ONE, Term, as_subscript
from kerngen.ir import nodes as ir
from kerngen.ir.walk import map_children, subscript_value, walk

_Parts: TypeAlias = Mapping[ir.Expr, ir.Index]
"""A quotient, or the remainder, each with the index that it becomes."""


def with_quotients(term: Term, indices: tuple[ir.Index, ...], let: Let) -> Term:
    """Return a term over the `indices` of the result, with a sum at a quotient as a let.

    A term without such a sum is returned as it is.
    """
    # The let: each `i / 2` and `i % 2` in the sum becomes an index of its own.
    outside, inside = split(term)
    own = {index: _parts(index, inside) for index in indices}
    back = {part: value for parts in own.values() for value, part in parts.items()}
    if not inside.bound or not back:
        return term
    parts = {value: part for part, value in back.items()}
    factors = {_at(atom, parts): e for atom, e in inside.factors.items()}
    used = frozenset[ir.Index]().union(*map(free_indices, factors))
    in_order = (part for i in indices for part in own[i].values() or (i,))
    places = tuple(index for index in in_order if index in used)
    found = let(places, rendered([replace(inside, factors=factors)]))
    # Its read: at the quotient and remainder again.
    at = (as_subscript(back.get(index, ir.IndexValue(index))) for index in places)
    whole = replace(found, subscripts=tuple(at))
    return replace(outside.times(Term(factors={whole: ONE})), solved=term.solved)


def _parts(index: ir.Index, inside: Term) -> _Parts:
    """Return the quotient and remainder of an index if the factors read only these, else {}."""
    atoms = [atom for atom in inside.factors if index in free_indices(atom)]
    found = [part for part in (_part_in(atom, index) for atom in atoms) if part]
    quotient_first = sorted(set(found), key=lambda part: part[0].op, reverse=True)
    ops, divisors = {part.op for part, _ in found}, {part.right for part, _ in found}
    is_split = len(set(found)) == len(ops) == 2 and len(divisors) == 1
    conditions = any(index in free_indices(c) for c in inside.conditions)
    if not is_split or len(found) < len(atoms) or conditions:
        return {}
    return dict[ir.Expr, ir.Index](quotient_first)


def _part_in(atom: ir.Expr, index: ir.Index) -> tuple[ir.Binary, ir.Index] | None:
    """Return the quotient or remainder through which alone a factor has an index, or None."""
    read = ir.IndexValue(index)
    nodes = [*walk(atom)]
    found = {
        (value, replace(index, name=f"{index.name}#{value.op}", extent=extent))
        for load in nodes
        if isinstance(load, ir.Load)
        for subscript, extent in zip(load.subscripts, load.tensor.extents, strict=True)
        if isinstance(value := subscript_value(subscript), ir.Binary)
        if value.op in {"/", "%"} and value.left == read
    }
    only = next(iter(found)) if len(found) == 1 else None
    return only if only and nodes.count(read) == nodes.count(only[0]) else None


def _at(expr: ir.Expr, parts: _Parts) -> ir.Expr:
    """Return a factor with the quotients and remainders in its subscripts as indices."""
    if not isinstance(expr, ir.Load):
        return map_children(expr, lambda child: _at(child, parts))
    values = map(subscript_value, expr.subscripts)
    at = (ir.IndexValue(parts[v]) if v in parts else as_subscript(v) for v in values)
    return replace(expr, subscripts=tuple(at))

"""Hints for subscripts: those left out, and how to handle the border of an axis."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, count, islice
from operator import itemgetter
from typing import Final, final

from kerngen.check.environment import Environment
from kerngen.check.expressions.checker import Expressions
from kerngen.check.scope import IndexSymbol, Poison, Scope, Subscripted
from kerngen.ir.analysis.affine import AffineForm, affine_form
from kerngen.ir.analysis.extremes import Linear, corners, extremes
from kerngen.ir.nodes import Expr, Extent, Tensor
from kerngen.ir.types import Scalar
from kerngen.syntax import ast

INDEX_NAMES = "ijklpqrstuvwabcdefghmnoxyz"


_MOST_WAYS: Final = 100
"""How many assignments of the given subscripts to axes are tried.

For a tensor of very many axes, there are more combinations than can be tried in time.
"""


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
) -> tuple[str, str]:
    """Return a read with its missing subscripts added, and an index of it that is new, or "".

    Of `x[j]` where x has the axes m and n, and i ranges over m: `x[i, j]`.  In `sum[j] x[j]`
    of a statement without indices, the index i is new.
    """
    if len(subscripts) > tensor.rank:
        return example_read(ex.env, ex.scope, tensor), ""
    given = [subscript.span.one_line() for subscript in subscripts]
    # An index that has its range from this faulty read is no evidence.
    own = {subscript.span for subscript in subscripts}
    symbols = {name: ex.scope.get(name) for name in ex.scope.names()}
    indices = (s for s in symbols.values() if isinstance(s, IndexSymbol))
    ranges = {s.index.name: s.index.extent for s in indices if s.origin not in own}
    # An index that subscripts nothing else was probably meant for the missing subscript.
    lost = ((n, s) for n, s in symbols.items() if isinstance(s, Poison))
    idle = [name for name, symbol in lost if symbol.kind == "an index"]

    def filled(axes: tuple[int, ...]) -> tuple[int, list[str]]:
        """Return how many indices fit if these axes get the given subscripts, and all names."""
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
    tried = [*islice(ways, _MOST_WAYS)]
    fit, names = max(tried, key=itemgetter(0))
    new = ""
    are_indices = all(isinstance(symbols.get(name), IndexSymbol) for name in given)
    if given and are_indices and not fit and not idle:
        # Nothing is known of the axes: as a rule, the last ones are given.
        _, names = tried[-1]
        added = (name for name in names if name not in given)
        new = next((name for name in added if ex.scope.get(name) is None), "")
    return f"{tensor.name}[{', '.join(names)}]" if names else tensor.name, new


_NOTHING: Final[Mapping[object, str]] = {Scalar.F32: "0.0", Scalar.BOOL: "false"}
"""The value beyond a border in a hint, by the type of the elements; 0 for other types."""


@final
@dataclass(frozen=True)
class Side:
    """An affine subscript of a read, and the axis that it subscripts."""

    tensor: Subscripted
    axis: int
    value: Expr
    node: ast.Expr

    @cached_property
    def form(self) -> AffineForm:
        """Its value as an affine form."""
        form = affine_form(self.value)
        assert form is not None, "checked where it was made"
        return form

    @property
    def extent(self) -> Extent:
        """The length of the axis."""
        return self.tensor.extents[self.axis]

    @property
    def text(self) -> str:
        """The subscript as the user wrote it, or as `i32(...)` of that."""
        text = self.node.span.one_line()
        return text if self.value.type is Scalar.I32 else f"i32({text})"

    @property
    def may_start_early(self) -> bool:
        """Whether it is negative for some lengths and indices."""
        found = corners(self.form)
        return not found or not all(corner.is_from_start() for corner in found)

    @property
    def may_end_late(self) -> bool:
        """Whether it is past the end for some lengths and indices."""
        found = corners(self.form)
        return not found or not all(c.is_before_end(self.extent) for c in found)


def last_element(env: Environment, side: Side) -> str:
    """Return the hint that names the subscript of an axis's last element: `n - 1`."""
    length = env.length_text(side.extent)
    last = str(int(length) - 1) if length.isdigit() else f"'{length} - 1'"
    return f"Elements are numbered from 0; the last one is {last}."


def reaches(env: Environment, form: AffineForm, extent: Extent) -> str:
    """Return the range that a subscript covers, in words: `goes from -1 to 8,`."""
    if not form.terms:
        return "is"
    known = extremes(form)
    if known is not None:
        least, greatest = known
        return f"goes from {least} to {greatest},"
    corner = next(c for c in corners(form) if c.is_below() or c.is_beyond(extent))
    places = (f"'{i.name} = {_linear_text(env, end)}'" for i, end in corner.at)
    return f"is {_linear_text(env, corner.value)} at {', '.join(places)},"


def _linear_text(env: Environment, value: Linear) -> str:
    """Return a sum of lengths, as in `n + 1`."""
    named = [(name, factor) for name, factor in value.items() if name and factor]
    text = ""
    for name, factor in (*named, ("", value.get("", 0))):
        if not name and not factor and text:
            continue
        times = f"{abs(factor)} * " if abs(factor) != 1 else ""
        term = f"{times}{env.length_text(name)}" if name else str(abs(factor))
        sign = "-" if factor < 0 else "+"
        text = f"{text} {sign} {term}" if text else f"{sign.strip('+')}{term}"
    return text


def choice_at_border(
    env: Environment, at: Side, sides: Iterable[Side], read: str
) -> str:
    """Return two hints: an `if` at the border, and a clamp that repeats the edge.

    In a branch of an `if` all subscripts are clamped, so the condition must cover every
    side that may be left.
    """
    inside = " and ".join(part for side in sides for part in _conditions(env, side))
    otherwise = _NOTHING.get(at.tensor.element, "0")
    length = env.length_text(at.extent)
    last = str(int(length) - 1) if length.isdigit() else f"{length} - 1"
    nearest = f"clamp({at.text}, 0, {last})"
    if not (at.may_start_early and at.may_end_late):
        low = at.may_start_early
        nearest = f"max({at.text}, 0)" if low else f"min({at.text}, {last})"
    return (
        f"Choose at the border, 'if {inside} {{ {read} }} else {{ {otherwise} }}', or "
        f"take the nearest element by '{nearest}'."
    )


def _conditions(env: Environment, side: Side) -> Iterator[str]:
    if not side.form.terms:
        return
    if side.may_start_early:
        yield f"{side.text} >= 0"
    if side.may_end_late:
        yield f"{side.text} < {env.length_text(side.extent)}"

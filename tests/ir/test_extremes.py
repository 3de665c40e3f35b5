"""What is said of a subscript for all lengths holds for each, tried out."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from kerngen.ir.analysis.affine import affine_form
from kerngen.ir.analysis.extremes import corners, starts_from_zero, stays_inside
from kerngen.ir.nodes import Binary, Constant, DimValue, Expr, Extent, Index, IndexValue
from kerngen.ir.types import Scalar

DIMS: tuple[str, ...] = ("m", "n")
LENGTHS = range(1, 5)
NUMBERS = st.integers(-3, 3)
EXTENTS = st.sampled_from([*DIMS, 1, 3])

Terms = list[tuple[int, Extent]]


def written(constant: int, dims: tuple[int, ...], terms: Terms) -> Expr:
    """A subscript: a sum of a number, dims and indices, each with a factor."""
    total: Expr = Constant(constant, Scalar.I32)
    leaves: list[tuple[int, Expr]] = [
        *((factor, DimValue(dim)) for factor, dim in zip(dims, DIMS, strict=True)),
        *((f, IndexValue(Index(f"i{k}", e))) for k, (f, e) in enumerate(terms)),
    ]
    for factor, leaf in leaves:
        term = Binary("*", Constant(factor, Scalar.I32), leaf, Scalar.I32)
        total = Binary("+", total, term, Scalar.I32)
    return total


def values(
    constant: int, dims: tuple[int, ...], terms: Terms, lengths: dict[str, int]
) -> list[int]:
    """Every value that the subscript takes, counted out."""
    fixed = constant + sum(f * lengths[d] for f, d in zip(dims, DIMS, strict=True))
    ranges = (range(lengths[e] if isinstance(e, str) else e) for _, e in terms)
    return [
        fixed + sum(f * at for (f, _), at in zip(terms, place, strict=True))
        for place in product(*ranges)
    ]


@given(
    NUMBERS,
    st.tuples(st.integers(-1, 1), st.integers(-1, 1)),
    st.lists(st.tuples(NUMBERS, EXTENTS), max_size=2),
    EXTENTS,
)
def test_what_is_sure_is_so(
    constant: int, dims: tuple[int, ...], terms: Terms, axis: Extent
) -> None:
    form = affine_form(written(constant, dims, terms))
    assert form is not None
    verdict = stays_inside(form, axis)
    starts = all(corner.is_from_start() for corner in corners(form))
    ends = all(corner.is_before_end(axis) for corner in corners(form))
    for pair in product(LENGTHS, repeat=len(DIMS)):
        lengths = dict(zip(DIMS, pair, strict=True))
        found = values(constant, dims, terms, lengths)
        end = lengths[axis] if isinstance(axis, str) else axis
        inside = all(0 <= value < end for value in found)
        assert verdict is None or verdict == inside
        assert not starts or min(found) >= 0
        assert not starts_from_zero(form) or min(found) >= 0
        assert not ends or max(found) < end

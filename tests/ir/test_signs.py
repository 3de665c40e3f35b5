"""Integers that are said to be natural are never negative, whatever is computed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerngen.ir.analysis.signs import is_natural
from kerngen.ir.builtins.evaluate import binary, integer_op
from kerngen.ir.nodes import Binary, BinaryOp, Constant, DimValue, Expr, UniformValue
from kerngen.ir.types import Scalar
from tests.budget import examples

LENGTHS = {"n": 1, "m": 7, "long": 2**31 - 1}
OPERATORS: tuple[BinaryOp, ...] = ("+", "-", "*", "/", "%")
I32 = Scalar.I32

leaves = st.one_of(
    st.sampled_from([DimValue(name) for name in LENGTHS]),
    st.sampled_from([-3, -1, 0, 1, 2, 5, 2**31 - 1]).map(lambda v: Constant(v, I32)),
)


def operation(children: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.builds(
        Binary, st.sampled_from(OPERATORS), children, children, st.just(I32)
    )


def value(expr: Expr, *, wraps: bool) -> int:
    """The value, exact or as 32 bits keep it."""
    match expr:
        case Constant(value=number):
            return int(number)
        case DimValue(name=name):
            return LENGTHS[name]
        case Binary(op=op, left=left, right=right):
            sides = value(left, wraps=wraps), value(right, wraps=wraps)
            exact = integer_op(op, *sides)
            return int(binary(op, *sides, I32)) if wraps else exact
        case _:
            raise AssertionError(expr)


@pytest.mark.parametrize("wraps", [False, True])
@given(expr=st.recursive(leaves, operation, max_leaves=6))
@settings(max_examples=examples(300))
def test_what_is_natural_is_not_negative(expr: Expr, *, wraps: bool) -> None:
    if is_natural(expr, wraps=wraps):
        assert value(expr, wraps=wraps) >= 0


def test_what_is_natural_is_found() -> None:
    n, two = DimValue("n"), Constant(2, I32)
    for op in OPERATORS:
        for wraps in (False, True):
            natural = is_natural(Binary(op, n, two, I32), wraps=wraps)
            assert natural == (op in "/%" or (op in "+*" and not wraps))
    assert is_natural(UniformValue("count", Scalar.U32), wraps=True)
    assert not is_natural(UniformValue("count", I32), wraps=False)

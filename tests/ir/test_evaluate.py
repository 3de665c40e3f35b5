"""Constant folding against NumPy: two evaluations of one table, written apart."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kerngen.ir.builtins.evaluate import NotFiniteError, constant_value
from kerngen.ir.builtins.table import BUILTINS, Overload
from kerngen.ir.nodes import Binary, BinaryOp, BuiltinCall, Cast, Constant, Expr
from kerngen.ir.types import Scalar
from kerngen.runtime import reference as ref

DTYPES = {
    Scalar.F32: np.float64,
    Scalar.I32: np.int32,
    Scalar.U32: np.uint32,
    Scalar.BOOL: np.bool_,
}
FLOATS = (-2.5, -1.0, -0.3, 0.0, 0.25, 0.5, 0.9, 1.0, 1.5, 2.5, 7.0)
INTEGERS = (0, 1, 2, 5, 31, 32, 33, 255, 65536, 2**31 - 1)
EDGES = {
    Scalar.F32: FLOATS,
    Scalar.I32: (*INTEGERS, -1, -2, -7, -(2**31)),
    Scalar.U32: (*INTEGERS, 2**31, 2**32 - 1),
    Scalar.BOOL: (False, True),
}


def values(scalar: Scalar) -> st.SearchStrategy[float]:
    return st.sampled_from(EDGES[scalar])


CASES = [(name, o) for name, row in BUILTINS.items() for o in row.overloads]


@pytest.mark.parametrize(
    ("name", "overload"),
    CASES,
    ids=[f"{n}-{o.result.spelling}-{o.parameters[0].spelling}" for n, o in CASES],
)
@given(data=st.data())
def test_folded_builtin_is_what_numpy_says(
    name: str, overload: Overload, data: st.DataObject
) -> None:
    given_values = [data.draw(values(scalar)) for scalar in overload.parameters]
    condition = BUILTINS[name].condition
    assume(condition is None or condition(*given_values))
    arguments = tuple(
        Constant(value, scalar)
        for value, scalar in zip(given_values, overload.parameters, strict=True)
    )
    arrays: dict[str, NDArray[Any]] = {
        f"x{n}": np.asarray(constant.value, DTYPES[constant.type])
        for n, constant in enumerate(arguments)
    }
    template = BUILTINS[name].numpy
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        scope = {"np": np, "ref": ref, **arrays}
        expected = eval(template.format(*arrays), scope)
    call = BuiltinCall(name, arguments, overload.result)
    try:
        actual = constant_value(call)
    except NotFiniteError:
        largest = 65504 if name == "quantizeToF16" else np.finfo(np.float32).max
        assert not np.isfinite(expected) or abs(expected) > largest
        return
    assert actual == pytest.approx(float(expected), rel=1e-12, abs=1e-12)


OPERATORS: tuple[BinaryOp, ...] = ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>")


def by_numpy(op: BinaryOp, left: Constant, right: Constant) -> int:
    dtype = DTYPES[left.type]
    a: NDArray[Any] = np.asarray(left.value, dtype)
    b: NDArray[Any] = np.asarray(right.value, DTYPES[right.type])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        match op:
            case "/":
                result = ref.idiv(a, b)
            case "%":
                result = ref.irem(a, b)
            case "<<":
                result = ref.shift_left(a, b)
            case ">>":
                result = ref.shift_right(a, b)
            case _:
                function = {
                    "+": np.add,
                    "-": np.subtract,
                    "*": np.multiply,
                    "&": np.bitwise_and,
                    "|": np.bitwise_or,
                    "^": np.bitwise_xor,
                }[op]
                result = function(a, b)
    return int(result)


@given(
    op=st.sampled_from(OPERATORS),
    scalar=st.sampled_from([Scalar.I32, Scalar.U32]),
    data=st.data(),
)
def test_folded_integers_wrap_as_numpys_do(
    op: BinaryOp, scalar: Scalar, data: st.DataObject
) -> None:
    right_type = Scalar.U32 if op in {"<<", ">>"} else scalar
    left = Constant(data.draw(values(scalar)), scalar)
    right = Constant(data.draw(values(right_type)), right_type)
    actual = constant_value(Binary(op, left, right, scalar))
    assert actual == by_numpy(op, left, right)


@pytest.mark.parametrize(
    ("value", "scalar", "expected"),
    [
        (3e10, Scalar.I32, 2147483520),
        (-3e10, Scalar.I32, -(2**31)),
        (3e10, Scalar.U32, 4294967040),
        (-1.5, Scalar.U32, 0),
        (-1.5, Scalar.I32, -1),
    ],
)
def test_floats_saturate(value: float, scalar: Scalar, expected: int) -> None:
    folded = constant_value(Cast(Constant(value, Scalar.F32), scalar))
    assert folded == expected


def test_integers_convert_by_their_bits() -> None:
    minus_one: Expr = Constant(-1, Scalar.I32)
    assert constant_value(Cast(minus_one, Scalar.U32)) == 2**32 - 1

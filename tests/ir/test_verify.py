"""The verifier finds what it is for: each invalid IR is refused for its own reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kerngen.ir.nodes import (
    Affine,
    Binary,
    BuiltinCall,
    Cast,
    Clamped,
    Constant,
    DimValue,
    Expr,
    FunctionCall,
    Index,
    IndexValue,
    Kernel,
    Load,
    LocalValue,
    Reduce,
    Role,
    Select,
    Tensor,
    Unary,
    UniformValue,
)
from kerngen.ir.types import Scalar
from kerngen.ir.verify import verify_kernel
from tests.compile import checked

SOURCE = (
    "kernel good(x: f32[m, n], alpha: f32) -> y: f32[m] {"
    "  host twice = 2 * alpha;"
    "  y[i] = twice * sum[j] x[i, j];"
    "}"
)
F32, I32, U32, BOOL = Scalar.F32, Scalar.I32, Scalar.U32, Scalar.BOOL
ROW, COLUMN = Index("i", "m"), Index("j", "n")
ONE, ONE_I, ONE_U = Constant(1.0, F32), Constant(1, I32), Constant(1, U32)
HALF_ROW = Binary("/", IndexValue(ROW), ONE_I, I32)
X = Tensor("x", F32, ("m", "n"), Role.INPUT)
OTHER = Tensor("other", F32, ("m",), Role.LET)


def good() -> Kernel:
    (kernel,) = checked(SOURCE).kernels
    return kernel


def faults_of(value: Expr) -> str:
    kernel = good()
    body = (replace(kernel.body[0], value=value),)
    return "; ".join(verify_kernel(replace(kernel, body=body), {}))


def test_accepts_the_good_kernel() -> None:
    assert verify_kernel(good(), {}) == []


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (ONE_I, "another type"),
        (Constant(1, F32), "does not hold"),
        (Constant(1e39, F32), "does not hold"),
        (Cast(Constant(2**31, I32), F32), "does not hold"),
        (Cast(Constant(-1, U32), F32), "does not hold"),
        (Cast(IndexValue(COLUMN), F32), "index out of scope"),
        (Cast(DimValue("q"), F32), "unknown dim"),
        (UniformValue("beta", F32), "unknown scalar"),
        (LocalValue("t", F32), "unknown local"),
        (Load(OTHER, (IndexValue(ROW),)), "not there"),
        (Load(X, (IndexValue(ROW),)), "number of subscripts"),
        (Load(X, (IndexValue(ROW), Clamped(ONE))), "no integer"),
        (Load(X, (IndexValue(ROW), Affine(HALF_ROW))), "marked as affine"),
        (Binary("+", ONE, ONE_I, F32), "types that do not fit"),
        (Binary("+", ONE, ONE, I32), "types that do not fit"),
        (Binary("&", ONE, ONE, F32), "types that do not fit"),
        (Cast(Binary("<<", ONE_I, ONE_I, I32), F32), "types that do not fit"),
        (Cast(Unary("-", ONE_U, U32), F32), "types that do not fit"),
        (Select(ONE, ONE, ONE, F32), "types that do not fit"),
        (Cast(ONE, F32), "converts nothing"),
        (Cast(ONE, F32, is_halved=True), "converts nothing"),
        (BuiltinCall("sqrt", (ONE_I,), F32), "does not take"),
        (BuiltinCall("cbrt", (ONE,), F32), "unknown built-in"),
        (FunctionCall("f", (ONE,), F32), "not there"),
        (Reduce("sum", (ROW,), ONE, F32), "not new and distinct"),
        (Reduce("sum", (), ONE, F32), "not new and distinct"),
        (
            Reduce("sum", (COLUMN,), Constant(value=True, type=BOOL), F32),
            "than its body",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refuses(value: Expr, reason: str) -> None:
    assert reason in faults_of(value)


def test_refuses_halves_of_integers() -> None:
    tensor = Tensor("x", I32, ("m", "n"), Role.INPUT, is_half=True)
    kernel = good()
    kernel = replace(kernel, tensors=(tensor, *kernel.tensors[1:]))
    assert "what is of another type" in "".join(verify_kernel(kernel, {}))


def test_refuses_an_unwritten_output() -> None:
    assert "never written" in "".join(verify_kernel(replace(good(), body=()), {}))


def test_refuses_a_wrong_order() -> None:
    assert "order" in "".join(verify_kernel(replace(good(), order=("x",)), {}))


def test_refuses_indices_that_miss_the_axes() -> None:
    kernel = good()
    body = (replace(kernel.body[0], indices=(COLUMN,)),)
    assert "range over" in "".join(verify_kernel(replace(kernel, body=body), {}))

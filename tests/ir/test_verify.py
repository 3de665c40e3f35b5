"""The verifier finds what it is for: each invalid IR is refused for its own reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kerngen.ir import nodes as ir
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
ROW, COLUMN = ir.Index("i", "m"), ir.Index("j", "n")
ONE, ONE_I, ONE_U = ir.Constant(1.0, F32), ir.Constant(1, I32), ir.Constant(1, U32)
HALF_ROW = ir.Binary("/", ir.IndexValue(ROW), ONE_I, I32)
X = ir.Tensor("x", F32, ("m", "n"), ir.Role.INPUT)
OTHER = ir.Tensor("other", F32, ("m",), ir.Role.LET)


def good() -> ir.Kernel:
    (kernel,) = checked(SOURCE).kernels
    return kernel


def faults_of(value: ir.Expr) -> str:
    kernel = good()
    body = (replace(kernel.body[0], value=value),)
    return "; ".join(verify_kernel(replace(kernel, body=body), {}))


def test_accepts_the_good_kernel() -> None:
    assert verify_kernel(good(), {}) == []


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (ONE_I, "another type"),
        (ir.Constant(1, F32), "does not hold"),
        (ir.Constant(1e39, F32), "does not hold"),
        (ir.Cast(ir.Constant(2**31, I32), F32), "does not hold"),
        (ir.Cast(ir.Constant(-1, U32), F32), "does not hold"),
        (ir.Cast(ir.IndexValue(COLUMN), F32), "index out of scope"),
        (ir.Cast(ir.DimValue("q"), F32), "unknown dim"),
        (ir.UniformValue("beta", F32), "unknown scalar"),
        (ir.LocalValue("t", F32), "unknown local"),
        (ir.Load(OTHER, (ir.IndexValue(ROW),)), "not there"),
        (ir.Load(X, (ir.IndexValue(ROW),)), "number of subscripts"),
        (ir.Load(X, (ir.IndexValue(ROW), ir.Clamped(ONE))), "no integer"),
        (ir.Load(X, (ir.IndexValue(ROW), ir.Affine(HALF_ROW))), "marked as affine"),
        (ir.Binary("+", ONE, ONE_I, F32), "types that do not fit"),
        (ir.Binary("+", ONE, ONE, I32), "types that do not fit"),
        (ir.Binary("&", ONE, ONE, F32), "types that do not fit"),
        (ir.Cast(ir.Binary("<<", ONE_I, ONE_I, I32), F32), "types that do not fit"),
        (ir.Cast(ir.Unary("-", ONE_U, U32), F32), "types that do not fit"),
        (ir.Select(ONE, ONE, ONE, F32), "types that do not fit"),
        (ir.Cast(ONE, F32), "converts nothing"),
        (ir.Cast(ONE, F32, is_halved=True), "converts nothing"),
        (ir.BuiltinCall("sqrt", (ONE_I,), F32), "does not take"),
        (ir.BuiltinCall("cbrt", (ONE,), F32), "unknown built-in"),
        (ir.FunctionCall("f", (ONE,), F32), "not there"),
        (ir.Reduce("sum", (ROW,), ONE, F32), "not new and distinct"),
        (ir.Reduce("sum", (), ONE, F32), "not new and distinct"),
        (
            ir.Reduce("sum", (COLUMN,), ir.Constant(value=True, type=BOOL), F32),
            "than its body",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refuses(value: ir.Expr, reason: str) -> None:
    assert reason in faults_of(value)


def test_refuses_halves_of_integers() -> None:
    tensor = ir.Tensor("x", I32, ("m", "n"), ir.Role.INPUT, is_half=True)
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

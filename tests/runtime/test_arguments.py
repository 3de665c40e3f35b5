"""What a call refuses, before anything is recorded, and in which words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import kerngen.runtime as gpu
from kerngen.runtime import (
    Context,
    ContextError,
    DtypeError,
    Error,
    ShapeError,
    UniformRangeError,
    f32,
    i32,
    u32,
)
from tests.runtime.kernels import (
    AXPY,
    LOOKUP,
    MATMUL,
    STAMP,
    launch,
    refuse,
)

# ---- tensors


def test_dims_that_disagree(either: Context) -> None:
    a, b = either.zeros((2, 4), f32), either.zeros((3, 5), f32)
    refuse(
        either,
        ShapeError,
        "matmul (hand.kern:6): argument 'b' has shape (3, 5); expected (k=4, n): k is 4 from 'a' axis 1.",
        MATMUL,
        a,
        b,
    )


def test_wrong_rank(either: Context) -> None:
    a, b = either.zeros((2, 4), f32), either.zeros(4, f32)
    refuse(
        either,
        ShapeError,
        "matmul (hand.kern:6): argument 'b' has shape (4,) (rank 1); expected (k=4, n) (rank 2).",
        MATMUL,
        a,
        b,
    )


def test_a_literal_axis(either: Context) -> None:
    x, table = either.zeros(2, u32), either.zeros(2, f32)
    refuse(
        either,
        ShapeError,
        "lookup (hand.kern:5): argument 'rows' has shape (4, 2); expected (3, k=2): axis 0 is always 3.",
        LOOKUP,
        x,
        table,
        either.zeros((4, 2), f32),
    )


def test_wrong_element(either: Context) -> None:
    x = either.zeros(4, f32)
    refuse(
        either,
        DtypeError,
        "axpy (hand.kern:1): argument 'y' has i32 elements; expected f32.",
        AXPY,
        x,
        either.zeros(4, i32),
        alpha=1.0,
    )


def test_an_array_where_a_tensor_is_wanted(either: Context) -> None:
    a = either.zeros((2, 2), f32)
    refuse(
        either,
        DtypeError,
        "matmul (hand.kern:6): argument 'b' is a numpy.ndarray; expected a tensor. Make one by "
        "ctx.matrix(b, f32).",
        MATMUL,
        a,
        np.zeros((2, 2)),
    )
    refuse(
        either,
        DtypeError,
        "out 'c' is a list; expected a tensor",
        MATMUL,
        a,
        a,
        out=([],),
    )


def test_wrong_out(either: Context) -> None:
    a = either.zeros((2, 4), f32)
    b = either.zeros((4, 3), f32)
    refuse(
        either,
        ShapeError,
        "matmul (hand.kern:6): out 'c' has shape (3, 2); expected (m=2, n=3).",
        MATMUL,
        a,
        b,
        out=(either.zeros((3, 2), f32),),
    )
    refuse(
        either,
        DtypeError,
        "matmul (hand.kern:6): out 'c' has i32 elements; expected f32.",
        MATMUL,
        a,
        b,
        out=(either.zeros((2, 3), i32),),
    )


def test_wrong_out_of_a_call_like_an_earlier_one(either: Context) -> None:
    a, b = either.zeros((2, 4), f32), either.zeros((4, 3), f32)
    launch(MATMUL, a, b, out=(either.zeros((2, 3), f32),))
    refuse(
        either,
        ShapeError,
        "out 'c' has shape (3, 2)",
        MATMUL,
        a,
        b,
        out=(either.zeros((3, 2), f32),),
    )


def test_tensors_of_two_contexts(either: Context) -> None:
    with gpu.open(adapter="reference") as other:
        x, y = either.zeros(4, f32), other.zeros(4, f32)
        refuse(
            either,
            ContextError,
            "axpy (hand.kern:1): argument 'y' belongs to "
            + ("another " if either.kind == "reference" else "")
            + "Context(reference",
            AXPY,
            x,
            y,
            alpha=1.0,
        )
        refuse(either, ContextError, "out 'z' belongs", AXPY, x, x, alpha=1.0, out=(y,))


def test_no_context() -> None:
    with pytest.raises(
        ContextError, match=r"stamp \(hand.kern:8\): no argument is a tensor"
    ):
        launch(STAMP, step=2, offset=0, scale=(1, 2, 3))


def test_ranges_must_lie_inside_axes(either: Context) -> None:
    x = either.zeros(3, u32)
    refuse(
        either,
        ShapeError,
        "lookup (hand.kern:5): the subscript 'i' of 'table' goes from 0 to 2, but axis 0 has length 2. "
        "Got n=3, k=2.",
        LOOKUP,
        x,
        either.zeros(2, f32),
        either.zeros((3, 2), f32),
    )
    refuse(
        either,
        ShapeError,
        "lookup (hand.kern:5): the subscript 'j' of 'rows' goes from 0 to 1, but axis 1 has length 1. "
        "Got n=1, k=1.",
        LOOKUP,
        either.zeros(1, u32),
        either.zeros(1, f32),
        either.zeros((3, 1), f32),
    )


def test_an_empty_range_checks_nothing(either: Context) -> None:
    x, table, rows = (
        either.zeros(0, u32),
        either.zeros(0, f32),
        either.zeros((3, 0), f32),
    )
    kernel = replace(LOOKUP, checks=LOOKUP.checks[:1])
    launch(kernel, x, table, rows)


# ---- scalars


@pytest.mark.parametrize(
    ("scalars", "error", "message"),
    [
        ({"step": 2.0}, DtypeError, "'step' is 2.0 (float); expected an integer (u32)"),
        ({"step": True}, DtypeError, "'step' is True (bool); expected an integer"),
        ({"step": None}, DtypeError, "'step' is None (NoneType); expected an integer"),
        ({"step": -1}, UniformRangeError, "'step' is -1; u32 holds 0 to 4294967295"),
        ({"step": 2**32}, UniformRangeError, "'step' is 4294967296"),
        ({"offset": 2**31}, UniformRangeError, "'offset' is 2147483648; i32 holds -2"),
        (
            {"scale": (1.0, 2.0)},
            ShapeError,
            "'scale' is (1.0, 2.0); expected 3 values",
        ),
        ({"scale": 1.0}, ShapeError, "'scale' is 1.0; expected 3 values"),
        ({"scale": object()}, ShapeError, "'scale' is <object object at"),
        (
            {"scale": (1, 2, "3")},
            DtypeError,
            "'scale[2]' is '3' (str); expected a number",
        ),
        ({"scale": (1e39, 0, 0)}, UniformRangeError, "stamp (hand.kern:8): "),
        ({"step": 1}, UniformRangeError, "can't be computed from step=1, offset=0"),
    ],
)
def test_wrong_scalars(
    either: Context, scalars: dict[str, Any], error: type[Error], message: str
) -> None:
    given = {"step": 3, "offset": 0, "scale": (1.0, 2.0, 3.0)} | scalars
    refuse(either, error, message, STAMP, ctx=either, **given)


def test_a_float_out_of_range_names_kernel_and_field(either: Context) -> None:
    x = either.zeros(4, f32)
    refuse(either, UniformRangeError, "alpha", AXPY, x, x, alpha=1e39)


def test_scalars_of_numpy_and_infinities_are_taken(either: Context) -> None:
    (y,) = launch(
        STAMP,
        ctx=either,
        step=np.uint32(3),
        offset=np.int64(-7),
        scale=np.array([0.5, 1.0, 2.0], np.float32),
    )
    np.testing.assert_array_equal(y.numpy(), [3.0, -7.0, 3.5, 0.5])
    x = either.vector([1.0, -1.0], f32)
    (z,) = launch(AXPY, x, x, alpha=float("inf"))
    np.testing.assert_array_equal(z.numpy(), [np.inf, -np.inf])


def test_scalars_are_checked_in_an_empty_domain_too(either: Context) -> None:
    x = either.zeros(0, f32)
    refuse(either, UniformRangeError, "alpha", AXPY, x, x, alpha=1e39)


def test_a_reference_checks_what_the_host_computes() -> None:
    with pytest.raises(UniformRangeError, match="can't be computed from step=1"):
        STAMP.check((), (1, 0, (1.0, 2.0, 3.0)))
    with pytest.raises(UniformRangeError, match="alpha"):
        AXPY.check((np.zeros(4), np.zeros(4)), (1e39,))

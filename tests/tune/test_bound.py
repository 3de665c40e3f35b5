"""Which results a trial takes for right, and which not."""

from __future__ import annotations

import numpy as np

from kerngen.runtime import Context
from kerngen.runtime.choices import kernel_of
from kerngen.tune import bound
from kerngen_kernels import half, matmul, optim, softmax


def test_one_dropped_term_is_seen(ctx: Context) -> None:
    kernel = kernel_of(matmul.matmul_nn)
    a, b = bound.whole_numbers(kernel, {"m": 5, "k": 4096, "n": 3})
    exact = bound.reference(kernel, [a, b], (1.0,))
    right = bound.run(ctx, kernel, [a, b], (1.0,))
    expected = bound.expect(exact, right)
    assert expected.fault(right) == ""
    a[3, 4000] = 0
    assert expected.fault(bound.run(ctx, kernel, [a, b], (1.0,))) == (
        "3 of 15 elements are wrong"
    )


def test_what_functions_round_is_allowed_for(ctx: Context) -> None:
    kernel = kernel_of(softmax.softmax)
    arrays = bound.whole_numbers(kernel, {"m": 4, "n": 100})
    exact = bound.reference(kernel, arrays, ())
    results = bound.run(ctx, kernel, arrays, ())
    expected = bound.expect(exact, results)
    assert expected.fault(results) == ""
    assert expected.fault([results[0] * np.float32(1.00001)]) != ""
    assert expected.fault([np.full_like(results[0], np.nan)]) != ""


def test_tensors_that_are_updated_count_too(ctx: Context) -> None:
    kernel = kernel_of(optim.sgd)
    arrays = bound.whole_numbers(kernel, {"n": 1000})
    scalars = tuple(0.5 for _ in kernel.scalars)
    exact = bound.reference(kernel, arrays, scalars)
    results = bound.run(ctx, kernel, arrays, scalars)
    assert len(results) == len(exact) == 1
    expected = bound.expect(exact, results)
    assert expected.fault(results) == ""
    assert expected.fault([arrays[0]]) != ""


def test_f16_is_rounded_where_it_is_stored(ctx: Context) -> None:
    kernel = kernel_of(half.matmul_nn)
    arrays = bound.whole_numbers(kernel, {"m": 20, "k": 333, "n": 20})
    exact = bound.reference(kernel, arrays, (1.0,))
    results = bound.run(ctx, kernel, arrays, (1.0,))
    assert results[0].dtype == np.float16
    assert bound.expect(exact, results).fault(results) == ""

"""Which results a trial takes for right, and which not."""

from __future__ import annotations

import numpy as np

from kerngen.runtime import Context
from kerngen.runtime.calls.choices import kernel_of
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


def test_rows_differ() -> None:
    kernel = kernel_of(matmul.matmul_nn)
    a, b = bound.whole_numbers(kernel, {"m": 256, "k": 256, "n": 256})
    for array in (a, b):
        assert len(np.unique(array, axis=0)) == len(array)
    a, b = bound.whole_numbers(kernel, {"m": 1, "k": 4096, "n": 1024})
    assert len(np.unique(b, axis=0)) == len(b)


def test_what_is_missing_is_seen_in_f16(ctx: Context) -> None:
    kernel = kernel_of(half.matmul_nn)
    arrays = bound.whole_numbers(kernel, {"m": 20, "k": 4000, "n": 20})
    exact = bound.reference(kernel, arrays, (1.0,))
    results = bound.run(ctx, kernel, arrays, (1.0,))
    assert results[0].dtype == np.float16
    expected = bound.expect(exact, results)
    assert expected.fault(results) == ""
    arrays[0][3, 3999] = 0
    fault = expected.fault(bound.run(ctx, kernel, arrays, (1.0,)))
    assert fault == "20 of 400 elements are wrong"
    arrays[0][:, 3000] = 0
    fault = expected.fault(bound.run(ctx, kernel, arrays, (1.0,)))
    assert int(fault.split()[0]) >= 380


def test_f16_is_rounded_where_it_is_stored() -> None:
    exact = np.array([1 / 3, 2049.0, 1e6])
    stored = np.array([1 / 3, 2048, np.inf], np.float16)
    expected = bound.expect([exact], [stored])
    assert expected.fault([stored]) == ""
    for wrong in ([0.3335, 2048, np.inf], [1 / 3, 2052, np.inf], [1 / 3, 2048, 6e4]):
        assert expected.fault([np.array(wrong, np.float16)]) != ""


def test_what_is_infinite_or_no_number_is_so_in_both() -> None:
    exact = np.array([np.inf, np.nan, 1.0])
    results = exact.astype(np.float32)
    expected = bound.expect([exact], [results])
    assert expected.fault([results]) == ""
    assert expected.fault([-results]) == "2 of 3 elements are wrong"

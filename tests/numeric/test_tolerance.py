"""The bounds hold, and are tight enough that one dropped term breaks them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from tests.budget import sampled

from .cases import Arrays, Case, standard_kernels
from .domains import like_size
from .oracles import ORACLES
from .tolerance import (
    SERIAL,
    SUMMATIONS,
    Oracle,
    Result,
    Summation,
    ceil_log2,
    expect,
    reference_arithmetic,
    shader_arithmetic,
    without_term,
)

ROWS, COLUMNS = 3, 5


def _matrices(form: str, terms: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    left = (ROWS, terms) if form[0] == "n" else (terms, ROWS)
    return left, ((terms, COLUMNS) if form[1] == "n" else (COLUMNS, terms))


def _shapes(module: str, name: str, terms: int) -> list[tuple[int, ...]]:
    """The shapes of a kernel's arguments with sums of so many terms, [] if it has none."""
    if module == "matmul":
        form = name.removeprefix("matmul_")[:2]
        bias = [(COLUMNS,)] if "bias" in name else []
        return [*_matrices(form, terms), *bias]
    shapes: dict[str, list[tuple[int, ...]]] = {
        "sum": [(terms,)],
        "mean": [(terms,)],
        "sum_squares": [(terms,)],
        "dot": [(terms,), (terms,)],
        "add_sum_squares": [(), (terms,)],
        "gemv": [(ROWS, terms), (terms,)],
        "gemv_t": [(terms, ROWS), (terms,)],
        "column_sum": [(terms, COLUMNS)],
        "softmax": [(ROWS, terms)],
        "log_softmax": [(ROWS, terms)],
        "cross_entropy": [(ROWS, terms), (ROWS,)],
        "cross_entropy_gradient": [(ROWS, terms), (ROWS,), (ROWS,)],
    }
    return shapes.get(name, [])


def _arrays(module: str, name: str, terms: int, rng: np.random.Generator) -> Arrays:
    """Arguments whose terms are positive and of like size; labels are classes."""
    shapes = _shapes(module, name, terms)
    arrays = {str(i): abs(like_size(rng, s)).astype("f4") for i, s in enumerate(shapes)}
    if name.startswith("cross_entropy"):
        arrays["1"] = rng.integers(0, 4, ROWS).astype(np.uint32)
    return arrays


def _sums() -> Iterator[tuple[str, str, Oracle, str, Summation]]:
    """Every kernel that sums, under every strategy that it may be summed by."""
    for module, oracles in ORACLES.items():
        for name, oracle in oracles.items():
            shapes = _shapes(module, name, 7)
            whole = module == "reduction" or name == "add_sum_squares"
            for (strategy, of_whole), summation in SUMMATIONS.items():
                if shapes and summation.longest and whole == of_whole:
                    yield module, name, oracle, strategy, summation


@pytest.mark.parametrize(
    ("module", "name", "oracle", "strategy", "summation"),
    sampled(_sums(), 4, lambda case: f"{case[1]}-{case[3]}"),
)
def test_one_dropped_term_breaks_the_bound(
    module: str, name: str, oracle: Oracle, strategy: str, summation: Summation
) -> None:
    rng = np.random.default_rng(1)
    terms = summation.longest
    arrays = _arrays(module, name, terms, rng)
    arithmetic = shader_arithmetic(summation.depth)
    (right,) = expect(oracle, arithmetic, arrays, {})
    for term in np.linspace(0, terms - 1, 5, dtype=int).tolist():
        (wrong,) = without_term(term, oracle, arithmetic, arrays, {})
        # Twice: the faulty result may itself be off by as much, the other way.
        broken = np.abs(wrong - right.value) > 2 * right.error
        assert broken.any(axis=-1 if broken.ndim else None).all(), (strategy, term)


def _add_up(terms: Result, order: str) -> Result:
    """Add float32 numbers up, one by one or pairwise."""
    values = [np.asarray(term, np.float32) for term in terms]
    while len(values) > 1:
        if order == "serial":
            values = [values[0] + values[1], *values[2:]]
        else:
            pairs = zip(
                values[::2], [*values[1::2], np.zeros((), np.float32)], strict=False
            )
            values = [a + b for a, b in pairs]
    return values[0]


@pytest.mark.parametrize("order", ["serial", "tree"])
@pytest.mark.parametrize("terms", [1, 2, 3, 100, 301])
def test_real_sums_keep_within_the_bound(order: str, terms: int) -> None:
    depth = SERIAL.depth if order == "serial" else ceil_log2
    for seed in range(10):
        array = like_size(np.random.default_rng(seed), (terms,)).astype(np.float32)
        oracle = ORACLES["reduction"]["sum"]
        (right,) = expect(oracle, shader_arithmetic(depth), {"x": array}, {})
        right.check(_add_up(array, order), order)


@pytest.mark.parametrize("case", sampled(standard_kernels(), 4))
def test_errors_that_are_played_out_keep_within_the_bound(case: Case) -> None:
    """Whatever each operation makes of what it may be off by, up or down."""
    arithmetic = shader_arithmetic(SERIAL.depth)
    for seed, size in enumerate((1, 2, 3, 5, 16)):
        rng = np.random.default_rng(seed)
        scalars = case.scalars(rng)
        dims = case.fit(dict.fromkeys(case.kernel.dims, size), scalars)
        arrays = case.arrays(rng, dims)
        right = expect(case.oracle, arithmetic, arrays, scalars)
        off = expect(case.oracle, replace(arithmetic, errs=rng), arrays, scalars)
        for want, got in zip(right, off, strict=True):
            want.check(got.value, str(case))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["sigmoid", "tanh", "gelu", "gelu_tanh", "exp", "div"])
def test_numpy_keeps_within_the_bound(name: str, dtype: type[np.floating]) -> None:
    rng = np.random.default_rng(2)
    oracle = ORACLES["elementwise"][name]
    operands = [
        rng.uniform(0.5, 6, 1000).astype(dtype) for _ in range(1 + (name == "div"))
    ]
    arrays = {str(i): x for i, x in enumerate(operands)}
    (right,) = expect(oracle, reference_arithmetic(dtype), arrays, {})
    right.check(np.asarray(oracle(*operands)), name)


def test_a_wrong_constant_is_seen() -> None:
    x = np.linspace(0.5, 3, 100, dtype=np.float32)
    (right,) = expect(
        ORACLES["elementwise"]["gelu"], shader_arithmetic(SERIAL.depth), {"x": x}, {}
    )
    other = np.asarray(ORACLES["elementwise"]["gelu_tanh"](x.astype(np.float64)))
    with pytest.raises(AssertionError, match="within"):
        right.check(other, "gelu")


def test_a_nan_is_seen() -> None:
    x = np.ones(3, np.float32)
    (right,) = expect(
        ORACLES["elementwise"]["exp"], shader_arithmetic(SERIAL.depth), {"x": x}, {}
    )
    with pytest.raises(AssertionError, match="element"):
        right.check(np.array([np.nan] * 3), "exp")

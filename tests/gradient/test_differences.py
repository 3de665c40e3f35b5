"""Derived gradients are what differences in float64 give."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from kerngen.gradient import derive
from tests.budget import sampled
from tests.compile import checked
from tests.gradient.cases import FILES_OF_DSL, all_of_dsl, case_of, kernels_of
from tests.gradient.differences import Case, inputs_by, results_of, weights_of

CLOSE = 1e-6
OFTEN = [
    ("attention", "causal_attention"),
    ("attention", "grouped_query_attention"),
    ("conv", "conv2d"),
    ("image", "max_pool2d"),
    ("attention", "rotary"),
    ("loss", "mean_cross_entropy"),
    ("random", "dropout"),
    ("norm", "groupnorm"),
    ("statistics", "cosine_similarity"),
    ("scan", "cumsum"),
    ("softmax", "softmax"),
    ("layout", "split_heads"),
]
"""Kernels of dsl/ that differ enough to be derived in each run."""


def _not_close(file: str) -> dict[str, float]:
    """The kernels of a file whose gradients are not those of differences, with the error."""
    worst = {name: case_of(file, name).worst() for _, name in kernels_of(file)}
    return {name: error for name, error in worst.items() if not error < CLOSE}


@pytest.mark.parametrize("file", ["programs", "vectors"])
def test_programs(file: str) -> None:
    """Programs of one difficulty each: borders, digits, ties, scalars, powers."""
    assert _not_close(file) == {}


@pytest.mark.parametrize(("file", "name"), sampled(OFTEN, 3, "-".join))
def test_kernels_of_dsl(file: str, name: str) -> None:
    assert case_of(file, name).worst() < CLOSE


@pytest.mark.nightly
@pytest.mark.parametrize("file", ["layers", *FILES_OF_DSL])
def test_every_kernel(file: str) -> None:
    """Programs as users write them, and all standard kernels."""
    assert _not_close(file) == {}


@pytest.mark.nightly
def test_nearly_all_of_dsl_has_gradients() -> None:
    """All that computes floats from tensors of floats, by each of those."""
    names = all_of_dsl()
    for file, name in names:
        case_of(file, name).derived()
    assert len(names) >= 132


SECOND = [
    "softmax",
    "gelu",
    "layernorm",
    "attention",
    "matmul_nn",
    "mean_cross_entropy",
    "rmsnorm",
    "groupnorm",
    "log_softmax",
    "logsumexp",
    "sigmoid",
    "tanh",
    "swish",
    "gelu_tanh",
    "conv1d",
    "conv2d",
    "avg_pool2d",
    "cosine_similarity",
    "binary_cross_entropy",
    "cross_entropy",
]
"""Twenty kernels, of each family of dsl/."""


@pytest.mark.parametrize(
    "name",
    [SECOND[0], *(pytest.param(n, marks=pytest.mark.nightly) for n in SECOND[1:])],
)
def test_second_order(name: str) -> None:
    """The gradient of a gradient, by all that the first one reads."""
    first = next(case_of(f, n) for f, n in all_of_dsl() if n == name)
    gradient = first.derived()
    case = Case(first.module, gradient, inputs_by(gradient), sizes=first.sizes)
    assert case.worst() < CLOSE


def test_product_of_hessian_and_vector() -> None:
    """The gradient of <gradient, v> by x, in one more derivation."""
    text = """
    kernel f(x: f32[n], a: f32[n, n]) -> y: f32[] {
        let h[i] = tanh(sum[j] a[i, j] * x[j]);
        y = sum[i] h[i] * h[i] * x[i];
    }
    """
    module = checked(text)
    first = Case(module, module.kernels[0], ("x",)).derived()
    second = Case(module, first, ("x",), values={"dy": np.float64(1.0)})
    assert second.worst() < CLOSE
    hessian = derive(first, name="hessian", by=("x",))
    with_vector = [t.name for t in hessian.tensors]
    assert "ddx" in with_vector


def test_ties_give_half_to_each() -> None:
    text = "kernel f(x: f32[n], z: f32[n]) -> y: f32[n] { y[i] = max(x[i], z[i]); }"
    x = np.array([1.0, 2.0, 3.0])
    z = np.array([1.0, 3.0, 2.0])
    dx, dz = results_of(text, ("x", "z"), x=x, z=z)
    dy = weights_of(text, 3)
    np.testing.assert_allclose(dx, dy * [0.5, 0, 1])
    np.testing.assert_allclose(dz, dy * [0.5, 1, 0])


def test_equal_maxima_share() -> None:
    text = "kernel f(x: f32[m, n]) -> y: f32[m] { y[i] = max[j] x[i, j]; }"
    (dx,) = results_of(text, ("x",), x=np.array([[2.0, 1.0, 2.0, 2.0]]))
    np.testing.assert_allclose(
        dx, weights_of(text, 1)[:, None] * [[1 / 3, 0, 1 / 3, 1 / 3]]
    )


def test_slopes_of_a_median_of_equal_numbers() -> None:
    """All three share it, whatever the order of `max` and `min`."""
    equal = {name: np.ones(2) for name in "abc"}
    case = replace(case_of("layers", "median"), values=equal, sizes={"n": 2})
    (weights,) = case.weights([np.ones(2)])
    assert weights is not None
    np.testing.assert_allclose(sum(case.results()), weights)


def test_slope_where_a_quotient_is_not_taken() -> None:
    """At 0, sin(x) / x is NaN, and so is its slope; the branch is 1 there."""
    x = np.array([0.0, 1.0])
    case = replace(case_of("layers", "sinc"), values={"x": x}, sizes={"n": 2})
    (weights,) = case.weights([x])
    assert weights is not None
    (dx,) = case.results()
    slopes = [0.0, math.cos(1.0) - math.sin(1.0)]
    np.testing.assert_allclose(dx, weights * slopes, rtol=1e-12)


def test_kinks_that_cancel() -> None:
    """max(x, 0) and abs(x) have kinks at 0; the loss has none: its slope is 1/2 - t."""
    case = case_of("loss", "binary_cross_entropy")
    x, target = np.zeros(3), np.array([0.0, 0.25, 1.0])
    case = replace(case, by=("x",), values={"x": x, "target": target}, sizes={"n": 3})
    (dx,) = case.results()
    (weights,) = case.weights([x])
    assert weights is not None
    np.testing.assert_allclose(dx, weights * (0.5 - target), rtol=1e-12)


def test_slope_where_a_branch_meets_a_kink() -> None:
    """At 0 `sigmoid` takes the branch of `x >= 0.0`, where `abs(x)` is x."""
    case = replace(case_of("elementwise", "sigmoid"), values={"x": np.zeros(3)})
    (dx,) = case.results()
    (weights,) = case.weights([dx])
    assert weights is not None
    np.testing.assert_allclose(dx, weights * 0.25, rtol=1e-12)


def test_slope_of_relu_at_zero() -> None:
    """It is 0, as PyTorch's; NaN has that of y."""
    x = np.array([0.0, -0.0, 1.0, -1.0, math.nan])
    case = replace(case_of("elementwise", "relu"), values={"x": x}, sizes={"n": 5})
    (dx,) = case.results()
    (weights,) = case.weights([x])
    assert weights is not None
    np.testing.assert_array_equal(dx, weights * [0, 0, 1, 0, 1])


@pytest.mark.parametrize("name", ["branches", "guarded_sum"])
def test_branches_not_taken_count_nowhere(name: str) -> None:
    """log and sqrt of what is negative are NaN, and no part of the result."""
    x = np.array([0.5, -1.0, 0.0, 2.0, -math.inf])
    case = replace(case_of("programs", name), sizes={"n": 5}, values={"x": x})
    with np.errstate(all="ignore"):
        for result in case.results():
            assert np.isfinite(result).all()


def test_masked_terms_count_nowhere() -> None:
    """What a condition leaves out of a product is not multiplied by 0."""
    a = np.where(np.tri(3), 0.5, math.nan)
    sizes = {"m": 3, "k": 3, "n": 2}
    case = replace(case_of("programs", "masked"), values={"a": a}, sizes=sizes)
    da, db = case.results()
    assert np.isfinite(da).all()
    assert np.isfinite(db).all()


def test_zero_factors() -> None:
    """With one zero only that factor has a slope, with two none has."""
    text = "kernel f(x: f32[m, n]) -> y: f32[m] { y[i] = prod[j] x[i, j]; }"
    x = np.array([[2.0, 0.0, 3.0], [0.0, 5.0, 0.0], [1.0, 2.0, 4.0]])
    with np.errstate(all="ignore"):
        (dx,) = results_of(text, ("x",), x=x)
    slopes = np.array([[0, 6, 0], [0, 0, 0], [8, 4, 2]])
    np.testing.assert_allclose(dx, weights_of(text, 3)[:, None] * slopes)


def test_zero_factors_of_products_so_far() -> None:
    """The gradient of a running product: a zero counts from its place on."""
    text = """
    kernel f(x: f32[m, n]) -> y: f32[m, n] { y[i, j] = prod[p when p <= j] x[i, p]; }
    """
    x = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 1.0], [2.0, 3.0, 0.0]])
    module = checked(text)
    case = Case(module, module.kernels[0], ("x",), values={"x": x}, sizes={"n": 3})
    with np.errstate(all="ignore"):
        assert case.worst() < CLOSE


def test_what_no_condition_takes_counts_nowhere() -> None:
    """Where a mask takes x[p] in no row, 1 / x[p] and NaN have no share."""
    text = """
    kernel f(x: f32[n], mask: f32[m, n]) -> y: f32[m] {
        y[i] = sum[p when mask[i, p] > 0.0] (log(x[p]) + x[p] * x[p]);
    }
    """
    x, mask = np.array([2.0, 0.0, math.nan]), np.array([[1.0, 0.0, 0.0]] * 2)
    with np.errstate(all="ignore"):
        (dx,) = results_of(text, ("x",), x=x, mask=mask)
    np.testing.assert_allclose(dx, [weights_of(text, 2).sum() * 4.5, 0.0, 0.0])


def test_root_of_a_sum_that_takes_nothing() -> None:
    """Its slope is infinite, and that of each term 0: as PyTorch's with `torch.where`."""
    text = """
    kernel f(x: f32[n], k: i32[m]) -> y: f32[] { y = sqrt(sum[p, i when k[i] > 9] x[p]); }
    """
    x, k = np.array([2.0, 1.0]), np.array([3, 10], np.int32)
    for taken, slope in ((k[:1], 0.0), (k[1:], 0.5 / math.sqrt(3.0))):
        with np.errstate(all="ignore"):
            (dx,) = results_of(text, ("x",), x=x, k=taken)
        np.testing.assert_allclose(dx, weights_of(text, 1) * [slope, slope])


def test_factor_that_is_zero_before_a_sum() -> None:
    """What a sum is can't be had from a product of it and 0."""
    text = """
    kernel f(x: f32[m, n], a: f32[m]) -> y: f32[m] {
        y[i] = sum[j] a[i] * x[i, j] * x[i, j];
    }
    """
    x, a = np.array([[1.0, 2.0], [3.0, 1.0]]), np.array([0.0, 2.0])
    (da,) = results_of(text, ("a",), x=x, a=a)
    np.testing.assert_allclose(da, weights_of(text, 2) * [5.0, 10.0])


def test_pairs_that_a_condition_counts() -> None:
    """Sums of a condition alone, two of them: each counts other pairs."""
    text = """
    kernel f(x: f32[n]) -> y: f32[] {
        y = sum[i, j when i < j and x[i] > x[j]] (x[i] - x[j]);
    }
    """
    module = checked(text)
    first = Case(module, module.kernels[0], ("x",), sizes={"n": 5})
    assert first.worst() < CLOSE
    second = checked(text.replace("(x[i] - x[j])", "(x[i] - x[j]) * x[i]"))
    case = Case(second, second.kernels[0], ("x",), sizes={"n": 5})
    assert replace(case, kernel=case.derived()).worst() < CLOSE


def test_given_lets_are_inputs() -> None:
    case = case_of("norm", "layernorm")
    names = ("mean", "scale")
    gradient = replace(case, by=("x",), given=names).derived()
    assert [t.name for t in gradient.tensors] == [
        "x",
        "gain",
        "mean",
        "scale",
        "dy",
        "dx",
    ]
    assert "mean" not in {s.target.name for s in gradient.body}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("z: f32[m]) -> y: f32[m] { y[i] = z[i] * x[clamp(i - 1, 0, n - 1)]; }", {}),
        (
            "z: f32[m]) -> y: f32[m] { y[i] = z[i] * x[clamp(2 * i - 1, 0, n - 1)]; }",
            {},
        ),
        (
            "p: i32) -> y: f32[n + 2 * p] { y[i] = x[clamp(i - p, 0, n - 1)]; }",
            {"p": -2},
        ),
    ],
)
def test_clamped_reads_of_an_empty_output(text: str, values: dict[str, int]) -> None:
    """A gather from the gradient by the output would be refused: it is empty."""
    own: dict[str, object] = {**values} or {"z": np.zeros(0)}
    (dx,) = results_of(f"kernel f(x: f32[n], {text}", ("x",), x=np.ones(4), **own)
    np.testing.assert_array_equal(dx, np.zeros(4))

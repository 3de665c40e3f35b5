"""What no branch takes has no share in a gradient, not even as NaN: 0 times infinity."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.gradient.differences import results_of, weights_of

NAN = math.nan


BRANCHES = {
    "an if": "y[i] = if m[i] > 0.0 { r[i] * r[i] + r[i] } else { 0.0 };",
    "either of two": """
        y[i] = (if m[i] > 0.0 { r[i] * r[i] } else { 0.0 })
            + (if m[i] > 0.0 and x[i] < 9.0 { r[i] } else { 0.0 });
    """,
    "a step of slope 1": """
        let s[i] = r[i] + x[i] * x[i];
        let t[i] = s[i] - x[i] * x[i];
        y[i] = if m[i] > 0.0 { t[i] * r[i] + t[i] } else { 0.0 };
    """,
    "a function": """
        let v[i] = twice(r[i]);
        y[i] = if m[i] > 0.0 { v[i] * v[i] + v[i] - 3.0 * r[i] * r[i] - r[i] } else { 0.0 };
    """,
    "a row's sum": """
        let s[i] = sum[p < 2] r[i] * 0.5;
        y[i] = if m[i] > 0.0 { s[i] * s[i] + s[i] } else { 0.0 };
    """,
    "a reduction's condition": """
        y[i] = sum[j when j == i and m[j] > 0.0] (r[j] * r[j] + r[j]);
    """,
}
"""What is x + sqrt(x) of `r[i] = sqrt(x[i])` where m[i] > 0, and 0 elsewhere."""


@pytest.mark.parametrize("name", BRANCHES)
def test_lets_that_a_branch_does_not_take(name: str) -> None:
    """The slope of a root is infinite at 0, and NaN below."""
    text = f"""
    fn twice(x: f32) -> f32 {{ x + x }}
    kernel f(x: f32[n], m: f32[n]) -> y: f32[n] {{
        let r[i] = sqrt(x[i]);
        {BRANCHES[name]}
    }}
    """
    x, m = np.array([4.0, 0.0, -1.0, NAN, 1.0]), np.array([1.0, 0.0, 0.0, 0.0, 1.0])
    with np.errstate(all="ignore"):
        (dx,) = results_of(text, ("x",), x=x, m=m)
    slopes = [1.25, 0.0, 0.0, 0.0, 1.5]
    np.testing.assert_allclose(dx, weights_of(text, 5) * slopes)


@pytest.mark.parametrize(
    ("let", "read"),
    [
        ("vec2f(sqrt(x[i]), x[i])", "v[i].y"),
        ("if x[i] < 9.0 { vec2f(log(x[i]), x[i]) } else { vec2f(0.0) }", "v[i].y"),
        ("mat2x2f(vec2f(x[i], sqrt(x[i])), vec2f(log(x[i])))", "v[i][0].x"),
        ("sum[j < 1] vec3f(sqrt(x[i]), x[i], log(x[i]))", "v[i].y"),
    ],
)
def test_components_that_nothing_reads(let: str, read: str) -> None:
    """Slopes that are infinite at 0 have no share, as in PyTorch's of a stack."""
    text = f"""
    kernel f(x: f32[n]) -> y: f32[n] {{
        let v[i] = {let};
        y[i] = {read} * {read};
    }}
    """
    x = np.array([4.0, 0.0, -1.0])
    with np.errstate(all="ignore"):
        (dx,) = results_of(text, ("x",), x=x)
    np.testing.assert_allclose(dx, weights_of(text, 3) * 2.0 * x)


COMPONENTS = {
    "one of a vector": ("vec2f(log(x[i]), x[i])", "(if on { v[i].x } else { 0.0 }) + v[i].y"),
    "one of an operation": ("log(vec2f(x[i], exp(x[i])))", "if on { v[i].x + v[i].y } else { v[i].y }"),
    "one of a quotient": (
        "vec2f(log(x[i]), 0.0) + vec2f(0.0, x[i]) / vec2f(x[i], 1.0)",
        "(if on { v[i].x } else { 0.0 }) + v[i].y",
    ),
    "a let of it": (
        "vec2f(log(x[i]), x[i]); let w[i] = 2.0 * v[i].yx - vec2f(v[i].y, v[i].x)",
        "w[i].x + (if on { w[i].y } else { 0.0 })",
    ),
    "a copy": (
        "vec2f(log(x[i]), x[i]); let w[i] = v[i]",
        "if on { w[i].x + w[i].y } else { x[i] }",
    ),
    "one that nothing reads of a copy": (
        "vec2f(sqrt(x[i]), x[i]); let w[i] = v[i]",
        "w[i].y + (if on { log(x[i]) } else { 0.0 })",
    ),
    "a column": (
        "mat2x2f(vec2f(x[i], 1.0), vec2f(x[i], log(x[i])))",
        "v[i][0].x + (if on { v[i][1].y } else { 0.0 })",
    ),
    "by a computed index": (
        "vec3f(log(x[i]) + x[i], x[i], sqrt(x[i]))",
        "v[i][if on { 0 } else { 1 }]",
    ),
}  # fmt: skip
"""Values of x + log(x) where `on` holds, and of x elsewhere."""


@pytest.mark.parametrize("name", COMPONENTS)
def test_components_have_conditions_of_their_own(name: str) -> None:
    """The slope of a logarithm is infinite at 0, and that of a root NaN below."""
    let, value = COMPONENTS[name]
    text = f"""
    kernel f(x: f32[n], m: f32[n]) -> y: f32[n] {{
        let v[i] = {let};
        y[i] = {value};
    }}
    """.replace("on {", "m[i] > 0.0 {")
    x, m = np.array([4.0, 0.0, -1.0, 0.5]), np.array([1.0, 0.0, -1.0, 2.0])
    with np.errstate(all="ignore"):
        (dx,) = results_of(text, ("x",), x=x, m=m)
    np.testing.assert_allclose(dx, weights_of(text, 4) * [1.25, 1.0, 1.0, 3.0])


def test_a_number_that_another_branch_multiplies() -> None:
    """The component that is not read has no share in the product with infinity."""
    text = """
    kernel f(x: vec2f[n], k: u32[n]) -> y: f32[n] {
        y[i] = x[i][k[i]] * x[i][k[i]];
    }
    """
    x = np.array([[math.inf, 2.0], [3.0, math.inf]])
    (dx,) = results_of(text, ("x",), x=x, k=np.zeros(2, np.uint32))
    first, second = weights_of(text, 2)
    np.testing.assert_allclose(dx, [[first * math.inf, 0.0], [6.0 * second, 0.0]])


def test_a_factor_of_components_that_different_branches_take() -> None:
    """Its slope is the sum of those components that are taken, where the others are NaN."""
    text = """
    kernel f(x: f32[n], v: vec2f[n]) -> y: f32[n] {
        let r[i] = sqrt(v[i]);
        let u[i] = r[i] * x[i];
        y[i] =
            (if v[i].x > 0.0 { u[i].x } else { 0.0 })
            + (if v[i].y > 0.0 { u[i].y } else { 0.0 });
    }
    """
    v = np.array([[4.0, 9.0], [4.0, -1.0], [-1.0, 9.0], [-1.0, -1.0]])
    with np.errstate(all="ignore"):
        (dx,) = results_of(text, ("x",), x=np.ones(4), v=v)
    np.testing.assert_allclose(dx, weights_of(text, 4) * [5.0, 2.0, 3.0, 0.0])


def test_components_of_an_operation_on_vectors_that_nothing_reads() -> None:
    """The slope of a root is infinite at 0."""
    text = """
    kernel f(x: vec3f[n]) -> y: vec2f[n] {
        let v[i] = sqrt(x[i]);
        y[i] = v[i].yz;
    }
    """
    with np.errstate(all="ignore"):
        (dx,) = results_of(text, ("x",), x=np.array([[0.0, 4.0, 1.0]]))
    np.testing.assert_allclose(dx[:, 0], [0.0])
    np.testing.assert_allclose(dx[:, 1:], weights_of(text, 1, 2) * [0.25, 0.5])


def test_components_of_a_state_are_apart() -> None:
    """The slope of the root is infinite, and reaches no other component of the state."""
    text = """
    kernel f(x: vec2f[n]) -> y: f32[n] {
        let s[t] = if t > 0 { vec2f(sqrt(s[t - 1].x), s[t - 1].y * 0.5) + x[t] } else { x[t] };
        y[t] = s[t].y;
    }
    """
    with np.errstate(all="ignore"):
        (dx,) = results_of(text, ("x",), x=np.array([[0.0, 1.0], [0.0, 2.0]]))
    first, second = weights_of(text, 2)
    np.testing.assert_allclose(dx[:, 1], [first + 0.5 * second, second])


def test_components_of_a_state_that_nothing_reads() -> None:
    """The first component is read by the second one of earlier steps, and the third by none."""
    text = """
    kernel f(x: f32[n]) -> y: f32[n] {
        let s[t] = if t > 0 {
            vec3f(x[t], s[t - 1].x + 0.5 * s[t - 1].y, s[t - 1].z + sqrt(x[t]))
        } else {
            vec3f(x[t], 0.0, sqrt(x[t]))
        };
        y[t] = s[t].y;
    }
    """
    with np.errstate(all="ignore"):
        (dx,) = results_of(text, ("x",), x=np.array([0.0, -1.0, 2.0]))
    _, second, third = weights_of(text, 3)
    np.testing.assert_allclose(dx, [second + 0.5 * third, third, 0.0])


def test_condition_on_components_that_another_one_keeps_inside() -> None:
    """Of both, the one on indices is first in the gradient, too."""
    text = """
    kernel f(x: f32[], v: vec2f, m: f32[n]) -> y: f32[n] {
        y[i] = if m[i] < 0.0 or i < 1 or i > 2 or is_nan(v[i - 1]) { x } else { 2.0 * x };
    }
    """
    x, v, m = np.array(3.0), np.ones(2), np.ones(4)
    (dx,) = results_of(text, ("x",), x=x, v=v, m=m)
    np.testing.assert_allclose(dx, weights_of(text, 4) @ [1.0, 2.0, 2.0, 1.0])


def test_lets_that_both_branches_take() -> None:
    """A condition and its opposite are none: the slope is infinite where it is."""
    text = """
    kernel f(x: f32[n], m: f32[n]) -> y: f32[n] {
        let r[i] = sqrt(x[i]);
        y[i] = if m[i] > 0.0 { r[i] * r[i] + r[i] } else { 3.0 * r[i] };
    }
    """
    x, m = np.array([4.0, 4.0, 0.0, 0.0]), np.array([1.0, 0.0, 1.0, 0.0])
    with np.errstate(all="ignore"):
        (dx,) = results_of(text, ("x",), x=x, m=m)
    weights = weights_of(text, 4)
    np.testing.assert_allclose(dx, weights * [1.25, 0.75, math.inf, math.inf])


@pytest.mark.parametrize(
    "sums",
    [
        "y[i] = sum[p when mask[i, p] > 0.0] h[p];",
        "y[i] = sum[p when mask[i, p] > 0.0] (h[p] * h[p] / h[p]);",
        "let s[p] = 2.0 * h[p]; y[i] = sum[p when mask[i, p] > 0.0] (s[p] - h[p]);",
    ],
)
def test_a_let_that_no_sum_takes(sums: str) -> None:
    """A place that the mask takes in no row is counted."""
    text = f"""
    kernel f(x: f32[n], mask: f32[m, n]) -> y: f32[m] {{
        let h[p] = log(x[p]) + x[p] * x[p];
        {sums}
    }}
    """
    x, mask = np.array([2.0, 0.0, 1.0]), np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 1.0]])
    with np.errstate(all="ignore"):
        (dx,) = results_of(text, ("x",), x=x, mask=mask)
    first, second = weights_of(text, 2)
    np.testing.assert_allclose(dx, [(first + second) * 4.5, 0.0, second * 3.0])


def test_rows_that_nothing_looks_up() -> None:
    text = """
    kernel f(x: f32[n], ids: u32[m]) -> y: f32[m] {
        let h[p] = log(x[p]);
        y[i] = h[ids[i]] * h[ids[i]];
    }
    """
    x, ids = np.array([2.0, 0.0, 1.0]), np.array([0, 2], np.uint32)
    with np.errstate(all="ignore"):
        (dx,) = results_of(text, ("x",), x=x, ids=ids)
    np.testing.assert_allclose(dx, [weights_of(text, 2)[0] * math.log(2.0), 0.0, 0.0])


def test_rows_of_a_sum_that_no_branch_takes() -> None:
    """Each row's sum of logarithms, by what is in the row and by what all rows share."""
    text = """
    kernel f(x: f32[m, n], b: f32[n], on: f32[m]) -> y: f32[m] {
        let s[i] = sum[j] log(x[i, j] + b[j]);
        y[i] = if on[i] > 0.0 { s[i] * s[i] + s[i] } else { 0.0 };
    }
    """
    x, b = np.array([[1.0, 2.0], [-1.0, NAN]]), np.array([1.0, 0.5])
    with np.errstate(all="ignore"):
        dx, db = results_of(text, ("x", "b"), x=x, b=b, on=np.array([1.0, 0.0]))
    whole = x[0] + b
    slopes = weights_of(text, 2)[0] * (2.0 * np.log(whole).sum() + 1.0) / whole
    np.testing.assert_allclose(dx, [slopes, [0.0, 0.0]])
    np.testing.assert_allclose(db, slopes)


def test_what_is_read_behind_a_condition_is_clamped_in_gradients_too() -> None:
    """A condition that is always true keeps `m[2 * i]` inside of its axis: m[3], then."""
    text = """
    kernel f(x: f32[n], m: f32[n], k: i32[n]) -> y: f32[n] {
        y[i] = if k[i] == k[i] and m[2 * i] > 0.0 { x[k[i]] } else { 0.0 };
    }
    """
    x, m = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 9.0, 0.0, 1.0])
    (dx,) = results_of(text, ("x",), x=x, m=m, k=np.arange(4, dtype=np.int32))
    np.testing.assert_allclose(dx, weights_of(text, 4) * [1, 0, 1, 1])


def test_infinity_is_a_factor_like_another() -> None:
    text = """
    kernel f(x: f32[n], m: f32[n]) -> y: f32[n] {
        y[i] = x[i] * inf + x[i] * m[i] + x[i] / inf;
    }
    """
    x, m = np.ones(3), np.array([1.0, -1.0, -math.inf])
    with np.errstate(all="ignore"):
        (dx,) = results_of(text, ("x",), x=x, m=m)
        slopes = [math.inf, math.inf, NAN]
        np.testing.assert_array_equal(dx, weights_of(text, 3) * slopes)

"""Gradients that there are none of: the reason, what it is about, and where."""

from __future__ import annotations

import pytest

from kerngen.gradient import GradientError, Kind, derive
from tests.compile import checked

BAD = [
    ("kernel f(x: f32[n]) -> y: f32[n] { y[i] = x[i]; }", "z", "", Kind.BY_UNKNOWN, ""),
    ("kernel f(x: f32[n]) -> y: f32[n] { y[i] = x[i]; }", "x x", "", Kind.BY_TWICE, ""),
    (
        "kernel f(x: f32[n], ids: u32[n]) -> y: f32[n] { y[i] = x[ids[i]]; }",
        "ids",
        "",
        Kind.BY_INTEGER,
        "",
    ),
    (
        "kernel f(mut x: f32[n], z: f32[n]) { x[i] += z[i]; }",
        "z",
        "",
        Kind.IN_PLACE,
        "x[i] += z[i];",
    ),
    (
        (
            "struct S { a: f32[2] } kernel f(s: S[n], x: f32[n]) -> y: S[n] "
            "{ y[i] = s[i]; y[i].a[1] = x[i]; }"
        ),
        "x",
        "",
        Kind.NO_DERIVATIVE,
        "y[i].a[1] = x[i];",
    ),
    (
        (
            "struct S { a: f32[2] } kernel f(x: f32[n]) -> y: S[n] "
            "{ y[i].a[0] = x[i]; y[i].a[1] = x[i]; }"
        ),
        "x",
        "",
        Kind.NO_DERIVATIVE,
        "y[i].a[1] = x[i];",
    ),
    (
        "kernel f(x: f32[n]) -> y: f32[n] { y[i] = x[i] * x[i]; }",
        "x",
        "z",
        Kind.GIVEN_UNKNOWN,
        "",
    ),
    (
        "kernel f(x: f32[n]) -> y: f32[n] { y[i] = x[i] * x[i]; }",
        "x",
        "y",
        Kind.GIVEN_UNUSED,
        "",
    ),
    (
        "kernel f(x: f32[n]) -> y: f32[n] { y[i] = floor(x[i]); }",
        "x",
        "",
        Kind.ZERO,
        "",
    ),
    (
        "kernel f(x: f32[n]) -> y: f32[n] { y[i] = x[i] + x[i] / 0.0; }",
        "x",
        "",
        Kind.NO_DERIVATIVE,
        "y[i] = x[i] + x[i] / 0.0;",
    ),
    (
        "kernel f(x: f32[n], z: f32[n]) -> y: f32[n] { y[i] = x[i]; }",
        "z",
        "",
        Kind.ZERO,
        "",
    ),
]


@pytest.mark.parametrize(("text", "by", "given", "kind", "where"), BAD)
def test_no_gradient(text: str, by: str, given: str, kind: Kind, where: str) -> None:
    (kernel,) = checked(text).kernels
    names = tuple(by.split()), tuple(given.split())
    with pytest.raises(GradientError) as caught:
        derive(kernel, name="g", by=names[0], given=names[1])
    assert caught.value.kind is kind
    span = caught.value.span
    assert (span.text if span else "") == where


def test_too_large() -> None:
    """A long chain of sums: each needs a statement of its own in the gradient."""
    lets = (
        f"let h{n}[i] = tanh(sum[j] w[i, j] * h{n - 1}[j]) * x[i];"
        for n in range(1, 80)
    )
    body = "\n".join(["let h0[i] = x[i];", *lets, "y[i] = h79[i];"])
    text = f"kernel f(x: f32[n], w: f32[n, n]) -> y: f32[n] {{ {body} }}"
    (kernel,) = checked(text).kernels
    with pytest.raises(GradientError) as caught:
        derive(kernel, name="g", by=("x",))
    assert caught.value.kind is Kind.TOO_LARGE


def test_only_what_is_new_is_named_anew() -> None:
    """Names that the forward kernel has are left to it."""
    text = "kernel f(x: f32[n], dy: f32[n]) -> y: f32[n] { y[i] = x[i] * dy[i]; }"
    (kernel,) = checked(text).kernels
    gradient = derive(kernel, name="g", by=("x",))
    assert [t.name for t in gradient.tensors] == ["dy", "dy_2", "dx"]

"""Time grows with the size of a file, not with its square, however wrong the file is."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from .campaign import ended_after
from .oracle import SECONDS, Oracle

FORMS: dict[str, Callable[[int], str]] = {
    "wrong statements": lambda n: f"kernel k() {{ {'#;' * n} }}",
    "wrong items": lambda n: "kernel " * n,
    "equal names": lambda n: f"kernel k({'p: f32, ' * n}) -> y: f32[3] {{ y[i] = p; }}",
    "equal attributes": lambda n: f"struct S {{ {'@size(4) ' * n} a: f32 }}",
    "digits": lambda n: f"const A: f32 = {'9' * 10 * n}x;",
    "parentheses": lambda n: f"const A: f32 = {'(' * 4 * n}1.0{')' * 4 * n};",
}
HEAVY: dict[str, Callable[[int], str]] = {
    "a chain of lets": lambda n: _kernel(
        f"let a0[i] = x[i] + 1.0; {''.join(map(_next, range(1, n)))} y[i] = a{n - 1}[i];"
    ),
    "reductions": lambda n: _kernel("y[i] = 0.0;" + n * "y[i] += sum[j < 2] x[j];"),
    "guards": lambda n: _kernel("y[i] = x[i];")
    + "".join(f"schedule k when n == {j} {{ generic }}\n" for j in range(n)),
    "members": lambda n: (
        f"struct S {{ {''.join(f'a{j}: f32, ' for j in range(n))} }}"
        f"kernel k(mut x: S[n]) {{ {''.join(f'x[i].a{j} = 1.0;' for j in range(n))} }}"
    ),
}
"""Texts that are right, or were until the limit: each item is worth many tokens."""
FEW, TIMES = 250, 4
MOST = 9
"""A square would make it 16 times as long."""


def _kernel(body: str) -> str:
    return f"kernel k(x: f32[n]) -> y: f32[n] {{ {body} }}\n"


def _next(number: int) -> str:
    return f"let a{number}[i] = a{number - 1}[i] * 2.0;\n"


def seconds(text: str) -> float:
    start = time.process_time()
    Oracle().examine(text.encode())
    return time.process_time() - start


@pytest.mark.parametrize("few", [30, pytest.param(FEW, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("form", HEAVY)
def test_a_kernel_of_many_parts_takes_as_long_as_they_do(form: str, few: int) -> None:
    make = HEAVY[form]
    Oracle().examine(make(3).encode())
    assert seconds(make(TIMES * few)) < MOST * max(seconds(make(few)), 0.04)


@pytest.mark.parametrize("form", FORMS)
def test_four_times_the_text_takes_about_four_times_as_long(form: str) -> None:
    make = FORMS[form]
    Oracle().examine(make(3).encode())
    few = max(seconds(make(FEW)), 0.04)
    assert any(seconds(make(TIMES * FEW)) < MOST * few for _ in range(3))


NESTED = ("exp({})", "clamp({}, h, h)", "normalize({})", "({} % h)", "f({})")


@pytest.mark.parametrize("form", NESTED)
def test_nothing_is_done_twice_at_each_level(form: str) -> None:
    expr = "h"
    for _ in range(40):
        expr = form.format(expr)
    text = f"kernel k(h: vec3f, x: f32[n]) -> y: vec3f[n] {{ y[i] = {expr}; }}"
    with ended_after(SECONDS):
        ended = Oracle().examine(f"fn f(x: vec3f) -> vec3f {{ x }} {text}".encode())
    assert ended == "output"

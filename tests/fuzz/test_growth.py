"""Time grows with the size of a file, not with its square, however wrong the file is."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from .oracle import Oracle

FORMS: dict[str, Callable[[int], str]] = {
    "wrong statements": lambda n: f"kernel k() {{ {'#;' * n} }}",
    "wrong items": lambda n: "kernel " * n,
    "equal names": lambda n: f"kernel k({'p: f32, ' * n}) -> y: f32[3] {{ y[i] = p; }}",
    "equal attributes": lambda n: f"struct S {{ {'@size(4) ' * n} a: f32 }}",
    "digits": lambda n: f"const A: f32 = {'9' * 10 * n}x;",
    "parentheses": lambda n: f"const A: f32 = {'(' * 4 * n}1.0{')' * 4 * n};",
}
FEW, TIMES = 250, 4
MOST = 9
"""A square would make it 16 times as long."""


def seconds(text: str) -> float:
    start = time.process_time()
    Oracle().examine(text.encode())
    return time.process_time() - start


@pytest.mark.parametrize("form", FORMS)
def test_four_times_the_text_takes_about_four_times_as_long(form: str) -> None:
    make = FORMS[form]
    Oracle().examine(make(3).encode())
    few = min(seconds(make(FEW)) for _ in range(2))
    many = min(seconds(make(TIMES * FEW)) for _ in range(2))
    assert many < MOST * max(few, 0.04)

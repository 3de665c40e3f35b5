"""What stages cost: counted by hand."""

from __future__ import annotations

import pytest

from kerngen.compiler import compile_text
from kerngen.schedule.costs import bytes_moved, operations, show_polynomial


@pytest.mark.parametrize(
    ("text", "moved", "done"),
    [
        (
            (
                "kernel f(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] {"
                " c[i, j] = sum[p] a[i, p] * b[p, j]; }"
            ),
            "4 k m + 4 k n + 4 m n",
            "2 k m n",
        ),
        (
            (
                "fn cube(x: f32) -> f32 { let y = x * x; x * y }"
                " kernel f(mut x: f32[n, 3], s: f32) { x[i, j] = s + cube(x[i, j]); }"
            ),
            "24 n",
            "9 n",
        ),
        ("kernel f(x: f32[n]) -> y: f32[] { y = max[i] x[i]; }", "4 n + 4", "n"),
        ("kernel f(x: f32[n]) -> y: f32[n] { y[i] = x[n - 1 - i]; }", "8 n", "0"),
        (
            (
                "kernel f(x: f32[m, n]) -> y: f32[m, n] {"
                " y[i, j] = sum[p when p <= j] 2.0 * x[i, p]; }"
            ),
            "8 m n",
            "2 m n",
        ),
        (
            (
                "kernel f(k: u32[n], x: f32[n, d]) -> y: f32[7, d] {"
                " y[q, j] = sum[i when k[i] == u32(q)] x[i, j]; }"
            ),
            "4 d n + 28 d + 4 n",
            "3 d n",
        ),
    ],
)
def test_costs(text: str, moved: str, done: str) -> None:
    (program,) = compile_text(text, "costs.kern").programs
    (stage,) = program.staged.stages
    assert show_polynomial(bytes_moved([stage])) == moved
    assert show_polynomial(operations([stage], program.functions)) == done

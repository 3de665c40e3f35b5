"""Gradients of outputs without elements: zeros, also where they would gather from one."""

from __future__ import annotations

from typing import Any

import pytest

from kerngen.runtime import Context, ShapeError, f32
from tests.compile import loaded

PROGRAMS = {
    "every other": "(x: f32[n]) -> y: f32[n / 2] { y[i] = x[2 * i]; }",
    "differences": "(x: f32[n]) -> y: f32[n - 1] { y[i] = x[i + 1] - x[i]; }",
    "clamped": """
        (x: f32[n], z: f32[m]) -> y: f32[m] { y[i] = z[i] * x[clamp(i - 1, 0, n - 1)]; }
    """,
    "two": """
        (x: f32[n]) -> y: f32[n / 2], z: f32[n - 1] { y[i] = x[2 * i]; z[i] = x[i + 1]; }
    """,
}
"""Kernels whose outputs are empty where `x` has one element."""


def _called(text: str, *shapes: int, **given: Any) -> Any:
    """Call the gradient by `x`, which has one element, with vectors of some lengths."""
    made = loaded(f"kernel f{text} kernel g = gradient of f by x;")
    vectors = [given["ctx"].zeros(length, f32) for length in shapes]
    return made.g(*vectors, n_len=1, **given)


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_of_empty_outputs(name: str, either: Context) -> None:
    text, inputs = PROGRAMS[name], 1 + ("z:" in PROGRAMS[name])
    out = either.vector([7.0], f32)
    with either.capture() as step:
        _called(text, *[0] * inputs, ctx=either, out=out)
    step.replay()
    assert out.numpy().tolist() == [0.0]
    assert _called(text, *[0] * inputs, ctx=either).numpy().tolist() == [0.0]


def test_a_gather_beside_an_output_with_elements(either: Context) -> None:
    """Only gradients that are 0 as a whole are known to be."""
    text = "(x: f32[n]) -> y: f32[n / 2], z: f32[2 * n] { y[i] = x[2 * i]; z[i] = x[i / 2]; }"
    wanted = r"axis 0 of 'dy' is gathered from, and it is empty \(p=0\)"
    with pytest.raises(ShapeError, match=wanted):
        _called(text, 0, 2, ctx=either)

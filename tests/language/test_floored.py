"""Floored divisions where hosts, lengths, guards and subscripts compute them."""

from __future__ import annotations

import numpy as np
import pytest

import kerngen
import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from kerngen.runtime.backend import Kind
from kerngen.source.diagnostic import CompileError

TEXT = """
kernel roll(x: f32[m, n], shift: i32) -> y: f32[m, n] {
    host back = mod(-shift, m);
    y[i, j] = x[mod(i + back, m), mod(j - 1, n)];
}

kernel halves(x: f32[n], k: i32) -> y: f32[floor_div(n - 1, 2) + 1], z: f32[mod(k, 4)] {
    y[i] = x[2 * i + mod(-4, 2)];
    z[i] = x[mod(k - i, n)] + x[mod(k, 2)];
}
schedule halves when mod(n, 2) == 0 and floor_div(-n, 4) < 0 { generic }
"""


@pytest.mark.parametrize("adapter", ["software", "reference"])
@pytest.mark.parametrize("shape", [(1, 1), (4, 3), (3, 8)])
def test_rows_are_rolled_as_by_numpy(adapter: Kind, shape: tuple[int, int]) -> None:
    module = kerngen.compile(TEXT)
    x = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    with gpu.open(adapter=adapter) as ctx:
        for shift in (-(2**31), -8, -1, 0, 1, 9, 2**31 - 1):
            y = module.roll(ctx.tensor(x), shift=shift).numpy()
            wanted = np.roll(np.roll(x, shift % shape[0], 0), 1, 1)
            np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize("adapter", ["software", "reference"])
@pytest.mark.parametrize("k", [-7, -1, 0, 5])
def test_lengths_and_fixed_subscripts_are_pythons(adapter: Kind, k: int) -> None:
    module = kerngen.compile(TEXT)
    with gpu.open(adapter=adapter) as ctx:
        for n in (2, 3, 8):
            x = np.arange(n, dtype=np.float32)
            y, z = module.halves(ctx.tensor(x), k=k)
            np.testing.assert_array_equal(y.numpy(), x[::2])
            places = [(k - i) % n for i in range(k % 4)]
            np.testing.assert_array_equal(z.numpy(), x[places] + x[k % 2])


def test_a_remainder_by_the_length_is_not_clamped() -> None:
    shaders = {
        path: content.decode()
        for path, content in compile_text(TEXT, "f.kern").files.items()
        if "roll" in path
    }
    assert shaders
    assert all("floor_mod(" in text for text in shaders.values())
    assert not any("clamp(" in text for text in shaders.values())


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("kernel f(x: f32[n]) -> y: f32[mod(n, 0)] { y[i] = 0.0; }", "KG0315"),
        ("kernel f(x: i32[n]) -> y: i32[n] { y[i] = mod(x[i], 0); }", "KG0309"),
        ("kernel f(x: f32[n]) -> y: f32[n] { y[i] = mod(x[i], 2.0); }", "KG0305"),
        ("kernel f(x: f32[n]) -> y: f32[mod(n, 1.5)] { y[i] = 0.0; }", "KG0303"),
    ],
)
def test_what_is_no_integer_or_divides_by_zero_is_refused(text: str, code: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_text(text, "f.kern")
    assert [fault.code for fault in caught.value.diagnostics] == [code]

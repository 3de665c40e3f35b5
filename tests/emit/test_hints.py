"""What a hint says to write, written, does what was meant: NumPy's own statement."""

from __future__ import annotations

import re

import numpy as np
import pytest

from kerngen.compiler import compile_text
from kerngen.source.diagnostic import CompileError, Diagnostic
from tests.compile import loaded

HEAD = """
    kernel k(mut y: f32[n, n], mut count: i32[], mut bins: u32[n], x: f32[n], ids: i32[t],
             w: f32[t, n], at: u32[t], p: u32, q: i32, s: f32) {
"""

CASES = {
    "y[i, i] = x[i];": "np.fill_diagonal(y, x)",
    "y[ids[r], j] = w[r, j];": "y[ids] = w",
    "y[ids[r], j] -= w[r, j];": "np.subtract.at(y, ids, w)",
    "bins[ids[r]] += 1;": "np.add.at(bins, ids, 1)",
    "bins[at[r]] += 1;": "np.add.at(bins, at, 1)",
    "y[at[r], j] *= w[r, j] + s;": "np.multiply.at(y, at, w + s)",
    "count = sum[i] (x[i] > 0.0);": "count[...] = np.sum(x > 0)",
    "count = sum[i]  x[i] > 0.0;": "count[...] = np.sum(x > 0)",
}


class Arguments:
    """What the kernel is called with."""

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        self.y = rng.uniform(-1, 1, (5, 5)).astype(np.float32)
        self.count = np.zeros((), np.int32)
        self.bins = np.arange(5, dtype=np.uint32)
        self.x = rng.uniform(-1, 1, 5).astype(np.float32)
        self.ids = np.array([3, 0, 4], np.int32)
        self.w = rng.uniform(-1, 1, (3, 5)).astype(np.float32)
        self.at = np.array([1, 4, 1], np.uint32)
        self.p, self.q, self.s = 2, 1, 0.5


def only_fault(text: str) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        compile_text(text, "hints.kern")
    (fault,) = caught.value.diagnostics
    return fault


def mended(statement: str) -> str:
    """The statement with the first piece of code that reads elements in its hint."""
    fault = only_fault(f"{HEAD}{statement} }}")
    pieces: list[str] = re.findall(r"'([^']*)'", fault.help)
    written = next(piece for piece in pieces if "[" in piece)
    if written.endswith(";"):
        return written
    return statement.replace(fault.span.text, written)


@pytest.mark.parametrize("statement", CASES)
def test_what_a_hint_says_to_write(statement: str) -> None:
    got, expected = Arguments(), Arguments()
    loaded(f"{HEAD}{mended(statement)} }}").k_reference(**vars(got))
    exec(CASES[statement], {"np": np}, vars(expected))
    for name in ("y", "count", "bins"):
        np.testing.assert_allclose(
            getattr(got, name), getattr(expected, name), rtol=1e-6
        )

"""Strategy `flash`: what it is recognised in, and that it gives what NumPy gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from tests.compile import built_module

Array: TypeAlias = NDArray[Any]
Mask: TypeAlias = Callable[[Array, Array, int, int], Array]

LOWEST = -3.4028234663852886e38
TILES = "flash tile(16, 32, 32) micro(4, 4) depth(8, 8)"
"""Small ones: they compile in a second, and sizes below are of several."""

ATTENTION = """
const LOWEST: f32 = -3.4028234663852886e38;
kernel f(q: f32[b, h, s, d], k: f32[b, r, t, d], v: f32[b, r, t, e]) -> y: f32[b, h, s, e] {
    host scale = 1 / sqrt(d);
    let dot[n, g, i, j] = sum[p] q[n, g, i, p] * k[n, g / (h / r), j, p];
    let score[n, g, i, j] = SCORE;
    let top[n, g, i] = max[jWHEN] score[n, g, i, j];
    let total[n, g, i] = sum[jWHEN] exp(score[n, g, i, j] - top[n, g, i]);
    RESULT
}
schedule f { TILES }
"""
WEIGHTS = """let weight[n, g, i, j] = exp(score[n, g, i, j] - top[n, g, i]) / total[n, g, i];
    y[n, g, i, c] = sum[jWHEN] weight[n, g, i, j] * v[n, g / (h / r), j, c];"""
AFTER = """y[n, g, i, c] = sum[jWHEN] exp(score[n, g, i, j] - top[n, g, i])
        * v[n, g / (h / r), j, c] / total[n, g, i];"""
OUTSIDE = """y[n, g, i, c] = (sum[jWHEN] v[n, g / (h / r), j, c]
        * exp(score[n, g, i, j] - top[n, g, i])) / total[n, g, i] + 1.0;"""


@final
@dataclass(frozen=True)
class Case:
    """A form of attention: its score, conditions and result, and what they mean.

    `masked` is what a score is where the mask is false: None leaves the key out.
    """

    score: str = "scale * dot[n, g, i, j]"
    when: str = ""
    result: str = WEIGHTS
    scored: Callable[[Array], Array] = lambda score: score
    mask: Mask = lambda i, j, s, t: np.ones((s, t), bool)
    masked: float | None = None
    plus: float = 0.0

    @property
    def text(self) -> str:
        """The program."""
        text = ATTENTION.replace("RESULT", self.result).replace("SCORE", self.score)
        when = f" when {self.when}" if self.when else ""
        return text.replace("WHEN", when).replace("TILES", TILES)

    def meaning(self, q: Array, k: Array, v: Array) -> Array:
        """Return the result in float64."""
        q, k, v = (x.astype(np.float64) for x in (q, k, v))
        heads = q.shape[1] // k.shape[1]
        k, v = (np.repeat(x, heads, axis=1) for x in (k, v))
        s, t = q.shape[2], k.shape[2]
        i, j = np.arange(s)[:, None], np.arange(t)[None, :]
        mask = self.mask(i, j, s, t)
        score = self.scored(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
        score = np.where(mask, score, -np.inf if self.masked is None else self.masked)
        with np.errstate(invalid="ignore"):
            weight = np.exp(score - score.max(-1, keepdims=True))
            weight = weight / weight.sum(-1, keepdims=True)
        if self.when:
            weight = np.where(mask, weight, 0.0)
        return weight @ v + self.plus


CAUSAL = "j <= i + (t - s)"
WINDOW = "j <= i and j > i - 20"
CASES = {
    "plain": Case(),
    "division in the sum": Case(result=AFTER),
    "division after the sum": Case(result=OUTSIDE, plus=1.0),
    "soft cap": Case(
        "5.0 * tanh(scale * dot[n, g, i, j] / 5.0)",
        scored=lambda score: 5.0 * np.tanh(score / 5.0),
    ),
    "slopes": Case(
        "scale * dot[n, g, i, j] - 0.1 * f32(abs(i - j))",
        scored=lambda score: score
        - 0.1
        * abs(np.arange(score.shape[-2])[:, None] - np.arange(score.shape[-1])[None]),
    ),
    "causal": Case(
        f"if {CAUSAL} {{ scale * dot[n, g, i, j] }} else {{ LOWEST }}",
        mask=lambda i, j, s, t: j <= i + (t - s),
        masked=LOWEST,
    ),
    "causal by a condition": Case(
        when=CAUSAL, mask=lambda i, j, s, t: j <= i + (t - s)
    ),
    "a window": Case(
        when=WINDOW, result=AFTER, mask=lambda i, j, s, t: (j <= i) & (j > i - 20)
    ),
    "a window of finite scores": Case(
        f"if {WINDOW} {{ scale * dot[n, g, i, j] }} else {{ LOWEST }}",
        mask=lambda i, j, s, t: (j <= i) & (j > i - 20),
        masked=LOWEST,
    ),
    "keys after the query": Case(
        f"if not ({CAUSAL}) {{ scale * dot[n, g, i, j] }} else {{ LOWEST }}",
        mask=lambda i, j, s, t: j > i + (t - s),
        masked=LOWEST,
    ),
    "a mask that skips nothing": Case(
        when="(i + j) % 3 != 0", mask=lambda i, j, s, t: (i + j) % 3 != 0
    ),
}
SIZES = (
    # b, h, r, s, t, d, e
    (1, 1, 1, 1, 1, 1, 1),
    (2, 2, 1, 7, 7, 5, 3),
    (1, 4, 2, 33, 50, 16, 20),
    (1, 2, 2, 48, 64, 24, 40),
    (1, 1, 1, 50, 33, 8, 4),
)
MORE = ((1, 2, 2, 197, 197, 40, 48), (1, 1, 1, 300, 300, 64, 130), (1, 6, 3, 1, 300, 64, 64))


def arguments(sizes: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """Return queries, keys and values."""
    b, h, r, s, t, d, e = sizes
    rng = np.random.default_rng(s + t)
    shapes = (b, h, s, d), (b, r, t, d), (b, r, t, e)
    q, k, v = (rng.standard_normal(shape, dtype=np.float32) for shape in shapes)
    return q, k, v


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param(SIZES, id="some"),
        pytest.param(MORE, id="more", marks=pytest.mark.nightly),
    ],
)
def test_one_pass_gives_what_numpy_gives(
    ctx: gpu.Context, name: str, sizes: tuple[tuple[int, ...], ...]
) -> None:
    case = CASES[name]
    with built_module(case.text) as module:
        for each in sizes:
            given = arguments(each)
            dims = dict(zip("bhrstde", each, strict=True))
            (chosen,) = ctx.choices(module.f, **dims)
            assert chosen.strategy.startswith("flash")
            found = module.f(*map(ctx.tensor, given)).numpy()
            wanted = case.meaning(*given)
            np.testing.assert_allclose(
                found, wanted, rtol=2e-5, atol=2e-6, err_msg=f"{name}, {each}"
            )


def stages(text: str) -> list[tuple[str, ...]]:
    """Return the stages that each choice of a kernel's own schedules runs first."""
    (program,) = compile_text(text, "f.kern").programs
    first = program.stages[0].schedules[0]
    assert first.strategy == "flash"
    return [first.stages]


def test_it_runs_all_stages_and_keeps_no_scores() -> None:
    text = CASES["plain"].text
    (program,) = compile_text(text, "f.kern").programs
    schedule = program.stages[0].schedules[0]
    assert schedule.stages == ("dot", "top", "total", "weight", "y")
    assert schedule.bound == {"q", "k", "v", "y"}

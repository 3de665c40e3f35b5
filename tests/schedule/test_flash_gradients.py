"""Gradients of attention by strategy `flash`: they are PyTorch's, and no scores are stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from kerngen.plan.size import symbols
from tests.compile import built_module

Array: TypeAlias = NDArray[Any]

NIGHTLY = pytest.mark.nightly
LOWEST = -3.4028234663852886e38
TILES = "flash tile(16, 32, 32) micro(4, 4) depth(8, 8)"
"""Small ones: they compile in a second, and sizes below are of several."""

ATTENTION = """
const LOWEST: f32 = -3.4028234663852886e38;
kernel f(q: f32[b, h, s, d], k: f32[b, r, t, d], v: f32[b, r, t, e], bias: f32[h, s, t])
    -> y: f32[b, h, s, e] {
    require r > 0;
    require h % r == 0;
    host scale = 1 / sqrt(d);
    let dot[n, g, i, j] = sum[p] q[n, g, i, p] * k[n, g / (h / r), j, p];
    let score[n, g, i, j] = SCORE;
    let top[n, g, i] = max[jWHEN] score[n, g, i, j];
    let total[n, g, i] = sum[jWHEN] exp(score[n, g, i, j] - top[n, g, i]);
    let weight[n, g, i, j] = exp(score[n, g, i, j] - top[n, g, i]) / total[n, g, i];
    y[n, g, i, c] = sum[jWHEN] weight[n, g, i, j] * v[n, g / (h / r), j, c];
}
kernel df = gradient of f by q, k, v;
schedule df { TILES }
"""


@final
@dataclass(frozen=True)
class Case:
    """A form of attention: its score and conditions, and what they mean in PyTorch.

    `masked` is what a score is where the mask is false: None leaves the key out.
    """

    score: str = "scale * dot[n, g, i, j]"
    when: str = ""
    scored: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = lambda x, _: x
    mask: Callable[[Array, Array, int], Array] = lambda i, j, _: (i >= 0) & (j >= 0)
    masked: float | None = None

    def text(self, tiles: str = TILES) -> str:
        """The program, with a schedule."""
        when = f" when {self.when}" if self.when else ""
        text = ATTENTION.replace("SCORE", self.score).replace("WHEN", when)
        return text.replace("TILES", tiles)

    def gradients(self, given: dict[str, Array]) -> list[Array]:
        """Return the gradients in float64."""
        names = {name: torch.tensor(x.astype(np.float64)) for name, x in given.items()}
        q, k, v = (names[name].requires_grad_() for name in "qkv")
        group = q.shape[1] // k.shape[1]
        keys, values = (x.repeat_interleave(group, 1) for x in (k, v))
        s, t = q.shape[2], k.shape[2]
        i, j = np.arange(s)[:, None], np.arange(t)
        mask = torch.tensor(self.mask(i, j, t - s)).broadcast_to(s, t)
        score = q @ keys.mT / np.sqrt(q.shape[-1])
        score = self.scored(score, names["bias"])
        if self.masked is None:
            some = mask.any(-1, keepdim=True)
            weight = score.masked_fill(~mask & some, -np.inf).softmax(-1) * mask
        else:
            weight = score.masked_fill(~mask, self.masked).softmax(-1)
        (weight @ values).backward(names["dy"])
        return [x.grad.numpy() for x in (q, k, v) if x.grad is not None]


CAUSAL = "j <= i + (t - s)"
WINDOW = "j <= i - 3 and j > i - 20"
CASES = {
    "plain": Case(),
    "soft cap": Case(
        "5.0 * tanh(scale * dot[n, g, i, j] / 5.0)",
        scored=lambda score, _: 5.0 * torch.tanh(score / 5.0),
    ),
    "a bias": Case(
        "scale * dot[n, g, i, j] + bias[g, i, j]", scored=lambda x, bias: x + bias
    ),
    "causal, with rows without keys": Case(
        f"if {CAUSAL} {{ scale * dot[n, g, i, j] }} else {{ LOWEST }}",
        mask=lambda i, j, offset: j <= i + offset,
        masked=LOWEST,
    ),
    "causal by a condition": Case(when=CAUSAL, mask=lambda i, j, o: j <= i + o),
    "a window that leaves rows empty": Case(
        when=WINDOW, mask=lambda i, j, _: (j <= i - 3) & (j > i - 20)
    ),
    "a mask that skips nothing": Case(
        when="(i + j) % 3 != 0", mask=lambda i, j, _: (i + j) % 3 != 0
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
MORE = ((1, 2, 2, 197, 197, 40, 48), (1, 6, 3, 1, 300, 64, 64), (2, 4, 1, 96, 96, 8, 72))


def arguments(sizes: tuple[int, ...]) -> dict[str, Array]:
    """Return queries, keys, values, a bias and the gradient by the output."""
    b, h, r, s, t, d, e = sizes
    rng = np.random.default_rng(s + t)
    shapes = {
        "q": (b, h, s, d),
        "k": (b, r, t, d),
        "v": (b, r, t, e),
        "bias": (h, s, t),
        "dy": (b, h, s, e),
    }
    return {
        name: rng.standard_normal(shape, dtype=np.float32)
        for name, shape in shapes.items()
    }


EVERY = [
    pytest.param(name, sizes, id=f"{name}-{kind}", marks=[] if kind == "some" else NIGHTLY)
    for name in CASES
    for kind, sizes in (("some", SIZES), ("more", MORE))
]


@pytest.mark.parametrize(("name", "sizes"), EVERY)
def test_gradients_are_torchs(
    ctx: gpu.Context, name: str, sizes: tuple[tuple[int, ...], ...]
) -> None:
    case = CASES[name]
    with built_module(case.text()) as module:
        for each in sizes:
            given = arguments(each)
            wanted = case.gradients(given)
            if name != "a bias":
                del given["bias"]
            (chosen,) = ctx.choices(module.df, **dict(zip("bhrstde", each, strict=True)))
            assert chosen.strategy.startswith("flash")
            found = module.df(**{name: ctx.tensor(x) for name, x in given.items()})
            for which, mine, theirs in zip("qkv", found, wanted, strict=True):
                np.testing.assert_allclose(
                    mine.numpy(), theirs, rtol=2e-4, atol=2e-5, err_msg=f"{each}, d{which}"
                )


def test_no_scores_are_stored() -> None:
    (_, program) = compile_text(CASES["plain"].text(), "f.kern").programs
    schedule = program.stages[0].schedules[0]
    assert schedule.stages[-3:] == ("dq", "dk", "dv")
    assert schedule.bound == {"q", "k", "v", "dy", "dq", "dk", "dv", "row_numbers"}
    for variant in schedule.variants:
        (scratch,) = variant.scratch
        assert {"s", "t"} & {*symbols(scratch.length)} == {"s"}

"""Gradients of attention by strategy `flash`: they are NumPy's, and no scores are stored."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from inspect import signature
from types import ModuleType
from typing import Any, TypeAlias, final

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from kerngen.compiler import compile_text
from kerngen.plan.size import symbols
from kerngen.schedule.program import KernelProgram
from tests.budget import several
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
kernel df = gradient of f by q, k, vGIVEN;
schedule df { TILES }
"""
KEPT = " given y, top, total"


def everywhere(i: Array, j: Array, _: int) -> Array:
    """Leave no key out."""
    found: Array = (i >= 0) & (j >= 0)
    return found


@final
@dataclass(frozen=True)
class Case:
    """A form of attention: its score and conditions, and what they mean.

    A score is `cap * tanh(product / cap)`, if it has a cap, plus a bias if it has one.
    `masked` is what it is where the mask is false: None leaves the key out.
    """

    score: str = "scale * dot[n, g, i, j]"
    when: str = ""
    cap: float = np.inf
    biased: bool = False
    mask: Callable[[Array, Array, int], Array] = everywhere
    masked: float | None = None

    def text(self, kept: str = "") -> str:
        """The program, with a schedule."""
        when = f" when {self.when}" if self.when else ""
        text = ATTENTION.replace("SCORE", self.score).replace("WHEN", when)
        return text.replace("TILES", TILES).replace("GIVEN", kept)

    def forward(self, given: dict[str, Array]) -> dict[str, Array]:
        """Return the output, and each row's largest score and total, in float64."""
        q, k, v, bias = (given[n].astype(np.float64) for n in ("q", "k", "v", "bias"))
        k, v = (np.repeat(x, q.shape[1] // k.shape[1], axis=1) for x in (k, v))
        score, _ = self._scores(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), bias)
        top = score.max(-1, keepdims=True, initial=LOWEST)
        total = np.exp(score - top).sum(-1, keepdims=True)
        y = np.exp(score - top) @ v / np.maximum(total, 1e-300)
        return {"y": y, "top": top[..., 0], "total": total[..., 0]}

    def gradients(self, given: dict[str, Array]) -> list[Array]:
        """Return the gradients in float64, by the rules of a softmax and of products."""
        q, k, v, bias, dy = (
            given[n].astype(np.float64) for n in ("q", "k", "v", "bias", "dy")
        )
        heads = k.shape[1]
        k, v = (np.repeat(x, q.shape[1] // heads, axis=1) for x in (k, v))
        scale = 1 / np.sqrt(q.shape[-1])
        score, slope = self._scores(scale * q @ k.swapaxes(-1, -2), bias)
        weight = np.exp(score - score.max(-1, keepdims=True, initial=LOWEST))
        weight = weight / np.maximum(weight.sum(-1, keepdims=True), 1e-300)
        dweight = dy @ v.swapaxes(-1, -2)
        along = (weight * dweight).sum(-1, keepdims=True)
        dproduct = scale * slope * weight * (dweight - along)
        dk, dv = (x.swapaxes(-1, -2) for x in (dproduct, weight))
        found = dk @ q, dv @ dy
        b, _, t, _ = k.shape
        joined = [x.reshape(b, heads, -1, t, x.shape[-1]).sum(2) for x in found]
        return [dproduct @ k, *joined]

    def _scores(self, product: Array, bias: Array) -> tuple[Array, Array]:
        """Return the scores, and their derivatives by the product."""
        s, t = int(product.shape[-2]), int(product.shape[-1])
        mask = self.mask(np.arange(s)[:, None], np.arange(t), t - s)
        slope: Array = np.ones_like(product)
        if np.isfinite(self.cap):
            slope = 1 - np.tanh(product / self.cap) ** 2
            product = self.cap * np.tanh(product / self.cap)
        if self.biased:
            product = product + bias
        outside = -np.inf if self.masked is None else self.masked
        return np.where(mask, product, outside), np.where(mask, slope, 0.0)


CAUSAL = "j <= i + (t - s)"
WINDOW = "j <= i - 3 and j > i - 20"
CASES = {
    "plain": Case(),
    "soft cap": Case(
        "5.0 * tanh(scale * dot[n, g, i, j] / 5.0)",
        cap=5.0,
    ),
    "a bias": Case("scale * dot[n, g, i, j] + bias[g, i, j]", biased=True),
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
SIZES = ((2, 4, 2, 70, 18, 5, 3), (1, 2, 2, 32, 48, 24, 40))
"""b, h, r, s, t, d, e: those of vectors and whole turns, and such that are not."""

MORE = (
    (1, 1, 1, 1, 1, 1, 1),
    (2, 2, 1, 7, 7, 5, 3),
    (1, 4, 2, 33, 50, 16, 20),
    (1, 2, 2, 197, 197, 40, 48),
    (1, 6, 3, 1, 300, 64, 64),
    (2, 4, 1, 96, 96, 8, 72),
)


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


CAUSAL_CASE = "causal, with rows without keys"
FEW = (("a window that leaves rows empty", ""),)
"""What is run by default: six shaders to compile, in 7 CPU seconds.

Those that are given what is kept have a pass less.
"""

WAYS = [(name, kept) for name in CASES for kept in ("", KEPT)]


@pytest.mark.parametrize(
    ("name", "kept"),
    [way if way in FEW else pytest.param(*way, marks=NIGHTLY) for way in WAYS],
)
def test_gradients_are_numpys(ctx: gpu.Context, name: str, kept: str) -> None:
    with built_module(CASES[name].text(kept)) as module:
        for each in several(SIZES, by_day=1):
            check_gradients(ctx, name, module, each)


@NIGHTLY
@pytest.mark.parametrize(("name", "kept"), WAYS)
def test_gradients_of_more_sizes(ctx: gpu.Context, name: str, kept: str) -> None:
    with built_module(CASES[name].text(kept)) as module:
        for each in MORE:
            check_gradients(ctx, name, module, each)


def check_gradients(
    ctx: gpu.Context, name: str, module: ModuleType, sizes: tuple[int, ...]
) -> None:
    """Compare the gradients of a case with NumPy's."""
    case, given = CASES[name], arguments(sizes)
    wanted = case.gradients(given)
    if "top" in signature(module.df).parameters:
        kept = case.forward(given)
        given |= {name: x.astype(np.float32) for name, x in kept.items()}
    if not case.biased:
        del given["bias"]
    (chosen,) = ctx.choices(module.df, **dict(zip("bhrstde", sizes, strict=True)))
    assert chosen.strategy.startswith("flash")
    found = module.df(**{name: ctx.tensor(x) for name, x in given.items()})
    for which, mine, theirs in zip("qkv", found, wanted, strict=True):
        np.testing.assert_allclose(
            mine.numpy(), theirs, rtol=2e-4, atol=2e-5, err_msg=f"{sizes}, d{which}"
        )


@cache
def derived(kept: str) -> KernelProgram:
    """Return the program of causal gradients, by the schedules of the compiler."""
    text = CASES[CAUSAL_CASE].text(kept).replace("schedule df {", "schedule f {")
    compiled = compile_text(text, "f.kern")
    (found,) = (p for p in compiled.programs if p.staged.kernel.name == "df")
    return found


@pytest.mark.parametrize("kept", ["", KEPT])
def test_no_scores_are_stored(kept: str) -> None:
    (choice,) = derived(kept).choices
    own = {"y", "top", "total"} if kept else set[str]()
    for case in choice.cases[:3]:  # behind them, more than 256 columns
        schedule = case.schedule
        assert schedule.stages[-3:] == ("dq", "dk", "dv")
        tensors = {"q", "k", "v", "dy", "dq", "dk", "dv", "row_numbers"}
        assert schedule.bound == tensors | own
        for variant in schedule.variants:
            (scratch,) = variant.scratch
            assert {"s", "t"} & {*symbols(scratch.length)} == {"s"}


@pytest.mark.parametrize(
    ("kept", "products"),
    [("", [(2, 0), (2, 1), (2, 2)]), (KEPT, [(0, 0), (2, 1), (2, 2)])],
)
def test_each_pass_makes_its_tiles_once(
    kept: str, products: list[tuple[int, int]]
) -> None:
    """Loops over terms make products of queries and keys, those over turns the sums."""
    (choice,) = derived(kept).choices
    schedule = choice.cases[0].schedule
    assert "micro8x4" in schedule.label, "one block of keys for an invocation"
    for variant in schedule.variants:
        found = [
            tuple(
                len(re.findall(rf"for \(var {loop}_?\d* = ", shader.code))
                for loop in ("first", "turn")
            )
            for shader in variant.shaders
        ]
        assert found == products


@pytest.mark.torch
@pytest.mark.parametrize("name", CASES)
def test_numpys_gradients_are_torchs(name: str) -> None:
    torch: Any = import_module("torch")
    case, given = CASES[name], arguments((2, 4, 2, 33, 18, 5, 3))
    tensors = {name: torch.tensor(x.astype(np.float64)) for name, x in given.items()}
    q, k, v = (tensors[name].requires_grad_() for name in "qkv")
    keys, values = (x.repeat_interleave(2, 1) for x in (k, v))
    mask = torch.tensor(case.mask(np.arange(33)[:, None], np.arange(18), 18 - 33))
    score = q @ keys.mT / np.sqrt(5)
    if np.isfinite(case.cap):
        score = case.cap * torch.tanh(score / case.cap)
    if case.biased:
        score = score + tensors["bias"]
    if case.masked is None:
        some = mask.any(-1, keepdim=True)
        weight = score.masked_fill(~mask & some, -np.inf).softmax(-1) * mask
    else:
        weight = score.masked_fill(~mask, case.masked).softmax(-1)
    (weight @ values).backward(tensors["dy"])
    for mine, theirs in zip(case.gradients(given), (q, k, v), strict=True):
        assert theirs.grad is not None
        np.testing.assert_allclose(mine, theirs.grad.numpy(), rtol=1e-9, atol=1e-12)

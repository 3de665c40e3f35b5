"""Forms of attention for tests of its gradients, and the gradients in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

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
CAUSAL_CASE = "causal, with rows without keys"
WINDOW = "j <= i - 3 and j > i - 20"
CASES = {
    "plain": Case(),
    "soft cap": Case(
        "5.0 * tanh(scale * dot[n, g, i, j] / 5.0)",
        cap=5.0,
    ),
    "a bias": Case("scale * dot[n, g, i, j] + bias[g, i, j]", biased=True),
    CAUSAL_CASE: Case(
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

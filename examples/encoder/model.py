"""The encoder on the device: token ids in, one vector of length 1 for each text out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from examples.qwen3.errors import ModelError
from examples.qwen3.text import Tokenizer
from kerngen.runtime import Context, Matrix, Tensor, Tensor3, Vector, f32, u32
from kerngen_kernels import encoder, matmul, norm

Ids: TypeAlias = Sequence[int]

MOST_TOKENS: Final = 8192
"""How many positions a batch has at most, padding included."""


@final
@dataclass(frozen=True)
class Sizes:
    """The sizes of an encoder."""

    layers: int
    width: int
    heads: int
    hidden: int
    vocabulary: int
    positions: int
    kinds: int
    eps: float

    @property
    def head_width(self) -> int:
        """The features of a head."""
        return self.width // self.heads


@final
@dataclass(frozen=True)
class Linear:
    """A linear layer: one row per output."""

    w: Matrix[f32]
    bias: Vector[f32]

    def __call__(self, x: Matrix[f32]) -> Matrix[f32]:
        """Return x w^T + bias."""
        return matmul.matmul_nt_bias(x, self.w, self.bias)


@final
@dataclass(frozen=True)
class Norm:
    """What scales normalized columns, and is added to them."""

    gain: Vector[f32]
    bias: Vector[f32]


@final
@dataclass(frozen=True)
class Layer:
    """The weights of a layer."""

    query: Linear
    key: Linear
    value: Linear
    output: Linear
    seen: Norm
    up: Linear
    down: Linear
    done: Norm


@final
@dataclass(frozen=True)
class Weights:
    """All weights of an encoder."""

    words: Matrix[f32]
    places: Matrix[f32]
    kinds: Matrix[f32]
    first: Norm
    layers: tuple[Layer, ...]


@final
class Encoder:
    """Texts, or their token ids, to vectors: the nearer two are, the more they share."""

    def __init__(
        self, ctx: Context, sizes: Sizes, weights: Weights, tokenizer: Tokenizer | None
    ) -> None:
        """Take weights that are on the device; without a tokenizer, ids alone encode."""
        self.ctx = ctx
        self.sizes = sizes
        self.weights = weights
        self.tokenizer = tokenizer

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a vector for each text, in their order.

        Raises:
            ModelError: If a text is longer than the positions of the model, or the folder
                had no tokenizer.json.
        """
        if self.tokenizer is None:
            raise ModelError("The folder has no tokenizer.json: pass ids, encode_ids.")
        return self.encode_ids([self.tokenizer.encode(text) for text in texts])

    def encode_ids(self, texts: Sequence[Ids]) -> NDArray[np.float32]:
        """Return a vector for each text of ids, with those that the tokenizer puts around it.

        Raises:
            ModelError: If a text has no id, too many, or one that the model does not know.
        """
        for number, ids in enumerate(texts):
            self._check(number, ids)
        found = np.empty((len(texts), self.sizes.width), np.float32)
        for batch in batches([len(ids) for ids in texts]):
            found[batch] = self._batch([texts[number] for number in batch]).numpy()
        return found

    def _check(self, number: int, ids: Ids) -> None:
        most, vocabulary = self.sizes.positions, self.sizes.vocabulary
        if not 0 < len(ids) <= most:
            raise ModelError(
                f"Text {number} has {len(ids)} tokens; the model takes 1 to {most}. Cut "
                "longer texts in parts."
            )
        if min(ids) < 0 or max(ids) >= vocabulary:
            raise ModelError(
                f"Text {number} has the id {min(ids) if min(ids) < 0 else max(ids)}; the "
                f"model has {vocabulary}."
            )

    def _batch(self, texts: Sequence[Ids]) -> Matrix[f32]:
        """Encode texts side by side, each padded to the longest."""
        longest = max(map(len, texts))
        ids = np.zeros((len(texts), longest), np.uint32)
        for row, own in zip(ids, texts, strict=True):
            row[: len(own)] = own
        count = self.ctx.vector(np.array([len(own) for own in texts], np.uint32), u32)
        features = self._features(self.ctx.matrix(ids, u32), count)
        return encoder.mean_unit(features, count)

    def _features(self, ids: Matrix[u32], count: Vector[u32]) -> Tensor3[f32]:
        """Return the features of all positions after the last layer."""
        weights, sizes, eps = self.weights, self.sizes, self.sizes.eps
        sums = encoder.embed_text(ids, weights.words, weights.places, weights.kinds)
        first = weights.first
        x = norm.layernorm(
            sums.reshape(-1, sizes.width), first.gain, first.bias, eps=eps
        )
        heads = (*ids.shape, sizes.heads, sizes.head_width)
        for layer in weights.layers:
            query, key, value = (
                part(x).reshape(heads) for part in (layer.query, layer.key, layer.value)
            )
            seen: Tensor[f32, Any] = encoder.padded_attention(query, key, value, count)
            h = layer.output(seen.reshape(len(x), -1))
            x = encoder.add_layernorm(x, h, layer.seen.gain, layer.seen.bias, eps=eps)
            h = layer.down(encoder.linear_gelu(x, layer.up.w, layer.up.bias))
            x = encoder.add_layernorm(x, h, layer.done.gain, layer.done.bias, eps=eps)
        return x.reshape((*ids.shape, sizes.width))


def batches(lengths: Sequence[int], most: int = MOST_TOKENS) -> Iterator[list[int]]:
    """Yield the numbers of texts that are encoded together: those of like lengths.

    A batch has at most `most` positions with its padding, or a single text.
    """
    order = sorted(range(len(lengths)), key=lambda number: -lengths[number])
    while order:
        # The first is the longest of what is left, so that all are padded to it.
        size = max(most // max(lengths[order[0]], 1), 1)
        yield order[:size]
        order = order[size:]

"""The decoder on the device: its weights, its cache, and one pass through the layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from examples.qwen3.config import Config
from examples.qwen3.errors import ModelError
from examples.qwen3.quantized import Blocks, Quantized
from kerngen.runtime import Context, Matrix, Scalar, Tensor3, Vector, f16, f32, i32, u32
from kerngen_kernels import decoder, elementwise, indexing, matmul, norm

Weight: TypeAlias = Matrix[Any] | Quantized
"""A matrix of the model: f16, f32 or quantized; all layers of a model have the same."""


@final
@dataclass(frozen=True)
class Layer:
    """The weights of a layer."""

    input_gain: Vector[f32]
    qkv: Weight
    """Queries, keys and values: one matrix, so that they take one product."""
    query_gain: Vector[f32] | None
    key_gain: Vector[f32] | None
    output: Weight
    hidden_gain: Vector[f32]
    gated: tuple[Weight, ...]
    """What opens and what passes; of quantized ones, both in one matrix."""
    down: Weight


@final
@dataclass(frozen=True)
class Table:
    """Rows by number, in parts that the adapter can bind; `starts` are their first rows."""

    parts: tuple[Weight, ...]
    starts: tuple[int, ...]


@final
@dataclass(frozen=True)
class Weights:
    """All weights of a model."""

    embedding: Table
    layers: tuple[Layer, ...]
    final_gain: Vector[f32]
    head: Table

    @property
    def nbytes(self) -> int:
        """Bytes on the device, without the few of the gains."""
        tables = {id(table): table for table in (self.embedding, self.head)}.values()
        matrices = [part for table in tables for part in table.parts]
        for layer in self.layers:
            matrices += [layer.qkv, layer.output, *layer.gated, layer.down]
        return sum(matrix.nbytes for matrix in matrices)


@final
class Cache:
    """Keys and values of the positions so far, of every layer, written in place."""

    def __init__(self, ctx: Context, config: Config, capacity: int) -> None:
        """Make room for a number of positions."""
        if not 0 < capacity <= config.positions:
            raise ModelError(
                f"A cache of {capacity} positions: the model has 1 to {config.positions}."
            )
        shape = capacity, config.kv_heads, config.head_width
        self.capacity = capacity
        self.length = 0
        self.at = ctx.zeros((), i32)
        """The length, as the device has it: the next row to write."""
        self.keys = [ctx.empty(shape, f32) for _ in range(config.layers)]
        self.values = [ctx.empty(shape, f32) for _ in range(config.layers)]

    def advance(self, count: int) -> int:
        """Take the next positions; return the first of them.

        Raises:
            ModelError: If there is too little room.
        """
        start, self.length = self.length, self.length + count
        if self.length > self.capacity:
            self.length = start
            raise ModelError(
                f"{start + count} positions don't fit in a cache of {self.capacity}."
            )
        return start


_Attention: TypeAlias = Callable[
    [Tensor3[f32], Tensor3[f32], Tensor3[f32]], Matrix[f32] | Tensor3[f32]
]
"""Attention of queries over the keys and values of a layer's cache."""


@final
class _Single:
    """Matrices in f32: the standard kernels, one after the other."""

    embedding = staticmethod(indexing.embedding)
    embedding_part = staticmethod(decoder.embedding_part)

    @staticmethod
    def norm_linear(
        x: Matrix[f32], gain: Vector[f32], w: Matrix[Any], *, eps: float
    ) -> Matrix[f32]:
        """As `decoder.norm_linear_half`."""
        return matmul.matmul_nt(norm.rmsnorm(x, gain, eps=eps), w)

    @staticmethod
    def norm_gated(
        x: Matrix[f32],
        gain: Vector[f32],
        gate: Matrix[Any],
        up: Matrix[Any],
        *,
        eps: float,
    ) -> Matrix[f32]:
        """As `decoder.norm_gated_half`."""
        rows = norm.rmsnorm(x, gain, eps=eps)
        opened, passed = matmul.matmul_nt(rows, gate), matmul.matmul_nt(rows, up)
        gated = elementwise.swiglu(opened.reshape(-1), passed.reshape(-1))
        return gated.reshape(opened.shape)

    @staticmethod
    def linear_add(x: Matrix[f32], h: Matrix[f32], w: Matrix[Any]) -> None:
        """As `decoder.linear_add_half`."""
        y, flat = matmul.matmul_nt(h, w), x.reshape(-1)
        elementwise.axpy(y.reshape(-1), flat, alpha=1.0)


@final
class _Half:
    """Matrices in f16: kernels that do more at once."""

    embedding = staticmethod(decoder.embedding_half)
    embedding_part = staticmethod(decoder.embedding_part_half)
    norm_linear = staticmethod(decoder.norm_linear_half)
    norm_gated = staticmethod(decoder.norm_gated_half)
    linear_add = staticmethod(decoder.linear_add_half)


def _products(weights: Weights) -> Any:
    """Return the products of matrices as these are: they have the same names."""
    if isinstance(weights.head.parts[0], Quantized):
        return Blocks
    return _Half if weights.head.parts[0].element is f16 else _Single


@final
class Model:
    """A decoder: token ids in, logits out."""

    def __init__(self, ctx: Context, config: Config, weights: Weights) -> None:
        """Take weights that are on the device, and make the tables of angles."""
        self.ctx = ctx
        self.config = config
        self.weights = weights
        self._run = _products(weights)
        self._cosine, self._sine = self._angles(1)

    def make_cache(self, capacity: int) -> Cache:
        """Return an empty cache for so many positions."""
        cache = Cache(self.ctx, self.config, capacity)
        if capacity > len(self._cosine):
            self._cosine, self._sine = self._angles(capacity)
        return cache

    def logits(self, ids: Vector[u32], cache: Cache) -> Matrix[f32]:
        """Return the logits `[1, vocabulary]` after the last of the ids."""
        x = self.hidden(ids, cache)
        return self.head(x[len(ids) - 1 :])

    def hidden(self, ids: Vector[u32], cache: Cache) -> Matrix[f32]:
        """Run ids through all layers, behind what the cache has."""
        cache.advance(len(ids))
        end = cache.length

        def attention(
            query: Tensor3[f32], keys: Tensor3[f32], values: Tensor3[f32]
        ) -> Tensor3[f32]:
            filled = keys.rows(0, end), values.rows(0, end)
            return decoder.cached_attention(query, *filled)

        return self._layers(ids, cache, attention)

    def next_logits(self, ids: Vector[u32], cache: Cache) -> Matrix[f32]:
        """As `logits`, of calls that are the same at every position: for captures.

        The caller makes room by `cache.advance` before each run.
        """

        def attention(
            query: Tensor3[f32], keys: Tensor3[f32], values: Tensor3[f32]
        ) -> Matrix[f32]:
            one = query.reshape(self.config.heads, -1)
            return decoder.decode_attention(one, keys, values, cache.at)

        return self.head(self._layers(ids, cache, attention))

    def _layers(
        self, ids: Vector[u32], cache: Cache, attention: _Attention
    ) -> Matrix[f32]:
        x = self._embed(ids)
        for layer, keys, values in zip(
            self.weights.layers, cache.keys, cache.values, strict=True
        ):
            query = self._query_and_keep(layer, x, keys, values, cache.at)
            seen = attention(query, keys, values)
            self._run.linear_add(x, seen.reshape(len(x), -1), layer.output)
            gated = self._run.norm_gated(
                x, layer.hidden_gain, *layer.gated, eps=self.config.eps
            )
            self._run.linear_add(x, gated, layer.down)
        decoder.advance(cache.at, rows=len(ids))
        return x

    def head(self, x: Matrix[f32]) -> Matrix[f32]:
        """Return the logits of every position in x."""
        gain, parts = self.weights.final_gain, self.weights.head.parts
        found = [
            self._run.norm_linear(x, gain, part, eps=self.config.eps) for part in parts
        ]
        if len(found) == 1:
            only: Matrix[f32] = found[0]
            return only
        # The parts lie side by side, row by row.
        whole = self.ctx.empty((len(x), self.config.vocabulary), f32)
        flat = whole.reshape(-1)
        for row in range(len(x)):
            start = row * self.config.vocabulary
            for part in found:
                stop = start + part.shape[1]
                flat[start:stop].copy_from(part[row : row + 1].reshape(-1))
                start = stop
        return whole

    def _embed(self, ids: Vector[u32]) -> Matrix[f32]:
        table = self.weights.embedding
        x: Matrix[f32] = self._run.embedding(table.parts[0], ids)
        for part, first in zip(table.parts[1:], table.starts[1:], strict=True):
            self._run.embedding_part(x, part, ids, first=first)
        return x

    def _query_and_keep(
        self,
        layer: Layer,
        x: Matrix[f32],
        keys: Tensor3[f32],
        values: Tensor3[f32],
        at: Scalar[i32],
    ) -> Tensor3[f32]:
        """Return a layer's queries; its keys and values go to the cache."""
        config, count = self.config, len(x)
        heads, shared = config.heads, config.kv_heads
        columns = self._run.norm_linear(x, layer.input_gain, layer.qkv, eps=config.eps)
        qkv = columns.reshape(count, heads + 2 * shared, config.head_width)
        angles = self._cosine, self._sine, at
        if layer.query_gain is None or layer.key_gain is None:
            decoder.keep_heads(qkv, keys, values, *angles, first=heads)
            return decoder.rotary_heads(qkv, *angles, first=0, heads=heads)
        decoder.norm_keep_heads(
            qkv, keys, values, layer.key_gain, *angles, first=heads, eps=config.eps
        )
        return decoder.norm_rotary_heads(
            qkv, layer.query_gain, *angles, first=0, heads=heads, eps=config.eps
        )

    def _angles(self, rows: int) -> tuple[Matrix[f32], Matrix[f32]]:
        """Return the tables of `decoder.rotary_heads`."""
        half = self.config.head_width // 2
        speeds = self.config.theta ** (-np.arange(half) / half)
        angles = np.arange(rows)[:, None] * speeds
        cosine = np.concatenate([np.cos(angles), np.cos(angles)], 1)
        sine = np.concatenate([-np.sin(angles), np.sin(angles)], 1)
        return self.ctx.matrix(cosine, f32), self.ctx.matrix(sine, f32)

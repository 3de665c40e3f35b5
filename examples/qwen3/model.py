"""The decoder on the device: its weights, its cache, and one pass through the layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from examples.qwen3.activations import PIECE, Activations
from examples.qwen3.arenas import Arenas
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
    head_gain: Matrix[f32] | None
    """Of queries, and of keys."""
    output: Weight
    hidden_gain: Vector[f32]
    gated: Weight
    """What opens, then what passes."""
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
            matrices += [layer.qkv, layer.output, layer.gated, layer.down]
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
        keys, values = (Arenas(ctx, config.layers, [(shape, f32)]) for _ in range(2))
        self.keys = [keys.empty(shape, f32) for _ in range(config.layers)]
        self.values = [values.empty(shape, f32) for _ in range(config.layers)]

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


@final
class _Single:
    """Matrices in f32: the standard kernels, one after the other."""

    embedding = staticmethod(indexing.embedding)
    embedding_part = staticmethod(decoder.embedding_part)

    @staticmethod
    def norm_linear(
        x: Matrix[f32],
        gain: Vector[f32],
        w: Matrix[Any],
        *,
        eps: float,
        out: Matrix[f32] | None = None,
    ) -> Matrix[f32]:
        """As `decoder.norm_linear_half`."""
        return matmul.matmul_nt(norm.rmsnorm(x, gain, eps=eps), w, out=out)

    @staticmethod
    def linear_add(x: Matrix[f32], h: Matrix[f32], w: Matrix[Any]) -> None:
        """As `decoder.linear_add_half`."""
        y, flat = matmul.matmul_nt(h, w), x.reshape(-1)
        elementwise.axpy(y.reshape(-1), flat, alpha=1.0)

    @staticmethod
    def gated_linear_add(x: Matrix[f32], h: Tensor3[f32], w: Matrix[Any]) -> None:
        """As `decoder.gated_linear_add_half`."""
        _Single.linear_add(x, decoder.gate_halves(h), w)


@final
class _Half:
    """Matrices in f16: kernels that do more at once."""

    embedding = staticmethod(decoder.embedding_half)
    embedding_part = staticmethod(decoder.embedding_part_half)
    norm_linear = staticmethod(decoder.norm_linear_half)
    linear_add = staticmethod(decoder.linear_add_half)
    gated_linear_add = staticmethod(decoder.gated_linear_add_half)


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
        self._angles = self._make_angles(1)
        self._room = Activations(ctx, config, 1)

    def make_cache(self, capacity: int) -> Cache:
        """Return an empty cache for so many positions."""
        cache = Cache(self.ctx, self.config, capacity)
        if capacity > self._angles.shape[1]:
            self._angles = self._make_angles(capacity)
        return cache

    def logits(self, ids: Vector[u32], cache: Cache) -> Matrix[f32]:
        """Return the logits `[1, vocabulary]` after the last of the ids."""
        x = self.hidden(ids, cache)
        return self.head(x[len(ids) - 1 :])

    def hidden(self, ids: Vector[u32], cache: Cache) -> Matrix[f32]:
        """Run ids through all layers, behind what the cache has."""
        cache.advance(len(ids))
        return self._layers(ids, cache)

    def next_logits(self, ids: Vector[u32], cache: Cache) -> Matrix[f32]:
        """As `logits`, for captures: the caller makes room by `cache.advance` before a run.

        The device has the position, so the calls are the same at each.
        """
        return self.head(self._layers(ids, cache))

    def _layers(self, ids: Vector[u32], cache: Cache) -> Matrix[f32]:
        if len(ids) > self._room.rows:
            rows = max(len(ids), min(PIECE, cache.capacity))
            self._room = Activations(self.ctx, self.config, rows)
        x = self._embed(ids)
        for layer, keys, values in zip(
            self.weights.layers, cache.keys, cache.values, strict=True
        ):
            self._attend(layer, x, keys, values, cache.at)
            self._feed_forward(layer, x)
        decoder.advance(cache.at, rows=len(ids))
        return x

    def _attend(
        self,
        layer: Layer,
        x: Matrix[f32],
        keys: Tensor3[f32],
        values: Tensor3[f32],
        at: Scalar[i32],
    ) -> None:
        """Add a layer's attention to x."""
        queries = self._query_and_keep(layer, x, keys, values, at)
        seen = self._room.seen(len(x))
        decoder.cached_attention(queries, keys, values, at, out=seen)
        self._run.linear_add(x, seen.reshape(len(x), -1), layer.output)

    def _feed_forward(self, layer: Layer, x: Matrix[f32]) -> None:
        """Add a layer's gated product to x."""
        run, eps, room = self._run, self.config.eps, self._room
        halves = room.halves(len(x))
        run.norm_linear(x, layer.hidden_gain, layer.gated, eps=eps, out=halves)
        pairs = halves.reshape(len(x), 2, -1)
        if len(x) == 1:
            run.gated_linear_add(x, pairs, layer.down)
        else:
            gated = decoder.gate_halves(pairs, out=room.gated(len(x)))
            run.linear_add(x, gated, layer.down)

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
        columns, queries = self._room.columns(count), self._room.queries(count)
        gain, eps = layer.input_gain, config.eps
        self._run.norm_linear(x, gain, layer.qkv, eps=eps, out=columns)
        qkv = columns.reshape(count, -1, config.head_width)
        tensors = qkv, queries, keys, values
        if layer.head_gain is None:
            decoder.turn_heads(*tensors, self._angles, at)
        else:
            decoder.norm_turn_heads(
                *tensors, layer.head_gain, self._angles, at, eps=eps
            )
        return queries

    def _make_angles(self, rows: int) -> Tensor3[f32]:
        """Return the tables of `decoder.turn_heads`."""
        half = self.config.head_width // 2
        speeds = self.config.theta ** (-np.arange(half) / half)
        angles = np.arange(rows)[:, None] * speeds
        cosine, sine = np.cos(angles), np.sin(angles)
        halves = [[cosine, cosine], [-sine, sine]]
        return self.ctx.tensor([np.concatenate(half, 1) for half in halves], f32)

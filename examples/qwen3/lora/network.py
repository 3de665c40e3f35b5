"""The decoder in training form: all positions of a batch at once, without a cache.

The model's weights are constants, the pairs of LoRA are parameters: functions of
`kerngen.nn`, and kernels with derived gradients by `nn.differentiable`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, final

import numpy as np

from examples.qwen3.errors import ModelError
from examples.qwen3.lora.adapters import Lora, matrix_name, pair_names
from examples.qwen3.model import Layer, Model, Table, Weight
from examples.qwen3.quantized import Quantized
from kerngen import nn
from kerngen.runtime import Matrix, Tensor, Vector, f32, u32
from kerngen_kernels import attention, layout

Parameters: TypeAlias = Mapping[str, nn.Value]
"""A trainer's parameters, to train them, or its tensors, to use them."""

_rotary = nn.differentiable(attention.rotary)
_attention = nn.differentiable(attention.grouped_query_attention)
_swap_heads = nn.differentiable(layout.swap_heads)


@final
class Network:
    """A loaded model whose layers are adapted."""

    def __init__(self, model: Model, lora: Lora, context: int) -> None:
        """Take the weights of a model, for rows of `context` tokens.

        Raises:
            ModelError: If the weights are not in f32, or the vocabulary is in parts, or the
                model has fewer positions.
        """
        config = model.config
        if not 0 < context <= config.positions:
            raise ModelError(
                f"A context of {context} tokens: the model has 1 to {config.positions}."
            )
        self.config = config
        self.lora = lora
        self._layers = model.weights.layers
        self._final_gain = model.weights.final_gain
        self._embedding = _whole(model.weights.embedding)
        self._head = _whole(model.weights.head)
        half = config.head_width // 2
        speeds = config.theta ** (-np.arange(half) / half)
        angles = np.arange(context)[:, None] * speeds
        self._cosine = model.ctx.matrix(np.cos(angles), f32)
        self._sine = model.ctx.matrix(np.sin(angles), f32)

    def logits(self, p: Parameters, ids: Tensor[u32, Any]) -> nn.Variable:
        """Return the logits [rows, context, vocabulary] of ids [rows, context]."""
        x = nn.embedding(self._embedding, ids)
        for number, layer in enumerate(self._layers):
            x = nn.add(x, self._attend(p, number, layer, x))
            x = nn.add(x, self._feed_forward(p, number, layer, x))
        x = nn.rmsnorm(x, self._final_gain, self.config.eps)
        return nn.linear(x, self._head)

    def _attend(
        self, p: Parameters, number: int, layer: Layer, x: nn.Variable
    ) -> nn.Variable:
        """Let each position see itself and those before it, by grouped heads."""
        own, shared = (
            heads * self.config.head_width
            for heads in (self.config.heads, self.config.kv_heads)
        )
        n = nn.rmsnorm(x, layer.input_gain, self.config.eps)
        qkv = _matrix(layer.qkv)
        stops = (own, own + shared, own + 2 * shared)
        starts = (0, *stops[:2])
        q, k, v = (
            self._linear(p, matrix_name(number, f"{role}_proj"), n, qkv[start:stop])
            for role, start, stop in zip("qkv", starts, stops, strict=True)
        )
        seen: nn.Variable = _attention(
            self._turned(q, _row(layer.head_gain, 0)),
            self._turned(k, _row(layer.head_gain, 1)),
            self._heads(v),
        )
        merged = nn.reshape(_swap_heads(seen), (*x.shape[:2], own))
        name = matrix_name(number, "o_proj")
        return self._linear(p, name, merged, _matrix(layer.output))

    def _heads(self, x: nn.Variable, gain: Vector[f32] | None = None) -> nn.Variable:
        """Return [rows, heads, context, features], each head normalized if it has a gain."""
        x = nn.reshape(x, (*x.shape[:2], -1, self.config.head_width))
        if gain is not None:
            x = nn.rmsnorm(x, gain, self.config.eps)
        swapped: nn.Variable = _swap_heads(x)
        return swapped

    def _turned(self, x: nn.Variable, gain: Vector[f32] | None) -> nn.Variable:
        turned: nn.Variable = _rotary(self._heads(x, gain), self._cosine, self._sine)
        return turned

    def _feed_forward(
        self, p: Parameters, number: int, layer: Layer, x: nn.Variable
    ) -> nn.Variable:
        n = nn.rmsnorm(x, layer.hidden_gain, self.config.eps)
        both, hidden = _matrix(layer.gated), self.config.hidden
        gate, up = (
            self._linear(p, matrix_name(number, f"{role}_proj"), n, weight)
            for role, weight in (("gate", both[:hidden]), ("up", both[hidden:]))
        )
        gated = nn.mul(nn.swish(gate), up)
        name = matrix_name(number, "down_proj")
        return self._linear(p, name, gated, _matrix(layer.down))

    def _linear(
        self, p: Parameters, name: str, x: nn.Variable, weight: Matrix[f32]
    ) -> nn.Variable:
        """Return x weight^T, and what the matrix's pair adds if it has one."""
        y = nn.linear(x, weight)
        a, b = pair_names(name)
        if a not in p:
            return y
        change = nn.linear(nn.linear(x, p[a]), p[b])
        return nn.add(y, nn.scale(change, self.lora.scale))


def _row(matrix: Matrix[f32] | None, row: int) -> Vector[f32] | None:
    return None if matrix is None else matrix[row : row + 1].reshape(-1)


def _matrix(weight: Weight) -> Matrix[f32]:
    if isinstance(weight, Quantized) or weight.element is not f32:
        raise ModelError("Gradients need weights in f32: load the model so.")
    return weight


def _whole(table: Table) -> Matrix[f32]:
    whole, *others = table.parts
    if others:
        raise ModelError(
            f"The vocabulary is in {len(table.parts)} parts, as the adapter binds too "
            "little for all of it: fine-tune on an adapter that binds more."
        )
    return _matrix(whole)

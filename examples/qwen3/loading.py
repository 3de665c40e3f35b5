"""A folder in Hugging Face's layout to a model on the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias, final

import numpy as np

import kerngen.runtime as gpu
from examples.qwen3.config import Config, read_config
from examples.qwen3.errors import ModelError
from examples.qwen3.files import Array, Storage, TensorFiles
from examples.qwen3.model import Layer, Model, Table, Weight, Weights
from examples.qwen3.quantized import Bits, upload
from examples.qwen3.text import Tokenizer
from kerngen.runtime import Context, Matrix, Vector, f16, f32

Progress: TypeAlias = Callable[[int, int], None]
"""Is called with the number of layers that are loaded, and of all."""


def load(
    folder: str | Path,
    *,
    ctx: Context | None = None,
    storage: Storage | None = None,
    bits: Bits | None = None,
    progress: Progress | None = None,
) -> tuple[Model, Tokenizer | None]:
    """Return a model and its tokenizer; without a tokenizer.json, None.

    Args:
        folder: Has config.json and model.safetensors, or its index and parts.
        ctx: Where to; by default a new context on the best adapter.
        storage: f16 or f32, the type of the weights on the device; by default f16 where
            the adapter has it.
        bits: 4 or 8: all matrices but the embedding are quantized, in blocks of 32.
        progress: Is called after each layer.

    Raises:
        ModelError: If the folder is damaged, or of a model that is computed otherwise.
    """
    path = Path(folder)
    model = load_model(path, ctx=ctx, storage=storage, bits=bits, progress=progress)
    return model, Tokenizer.find(path)


def load_model(
    folder: str | Path,
    *,
    ctx: Context | None = None,
    storage: Storage | None = None,
    bits: Bits | None = None,
    progress: Progress | None = None,
) -> Model:
    """Return the model alone; see `load`."""
    path = Path(folder)
    if not path.is_dir():
        raise ModelError(f"{path} is no folder.")
    config = read_config(path)
    ctx = gpu.open() if ctx is None else ctx
    has_half = "shader-f16" in _features(ctx)
    if bits is not None and (storage is f32 or not has_half):
        raise ModelError(
            f"Weights in {bits} bits have scales and an embedding in f16: "
            + ("'storage' is f32." if has_half else "the adapter lacks 'shader-f16'.")
        )
    storage = storage or (f16 if has_half else f32)
    loader = _Loader(ctx, config, TensorFiles(path), storage, bits)
    return Model(ctx, config, loader.load(progress))


def _features(ctx: Context) -> frozenset[str]:
    """Return the features of a context's device; the reference has all."""
    if ctx.kind == "reference":
        return frozenset({"shader-f16"})
    return frozenset(ctx.device.features)


@final
class _Loader:
    """Uploads the tensors of a model, one after the other."""

    def __init__(
        self,
        ctx: Context,
        config: Config,
        files: TensorFiles,
        storage: Storage,
        bits: Bits | None,
    ) -> None:
        self._ctx = ctx
        self._config = config
        self._files = files
        self._storage = storage
        self._bits: Bits | None = bits

    def load(self, progress: Progress | None) -> Weights:
        config = self._config
        rows = self._rows("model.embed_tokens.weight")
        embedding = self._table(rows, None)
        layers: list[Layer] = []
        for number in range(config.layers):
            layers.append(self._layer(f"model.layers.{number}."))
            if progress:
                progress(number + 1, config.layers)
        gain = self._gain("model.norm.weight", config.width)
        if config.tied:
            self._files.skip("lm_head.weight")
        if not config.tied:
            rows = self._rows("lm_head.weight")
        is_shared = config.tied and self._bits is None
        head = embedding if is_shared else self._table(rows, self._bits)
        self._files.check_rest()
        return Weights(embedding, tuple(layers), gain, head)

    def _layer(self, prefix: str) -> Layer:
        config, attention, mlp = self._config, prefix + "self_attn.", prefix + "mlp."
        width, hidden = config.width, config.hidden
        own, shared = (
            heads * config.head_width for heads in (config.heads, config.kv_heads)
        )
        self._files.skip(attention + "rotary_emb.inv_freq")
        shapes = {"q": (own, width), "k": (shared, width), "v": (shared, width)}
        return Layer(
            input_gain=self._gain(prefix + "input_layernorm.weight", width),
            qkv=self._joined(attention, shapes),
            head_gain=self._head_gain(attention),
            output=self._matrix(attention + "o_proj.weight", width, own),
            hidden_gain=self._gain(prefix + "post_attention_layernorm.weight", width),
            gated=self._joined(mlp, {"gate": (hidden, width), "up": (hidden, width)}),
            down=self._matrix(mlp + "down_proj.weight", width, hidden),
        )

    def _take(self, name: str, shape: tuple[int, ...]) -> Array:
        return self._files.take(name, shape, self._storage)

    def _matrix(self, name: str, rows: int, columns: int) -> Weight:
        return self._upload(self._take(name, (rows, columns)), self._bits)

    def _joined(self, prefix: str, shapes: Mapping[str, tuple[int, int]]) -> Weight:
        """Upload matrices as one, so that they take one product."""
        each: list[Any] = [
            self._take(f"{prefix}{name}_proj.weight", shape)
            for name, shape in shapes.items()
        ]
        return self._upload(np.concatenate(each), self._bits)

    def _upload(self, array: Any, bits: Bits | None) -> Weight:
        if bits is not None:
            return upload(self._ctx, array, bits)
        return self._ctx.matrix(array, self._storage)

    def _gain(self, name: str, width: int) -> Vector[f32]:
        return self._ctx.vector(self._files.take(name, (width,), f32), f32)

    def _head_gain(self, prefix: str) -> Matrix[f32] | None:
        if not self._config.normalizes_heads:
            return None
        shape = (self._config.head_width,)
        names = (f"{prefix}{name}_norm.weight" for name in "qk")
        return self._ctx.matrix([self._files.take(n, shape, f32) for n in names], f32)

    def _rows(self, name: str) -> Array:
        config = self._config
        return self._take(name, (config.vocabulary, config.width))

    def _table(self, array: Array, bits: Bits | None) -> Table:
        """Upload a table of the vocabulary, in parts that the adapter can bind."""
        starts = tuple(self._starts(array))
        stops = (*starts[1:], len(array))
        parts = [
            self._upload(array[start:stop], bits)
            for start, stop in zip(starts, stops, strict=True)
        ]
        return Table(tuple(parts), starts)

    def _starts(self, array: Array) -> Iterator[int]:
        row = array.itemsize * array.shape[1]
        rows = self._ctx.max_tensor_bytes // row
        if not rows:
            raise ModelError(
                f"A row of the vocabulary has {row} bytes, and the adapter binds only "
                f"{self._ctx.max_tensor_bytes}."
            )
        # Equal parts: the last one is no shorter than the others need.
        parts = -(-len(array) // rows)
        yield from range(0, len(array), -(-len(array) // parts))

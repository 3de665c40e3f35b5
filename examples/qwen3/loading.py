"""A folder in Hugging Face's layout, or a GGUF file, to a model on the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

import kerngen.runtime as gpu
from examples.qwen3.arenas import Arenas
from examples.qwen3.config import Config, read_config
from examples.qwen3.errors import ModelError
from examples.qwen3.files import Array, Storage, TensorFiles
from examples.qwen3.gguf import SUFFIX, GgufFile
from examples.qwen3.model import Layer, Model, Table, Weight, Weights
from examples.qwen3.quantized import Bits, element_of, kinds_of, place, upload
from examples.qwen3.text import Tokenizer
from kerngen.runtime import Context, Matrix, Vector, f16, f32

EMBEDDING: Final = "model.embed_tokens.weight"
HEAD: Final = "lm_head.weight"

Files: TypeAlias = TensorFiles | GgufFile
"""Where tensors are: both have the same methods."""

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
        folder: Has config.json and model.safetensors, or its index and parts; or a file
            that ends in `.gguf`, which may have a tokenizer.json beside it.
        ctx: Where to; by default a new context on the best adapter.
        storage: f16 or f32, the type of the weights on the device; by default f16 where
            the adapter has it.
        bits: 4 or 8: all matrices but the embedding are quantized, in blocks of 32.  A
            quantized file keeps its own: what it has otherwise is quantized to 8.
        progress: Is called after each layer.

    Raises:
        ModelError: If the folder is damaged, or of a model that is computed otherwise.
    """
    path = Path(folder)
    model = load_model(path, ctx=ctx, storage=storage, bits=bits, progress=progress)
    return model, Tokenizer.find(path.parent if path.suffix == SUFFIX else path)


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
    config, files = _open(path)
    if files.is_quantized:
        if bits is not None:
            raise ModelError(f"{path.name} is quantized already: leave 'bits' out.")
        bits = 8
    ctx = gpu.open() if ctx is None else ctx
    has_half = "shader-f16" in _features(ctx)
    if bits is not None and (storage is f32 or not has_half):
        raise ModelError(
            f"Weights in {bits} bits have scales and an embedding in f16: "
            + ("'storage' is f32." if has_half else "the adapter lacks 'shader-f16'.")
        )
    storage = storage or (f16 if has_half else f32)
    loader = _Loader(ctx, config, files, storage, bits)
    return Model(ctx, config, loader.load(progress))


def _open(path: Path) -> tuple[Config, Files]:
    if path.suffix == SUFFIX:
        file = GgufFile(path)
        return file.config(), file
    if not path.is_dir():
        raise ModelError(f"{path} is no folder.")
    return read_config(path), TensorFiles(path)


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
        files: Files,
        storage: Storage,
        bits: Bits | None,
    ) -> None:
        self._ctx = ctx
        self._config = config
        self._files = files
        self._storage = storage
        self._bits: Bits | None = bits
        # Of files whose matrices differ, some are buffers of their own.
        in_bits = files.bits_of("model.layers.0.mlp.down_proj.weight") or bits
        element = storage if in_bits is None else element_of(in_bits)
        self._arenas = Arenas(ctx, config.layers, kinds_of(config, element))

    def load(self, progress: Progress | None) -> Weights:
        config = self._config
        embedding = self._table(EMBEDDING, quantized=False)
        layers: list[Layer] = []
        for number in range(config.layers):
            layers.append(self._layer(f"model.layers.{number}."))
            if progress:
                progress(number + 1, config.layers)
        gain = self._gain("model.norm.weight", config.width)
        if config.tied:
            self._files.skip(HEAD)
        is_shared = config.tied and self._bits is None
        name = EMBEDDING if config.tied else HEAD
        head = embedding if is_shared else self._table(name, quantized=True)
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
            qkv=self._joined(_named(attention, shapes)),
            head_gain=self._head_gain(attention),
            output=self._matrix(attention + "o_proj.weight", width, own),
            hidden_gain=self._gain(prefix + "post_attention_layernorm.weight", width),
            gated=self._joined(
                _named(mlp, {"gate": (hidden, width), "up": (hidden, width)})
            ),
            down=self._matrix(mlp + "down_proj.weight", width, hidden),
        )

    def _take(self, name: str, shape: tuple[int, ...]) -> Array:
        return self._files.take(name, shape, self._storage)

    def _matrix(self, name: str, rows: int, columns: int) -> Weight:
        return self._joined({name: (rows, columns)})

    def _joined(self, shapes: Mapping[str, tuple[int, int]]) -> Weight:
        """Upload matrices as one, so that they take one product."""
        codes = self._codes(shapes)
        if codes is not None:
            return place(self._arenas, *codes)
        each: list[Any] = [self._take(*named) for named in shapes.items()]
        return self._upload(self._arenas, np.concatenate(each), self._bits)

    def _codes(
        self, shapes: Mapping[str, tuple[int, int]]
    ) -> tuple[Any, Any, Bits] | None:
        """Return the integers and scales of matrices that a file has in so many bits."""
        kinds: set[Bits | None] = {self._files.bits_of(name) for name in shapes}
        bits = kinds.pop()
        if bits is None or kinds:
            return None
        pairs = [self._files.take_codes(*named) for named in shapes.items()]
        codes, scales = (np.concatenate(side) for side in zip(*pairs, strict=True))
        return codes, scales, bits

    def _upload(self, to: Context | Arenas, array: Any, bits: Bits | None) -> Weight:
        if bits is not None:
            return upload(to, array, bits)
        return to.matrix(array, self._storage)

    def _gain(self, name: str, width: int) -> Vector[f32]:
        return self._ctx.vector(self._files.take(name, (width,), f32), f32)

    def _head_gain(self, prefix: str) -> Matrix[f32] | None:
        if not self._config.normalizes_heads:
            return None
        shape = (self._config.head_width,)
        names = (f"{prefix}{name}_norm.weight" for name in "qk")
        return self._ctx.matrix([self._files.take(n, shape, f32) for n in names], f32)

    def _table(self, name: str, *, quantized: bool) -> Table:
        """Upload a table of the vocabulary, in parts that the adapter can bind."""
        shape = self._config.vocabulary, self._config.width
        codes = self._codes({name: shape}) if quantized else None
        array = self._take(name, shape) if codes is None else codes[0]
        starts = tuple(self._starts(array))
        stops = (*starts[1:], len(array))
        bits = self._bits if quantized else None

        def part(rows: slice) -> Weight:
            if codes is None:
                return self._upload(self._ctx, array[rows], bits)
            return place(self._ctx, codes[0][rows], codes[1][rows], codes[2])

        parts = (part(slice(*ends)) for ends in zip(starts, stops, strict=True))
        return Table(tuple(parts), starts)

    def _starts(self, array: Array | NDArray[np.int8]) -> Iterator[int]:
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


def _named(
    prefix: str, shapes: Mapping[str, tuple[int, int]]
) -> dict[str, tuple[int, int]]:
    """Return the shapes of matrices by their whole names."""
    return {f"{prefix}{name}_proj.weight": shape for name, shape in shapes.items()}

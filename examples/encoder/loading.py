"""A folder in Hugging Face's layout to an encoder on the device."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, final

import kerngen.runtime as gpu
from examples.encoder.model import Encoder, Layer, Linear, Norm, Sizes, Weights
from examples.qwen3.config import read_json
from examples.qwen3.errors import ModelError
from examples.qwen3.files import TensorFiles
from examples.qwen3.text import Tokenizer
from kerngen.runtime import Context, Matrix, Vector, f32

MUST_BE: Final[Mapping[str, Any]] = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
}
"""What a key must be if it is there: this example computes nothing else."""


def load(folder: str | Path, *, ctx: Context | None = None) -> Encoder:
    """Return the encoder of a folder.

    Args:
        folder: Has config.json, model.safetensors and, to encode texts, tokenizer.json.
        ctx: Where to; by default a new context on the best adapter.

    Raises:
        ModelError: If the folder is damaged, or of a model that is computed otherwise.
    """
    path = Path(folder)
    if not path.is_dir():
        raise ModelError(f"{path} is no folder.")
    sizes = read_sizes(path)
    ctx = gpu.open() if ctx is None else ctx
    weights = _Loader(ctx, sizes, TensorFiles(path)).load()
    return Encoder(ctx, sizes, weights, Tokenizer.find(path))


def read_sizes(folder: Path) -> Sizes:
    """Read a folder's configuration.

    Raises:
        ModelError: If it is missing, damaged, or of a model that is computed otherwise.
    """
    found = read_json(folder / "config.json")
    for key, wanted in MUST_BE.items():
        if found.get(key, None if key == "model_type" else wanted) != wanted:
            raise ModelError(
                f"config.json: {key} is {found.get(key)!r}; this example only computes "
                f"{wanted!r}."
            )

    def count(key: str) -> int:
        value = found.get(key)
        if type(value) is not int or value < 1:
            raise ModelError(
                f"config.json: {key} is no positive number, but {value!r}."
            )
        return value

    eps = found.get("layer_norm_eps", 1e-12)
    if type(eps) is not float or not eps > 0:
        raise ModelError(f"config.json: layer_norm_eps is {eps!r}, not above 0.")
    sizes = Sizes(
        layers=count("num_hidden_layers"),
        width=count("hidden_size"),
        heads=count("num_attention_heads"),
        hidden=count("intermediate_size"),
        vocabulary=count("vocab_size"),
        positions=count("max_position_embeddings"),
        kinds=count("type_vocab_size"),
        eps=eps,
    )
    if sizes.width % sizes.heads:
        raise ModelError(
            f"config.json: {sizes.heads} heads can't share {sizes.width} features."
        )
    return sizes


@final
class _Loader:
    """Uploads the tensors of a model, one after the other."""

    def __init__(self, ctx: Context, sizes: Sizes, files: TensorFiles) -> None:
        self._ctx = ctx
        self._sizes = sizes
        self._files = files
        words = "embeddings.word_embeddings.weight"
        # A model that was saved with a head on it has its encoder under a name.
        self._prefix = "bert." if f"bert.{words}" in files else ""

    def load(self) -> Weights:
        sizes = self._sizes
        names = {
            "word": sizes.vocabulary,
            "position": sizes.positions,
            "token_type": sizes.kinds,
        }
        words, places, kinds = (
            self._matrix(f"embeddings.{name}_embeddings.weight", rows, sizes.width)
            for name, rows in names.items()
        )
        first = self._norm("embeddings.LayerNorm")
        layers = tuple(map(self._layer, range(sizes.layers)))
        # The numbers of positions are 0, 1, ...; the pooler is of another task.
        for name in (
            "embeddings.position_ids",
            "pooler.dense.weight",
            "pooler.dense.bias",
        ):
            self._files.skip(self._prefix + name)
        self._files.check_rest()
        return Weights(words, places, kinds, first, layers)

    def _layer(self, number: int) -> Layer:
        width, hidden = self._sizes.width, self._sizes.hidden
        at = f"encoder.layer.{number}."
        query, key, value = (
            self._linear(f"{at}attention.self.{name}", width, width)
            for name in ("query", "key", "value")
        )
        return Layer(
            query=query,
            key=key,
            value=value,
            output=self._linear(at + "attention.output.dense", width, width),
            seen=self._norm(at + "attention.output.LayerNorm"),
            up=self._linear(at + "intermediate.dense", hidden, width),
            down=self._linear(at + "output.dense", width, hidden),
            done=self._norm(at + "output.LayerNorm"),
        )

    def _linear(self, name: str, rows: int, columns: int) -> Linear:
        w = self._matrix(f"{name}.weight", rows, columns)
        return Linear(w, self._vector(f"{name}.bias", rows))

    def _norm(self, name: str) -> Norm:
        width = self._sizes.width
        gain, bias = (self._vector(f"{name}.{e}", width) for e in ("weight", "bias"))
        return Norm(gain, bias)

    def _matrix(self, name: str, rows: int, columns: int) -> Matrix[f32]:
        array = self._files.take(self._prefix + name, (rows, columns), f32)
        return self._ctx.matrix(array, f32)

    def _vector(self, name: str, length: int) -> Vector[f32]:
        array = self._files.take(self._prefix + name, (length,), f32)
        return self._ctx.vector(array, f32)

"""`config.json`: the sizes of a model, or why this example can't run it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, final

from examples.qwen3.errors import ModelError

Family: TypeAlias = Literal["qwen3", "llama"]
FAMILIES: tuple[Family, ...] = ("qwen3", "llama")

# What a key must be if it is there: this example computes nothing else.
MUST_BE: Mapping[str, tuple[object, ...]] = {
    "attention_bias": (False,),
    "attention_dropout": (0.0, 0),
    "hidden_act": ("silu",),
    "mlp_bias": (False,),
    "pretraining_tp": (1,),
    "use_sliding_window": (False,),
}
# Keys that change nothing in what is computed.
NEUTRAL = frozenset(
    {
        *("_name_or_path", "architectures", "bos_token_id", "dtype", "id2label"),
        *("initializer_range", "label2id", "max_window_layers", "pad_token_id"),
        *("sliding_window", "torch_dtype", "transformers_version", "use_cache"),
    }
)


@final
@dataclass(frozen=True)
class Config:
    """The sizes of a decoder."""

    family: Family
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_width: int
    hidden: int
    vocabulary: int
    positions: int
    eps: float
    theta: float
    tied: bool
    eos: tuple[int, ...] = ()

    @property
    def normalizes_heads(self) -> bool:
        """Whether queries and keys are normalized before they are turned."""
        return self.family == "qwen3"

    @property
    def matrices(self) -> tuple[tuple[int, int], ...]:
        """The shapes of a layer's matrices: `qkv`, `output`, `gated` and `down`."""
        own, shared = (n * self.head_width for n in (self.heads, self.kv_heads))
        return (
            (own + 2 * shared, self.width),
            (self.width, own),
            (2 * self.hidden, self.width),
            (self.width, self.hidden),
        )


def read_config(folder: Path) -> Config:
    """Read a folder's configuration.

    Raises:
        ModelError: If it is missing, damaged, or of a model that is computed otherwise.
    """
    reader = _Reader(read_json(folder / "config.json"))
    config = reader.config()
    reader.check_rest()
    again = folder / "generation_config.json"
    eos = read_json(again).get("eos_token_id") if again.exists() else None
    return config if eos is None else _with_eos(config, eos, again)


def read_json(path: Path) -> dict[str, Any]:
    """Read an object of JSON."""
    try:
        found: object = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"{path} can't be read: {error.strerror}.") from error
    except ValueError as error:
        raise ModelError(f"{path} is no JSON: {error}.") from error
    if not isinstance(found, dict):
        raise ModelError(f"{path} holds no object, but a {type(found).__name__}.")
    return cast("dict[str, Any]", found)


@final
class _Reader:
    """The keys of a configuration, each taken once."""

    def __init__(self, found: dict[str, Any]) -> None:
        self._left = dict(found)

    def config(self) -> Config:
        family = self._left.pop("model_type", None)
        if family not in FAMILIES:
            raise ModelError(
                f"config.json: the model_type is {family!r}; this example runs "
                f"{' and '.join(FAMILIES)}."
            )
        width, heads = self._count("hidden_size"), self._count("num_attention_heads")
        kv_heads = self._count("num_key_value_heads", heads)
        layers = self._count("num_hidden_layers")
        head_width = self._count("head_dim", width // heads)
        if heads % kv_heads:
            raise ModelError(
                f"config.json: {heads} heads can't share {kv_heads} heads of keys."
            )
        if head_width % 2:
            raise ModelError(f"config.json: head_dim is odd, {head_width}.")
        self._check_layers(layers)
        return Config(
            family=family,
            layers=layers,
            width=width,
            heads=heads,
            kv_heads=kv_heads,
            head_width=head_width,
            hidden=self._count("intermediate_size"),
            vocabulary=self._count("vocab_size"),
            positions=self._count("max_position_embeddings"),
            eps=self._number("rms_norm_eps", 1e-6),
            theta=self._theta(),
            tied=bool(self._left.pop("tie_word_embeddings", False)),
            eos=_ids(self._left.pop("eos_token_id", None) or [], "config.json"),
        )

    def check_rest(self) -> None:
        """Refuse what would be computed otherwise than this example does."""
        for key, value in self._left.items():
            allowed = MUST_BE.get(key)
            if allowed is None and key not in NEUTRAL:
                raise ModelError(
                    f"config.json: this example doesn't know {key!r}, which is {value!r}."
                )
            if allowed is not None and value not in allowed:
                raise ModelError(
                    f"config.json: {key} is {value!r}; this example only computes "
                    f"{allowed[0]!r}."
                )

    def _count(self, key: str, default: int | None = None) -> int:
        value = self._left.pop(key, None)
        value = default if value is None else value
        if type(value) is not int or value < 1:
            raise ModelError(
                f"config.json: {key} is no positive number, but {value!r}."
            )
        return value

    def _number(self, key: str, default: float) -> float:
        value = self._left.pop(key, default)
        if type(value) not in {int, float} or not value > 0:
            raise ModelError(
                f"config.json: {key} is no positive number, but {value!r}."
            )
        return float(value)

    def _theta(self) -> float:
        """Take the base of the angles; transformers 5 writes it another way than 4."""
        scaling = self._left.pop("rope_scaling", None)
        rope: Any = self._left.pop("rope_parameters", None) or scaling or {}
        theta = self._left.pop("rope_theta", None)
        kind = rope.get("rope_type", rope.get("type", "default"))
        if kind != "default":
            raise ModelError(
                f"config.json: the rope_type is {kind!r}; this example only computes "
                "'default'."
            )
        self._left["rope_theta"] = rope.get("rope_theta", theta)
        return self._number("rope_theta", 10000.0)

    def _check_layers(self, layers: int) -> None:
        kinds = self._left.pop("layer_types", None)
        if kinds is not None and kinds != ["full_attention"] * layers:
            raise ModelError(
                "config.json: layer_types names others than 'full_attention', once for "
                "each layer."
            )


def _ids(value: Any, where: str) -> tuple[int, ...]:
    ids: list[Any] = [value]
    if isinstance(value, list):
        ids[:] = value
    if not all(type(each) is int for each in ids):
        raise ModelError(f"{where}: eos_token_id is {value!r}, not ids.")
    return tuple(ids)


def _with_eos(config: Config, eos: Any, path: Path) -> Config:
    return replace(config, eos=_ids(eos, path.name))

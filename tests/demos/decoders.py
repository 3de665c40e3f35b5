"""Random models in Hugging Face's layout, and what they compute, in float64 by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Sizes:
    """A model to make."""

    family: str = "qwen3"
    layers: int = 2
    width: int = 24
    heads: int = 4
    kv_heads: int = 2
    head_width: int = 8
    hidden: int = 40
    vocabulary: int = 61
    tied: bool = False
    eps: float = 1e-5
    theta: float = 500.0


def config_of(sizes: Sizes) -> dict[str, Any]:
    return {
        "model_type": sizes.family,
        "num_hidden_layers": sizes.layers,
        "hidden_size": sizes.width,
        "num_attention_heads": sizes.heads,
        "num_key_value_heads": sizes.kv_heads,
        "head_dim": sizes.head_width,
        "intermediate_size": sizes.hidden,
        "vocab_size": sizes.vocabulary,
        "max_position_embeddings": 300,
        "rms_norm_eps": sizes.eps,
        "rope_theta": sizes.theta,
        "tie_word_embeddings": sizes.tied,
        "hidden_act": "silu",
        "eos_token_id": None,
    }


def make(folder: Path, sizes: Sizes, seed: int = 0) -> Arrays:
    """Write a random model; return its tensors."""
    rng = np.random.default_rng(seed)
    width, turned = sizes.width, sizes.head_width
    own, shared = sizes.heads * turned, sizes.kv_heads * turned
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (sizes.vocabulary, width),
        "model.norm.weight": (width,),
    }
    if not sizes.tied:
        shapes["lm_head.weight"] = sizes.vocabulary, width
    for number in range(sizes.layers):
        layer = {
            "self_attn.q_proj": (own, width),
            "self_attn.k_proj": (shared, width),
            "self_attn.v_proj": (shared, width),
            "self_attn.o_proj": (width, own),
            "mlp.gate_proj": (sizes.hidden, width),
            "mlp.up_proj": (sizes.hidden, width),
            "mlp.down_proj": (width, sizes.hidden),
            "input_layernorm": (width,),
            "post_attention_layernorm": (width,),
        }
        if sizes.family == "qwen3":
            layer |= {"self_attn.q_norm": (turned,), "self_attn.k_norm": (turned,)}
        for name, shape in layer.items():
            shapes[f"model.layers.{number}.{name}.weight"] = shape
    tensors: Arrays = {
        name: (
            rng.uniform(0.5, 1.5, shape)
            if "norm" in name
            else rng.normal(0, 0.3, shape)
        ).astype(np.float32)
        for name, shape in shapes.items()
    }
    (folder / "model.safetensors").write_bytes(save(tensors))
    write_json(folder / "config.json", config_of(sizes))
    return tensors


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


def expected(sizes: Sizes, tensors: Arrays, ids: NDArray[Any]) -> NDArray[np.float64]:
    """The logits of all positions, in float64, by hand."""
    w = {name: array.astype(np.float64) for name, array in tensors.items()}
    count, turned = len(ids), sizes.head_width
    half = turned // 2
    angles = np.arange(count)[:, None] * sizes.theta ** (-np.arange(half) / half)
    cos, sin = (np.tile(each(angles), 2)[:, None] for each in (np.cos, np.sin))

    def norm(x: Any, gain: str) -> Any:
        return (
            x
            / np.sqrt((x * x).mean(-1, keepdims=True) + sizes.eps)
            * w[gain + ".weight"]
        )

    def turn(x: Any) -> Any:
        return x * cos + np.concatenate([-x[..., half:], x[..., :half]], -1) * sin

    x = w["model.embed_tokens.weight"][ids]
    seen = np.tri(count, dtype=bool)
    for number in range(sizes.layers):
        at = f"model.layers.{number}."
        rows = norm(x, at + "input_layernorm")
        q, k, v = (
            (rows @ w[f"{at}self_attn.{each}_proj.weight"].T).reshape(count, -1, turned)
            for each in "qkv"
        )
        if sizes.family == "qwen3":
            q, k = norm(q, at + "self_attn.q_norm"), norm(k, at + "self_attn.k_norm")
        k, v = (np.repeat(e, sizes.heads // sizes.kv_heads, 1) for e in (turn(k), v))
        score = np.einsum("ihd,jhd->hij", turn(q), k) / np.sqrt(turned)
        score = np.exp(score - np.where(seen, score, -np.inf).max(-1, keepdims=True))
        weight = np.where(seen, score, 0)
        weight /= weight.sum(-1, keepdims=True)
        heads = np.einsum("hij,jhd->ihd", weight, v).reshape(count, -1)
        x = x + heads @ w[at + "self_attn.o_proj.weight"].T
        rows = norm(x, at + "post_attention_layernorm")
        gate, up = (rows @ w[f"{at}mlp.{e}_proj.weight"].T for e in ("gate", "up"))
        x = x + (gate / (1 + np.exp(-gate)) * up) @ w[at + "mlp.down_proj.weight"].T
    head = "model.embed_tokens.weight" if sizes.tied else "lm_head.weight"
    result: NDArray[np.float64] = norm(x, "model.norm") @ w[head].T
    return result


def write_text(folder: Path) -> None:
    """Write a tokenizer of characters, for a vocabulary of 61, and a chat template."""
    letters = "abcdefghijklmnopqrstuvwxyz .,?!"
    vocabulary = {letter: i for i, letter in enumerate(letters)}
    vocabulary |= {f"<{i}>": i for i in range(len(letters), 61)}
    split = {"type": "Split", "pattern": {"Regex": "."}, "behavior": "Isolated"}
    write_json(
        folder / "tokenizer.json",
        {
            "version": "1.0",
            "pre_tokenizer": {**split, "invert": False},
            "decoder": {"type": "Fuse"},
            "model": {
                "type": "WordLevel",
                "vocab": vocabulary,
                "unk_token": "<60>",
            },
        },
    )
    template = "{% for m in messages %}{{ m.role }}. {{ m.content }}!{% endfor %}"
    write_json(folder / "tokenizer_config.json", {"chat_template": template})

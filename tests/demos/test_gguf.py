"""The decoder example reads GGUF files, which NumPy writes here as their specification says."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from examples.qwen3 import ModelError, generate_ids, load, load_model
from kerngen.runtime import Context, f16, f32, u32
from tests.budget import sampled
from tests.demos.decoders import Arrays, Sizes, expected, make

SIZES = Sizes(width=64, hidden=96, tied=True)
NUMBERS = {"F32": 0, "F16": 1, "Q4_0": 2, "Q8_0": 8, "Q6_K": 14}
LAYER = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def name_of(name: str) -> str:
    """The name of a tensor in GGUF."""
    for ours, theirs in {
        "embed_tokens": "token_embd",
        "lm_head": "output",
        "model.norm": "output_norm",
    }.items():
        if ours in name:
            return f"{theirs}.weight"
    number, rest = name.removeprefix("model.layers.").split(".", 1)
    return f"blk.{number}.{LAYER[rest.removesuffix('.weight')]}.weight"


def block_of(row: NDArray[Any], kind: str) -> tuple[bytes, NDArray[Any]]:
    """A block of 32 numbers as its bytes, and what these mean."""
    least = 8 if kind == "Q4_0" else 127
    scale = np.float16(np.abs(row).max() / least)
    codes = np.rint(row / float(scale)).clip(-least, least - (kind == "Q4_0"))
    codes = codes.astype(np.int64)
    data = bytearray(struct.pack("<e", scale))
    if kind == "Q8_0":
        data += struct.pack("<32b", *codes.tolist())
    else:
        for n in range(16):
            data.append(int(codes[n] + 8) | int(codes[n + 16] + 8) << 4)
    return bytes(data), codes * float(scale)


def stored(array: NDArray[Any], kind: str) -> tuple[bytes, NDArray[Any]]:
    """A tensor's bytes, and what a model computes with."""
    if kind in {"F32", "F16"}:
        kept = array.astype({"F32": "<f4", "F16": "<f2"}[kind])
        return kept.tobytes(), kept
    pairs = [block_of(block, kind) for block in array.reshape(-1, 32)]
    values = np.concatenate([values for _, values in pairs])
    return b"".join(data for data, _ in pairs), values.reshape(array.shape)


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def in_turns(array: NDArray[Any], heads: int) -> NDArray[Any]:
    """The rows of the two halves of each head in turns, as files of Llama have them."""
    halves = array.reshape(heads, 2, -1, array.shape[1])
    return np.stack([halves[:, 0], halves[:, 1]], 2).reshape(array.shape)


def write(
    path: Path,
    sizes: Sizes,
    tensors: Arrays,
    kinds: Mapping[str, str],
    **changed: Any,
) -> Arrays:
    """Write a file; return what its tensors mean.

    `kinds` are the types of matrices by a part of their names, '' of all others.
    """
    values: dict[str, Any] = {
        "general.architecture": sizes.family,
        "block_count": sizes.layers,
        "embedding_length": sizes.width,
        "feed_forward_length": sizes.hidden,
        "attention.head_count": sizes.heads,
        "attention.head_count_kv": sizes.kv_heads,
        "attention.key_length": sizes.head_width,
        "context_length": 300,
        "attention.layer_norm_rms_epsilon": sizes.eps,
        "rope.freq_base": sizes.theta,
        "tokenizer.ggml.tokens": ["a", "bc", ""],
    } | changed
    head = b""
    for key, value in values.items():
        whole = key if key.split(".")[0] in {"general", "tokenizer"} else None
        head += text(whole or f"{sizes.family}.{key}")
        if isinstance(value, str):
            head += struct.pack("<I", 8) + text(value)
        elif isinstance(value, list):
            words = cast("list[str]", value)
            head += struct.pack("<IIQ", 9, 8, len(words)) + b"".join(map(text, words))
        else:
            code, number = ("I", 4) if isinstance(value, int) else ("f", 6)
            head += struct.pack(f"<I{code}", number, value)
    data, meant = b"", dict(tensors)
    for name, array in tensors.items():
        found = [kinds[part] for part in kinds if part in name]
        kind = "F32" if array.ndim == 1 else found[-1]
        kept, meant[name] = stored(array, kind)
        if sizes.family == "llama" and ("q_proj" in name or "k_proj" in name):
            heads = sizes.heads if "q_proj" in name else sizes.kv_heads
            kept, _ = stored(in_turns(array, heads), kind)
        axes = array.shape[::-1]
        head += text(name_of(name)) + struct.pack(f"<I{len(axes)}Q", len(axes), *axes)
        head += struct.pack("<IQ", NUMBERS[kind], len(data))
        data += kept + bytes(-len(kept) % 32)
    start = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(values)) + head
    path.write_bytes(start + bytes(-len(start) % 32) + data)
    return meant


def logits(ctx: Context, path: Path, ids: NDArray[Any], storage: Any) -> NDArray[Any]:
    model = load_model(path, ctx=ctx, storage=storage)
    cache = model.make_cache(len(ids))
    found: NDArray[Any] = model.head(model.hidden(ctx.vector(ids, u32), cache)).numpy()
    return found


@pytest.mark.parametrize(
    ("sizes", "kinds", "storage"),
    sampled(
        [
            (SIZES, {"": "Q4_0"}, f16),
            (replace(SIZES, tied=False), {"": "Q8_0", "_proj": "Q4_0"}, f16),
            (replace(SIZES, family="llama"), {"": "Q8_0"}, f16),
            (replace(SIZES, family="llama", kv_heads=4, tied=False), {"": "F16"}, f32),
        ],
        2,
    ),
)
def test_a_file_computes_what_its_blocks_mean(
    ctx: Context, tmp_path: Path, sizes: Sizes, kinds: dict[str, str], storage: Any
) -> None:
    path = tmp_path / "model.gguf"
    meant = write(path, sizes, make(tmp_path, sizes), kinds)
    if kinds[""] != "F16":
        # The embedding is read as f16; as a head it keeps its blocks.
        embedding = meant["model.embed_tokens.weight"]
        meant.setdefault("lm_head.weight", embedding)
        meant["model.embed_tokens.weight"] = embedding.astype(np.float16)
    ids = np.random.default_rng(1).integers(0, sizes.vocabulary, 20)
    want = expected(replace(sizes, tied="lm_head.weight" not in meant), meant, ids)
    got = logits(ctx, path, ids, storage)
    assert np.abs(got - want).max() < 1e-5 * np.abs(want).max()


def test_matrices_of_several_types_become_eight_bits(
    ctx: Context, tmp_path: Path
) -> None:
    """Queries, keys and values are one matrix; a head of floats joins the blocks."""
    path, sizes = tmp_path / "model.gguf", replace(SIZES, tied=False)
    kinds = {"": "Q4_0", "v_proj": "F16", "lm_head": "F32"}
    meant = write(path, sizes, make(tmp_path, sizes), kinds)
    ids = np.arange(9)
    want = expected(sizes, meant, ids)
    got = logits(ctx, path, ids, None)
    assert np.abs(got - want).max() < 0.02 * np.abs(want).max()
    model, tokenizer = load(path, ctx=ctx)
    assert tokenizer is None
    assert len(generate_ids(model, [1, 2], max_tokens=3)) == 3


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"general.architecture": "gemma"}, "general.architecture is 'gemma'"),
        ({"rope.scaling.type": "yarn"}, "rope.scaling.type is 'yarn'"),
        (
            {"embedding_length": 0},
            "qwen3.embedding_length is no positive number, but 0",
        ),
        ({"feed_forward_length": 64}, r"is \[96, 64\], where its sizes ask for"),
        ({"block_count": 3}, "has no tensor 'blk.2"),
        ({"block_count": 1}, "one of 11.*doesn't know"),
    ],
)
def test_files_that_are_refused(
    ctx: Context, tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    path = tmp_path / "model.gguf"
    write(path, SIZES, make(tmp_path, SIZES), {"": "Q8_0"}, **changed)
    with pytest.raises(ModelError, match=message):
        load_model(path, ctx=ctx)


def test_damaged_files_are_refused(ctx: Context, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write(path, SIZES, make(tmp_path, SIZES), {"": "Q8_0"})
    whole = path.read_bytes()
    for damage, message in {
        b"GGML" + whole[4:]: "is no GGUF file",
        whole[:4] + b"\x01" + whole[5:]: "version 1",
        whole[:1000]: "it ends in its header",
        whole[:24] + b"\xff" * 8 + whole[32:]: "it ends in its header",
        whole[:-64]: "are not all there",
    }.items():
        path.write_bytes(damage)
        with pytest.raises(ModelError, match=message):
            load_model(path, ctx=ctx)
    path.unlink()
    with pytest.raises(ModelError, match="can't be read"):
        load_model(path, ctx=ctx)


def test_other_types_are_refused_by_name(ctx: Context, tmp_path: Path) -> None:
    path, tensors = tmp_path / "model.gguf", make(tmp_path, SIZES)
    write(path, SIZES, tensors, {"": "Q8_0"})
    with pytest.raises(ModelError, match="quantized already"):
        load_model(path, ctx=ctx, bits=4)
    data = path.read_bytes()
    place = data.index(b"blk.1.ffn_down.weight") + len(b"blk.1.ffn_down.weight") + 20
    assert data[place : place + 4] == struct.pack("<I", 8)
    path.write_bytes(data[:place] + struct.pack("<I", 14) + data[place + 4 :])
    with pytest.raises(ModelError, match=r"blk\.1\.ffn_down\.weight.*of type 14"):
        load_model(path, ctx=ctx)

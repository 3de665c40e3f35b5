"""The encoder example computes what BERT does, whatever the lengths of a batch."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save

from examples.encoder import Encoder, ModelError, load, passages, search
from examples.encoder.__main__ import main
from examples.encoder.model import batches
from kerngen.runtime import Context

Arrays = dict[str, NDArray[Any]]
CONFIG: dict[str, Any] = {
    "model_type": "bert",
    "num_hidden_layers": 2,
    "hidden_size": 24,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "vocab_size": 61,
    "max_position_embeddings": 33,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "hidden_act": "gelu",
}
WORDS = (
    "[UNK] [CLS] [SEP] a kernel is scheduled by the host cats sleep on sofas".split()
)

_erf = np.vectorize(math.erf)


def make(folder: Path, prefix: str = "", **keys: Any) -> Arrays:
    """Write a random model; return its tensors."""
    config = CONFIG | keys
    rng = np.random.default_rng(0)
    width, hidden = config["hidden_size"], config["intermediate_size"]
    shapes = {
        "embeddings.word_embeddings": (config["vocab_size"], width),
        "embeddings.position_embeddings": (config["max_position_embeddings"], width),
        "embeddings.token_type_embeddings": (config["type_vocab_size"], width),
        "embeddings.LayerNorm": (width,),
        "pooler.dense": (width, width),
    }
    for number in range(config["num_hidden_layers"]):
        at = f"encoder.layer.{number}."
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            shapes[f"{at}attention.{name}"] = width, width
        shapes[at + "intermediate.dense"] = hidden, width
        shapes[at + "output.dense"] = width, hidden
        shapes[at + "attention.output.LayerNorm"] = (width,)
        shapes[at + "output.LayerNorm"] = (width,)
    tensors: Arrays = {}
    for name, shape in shapes.items():
        drawn = rng.normal(1.0 if "Norm" in name else 0.0, 0.3, shape)
        tensors[f"{name}.weight"] = drawn.astype(np.float32)
        if not name.endswith("_embeddings"):
            bias = rng.normal(0, 0.3, shape[:1])
            tensors[f"{name}.bias"] = bias.astype(np.float32)
    count: int = config["max_position_embeddings"]
    positions: NDArray[Any] = np.arange(count)[None]
    stored = {f"{prefix}{name}": array for name, array in tensors.items()}
    stored[prefix + "embeddings.position_ids"] = positions
    (folder / "model.safetensors").write_bytes(save(stored))
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    return tensors


def expected(w: Arrays, ids: list[int], heads: int = 3) -> NDArray[np.float64]:
    """The vector of a text by itself, in float64, by hand."""
    w = {name: array.astype(np.float64) for name, array in w.items()}

    def linear(x: Any, name: str) -> Any:
        return x @ w[name + ".weight"].T + w[name + ".bias"]

    def norm(x: Any, name: str) -> Any:
        apart = x - x.mean(-1, keepdims=True)
        size = np.sqrt((apart * apart).mean(-1, keepdims=True) + 1e-12)
        return apart / size * w[name + ".weight"] + w[name + ".bias"]

    words, places, kinds = (
        w[f"embeddings.{name}_embeddings.weight"]
        for name in ("word", "position", "token_type")
    )
    x = norm(words[ids] + places[: len(ids)] + kinds[0], "embeddings.LayerNorm")
    for number in range(sum(".output.dense.weight" in name for name in w) // 2):
        at = f"encoder.layer.{number}."
        q, k, v = (
            linear(x, f"{at}attention.self.{name}").reshape(len(ids), heads, -1)
            for name in ("query", "key", "value")
        )
        score = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(q.shape[-1])
        weight = np.exp(score - score.max(-1, keepdims=True))
        weight /= weight.sum(-1, keepdims=True)
        seen = np.einsum("hij,jhd->ihd", weight, v).reshape(len(ids), -1)
        h = linear(seen, at + "attention.output.dense")
        x = norm(x + h, at + "attention.output.LayerNorm")
        z = linear(x, at + "intermediate.dense")
        h = linear(0.5 * z * (1 + _erf(z / np.sqrt(2))), at + "output.dense")
        x = norm(x + h, at + "output.LayerNorm")
    mean = x.mean(0)
    result: NDArray[np.float64] = mean / np.linalg.norm(mean)
    return result


def texts_of(lengths: list[int]) -> list[list[int]]:
    rng = np.random.default_rng(1)
    return [
        rng.integers(0, CONFIG["vocab_size"], length).tolist() for length in lengths
    ]


@pytest.mark.parametrize("keys", [{}, {"num_attention_heads": 2, "hidden_size": 64}])
def test_texts_of_unequal_length(
    ctx: Context, tmp_path: Path, keys: dict[str, Any]
) -> None:
    tensors = make(tmp_path, prefix="bert." if keys else "", **keys)
    encoder = load(tmp_path, ctx=ctx)
    texts = texts_of([5, 33, 1, 17, 5])
    found = encoder.encode_ids(texts)
    for vector, ids in zip(found, texts, strict=True):
        want = expected(tensors, ids, encoder.sizes.heads)
        np.testing.assert_allclose(vector, want, rtol=0, atol=2e-6)
        np.testing.assert_allclose(encoder.encode_ids([ids])[0], vector, atol=1e-6)
    assert encoder.encode_ids([]).shape == (0, encoder.sizes.width)


def test_batches_are_of_like_lengths() -> None:
    lengths = [3, 9, 1, 9, 4, 20]
    found = [*batches(lengths, most=18)]
    assert found == [[5], [1, 3], [4, 0, 2]]
    assert [*batches([])] == []


def with_text(folder: Path) -> None:
    """Write a model of a few words."""
    make(folder, vocab_size=len(WORDS))
    tokenizers = pytest.importorskip("tokenizers")
    words = {word: number for number, word in enumerate(WORDS)}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    made.save(str(folder / "tokenizer.json"))


def test_search_finds_the_passage_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ctx: Context
) -> None:
    with_text(tmp_path)
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "one.md").write_text(
        "# Rest\n\ncats sleep on sofas\n\n```\nno cats\n\nhere\n```\n\n| a | table |\n",
        "utf-8",
    )
    (pages / "two.md").write_text("## Hosts\n\nthe host is\n\na kernel\n", "utf-8")
    among = [*passages(sorted(pages.glob("*.md")))]
    assert among == [
        ("one.md: Rest", "cats sleep on sofas"),
        ("two.md: Hosts", "the host is"),
        ("two.md: Hosts", "a kernel"),
    ]
    encoder: Encoder = load(tmp_path, ctx=ctx)
    best, *others = search(encoder, "a kernel", among, top=2)
    assert (best.text, round(best.score, 5)) == ("a kernel", 1.0)
    assert len(others) == 1
    command = [str(tmp_path), "the host is", "--pages", str(pages), "--top", "1"]
    assert main(command) == 0
    assert capsys.readouterr().out == "1.000  two.md: Hosts\n       the host is\n"
    assert main([str(tmp_path), "a", "--pages", str(tmp_path / "none")]) == 1
    assert "has no pages" in capsys.readouterr().err


def test_texts_that_are_refused(ctx: Context, tmp_path: Path) -> None:
    make(tmp_path)
    encoder = load(tmp_path, ctx=ctx)
    for texts, words in (
        ([[1], []], "Text 1 has 0 tokens; the model takes 1 to 33"),
        ([[1] * 34], "Text 0 has 34 tokens"),
        ([[1, 61]], "Text 0 has the id 61; the model has 61"),
        ([[-1, 3]], "Text 0 has the id -1"),
    ):
        with pytest.raises(ModelError, match=words):
            encoder.encode_ids(texts)
    with pytest.raises(ModelError, match=r"no tokenizer\.json"):
        encoder.encode(["a"])


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"model_type": "roberta"}, "model_type is 'roberta'"),
        ({"hidden_act": "relu"}, "hidden_act is 'relu'"),
        ({"num_attention_heads": 5}, "5 heads can't share 24 features"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is no positive number, but 0"),
        ({"num_hidden_layers": 1}, "which this example doesn't know"),
        ({"num_hidden_layers": 3}, "has no tensor 'encoder.layer.2.attention"),
        ({"vocab_size": 60}, r"is \[61, 24\], where config.json asks for \[60, 24\]"),
    ],
)
def test_folders_that_are_refused(
    ctx: Context, tmp_path: Path, keys: dict[str, Any], words: str
) -> None:
    make(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | keys), "utf-8")
    with pytest.raises(ModelError, match=words):
        load(tmp_path, ctx=ctx)
    with pytest.raises(ModelError, match="is no folder"):
        load(tmp_path / "none", ctx=ctx)

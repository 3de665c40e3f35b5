"""The decoder example computes what transformers does, and refuses what it can't use."""

from __future__ import annotations

import shutil
import signal
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save

from examples.qwen3 import (
    Model,
    ModelError,
    Sampler,
    Tokenizer,
    generate_ids,
    greedy,
    load,
    load_model,
    make_sampler,
    stream_generate,
)
from examples.qwen3.__main__ import main
from examples.qwen3.files import TensorFiles
from examples.qwen3.generation import prefill
from examples.qwen3.quantized import dequantize, quantize
from examples.qwen3.sampling import likeliest
from examples.qwen3.step import Step
from kerngen.runtime import Context, LateRead, f16, f32, u32
from tests.demos.decoders import (
    Arrays,
    Sizes,
    config_of,
    expected,
    make,
    write_json,
    write_text,
)
from tests.runtime.dispatches import watch_dispatches

RECORDED = Path(__file__).parent / "qwen3"

MOST_DISPATCHES = 9
"""Two norms' scales, four products, one for the heads, two for attention."""


def logits_of(model: Model, ids: NDArray[Any], pieces: int = 1) -> NDArray[Any]:
    """The logits of all positions, the ids fed in pieces."""
    cache = model.make_cache(len(ids))
    found = [
        model.head(model.hidden(model.ctx.vector(piece, u32), cache)).numpy()
        for piece in np.array_split(ids, pieces)
    ]
    return np.concatenate(found)


def apart(got: NDArray[Any], want: NDArray[Any]) -> float:
    """The largest difference, of the largest logit."""
    return float(np.abs(got - want).max() / np.abs(want).max())


@pytest.mark.parametrize("storage", [f32, f16])
def test_a_recorded_model(ctx: Context, storage: Any) -> None:
    """bf16 weights of this size lose nothing as f16."""
    model = load_model(RECORDED, ctx=ctx, storage=storage)
    recorded = np.load(RECORDED / "expected.npz")
    ids = recorded["ids"]
    assert apart(logits_of(model, ids), recorded["logits"]) < 1e-5
    tokens = generate_ids(model, ids.tolist(), max_tokens=len(recorded["tokens"]))
    assert tokens == recorded["tokens"].tolist()


def as_kept(tensors: Arrays, bits: Any) -> Arrays:
    """The tensors of a model as it computes with them, quantized; its head is a copy."""
    kept = dict(tensors)
    kept.setdefault("lm_head.weight", tensors["model.embed_tokens.weight"])
    for name, array in kept.items():
        half = array.astype(np.float16)
        if "embed" in name:
            kept[name] = half
        elif "norm" not in name:
            kept[name] = dequantize(*quantize(half, bits))
    return kept


@pytest.mark.parametrize(
    ("bits", "sizes"),
    [(4, Sizes(tied=True)), (8, Sizes("llama", width=72, hidden=50))],
    ids=str,
)
def test_quantized_weights(
    ctx: Context, tmp_path: Path, bits: Any, sizes: Sizes
) -> None:
    tensors = as_kept(make(tmp_path, sizes), bits)
    model = load_model(tmp_path, ctx=ctx, bits=bits)
    untied = replace(sizes, tied=False)
    ids = np.random.default_rng(1).integers(0, sizes.vocabulary, 20)
    assert apart(logits_of(model, ids), expected(untied, tensors, ids)) < 1e-5
    prompt = ids[:4].tolist()
    tokens = list(prompt)
    for _ in range(12):
        last = expected(untied, tensors, np.array(tokens))[-1]
        tokens.append(int(last.argmax()))
    assert generate_ids(model, prompt, max_tokens=12) == tokens[4:]


def test_quantized_weights_want_half(ctx: Context) -> None:
    with pytest.raises(ModelError, match="'storage' is f32"):
        load_model(RECORDED, ctx=ctx, storage=f32, bits=4)


@pytest.mark.parametrize(
    "sizes",
    [
        Sizes(),
        pytest.param(
            Sizes(tied=True, kv_heads=4, head_width=16), marks=pytest.mark.nightly
        ),
        pytest.param(
            Sizes("llama", layers=1, vocabulary=67), marks=pytest.mark.nightly
        ),
        Sizes("llama", kv_heads=1, width=30, hidden=17, tied=True),
        pytest.param(
            Sizes(
                width=64, heads=2, kv_heads=2, head_width=64, hidden=128, vocabulary=256
            ),
            marks=pytest.mark.nightly,
        ),
    ],
    ids=str,
)
def test_any_sizes(ctx: Context, tmp_path: Path, sizes: Sizes) -> None:
    tensors = make(tmp_path, sizes)
    model = load_model(tmp_path, ctx=ctx, storage=f32)
    ids = np.random.default_rng(1).integers(0, sizes.vocabulary, 40)
    want = expected(sizes, tensors, ids)
    assert apart(logits_of(model, ids), want) < 1e-5
    assert apart(logits_of(model, ids, pieces=3), want) < 1e-5
    assert apart(logits_of(model, ids[:1]), want[:1]) < 1e-5


def test_the_oracle_is_what_transformers_computes() -> None:
    files = TensorFiles(RECORDED)
    tensors: Arrays = {
        name: files.take(name, stored.shape, f32)
        for name, stored in dict(files.left).items()
    }
    recorded = np.load(RECORDED / "expected.npz")
    sizes = Sizes(tied=True, eps=1e-6, theta=10000.0)
    want = expected(sizes, tensors, recorded["ids"])
    assert apart(recorded["logits"], want) < 1e-6


def test_a_vocabulary_in_parts(
    ctx: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where an adapter binds less than the table has."""
    sizes = Sizes(tied=True)
    tensors = make(tmp_path, sizes)
    ids = np.random.default_rng(1).integers(0, sizes.vocabulary, 30)
    monkeypatch.setattr(Context, "max_tensor_bytes", 20 * 4 * sizes.width)
    model = load_model(tmp_path, ctx=ctx, storage=f32)
    monkeypatch.undo()
    assert [len(part) for part in model.weights.embedding.parts] == [16, 16, 16, 13]
    assert apart(logits_of(model, ids), expected(sizes, tensors, ids)) < 1e-5


def test_parts_of_a_model_in_files(ctx: Context, tmp_path: Path) -> None:
    tensors = make(tmp_path, Sizes())
    names = sorted(tensors)
    (tmp_path / "model.safetensors").unlink()
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, held in parts.items():
        (tmp_path / file).write_bytes(save({name: tensors[name] for name in held}))
    weights = {name: file for file, held in parts.items() for name in held}
    write_json(tmp_path / "model.safetensors.index.json", {"weight_map": weights})
    model = load_model(tmp_path, ctx=ctx, storage=f32)
    ids = np.arange(9)
    assert apart(logits_of(model, ids), expected(Sizes(), tensors, ids)) < 1e-5
    (tmp_path / "b.safetensors").unlink()
    with pytest.raises(ModelError, match=r"b\.safetensors can't be read"):
        load_model(tmp_path, ctx=ctx)


def change(folder: Path, **keys: Any) -> None:
    write_json(folder / "config.json", {**config_of(Sizes()), **keys})


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"model_type": "gpt2"}, "model_type is 'gpt2'"),
        ({"attention_bias": True}, "attention_bias is True"),
        ({"quantization_config": {"bits": 4}}, "doesn't know 'quantization_config'"),
        ({"rope_scaling": {"rope_type": "yarn"}}, "rope_type is 'yarn'"),
        ({"rope_parameters": {"rope_type": "llama3"}}, "rope_type is 'llama3'"),
        ({"hidden_size": 0}, "hidden_size is no positive number, but 0"),
        ({"num_key_value_heads": 3}, "4 heads can't share 3"),
        ({"layer_types": ["sliding_attention"] * 2}, "layer_types"),
        ({"intermediate_size": 41}, r"is \[40, 24\], where config.json asks"),
        ({"tie_word_embeddings": True, "num_hidden_layers": 1}, "which this example"),
        ({"num_hidden_layers": 3}, "has no tensor 'model.layers.2"),
        ({"eos_token_id": "x"}, "eos_token_id is 'x'"),
    ],
)
def test_configurations_that_are_refused(
    ctx: Context, tmp_path: Path, keys: dict[str, Any], message: str
) -> None:
    make(tmp_path, Sizes())
    change(tmp_path, **keys)
    with pytest.raises(ModelError, match=message):
        load_model(tmp_path, ctx=ctx)


def test_damaged_files_are_refused(ctx: Context, tmp_path: Path) -> None:
    make(tmp_path, Sizes())
    path = tmp_path / "model.safetensors"
    whole = path.read_bytes()
    for damage, message in {
        whole[:-8]: "are not all there",
        whole[:100]: "longer than the file",
        whole[:8] + b"x" + whole[9:]: "is no JSON",
    }.items():
        path.write_bytes(damage)
        with pytest.raises(ModelError, match=message):
            load_model(tmp_path, ctx=ctx)
    path.unlink()
    with pytest.raises(ModelError, match="can't be read"):
        load_model(tmp_path, ctx=ctx)
    with pytest.raises(ModelError, match="is no folder"):
        load_model(tmp_path / "nowhere", ctx=ctx)


def test_foreign_files_are_refused(ctx: Context, tmp_path: Path) -> None:
    tensors = make(tmp_path, Sizes())
    name, path = "model.layers.1.mlp.up_proj.weight", tmp_path / "model.safetensors"
    path.write_bytes(save({**tensors, name: tensors[name].astype(np.int32)}))
    with pytest.raises(ModelError, match=rf"{name}' in {path.name} is I32"):
        load_model(tmp_path, ctx=ctx)
    index = tmp_path / "model.safetensors.index.json"
    for found, message in [
        ({}, "has no weight_map"),
        ({"weight_map": {"x": path.name}}, f"{path.name} has no 'x', which"),
    ]:
        write_json(index, found)
        with pytest.raises(ModelError, match=message):
            load_model(tmp_path, ctx=ctx)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(ModelError, match=r"config\.json holds no object, but a list"):
        load_model(tmp_path, ctx=ctx)


def test_values_beyond_half_are_refused(ctx: Context, tmp_path: Path) -> None:
    tensors = make(tmp_path, Sizes())
    name = "model.layers.1.mlp.up_proj.weight"
    tensors[name][3, 4] = 1e6
    (tmp_path / "model.safetensors").write_bytes(save(tensors))
    with pytest.raises(ModelError, match=r"mlp\.up_proj.*beyond f16's largest, 65504"):
        load_model(tmp_path, ctx=ctx, storage=f16)
    load_model(tmp_path, ctx=ctx, storage=f32)


@pytest.fixture
def model(ctx: Context) -> Model:
    return load_model(RECORDED, ctx=ctx)


def test_prompts_that_are_refused(model: Model) -> None:
    for ids, count, message in [
        ([], 1, "The prompt is empty"),
        ([3, 61], 1, "has the id 61; the vocabulary has 61"),
        ([1] * 60, 6, "60 tokens of the prompt and 6 more are too many"),
        ([1], 0, "max_tokens is 1 or more"),
    ]:
        with pytest.raises(ModelError, match=message):
            generate_ids(model, ids, max_tokens=count)
    with pytest.raises(ModelError, match="no tokenizer"):
        next(stream_generate(model, None, "text"))
    with pytest.raises(ModelError, match="5 positions don't fit in a cache of 4"):
        next(stream_generate(model, None, [1] * 5, cache=model.make_cache(4)))


@pytest.mark.nightly
def test_the_longest_prompt_that_is_taken(model: Model) -> None:
    assert len(generate_ids(model, [1] * 60, max_tokens=5)) == 5


def test_it_ends_at_an_end_of_text(model: Model) -> None:
    tokens = generate_ids(model, [1, 2, 3], max_tokens=12)
    model.config = replace(model.config, eos=(tokens[4],))
    pieces = list(stream_generate(model, None, [1, 2, 3], max_tokens=12))
    assert [piece.token for piece in pieces] == tokens[: tokens.index(tokens[4]) + 1]
    assert [piece.reason for piece in pieces][-1] == "stop"


def test_a_conversation_goes_on_in_its_cache(model: Model) -> None:
    cache = model.make_cache(64)
    first = list(stream_generate(model, None, [5, 6, 7], max_tokens=4, cache=cache))
    said = [piece.token for piece in first]
    again = list(stream_generate(model, None, [said[-1], 9], max_tokens=4, cache=cache))
    assert [piece.token for piece in again] == generate_ids(
        model, [5, 6, 7, *said, 9], max_tokens=4
    )


@pytest.mark.parametrize(
    "sampler",
    [
        pytest.param(greedy, marks=pytest.mark.nightly),
        make_sampler(temperature=0.8, seed=5),
    ],
)
def test_a_captured_step_gives_the_tokens_of_its_calls(
    model: Model, sampler: Sampler
) -> None:
    prompt = [5, 6, 7, 8]
    cache = model.make_cache(64)
    tokens = [sampler(prefill(model, prompt, cache), 0)]
    for place in range(1, 40):
        tokens.append(sampler(model.logits(tokens[-1], cache), place))
    called = [int(token.numpy()[0]) for token in tokens]
    assert generate_ids(model, prompt, max_tokens=40, sampler=sampler) == called
    assert len(set(called)) > 3


@pytest.mark.parametrize("storage", [pytest.param(f32, marks=pytest.mark.nightly), f16])
def test_a_step_makes_no_objects(ctx: Context, storage: Any) -> None:
    model = load_model(RECORDED, ctx=ctx, storage=storage)
    cache = model.make_cache(40)
    token = greedy(prefill(model, [1, 2, 3], cache), 0)
    with closing(Step(model, cache, greedy, token)) as step:
        for place in range(1, 4):
            step.next(place).numpy()
        before = ctx.counters.snapshot()
        unknown = {name: cache.misses for name, cache in ctx.caches.items()}
        for place in range(4, 24):
            step.next(place).numpy()
        made = ctx.counters - before
        assert unknown == {name: cache.misses for name, cache in ctx.caches.items()}
        assert made.buffers_created == made.bind_groups_created == 0
        assert made.pipelines_created == made.uploads == 0
        assert made.dispatches % 20 == 0


def test_layers_share_the_memory_of_what_they_compute(
    ctx: Context, tmp_path: Path
) -> None:
    """Beside weights and cache there is what one layer computes, for a piece of a prompt."""
    sizes = Sizes(width=16, heads=1, kv_heads=1, hidden=1024, vocabulary=67)
    rows = 200
    make(tmp_path, sizes)
    model = load_model(tmp_path, ctx=ctx, storage=f32)
    cache, ids = model.make_cache(rows), ctx.vector([1] * rows, u32)
    ctx.trim()
    pool: Any = ctx.caches["storage"]
    before = pool.used_bytes
    model.hidden(ids, cache).numpy()
    pool.collect()
    beside = pool.used_bytes + pool.free_bytes - before
    opens, passes = 2 * 4 * rows * sizes.hidden, 4 * rows * sizes.hidden
    # A block may be a quarter larger; what is as wide as x, and shares of tiles, are small.
    assert beside < 1.25 * (opens + passes) + (1 << 20)


def test_a_layer_takes_few_dispatches(
    chosen_ctx: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A layer of a token, its attention over a cache with room included."""
    counts: list[int] = []
    for layers in (1, 2):
        make(tmp_path, Sizes(layers=layers, width=64, head_width=64, hidden=96))
        model = load_model(tmp_path, ctx=chosen_ctx, storage=f16)
        cache = model.make_cache(80)
        token = chosen_ctx.vector([3], u32)
        with monkeypatch.context() as patched:
            labels = watch_dispatches(chosen_ctx, patched)
            model.next_logits(token, cache)
        counts.append(len(labels))
    assert counts[1] - counts[0] == MOST_DISPATCHES


def test_a_new_model_takes_several_ids_for_captures(
    ctx: Context, tmp_path: Path
) -> None:
    make(tmp_path, Sizes())
    found: list[Any] = []
    for name in ("next_logits", "logits"):
        model = load_model(tmp_path, ctx=ctx, storage=f32)
        cache = model.make_cache(8)
        if name == "next_logits":
            cache.advance(5)
        ids = ctx.vector(np.arange(5), u32)
        found.append(getattr(model, name)(ids, cache).numpy()[-1])
    np.testing.assert_array_equal(*found)


def test_an_interrupt_leaves_the_context_usable(
    model: Model, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C in the middle of a step, as Python has it: between two of its own steps."""
    want, whole = generate_ids(model, [1, 2, 3], max_tokens=9), Step.next

    def interrupted(step: Step, place: int) -> LateRead:
        token = whole(step, place)
        if place == 5:
            signal.raise_signal(signal.SIGINT)
        return token

    with monkeypatch.context() as patched:
        patched.setattr(Step, "next", interrupted)
        pieces = stream_generate(model, None, [1, 2, 3], max_tokens=9)
        with pytest.raises(KeyboardInterrupt):
            list(pieces)
        assert main([str(RECORDED), "--ids", "1,2,3", "--max-tokens", "9"]) == 130
    assert capsys.readouterr().err.endswith("\nStopped.\n")
    assert generate_ids(model, [1, 2, 3], max_tokens=9) == want


def test_room_for_no_more_positions(model: Model) -> None:
    cache = model.make_cache(5)
    token = greedy(prefill(model, [1, 2, 3], cache), 0)
    with closing(Step(model, cache, greedy, token)) as step:
        step.next(1)
        step.next(2)
        with pytest.raises(ModelError, match="6 positions don't fit in a cache of 5"):
            step.next(3)
    assert cache.at.item() == cache.length == 5


def test_draws_follow_their_seed_and_the_probabilities(model: Model) -> None:
    logits = model.ctx.matrix(np.log([[0.1, 0.6, 0.3]]), f32)
    hot = make_sampler(temperature=1.0, seed=3)
    drawn = np.array([hot(logits, place).numpy()[0] for place in range(400)])
    shares = np.bincount(drawn, minlength=3) / len(drawn)
    np.testing.assert_allclose(shares, [0.1, 0.6, 0.3], atol=0.08)
    assert drawn[:9].tolist() == [hot(logits, place).numpy()[0] for place in range(9)]
    narrow = make_sampler(temperature=1.0, top_k=2, top_p=0.5)
    assert {int(narrow(logits, place).numpy()[0]) for place in range(20)} == {1}


def test_the_likeliest() -> None:
    logits = np.log(np.array([0.1, 0.4, 0.3, 0.2], np.float32))
    np.testing.assert_allclose(likeliest(logits, 1.0, 0, 1.0), [0.1, 0.4, 0.3, 0.2])
    np.testing.assert_allclose(likeliest(logits, 1.0, 2, 1.0), [0, 4 / 7, 3 / 7, 0])
    np.testing.assert_allclose(likeliest(logits, 1.0, 0, 0.65), [0, 4 / 7, 3 / 7, 0])
    np.testing.assert_allclose(likeliest(logits, 0.5, 1, 0.1), [0, 1, 0, 0])


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -1},
        {"temperature": 1, "top_k": -1},
        {"temperature": 1, "top_p": 0},
        {"temperature": 1, "top_p": 1.5},
        {"temperature": 1, "seed": -1},
        {"top_k": 5},
    ],
)
def test_samplers_that_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ModelError):
        make_sampler(**wrong)


def copy_recorded(folder: Path) -> None:
    """Give the recorded model a tokenizer of characters and a chat template."""
    shutil.copytree(RECORDED, folder, dirs_exist_ok=True)
    write_text(folder)


def test_text(ctx: Context, tmp_path: Path) -> None:
    copy_recorded(tmp_path)
    model, tokenizer = load(tmp_path, ctx=ctx)
    assert tokenizer is not None
    assert tokenizer.encode("cab") == [2, 0, 1]
    assert tokenizer.chat("ab") == tokenizer.encode("user. ab!")
    pieces = list(stream_generate(model, tokenizer, "cab", max_tokens=8))
    assert "".join(piece.text for piece in pieces) == tokenizer.decode(
        generate_ids(model, [2, 0, 1], max_tokens=8)
    )
    write_json(tmp_path / "tokenizer_config.json", {"chat_template": "{{ 1 / 0 }}"})
    with pytest.raises(ModelError, match="The chat template fails"):
        Tokenizer(tmp_path).chat("ab")
    write_json(tmp_path / "tokenizer_config.json", {})
    with pytest.raises(ModelError, match="no chat template"):
        Tokenizer(tmp_path).chat("ab")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match="is no tokenizer"):
        load(tmp_path, ctx=ctx)


def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ctx: Context
) -> None:
    copy_recorded(tmp_path)
    model, tokenizer = load(tmp_path, ctx=ctx)
    assert tokenizer is not None
    want = tokenizer.decode(generate_ids(model, [2, 0, 1], max_tokens=5))
    assert main([str(tmp_path), "--prompt", "cab", "--max-tokens", "5"]) == 0
    printed = capsys.readouterr()
    assert printed.out == want + "\n"
    assert "5 tokens, " in printed.err
    assert main([str(tmp_path), "--ids", "2,0,1", "--max-tokens", "5"]) == 0
    assert capsys.readouterr().out.startswith(want)
    assert (
        main(
            [
                str(tmp_path),
                "--chat",
                "--prompt",
                "ab",
                "--temperature",
                "1",
                "--top-k",
                "3",
                "--max-tokens",
                "5",
            ]
        )
        == 0
    )
    assert main([str(tmp_path), "--ids", "2,x"]) == 1
    assert "--ids are numbers" in capsys.readouterr().err
    assert main([str(tmp_path / "no"), "--prompt", "a"]) == 1
    assert "is no folder" in capsys.readouterr().err

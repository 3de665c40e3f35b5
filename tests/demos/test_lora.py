"""Fine-tuning a decoder by LoRA: its gradients, its steps, and the model that it leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread
from numpy.typing import NDArray

import kerngen.runtime as gpu
from examples.characters.record import RecordError
from examples.qwen3 import ModelError, load, load_model
from examples.qwen3.config import read_config
from examples.qwen3.lora.__main__ import main
from examples.qwen3.lora.adapters import TARGETS, Lora, pair_names
from examples.qwen3.lora.export import export
from examples.qwen3.lora.network import Network
from examples.qwen3.lora.run import Files, Run
from examples.qwen3.lora.training import Settings, Tokens, Training
from kerngen import nn
from kerngen.runtime import Context, f16, f32, u32
from kerngen.train import Trainer
from tests.demos.decoders import Arrays, Sizes, expected, make, write_text

ALL = Lora(rank=3, alpha=5.0, targets=TARGETS)
STEP = 1e-5
"""Of the central differences, in float64."""


@pytest.fixture(params=["reference", pytest.param("device", marks=pytest.mark.nightly)])
def either(request: pytest.FixtureRequest) -> Iterator[Context]:
    """A context of NumPy's twins; nightly, one of the software adapter, too.

    The shaders of a training step compile for ten seconds there, and each kernel's are
    compared with its twin elsewhere.
    """
    if request.param == "device":
        yield request.getfixturevalue("ctx")
        return
    with gpu.open(adapter="reference") as reference:
        yield reference


def merged(
    lora: Lora, tensors: Arrays, pairs: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[np.float64]]:
    """A model's tensors with its pairs added, by hand."""
    wide = {name: array.astype(np.float64) for name, array in tensors.items()}
    for name, matrix in wide.items():
        a, b = pair_names(name.removesuffix(".weight"))
        if a in pairs:
            added = pairs[b].astype(np.float64) @ pairs[a].astype(np.float64)
            wide[name] = matrix + lora.alpha / lora.rank * added
    return wide


def loss_of(
    sizes: Sizes, tensors: Arrays, ids: NDArray[Any], labels: NDArray[Any]
) -> float:
    """The mean cross entropy of a batch, in float64, by hand."""
    losses: list[float] = []
    for row, following in zip(ids, labels, strict=True):
        logits = expected(sizes, tensors, row)
        top = logits.max(-1, keepdims=True)
        total = np.log(np.exp(logits - top).sum(-1)) + top[:, 0]
        losses += list(total - logits[np.arange(len(row)), following])
    return float(np.mean(losses))


@pytest.mark.parametrize(
    "sizes",
    [
        Sizes(layers=2),
        pytest.param(
            Sizes("llama", layers=1, kv_heads=1, tied=True), marks=pytest.mark.nightly
        ),
    ],
    ids=str,
)
def test_gradients_are_differences_of_the_loss(
    either: Context, tmp_path: Path, sizes: Sizes
) -> None:
    tensors = make(tmp_path, sizes)
    model = load_model(tmp_path, ctx=either, storage=f32)
    rng = np.random.default_rng(1)
    pairs = {
        name: rng.normal(0, 0.2, array.shape).astype(np.float32)
        for name, array in ALL.initial(model.config, 0).items()
    }
    ids, labels = rng.integers(0, sizes.vocabulary, (2, 2, 7)).astype(np.uint32)
    trainer = Trainer(either, pairs)
    network = Network(model, ALL, 7)
    logits = network.logits(trainer.parameters, either.tensor(ids, u32))
    loss = nn.cross_entropy(logits, labels)
    trainer.backward(loss)

    def moved(name: str, way: NDArray[np.float64]) -> float:
        there: dict[str, NDArray[Any]] = {**pairs, name: pairs[name] + way}
        return loss_of(sizes, merged(ALL, tensors, there), ids, labels)

    assert loss.item() == pytest.approx(
        moved(next(iter(pairs)), np.zeros(())), rel=1e-6
    )
    for name, array in pairs.items():
        way = rng.normal(size=array.shape)
        slope = (moved(name, STEP * way) - moved(name, -STEP * way)) / (2 * STEP)
        gradient = trainer.gradients[name].numpy().astype(np.float64)
        size = np.linalg.norm(gradient) * np.linalg.norm(way)
        assert abs((gradient * way).sum() - slope) < 1e-5 * size, name


SETTINGS = Settings(
    lora=Lora(rank=4, targets=("q_proj", "o_proj", "down_proj")),
    context=8,
    batch=4,
    steps=12,
    warmup=2,
    learning_rate=3e-2,
)


def repeated() -> Tokens:
    """A text that repeats itself: there is something to learn."""
    ids = np.tile(np.random.default_rng(2).integers(0, 61, 20), 20).astype(np.uint32)
    return Tokens(ids[:300], ids[300:])


def test_it_learns_and_goes_on_bit_for_bit(either: Context, tmp_path: Path) -> None:
    """A run of 12 steps, and one of 5 and 7 with a checkpoint between them."""
    make(tmp_path, Sizes(layers=1))
    model = load_model(tmp_path, ctx=either, storage=f32)
    checkpoint = tmp_path / "run.safetensors"
    whole = Run(Training(model, repeated(), SETTINGS), Files(), str)
    whole.finish()
    first, last = whole.curve.validation[0][1], whole.curve.validation[-1][1]
    assert last < 0.7 * first
    half = Training(model, repeated(), SETTINGS)
    files = Files(checkpoint=checkpoint)
    for _ in range(5):
        half.take_step()
    Run(half, files).save()
    resumed = Training(model, repeated(), SETTINGS)
    run = Run(resumed, replace(files, resume=True), str)
    assert resumed.step == 5
    run.finish()
    other = resumed.trainer.state()
    for name, array in whole.training.trainer.state().items():
        assert array.tobytes() == other[name].tobytes(), name
    assert run.curve.validation[-1] == (12, last)
    wrong = Training(model, repeated(), replace(SETTINGS, seed=1))
    with pytest.raises(RecordError, match="seed was 0, is 1"):
        Run(wrong, replace(files, resume=True))


def test_the_merged_model_gives_the_same_logits(
    either: Context, tmp_path: Path
) -> None:
    source, goal = tmp_path / "source", tmp_path / "tuned"
    source.mkdir()
    make(source, Sizes(layers=1))
    write_text(source)
    model = load_model(source, ctx=either, storage=f32)
    rng = np.random.default_rng(1)
    pairs = {
        name: rng.normal(0, 0.2, array.shape).astype(np.float32)
        for name, array in ALL.initial(model.config, 0).items()
    }
    export(source, goal, ALL, pairs)
    ids = rng.integers(0, 61, 9).astype(np.uint32)
    tensors = Trainer(either, pairs).tensors
    want = Network(model, ALL, 9).logits(tensors, either.tensor(ids[None], u32))
    tuned, tokenizer = load(goal, ctx=either, storage=f32)
    assert tokenizer is not None
    got = tuned.head(tuned.hidden(either.vector(ids, u32), tuned.make_cache(9)))
    np.testing.assert_allclose(got.numpy(), want.numpy()[0], rtol=0, atol=3e-5)
    with pytest.raises(ModelError, match="tuned exists: name another folder"):
        export(source, goal, ALL, pairs)


def test_models_that_are_refused(
    either: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, Sizes(layers=1))
    half = load_model(tmp_path, ctx=either, storage=f16)
    with pytest.raises(ModelError, match="need weights in f32"):
        Network(half, ALL, 8)
    single = load_model(tmp_path, ctx=either, storage=f32)
    with pytest.raises(ModelError, match="the model has 1 to 300"):
        Network(single, ALL, 301)
    monkeypatch.setattr(Context, "max_tensor_bytes", 20 * 4 * Sizes.width)
    parts = load_model(tmp_path, ctx=either, storage=f32)
    with pytest.raises(ModelError, match="The vocabulary is in 4 parts"):
        Network(parts, ALL, 8)


COMMAND = "--context 8 --batch 2 --steps 4 --validate-every 2 --characters 4000".split()


def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNGEN_ADAPTER", "reference")
    source = tmp_path / "model"
    source.mkdir()
    make(source, Sizes(layers=1))
    write_text(source)
    files = {name: tmp_path / name for name in ("run", "export", "plot")}
    options = [
        part for name in ("export", "plot") for part in (f"--{name}", files[name])
    ]
    given = [
        str(each) for each in (source, *COMMAND, *options, "--checkpoint", files["run"])
    ]
    assert main(given) == 0
    printed = capsys.readouterr().out
    assert "step    4 of 4: validation loss" in printed
    assert imread(files["plot"]).std() > 0.05
    assert read_config(files["export"]) == read_config(source)
    assert main(given) == 1
    assert "exists: go on from it with --resume" in capsys.readouterr().err
    assert main([str(source), *COMMAND, "--context", "5000"]) == 1
    assert "too little for rows of 5000 tokens" in capsys.readouterr().err

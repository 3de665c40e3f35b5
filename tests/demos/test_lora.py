"""Fine-tuning a decoder by LoRA: its gradients, its steps, and the model that it leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kerngen.runtime as gpu
from examples.qwen3 import load_model
from examples.qwen3.lora.adapters import TARGETS, Lora, pair_names
from examples.qwen3.lora.network import Network
from kerngen import nn
from kerngen.runtime import Context, f32, u32
from kerngen.train import Trainer
from tests.demos.decoders import Arrays, Sizes, expected, make

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
    for name in wide:
        a, b = pair_names(name.removesuffix(".weight"))
        if a in pairs:
            added = pairs[b].astype(np.float64) @ pairs[a].astype(np.float64)
            wide[name] = wide[name] + lora.alpha / lora.rank * added
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
        there = {**pairs, name: pairs[name] + way}
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

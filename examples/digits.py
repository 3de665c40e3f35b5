"""Train a small network on scikit-learn's handwritten digits, all of it by kernels.

Two linear layers with a gelu between them, softmax cross-entropy, gradients clipped by
their global norm, AdamW.  Every forward, backward and update step is a generated kernel;
the host only shuffles the samples and, once per epoch, reads the scores of the test set.

    python examples/digits.py --epochs 12

`--save FILE` keeps the trained network as safetensors; examples/web has a page for it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from safetensors.numpy import save

import kerngen.runtime as gpu
from kerngen.runtime import Context, Matrix, Vector, f32, u32
from kerngen_kernels import clip, elementwise, loss, matmul, nn, optim, reduction

PIXELS, HIDDEN, CLASSES = 64, 128, 10
BATCH = 64
LEARNING_RATE = 3e-3
MAX_NORM = 1.0
REQUIRED_ACCURACY = 0.95


@final
@dataclass(frozen=True)
class Samples:
    """Images, one row of pixels each, and the digits that they show."""

    images: NDArray[np.float32]
    labels: NDArray[np.uint32]

    def shuffled(self, rng: np.random.Generator) -> Samples:
        """The same samples in another order."""
        order = rng.permutation(len(self.labels))
        return Samples(self.images[order], self.labels[order])


def load_samples(rng: np.random.Generator) -> tuple[Samples, Samples]:
    """Return the samples to train with and those to test with, four to one."""
    # scikit-learn has no type information.
    digits: Any = import_module("sklearn.datasets").load_digits()
    images = (digits.data / 16).astype(np.float32)
    samples = Samples(images, digits.target.astype(np.uint32)).shuffled(rng)
    test = len(samples.labels) // 5
    return (
        Samples(samples.images[test:], samples.labels[test:]),
        Samples(samples.images[:test], samples.labels[:test]),
    )


@final
class Parameter:
    """A tensor to be trained, flat, with AdamW's two moments."""

    def __init__(self, ctx: Context, initial: NDArray[np.float32]) -> None:
        """Upload the initial values; the moments start as zeros."""
        self.value = ctx.vector(initial.reshape(-1), f32)
        self.m = ctx.zeros(initial.size, f32)
        self.v = ctx.zeros(initial.size, f32)

    def update(self, gradient: Vector[f32], step: int) -> None:
        """Take one AdamW step."""
        optim.adamw(self.value, gradient, self.m, self.v, lr=LEARNING_RATE, step=step)


@final
class Linear:
    """A layer `y = x W^T + b`, with W of shape `[outputs, inputs]`."""

    def __init__(
        self, ctx: Context, inputs: int, outputs: int, rng: np.random.Generator
    ) -> None:
        """Draw the weights (Glorot and Bengio, 2010); the bias starts as zeros."""
        limit = np.sqrt(6 / (inputs + outputs))
        weight = rng.uniform(-limit, limit, (outputs, inputs)).astype(np.float32)
        self.weight = Parameter(ctx, weight)
        self.bias = Parameter(ctx, np.zeros(outputs, np.float32))
        self.w: Matrix[f32] = self.weight.value.reshape((outputs, inputs))
        self.b: Vector[f32] = self.bias.value

    def gradients(
        self, x: Matrix[f32], dy: Matrix[f32]
    ) -> tuple[Vector[f32], Vector[f32]]:
        """Return the gradients by weight and bias, flat."""
        return matmul.matmul_tn(dy, x).reshape(-1), nn.column_sum(dy)


@final
class Network:
    """Two linear layers with a gelu between them."""

    def __init__(self, ctx: Context, rng: np.random.Generator) -> None:
        """Draw the initial weights."""
        self.hidden = Linear(ctx, PIXELS, HIDDEN, rng)
        self.output = Linear(ctx, HIDDEN, CLASSES, rng)
        self.d_loss = ctx.scalar(1.0, f32)
        self.steps = 0

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """All that is trained."""
        return tuple(
            p for lin in (self.hidden, self.output) for p in (lin.weight, lin.bias)
        )

    def scores(self, x: Matrix[f32]) -> Matrix[f32]:
        """Return the logits of a batch: two dispatches, the gelu fused into the first."""
        activity = matmul.matmul_nt_bias_gelu(x, self.hidden.w, self.hidden.b)
        return matmul.matmul_nt_bias(activity, self.output.w, self.output.b)

    def train(self, x: Matrix[f32], labels: Vector[u32]) -> None:
        """Take one step on a batch: forward, backward, clip, update."""
        gradients = self._gradients(x, labels)
        clip_global_norm(gradients, MAX_NORM)
        self.steps += 1
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.update(gradient, self.steps)

    def save(self, file: Path) -> None:
        """Write weights and biases as safetensors."""
        layers = {"hidden": self.hidden, "output": self.output}
        tensors = {
            f"{name}.{part}": tensor.numpy()
            for name, layer in layers.items()
            for part, tensor in (("weight", layer.w), ("bias", layer.b))
        }
        file.write_bytes(save(tensors))

    def _gradients(self, x: Matrix[f32], labels: Vector[u32]) -> list[Vector[f32]]:
        """Return the gradients of the mean loss, in the order of `parameters`."""
        z = matmul.matmul_nt_bias(x, self.hidden.w, self.hidden.b)
        activity = elementwise.gelu(z.reshape(-1)).reshape((z.shape[0], HIDDEN))
        scores = matmul.matmul_nt_bias(activity, self.output.w, self.output.b)
        d_scores = loss.mean_cross_entropy_gradient(scores, labels, self.d_loss)
        d_activity = matmul.matmul_nn(d_scores, self.output.w)
        d_z = nn.gelu_gradient(z.reshape(-1), d_activity.reshape(-1))
        return [
            *self.hidden.gradients(x, d_z.reshape((z.shape[0], HIDDEN))),
            *self.output.gradients(activity, d_scores),
        ]


def clip_global_norm(gradients: Sequence[Vector[f32]], max_norm: float) -> None:
    """Scale the gradients so that their norm, taken together, is at most `max_norm`."""
    total = reduction.sum_squares(gradients[0])
    for gradient in gradients[1:]:
        clip.add_sum_squares(total, gradient)
    for gradient in gradients:
        clip.clip_by_norm(gradient, total, max_norm=max_norm)


@final
@dataclass(frozen=True)
class Score:
    """How well the network does on the test set."""

    loss: float
    accuracy: float

    def __str__(self) -> str:
        """One line for a person."""
        return f"test loss {self.loss:.4f}, test accuracy {self.accuracy:.2%}"


def evaluate(
    network: Network,
    images: Matrix[f32],
    labels: Vector[u32],
    truth: NDArray[np.uint32],
) -> Score:
    """Run the test set through the network."""
    scores = network.scores(images)
    mean_loss = reduction.mean(loss.cross_entropy(scores, labels))
    guesses = scores.numpy().argmax(axis=1)
    return Score(float(mean_loss.item()), float((guesses == truth).mean()))


def fit(
    ctx: Context,
    epochs: int,
    seed: int,
    report: Callable[[int, Score], None],
    file: Path | None = None,
) -> Score:
    """Train and return the final score, reporting one after each epoch.

    The network is written to a file, if there is one.
    """
    rng = np.random.default_rng(seed)
    train, test = load_samples(rng)
    network = Network(ctx, rng)
    images, labels = ctx.matrix(train.images, f32), ctx.vector(train.labels, u32)
    test_images, test_labels = ctx.matrix(test.images, f32), ctx.vector(
        test.labels, u32
    )
    score = evaluate(network, test_images, test_labels, test.labels)
    for epoch in range(1, epochs + 1):
        samples = train.shuffled(rng)
        images.copy_from(samples.images)
        labels.copy_from(samples.labels)
        for start in range(0, len(samples.labels), BATCH):
            stop = min(start + BATCH, len(samples.labels))
            network.train(images[start:stop], labels[start:stop])
        score = evaluate(network, test_images, test_labels, test.labels)
        report(epoch, score)
    if file:
        network.save(file)
    return score


def fit_with_progress(
    ctx: Context, epochs: int, seed: int, console: Console, file: Path | None
) -> Score:
    """Train under a progress bar, or with a line per epoch where there is no terminal."""
    columns = (
        TextColumn("epoch"),
        MofNCompleteColumn(),
        BarColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=epochs)

        def report(epoch: int, score: Score) -> None:
            bar.update(task, completed=epoch, description=str(score))
            if bar.disable:
                print(f"epoch {epoch:2} of {epochs}: {score}", flush=True)

        return fit(ctx, epochs, seed, report, file)


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, say how it went, and return 0 if the accuracy is as it should be."""
    parser = argparse.ArgumentParser(
        description="Train a network on digits by kernels."
    )
    parser.add_argument("--epochs", type=int, default=12, help="default: 12")
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    parser.add_argument("--save", type=Path, metavar="FILE", help="as safetensors")
    options = parser.parse_args(arguments)
    with gpu.open() as ctx:
        print(f"Adapter: {ctx.adapter_name} ({ctx.kind})", flush=True)
        start = time.perf_counter()
        score = fit_with_progress(
            ctx, options.epochs, options.seed, Console(), options.save
        )
        seconds = time.perf_counter() - start
        done = ctx.counters
        print(
            f"{done.calls} kernel calls, {done.dispatches} dispatches, {seconds:.1f} s"
        )
    print(f"Result: {score}")
    if score.accuracy <= REQUIRED_ACCURACY:
        print(f"That is not above {REQUIRED_ACCURACY:.0%}.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

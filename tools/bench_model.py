"""Time a decoder of text with random weights at full size, as examples/qwen3 runs it.

    python -m tools.bench_model --sizes 0.6B 4B --storage f16 i4         # on a GPU
    python -m tools.bench_model --peers torch                            # beside PyTorch
    python -m tools.bench_model --sizes tiny --software --prompt 40      # tries the tool

Weights are a random block, repeated: none are read from files, and none need to be good.
"a token" is the time between two tokens that are read; "device" is the device's own time,
and the share is that of the bytes that a token must read, at the bandwidth of the memory.
"""

from __future__ import annotations

import argparse
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final, Literal

import numpy as np

import kerngen.runtime as gpu
from examples.qwen3 import Cache, Config, Model, generation, greedy
from examples.qwen3.arenas import Arenas
from examples.qwen3.model import Layer, Table, Weight, Weights
from examples.qwen3.quantized import BLOCK, Quantized, kinds_of
from examples.qwen3.step import Step
from kerngen.runtime import Context, Matrix, f16, f32, i4, i8, u32
from tools.bench_model_torch import time_peer

SIZES: Final = {
    # layers, width, heads, heads of keys, width of a head, hidden, vocabulary
    "0.6B": (28, 1024, 16, 8, 128, 3072, 151936),
    "1.7B": (28, 2048, 16, 8, 128, 6144, 151936),
    "4B": (36, 2560, 32, 8, 128, 9728, 151936),
    "tiny": (2, 64, 4, 2, 16, 96, 500),
}
STORAGE: Final = {"f32": f32, "f16": f16, "i8": i8, "i4": i4}
RANDOM: Final = 1 << 22
"""So many different weights: they lie in no cache, repeated or not."""

WARM: Final = 8
WAITING: Final = 3
"""So many tokens are recorded before one is read, as `generate` does it."""


def config_of(size: str) -> Config:
    """Return the sizes of a model of the Qwen3 family."""
    layers, width, heads, kv_heads, head_width, hidden, vocabulary = SIZES[size]
    return Config(
        family="qwen3",
        layers=layers,
        width=width,
        heads=heads,
        kv_heads=kv_heads,
        head_width=head_width,
        hidden=hidden,
        vocabulary=vocabulary,
        positions=40960,
        eps=1e-6,
        theta=1e6,
        tied=True,
    )


class RandomWeights:
    """Makes matrices on the device out of random blocks, one for each type."""

    def __init__(self, ctx: Context, config: Config, element: Any) -> None:
        """Begin with no block."""
        self._ctx = ctx
        self._arenas = Arenas(ctx, config.layers, kinds_of(config, element))
        self._blocks: dict[Any, Any] = {}

    def matrix(self, rows: int, columns: int, element: Any) -> Weight:
        """Return a matrix of a layer; with scales, if it is quantized."""
        return self._matrix(self._arenas, rows, columns, element)

    def table(self, rows: int, columns: int, element: Any) -> Table:
        """Return a table of the vocabulary; with scales, if it is quantized."""
        return Table((self._matrix(self._ctx, rows, columns, element),), (0,))

    def _matrix(
        self, of: Context | Arenas, rows: int, columns: int, element: Any
    ) -> Weight:
        codes = self._filled(of, rows, columns, element)
        if element in (f16, f32):
            return codes
        return Quantized(codes, self._filled(of, rows, -(-columns // BLOCK), f16))

    def _filled(
        self, of: Context | Arenas, rows: int, columns: int, element: Any
    ) -> Matrix[Any]:
        whole = of.empty((rows, columns), element)
        flat, block = whole.reshape(-1), self._block(element)
        for start in range(0, rows * columns, RANDOM):
            stop = min(start + RANDOM, rows * columns)
            flat[start:stop].copy_from(block[: stop - start])
        return whole

    def _block(self, element: Any) -> Any:
        if element not in self._blocks:
            rng = np.random.default_rng(1)
            if element in (f16, f32):
                values: Any = rng.standard_normal(RANDOM, np.float32) * 0.02
            else:
                most = 8 if element is i4 else 128
                values = rng.integers(-most, most, RANDOM, np.int8)
            self._blocks[element] = self._ctx.vector(values, element)
        return self._blocks[element]


def random_model(ctx: Context, config: Config, element: Any) -> Model:
    """Return a model whose matrices are of a type, but for the embedding of quantized ones."""
    make = RandomWeights(ctx, config, element)
    width, head = config.width, config.head_width
    qkv, output, gated, down = config.matrices
    ones = ctx.vector(np.ones(width), f32)

    def layer() -> Layer:
        return Layer(
            input_gain=ones,
            qkv=make.matrix(*qkv, element),
            head_gain=ctx.matrix(np.ones((2, head)), f32),
            output=make.matrix(*output, element),
            hidden_gain=ones,
            gated=make.matrix(*gated, element),
            down=make.matrix(*down, element),
        )

    storage = element if element is f32 else f16
    embedding = make.table(config.vocabulary, width, storage)
    layers = tuple(layer() for _ in range(config.layers))
    lies = element is not storage
    last = make.table(config.vocabulary, width, element) if lies else embedding
    return Model(ctx, config, Weights(embedding, layers, ones, last))


def bytes_read(model: Model, length: int) -> int:
    """Return what a token at a position must read: matrices, and keys and values so far."""
    weights, config = model.weights, model.config
    count = weights.nbytes
    if weights.head is not weights.embedding:
        count -= sum(part.nbytes for part in weights.embedding.parts)
    return count + 8 * config.layers * length * config.kv_heads * config.head_width


def used_memory() -> int | None:
    """Return the bytes of the GPU's memory in use; None where its driver has no tool."""
    command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        found = subprocess.run(  # noqa: S603 - fixed words
            command, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return int(found.stdout.split()[0]) << 20


def time_model(ctx: Context, size: str, storage: str, options: Any) -> None:
    """Print a model's figures, each as soon as it is known."""
    before, start = used_memory(), time.perf_counter()
    model = random_model(ctx, config_of(size), STORAGE[storage])
    ctx.read(model.weights.layers[-1].hidden_gain)
    name, gigabytes = f"{size:5} {storage:4}", model.weights.nbytes / 1e9
    took = time.perf_counter() - start
    print(f"{name} {gigabytes:.2f} GB of weights, made in {took:.1f} s", flush=True)
    cache = model.make_cache(options.prompt + 2 * options.tokens + 2 * WARM)
    rng = np.random.default_rng(2)
    token = ctx.zeros(1, u32)
    lengths: tuple[int, ...] = (64, options.prompt)
    for cached in lengths:
        prompt: list[int] = rng.integers(0, model.config.vocabulary, cached).tolist()
        for run in ("first", "again"):
            cache.length = 0
            cache.at.clear()
            start = time.perf_counter()
            greedy(generation.prefill(model, prompt, cache), 0, out=token).numpy()
            took = time.perf_counter() - start
            print(
                f"{name} prompt of {len(prompt):5}, {run}: token after "
                f"{took * 1e3:8.1f} ms, {len(prompt) / took:8.0f} tokens/s",
                flush=True,
            )
        for line in decoding(model, cache, token, options):
            print(f"{name} at {cached:5}: {line}", flush=True)
    if options.profile:
        with ctx.profile() as profile:
            greedy(model.next_logits(token, cache), 0)
        print(profile.table(), flush=True)
    after = used_memory()
    if before is not None and after is not None:
        kept = 2 * model.config.layers * cache.keys[0].nbytes
        rest = (after - before - model.weights.nbytes - kept) / 1e6
        print(f"{name} memory: weights, {kept / 1e6:.0f} MB of cache, {rest:.0f} MB")


def decoding(model: Model, cache: Cache, token: Any, options: Any) -> Iterator[str]:
    """Yield the speed of decoding: by the clock on the wall, then by the device's."""
    ctx, count = model.ctx, options.tokens
    ids = ctx.zeros(1, u32)
    with closing(Step(model, cache, greedy, token)) as step:
        waiting = [step.next(place) for place in range(WARM)]
        waiting.pop().numpy()
        waiting.clear()
        before, start = ctx.counters.snapshot(), time.perf_counter()
        for place in range(count):
            waiting.append(step.next(place))
            if len(waiting) == WAITING:
                waiting.pop(0).numpy()
        waiting.pop().numpy()
        took = (time.perf_counter() - start) / count
        made = ctx.counters - before
        yield (
            f"{1 / took:7.1f} tokens/s, {took * 1e3:6.3f} ms a token, "
            f"{made.dispatches / count:.0f} dispatches"
        )
    with ctx.capture() as captured:
        greedy(model.next_logits(ids, cache), 0, out=ids)
    with closing(captured):
        captured.replay(times=WARM)
        with ctx.timed() as span:
            captured.replay(times=count - WARM)
        device = span.seconds / (count - WARM)
    read = bytes_read(model, cache.length + count // 2)
    rate = read / device / 1e9
    yield (
        f"device {device * 1e3:6.3f} ms a token, {read / 1e9:.2f} GB of it: "
        f"{rate:.0f} GB/s, {rate / options.bandwidth:.0%} of the memory's"
    )


def main() -> None:
    """Time what the arguments ask for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["0.6B", "4B"])
    parser.add_argument(
        "--storage", nargs="*", choices=STORAGE, default=["f16", "i8", "i4"]
    )
    parser.add_argument("--prompt", type=int, default=2048, help="the long prompt")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--bandwidth", type=float, default=4300, help="GB/s")
    parser.add_argument("--peers", nargs="*", choices=["torch"], default=[])
    parser.add_argument("--unchecked", action="store_true", help="no checks of wgpu's")
    parser.add_argument("--profile", action="store_true", help="of a token")
    parser.add_argument("--software", action="store_true")
    options = parser.parse_args()
    adapter: Literal["software", "gpu"] = "software" if options.software else "gpu"
    for size in options.sizes:
        for storage in options.storage:
            with gpu.open(adapter=adapter, unchecked=options.unchecked) as ctx:
                time_model(ctx, size, storage, options)
        if options.peers:
            time_peer(size, config_of(size), options)


if __name__ == "__main__":
    main()

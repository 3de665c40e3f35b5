"""Time the parts of a step of data-parallel training, and what several GPUs bring.

    python -m tools.bench_distributed                                   # one process
    torchrun --standalone --nproc-per-node 2 -m tools.bench_distributed
    torchrun --standalone --nproc-per-node 2 -m tools.bench_distributed \
        --engine host nccl --wire f32 f16 --alone 1.23
    torchrun --standalone --nproc-per-node 2 -m tools.bench_distributed --sharded
    mpiexec -n 2 python -m mpi4py -m tools.bench_distributed

It trains a transformer of 100 million parameters on random characters, 8 batches for each
step.  Efficiency is the time of a step of one process, which the first command measures and
`--alone` names, over that of a step with exchange.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from importlib import import_module
from itertools import product
from typing import Any, Final, final

import numpy as np

import kerngen.runtime as gpu
from examples.characters.distributed import Arrays, Ranks, joined
from examples.characters.model import Sizes, scores
from kerngen import nn
from kerngen.runtime import Tensor, f32, u32
from kerngen.train import Exchange, ProcessGroup, Trainer, Wire
from kerngen_kernels import elementwise

LABELS: Final = ("compute", "read", "wait", "reduce", "write", "step", "whole")
"""The parts of a step.

`read` and `write` include the search for what is not finite; `wait` is for the other ranks,
and includes the exchange of their notes.  `step` includes the gathering of parameters where
the optimizer is sharded.
"""


@final
@dataclass
class Clock:
    """Seconds of the parts of each step; `since` is when the current one began."""

    parts: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    since: float = 0.0

    def start(self) -> None:
        """Begin a part."""
        self.since = time.perf_counter()

    def note(self, part: str) -> None:
        """End a part, and begin the next one."""
        now = time.perf_counter()
        self.parts.setdefault(part, []).append(now - self.since)
        self.since = now

    def medians(self) -> dict[str, float]:
        """The median of each part."""
        return {name: statistics.median(all_) for name, all_ in self.parts.items()}


@final
class Work:
    """A network, its batches, and a step that is timed."""

    def __init__(
        self, ctx: gpu.Context, ranks: Ranks, given: argparse.Namespace
    ) -> None:
        """Upload parameters and batches."""
        self.ctx, self.given, self.clock = ctx, given, Clock()
        self.sizes = Sizes(
            256, given.context, given.width, given.width // 64, given.layers
        )
        timed = replace(ranks.group, all_reduce=self._timed(ranks.group.all_reduce))
        group = timed if ranks.group.size > 1 else None
        self.trainer = Trainer(
            ctx, self.sizes.initial(0), group=group, sharded=given.sharded
        )
        rng = np.random.default_rng(ranks.rank)
        shape: tuple[int, int] = (given.rows, given.context)
        self.batches = [
            [ctx.tensor(rng.integers(0, 256, shape), u32) for _ in range(2)]
            for _ in range(given.batches)
        ]
        self.share = 1 / (given.batches * ranks.group.size)
        """What a batch counts for: so that sums over all ranks are the mean."""
        self.places = ctx.tensor(np.arange(shape[1]), u32)
        self.sum: Tensor[f32, Any] = ctx.zeros(1, f32)

    @property
    def parameters(self) -> int:
        """How many numbers are trained."""
        return sum(tensor.size for tensor in self.trainer.tensors.values())

    def wait(self) -> float:
        """Wait for the device, and return the sum of the losses."""
        return float(self.sum.numpy()[0])

    def compute(self) -> None:
        """Compute the gradients of all batches, and wait for them."""
        for number, (given, following) in enumerate(self.batches):
            guesses = scores(self.trainer.parameters, self.sizes, given, self.places)
            loss = nn.scale(nn.cross_entropy(guesses, following), self.share)
            elementwise.axpy(loss.tensor.reshape(1), self.sum, alpha=1.0)
            self.trainer.backward(loss, accumulate=number > 0)
            self.ctx.submit()
        self.wait()

    def take_step(self, function: Exchange | None, wire: Wire) -> None:
        """Take a step, and note its parts."""
        clock = self.clock
        begin = time.perf_counter()
        clock.start()
        self.compute()
        clock.note("compute")
        if function is not None:

            def timed(arrays: Arrays) -> None:
                function(arrays)
                clock.note("reduce")

            self.trainer.exchange(timed, wire=wire)
            self.wait()
            clock.note("write")
        self.trainer.clip_gradients(1.0)
        self.trainer.adamw_step(lr=1e-4)
        self.wait()
        clock.note("step")
        clock.since = begin
        clock.note("whole")

    def _timed(self, all_reduce: Exchange) -> Exchange:
        """Return the group's function, by which ranks wait for each other, timed."""

        def run(arrays: Arrays) -> None:
            self.clock.note("read")
            all_reduce(arrays)
            self.clock.note("wait")

        return run

    def measure(
        self, function: Exchange | None, wire: Wire = "f32"
    ) -> dict[str, float]:
        """Return the median seconds of each part of a step."""
        for number in range(self.given.steps + 1):
            if number == 1:  # the first one compiles shaders
                self.clock = Clock()
            self.take_step(function, wire)
        return self.clock.medians()


def by_nccl(ranks: Ranks) -> Exchange:
    """Return the sum by CUDA: to its memory, over all ranks, and back."""
    torch: Any = import_module("torch")
    dist: Any = import_module("torch.distributed")
    torch.cuda.set_device(ranks.local % torch.cuda.device_count())
    nccl = dist.new_group(backend="nccl", timeout=timedelta(seconds=60))
    staged: dict[int, tuple[Any, Any]] = {}

    def stage(array: Any) -> tuple[Any, Any]:
        """Lock an array in memory, which makes copies fast: an exchange keeps its arrays."""
        status = torch.cuda.cudart().cudaHostRegister(
            array.ctypes.data, array.nbytes, 0
        )
        torch.cuda.check_error(int(status))
        host = torch.from_numpy(array)
        return host, torch.empty_like(host, device="cuda")

    def all_reduce(arrays: Arrays) -> None:
        for array in arrays:
            key = int(array.ctypes.data)
            if key not in staged:
                staged[key] = stage(array)
            host, cuda = staged[key]
            cuda.copy_(host)
            dist.all_reduce(cuda, group=nccl)
            host.copy_(cuda)

    return all_reduce


def by_group(ranks: Ranks) -> Exchange:
    """Return the sum by the engine of the processes, through the host's memory."""
    return ranks.group.all_reduce


def by_parts(ranks: Ranks) -> Exchange:
    """Return the sum by the engine of the processes, each rank's part alone."""
    return ranks.reduce_scatter


ENGINES: Final = {"host": by_group, "nccl": by_nccl}


@contextmanager
def started() -> Generator[Ranks, None, None]:
    """Join the processes, or be the only one."""
    if not {"RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK"} & os.environ.keys():
        group = ProcessGroup(0, 1, lambda _: None)
        yield Ranks(group, 0, group.all_reduce, group.all_reduce)
        return
    with joined() as ranks:
        yield ranks


def report(name: str, variant: str, times: dict[str, float], one: float) -> None:
    """Print where the time of a step went, and the efficiency."""
    parts = "  ".join(
        f"{label} {times[label]:.3f}" for label in LABELS if label in times
    )
    share = f"{one / times['whole']:.2f}"
    print(f"{name}, {variant}: {parts} s; efficiency {share}", flush=True)


def run(given: argparse.Namespace) -> None:
    """Measure, and print what each rank found."""
    with started() as ranks, ranks.open_context() as ctx:
        name = f"rank {ranks.rank} of {ranks.group.size}"
        print(f"{name}: adapter {ranks.adapter}, {ctx.adapter_name}", flush=True)
        work = Work(ctx, ranks, given)
        if ranks.rank == 0:
            tokens = given.rows * given.context
            print(
                f"{work.parameters:,} parameters, {given.batches} batches of {tokens:,} "
                "tokens a step",
                flush=True,
            )
        one = given.alone
        if not given.sharded:  # whose step needs an exchange
            times = work.measure(None)
            one = one or times["whole"]
            report(name, "without exchange", times, one)
        if ranks.group.size == 1:
            return
        engines = {"sharded": by_parts} if given.sharded else ENGINES
        for engine, wire in product(
            engines if given.sharded else given.engine, given.wire
        ):
            times = work.measure(engines[engine](ranks), wire)
            report(name, f"{engine} {wire}", times, one or times["whole"])


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--engine", nargs="+", choices=ENGINES, default=["host"])
    parser.add_argument("--wire", nargs="+", choices=("f32", "f16"), default=["f32"])
    parser.add_argument(
        "--sharded", action="store_true", help="keep a part of the moments on each rank"
    )
    parser.add_argument("--alone", type=float, help="seconds of a step of one process")
    for name, default in (
        ("layers", 14),
        ("width", 768),
        ("context", 1024),
        ("rows", 16),
        ("batches", 8),
        ("steps", 5),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    run(parser.parse_args())


if __name__ == "__main__":
    main()

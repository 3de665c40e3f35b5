"""Time attention on this machine's GPU, by each of some schedules, beside PyTorch.

    python tools/bench_attention.py                                  # the chosen one, stages
    python tools/bench_attention.py --only causal --schedule "flash tile(64, 64, 64)" \
        --schedule "flash tile(64, 32, 64) micro(8, 4)"

Times are the device's, of many calls in one submission; TFLOP/s count the scores that a
causal mask leaves.  `stages` is what stores the scores.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeAlias, final

import numpy as np

import kerngen
import kerngen.runtime as gpu
from kerngen.runtime import Context, f32

DSL: Final = Path(__file__).parents[1] / "dsl" / "attention.kern"
STAGES: Final = "stages"
Call: TypeAlias = Callable[[], object]


@final
@dataclass(frozen=True, slots=True)
class Work:
    """Some attention: `r` heads of keys serve `h` of queries."""

    kernel: str
    b: int
    h: int
    r: int
    s: int
    t: int
    d: int

    @property
    def label(self) -> str:
        """The kernel and its sizes as text."""
        heads = f"{self.h}" if self.h == self.r else f"{self.h}/{self.r}"
        return f"{self.kernel} {self.b}x{heads}x{self.s}x{self.t}x{self.d}"

    @property
    def operations(self) -> float:
        """Multiplications and additions, of scores that are not masked."""
        pairs = self.s * self.t
        if self.kernel != "attention":
            pairs -= self.s * (self.s - 1) // 2
        return 4.0 * self.b * self.h * pairs * self.d

    @property
    def bytes(self) -> int:
        """What must move at the least."""
        queries = self.b * self.h * self.s * self.d
        return 4 * (2 * queries + 2 * self.b * self.r * self.t * self.d)


WORK: Final = (
    Work("attention", 4, 16, 16, 2048, 2048, 64),
    Work("causal_attention", 4, 16, 16, 2048, 2048, 64),
    Work("attention", 1, 32, 32, 4096, 4096, 128),
    Work("causal_attention", 1, 32, 32, 4096, 4096, 128),
    Work("grouped_query_attention", 1, 32, 8, 1, 4096, 128),
    Work("grouped_query_attention", 1, 32, 8, 1, 32768, 128),
    Work("attention", 8, 12, 12, 197, 197, 64),
    Work("causal_attention", 2, 8, 8, 1000, 1000, 80),
)


def text_of(kernel: str, schedule: str) -> str:
    """Return the standard file with a schedule for a kernel."""
    text = DSL.read_text("utf-8")
    if schedule == STAGES:
        first = "score" if kernel == "attention" else "product"
        small = "gemm tile(32, 64, 16) micro(8, 4)"
        return f"{text}\nschedule {kernel}.{first} when s < 64 {{ {small} }}\nschedule {kernel}.{first} {{ gemm }}\n"
    return f"{text}\nschedule {kernel} {{ {schedule} }}\n" if schedule else text


def loaded(kernel: str, schedule: str) -> Any:
    """Return the function of a kernel with a schedule."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "attention_timed.kern"
        path.write_text(text_of(kernel, schedule), "utf-8")
        return getattr(kerngen.load(path), kernel)


def arrays(work: Work) -> list[Any]:
    """Return queries, keys and values."""
    rng = np.random.default_rng(1)
    shapes = (work.h, work.s), (work.r, work.t), (work.r, work.t)
    return [
        rng.standard_normal((work.b, heads, n, work.d), dtype=np.float32)
        for heads, n in shapes
    ]


def seconds(ctx: Context, call: Call) -> float:
    """Return the least time of a call by the device's clock, of some samples."""
    call()
    launches = 1
    while True:
        with ctx.timed() as timing:
            for _ in range(launches):
                call()
        if timing.seconds > 0.05 or launches >= 256:
            break
        launches *= 2
    best = timing.seconds
    for _ in range(4):
        with ctx.timed() as timing:
            for _ in range(launches):
                call()
        best = min(best, timing.seconds)
    return best / launches


def by_schedule(ctx: Context, work: Work, schedule: str) -> float:
    """Return the time of the work by a schedule."""
    function = loaded(work.kernel, schedule)
    tensors = [ctx.tensor(array) for array in arrays(work)]
    out = ctx.empty((work.b, work.h, work.s, work.d), f32)
    return seconds(ctx, lambda: function(*tensors, out=out))


def in_torch(work: Work) -> float | None:
    """Return the time in PyTorch on CUDA, or None where it is not there."""
    try:
        torch: Any = import_module("torch")
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    torch.backends.cuda.matmul.allow_tf32 = False
    q, k, v = (torch.from_numpy(array).cuda() for array in arrays(work))
    causal = work.kernel != "attention" and work.s > 1
    attention = torch.nn.functional.scaled_dot_product_attention
    grouped = work.h != work.r

    def call() -> None:
        attention(q, k, v, is_causal=causal, enable_gqa=grouped)

    return min(_event_times(torch, call))


def _event_times(torch: Any, call: Callable[[], None]) -> Iterator[float]:
    for _ in range(5):
        call()
    for _ in range(5):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(20):
            call()
        end.record()
        torch.cuda.synchronize()
        yield begin.elapsed_time(end) / 1e3 / 20


def report(work: Work, name: str, taken: float, torch: float | None) -> None:
    """Print a line."""
    ratio = f"{torch / taken:6.2f} of PyTorch" if torch else ""
    print(
        f"{work.label:45} {name:48} {taken * 1e6:10.1f} us "
        f"{work.operations / taken / 1e12:6.1f} TFLOP/s "
        f"{work.bytes / taken / 1e9:7.0f} GB/s {ratio}",
        flush=True,
    )


def main() -> None:
    """Time what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="part of a label")
    parser.add_argument("--schedule", action="append", default=[])
    parser.add_argument("--software", action="store_true")
    options = parser.parse_args()
    with gpu.open(adapter="software" if options.software else "gpu") as ctx:
        print(ctx.adapter_name)
        for work in (each for each in WORK if options.only in each.label):
            torch = in_torch(work)
            if torch is not None:
                report(work, "PyTorch", torch, None)
            for schedule in options.schedule or ["", STAGES]:
                try:
                    taken = by_schedule(ctx, work, schedule)
                except gpu.Error as error:
                    print(f"{work.label:45} {schedule:48} {str(error)[:80]}")
                    continue
                report(work, schedule or "chosen", taken, torch)


if __name__ == "__main__":
    main()

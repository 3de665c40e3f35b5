"""Compare the time of kernels over rows before and after a change of their shaders.

    python tools/bench_rungs.py measure before-1.json     # in the one checkout
    python tools/bench_rungs.py measure after-1.json      # in the other one; and again
    python tools/bench_rungs.py compare after-*.json --before before-*.json

Measure both in turns, three times or more: the least time of each side counts.  The time
is the device's, of many calls in one submission; where it has no clock (lavapipe), it is
the CPU time of the process, and products, which take minutes there, are left out.
"""

from __future__ import annotations

import argparse
import json
import resource
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

import kerngen
import kerngen.runtime as gpu
from kerngen.runtime import Context, f32

DSL = Path(__file__).parents[1] / "dsl"
LENGTHS = (3, 8, 12, 16, 31, 32, 100, 127, 128, 512, 1000, 1023, 2048, 4096, 16384)
ELEMENTS = 1 << 25
"""How many elements a matrix has on a device of its own; a sixteenth on a CPU."""

MATMULS = ((64, 4096, 4096), (128, 2048, 8192), (256, 1024, 8192), (100, 999, 4001))
"""Products that are split: rows, columns, terms."""

Call: TypeAlias = Callable[[], object]


def calls(
    ctx: Context, lengths: Sequence[int], elements: int, *, products: bool
) -> Iterator[tuple[str, Call]]:
    """Yield what is measured, by name."""
    softmax, norm, indexing, statistics, matmul = (
        kerngen.load(DSL / f"{name}.kern")
        for name in ("softmax", "norm", "indexing", "statistics", "matmul")
    )
    for n in lengths:
        m = elements // n
        x, y = (ctx.tensor(values(m, n, seed)) for seed in (1, 2))
        gain, bias = ctx.tensor(values(1, n, 3)[0]), ctx.zeros((n,), f32)
        whole, one = ctx.empty((m, n), f32), ctx.empty((m,), f32)
        gradient = softmax.log_softmax_gradient
        yield f"softmax {n}", partial(softmax.softmax, x, out=whole)
        yield f"log_softmax_gradient {n}", partial(gradient, x, y, out=whole)
        yield f"layernorm {n}", partial(norm.layernorm, x, gain, bias, out=whole)
        yield f"row_variance {n}", partial(statistics.row_variance, x, out=one)
        yield f"argmax {n}", partial(indexing.argmax, x)
    for m, n, k in MATMULS if products else ():
        a, b = ctx.tensor(values(m, k, 4)), ctx.tensor(values(k, n, 5))
        c = ctx.empty((m, n), f32)
        yield f"matmul_nn {m}x{n}x{k}", partial(matmul.matmul_nn, a, b, out=c)


def values(m: int, n: int, seed: int) -> NDArray[np.float32]:
    """Return some numbers."""
    return np.random.default_rng(seed).standard_normal((m, n), dtype=np.float32)


def seconds(ctx: Context, call: Call, *, has_clock: bool) -> float:
    """Return the least time of a call, of several samples."""
    call()
    ctx.submit()
    launches, samples = (50, 9) if has_clock else (3, 5)
    return min(sample(ctx, call, launches, has_clock=has_clock) for _ in range(samples))


def sample(ctx: Context, call: Call, launches: int, *, has_clock: bool) -> float:
    """Return the time of one call among some."""
    if has_clock:
        with ctx.timed() as timing:
            for _ in range(launches):
                call()
        return timing.seconds / launches
    before = resource.getrusage(resource.RUSAGE_SELF)
    for _ in range(launches):
        call()
    ctx.empty((1,), f32).numpy()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return (
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    ) / launches


def measure(file: str, lengths: Sequence[int], *, software: bool) -> None:
    """Write the seconds of each call to a file."""
    with gpu.open(adapter="software" if software else "gpu") as ctx:
        on_cpu = "llvmpipe" in ctx.adapter_name
        elements = ELEMENTS // 16 if on_cpu else ELEMENTS
        found: dict[str, float] = {}
        for name, call in calls(ctx, lengths, elements, products=not on_cpu):
            found[name] = seconds(ctx, call, has_clock=not on_cpu)
            print(f"{name:40} {found[name] * 1e6:10.1f} us", flush=True)
    Path(file).write_text(json.dumps(found, indent=1), encoding="utf-8")


def compare(before: Sequence[str], after: Sequence[str]) -> None:
    """Print how much longer each call takes, the worst last."""
    old, new = least(before), least(after)
    for name in sorted(old.keys() & new.keys(), key=lambda name: new[name] / old[name]):
        print(
            f"{name:40} {old[name] * 1e6:10.1f} {new[name] * 1e6:10.1f} us {new[name] / old[name]:7.3f}"
        )


def least(files: Sequence[str]) -> dict[str, float]:
    """Return the least time of each call in some files."""
    read = [json.loads(Path(file).read_text("utf-8")) for file in files]
    return {name: min(one[name] for one in read) for name in read[0]}


def main() -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["measure", "compare"])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--before", nargs="+", default=[])
    parser.add_argument("--software", action="store_true")
    parser.add_argument("--lengths", nargs="+", type=int, default=LENGTHS)
    options = parser.parse_args()
    if options.command == "measure":
        measure(options.files[0], options.lengths, software=options.software)
    else:
        compare(options.before, options.files)


if __name__ == "__main__":
    main()

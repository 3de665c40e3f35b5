"""Time products and convolutions in every tile of the defaults' tables, beside the chosen one.

    python -m tests.performance.regret --seed 7 --shapes 40
    python -m tests.performance.regret --only 'conv*' --seconds 60 --out regret.json

The sizes are drawn, so that a choice that was fitted to some of them is seen at others.  The
regret of a choice is the time that it takes beyond that of the fastest, as a fraction.  Where
PyTorch is there, its time is beside them.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, TypeAlias, TypedDict, final

from kerngen.bench.arguments import Sizes
from kerngen.bench.choose import named
from kerngen.bench.measure import SamplingLimits, measure
from kerngen.bench.peers import Peer, find_peers
from kerngen.bench.ramp import ramp_of
from kerngen.bench.record import keep
from kerngen.bench.run import Budget
from kerngen.bench.session import open_contexts
from kerngen.bench.standard import gradient_sizes, shapes
from kerngen.runtime import Context, NoAdapter
from kerngen.schedule.gemm.choices import PRODUCT_TILES, WINDOW_TILES, TileTimes
from kerngen.source.words import counted
from kerngen.tune.candidates import TuneCandidate
from kerngen.tune.session import tunable_stages
from kerngen.tune.trial import Trials
from tests.performance.ablation import subject_of

Draw: TypeAlias = Callable[[random.Random, int], Sizes]
"""A function that draws the sizes of a call, with sides of up to about a number."""

LONGEST: Final = {"gpu": 4096, "software": 128}
"""The longest side of a product, by the kind of adapter.

A convolution has up to an eighth of it as channels, and images of up to its 4/5th power.
"""


class RegretData(TypedDict):
    """A call: the seconds of what is chosen, of each tile, and of PyTorch if it is there."""

    kernel: str
    sizes: dict[str, int]
    chosen: float
    tiles: dict[str, float]
    torch: float | None


@final
@dataclass(frozen=True, slots=True)
class Drawn:
    """A kernel whose choice is looked at: its sizes are drawn, its tiles those of a table."""

    path: str
    draw: Draw
    tiles: Sequence[TileTimes]

    @property
    def candidates(self) -> list[TuneCandidate]:
        """The tiles as schedules."""
        return [TuneCandidate("gemm", (*each.options.items(),)) for each in self.tiles]


def product(rng: random.Random, longest: int) -> Sizes:
    """Draw the sizes of a product: half of them have sides that are multiples of 8."""
    step = rng.choice((1, 8))
    sides = (longest ** rng.uniform(0.5, 1) for _ in "mkn")
    m, k, n = (max(int(side) // step * step, step) for side in sides)
    return {"m": m, "k": k, "n": n}


def image(rng: random.Random, longest: int) -> tuple[int, ...]:
    """Draw b, c, h, w, o, r, s, pad, stride and dilation of a convolution."""
    most = longest / 8
    side, kernel = int(most ** rng.uniform(0.4, 0.8)) + 3, rng.choice((1, 3, 3, 3, 5))
    c, o = (int(most ** rng.uniform(0.2, 1)) for _ in "co")
    batch, stride = rng.choice((1, 2, 4, 8, 16)), rng.choice((1, 1, 1, 2))
    return batch, c, side, side, o, kernel, kernel, kernel // 2, stride, 1


def convolution(rng: random.Random, longest: int) -> Sizes:
    """Draw the sizes of a convolution."""
    (sizes,) = shapes("b c h w o r s pad stride dilation", image(rng, longest))
    return sizes


def gradient(names: str) -> Draw:
    """Return what draws the sizes of a gradient, whose lengths h, w, r and s have `names`."""

    def draw(rng: random.Random, longest: int) -> Sizes:
        (sizes,) = gradient_sizes([image(rng, longest)], names)
        return sizes

    return draw


DRAWN: Final = (
    Drawn("matmul.matmul_nn", product, PRODUCT_TILES),
    Drawn("matmul.matmul_nt", product, PRODUCT_TILES),
    Drawn("matmul.matmul_tn", product, PRODUCT_TILES),
    Drawn("conv.conv2d", convolution, WINDOW_TILES),
    Drawn("conv.conv2d_input_gradient", gradient("h_len w_len r s"), WINDOW_TILES),
    Drawn("conv.conv2d_kernel_gradient", gradient("h w r_len s_len"), WINDOW_TILES),
)


def find_regrets(
    drawn: Sequence[Drawn], seed: int, count: int, budget: Budget
) -> Iterator[RegretData]:
    """Yield `count` calls of each kernel, fewer if the budget is used up."""
    with ExitStack() as stack:
        contexts, _ = open_contexts("off")
        (ctx,) = contexts.values()
        stack.enter_context(ctx)
        if ctx.kind not in LONGEST:
            raise NoAdapter("There is no adapter: the reference has no tiles to time.")
        ramp = ramp_of(ctx)
        peers, _ = find_peers(["torch"], ctx.kind) if ctx.kind == "gpu" else ([], {})
        for each in drawn:
            rng = random.Random(f"{seed} {each.path}")
            subject = subject_of(each.path)
            trials = Trials(ctx, subject, tunable_stages(subject)[0], stack, ramp)
            for _ in range(count):
                if budget.left <= 0:
                    return
                sizes = each.draw(rng, LONGEST[ctx.kind])
                yield _timed(ctx, trials, each, sizes, peers)


def _timed(
    ctx: Context, trials: Trials, drawn: Drawn, sizes: Sizes, peers: Iterable[Peer]
) -> RegretData:
    effort = SamplingLimits(samples=7, launches=1000, seconds=0.4, warm_up=0.01)
    fitting = [x for x in drawn.candidates if not isinstance(trials.version(x), str)]
    inputs = trials.inputs(sizes)
    chosen, *tiles = trials.time([None, *fitting], sizes, inputs, effort)
    del inputs
    ctx.trim()
    (case,) = named(drawn.path, (sizes,), ctx.kind)
    torch = None
    for peer in peers:
        with peer.clock(case) as clock:
            torch = clock and measure(clock, effort, trials.ramp).median
    labels = (candidate.text for candidate in fitting)
    return {
        "kernel": drawn.path,
        "sizes": dict(sizes),
        "chosen": chosen,
        "tiles": dict(zip(labels, tiles, strict=True)),
        "torch": torch,
    }


def regret(data: RegretData) -> float:
    """Return what the choice takes beyond the fastest, as a fraction; 0 if it is that."""
    best = min(data["tiles"].values(), default=data["chosen"])
    return max(data["chosen"] / best - 1, 0.0)


def line(data: RegretData) -> str:
    """Return a call as a line of text."""
    sizes = ", ".join(f"{name}={length}" for name, length in data["sizes"].items())
    text = f"{data['kernel']} {sizes}: {data['chosen'] * 1e6:.1f} us"
    if regret(data):
        best = min(data["tiles"], key=data["tiles"].__getitem__)
        text += f", {data['tiles'][best] * 1e6:.1f} by {best}"
    torch = data["torch"]
    return text if torch is None else f"{text}; PyTorch {torch * 1e6:.1f} us"


def summary(found: Sequence[RegretData]) -> str:
    """Return the regrets of all calls in a line of text."""
    if not found:
        return "no call"
    regrets = [regret(data) for data in found]
    text = (
        f"{counted(len(found), 'call')}: {statistics.mean(regrets):.1%} beyond the fastest in the "
        f"mean, at worst {max(regrets):.0%}"
    )
    ratios = [x["torch"] / x["chosen"] for x in found if x["torch"] is not None]
    if not ratios:
        return text
    return f"{text}; {statistics.median(ratios):.2f} of PyTorch's speed in the median"


def main(arguments: Sequence[str] | None = None) -> None:
    """Time the calls, and print them and their regrets."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.performance.regret",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=1, help="which sizes are drawn")
    parser.add_argument("--shapes", type=int, default=12, help="calls of each kernel")
    parser.add_argument("--seconds", type=float, default=300.0, help="the time for all")
    said = "of these kernels, '*' being any characters: 'conv*', '*gradient'"
    parser.add_argument("--only", default="*", metavar="NAME", help=said)
    parser.add_argument("--out", type=Path, help="keep the times here, as JSON")
    given = parser.parse_args(arguments)
    drawn = [
        each for each in DRAWN if fnmatchcase(each.path.partition(".")[2], given.only)
    ]
    if not drawn:
        parser.error(f"no kernel is called {given.only!r}")
    found: list[RegretData] = []
    budget = Budget(given.seconds)
    try:
        for data in find_regrets(drawn, given.seed, given.shapes, budget):
            found.append(data)
            print(line(data), flush=True)
            keep(found, given.out)
    except NoAdapter as error:
        parser.error(str(error))
    print(summary(found))


if __name__ == "__main__":
    main()

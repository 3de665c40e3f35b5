"""A benchmark session: its contexts, peers and ceilings."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, final

import kerngen.runtime as gpu
from kerngen.bench.case import BenchCase
from kerngen.bench.ceilings import Ceilings, find_ceilings
from kerngen.bench.measure import Ramp, SamplingLimits
from kerngen.bench.peers import PEERS, asked_for, find_peers
from kerngen.bench.ramp import ramp_of
from kerngen.bench.record import ResultData, RunData, head, result_data
from kerngen.bench.run import Budget, Contestant, on_context, on_peer, run
from kerngen.runtime import Context


@final
@dataclass(frozen=True, slots=True)
class Session:
    """A session: its contestants, and the results so far in `found`."""

    contestants: Mapping[str, Contestant]
    effort: SamplingLimits
    budget: Budget
    ceilings: Ceilings
    found: RunData
    ramp: Ramp

    def results(self, cases: Sequence[BenchCase]) -> Iterator[ResultData]:
        """Yield the result of each case when it is done, and record it."""
        for result in run(cases, self.contestants, self.effort, self.budget, self.ramp):
            data = result_data(result, self.ceilings)
            self.found["results"].append(data)
            yield data


def begin(
    contexts: Mapping[str, Context],
    peers: Sequence[str] | None,
    budget: Budget,
    *,
    quick: bool = False,
) -> Session:
    """Begin a session: find the peers, and measure the ceilings."""
    ctx = next(iter(contexts.values()))
    effort = SamplingLimits(seconds=1.0 if ctx.kind == "gpu" else 0.4)
    if quick:
        effort = SamplingLimits(samples=7, seconds=effort.seconds / 4)
    usual = [name for name, kinds in PEERS.items() if ctx.kind in kinds]
    names = usual if peers is None else asked_for(peers, ctx.kind)
    present, absent = find_peers(names, ctx.kind)
    contestants: dict[str, Contestant] = {
        **{name: on_context(each) for name, each in contexts.items()},
        **{peer.name: on_peer(peer) for peer in present},
    }
    ramp = ramp_of(ctx)
    ceilings = find_ceilings(ctx, effort, ramp)
    found = head(ctx, effort, contestants, present, absent, ceilings)
    return Session(contestants, effort, budget, ceilings, found, ramp)


def open_contexts(
    checks: Literal["on", "off", "both"],
) -> tuple[dict[str, Context], str]:
    """Return contexts by label, and a warning if one can't be opened.

    Where wgpu can't leave out its checks, the context with checks is opened instead.
    """
    contexts: dict[str, Context] = {}
    missing = ""
    if checks != "on":
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ctx = gpu.open(unchecked=True)
        missing = "; ".join(str(each.message) for each in caught)
        contexts["unchecked" if ctx.unchecked else "checked"] = ctx
    if checks != "off" and "checked" not in contexts:
        contexts["checked"] = gpu.open()
    return contexts, missing

"""The pictures of the page: rooflines, and how kernels stand beside a peer."""

from __future__ import annotations

from math import ceil, log2
from pathlib import Path
from typing import Any, cast

import matplotlib as mpl
from matplotlib.figure import Figure

from kerngen.bench.plot import COLOURS, STYLE, draw_roofline
from kerngen.bench.record import ResultData, RunData
from kerngen.bench.table import OURS
from kerngen.bench.words import sizes
from tests.performance.page import RESULTS, PerformanceData


def draw_all(found: dict[str, PerformanceData]) -> None:
    """Draw all pictures anew."""
    for name, data in found.items():
        draw_roofline(data["run"], RESULTS / f"roofline-{name}.png")
        draw_ratios(data["run"], RESULTS / f"ratios-{name}.png")


def draw_ratios(run: RunData, file: Path) -> None:
    """Draw a bar for every case: how many times as fast it is as the first peer's."""
    peers = [name for name in run["contestants"] if name not in OURS]
    shown = [e for e in run["results"] if peers and peers[0] in e["timings"]]
    shown = [each for each in shown if _own(each)]
    if not shown:
        return
    # matplotlib's types are partly unknown: hence Any.
    with cast("Any", mpl).rc_context(STYLE):
        height = 1.2 + 0.17 * len(shown)
        figure: Any = Figure(figsize=(9.2, height), layout="constrained", dpi=150)
        axes = figure.add_subplot()
        ratios = [_ratio(each, peers[0]) for each in shown]
        colours = [COLOURS[0] if ratio >= 1 else COLOURS[1] for ratio in ratios]
        places = [*range(len(shown))]
        beyond = [ratio - 1.0 for ratio in ratios]
        axes.barh(places, beyond, color=colours, height=0.72, left=1.0)
        axes.axvline(1.0, color="#2b2f36", linewidth=1.2)
        labels = [f"{each['name']}  {sizes(each)}" for each in shown]
        axes.set_yticks(places, labels, fontsize=7)
        axes.invert_yaxis()
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set_xscale("log", base=2)
        for place, ratio in zip(places, ratios, strict=True):
            axes.annotate(
                f"{ratio:.2f}",
                (ratio, place),
                (3 if ratio >= 1 else -3, 0),
                textcoords="offset points",
                va="center",
                ha="left" if ratio >= 1 else "right",
                fontsize=7,
            )
        low, high = min(0.45, *ratios) * 0.8, max(2.2, *ratios) * 1.15
        powers = range(ceil(log2(low)), ceil(log2(high)))
        ticks = [f"{2**p}" if p >= 0 else f"1/{2**-p}" for p in powers]
        axes.set_xticks([2.0**p for p in powers], ticks)
        axes.minorticks_off()
        axes.set_xlim(low, high)
        axes.grid(visible=True, axis="x", color="#eceef1")
        axes.set_axisbelow(True)
        axes.set_title(f"times the speed of {peers[0]}", loc="left")
        figure.savefig(file, metadata={"Software": None})


def _own(result: ResultData) -> str:
    return next((name for name in OURS if name in result["timings"]), "")


def _ratio(result: ResultData, peer: str) -> float:
    timings = result["timings"]
    return timings[peer]["median"] / timings[_own(result)]["median"]

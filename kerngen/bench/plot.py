"""The roofline plot of a benchmark run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, cast

import matplotlib as mpl
import numpy as np
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.figure import Figure

from kerngen.bench.record import ResultData, RunData
from kerngen.bench.table import OURS
from kerngen.bench.words import quantity

COLOURS: Final = ("#3b6fb6", "#d9822b", "#4a9d6e", "#b6496a", "#7b5ea7", "#8a6d4b")
_GREY: Final = "#8b9099"
STYLE: Final[Any] = {
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#c9ccd1",
    "xtick.color": "#5c626b",
    "ytick.color": "#5c626b",
    "svg.hashsalt": "kerngen",
}
_MARKERS: Final = "osD^vP"
FORMATS: Final = (*cast("Any", FigureCanvasBase).get_supported_filetypes(),)
"""The formats of pictures, as suffixes of files."""


def draw_roofline(run: RunData, file: Path) -> None:
    """Draw the roofline plot to a file: our kernels filled, the first peer hollow."""
    # matplotlib's types are partly unknown: hence Any.
    with cast("Any", mpl).rc_context(STYLE):
        figure: Any = Figure(figsize=(9.2, 5.0), layout="constrained", dpi=150)
        axes: Any = figure.add_subplot()
        shown = [each for each in run["results"] if each["operations"]]
        _draw_roof(axes, run, [_intensity(each) for each in shown])
        peer = next((name for name in run["contestants"] if name not in OURS), None)
        for number, family in enumerate(dict.fromkeys(_family(each) for each in shown)):
            members = [each for each in shown if _family(each) == family]
            _draw_family(axes, family, members, number, peer)
        if peer is not None:
            axes.scatter([], [], s=34, facecolors="none", edgecolors=_GREY, label=peer)
        axes.set_xlabel("operations per byte that must move")
        axes.set_ylabel("operations in a second")
        axes.set_title(f"{run['adapter']['device']}, {run['date'][:10]}", loc="left")
        figure.legend(frameon=False, fontsize=8, loc="outside right upper")
        axes.grid(visible=True, which="major", color="#eceef1", linewidth=0.8)
        axes.set_axisbelow(True)
        figure.savefig(file, metadata={"Software": None})


def _draw_roof(axes: Any, run: RunData, intensities: list[float]) -> None:
    ceilings = run["ceilings"]
    least = min(intensities, default=0.1) / 2
    most = max(*intensities, 4 * ceilings["operations"] / ceilings["bytes"], 1.0) * 2
    x = np.geomspace(least, most, 200)
    roof = np.minimum(x * ceilings["bytes"], ceilings["operations"])
    axes.loglog(x, roof, color="#2b2f36", linewidth=1.6)
    axes.fill_between(x, roof, roof.min() / 100, color="#f6f7f9", zorder=0)
    axes.set_xlim(least, most)
    axes.set_ylim(roof.min() / 6, roof.max() * 2)
    ridge = ceilings["operations"] / ceilings["bytes"]
    _label(axes, f"copy: {quantity(ceilings['bytes'], 'B/s')}", ridge / 3, run)
    _label(axes, f"fma: {quantity(ceilings['operations'], 'FLOP/s')}", ridge, run)


def _label(axes: Any, text: str, at: float, run: RunData) -> None:
    """Write the name of a part of the roof, above and to the left of a point on it."""
    place = (at, min(at * run["ceilings"]["bytes"], run["ceilings"]["operations"]))
    axes.annotate(
        text, place, (-4, 5), textcoords="offset points", ha="right", fontsize=8
    )


def _draw_family(
    axes: Any, family: str, members: list[ResultData], number: int, peer: str | None
) -> None:
    # Colours come in turn; beyond the last one, with the next marker.
    colour = COLOURS[number % len(COLOURS)]
    marker = _MARKERS[number // len(COLOURS) % len(_MARKERS)]
    own = [_point(each, _best(each)) for each in members if _best(each)]
    if own:
        x, y = zip(*own, strict=True)
        axes.scatter(x, y, s=34, color=colour, marker=marker, label=family)
    theirs = [_point(e, peer) for e in members if peer and peer in e["timings"]]
    if theirs:
        axes.scatter(
            *zip(*theirs, strict=True),
            s=34,
            facecolors="none",
            edgecolors=colour,
            marker=marker,
            linewidths=1.0,
        )


def _family(result: ResultData) -> str:
    """Return the key of a kernel's colour; the orientations of a product share one."""
    name = result["name"]
    parts = {"gemv": "gemv", "matmul": "matmul", "sum": "reductions", "norm": "norms"}
    found = next((shown for part, shown in parts.items() if part in name), name)
    return f"{found}, f16" if name.startswith("half.") else found


def _best(result: ResultData) -> str:
    """Return our faster contestant, 'checked' or 'unchecked'; "" if none was timed."""
    timed = [name for name in OURS if name in result["timings"]]
    return min(timed, key=lambda name: result["timings"][name]["median"], default="")


def _intensity(result: ResultData) -> float:
    return result["operations"] / result["bytes"]


def _point(result: ResultData, name: str) -> tuple[float, float]:
    median = result["timings"][name]["median"]
    return _intensity(result), result["operations"] / median

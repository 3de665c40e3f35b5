"""The picture of a comparison: how trainings drift apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tests.parity.noise import EXACT, GATE, ROUNDING, THREADS, Study
from tests.parity.record import EARLY, EARLY_LIMIT, LIMIT, Differences
from tests.parity.tasks import Array

INK, GRID = "#333333", "#e5e5e5"
STYLES: dict[str, dict[str, Any]] = {
    GATE: {"color": "#c2410c", "lw": 2.2},
    EXACT: {"color": "#c2410c", "lw": 1.2, "ls": (0, (4, 2))},
    ROUNDING: {"color": "#2563a8", "lw": 1.6},
    THREADS: {"color": "#8ab4d8", "lw": 1.6},
}
"""How each difference is drawn."""

LOWEST, HIGHEST = 1e-8, 3e-3
"""The range of differences that is shown."""


def save_picture(path: Path, studies: Sequence[Study]) -> None:
    """Draw the largest differences so far over steps, a column for each network.

    Raises:
        OSError: If the file can't be written.
    """
    # matplotlib's types are partly unknown.
    figure: Any = Figure(figsize=(4 * len(studies), 6.2), dpi=150, layout="constrained")
    axes = figure.subplots(2, len(studies), sharex="col", sharey=True, squeeze=False)
    for column, each in enumerate(studies):
        _draw(axes[0][column], each, "losses")
        _draw(axes[1][column], each, "norms")
        axes[0][column].set_title(each.network, loc="left", color=INK)
        axes[1][column].set_xlabel("step", color=INK)
    axes[0][0].set_ylabel("loss", color=INK)
    axes[1][0].set_ylabel("norm of the gradients", color=INK)
    figure.suptitle("Largest relative difference so far", color=INK)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=len(labels), frameon=False
    )
    figure.savefig(path, format="png")


def _draw(axes: Any, each: Study, what: str) -> None:
    """Draw one of the two series of a network's differences, and their limits."""
    steps = np.arange(1, len(each.differences[GATE].losses) + 1)
    limits = np.where(steps <= EARLY, EARLY_LIMIT, LIMIT)
    axes.fill_between(steps, limits, HIGHEST, step="mid", color="#f3f4f6")
    axes.step(steps, limits, where="mid", color="#6b7280", lw=1.0, label="limit")
    for title, style in STYLES.items():
        series = _series(each.differences[title], what)
        shown = np.where(series > 0, series, np.nan)
        axes.plot(steps, shown, label=title, **style)
    equal = [t for t in STYLES if not _series(each.differences[t], what).any()]
    axes.annotate(
        "\n".join(f"{title}: equal, bit for bit" for title in equal),
        (0.98, 0.03),
        xycoords="axes fraction",
        ha="right",
        fontsize="small",
        color=INK,
    )
    axes.set_yscale("log")
    axes.set_ylim(LOWEST, HIGHEST)
    axes.set_xlim(0, len(steps))
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.grid(color=GRID, lw=0.8)
    axes.spines[["top", "right"]].set_visible(False)


def _series(differences: Differences, what: str) -> Array:
    """Return the largest differences so far."""
    return np.maximum.accumulate(getattr(differences, what))

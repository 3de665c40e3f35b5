"""The picture of a run: how the losses fell."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from examples.characters.record import Curve

INK, TRAIN, VALIDATION = "#333333", "#8ab4d8", "#c2410c"


def save_picture(
    path: Path,
    curve: Curve,
    *,
    title: str = "A transformer on Python's docstrings",
    unit: str = "character",
) -> None:
    """Draw training and validation loss over steps, in nats and in bits.

    Raises:
        OSError: If the file can't be written.
    """
    # matplotlib's types are partly unknown: hence Any.
    figure: Any = Figure(figsize=(8, 4.5), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    axes.plot(*_columns(curve.train), color=TRAIN, lw=1.2, label="training")
    axes.plot(
        *_columns(curve.validation),
        color=VALIDATION,
        lw=1.8,
        marker="o",
        ms=3.5,
        label="validation",
    )
    for step, loss in (curve.validation[0], curve.validation[-1]):
        axes.annotate(
            f"{loss:.2f}",
            (step, loss),
            xytext=(9, 0),
            textcoords="offset points",
            va="center",
            color=VALIDATION,
        )
    axes.set_title(title, loc="left", color=INK)
    axes.set_xlabel("step", color=INK)
    axes.set_ylabel(f"loss (nats per {unit})", color=INK)
    bits = axes.secondary_yaxis("right", functions=(_in_bits, _in_nats))
    bits.set_ylabel(f"bits per {unit}", color=INK)
    axes.margins(x=0.08)
    axes.grid(color="#e5e5e5", lw=0.8)
    axes.spines["top"].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, format="png")


def _columns(points: list[tuple[int, float]]) -> NDArray[np.float64]:
    """Return steps and losses, a row each."""
    return np.array(points, np.float64).reshape(-1, 2).T


def _in_bits(nats: NDArray[np.float64]) -> NDArray[np.float64]:
    return nats / math.log(2)


def _in_nats(bits: NDArray[np.float64]) -> NDArray[np.float64]:
    return bits * math.log(2)

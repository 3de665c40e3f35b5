"""The picture of a run: how the losses fell."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from examples.characters.record import Curve

INK, TRAIN, VALIDATION = "#333333", "#8ab4d8", "#c2410c"


def save_picture(path: Path, curve: Curve) -> None:
    """Draw training and validation loss over steps, in nats and in bits.

    Raises:
        OSError: If the file can't be written.
    """
    figure = Figure(figsize=(8, 4.5), dpi=150, layout="constrained")
    axes: Any = figure.add_subplot()  # matplotlib's types are partly unknown
    axes.plot(*zip(*curve.train, strict=True), color=TRAIN, lw=1.2, label="training")
    axes.plot(
        *zip(*curve.validation, strict=True),
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
            xytext=(8, 8),
            textcoords="offset points",
            color=VALIDATION,
        )
    axes.set_title("A transformer on Python's docstrings", loc="left", color=INK)
    axes.set_xlabel("step", color=INK)
    axes.set_ylabel("loss (nats per character)", color=INK)
    bits = axes.secondary_yaxis(
        "right", functions=(lambda n: n / math.log(2), lambda b: b * math.log(2))
    )
    bits.set_ylabel("bits per character", color=INK)
    axes.margins(x=0.08)
    axes.grid(color="#e5e5e5", lw=0.8)
    axes.spines["top"].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, format="png")

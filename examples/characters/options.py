"""The command line: its options, checked."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from examples.characters.model import Sizes
from examples.characters.sampling import Request
from examples.characters.training import Settings

VOCABULARY = 96


@final
@dataclass(frozen=True)
class Options:
    """What the user asked for."""

    settings: Settings
    characters: int
    checkpoint: Path | None
    resume: bool
    save_every: int
    validate_every: int
    plot: Path | None
    request: Request
    distributed: bool


def _count(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{number} is not 1 or more")
    return number


def _not_negative(text: str) -> int:
    if (number := int(text)) < 0:
        raise argparse.ArgumentTypeError(f"{number} is negative")
    return number


def _amount(text: str) -> float:
    if not 0 <= (number := float(text)) < math.inf:
        raise argparse.ArgumentTypeError(f"{number} is negative or not finite")
    return number


def _text(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("an empty prompt has nothing to go on from")
    return text


TABLE: dict[str, dict[str, tuple[Any, Any, str]]] = {
    "the network": {
        "layers": (_count, 2, "blocks of attention and feed-forward layers"),
        "heads": (_count, 2, "heads of attention"),
        "width": (_count, 64, "features of a character; a multiple of the heads"),
        "context": (_count, 64, "characters that it can see"),
    },
    "training": {
        "characters": (_count, 1_000_000, "about how much text to use"),
        "batch": (_count, 8, "windows of text per step"),
        "steps": (_count, 2000, "steps in all"),
        "learning-rate": (_amount, 4e-3, "the highest"),
        "warmup": (_not_negative, 100, "steps until it is reached"),
        "seed": (_not_negative, 0, "of parameters, batches and samples"),
        "validate-every": (_count, 200, "steps between two looks at the other text"),
    },
    "files": {
        "checkpoint": (Path, None, "where to save the state, to --resume from"),
        "save-every": (_count, 100, "steps between two savings"),
        "plot": (Path, None, "where to draw the losses, as PNG"),
    },
    "samples": {
        "prompt": (_text, "Return the ", "what they begin with"),
        "samples": (_not_negative, 3, "how many to print at the end"),
        "length": (_count, 300, "characters of each"),
        "temperature": (
            _amount,
            0.7,
            "below 1 for likelier texts, 0 for the likeliest",
        ),
    },
}
"""Options by group: how each is read, its default, and what it is."""


FLAGS = {
    "distributed": "train with the processes that torchrun or mpiexec started, on a part "
    "of each batch; go on from --checkpoint if it is there",
    "sharded": "keep the optimizer's moments of a part of the parameters in each",
}


def parse_options(arguments: Sequence[str]) -> Options:
    """Return the options, or explain and exit with status 2."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.characters",
        description="Train a character-level transformer on Python's own docstrings.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    for title, rows in TABLE.items():
        group = parser.add_argument_group(title)
        for name, (kind, default, text) in rows.items():
            group.add_argument(f"--{name}", type=kind, default=default, help=text)
    parser.add_argument("--resume", action="store_true", help="go on from --checkpoint")
    group = parser.add_argument_group("several processes")
    for name, text in FLAGS.items():
        group.add_argument(f"--{name}", action="store_true", help=text)
    given = parser.parse_args(arguments)
    if fault := _fault(given):
        parser.error(fault)
    return _options(given)


def _fault(given: argparse.Namespace) -> str | None:
    """Say which options don't go together."""
    if given.width % given.heads:
        return f"--width {given.width} is no multiple of --heads {given.heads}"
    if given.resume and given.checkpoint is None:
        return "--resume needs --checkpoint FILE: what to go on from"
    if given.sharded and not given.distributed:
        return "--sharded needs --distributed: several processes"
    for option in ("checkpoint", "plot"):
        file: Path | None = getattr(given, option)
        if file is not None and not file.parent.is_dir():
            return f"--{option} {file}: there is no folder {file.parent}"
    return None


def _options(given: argparse.Namespace) -> Options:
    sizes = Sizes(VOCABULARY, given.context, given.width, given.heads, given.layers)
    return Options(
        settings=Settings(
            sizes=sizes,
            batch=given.batch,
            steps=given.steps,
            warmup=given.warmup,
            learning_rate=given.learning_rate,
            seed=given.seed,
            sharded=given.sharded,
        ),
        distributed=given.distributed,
        characters=given.characters,
        checkpoint=given.checkpoint,
        resume=given.resume,
        save_every=given.save_every,
        validate_every=given.validate_every,
        plot=given.plot,
        request=Request(
            prompt=given.prompt,
            length=given.length,
            count=given.samples,
            temperature=given.temperature,
            seed=given.seed,
        ),
    )

"""The record of a run: its settings and its losses, in a file beside the checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, final

FREE = {"steps", "sharded"}
"""The settings that a run which is resumed may change."""


@final
class RecordError(Exception):
    """A record can't be read, or is of another run."""


@final
@dataclass
class Curve:
    """The losses so far, in nats: pairs of a step and the loss that was read there."""

    train: list[tuple[int, float]] = field(default_factory=list)
    validation: list[tuple[int, float]] = field(default_factory=list)

    def until(self, step: int) -> Curve:
        """Return the part up to a step."""
        return Curve(
            *([p for p in getattr(self, f.name) if p[0] <= step] for f in fields(self))
        )


def record_path(checkpoint: Path) -> Path:
    """Return where the record of a checkpoint is."""
    return checkpoint.with_name(f"{checkpoint.name}.json")


def save_record(path: Path, settings: Mapping[str, Any], curve: Curve) -> None:
    """Write a record, whole or not at all.

    Raises:
        OSError: If it can't be written.
    """
    record = {"settings": dict(settings), "losses": asdict(curve)}
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(json.dumps(record), encoding="utf-8")
    temporary.replace(path)


def load_record(path: Path, settings: Mapping[str, Any]) -> Curve:
    """Return the losses in a record of a run with these settings.

    Raises:
        RecordError: If it is damaged, or its settings are others.
        OSError: If it can't be read.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        before: dict[str, Any] = dict(record["settings"])
        losses = record["losses"]
        curve = Curve(
            *([(int(s), float(v)) for s, v in losses[f.name]] for f in fields(Curve))
        )
    except (ValueError, KeyError, TypeError) as error:
        raise RecordError(f"{path} is damaged, or no record of a run.") from error
    other = [
        f"{name} was {before.get(name)}, is {value}"
        for name, value in settings.items()
        if name not in FREE and before.get(name) != value
    ]
    if other:
        raise RecordError(
            f"{path} is of another run: {'; '.join(other)}. Give the options that it "
            f"was begun with."
        )
    return curve

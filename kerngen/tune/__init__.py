"""Tuning: search for a kernel's fastest schedules on this adapter.

`candidates.py` makes candidates, `trial.py` compiles, checks and times each, `search.py`
decides which come next, and `write.py` makes a file of the winners.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def tune(
    source: str | Path,
    kernel: str,
    sizes: Sequence[Mapping[str, int]] = (),
    *,
    stage: str = "",
    budget: float = 120.0,
    adapter: str | int | None = None,
    unchecked: bool = False,
) -> dict[str, Any]:
    """Tune a kernel of a program as `kerngen tune` does, and return the results.

    Arguments and result are plain data, so that a pool of processes can run it, on this
    machine or on others: at most one task at a time for each adapter, as they would disturb
    each other's timings.  `merged` makes one result of those of several sizes, and
    `text_of(result, "dense.kern")` the file of schedules that uses the kernel's.

    Args:
        source: The text of a program, or the `Path` of a `.kern` file.
        kernel: The name of the kernel.
        sizes: Lengths by name, for each shape; without any, one of modest size.
        stage: Only the stage of this name.
        budget: Seconds for all of them.
        adapter: As for `kerngen.runtime.open`: a kind, a number, or both as 'gpu:1'.
        unchecked: Whether shaders are timed without wgpu's runtime checks.

    Raises:
        CompileError: If the program is wrong.
        UnknownNameError: If there is no such kernel or stage.
        ArgumentError: If the sizes lack a length.
        ShapeError: If the adapter can't bind the tensors of a shape.
        NoAdapter: If there is no adapter.
    """
    # Imported here because the modules of this folder are imported one by one.
    from kerngen.tune.farm import TuneOptions, tune_source  # noqa: PLC0415

    shapes = tuple(dict(each) for each in sizes)
    asked = TuneOptions(kernel, shapes, stage, budget, adapter, unchecked)
    return tune_source(source, asked)


def merged(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the results of several tasks as one; the first of a size is kept.

    Raises:
        ArgumentError: If there are none, or they are of different kernels, adapters,
            versions or checks: their times can't be compared.
    """
    from kerngen.tune import farm  # noqa: PLC0415 - as above

    return farm.merged(found)


def text_of(found: dict[str, Any], used: str) -> str:
    """Return the file of schedules, which uses the kernel's at the path `used`."""
    from kerngen.tune import farm  # noqa: PLC0415 - as above

    return farm.text_of(found, used)


__all__ = ["merged", "text_of", "tune"]

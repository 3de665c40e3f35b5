"""Tuning tasks as plain data, for pools of processes with an adapter each.

Timings of different adapters can't be compared, and two tasks on one adapter disturb each
other's.  So a task has one adapter, and results are merged only if their adapter is the
same.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias, final

import kerngen.runtime as gpu
from kerngen.bench.arguments import own_sizes
from kerngen.bench.own import default_sizes
from kerngen.bench.record import adapter_of, versions_of
from kerngen.compiler import Compiler
from kerngen.jit.compiling import library_of
from kerngen.runtime import Context
from kerngen.runtime.calls.unknown import unknown_name
from kerngen.tune.search import Search
from kerngen.tune.session import Found, tunable_stages, tune
from kerngen.tune.trial import TunedKernel, kernel_of_subject
from kerngen.tune.write import WinnerData, line_of, write_lines

Data: TypeAlias = dict[str, Any]
"""Results as data that JSON can represent: lists, dicts, texts and numbers."""


@final
@dataclass(frozen=True, slots=True)
class TuneOptions:
    """The options of one task: kernel, stage, sizes, adapter."""

    kernel: str
    sizes: tuple[Mapping[str, int], ...] = ()
    stage: str = ""
    budget: float = 120.0
    adapter: str | int | None = None
    unchecked: bool = False


def tune_source(source: str | Path, asked: TuneOptions) -> Data:
    """Tune a kernel of a program; see `kerngen.tune.tune`."""
    library, name = library_of(source)
    compiler = Compiler(library, formatted=False)
    kernels = {each.name: each for each in compiler.module(name).kernels}
    if asked.kernel not in kernels:
        raise unknown_name("tune", "kernel", asked.kernel, kernels)
    others = compiler.compile_with_used(name)[:-1]
    subject = TunedKernel(compiler, name, kernels[asked.kernel], others)
    stages = tunable_stages(subject)
    if asked.stage and asked.stage not in stages:
        raise unknown_name("tune", "stage", asked.stage, dict.fromkeys(stages))
    chosen = (asked.stage,) if asked.stage else stages
    with gpu.open(adapter=asked.adapter, unchecked=asked.unchecked) as ctx:
        if ctx.kind == "reference":
            raise gpu.NoAdapter(
                "tune: there is no adapter to tune for; 'kerngen doctor' lists what is "
                "missing."
            )
        found = tune(
            ctx, subject, chosen, _shapes(ctx, subject, asked), asked.budget, _none
        )
        return data_of(ctx, asked.kernel, found, whole=len(stages) == 1)


def _shapes(
    ctx: Context, subject: TunedKernel, asked: TuneOptions
) -> list[Mapping[str, int]]:
    """Return the sizes that are asked for, each once, or default ones."""
    kernel = kernel_of_subject(subject)
    chosen = [*asked.sizes] or [default_sizes(kernel, ctx.kind)]
    try:
        own = [own_sizes(kernel, each) for each in chosen]
    except KeyError as error:
        raise gpu.ArgumentError(f"tune: the sizes lack {error}.") from None
    return [each for n, each in enumerate(own) if each not in own[:n]]


def _none(stage: str, sizes: Mapping[str, int], search: Search) -> None:
    """Ignore a trial: no progress is shown."""
    del stage, sizes, search


def data_of(ctx: Context, kernel: str, found: Sequence[Found], *, whole: bool) -> Data:
    """Return the winners found on an adapter as data."""
    adapter, versions = adapter_of(ctx), versions_of()
    keys = ("device", "description", "backend_type")
    names = ("kerngen", "wgpu-py", "wgpu-native")
    return {
        "kernel": kernel,
        "whole": whole,
        "about": {
            "Adapter": ", ".join(filter(None, (adapter.get(key, "") for key in keys))),
            "Versions": ", ".join(f"{name} {versions[name]}" for name in names),
            "Date": time.strftime("%Y-%m-%d"),
            "Runtime checks": "off" if ctx.unchecked else "on",
        },
        "results": [row_of(each) for each in found],
    }


def row_of(found: Found) -> Data:
    """Return a winner, with the verdicts on its candidates, as data."""
    line, best = asdict(line_of(found.winner)), found.winner.candidate
    return {
        **line,
        "best": best.text if best else "",
        "needs": list(line["needs"]),
        "verdicts": {each.value: n for each, n in found.verdicts.items()},
        "wrong": [[candidate.text, why] for candidate, why in found.wrong],
    }


def merged(found: Sequence[Data]) -> Data:
    """Return the results of tasks for one kernel as one, the first for each size.

    Raises:
        ArgumentError: If there are none, or they are of different kernels, adapters,
            versions or checks: their times can't be compared.
    """
    if not found:
        raise gpu.ArgumentError("merged: there are no results.")
    first, *others = found
    for other in others:
        for name in ("Adapter", "Versions", "Runtime checks"):
            one, two = first["about"][name], other["about"][name]
            if one != two:
                raise gpu.ArgumentError(
                    f"merged: the times are of different {name.lower()}, '{one}' and "
                    f"'{two}', so they can't be compared. Write a file for each."
                )
        if other["kernel"] != first["kernel"]:
            raise gpu.ArgumentError(
                f"merged: the results are of '{first['kernel']}' and "
                f"'{other['kernel']}'. Write a file for each."
            )
    rows: dict[tuple[Any, ...], Data] = {}
    for each in found:
        for row in each["results"]:
            rows.setdefault((row["stage"], *sorted(row["sizes"].items())), row)
    return {**first, "results": [*rows.values()]}


def text_of(found: Data, used: str, present: str = "") -> str:
    """Return the file of schedules, which uses the kernel's at the path `used`."""
    return write_lines(
        lines_of(found),
        kernel=found["kernel"],
        used=used,
        whole=found["whole"],
        about=found["about"],
        present=present,
    ).text


def lines_of(found: Data) -> list[WinnerData]:
    """Return the winners in data."""
    names = ("stage", "sizes", "schedule", "before", "after")
    return [
        WinnerData(needs=tuple(row["needs"]), **{name: row[name] for name in names})
        for row in found["results"]
    ]

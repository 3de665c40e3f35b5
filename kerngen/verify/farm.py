"""Verification tasks as plain data, for pools of processes on one or more machines.

A task is a `VerifyOptions` and sources, which can be pickled; its report is the data that
`kerngen verify --json` prints.  Seeds are independent, so the reports of several are merged
by adding their counts.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias, final

import kerngen.runtime as gpu
from kerngen.jit.compiling import library_of
from kerngen.syntax.library import Library
from kerngen.verify.campaign import Campaign
from kerngen.verify.effort import Effort
from kerngen.verify.guarded import guarded
from kerngen.verify.notes import notes_elsewhere
from kerngen.verify.report import Report, data_of
from kerngen.verify.result import Verdict
from kerngen.verify.subjects import subjects

Data: TypeAlias = dict[str, Any]
"""A report as data that JSON can represent: lists, dicts, texts and numbers."""

_WORST_FIRST: Final = (
    Verdict.WRONG,
    Verdict.HELD,
    Verdict.NOT_RUN,
    Verdict.UNCALLED,
)
_WAY: Final = ("file", "kernel", "stage", "strategy", "variant")
_COUNTS: Final = ("calls", "elements", "known")


@final
@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """The options of one task: number of calls, seed, adapter."""

    seed: int = 0
    kernel: str = ""
    schedule: str = ""
    examples: int = 20
    budget: float = 120.0
    adapter: str | int | None = None


def verify_source(source: str | Path, asked: VerifyOptions) -> Data:
    """Verify the kernels of a program; see `kerngen.verify.verify`."""
    library, name = library_of(source)
    return verify_library(library, {name: name}, asked)


def verify_library(
    library: Library, shown: Mapping[str, str], asked: VerifyOptions, sources: str = ""
) -> Data:
    """Verify the kernels of some files; `shown` has their names in the report.

    Raises:
        CompileError: If a program is wrong.
        UnknownNameError: If there is no such kernel, or no such schedule.
        NoAdapter: If there is no adapter but the reference.
    """
    with subjects(library, list(shown)) as found:
        chosen = [
            (shown[name], subject)
            for name, several in found.items()
            for subject in several
            if asked.kernel in {"", subject.kernel.name}
        ]
        if not chosen:
            raise gpu.UnknownNameError(f"verify: there is no kernel '{asked.kernel}'.")
        _check_adapter(asked.adapter)
        with notes_elsewhere(), guarded(asked.adapter) as held:
            until = time.monotonic() + asked.budget
            effort = Effort(asked.examples, asked.seed, until)
            campaign = Campaign(held, effort, asked.schedule)
            planned = len(campaign.planned(chosen))
            if not planned:
                raise gpu.UnknownNameError(
                    f"verify: no schedule has '{asked.schedule}' in its name."
                )
            results = list(campaign.results(chosen))
            return data_of(
                Report(
                    adapter=held.ctx.adapter_name,
                    seed=asked.seed,
                    results=results,
                    planned=planned,
                    sources=sources,
                    interrupted=campaign.interrupted,
                )
            )


def _check_adapter(adapter: str | int | None) -> None:
    with gpu.open(adapter=adapter) as ctx:
        if ctx.kind == "reference":
            raise gpu.NoAdapter(
                "verify: there is no adapter to verify kernels on; 'kerngen doctor' "
                "lists what is missing."
            )


def merged(reports: Sequence[Data]) -> Data:
    """Return the reports of several seeds as one: calls add up, and a wrong one counts.

    A report that comes twice, as from a task that was run again, counts once.

    Raises:
        ArgumentError: If there are none.
    """
    if not reports:
        raise gpu.ArgumentError("merged: there are no reports.")
    distinct = {(each["adapter"], each["seed"]): each for each in reports}
    ordered = [distinct[key] for key in sorted(distinct)]
    rows: dict[tuple[str, ...], Data] = {}
    for report in ordered:
        for row in report["results"]:
            way = tuple(row[name] for name in _WAY)
            rows[way] = _added(rows[way], row) if way in rows else row
    return {
        "adapter": ", ".join(dict.fromkeys(each["adapter"] for each in ordered)),
        "seed": ordered[0]["seed"],
        "seeds": sorted({each["seed"] for each in ordered}),
        "finished": all(each["finished"] for each in ordered),
        "results": [*rows.values()],
    }


def _added(one: Data, other: Data) -> Data:
    """Return two reports' results for one way as one, with the worse verdict."""
    places = [_WORST_FIRST.index(Verdict(each["verdict"])) for each in (one, other)]
    worse = one if places[0] <= places[1] else other
    return {
        **worse,
        **{name: one[name] + other[name] for name in _COUNTS},
        "worst": max(one["worst"], other["worst"]),
        "large": one["large"] or other["large"],
        "hazards": [
            *one["hazards"],
            *(each for each in other["hazards"] if each not in one["hazards"]),
        ],
    }

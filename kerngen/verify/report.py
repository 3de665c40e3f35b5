"""The report of `kerngen verify`: a table with counterexamples, and as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kerngen.source.words import counted
from kerngen.verify.result import Verdict, WayResult
from kerngen.verify.snippet import snippet

_STYLES: Mapping[Verdict, str] = {
    Verdict.HELD: "green",
    Verdict.WRONG: "bold red",
    Verdict.NOT_RUN: "yellow",
    Verdict.UNCALLED: "yellow",
}

_REPEATS: Mapping[bool, str] = {
    False: "  This repeats it:\n",
    True: (
        "  The same call was also right: the result varies, as with a race.\n"
        "  This repeats the call, perhaps several times until it is wrong:\n"
    ),
}
"""The line before the program, by whether a fault is unsteady: it varies between runs."""


@final
@dataclass(frozen=True)
class Report:
    """The results of a run, which may have ended before all `planned` ways were run.

    `sources` is the folder whose files count, empty if a file is alone.
    """

    adapter: str
    seed: int
    results: Sequence[WayResult]
    planned: int
    sources: str = ""
    interrupted: bool = False

    @property
    def finished(self) -> bool:
        """Whether the run was complete: neither the budget nor Ctrl-C ended it."""
        return not (self.interrupted or any(result.cut for result in self.results))

    @property
    def interruption(self) -> str:
        """The number of ways that were run before Ctrl-C, as a sentence."""
        done = sum(result.is_way for result in self.results)
        return f"Interrupted: {done} of {counted(self.planned, 'way')} were run."


def table_of(results: Sequence[WayResult]) -> Table:
    """Return a table with a row for each way to run each kernel."""
    return table_of_data([_row(result, None) for result in results])


def table_of_data(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return the same table, from results as data."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("kernel", overflow="fold")
    table.add_column("schedule", overflow="fold")
    for name in ("calls", "known", "worst error"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    last = ""
    for row in rows:
        known = f"{row['known'] / row['elements']:.0%}" if row["elements"] else ""
        worst = f"{row['worst']:.2f} of bound" if row["worst"] else "exact"
        style = _STYLES[Verdict(row["verdict"])]
        table.add_row(
            escape(row["kernel"] if row["kernel"] != last else ""),
            escape(_schedule(row)),
            str(row["calls"] or ""),
            known,
            worst if row["calls"] else "",
            f"[{style}]{row['verdict']}[/]{escape(_why(row))}",
        )
        last = row["kernel"]
    return table


def _schedule(row: Mapping[str, Any]) -> str:
    return " ".join(filter(None, (row["stage"], row["strategy"], row["variant"])))


def _why(row: Mapping[str, Any]) -> str:
    found = row.get("counterexample")
    if found is not None:
        return f": {found['text']}{', not each time' * (not found['steady'])}"
    large = ", ".join(f"{name} = {length}" for name, length in row["large"].items())
    said = row["why"] or (f"also {large}" if large else "")
    return f": {said}" if said else ""


def print_data(console: Console, report: Mapping[str, Any]) -> None:
    """Print the failures and hazards of a report as data."""
    for row in report["results"]:
        found = row.get("counterexample")
        if found is not None:
            sizes = ", ".join(f"{name} = {n}" for name, n in found["sizes"].items())
            _print_wrong(
                console,
                f"{row['file']}: {row['kernel']}, {_schedule(row)}"
                + (f", with {sizes}" if sizes else ""),
                found["text"],
                _REPEATS[not found["steady"]],
                found["code"],
            )
    for row in report["results"]:
        for each in row["hazards"]:
            text = f"{row['file']}:{each['line']}: {row['kernel']}: {each['text']}"
            console.print(escape(text), soft_wrap=True)


def print_counterexample(console: Console, result: WayResult, sources: str) -> None:
    """Print the failure of a way, and a program that repeats it."""
    found = result.counterexample
    assert found is not None
    sizes = ", ".join(f"{name} = {length}" for name, length in found.given.sizes)
    _print_wrong(
        console,
        f"{result.file}: {result.kernel}, {result.schedule}"
        + (f", with {sizes}" if sizes else ""),
        found.fault.text,
        _REPEATS[found.unsteady],
        snippet(result, sources),
    )


def _print_wrong(
    console: Console, where: str, fault: str, repeats: str, code: str
) -> None:
    console.print(f"\n[bold red]wrong:[/] {escape(where)}")
    console.print(f"  {escape(fault)}")
    console.print(repeats)
    for line in code.splitlines():
        console.print(escape(f"    {line}".rstrip()), soft_wrap=True, highlight=False)


def print_hazards(console: Console, results: Sequence[WayResult]) -> None:
    """Print the hazards: operations where ordinary numbers leave f32's range."""
    found = [(result, hazard) for result in results for hazard in result.hazards]
    if found:
        console.print(
            "\nOrdinary numbers exceed f32 here, where results are not checked:"
        )
    for result, hazard in found:
        console.print(
            f"  {escape(result.file)}:{hazard.line}: {escape(result.kernel)}: "
            f"[yellow]{escape(hazard.text)}[/]\n"
            f"    {escape(hazard.statement.text)}",
            soft_wrap=True,
        )


def summary(report: Report) -> str:
    """Return the numbers of kernels, ways, calls and verdicts, on one line."""
    results = report.results
    counts = Counter(result.verdict for result in results)
    kernels = len({(result.file, result.kernel) for result in results})
    calls = sum(result.tally.cases for result in results)
    shown = ", ".join(
        f"{counts[each]} {each.value}" for each in Verdict if counts[each]
    )
    return (
        f"{counted(kernels, 'kernel')}, {counted(len(results), 'way')} to run them, "
        f"{counted(calls, 'call')}: {shown or 'nothing run'} (seed {report.seed})."
    )


def data_of(report: Report) -> dict[str, Any]:
    """Return the report as JSON data."""
    return {
        "adapter": report.adapter,
        "seed": report.seed,
        "finished": report.finished,
        "results": [_row(result, report.sources) for result in report.results],
    }


def _row(result: WayResult, sources: str | None) -> dict[str, Any]:
    """Return a result as data; without `sources`, a counterexample has no program."""
    tally = result.tally
    row: dict[str, Any] = {
        "file": result.file,
        "kernel": result.kernel,
        "stage": result.stage,
        "strategy": result.strategy,
        "variant": result.variant,
        "verdict": result.verdict.value,
        "calls": tally.cases,
        "elements": tally.elements,
        "known": tally.known,
        "worst": tally.worst,
        "large": dict(result.large),
        "why": result.why,
        "hazards": [
            {"line": each.line, "kind": each.kind, "text": each.text}
            for each in result.hazards
        ],
    }
    found = result.counterexample
    if found is not None:
        row["counterexample"] = {
            "kind": found.fault.kind,
            "text": found.fault.text,
            "steady": not found.unsteady,
            "sizes": dict(found.given.sizes),
            "got": _finite(found.fault.got),
            "expected": _finite(found.fault.expected),
            "bound": found.fault.bound,
            "code": "" if sources is None else snippet(result, sources),
        }
    return row


def _finite(value: float) -> float | str:
    """Return a number as JSON can represent it: one that is not finite as a text."""
    return value if value - value == 0 else str(value)

"""`kerngen doctor`: examine the machine, and report problems with advice."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import click

from kerngen.cli.arguments import options
from kerngen.cli.console import console_for, progress
from kerngen.cli.project import Selection, select
from kerngen.cli.settings import find_project
from kerngen.source.words import counted

if TYPE_CHECKING:
    from pathlib import Path

    from kerngen.doctor.findings import Finding, Section
    from kerngen.doctor.probe import AdapterData
    from kerngen.doctor.selftest import CheckData

_MARKS: Final = {
    "ok": ("ok", "green"),
    "warning": ("!", "yellow"),
    "failed": ("x", "red"),
}


@click.command(
    epilog=options.examples("kerngen doctor", "kerngen doctor --json > report.json")
)
@options.as_json("all findings as JSON")
def doctor(as_json: bool) -> None:
    """Examine the machine: adapters, drivers, versions, settings.

    It also reports whether the generated files are up to date.  A self-test runs kernels
    on every adapter and compares their results with NumPy's.  The exit status is 1 if
    something keeps kernels from running or makes their results wrong; warnings do not
    count.
    """
    report = _examine()
    if as_json:
        click.echo(json.dumps(_data(report), indent=2))
    else:
        _print(report.sections)
    if report.failed:
        raise click.exceptions.Exit(1)


@final
@dataclass(frozen=True, slots=True)
class _Report:
    """The findings: `tests` has the results of the self-test on each adapter."""

    versions: dict[str, str]
    adapters: list[AdapterData]
    tests: list[list[CheckData]]
    sections: list[Section]

    @property
    def failed(self) -> bool:
        """Whether something keeps kernels from running, or makes them wrong."""
        from kerngen.doctor.findings import Status

        return any(section.status is Status.FAILED for section in self.sections)


def _examine() -> _Report:
    from kerngen.doctor import adapters, variables, versions
    from kerngen.doctor.machine import inspect_machine

    found = adapters.probe()
    there = found["adapters"]
    numbers = progress(range(len(there)), len(there), "Testing adapters")
    tests = [adapters.self_test(number) for number in numbers]
    known = versions.versions(found["native"])
    choice = variables.choice(os.environ)
    sections = [
        versions.section(known),
        variables.section(os.environ),
        adapters.adapters_section(found, inspect_machine(), choice),
        adapters.self_test_section(there, tests),
        _generated(),
    ]
    return _Report(known, there, tests, sections)


def _data(report: _Report) -> dict[str, object]:
    from kerngen.doctor import variables

    return {
        "ok": not report.failed,
        "versions": report.versions,
        "environment": variables.variables(os.environ),
        "adapters": [
            {**adapter, "self_test": checks}
            for adapter, checks in zip(report.adapters, report.tests, strict=True)
        ],
        "sections": [section.as_data() for section in report.sections],
    }


def _generated() -> Section:
    """Return the section about the project's generated files: are they up to date?"""
    from kerngen.doctor.findings import Finding, Section, Status

    title = "Generated files"
    try:
        project = find_project()
        if project.source is None or project.out is None:
            return Section(title, (Finding("No project here sets any."),))
        stale = _stale(select(None, project), project.out)
    except click.ClickException as error:
        return Section(title, (Finding(error.message, Status.FAILED),))
    if not stale:
        return Section(title, (Finding(f"{project.out} is up to date."),))
    text = f"{project.out} is out of date for {', '.join(stale)}."
    return Section(title, (Finding(text, Status.WARNING, ("Run 'kerngen build'.",)),))


def _stale(selection: Selection, out: Path) -> list[str]:
    from kerngen.output.freshness import Freshness
    from kerngen.source.diagnostic import CompileError

    library, freshness = selection.library(), Freshness(out)
    stale: list[str] = []
    for source in selection.files:
        try:
            fresh = freshness.is_of(source.name, library.digest(source.name))
        except (CompileError, OSError):
            fresh = False
        if not fresh:
            stale.append(source.shown)
    return stale


def _print(sections: Iterable[Section]) -> None:
    console = console_for(sys.stdout)
    bad = 0
    for section in sections:
        bad += bool(section.status)
        mark, style = _MARKS[section.status.word]
        console.print(f"[{mark}] {section.title}", style=f"bold {style}")
        for finding in section.findings:
            mark, style = _MARKS[finding.status.word] if finding.status else ("-", "")
            for line in _lines(finding, mark):
                console.print(line, style=style)
    click.echo(
        f"\n{counted(bad, 'section')} with problems." if bad else "\nNo problems."
    )


def _lines(finding: Finding, mark: str) -> Iterator[str]:
    first, *rest = finding.text.splitlines()
    yield f"    {mark} {first}"
    yield from (f"      {line}" for line in rest)
    yield from (f"      -> {line}" for line in finding.advice)

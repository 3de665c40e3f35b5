"""`kerngen doctor`: what is wrong with this machine, and what to do about it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import click

from kerngen.cli.console import console_for, progress
from kerngen.cli.project import Selection, find_project, select
from kerngen.source.worded import counted

if TYPE_CHECKING:
    from pathlib import Path

    from kerngen.doctor.findings import Finding, Section

_MARKS: Final = {
    "ok": ("ok", "green"),
    "warning": ("!", "yellow"),
    "failed": ("x", "red"),
}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print all findings as JSON.")
def doctor(as_json: bool) -> None:
    """Examine the machine: adapters, drivers, versions, settings, generated files.

    A self-test runs kernels on every adapter and holds them to NumPy.  The exit status is
    1 if something is wrong that keeps kernels from running, or lets them give other
    values; warnings do not count.
    """
    from kerngen.doctor import variables, versions
    from kerngen.doctor.adapters import (
        adapters_section,
        probe,
        self_test,
        self_test_section,
    )
    from kerngen.doctor.findings import Status
    from kerngen.doctor.machine import inspect_machine

    found = probe()
    adapters = found["adapters"]
    numbers = range(len(adapters))
    tests = [self_test(n) for n in progress(numbers, len(numbers), "Testing adapters")]
    versions_found = versions.versions(found["native"])
    sections = [
        versions.section(versions_found),
        variables.section(os.environ),
        adapters_section(found, inspect_machine(), variables.choice(os.environ)),
        self_test_section(adapters, tests),
        _generated(),
    ]
    failed = [s for s in sections if s.status is Status.FAILED]
    if as_json:
        data = {
            "ok": not failed,
            "versions": versions_found,
            "environment": variables.variables(os.environ),
            "adapters": [
                {**adapter, "self_test": checks}
                for adapter, checks in zip(adapters, tests, strict=True)
            ],
            "sections": [section.as_data() for section in sections],
        }
        click.echo(json.dumps(data, indent=2))
    else:
        _print(sections)
    if failed:
        raise click.exceptions.Exit(1)


def _generated() -> Section:
    """Return whether the project's generated files are those of its sources."""
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

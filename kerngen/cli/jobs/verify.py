"""`kerngen verify --jobs`: several processes with a seed each, and one report."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

import click

import kerngen.runtime as gpu
from kerngen.cli.arguments.paths import shown_path
from kerngen.cli.console import report_console
from kerngen.cli.jobs.adapters import numbers
from kerngen.cli.project import Selection
from kerngen.source.words import counted
from kerngen.verify.farm import VerifyOptions, merged, verify_library
from kerngen.verify.report import print_data, table_of_data
from kerngen.verify.result import Verdict


def verify_in_jobs(
    selection: Selection, asked: VerifyOptions, jobs: int, *, as_json: bool
) -> None:
    """Verify in several processes, print the report, and exit with its status."""
    try:
        usable = numbers()
        tasks = [
            replace(asked, seed=asked.seed + n, adapter=usable[n % len(usable)])
            for n in range(jobs)
        ]
        # Spawned: a device can't be used after a fork.
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            report = merged(list(pool.map(_one, [selection] * jobs, tasks)))
    except gpu.Error as error:
        raise click.ClickException(str(error)) from None
    except BrokenProcessPool:
        raise click.ClickException(
            "A process ended in the middle: the adapter's driver may have crashed. Find "
            "the seed by 'kerngen verify --seed N' without --jobs."
        ) from None
    _print(report, as_json=as_json)
    if any(row["verdict"] == Verdict.WRONG.value for row in report["results"]):
        raise click.exceptions.Exit(1)


def _one(selection: Selection, asked: VerifyOptions) -> dict[str, Any]:
    """Verify with one seed, in a process of its own."""
    shown = {file.name: file.shown for file in selection.files}
    sources = shown_path(selection.base) if selection.root is not None else ""
    return verify_library(selection.library(), shown, asked, sources)


def _print(report: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(report, indent=2))
        return
    console = report_console()
    console.print(table_of_data(report["results"]))
    print_data(console, report)
    calls = sum(row["calls"] for row in report["results"])
    seeds = ", ".join(map(str, report["seeds"]))
    click.echo(f"\n{report['adapter']}: {counted(calls, 'call')} (seeds {seeds}).")

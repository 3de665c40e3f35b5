"""The table of a benchmark run: a row per case, a column per contestant."""

from __future__ import annotations

from typing import Final

from rich.table import Table

from kerngen.bench.record import ResultData, RunData, WallsData
from kerngen.bench.words import duration, of_ceiling, rate, sizes

OURS: Final = ("unchecked", "checked")
"""The contestants that run kerngen's kernels: without runtime checks, and with them."""

_STYLES: Final = ((1.0, "green"), (0.8, "yellow"), (0.0, "red"))
"""The colours of ratios, each from a least ratio on."""


def table_of(run: RunData) -> Table:
    """Return the table of rates."""
    names = run["contestants"]
    ours = [name for name in names if name in OURS]
    peers = [name for name in names if name not in OURS]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("kernel", overflow="fold")
    table.add_column("sizes", overflow="fold")
    for name in ours[:1]:
        table.add_column(name, justify="right", no_wrap=True)
        table.add_column("time", justify="right", no_wrap=True)
        table.add_column("spread", justify="right", no_wrap=True, style="dim")
        table.add_column("of ceiling", justify="right", no_wrap=True)
    for name in ours[1:]:
        table.add_column(name, justify="right", no_wrap=True)
    for name in peers:
        table.add_column(name, justify="right", no_wrap=True)
        table.add_column("ratio", justify="right", no_wrap=True)
    for result in run["results"]:
        table.add_row(*_row(result, ours, peers))
    return table


def _row(result: ResultData, ours: list[str], peers: list[str]) -> list[str]:
    cells = [result["name"], sizes(result)]
    for name in ours[:1]:
        cells += _detailed(result, name)
    cells += [_rate(result, name) for name in ours[1:]]
    for name in peers:
        cells += [_rate(result, name), _ratio(result, name, ours)]
    return cells


def _rate(result: ResultData, name: str) -> str:
    timing = result["timings"].get(name)
    return rate(result, timing["median"]) if timing else "-"


def _detailed(result: ResultData, name: str) -> list[str]:
    """Return rate, time, spread, and the fraction of the ceiling."""
    timing = result["timings"].get(name)
    if timing is None:
        return ["-"] * 4
    median = timing["median"]
    return [
        rate(result, median),
        duration(median),
        f"{(timing['high'] - timing['low']) / median:.1%}",
        of_ceiling(result, median),
    ]


def _ratio(result: ResultData, peer: str, ours: list[str]) -> str:
    """Return how many times as fast our kernel is: green from 1 on, red below 0.8."""
    timings = result["timings"]
    own = next((timings[name] for name in ours if name in timings), None)
    if own is None or peer not in timings:
        return ""
    ratio = timings[peer]["median"] / own["median"]
    style = next(style for least, style in _STYLES if ratio >= least)
    return f"[{style}]{ratio:.2f}x[/]"


def walls_of(run: RunData) -> Table | None:
    """Return the table of timings by the host's clock, or None.

    There is no table if no result has such timings.
    """
    names = [
        n for n in run["contestants"] if any(n in _walls(r) for r in run["results"])
    ]
    if not names:
        return None
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("kernel", "sizes", "timed"):
        table.add_column(title, overflow="fold")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for result in run["results"]:
        if _walls(result):
            for row in _wall_rows(result, names):
                table.add_row(*row)
    return table


WALL_ROWS: Final = ("device", "loop", "read")
"""The three timings of a launch: on the device, in a loop, and with a read."""


def wall_times(result: ResultData, name: str) -> tuple[str, ...]:
    """Return a contestant's timings of a launch, in the order of `WALL_ROWS`."""
    walls, timing = _walls(result).get(name), result["timings"].get(name)
    if walls is None or timing is None:
        return ("-",) * len(WALL_ROWS)
    each = (timing, walls["loop"], walls["read"])
    return tuple(duration(one["median"]) for one in each)


def _wall_rows(result: ResultData, names: list[str]) -> list[list[str]]:
    columns = [wall_times(result, name) for name in names]
    heads = [[result["name"], sizes(result)], ["", ""], ["", ""]]
    rows = zip(heads, WALL_ROWS, zip(*columns, strict=True), strict=True)
    return [[*head, title, *times] for head, title, times in rows]


def _walls(result: ResultData) -> dict[str, WallsData]:
    return result.get("walls", {})


def notes_of(run: RunData) -> list[str]:
    """Return the reasons for missing results, each once."""
    found: dict[str, list[str]] = {}
    for result in run["results"]:
        for name, why in result["notes"].items():
            if why != "it has no such kernel":
                where = f"{result['name']}({sizes(result)}) {name}"
                found.setdefault(why, []).append(where)
    return [f"{', '.join(where)}: {why}" for why, where in found.items()]

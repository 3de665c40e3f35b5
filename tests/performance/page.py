"""docs/performance.md, generated from the results that are kept beside it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, TypedDict, cast

from kerngen.bench.record import ResultData, RunData
from kerngen.bench.table import OURS, WALL_ROWS, notes_of, wall_times
from kerngen.bench.words import duration, heading, of_ceiling, rate, sizes
from kerngen.ir.strategies import REPLACED
from tests.performance.ablation import AblationData, RowData

DOCS: Final = Path(__file__).parent.parent.parent / "docs"
RESULTS: Final = DOCS / "performance"
PAGE: Final = DOCS / "performance.md"

INTRODUCTION: Final = """\
# Performance

`tools/performance --report` generates this page from the raw results in `docs/performance`. `tools/performance --out FILE` measures again, on the best adapter of the machine; [bench.md](bench.md) describes the method.

*of ceiling* is the fraction of the speed that a copy and fused multiply-adds in registers, measured in the same run, allow if each byte is moved once. *ratio* is the speed of the kernel without runtime checks, divided by that of the peer beside it; above 1, the kernel is faster. Times are of one launch, by the device's clock. Those by the host's, in a loop and with a read, are in a table of their own, for runs that took them.

*spread* is the distance between the quartiles of the samples, as a fraction of the median. A **bold** spread is above 20 %, and the row is unreliable: something else ran on the machine. *> 110%* of the ceiling means that the ceiling does not apply: small tensors may be in a cache, while the copy goes through memory; a processor's writes may cost more than its reads, and half of the bytes of a copy are written; or something disturbed the copy, which is measured once, before the rest.
"""

BY_THE_WALL: Final = """\
### By the host's clock

*device* is the time above. *loop* is that of a launch in a row of them, until the last one is done: the larger of what the device takes and what the host takes to start one. *read* is that of one launch with a read of four bytes behind it, so that the host waits for each.
"""

EARLIER: Final = """\
A day behind a kernel's name: the row is of an earlier run on such a machine, with the schedules of that day."""

WIDE: Final = 0.2
"""The spread above which a row is marked."""


ON_SOFTWARE: Final = """\
Here the processor runs the shaders, and NumPy, one after the other: the ratios are what a driver in software costs. Schedules are chosen for GPUs; the figures show which techniques help on every adapter."""


class PerformanceData(TypedDict):
    """What a results file holds: a run of the suite, and ablations."""

    run: RunData
    ablations: list[AblationData]


def read_all() -> dict[str, PerformanceData]:
    """Return the results by the names of their files: GPUs first."""
    found = {
        file.stem.removeprefix("results-"): read(file)
        for file in RESULTS.glob("results-*.json")
    }
    software = {name: is_software(data["run"]) for name, data in found.items()}
    return {name: found[name] for name in sorted(found, key=lambda n: (software[n], n))}


def read(file: Path) -> PerformanceData:
    """Return what a results file holds."""
    return cast("PerformanceData", json.loads(file.read_text("utf-8")))


def merged(earlier: PerformanceData, run: RunData) -> PerformanceData:
    """Return earlier data with the results of a run in their places.

    What was not measured again keeps the date of its own run, if that was on another day.
    """

    def case(result: ResultData) -> tuple[str, tuple[tuple[str, int], ...]]:
        # Scalars come in the order in which a call's conditions read them.
        return result["name"], (*sorted(result["sizes"].items()),)

    again = {case(result): result for result in run["results"]}
    old, results = earlier["run"], list[ResultData]()
    for result in old["results"]:
        kept = result.copy()
        if old["date"][:10] != run["date"][:10]:
            kept.setdefault("date", old["date"])
        results.append(again.pop(case(result), kept))
    results += again.values()
    return {"run": {**run, "results": results}, "ablations": earlier["ablations"]}


def is_software(run: RunData) -> bool:
    """Whether the processor ran the shaders."""
    return run["adapter"]["adapter_type"] == "CPU"


def write_page(found: dict[str, PerformanceData]) -> None:
    """Write the page again."""
    PAGE.write_text(page(found), encoding="utf-8")


def page(found: dict[str, PerformanceData]) -> str:
    """Return the page's text."""
    lines = [INTRODUCTION]
    for name, data in found.items():
        lines += _section(name, data)
    return "\n".join(lines).rstrip("\n") + "\n"


def _section(name: str, data: PerformanceData) -> Iterator[str]:
    run = data["run"]
    yield f"## {run['adapter']['device']}\n"
    yield from (f"- {label}: {text}" for label, text in heading(run))
    yield f"\n![Roofline](performance/roofline-{name}.png)"
    if is_software(run):
        yield f"\n{ON_SOFTWARE}"
    if _peers(run):
        yield f"\n![Beside {_peers(run)[0]}](performance/ratios-{name}.png)"
    yield ""
    if any("date" in each for each in run["results"]):
        yield f"{EARLIER}\n"
    yield from _table(run["results"], _peers(run))
    for peer in _few(run):
        timed = [each for each in run["results"] if peer in each["timings"]]
        yield ""
        yield from _table(timed, [peer])
    yield from _by_the_wall(run)
    for note in notes_of(run):
        yield f"\nNot timed: {note}."
    if data["ablations"]:
        yield "\n### What each technique is worth\n"
        yield (
            "The schedule that a kernel has here, then the same with one change. The "
            "samples of all versions of a kernel alternate.\n"
        )
        yield from _ablations(data["ablations"])
    yield ""


def _by_the_wall(run: RunData) -> Iterator[str]:
    """Yield the table of the host's clock; older results have none."""
    timed = [each for each in run["results"] if each.get("walls")]
    if not timed:
        return
    yield f"\n{BY_THE_WALL}"
    names = [name for name in run["contestants"] if name not in _few(run)]
    titles = [f"{name}: {', '.join(WALL_ROWS)}" for name in names]
    yield _cells(["kernel", "sizes", *titles])
    yield _cells(["---", "---", *("---:" for _ in names)])
    for result in timed:
        times = [", ".join(wall_times(result, name)) for name in names]
        yield _cells([_name(result), sizes(result), *times])


def _peers(run: RunData) -> list[str]:
    """Return the peers that have timings of a third of the cases."""
    few = _few(run)
    return [name for name in run["contestants"] if name not in {*OURS, *few}]


def _few(run: RunData) -> list[str]:
    """Return those that have fewer, and so a table of their own."""
    timed = Counter(name for result in run["results"] for name in result["timings"])
    known = (name for name in run["contestants"] if name not in OURS)
    return [name for name in known if 0 < 3 * timed[name] < len(run["results"])]


def _table(results: Sequence[ResultData], peers: Sequence[str]) -> Iterator[str]:
    titles = ["kernel", "sizes", "time", "rate", "spread", "of ceiling", "checked"]
    for peer in peers:
        titles += [peer, "ratio"]
    yield _cells(titles)
    yield _cells(["---", "---", *("---:" for _ in titles[2:])])
    yield from (_cells(_row(result, peers)) for result in results)


def _row(result: ResultData, peers: Sequence[str]) -> list[str]:
    timings = result["timings"]
    own = next((timings[name] for name in OURS if name in timings), None)
    cells = [_name(result), sizes(result)]
    if own is None:
        cells += ["-"] * 4
    else:
        median = own["median"]
        spread = _spread((own["high"] - own["low"]) / median)
        cells += [duration(median), rate(result, median)]
        cells += [spread, of_ceiling(result, median)]
    cells.append(_rate(result, "checked"))
    for peer in peers:
        both = own is not None and peer in timings
        cells.append(_rate(result, peer))
        cells.append(_ratio(result, peer) if both else "")
    return cells


def _name(result: ResultData) -> str:
    """Return the kernel's name, with the day of a result of an earlier run."""
    day = f" ({result['date'][:10]})" if "date" in result else ""
    return f"{result['name']}{day}"


def _rate(result: ResultData, name: str) -> str:
    timing = result["timings"].get(name)
    return rate(result, timing["median"]) if timing else "-"


def _ratio(result: ResultData, peer: str) -> str:
    timings = result["timings"]
    own = next(timings[name] for name in OURS if name in timings)
    return f"{timings[peer]['median'] / own['median']:.2f}"


def _ablations(found: Sequence[AblationData]) -> Iterator[str]:
    titles = ["kernel", "sizes", "what", "time", "spread", "of the speed", "schedule"]
    yield _cells(titles)
    yield _cells(["---", "---", "---", "---:", "---:", "---:", "---"])
    for each in found:
        if any(map(_gone, each["rows"])):
            continue
        shown = [each["kernel"], _at(each)]
        for row in each["rows"]:
            part = f"{each['rows'][0]['seconds'] / row['seconds']:.0%}"
            spread = _spread(row["spread"])
            cells = [row["what"], duration(row["seconds"]), spread, part]
            yield _cells([*shown, *cells, f"`{row['schedule']}`"])
            shown = ["", ""]
    for why, where in _left_out(found).items():
        yield f"\nLeft out: {', '.join(where)}. {why}"


def _left_out(found: Sequence[AblationData]) -> dict[str, list[str]]:
    """Return what could not be timed by the reasons, each once."""
    reasons: dict[str, list[str]] = {}
    for each in found:
        for why in {gone: None for row in each["rows"] if (gone := _gone(row))}:
            reasons.setdefault(why, []).append(f"{each['kernel']} ({_at(each)})")
        for what, why in each["notes"].items():
            where = f"{each['kernel']} ({_at(each)}) with \"{what}\""
            reasons.setdefault(why, []).append(where)
    return reasons


def _gone(row: RowData) -> str:
    """Say that a schedule has an option that is there no more; empty if it has none."""
    strategy, *options = row["schedule"].split()
    gone = (name for of, name in REPLACED if of == strategy)
    for name in gone:
        if any(option.startswith(f"{name}(") for option in options):
            return (
                f"They were measured with `{name}`, which `{strategy}` no longer has."
            )
    return ""


def _at(ablation: AblationData) -> str:
    return ", ".join(f"{name}={size}" for name, size in ablation["sizes"].items())


def _spread(part: float) -> str:
    """Return a spread, in bold where the row tells little."""
    return f"**{part:.1%}**" if part > WIDE else f"{part:.1%}"


def _cells(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"

"""Records of benchmark runs as JSON, with their circumstances."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, NotRequired, TypedDict

from kerngen import __version__
from kerngen.bench.ceilings import Ceilings
from kerngen.bench.measure import SamplingLimits, Timing, has_timestamps
from kerngen.bench.peers import Peer
from kerngen.bench.run import CaseResult
from kerngen.runtime import Context

FORMAT: Final = 1


class TimingData(TypedDict):
    """A timing as data: median and quartiles in seconds."""

    median: float
    low: float
    high: float
    samples: int
    launches: int


class WallsData(TypedDict):
    """Timings by the host's clock as data: in a loop, and of launches with a read."""

    loop: TimingData
    read: TimingData


class ResultData(TypedDict):
    """The result of a case as data: timings by contestant, and why some are missing.

    `least` is the shortest time in seconds that the ceilings allow.  Older files have no
    `walls`.  A result that was taken over from an earlier run has that run's `date`.
    """

    name: str
    sizes: dict[str, int]
    unit: str
    bytes: int
    operations: int
    least: float
    timings: dict[str, TimingData]
    notes: dict[str, str]
    walls: NotRequired[dict[str, WallsData]]
    date: NotRequired[str]


class RunData(TypedDict):
    """A benchmark run as data: circumstances, ceilings and results."""

    format: int
    date: str
    adapter: dict[str, str]
    limits: dict[str, int]
    clock: str
    versions: dict[str, str]
    effort: dict[str, float]
    contestants: list[str]
    absent: dict[str, str]
    ceilings: dict[str, float]
    results: list[ResultData]


def head(
    ctx: Context,
    effort: SamplingLimits,
    contestants: Iterable[str],
    peers: Iterable[Peer],
    absent: Mapping[str, str],
    ceilings: Ceilings,
) -> RunData:
    """Return the record of a run that has no results yet."""
    return {
        "format": FORMAT,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "adapter": adapter_of(ctx),
        "limits": limits_of(ctx),
        "clock": (
            "device" if ctx.kind != "reference" and has_timestamps(ctx) else "host"
        ),
        "versions": versions_of(peers),
        "effort": {
            "samples": effort.samples,
            "launches": effort.launches,
            "seconds": effort.seconds,
        },
        "contestants": [*contestants],
        "absent": dict(absent),
        "ceilings": {"bytes": ceilings.bytes, "operations": ceilings.operations},
        "results": [],
    }


def adapter_of(ctx: Context) -> dict[str, str]:
    """Return the adapter and its driver, as data."""
    if ctx.kind == "reference":
        return {"device": ctx.adapter_name, "adapter_type": "reference"}
    info: Mapping[str, object] = ctx.device.adapter.info
    keys = ("device", "description", "vendor", "adapter_type", "backend_type")
    return {key: str(info[key]) for key in keys if info.get(key)}


def limits_of(ctx: Context) -> dict[str, int]:
    """Return the limits of the adapter on which schedules depend."""
    if ctx.kind == "reference":
        return {}
    keys = (
        "max-compute-workgroup-storage-size",
        "max-compute-invocations-per-workgroup",
        "max-storage-buffer-binding-size",
    )
    return {key: int(ctx.device.limits[key]) for key in keys}


def versions_of(peers: Iterable[Peer] = ()) -> dict[str, str]:
    """Return the versions of kerngen, Python, NumPy, wgpu and the peers."""
    found = {
        "kerngen": __version__,
        "Python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "NumPy": _version("numpy"),
        "wgpu-py": _version("wgpu"),
        "wgpu-native": _native(),
    }
    return found | {peer.name: peer.version for peer in peers}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _native() -> str:
    module = sys.modules.get("wgpu.backends.wgpu_native")
    return str(getattr(module, "__version__", "not loaded"))


def result_data(result: CaseResult, ceilings: Ceilings) -> ResultData:
    """Return a result as data."""
    case = result.case
    return {
        "name": case.name,
        "sizes": dict(case.sizes),
        "unit": case.unit.value,
        "bytes": case.bytes,
        "operations": case.operations,
        "least": ceilings.least(case),
        "timings": timings_data(result),
        "notes": dict(result.notes),
        "walls": {
            name: {"loop": _timing(each.loop), "read": _timing(each.read)}
            for name, each in result.walls.items()
        },
    }


def timings_data(result: CaseResult) -> dict[str, TimingData]:
    """Return the timings of a result as data."""
    return {name: _timing(each) for name, each in result.timings.items()}


def _timing(timing: Timing) -> TimingData:
    return {
        "median": timing.median,
        "low": timing.low,
        "high": timing.high,
        "samples": timing.samples,
        "launches": timing.launches,
    }


def keep(data: object, file: Path | None) -> None:
    """Write the record so far to a file, if one is given."""
    if file is not None:
        file.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")

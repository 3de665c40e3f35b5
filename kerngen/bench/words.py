"""Figures of benchmarks as text."""

from __future__ import annotations

from typing import Final

from kerngen.bench.case import Unit
from kerngen.bench.record import ResultData, RunData

_RATES: Final = {Unit.BYTES: "B/s", Unit.OPERATIONS: "FLOP/s"}
_BEYOND: Final = 1.1
"""Above this part of the ceiling, the spread of timings is no explanation any more."""
_PREFIXES: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"))


def rate(result: ResultData, seconds: float) -> str:
    """Return the rate for a case's time: `48.6 TFLOP/s`."""
    unit = Unit(result["unit"])
    done = result["bytes"] if unit is Unit.BYTES else result["operations"]
    return quantity(done / seconds, _RATES[unit])


def quantity(value: float, unit: str) -> str:
    """Return a number with its unit and a prefix: `1.72 GB/s`, and `3400 GB/s`, not TB/s."""
    fitting = (
        p for p in _PREFIXES if value >= p[0] and not (unit == "B/s" and p[1] == "T")
    )
    scale, prefix = next(fitting, (1.0, ""))
    scaled = value / scale
    digits = 0 if scaled >= 100 else 1 if scaled >= 10 else 2
    return f"{scaled:.{digits}f} {prefix}{unit}"


def of_ceiling(result: ResultData, seconds: float) -> str:
    """Return the fraction of the ceiling that a time reaches, as text.

    A result far above the ceiling is marked: the tensors may have been in a cache, or
    the measurement of the ceiling was disturbed.
    """
    part = result["least"] / seconds
    return f"> {_BEYOND:.0%}" if part > _BEYOND else f"{part:.0%}"


def duration(seconds: float) -> str:
    """Return a time with a suitable unit: `18.5 us`."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= scale:
            return f"{seconds / scale:.4g} {unit}"
    return f"{seconds * 1e6:.4g} us"


def sizes(result: ResultData) -> str:
    """Return the sizes as text, in powers of two where that is shorter."""
    return ", ".join(f"{name}={_size(n)}" for name, n in result["sizes"].items())


def _size(n: int) -> str:
    return f"2^{n.bit_length() - 1}" if n >= 2**16 and n & (n - 1) == 0 else str(n)


def heading(run: RunData) -> list[tuple[str, str]]:
    """Return the heading of a run's table: labels and texts."""
    adapter = run["adapter"]
    details = [adapter[k] for k in ("description", "backend_type") if adapter.get(k)]
    ceilings = run["ceilings"]
    clock = {
        "device": "the device's timestamps",
        "host": "the host's clock: there are no timestamps",
    }
    copied = quantity(ceilings["bytes"], "B/s")
    multiplied = quantity(ceilings["operations"], "FLOP/s")
    return [
        ("adapter", ", ".join((adapter["device"], *details))),
        ("date", run["date"]),
        ("versions", ", ".join(f"{k} {v}" for k, v in run["versions"].items())),
        ("timed by", clock[run["clock"]]),
        ("ceilings", f"copy {copied}, fma {multiplied}"),
        *((f"no {name}", why) for name, why in run["absent"].items()),
    ]

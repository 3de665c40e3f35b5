"""Versions of Python, kerngen, and the packages that both need."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Final

from kerngen import __version__
from kerngen.doctor.findings import Finding, Section, Status

_NEEDED: Final = ("wgpu", "numpy", "black", "click", "lark", "rich")
_OPTIONAL: Final = (
    *("hypothesis", "ipython", "kerngen-kernels", "safetensors", "watchfiles"),
)
_REQUIREMENT: Final = re.compile(
    r"([\w-]+)([<>=\d.,]*)(?:; extra == ['\"]compiler['\"])?"
)
"""A requirement of the runtime, or of the extra `compiler`, to which this command belongs."""

_BOUND: Final = re.compile(r"(>=|<)([\d.]+)")

NATIVE: Final = "wgpu-native"
"""The library inside of wgpu, whose version is known only to a process that loads it."""


def versions(native: str) -> dict[str, str]:
    """Return installed versions by name, "" for missing packages."""
    system = f"{platform.system()} {platform.release()}, {platform.machine()}"
    python = f"{platform.python_version()} ({platform.python_implementation()})"
    packages = {name: _version(name) for name in (*_NEEDED, *_OPTIONAL)}
    return {
        "system": system,
        "python": python,
        "kerngen": __version__,
        NATIVE: native,
        **packages,
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def section(found: Mapping[str, str]) -> Section:
    """Return the findings about versions."""
    return Section("Versions", tuple(_findings(found)))


def _findings(found: Mapping[str, str]) -> Iterator[Finding]:
    there = [f"{name} {value}" for name, value in found.items() if value]
    system, *rest = there
    yield Finding(system.removeprefix("system "))
    yield Finding(", ".join(rest))
    wanted = _wanted()
    for name in _NEEDED:
        needed = f"{name}{wanted.get(name, '')}"
        advice = (f'Install it: pip install "{needed}"',)
        if not found[name]:
            yield Finding(f"{name} is not installed.", Status.FAILED, advice)
        elif not fits(found[name], wanted.get(name, "")):
            text = f"{name} is {found[name]}, and kerngen needs {needed}."
            yield Finding(text, Status.FAILED, advice)


def _wanted() -> dict[str, str]:
    """Return the versions that kerngen declares it needs, where it is installed."""
    try:
        lines = requires("kerngen") or []
    except PackageNotFoundError:
        return {}
    plain = (_REQUIREMENT.fullmatch(line) for line in lines)
    return {found[1]: found[2] for found in plain if found}


def fits(version: str, wanted: str) -> bool:
    """Return whether a version is within bounds, by its numbers alone.

    >>> fits("26.10.1", "<27,>=26"), fits("0.31.2", ">=0.32"), fits("1.0rc1", "")
    (True, False, True)
    """
    bounds = [_BOUND.fullmatch(bound) for bound in wanted.split(",")]
    return all(
        (_numbers(version) >= _numbers(b[2])) == (b[1] == ">=") for b in bounds if b
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", re.split(r"[a-z+]", version)[0])))

"""Versions of Python, of kerngen, and of what both need."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from kerngen import __version__
from kerngen.doctor.findings import Finding, Section, Status

_NEEDED: Final = ("wgpu", "numpy", "black", "click", "lark", "rich", "safetensors")
_OPTIONAL: Final = ("hypothesis", "ipython", "watchfiles")

NATIVE: Final = "wgpu-native"
"""The library inside of wgpu; only a process that loads it can tell its version."""


def versions(native: str) -> dict[str, str]:
    """Return versions by name, empty where something is not installed."""
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
    """Return them as a section; a package that is needed and missing is a failure."""
    return Section("Versions", tuple(_findings(found)))


def _findings(found: Mapping[str, str]) -> Iterator[Finding]:
    there = [f"{name} {value}" for name, value in found.items() if value]
    system, *rest = there
    yield Finding(system.removeprefix("system "))
    yield Finding(", ".join(rest))
    for name in _NEEDED:
        if not found[name]:
            advice = (f"Install it: pip install {name}",)
            yield Finding(f"{name} is not installed.", Status.FAILED, advice)

"""Facts about a Linux machine that matter to GPU drivers, read from its files."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from ctypes.util import find_library
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

DRIVER_VARIABLES: Final = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
"""Variables that replace the list of Vulkan drivers; the first one that is set counts."""

_MANIFESTS: Final = (
    *("usr/share/vulkan/icd.d", "usr/local/share/vulkan/icd.d"),
    *("etc/vulkan/icd.d", "usr/local/etc/vulkan/icd.d"),
)
_CONTAINERS: Final = (".dockerenv", "run/.containerenv")


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """Facts about a machine that matter to GPU drivers.

    - `family`: the names of its distribution and of those that it derives from
    - `manifests`: the JSON files of the Vulkan drivers that are installed
    - `limited_by`: the variable that hides all drivers but those that it names, if set
    - `missing_manifests`: the files that it names, and that don't exist
    - `render_nodes`: Linux's device files of GPUs, as renderD128
    - `closed_nodes`: those of them that this user may not open
    """

    system: str
    family: frozenset[str] = frozenset()
    is_wsl: bool = False
    is_container: bool = False
    has_loader: bool = True
    has_nvidia: bool = False
    manifests: tuple[str, ...] = ()
    missing_manifests: tuple[str, ...] = ()
    limited_by: str = ""
    render_nodes: tuple[str, ...] = ()
    closed_nodes: tuple[str, ...] = ()


def inspect_machine(
    root: Path = Path("/"), environment: Mapping[str, str] = os.environ
) -> Machine:
    """Return the facts about this machine, or about a tree of files."""
    if sys.platform != "linux":
        return Machine(system=sys.platform)
    nodes = tuple(sorted(root.glob("dev/dri/renderD*")))
    limited_by = next((v for v in DRIVER_VARIABLES if environment.get(v)), "")
    closed = (node for node in nodes if not os.access(node, os.R_OK | os.W_OK))
    return Machine(
        system="linux",
        family=_family(root / "etc/os-release"),
        is_wsl="microsoft" in platform.release().lower(),
        is_container=any((root / file).exists() for file in _CONTAINERS),
        has_loader=find_library("vulkan") is not None,
        has_nvidia=any(
            (root / path).exists() for path in ("dev/nvidiactl", "dev/nvidia0")
        ),
        manifests=tuple(
            sorted(
                f.name for folder in _MANIFESTS for f in (root / folder).glob("*.json")
            )
        ),
        missing_manifests=_missing(environment.get(limited_by, "")),
        limited_by=limited_by,
        render_nodes=tuple(node.name for node in nodes),
        closed_nodes=tuple(node.name for node in closed),
    )


def _family(file: Path) -> frozenset[str]:
    """Return the names in `ID` and `ID_LIKE` of os-release."""
    try:
        lines = file.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    pairs = (line.partition("=") for line in lines)
    values = (v.strip("\"'") for key, _, v in pairs if key in {"ID", "ID_LIKE"})
    return frozenset(name for value in values for name in value.split())


def _missing(paths: str) -> tuple[str, ...]:
    listed = paths.split(os.pathsep)
    return tuple(path for path in listed if path and not Path(path).exists())

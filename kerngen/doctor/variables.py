"""Environment variables that affect the choice of adapter."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, final

from kerngen.doctor.findings import Finding, Section, Status
from kerngen.doctor.machine import DRIVER_VARIABLES

# Repeated from `kerngen.runtime.device.adapter`, which needs NumPy: even that may be missing.
ADAPTER: Final = "KERNGEN_ADAPTER"
CHOICES: Final = ("gpu", "software", "reference")
_CHOICE: Final = re.compile(r"|reference|(?:(?:gpu|software):)?\d+|gpu|software")
UNCHECKED: Final = "KERNGEN_UNCHECKED"


@final
@dataclass(frozen=True, slots=True)
class _Variable:
    """A variable, its meaning, and the check of a value, with the expected values in words."""

    name: str
    meaning: str
    is_right: Callable[[str], bool] = bool
    expected: str = ""


_OURS: Final = (
    _Variable(
        ADAPTER,
        "the adapter that open() chooses",
        lambda value: _CHOICE.fullmatch(value.strip().lower()) is not None,
        f"expected {', '.join(CHOICES)}, a number or both, as gpu:1, or nothing",
    ),
    _Variable(
        UNCHECKED,
        "1 leaves runtime checks out of shaders",
        lambda value: value.strip() in ("", "0", "1"),
        "expected 0 or 1",
    ),
)
_DRIVERS: Final = (
    *(_Variable(name, "Vulkan sees these drivers only") for name in DRIVER_VARIABLES),
    _Variable("VK_ADD_DRIVER_FILES", "Vulkan sees these drivers, too"),
    _Variable("WGPU_LIB_PATH", "wgpu loads this library instead of its own"),
    _Variable("MESA_VK_DEVICE_SELECT", "Mesa lists this device first"),
    _Variable("LP_NATIVE_VECTOR_WIDTH", "how wide llvmpipe's vectors are, in bits"),
    _Variable("GALLIVM_PERF", "what llvmpipe leaves out when it compiles"),
    _Variable("CUDA_VISIBLE_DEVICES", "hides NVIDIA's GPUs from CUDA, not from Vulkan"),
    _Variable("NVIDIA_DRIVER_CAPABILITIES", "which drivers a container is given"),
)

_OF_A_LOGIN: Final = "XDG_RUNTIME_DIR"
_WITHOUT_LOGIN: Final = (
    "a driver may report that as an error, which is harmless; "
    "'export XDG_RUNTIME_DIR=/tmp' ends it"
)


def variables(environment: Mapping[str, str]) -> dict[str, str | None]:
    """Return kerngen's own variables, and those of drivers if set."""
    own = {each.name: environment.get(each.name) for each in _OURS}
    set_ = {v.name: environment[v.name] for v in _DRIVERS if v.name in environment}
    return own | set_


def choice(environment: Mapping[str, str]) -> str:
    """Return the adapter that the environment asks for, or ""."""
    return environment.get(ADAPTER, "").strip().lower()


def section(environment: Mapping[str, str]) -> Section:
    """Return the findings about variables."""
    return Section("Environment", tuple(_findings(environment)))


def _findings(environment: Mapping[str, str]) -> Iterator[Finding]:
    for each in _OURS:
        value = environment.get(each.name)
        if value is None:
            yield Finding(f"{each.name} is not set: {each.meaning}")
        elif each.is_right(value):
            yield Finding(f"{each.name}={value}: {each.meaning}")
        else:
            text = f"{each.name}={value}: {each.expected}"
            yield Finding(text, Status.FAILED, (f"Correct {each.name}, or unset it.",))
    for each in _DRIVERS:
        if each.name in environment:
            yield Finding(f"{each.name}={environment[each.name]}: {each.meaning}")
    if sys.platform == "linux" and not environment.get(_OF_A_LOGIN):
        yield Finding(f"{_OF_A_LOGIN} is not set: {_WITHOUT_LOGIN}")

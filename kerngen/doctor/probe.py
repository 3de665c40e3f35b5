"""What adapters there are, as wgpu lists them; runs in a process of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, TypedDict

from kerngen.doctor.apart import answer
from kerngen.runtime.device import (
    FEATURES,
    VARIABLE,
    WEBGPU_LIMITS,
    adapter_kind,
    adapter_name,
    best_of,
    choice_of_environment,
    list_adapters,
)

_NATIVE: Final = "wgpu.backends.wgpu_native"


class AdapterData(TypedDict):
    """An adapter: `driver` and `type` in wgpu's words, limits and features that matter.

    `why` says of the one that `open()` takes why it does.
    """

    name: str
    driver: str
    backend: str
    type: str
    kind: str
    chosen: bool
    why: str
    features: dict[str, bool]
    limits: dict[str, int]


class ProbeData(TypedDict):
    """The adapters in wgpu's order, or why there are none."""

    error: str
    native: str
    adapters: list[AdapterData]


def main() -> None:
    """Answer with what wgpu finds."""
    try:
        adapters = list_adapters()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        answer(
            ProbeData(error=f"{type(error).__name__}: {error}", native="", adapters=[])
        )
        return
    choice = choice_of_environment()
    best = None if choice == "reference" else best_of(adapters, _choice())
    described = [_described(adapter, adapters, best) for adapter in adapters]
    answer(ProbeData(error="", native=_native_version(), adapters=described))


def _choice() -> Any:
    """Return the kind that the environment asks for, if it is one of an adapter."""
    choice = choice_of_environment()
    return choice if choice in ("gpu", "software") else None


def _native_version() -> str:
    native: Any = import_module(_NATIVE)
    return ".".join(map(str, native.lib_version_info))


def _described(adapter: Any, adapters: Sequence[Any], best: Any) -> AdapterData:
    info = adapter.info
    is_best = adapter is best
    return {
        "name": adapter_name(adapter),
        "driver": " ".join(filter(None, (info["vendor"], info["description"]))),
        "backend": info["backend_type"],
        "type": info["adapter_type"],
        "kind": adapter_kind(adapter),
        "chosen": is_best,
        "why": _why(adapter, adapters) if is_best else "",
        "features": _features(adapter.features),
        "limits": _limits(adapter.limits),
    }


def _features(features: Iterable[str]) -> dict[str, bool]:
    found = set(features)
    return {name: name in found for name in FEATURES}


def _limits(limits: Mapping[str, int]) -> dict[str, int]:
    return {name: limits[name] for name in WEBGPU_LIMITS if name in limits}


def _why(best: Any, adapters: Sequence[Any]) -> str:
    """Say what the chosen adapter has over the others."""
    choice = _choice()
    if choice is not None:
        return f"{VARIABLE}={choice} asks for its kind"
    others = [adapter for adapter in adapters if adapter is not best]
    if not others:
        return "it is the only one"
    for key, text in (("adapter_type", "type"), ("backend_type", "backend")):
        mine = best.info[key]
        if any(adapter.info[key] != mine for adapter in others):
            return f"its {text}, {mine}, is preferred to the others'"
    return "it is listed first"

"""A program that lists wgpu's adapters; it runs in its own process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, TypedDict

from kerngen.doctor.probe_process import reply
from kerngen.runtime.device.adapter import (
    VARIABLE,
    Adapter,
    AdapterChoice,
    adapter_kind,
    adapter_name,
    choice_of_environment,
    in_order,
    list_adapters,
)
from kerngen.runtime.device.opening import FEATURES, WEBGPU_LIMITS
from kerngen.runtime.errors import NoAdapter

_NATIVE: Final = "wgpu.backends.wgpu_native"


class AdapterData(TypedDict):
    """An adapter as data: name, driver, type, limits and features.

    `number` is the one for `open(adapter=number)`; it is None if another API reaches
    the same hardware. `why` is the reason why `open()` selects this one.
    """

    number: int | None
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
    """The adapters in wgpu's order, or the error of wgpu."""

    error: str
    native: str
    adapters: list[AdapterData]


def main() -> None:
    """Reply with the adapters that wgpu finds."""
    try:
        adapters = list_adapters()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        reply(
            ProbeData(error=f"{type(error).__name__}: {error}", native="", adapters=[])
        )
        return
    ranked, choice = in_order(adapters), _choice()
    best = choice.pick(ranked)
    described = [_described(adapter, ranked, best) for adapter in adapters]
    reply(ProbeData(error="", native=_native_version(), adapters=described))


def _choice() -> AdapterChoice:
    """Return the adapter that the environment asks for, if it exists."""
    try:
        return choice_of_environment() or AdapterChoice()
    except NoAdapter:
        return AdapterChoice()


def _native_version() -> str:
    native: Any = import_module(_NATIVE)
    return ".".join(map(str, native.lib_version_info))


def _described(
    adapter: Any, ranked: Sequence[Adapter], best: Adapter | None
) -> AdapterData:
    # `own` is None if another API reaches the same hardware, and is preferred.
    info = adapter.info
    own = next((each for each in ranked if each.of_wgpu is adapter), None)
    is_best = own is not None and own is best
    return {
        "number": own.number if own else None,
        "name": adapter_name(adapter),
        "driver": " ".join(filter(None, (info["vendor"], info["description"]))),
        "backend": info["backend_type"],
        "type": info["adapter_type"],
        "kind": adapter_kind(adapter),
        "chosen": is_best,
        "why": _why(own, ranked) if own and is_best else "",
        "features": _features(adapter.features),
        "limits": _limits(adapter.limits),
    }


def _features(features: Iterable[str]) -> dict[str, bool]:
    found = set(features)
    return {name: name in found for name in FEATURES}


def _limits(limits: Mapping[str, int]) -> dict[str, int]:
    return {name: limits[name] for name in WEBGPU_LIMITS if name in limits}


def _why(best: Adapter, ranked: Sequence[Adapter]) -> str:
    """Return the reason for the chosen adapter, as 'its type, DiscreteGPU, is preferred'."""
    choice = _choice()
    if choice != AdapterChoice():
        what = "its kind" if choice.number is None else "it"
        return f"{VARIABLE}={choice} asks for {what}"
    others = [each.of_wgpu for each in ranked if each is not best]
    if not others:
        return "it is the only one"
    for key, text in (("adapter_type", "type"), ("backend_type", "backend")):
        mine = best.of_wgpu.info[key]
        if any(adapter.info[key] != mine for adapter in others):
            return f"its {text}, {mine}, is preferred to the others'"
    return "it is listed first"

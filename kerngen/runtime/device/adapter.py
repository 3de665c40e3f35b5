"""The adapters of this machine in order, and the choice of one."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast, final, get_args

from kerngen.runtime.backend import Kind
from kerngen.runtime.device.native import load
from kerngen.runtime.errors import NoAdapter

AdapterKind: TypeAlias = Literal["gpu", "software", "reference"]

VARIABLE: Final = "KERNGEN_ADAPTER"
"""The environment variable that chooses an adapter."""

_TYPES: Final = ("DiscreteGPU", "IntegratedGPU", "unknown", "CPU")
"""The types of adapters in wgpu's words, the preferred one first."""

_BACKENDS: Final = ("Metal", "D3D12", "Vulkan")
"""The APIs in order of preference; OpenGL is not among them, see `in_order`."""

_CHOICE: Final = re.compile(r"(?:([a-z]+)(?::(\d+))?|(\d+))")
"""A choice as users write it: `gpu`, `gpu:1` or `1`."""


@final
@dataclass(frozen=True, slots=True)
class Adapter:
    """An adapter, and the number by which `open(adapter=number)` takes it.

    `kind` is 'gpu' or 'software', `backend` the API by which it is reached.
    """

    number: int
    name: str
    kind: Kind
    backend: str
    of_wgpu: Any = field(repr=False, compare=False)


@final
@dataclass(frozen=True, slots=True)
class AdapterChoice:
    """A choice of adapter: `gpu:1` is the second GPU, `1` the second of any kind."""

    kind: AdapterKind | None = None
    number: int | None = None

    @classmethod
    def parse(cls, value: str | int) -> AdapterChoice:
        """Parse a kind, a number, or both: 'gpu', 1, 'gpu:1'.

        Raises:
            NoAdapter: If `value` is none of these.
        """
        match = _CHOICE.fullmatch(str(value).strip().lower())
        kind = match[1] if match else None
        if match is None or kind not in (None, *get_args(AdapterKind)):
            raise NoAdapter(
                f"'{value}' names no adapter; expected one of "
                f"{', '.join(get_args(AdapterKind))}, the number of one, or both: 'gpu:1'."
            )
        number = match[2] or match[3]
        if kind == "reference" and number:
            raise NoAdapter(f"'{value}': there is one reference, without a number.")
        return cls(cast("AdapterKind | None", kind), int(number) if number else None)

    def __str__(self) -> str:
        """Return the choice as users write it: `gpu:1`."""
        return ":".join(str(p) for p in (self.kind, self.number) if p is not None)

    def pick(self, adapters: Sequence[Adapter]) -> Adapter | None:
        """Return the chosen one of `adapters`, or None if none fits."""
        fitting = [a for a in adapters if self.kind in (None, a.kind)]
        return dict(enumerate(fitting)).get(self.number or 0)


def choice_of_environment() -> AdapterChoice | None:
    """Return the choice in the environment variable KERNGEN_ADAPTER, or None if it is not set.

    Raises:
        NoAdapter: If it is not the name or number of an adapter.
    """
    value = os.environ.get(VARIABLE, "").strip()
    return AdapterChoice.parse(value) if value else None


def adapters() -> tuple[Adapter, ...]:
    """List the adapters, the best first: GPUs, then software.

    The numbers are those of `open(adapter=number)` and `KERNGEN_ADAPTER`.  They stay the
    same while the machine and its drivers do, but two equal GPUs can't be distinguished.

    Raises:
        NoAdapter: If wgpu can't start.
    """
    try:
        return in_order(list_adapters())
    except (ImportError, OSError, RuntimeError) as error:
        raise NoAdapter(f"wgpu does not start: {error}") from error


def list_adapters() -> Sequence[Any]:
    """Return wgpu's list of adapters; raise wgpu's error if it can't start."""
    # Not at the top: importing kerngen.runtime must stay cheap.
    found: Sequence[Any] = load().gpu.enumerate_adapters_sync()
    return found


def in_order(found: Sequence[Any]) -> tuple[Adapter, ...]:
    """Return wgpu's adapters as ours, numbered, the best first.

    An adapter that OpenGL reaches besides another API is listed once: OpenGL counts only if no
    other API reaches an adapter of the kind.
    """
    # The kinds, 'gpu' and 'software', that are reached without OpenGL.
    direct = {adapter_kind(a) for a in found if a.info["backend_type"] in _BACKENDS}
    usable = [
        adapter
        for adapter in found
        if adapter.info["backend_type"] in _BACKENDS
        or adapter_kind(adapter) not in direct
    ]
    return tuple(
        Adapter(
            number,
            adapter_name(adapter),
            adapter_kind(adapter),
            adapter.info["backend_type"],
            adapter,
        )
        for number, adapter in enumerate(sorted(usable, key=_preference))
    )


def _preference(adapter: Any) -> tuple[int, int]:
    """Return the key that sorts adapters: by type, then by API; others come last."""
    info = adapter.info
    return _rank(_TYPES, info["adapter_type"]), _rank(_BACKENDS, info["backend_type"])


def _rank(order: Sequence[str], value: str) -> int:
    return order.index(value) if value in order else len(order)


def adapter_kind(adapter: Any) -> Kind:
    """Return 'gpu', or 'software' for a CPU that does a GPU's work."""
    return "software" if adapter.info["adapter_type"] == "CPU" else "gpu"


def adapter_name(adapter: Any) -> str:
    """Return the adapter's name, as its driver reports it."""
    info = adapter.info
    return str(info["device"] or info["description"] or "unnamed adapter")

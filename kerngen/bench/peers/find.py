"""The known peers, and which of them are installed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Final, Protocol, cast

from kerngen.bench.case import BenchCase
from kerngen.bench.measure import Clock


class Peer(Protocol):
    """Another library that can do the work of some cases."""

    @property
    def name(self) -> str:
        """The name of its column, with the device."""
        ...

    @property
    def version(self) -> str:
        """Its version."""
        ...

    def clock(self, case: BenchCase) -> AbstractContextManager[Clock | None]:
        """Yield a clock for a case's counterpart in the library, or None.

        The memory that it takes is freed at the end of the block.
        """
        ...


PEERS: Final[Mapping[str, tuple[str, ...]]] = {
    "torch": ("gpu", "software"),
    "tinygrad": (),
    "numpy": ("software", "reference"),
}
"""The peers by name, each with the kinds of adapter beside which it runs by default."""

BESIDE: Final[Mapping[tuple[str, str], str]] = {("torch", "gpu"): "torch_compile"}
"""A second peer that runs beside one that was asked for, on a kind of adapter.

It takes seconds to compile each case, so it is left out where no peers were asked for.
"""


def asked_for(names: Iterable[str], kind: str) -> list[str]:
    """Return the peers that were asked for, with those of `BESIDE`."""
    given = list(names)
    beside = (BESIDE.get((name, kind)) for name in given)
    return [*given, *(name for name in beside if name)]


def find_peers(names: Iterable[str], kind: str) -> tuple[list[Peer], dict[str, str]]:
    """Return the peers that can run here, and the reasons why others can't."""
    found: list[Peer] = []
    absent: dict[str, str] = {}
    for name in names:
        module = import_module(f"kerngen.bench.peers.{name}")
        make = cast("Callable[[str], Peer]", module.make)
        try:
            found.append(make(kind))
        except ImportError as error:
            absent[name] = f"not installed ({error})"
        except Exception as error:  # noqa: BLE001 - of a library, so of any class
            absent[name] = f"it does not start ({type(error).__name__}: {error})"
    return found, absent

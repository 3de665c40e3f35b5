"""Selection of benchmark cases: the suite's, named ones, or those of a user's file."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from difflib import get_close_matches
from importlib import import_module
from typing import Final

import kerngen_kernels
from kerngen.bench.arguments import Sizes, own_sizes
from kerngen.bench.case import BenchCase, kernel_case
from kerngen.bench.own import default_sizes
from kerngen.bench.sorting import sort_case, sorting_cases, topk_case
from kerngen.bench.standard import STANDARD, find_function
from kerngen.bench.system_sizes import FEED_FORWARD, SORT, STEP, TOPK
from kerngen.bench.systems import (
    feed_forward_case,
    step_case,
    system_cases,
)
from kerngen.runtime.calls.choices import kernel_of
from kerngen.runtime.calls.kernel import Kernel

_SYSTEMS: Final = {
    STEP: step_case,
    FEED_FORWARD: feed_forward_case,
    SORT: sort_case,
    TOPK: topk_case,
}


class UnknownKernelError(Exception):
    """Raised for a name that is no kernel of the suite or of the standard ones."""


def suite(kind: str, *, quick: bool) -> Iterator[BenchCase]:
    """Yield the suite's cases for a kind of adapter; if `quick`, one of each kernel."""
    small = kind != "gpu"
    for standard in STANDARD:
        cases = [*standard.cases(small=small)]
        yield from cases[:1] if quick else cases
    if not quick:
        yield from _systems(small=small)


def _systems(*, small: bool) -> Iterator[BenchCase]:
    """Yield the cases of several kernels."""
    yield from system_cases(small=small)
    yield from sorting_cases(small=small)


def named(name: str, chosen: tuple[Sizes, ...], kind: str) -> Iterator[BenchCase]:
    """Yield the cases of a standard kernel or system, at its own or the chosen sizes.

    Raises UnknownKernelError; ShapeError and KeyError as for the sizes of any kernel.
    """
    small = kind != "gpu"
    if name in _SYSTEMS:
        listed = [case for case in _systems(small=small) if case.name == name]
        yield from map(_SYSTEMS[name], chosen) if chosen else listed
        return
    rows = [row for row in STANDARD if name in {row.name, row.path}]
    if rows:
        yield from map(rows[0].case, chosen) if chosen else rows[0].cases(small=small)
        return
    path = _find(name)
    function = find_function(path)
    kernel = kernel_of(function)
    for sizes in chosen or (default_sizes(kernel, kind),):
        yield kernel_case(function, own_sizes(kernel, sizes), 0, name=path, twin=path)


def _find(name: str) -> str:
    """Return the path of the one standard kernel of a name."""
    known = {path: path.rpartition(".")[2] for path in _paths()}
    found = [path for path, short in known.items() if name in {path, short}]
    if len(found) == 1:
        return found[0]
    if found:
        raise UnknownKernelError(
            f"There are several kernels '{name}': {', '.join(found)}."
        )
    close = get_close_matches(name, [*known, *known.values(), *_SYSTEMS], n=1)
    hint = f" Did you mean '{close[0]}'?" if close else ""
    raise UnknownKernelError(f"There is no kernel '{name}'.{hint}")


def _paths() -> Iterator[str]:
    """Yield every standard kernel as module and name."""
    for info in pkgutil.iter_modules(kerngen_kernels.__path__):
        module = import_module(f"kerngen_kernels.{info.name}")
        for value in vars(module).values():
            if isinstance(value, Kernel):
                yield f"{info.name}.{value.name}"

"""Functions of the programs that `kerngen verify` prints to repeat a failure."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kerngen.runtime.calls.kernel import Kernel
from kerngen.runtime.struct import Struct
from kerngen.runtime.values.elements import Element
from kerngen.source.reading import read_source
from kerngen.source.text import Source
from kerngen.syntax.library import Library, origin_of, sources_below
from kerngen.verify.calls.sizes import Fitting
from kerngen.verify.campaign import reference_way
from kerngen.verify.differences import InnerProducts, products
from kerngen.verify.guarded import PATTERNS, guarded
from kerngen.verify.meaning.programs import Subject
from kerngen.verify.result import OVERLAPS, REFERENCE
from kerngen.verify.subjects import subjects
from kerngen.verify.trial import Given, launch, refer, writes_words
from kerngen.verify.ways import ways

Run: TypeAlias = Callable[..., list[NDArray[Any]]]


class OutsideError(Exception):
    """Raised for a kernel that wrote outside of its tensors."""


@contextmanager
def kernel(
    file: str,
    name: str,
    schedule: str,
    *,
    sources: str = "",
    arrangement: str = "apart",
    overlapping: tuple[int, int] | None = None,
) -> Generator[Run]:
    """Yield a function that runs a kernel of a `.kern` file in one way.

    The function takes arrays, then scalars, and returns the tensors that change, then the
    outputs.  It raises OutsideError if the kernel writes outside of them: the memory
    around them is filled with the pattern of number `pattern`.

    `schedule` is a stage, a strategy and a variant, as `kerngen verify` prints them.
    `sources` is the folder with the file's other files, which may schedule the kernel.
    """
    with _subject(file, name, sources) as subject:
        yield _runner(subject, schedule, arrangement, overlapping)


def differences(
    file: str, name: str, *, seed: int, sources: str = ""
) -> list[InnerProducts]:
    """Return the gradient and the finite differences of a kernel, to compare."""
    with _subject(file, name, sources) as subject:
        return products(subject, seed)[1]


@contextmanager
def _subject(file: str, name: str, sources: str) -> Generator[Subject]:
    path = Path(file).resolve()
    base = Path(sources).resolve() if sources else path.parent
    origin = origin_of(base)
    every = sorted(sources_below(base)) if sources else [path]
    files = [each.relative_to(origin).as_posix() for each in every]
    own = path.relative_to(origin).as_posix()
    library = Library(lambda wanted: _read(origin, wanted), files)
    with subjects(library, [own]) as found:
        yield next(each for each in found[own] if each.kernel.name == name)


def _read(origin: Path, name: str) -> Source:
    return read_source(origin / name, name, name)


def _runner(
    subject: Subject,
    schedule: str,
    arrangement: str,
    overlapping: tuple[int, int] | None,
) -> Run:
    """Return the function that `kernel` yields; each call of it has a device of its own."""
    known = {str(way): way for way in ways(subject.runtime)}
    known |= dict.fromkeys((REFERENCE, OVERLAPS), reference_way(subject))
    if schedule not in known:
        raise ValueError(f"There is no '{schedule}': there are {', '.join(known)}.")
    way = known[schedule]
    fitting = Fitting(subject, way)

    def run(*arguments: Any, pattern: int = 0) -> list[NDArray[Any]]:
        plain = _given(subject.runtime, arguments, arrangement)
        given = replace(plain, overlapping=overlapping)
        if schedule == REFERENCE:
            return refer(fitting.kernel, given)
        with guarded() as device:
            with device.under(PATTERNS[pattern]):
                results = launch(device.ctx, fitting, way, given)
            if fault := device.fault(by_words=writes_words(subject)):
                raise OutsideError(fault)
            return results

    return run


def _given(kernel: Kernel, arguments: tuple[Any, ...], arrangement: str) -> Given:
    """Return arguments as a call has them; structs come as their bytes."""
    count = len(kernel.inputs)
    arrays = tuple(
        _records(spec.element, value) if isinstance(value, tuple) else value
        for spec, value in zip(kernel.inputs, arguments[:count], strict=True)
    )
    scalars = tuple(
        (
            spec.element.unpack(value)
            if issubclass(spec.element, Struct) and isinstance(value, bytes)
            else value
        )
        for spec, value in zip(kernel.scalars, arguments[count:], strict=True)
    )
    sizes: dict[str, int] = {}
    for spec, array in zip(kernel.inputs, arrays, strict=True):
        pairs = zip(spec.axes, np.shape(array), strict=False)
        sizes |= {axis: length for axis, length in pairs if isinstance(axis, str)}
    sizes |= kernel.guards(scalars)
    return Given(tuple(sizes.items()), arrays, scalars, arrangement)


def _records(element: type[Element], value: Any) -> NDArray[Any]:
    """Return an array of structs, given its bytes and its shape."""
    data, shape = value
    records: NDArray[Any] = data.view(element.DTYPE).reshape(shape)
    return records

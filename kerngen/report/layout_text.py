"""The text of `kerngen layout`: a table and a picture of each struct, and hints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kerngen.ir.memory import FixedArray
from kerngen.layout.order import BetterOrder
from kerngen.layout.rules import Space
from kerngen.layout.types import LayoutField, StructLayout
from kerngen.report.layout_data import LayoutSubject, axes_of
from kerngen.report.layout_picture import Pieces, letter_and_style, picture

_MOST_NAMED: Final = 24
"""The most fields that a hint lists in their better order."""

_LEGEND: Final = (
    "Offsets and sizes are in bytes. In a picture, a letter is a byte of that field, and "
    "a dot is padding: a byte that nothing uses."
)

_PLACES: Final = {
    Space.STORAGE: "in storage buffers: tensors",
    Space.UNIFORM: "in uniform buffers: parameters",
}


def as_text(
    chosen: Iterable[LayoutSubject], better: Iterable[BetterOrder]
) -> Iterator[Pieces]:
    """Yield the lines that `kerngen layout` prints."""
    for number, subject in enumerate(chosen):
        if number:
            yield ()
        yield from _subject(subject)
    yield ()
    yield ((_LEGEND, "dim"),)
    for each in better:
        yield ()
        yield (("hint: ", "bold"), (hint_text(each), ""))


def hint_text(better: BetterOrder) -> str:
    """Return a sentence about a better order of a struct's fields."""
    of = "As a parameter, " if better.space is Space.UNIFORM else ""
    names = [f"'{name}'" for name in better.names]
    if len(names) > _MOST_NAMED:
        names = [*names[:_MOST_NAMED], "..."]
    return (
        f"{of}'{better.struct.name}' takes {better.size} bytes; with its fields in the "
        f"order {', '.join(names)} it would take {better.better}."
    )


def _subject(subject: LayoutSubject) -> Iterator[Pieces]:
    """Yield one table for both address spaces where these are alike."""
    first, *others = subject.layouts
    if others and all(other.name == first.name for other in others):
        aligned = f"aligned to {first.align} in tensors and to {others[0].align} in parameters"
        if first.align == others[0].align:
            aligned = f"aligned to {first.align}"
        yield _title(first, f"{aligned}; in storage and uniform buffers alike")
        yield from _body(first)
        return
    for number, laid in enumerate(subject.layouts):
        if number:
            yield ()
        where = f"aligned to {laid.align}; {_PLACES[laid.space]}"
        yield _title(laid, where)
        yield from _body(laid)


def _title(laid: StructLayout, where: str) -> Pieces:
    return ((f"{laid.name}", "bold"), (f"  {laid.size} bytes, {where}", ""))


def _body(laid: StructLayout) -> Iterator[Pieces]:
    yield (("     offset   size  align  padding  field", "dim"),)
    for number, field in enumerate(laid.fields):
        letter, style = letter_and_style(number)
        numbers = (
            f"  {field.offset:6} {field.size:6} {field.align:6} {field.padding:8}  "
        )
        name = f"{field.name}: {field.type.spelling}"
        yield (
            (f"  {letter}", style),
            (numbers, ""),
            (name, style),
            (_apart(field), "dim"),
        )
    yield ()
    yield from picture(laid)


def _apart(field: LayoutField) -> str:
    """Return how far the elements of an array, or the columns of a matrix, lie apart."""
    strides = [f"{stride}" for _, stride in axes_of(field.laid)]
    if not strides:
        return ""
    what = "one" if isinstance(field.type, FixedArray) else "a column"
    return f"  ({what} every {', '.join(strides)} bytes)"

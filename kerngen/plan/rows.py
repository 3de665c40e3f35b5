"""The steps of a plan as rows: lines whose names, sizes and conditions are not yet text.

    run softmax.rows(x, y*) | groups m

is the pieces

    "run ", ReplaceableName("softmax.rows"), "(", ReplaceableName("x"), ", ",
    ReplaceableName("y"), "*", ")", " | groups ", Symbol("m")

Rows are compared piece by piece: what lines of several kernels have in common becomes a form
(`forms.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never, final

from kerngen.plan import tree
from kerngen.plan.lines import NAMELESS
from kerngen.plan.size import ALWAYS, ZERO, Guard, Literal, Size
from kerngen.plan.text import SizePrinter


@final
@dataclass(frozen=True, slots=True)
class ReplaceableName:
    """The name of a shader, tensor or stage; similar rows may have another one in its place."""

    text: str


@final
@dataclass(frozen=True, slots=True)
class Declared:
    """The name of a scratch buffer where it is declared; similar rows have the same one."""

    text: str


Piece: TypeAlias = str | ReplaceableName | Declared | Size | Guard
"""A part of a row; strings are fixed words, and include the blanks around them."""


@final
@dataclass(frozen=True, slots=True)
class Row:
    """A line of steps: its depth of indentation, and its pieces."""

    depth: int
    pieces: tuple[Piece, ...]


def rows_of(body: tree.Sequence, depth: int) -> Iterator[Row]:
    """Yield the rows of a sequence of steps, which are indented by `depth`."""
    for step in body:
        match step:
            case tree.Dispatch():
                yield Row(depth, tuple(_dispatch(step)))
            case tree.Repeat(count, repeated):
                yield Row(depth, ("repeat ", count))
                yield from rows_of(repeated, depth + 1)
            case tree.Choice(cases, ()):
                yield from _cases(cases, depth)
            case tree.Choice(cases, stages):
                yield Row(
                    depth, ("stage ", *_joined([(ReplaceableName(x),) for x in stages]))
                )
                yield from _cases(cases, depth + 1)
            case _:
                assert_never(step)


def row_text(row: Row, printer: SizePrinter) -> str:
    """Return the text of a row without its indentation; `printer` prints sizes and guards."""
    return "".join(_text(piece, printer) for piece in row.pieces)


def _text(piece: Piece, printer: SizePrinter) -> str:
    if isinstance(piece, str):
        return piece
    if isinstance(piece, ReplaceableName | Declared):
        return piece.text
    return printer.size(piece) if isinstance(piece, Size) else printer.guard(piece)


def _joined(items: Iterable[Sequence[Piece]]) -> Iterator[Piece]:
    """Yield the pieces of items, with commas between these."""
    for number, item in enumerate(items):
        if number:
            yield ", "
        yield from item


def _cases(cases: Iterable[tree.Case], depth: int) -> Iterator[Row]:
    """Yield the rows of cases: one each, which ends in the first dispatch, and those below."""
    for case in cases:
        pieces: list[Piece] = [case.name or NAMELESS]
        if case.when != ALWAYS:
            pieces += (" | when ", case.when)
        pieces += _needs(case.needs)
        for item in case.scratch:
            pieces += _scratch(item)
        match case.body:
            case (tree.Dispatch() as first, *others):
                pieces += (" | ", *_dispatch(first))
            case others:
                pass
        yield Row(depth, tuple(pieces))
        yield from rows_of(tuple(others), depth + 1)


def _needs(needs: tree.Needs) -> Iterator[Piece]:
    if needs.workgroup_bytes:
        yield from (" | bytes ", Literal(needs.workgroup_bytes))
    if needs.invocations:
        yield from (" | invocations ", Literal(needs.invocations))
    if needs.subgroups:
        yield " | subgroups"


def _scratch(item: tree.Scratch) -> Sequence[Piece]:
    return " | scratch ", Declared(item.name), "[", item.length, "]"


def _dispatch(dispatch: tree.Dispatch) -> Iterator[Piece]:
    """Yield the pieces of a dispatch; fields that are 0 or the default are left out."""
    # The entry point is a fixed word: rows of a form run the same variants.
    file, colon, entry = dispatch.wgsl.partition(":")
    yield from ("run ", ReplaceableName(file), f"{colon}{entry}(")
    yield from _joined(
        [
            (ReplaceableName(b.name), "*") if b.writes else (ReplaceableName(b.name),)
            for b in dispatch.bindings
        ]
    )
    yield ")"
    if dispatch.constants:
        yield " | with "
        yield from _joined([(f"{n} = ", Literal(v)) for n, v in dispatch.constants])
    yield from (" | groups ", dispatch.groups)
    if dispatch.trips != ZERO:
        yield from (" | trips ", dispatch.trips)
    if dispatch.terms != ZERO:
        yield from (" | terms ", dispatch.terms)
    if not dispatch.uses_uniform:
        yield " | no uniform"

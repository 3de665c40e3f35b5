"""A picture of a struct's bytes: a letter for each byte that a field uses, else a dot.

0  aaaa aaaa aaaa bbbb
16  cccc .... .... ....
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from string import ascii_lowercase, ascii_uppercase
from typing import Final, TypeAlias, assert_never

from kerngen.layout import types as layout

Pieces: TypeAlias = tuple[tuple[str, str], ...]
"""Pieces of a line, each with its style in rich's words."""

LETTERS: Final = ascii_lowercase + ascii_uppercase
STYLES: Final = ("cyan", "green", "yellow", "magenta", "blue", "red")
UNUSED: Final = "."

_ROW: Final = 16
"""Bytes in a row of the picture."""
_WORD: Final = 4
"""Bytes between two gaps of a row: a word of WGSL's memory."""
_MOST, _HEAD, _TAIL = 32, 20, 4
"""A picture of more rows than `_MOST` is cut to its first and last ones."""


def letter_and_style(number: int) -> tuple[str, str]:
    """Return the letter and style with which field `number` is drawn."""
    return LETTERS[number % len(LETTERS)], STYLES[number % len(STYLES)]


def picture(laid: layout.StructLayout) -> Iterator[Pieces]:
    """Yield the picture's rows of 16 bytes; a long struct is cut in the middle."""
    rows = -(-laid.size // _ROW)
    width = len(str((rows - 1) * _ROW))
    shown = rows if rows <= _MOST else _HEAD
    for row in range(shown):
        yield _row(laid, row * _ROW, width)
    if shown < rows:
        left_out = rows - _HEAD - _TAIL
        yield ((f"  {'...':>{width}}  {left_out * _ROW} more bytes", "dim"),)
        for row in range(rows - _TAIL, rows):
            yield _row(laid, row * _ROW, width)


def _row(laid: layout.StructLayout, start: int, width: int) -> Pieces:
    pieces = [(f"  {start:>{width}}  ", "dim")]
    end = min(start + _ROW, laid.size)
    cells = [(at, _cell(laid, at)) for at in range(start, end)]
    for word, group in groupby(cells, key=lambda cell: cell[0] // _WORD):
        pieces += [(" ", "")] * (word * _WORD > start)
        pieces += [cell for _, cell in group]
    return tuple(pieces)


def _cell(laid: layout.StructLayout, at: int) -> tuple[str, str]:
    """Return the letter and style of a byte."""
    for number, field in enumerate(laid.fields):
        if field.offset <= at < field.offset + field.span:
            used = _is_used(field.laid, at - field.offset)
            return letter_and_style(number) if used else (UNUSED, "dim")
    return UNUSED, "dim"


def _is_used(laid: layout.Laid, at: int) -> bool:
    """Whether a byte of a type, from its start, is part of any value."""
    if at >= laid.size:
        return False
    match laid:
        case layout.LeafLayout(leaf=leaf):
            column = layout.column_stride(leaf)
            return column is None or at % column[1] < layout.column_size(leaf)
        case layout.ArrayLayout(element=element, stride=stride):
            return _is_used(element, at % stride)
        case layout.ColumnsLayout(columns=columns):
            return _is_used(columns, at)
        case layout.StructLayout(fields=fields):
            return any(_is_in(field, at) for field in fields)
        case _:
            assert_never(laid)


def _is_in(field: layout.LayoutField, at: int) -> bool:
    return at >= field.offset and _is_used(field.laid, at - field.offset)

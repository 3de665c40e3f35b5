"""Inlay hints: the ranges of indices, and the shapes of lets."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from kerngen.check.traverse import walk_syntax
from kerngen.lsp.checked import Checked
from kerngen.syntax import ast


def inlays(checked: Checked, start: int, end: int) -> list[types.InlayHint]:
    """Return the inlay hints between two offsets."""
    return [
        types.InlayHint(checked.columns.position(at), label, types.InlayHintKind.Type)
        for at, label in sorted({*_ranges(checked), *_shapes(checked)})
        if start <= at <= end
    ]


def _ranges(checked: Checked) -> Iterator[tuple[int, str]]:
    """Yield the ranges of indices that are written without one."""
    given = {
        binder.name.span.start
        for binder in _binders(checked.program)
        if binder.bound is not None
    }
    for name in checked.names:
        meant, *_ = name.means
        meaning = checked.meaning_of(name.span)
        if meant.kind != "an index" or meant.span != name.span or meaning is None:
            continue
        if meaning.extent is not None and name.span.start not in given:
            yield name.span.end, f" < {meaning.extent}"


def _shapes(checked: Checked) -> Iterator[tuple[int, str]]:
    """Yield the types of lets, behind their brackets."""
    for let in _lets(checked.program):
        meaning = checked.meaning_of(let.name.span)
        before = checked.source.text[: let.value.span.start].rstrip()
        if meaning is not None and before.endswith("="):
            yield len(before[:-1].rstrip()), f": {meaning.type}"


def _lets(program: ast.Program) -> Iterator[ast.LetStatement]:
    for item in program.items:
        match item:
            case ast.KernelItem():
                yield from (s for s in item.body if isinstance(s, ast.LetStatement))
            case ast.FunctionItem() | ast.DerivativeItem():
                yield from item.lets
            case _:
                pass


def _binders(program: ast.Program) -> Iterator[ast.Binder]:
    for let in _lets(program):
        yield from let.binders
    for item in program.items:
        if isinstance(item, ast.KernelItem):
            for part in walk_syntax(*(statement.value for statement in item.equations)):
                if isinstance(part, ast.Reduction):
                    yield from part.binders

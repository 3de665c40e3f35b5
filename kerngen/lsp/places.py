"""Navigation: definition, references, highlights and symbols."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from lsprotocol import types

from kerngen.lsp.checked import Checked
from kerngen.lsp.columns import range_of
from kerngen.lsp.names import Definition, Occurrence
from kerngen.source.text import Span
from kerngen.syntax import ast

_KINDS: Final = types.SymbolKind


def definition(checked: Checked, offset: int) -> list[types.Location]:
    """Return the definitions of the name at an offset; for the path of a `use`, the file."""
    for use in checked.reading.uses(checked.name):
        if use.span.start <= offset < use.span.end:
            source = checked.sources.library.source(use.name)
            return [
                types.Location(
                    checked.uri_of(source), range_of(Span(source, 0, 0), "utf-32")
                )
            ]
    name = checked.name_at(offset)
    return [_location(checked, each.span) for each in name.means] if name else []


def references(
    checked: Checked, offset: int, *, with_definition: bool
) -> list[types.Location]:
    """Return all uses of the name at an offset, in all files of the project."""
    name = checked.name_at(offset)
    if name is None:
        return []
    return [
        _location(checked, each.span)
        for each in occurrences(checked, name.means)
        if with_definition or each.span not in {m.span for m in name.means}
    ]


def highlights(checked: Checked, offset: int) -> list[types.DocumentHighlight]:
    """Return the uses of the name at an offset in its own file."""
    name = checked.name_at(offset)
    return [
        types.DocumentHighlight(checked.range(each.span))
        for each in checked.names
        if name is not None and set(name.means) & set(each.means)
    ]


def occurrences(checked: Checked, means: Iterable[Definition]) -> Iterator[Occurrence]:
    """Yield the uses of some definitions, in all files that may use them."""
    wanted = set(means)
    files = dict.fromkeys((checked.name, *checked.project.build))
    defined = {each.span.source.name for each in wanted}
    for file in dict.fromkeys((*defined, *files)):
        if file in defined or _reaches(checked, file, defined):
            names = checked.reading.names(file)
            yield from (each for each in names if wanted & set(each.means))


def _reaches(checked: Checked, file: str, defined: set[str]) -> bool:
    """Whether a file uses one of some files, directly or through others."""
    seen: set[str] = set()
    pending = [file]
    while pending:
        each = pending.pop()
        if each in defined:
            return True
        if each not in seen:
            seen.add(each)
            pending += (use.name for use in checked.reading.uses(each))
    return False


def _location(checked: Checked, span: Span) -> types.Location:
    return types.Location(checked.uri_of(span.source), range_of(span, checked.encoding))


# Symbols


def symbols(checked: Checked) -> list[types.DocumentSymbol]:
    """Return the items of a file with their parts, for an outline."""
    found = (_symbol(checked, item) for item in checked.program.items)
    return [each for each in found if each is not None]


def _symbol(checked: Checked, item: ast.Item) -> types.DocumentSymbol | None:
    match item:
        case ast.KernelItem():
            parts = (*item.parameters, *item.outputs)
            lets = (s for s in item.body if isinstance(s, ast.LetStatement))
            children = [
                *(_child(checked, p.name, p.span, _KINDS.Variable) for p in parts),
                *(_child(checked, s.name, s.span, _KINDS.Variable) for s in lets),
            ]
            return _made(checked, item.name, item.span, _KINDS.Function, children)
        case ast.GradientItem():
            return _made(checked, item.name, item.span, _KINDS.Function)
        case ast.FunctionItem():
            return _made(checked, item.name, item.span, _KINDS.Function)
        case ast.ConstItem():
            return _made(checked, item.name, item.span, _KINDS.Constant)
        case ast.StructItem():
            children = [
                _child(checked, f.name, f.span, _KINDS.Field) for f in item.fields
            ]
            return _made(checked, item.name, item.span, _KINDS.Struct, children)
        case ast.ScheduleItem():
            first, last = item.targets[0].span, item.targets[-1].span
            whole = ast.Identifier(
                f"schedule {first.to(last).text}", span=first.to(last)
            )
            return _made(checked, whole, item.span, _KINDS.Event)
        case ast.DerivativeItem():
            name = ast.Identifier(
                f"derivative of {item.function.name}", span=item.function.span
            )
            return _made(checked, name, item.span, _KINDS.Function)
        case ast.UseItem():
            return None


def _made(
    checked: Checked,
    name: ast.Identifier,
    span: Span,
    kind: types.SymbolKind,
    children: list[types.DocumentSymbol] | None = None,
) -> types.DocumentSymbol:
    return types.DocumentSymbol(
        name=name.name,
        kind=kind,
        range=checked.range(span.to(name.span)),
        selection_range=checked.range(name.span),
        children=children or [],
    )


def _child(
    checked: Checked, name: ast.Identifier, span: Span, kind: types.SymbolKind
) -> types.DocumentSymbol:
    return _made(checked, name, span, kind)

"""Hover: the type, shape, range and accuracy of the word under the pointer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from lsprotocol import types

from kerngen.ir.builtins.row import Builtin
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.geometry import GEOMETRY, Geometry
from kerngen.ir.strategies import OPTIONS
from kerngen.lsp.checked import Checked
from kerngen.lsp.items import Item
from kerngen.lsp.names import Definition
from kerngen.lsp.words import word_of
from kerngen.report.kernel import StageData, stages_of
from kerngen.source.diagnostic import CompileError
from kerngen.source.text import Span, collapse
from kerngen.syntax import ast

_WORD: Final = re.compile(r"\w+")
_LONGEST: Final = 30
"""The most lines of an item that are shown."""

LETTERS: Final = "xyzw"
"""The names of a built-in's arguments."""


def hover(checked: Checked, offset: int) -> types.Hover | None:
    """Return the hover text at an offset."""
    word = _word_at(checked, offset)
    name = checked.name_at(offset)
    if name is not None and word is not None and name.written:
        parts = (_definition(checked, each, name.span) for each in name.means)
        return _hover(checked, name.span, *parts)
    if word is not None and (text := _of_language(checked, word)):
        return _hover(checked, word, text)
    meaning = checked.model.at(offset)
    if meaning is None:
        return None
    span = Span(checked.source, meaning.start, meaning.end)
    return _hover(checked, span, code(f"{span.collapsed}: {meaning.type}"))


def _hover(checked: Checked, span: Span, *parts: str) -> types.Hover:
    text = "\n\n---\n\n".join(dict.fromkeys(parts))
    return types.Hover(
        types.MarkupContent(types.MarkupKind.Markdown, text), checked.range(span)
    )


def code(text: str) -> str:
    """Return text as a Markdown code block."""
    return f"```kern\n{text}\n```"


def _word_at(checked: Checked, offset: int) -> Span | None:
    for match in _WORD.finditer(checked.source.text):
        if match.end() >= offset:
            found = match.start() <= offset
            return Span(checked.source, match.start(), match.end()) if found else None
    return None


# Names of the user


def _definition(checked: Checked, definition: Definition, at: Span) -> str:
    match definition.kind:
        case "kernel" | "function" | "struct" | "constant" as kind:
            item = (
                definition.items.get(kind, definition.name)
                if definition.items
                else None
            )
            return "\n\n".join(_item(checked, item)) if item else ""
        case "a field":
            written = definition.type.span.text if definition.type else ""
            return code(f"{definition.name}: {written}") + "\n\na field"
        case _:
            return _value(checked, definition, at)


def _value(checked: Checked, definition: Definition, at: Span) -> str:
    """Return the type of a value; of an index, its range."""
    places = (at, definition.span)
    known = [checked.meaning_of(p) for p in places if p.source is checked.source]
    meaning = next((each for each in known if each is not None), None)
    name = definition.name
    if definition.kind == "a dim":
        return code(f"{name}: i32") + "\n\na dim: a length that each call gives"
    if meaning is None:
        written = f": {definition.type.span.collapsed}" if definition.type else ""
        return code(name + written) + f"\n\n{definition.kind}"
    if meaning.extent is not None:
        return code(f"0 <= {name} < {meaning.extent}") + "\n\nan index"
    doc = doc_of(checked, definition)
    below = f"{meaning.kind or definition.kind}{f': {doc}' if doc else ''}"
    return code(f"{name}: {meaning.type}") + f"\n\n{below}"


def doc_of(checked: Checked, definition: Definition) -> str:
    """Return the doc comment of a parameter or an output."""
    for item in checked.program.items:
        if isinstance(item, ast.KernelItem) and item.span.covers(definition.span):
            for each in (*item.parameters, *item.outputs):
                if each.name.span == definition.span:
                    return each.doc
    return ""


def head_of(item: Item) -> str:
    """Return the declaration of an item, without its body."""
    node, text = item.node, item.node.span.text
    match node:
        case ast.KernelItem() | ast.FunctionItem():
            last = (
                node.outputs or node.parameters
                if isinstance(node, ast.KernelItem)
                else ()
            )
            after = last[-1].span.end if last else node.name.span.end
            if isinstance(node, ast.FunctionItem):
                after = node.result.span.end
            begin = node.name.span.start
            word = "kernel" if isinstance(node, ast.KernelItem) else "fn"
            close = text[after - node.span.start :].partition("{")[0].rstrip(" \n,")
            return f"{word} {collapse(node.span.source.text[begin:after] + close)}"
        case _:
            lines = _without_docs(text).splitlines()
            return "\n".join([*lines[:_LONGEST], *["..."] * (len(lines) > _LONGEST)])


def _without_docs(text: str) -> str:
    return re.sub(r"\A(\s*///[^\n]*\n)+\s*", "", text)


def _item(checked: Checked, item: Item) -> Iterator[str]:
    yield code(head_of(item))
    if item.node.doc:
        yield item.node.doc
    if item.kind == "kernel" and item.span.source is checked.source:
        yield from _strategies(checked, item.node.name.name)


def _strategies(checked: Checked, kernel: str) -> Iterator[str]:
    """Yield how each stage of a kernel runs, and why."""
    if not checked.is_right:
        return
    try:
        stages = stages_of(checked.sources.compiler, checked.name, kernel)
    except CompileError:  # a stage that no strategy runs
        return
    for stage in stages:
        yield "\n".join(_stage(stage))


def _stage(stage: StageData) -> Iterator[str]:
    over = f" over `{stage['domain']}`" if stage["domain"] else ""
    within = f", runs with {' or '.join(stage['within'])}" if stage["within"] else ""
    yield f"stage `{stage['name']}`{over}{within}"
    for schedule in stage["schedules"]:
        yield f"- `{schedule['name']}`: {schedule['reason']}"


# Words of the language


def _of_language(checked: Checked, word: Span) -> str:
    text, after = word.text, checked.source.text[word.end :].lstrip()
    if text in BUILTINS and after.startswith("("):
        return of_builtin(BUILTINS[text])
    if text in GEOMETRY and after.startswith("("):
        return of_builtin(GEOMETRY[text])
    for item in checked.program.items:
        if isinstance(item, ast.ScheduleItem) and item.span.covers(word):
            return _of_schedule(item, text) or _of_word(checked, word, "schedule ")
    return _of_word(checked, word, "")


def _of_word(checked: Checked, word: Span, place: str) -> str:
    """Return the meaning of a word of the language, and the type of the value it begins.

    `place` is 'schedule ' in a schedule, where `when` has another meaning.
    """
    line = checked.source.text[: word.start].rpartition("\n")[2]
    if "//" in line or line.count('"') % 2:
        return ""
    text = f"@{word.text}" if line.endswith("@") else word.text
    found = word_of(f"{place}{text}") or word_of(text)
    if found is None:
        return ""
    begun = [each for each in checked.model if each.start == word.start]
    meaning = min(begun, key=lambda each: each.end, default=None)
    shown = found.example
    if meaning is not None:
        value = collapse(Span(checked.source, meaning.start, meaning.end).text)
        shown = f"{value}: {meaning.type}"
    return f"{code(shown)}\n\n{found.meaning}\n\n{found.link}"


def _of_schedule(item: ast.ScheduleItem, word: str) -> str:
    options = OPTIONS.get(item.strategy.name, {})
    if word == item.strategy.name and word in OPTIONS:
        listed = "\n".join(f"- `{each.usage}`" for each in options.values())
        return f"{code(word)}\n\na strategy\n\n{listed}".rstrip()
    if word in options:
        rule = options[word]
        return f"{code(rule.usage)}\n\nan option of `{item.strategy.name}`: {rule.accepted}"
    return ""


def of_builtin(row: Builtin | Geometry) -> str:
    """Return the signatures of a built-in, its meaning and its accuracy."""
    if isinstance(row, Geometry):
        letters = ", ".join(LETTERS[: row.arity])
        return f"{code(f'{row.name}({letters})')}\n\n{row.doc}\n\ntakes {row.accepted}"
    forms = "\n".join(forms_of(row))
    return f"{code(forms)}\n\n{row.doc}\n\nerror in f32: {row.accuracy.text}"


def forms_of(row: Builtin) -> Iterator[str]:
    """Yield the signatures of a built-in: 'exp(x: f32) -> f32'."""
    for overload in row.overloads:
        pairs = zip(LETTERS, overload.parameters, strict=False)
        given = ", ".join(f"{letter}: {type_.spelling}" for letter, type_ in pairs)
        yield f"{row.name}({given}) -> {overload.result.spelling}"

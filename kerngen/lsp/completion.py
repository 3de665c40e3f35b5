"""Completion: the names and keywords that may be written at an offset."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Final, get_args

from lsprotocol import types

from kerngen.check.expressions.rules import ADAPTER_FACTS
from kerngen.check.items.constants import ATTRIBUTES
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.geometry import GEOMETRY
from kerngen.ir.memory import LEAVES, NARROW
from kerngen.ir.strategies import OPTIONS
from kerngen.ir.types import CASTS, COMPOSITES
from kerngen.lsp.checked import Checked
from kerngen.lsp.hover import forms_of, head_of
from kerngen.lsp.items import Item, Kind
from kerngen.lsp.names import Definition, defined_in, field_of, struct_of
from kerngen.source.diagnostic import CompileError
from kerngen.source.text import Source, Span
from kerngen.syntax import ast
from kerngen.syntax.lexemes import ITEM_WORDS, Lexeme, lexemes
from kerngen.syntax.parser import read

TRIGGERS: Final = [".", '"', "(", "{", "@"]

_AFTER_ITEMS: Final = (
    "use",
    "const",
    "struct",
    "fn",
    "kernel",
    "schedule",
    "derivative of",
)
_OF_STATEMENTS: Final = ("let", "host", "require")
_OF_VALUES: Final = ("if", "else", "true", "false", "and", "or", "not", "when")
_RANKS: Final[Mapping[str, int]] = {"an index": 0, "a dim": 2}
"""The order of names in a value: indices first, dims last, all others are 1."""

_READ_BY_GUARDS: Final = frozenset({"a dim", "a parameter"})
_DERIVED_BY: Final = frozenset({"an input", "a 'mut' tensor", "a parameter"})
_COMPUTED: Final = frozenset({"a let", "an output"})
"""Names that a gradient may be given, and names of stages in a schedule."""

_WRITTEN: Final = frozenset({"an output", "a 'mut' tensor"})
_PATH: Final = re.compile(r'use\s*"([^"\n]*)\Z')
_MEMBER: Final = re.compile(r"([A-Za-z_][\w.]*(?:\[[^\]\n]*\])?(?:\.\w+)*)\.\w*\Z")
_TYPE: Final = re.compile(r"(?:\w\s*:|->)\s*\w*\Z")
_KINDS: Final = types.CompletionItemKind

_KINDS_OF_NAMES: Final[Mapping[str, types.CompletionItemKind]] = {
    "a dim": _KINDS.TypeParameter,
    "an index": _KINDS.Variable,
    "constant": _KINDS.Constant,
}


def completions(checked: Checked, offset: int) -> list[types.CompletionItem]:
    """Return the completions at an offset."""
    found: dict[str, types.CompletionItem] = {}
    for each in _completions(checked, offset):
        found.setdefault(each.label, each)
    for number, each in enumerate(found.values()):
        each.sort_text = f"{number:04}"  # editors order by the alphabet otherwise
    return [*found.values()]


def _completions(checked: Checked, offset: int) -> Iterator[types.CompletionItem]:
    """Yield the completions by place: the more specific places are recognised first."""
    before = checked.source.text[:offset]
    line = before.rpartition("\n")[2]
    words = _words_of_item(checked.source.text, offset)
    if path := _PATH.search(line):
        yield from _files(checked, path[1])
    elif "//" in line or line.count('"') % 2:
        return
    elif words[:1] == ["schedule"]:
        yield from _in_schedule(checked, words)
    elif "gradient" in words[:4]:
        yield from _in_gradient(checked, words)
    elif words[-1:] == ["@"]:
        yield from (_plain(word, _KINDS.Property) for word in ATTRIBUTES)
    elif member := _MEMBER.search(line):
        yield from _members(checked, offset, member[1])
    elif (found := _TYPE.search(line)) and words:
        # Behind the arrow of a kernel, the name of an output is new.
        if not (found[0].startswith("->") and words[0] == "kernel"):
            yield from _types(checked)
    elif not words:
        yield from (_plain(word, _KINDS.Keyword) for word in _AFTER_ITEMS)
    elif not _is_in_braces(words):
        yield from _in_head(checked, words)
    elif words[0] == "kernel" and _ends_before_statement(words):
        yield from _statements(checked, offset)
    else:
        yield from _values(checked, offset)
        # While the item can't be parsed, any of its words may be a name.
        yield from (_plain(w, _KINDS.Text) for w in words if w.isidentifier())


def _words_of_item(text: str, offset: int) -> list[str]:
    """Return the texts of an item's lexemes up to a place, but the word being written.

    Behind `kernel f(x: f32[n]) { y = ma` they are `kernel f ( x : f32 [ n ] ) { y =`.
    """
    words: list[str] = []
    depth = 0
    last: Lexeme | None = None
    for last in lexemes(text[:offset], 0):
        word = last.text
        if word.startswith("//"):
            continue
        if word in ITEM_WORDS and depth == 0:
            words = []
        words.append(word)
        depth = max(0, depth + (word == "{") - (word == "}"))
        if depth == 0 and word in {"}", ";"}:
            words = []
    if last is not None and last.end == offset and last.text.isidentifier():
        return words[:-1]
    return words


def _is_in_braces(words: list[str]) -> bool:
    return words.count("{") > words.count("}")


def _ends_before_statement(words: list[str]) -> bool:
    """Whether a statement follows: behind ';' or the kernel's '{', not that of an `if`."""
    depth = words.count("{") - words.count("}")
    return words[-1] == ";" or (words[-1] == "{" and depth == 1)


def _plain(
    label: str, kind: types.CompletionItemKind, detail: str = "", doc: str = ""
) -> types.CompletionItem:
    return types.CompletionItem(
        label, kind=kind, detail=detail or None, documentation=doc or None
    )


def _files(checked: Checked, begun: str) -> Iterator[types.CompletionItem]:
    folder = posixpath.dirname(checked.name) or "."
    beside = (
        posixpath.join(folder, f.name) for f in checked.path.parent.glob("*.kern")
    )
    for file in sorted({*checked.project.build, *beside}):
        path = posixpath.relpath(file, folder)
        if file != checked.name and path.startswith(begun):
            yield _plain(path, _KINDS.File)


def _in_schedule(checked: Checked, words: list[str]) -> Iterator[types.CompletionItem]:
    """Yield the completions of `schedule KERNEL.STAGE when GUARD { STRATEGY OPTIONS }`."""
    if "{" in words:
        after = words[words.index("{") + 1 :]
        options = OPTIONS.get(after[0], {}) if after else None
        if options is None:
            yield from (
                _plain(name, _KINDS.EnumMember, "a strategy") for name in OPTIONS
            )
            return
        for name, rule in options.items():
            yield _plain(name, _KINDS.Property, rule.usage, rule.accepted)
        return
    if words[-2:] == ["adapter", "."]:
        yield from (
            _plain(fact, _KINDS.Property, t.spelling)
            for fact, t in ADAPTER_FACTS.items()
        )
        return
    kernels = {item.node.name.name: item for item in checked.items.all("kernel")}
    if "when" not in words:
        if words[-1:] != ["."]:
            yield from (_plain(name, _KINDS.Function, "a kernel") for name in kernels)
            yield _plain("when", _KINDS.Keyword)
    else:
        yield from (_plain(w, _KINDS.Keyword) for w in ("adapter", "and", "or", "not"))
    kinds = _READ_BY_GUARDS if "when" in words else _COMPUTED
    for word in words:
        yield from _defined(_names_in(kernels.get(word), kinds))


def _in_gradient(checked: Checked, words: list[str]) -> Iterator[types.CompletionItem]:
    """Yield the completions of `gradient of KERNEL by NAMES given NAMES`."""
    after = words[words.index("gradient") + 1 :]
    match after:
        case []:
            yield _plain("of", _KINDS.Keyword)
        case ["of"]:
            yield from _named(checked.items.all("kernel"), _KINDS.Function)
        case ["of", _]:
            yield _plain("by", _KINDS.Keyword)
        case ["of", kernel, *rest]:
            kinds = _COMPUTED if "given" in rest else _DERIVED_BY
            names = _names_in(checked.items.get("kernel", kernel), kinds)
            yield from _defined(each for each in names if each.name not in rest)
            if "given" not in rest and rest[-1] not in {"by", ","}:
                yield _plain("given", _KINDS.Keyword)
        case _:
            pass


def _names_in(item: Item | None, kinds: Container[str]) -> Iterator[Definition]:
    """Yield the names of some kinds that a kernel defines."""
    if item is not None and isinstance(item.node, ast.KernelItem):
        found = defined_in(item.node, item.file).values()
        yield from (each for each in found if each.kind in kinds)


def _members(
    checked: Checked, offset: int, base: str
) -> Iterator[types.CompletionItem]:
    """Yield the fields of a struct, or the components of a vector."""
    # 'scene.lights[l].color' is looked up as scene, lights, color.
    first, *rest = re.sub(r"\[[^\]]*\]", "", base).split(".")
    scope = {each.name: each for each in _in_reach(checked, offset)}
    owner = scope.get(first)
    for name in rest:
        owner = field_of(struct_of(owner.type, owner.items), name) if owner else None
    if owner is None or owner.type is None:
        return
    struct = struct_of(owner.type, owner.items)
    if struct is not None and isinstance(struct.node, ast.StructItem):
        for each in struct.node.fields:
            yield _plain(each.name.name, _KINDS.Field, each.type.span.text, each.doc)
    elif owner.type.name.name.startswith("vec"):
        width = int(owner.type.name.name[3:4] or 0)
        yield from (_plain(c, _KINDS.Field) for c in "xyzw"[:width])


def _types(checked: Checked) -> Iterator[types.CompletionItem]:
    yield from (_plain(name, _KINDS.Class) for name in (*LEAVES, *NARROW, "bool"))
    for item in checked.items.all("struct"):
        yield _plain(item.node.name.name, _KINDS.Struct, doc=item.node.doc)


def _in_head(checked: Checked, words: list[str]) -> Iterator[types.CompletionItem]:
    """Yield dims and constants in brackets of an item's head, 'mut' before a parameter.

    A default value may be a constant, too.
    """
    constants = checked.items.all("constant")
    if words.count("[") > words.count("]"):
        # Dims are the names in brackets; one before a ':' is the next parameter's.
        after = (*words[2:], "")
        threes = zip(words, words[1:], after, strict=False)
        dims = (w for before, w, a in threes if before in {"[", ","} and a != ":")
        yield from (_plain(d, _KINDS.TypeParameter) for d in dims if d.isidentifier())
        yield from _named(constants, _KINDS.Constant)
    elif words[0] == "kernel" and words[-1] in {"(", ","}:
        yield _plain("mut", _KINDS.Keyword)
    elif words[-1] == "=":
        yield from _named(constants, _KINDS.Constant)


def _statements(checked: Checked, offset: int) -> Iterator[types.CompletionItem]:
    """Yield the beginnings of a statement: targets, and keywords."""
    found = _in_reach(checked, offset)
    yield from _defined(each for each in found if each.kind in _WRITTEN)
    for word in _OF_STATEMENTS:
        yield _plain(word, _KINDS.Keyword)


def _values(checked: Checked, offset: int) -> Iterator[types.CompletionItem]:
    """Yield values, the nearest first; outputs last, which are seldom read."""
    found = _in_reach(checked, offset)
    outputs = [each for each in found if each.kind == "an output"]
    others = [each for each in found if each not in outputs]
    yield from _defined(sorted(others, key=lambda each: _RANKS.get(each.kind, 1)))
    kinds: tuple[Kind, ...] = ("constant", "function")
    for kind in kinds:
        shown = _KINDS.Function if kind == "function" else _KINDS.Constant
        yield from _named(checked.items.all(kind), shown)
    for row in BUILTINS.values():
        yield _plain(row.name, _KINDS.Function, next(forms_of(row)), row.doc)
    for whole in GEOMETRY.values():
        yield _plain(whole.name, _KINDS.Function, whole.accepted, whole.doc)
    yield from (
        _plain(name, _KINDS.Function, "a reduction")
        for name in get_args(ast.ReduceKind)
    )
    yield from (_plain(name, _KINDS.Class) for name in (*CASTS, *COMPOSITES))
    for word in ("let", *_OF_VALUES):
        yield _plain(word, _KINDS.Keyword)
    yield from _defined(outputs)


def _named(
    items: Iterable[Item], kind: types.CompletionItemKind
) -> Iterator[types.CompletionItem]:
    for item in items:
        yield _plain(item.node.name.name, kind, head_of(item), item.node.doc)


def _defined(found: Iterable[Definition]) -> Iterator[types.CompletionItem]:
    for each in found:
        kind = _KINDS_OF_NAMES.get(each.kind, _KINDS.Variable)
        written = each.type.span.text if each.type else ""
        yield _plain(each.name, kind, f"{each.kind} {written}".rstrip())


def _in_reach(checked: Checked, offset: int) -> list[Definition]:
    """Return the names in scope, with those of a kernel that can't be parsed yet."""
    found = [*in_scope(checked, offset)]
    known = {each.name for each in found}
    new = [e for e in names_so_far(checked, offset) if e.name not in known]
    return [*new, *found]


def in_scope(checked: Checked, offset: int) -> Iterator[Definition]:
    """Yield the definitions of all names that can be used at an offset, nearest first."""
    found = {
        each: None
        for name in checked.names
        for each in name.means
        if each.scope is not None
        and each.scope.source is checked.source
        and each.span.start < offset
        and each.scope.start <= offset <= each.scope.end + 1
    }
    for item in checked.program.items:
        if isinstance(item, ast.KernelItem) and _around(item.span, offset):
            found |= dict.fromkeys(
                each
                for each in defined_in(item, checked.items).values()
                if each.kind not in {"a let", "a host"} or each.span.start < offset
            )
    yield from sorted(found, key=lambda each: -each.span.start)


def _around(span: Span, offset: int) -> bool:
    return span.start <= offset <= span.end


# The names in a kernel that is being written: it is complete up to the current statement.
#
#     kernel scale(x: f32[n]) -> y: f32[n] {
#         let top = max[i] x[i];
#         y[i] = x|                               x, n, y, top and i are known
#
# Of the statement itself only the indices are found, by patterns.


_BINDERS: Final = re.compile(rf"\b(?:{'|'.join(get_args(ast.ReduceKind))})\[([^\]=]*)")
_TARGET: Final = re.compile(r"\A\s*(?:let\s+)?\w+\[([^\]]*)\]\s*[-+*/]?=")
_INDEX: Final = re.compile(r"(?:\A|,)\s*([A-Za-z_]\w*)")


def names_so_far(checked: Checked, offset: int) -> Iterator[Definition]:
    """Yield the names that the kernel around an offset defines before it, nearest first."""
    text = checked.source.text
    begin, statement = _parts(text, offset)
    here = Span(checked.source, statement, offset)
    bound = (*_TARGET.findall(here.text), *_BINDERS.findall(here.text))
    for written in reversed(bound):
        for name in _INDEX.findall(written):
            yield Definition("an index", name, here)
    item = _item(text[begin:statement])
    found = defined_in(item, checked.items).values() if item else ()
    yield from sorted(found, key=lambda each: -each.span.start)


def _parts(text: str, offset: int) -> tuple[int, int]:
    """Return the offsets of the kernel around an offset, and of its current statement."""
    begin = statement = depth = 0
    for each in lexemes(text[:offset], 0):
        match each.text:
            case "kernel" if each.start == 0 or text[each.start - 1] == "\n":
                begin, depth = each.start, 0
            case "{":
                depth += 1
            case "}":
                depth -= 1
            case _:
                pass
        # The branches of an 'if' have braces of their own.
        if (each.text == "{" and depth == 1) or (each.text == ";" and depth <= 1):
            statement = each.end
    return begin, max(begin, statement)


def _item(begun: str) -> ast.KernelItem | None:
    """Return a kernel whose last statements are missing, if its head is right."""
    try:
        items = read(Source("", f"{begun}}}")).items
    except CompileError:
        return None
    return next((each for each in items if isinstance(each, ast.KernelItem)), None)

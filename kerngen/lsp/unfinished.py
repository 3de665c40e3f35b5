"""The names in a kernel that is being written: up to the statement at hand it is complete.

    kernel scale(x: f32[n]) -> y: f32[n] {
        let top = max[i] x[i];
        y[i] = x|                               x, n, y, top and i are known

What is written of the statement itself only has its indices.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, get_args

from kerngen.lsp.checked import Checked
from kerngen.lsp.names import Definition, defined_in
from kerngen.source.diagnostic import CompileError
from kerngen.source.text import Source, Span
from kerngen.syntax import ast
from kerngen.syntax.lexemes import lexemes
from kerngen.syntax.parser import read

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
    """Return where the kernel around an offset begins, and its statement."""
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

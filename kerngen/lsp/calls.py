"""Signature help: the parameters of the function that is being called."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.geometry import GEOMETRY
from kerngen.ir.strategies import OPTIONS
from kerngen.lsp.checked import Checked
from kerngen.lsp.hover import LETTERS, forms_of
from kerngen.syntax import ast
from kerngen.syntax.lexemes import ITEM_WORDS, Lexeme, lexemes


def signature_help(checked: Checked, offset: int) -> types.SignatureHelp | None:
    """Return the signatures of the function whose call is around an offset."""
    found = _call_around(checked.source.text, offset)
    if found is None:
        return None
    name, argument = found
    signatures = [*_signatures(checked, name)]
    if not signatures:
        return None
    return types.SignatureHelp(signatures, 0, argument)


def _call_around(text: str, offset: int) -> tuple[str, int] | None:
    """Return the name before the innermost open '(', and the number of commas behind it.

    At the end of `max(f(a, b), ` that is `max`, 1: the second argument of `max`.
    """
    open_: list[tuple[str, str, int]] = []
    before = ""
    for lexeme in _before(text, offset):
        word = lexeme.text
        if word in ITEM_WORDS or word == ";":
            open_.clear()
        elif word in {"(", "[", "{"}:
            open_.append((word, before, 0))
        elif word in {")", "]", "}"} and open_:
            open_.pop()
        elif word == "," and open_:
            bracket, name, commas = open_[-1]
            open_[-1] = bracket, name, commas + 1
        before = word
    if not open_ or open_[-1][0] != "(" or not open_[-1][1].isidentifier():
        return None
    return open_[-1][1:]


def _before(text: str, offset: int) -> Iterator[Lexeme]:
    return (
        each for each in lexemes(text[:offset], 0) if not each.text.startswith("//")
    )


def _signatures(checked: Checked, name: str) -> Iterator[types.SignatureInformation]:
    item = checked.items.get("function", name)
    if item is not None and isinstance(item.node, ast.FunctionItem):
        given = [each.span.collapsed for each in item.node.parameters]
        result = item.node.result.span.collapsed
        yield _signature(
            f"{name}({', '.join(given)}) -> {result}", given, item.node.doc
        )
    elif name in BUILTINS:
        row = BUILTINS[name]
        for form in forms_of(row):
            given = form.partition("(")[2].rpartition(")")[0].split(", ")
            yield _signature(
                form, given, f"{row.doc} Error in f32: {row.accuracy.text}"
            )
    elif name in GEOMETRY:
        whole = GEOMETRY[name]
        given = [*LETTERS[: whole.arity]]
        yield _signature(f"{name}({', '.join(given)})", given, whole.doc)
    else:
        rules = (of.get(name) for of in OPTIONS.values())
        for usage in dict.fromkeys(rule.usage for rule in rules if rule):
            given = usage.partition("(")[2].rstrip(")").split(", ")
            yield _signature(usage, given, "")


def _signature(
    label: str, parameters: list[str], doc: str
) -> types.SignatureInformation:
    return types.SignatureInformation(
        label, doc or None, [types.ParameterInformation(each) for each in parameters]
    )

"""Formatting of items: kernels, functions, structs, and statements in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from lark import Token, Tree

from kerngen.format.comments import tidy
from kerngen.format.document import Document, Group, Indent, LastComma, Line, Spacing
from kerngen.format.expressions import Node, expression, is_comma, subscripts
from kerngen.format.pieces import (
    SPACE,
    assigned,
    block,
    braced,
    bracketed,
    condition,
    separated,
    token,
)

_ONE_LINE: Final = frozenset({"use", "const", "gradient", "schedule"})
"""Items that may follow each other without empty lines between them."""


def program(tree: Tree[Token]) -> Document:
    """Return the document of a file."""
    lines: list[Document] = []
    before = ""
    for node in _trees(tree):
        kind = _kind(node)
        if lines:
            together = kind == before and kind in _ONE_LINE
            lines.append(
                Line(hard=True, blank=Spacing.BETWEEN if together else Spacing.BEFORE)
            )
        lines.append(_laid_out(node))
        before = kind
    return (*lines, Line(hard=True, blank=Spacing.NONE_LAST)) if lines else ()


def _kind(node: Tree[Token]) -> str:
    """Return the grammar's rule of an item, without the rule of its doc comment."""
    return node.data if node.data == "file_docs" else _trees(node)[-1].data


def _laid_out(node: Node) -> Document:
    """Lay out a node that is no expression: an item, a statement or a part of one."""
    if isinstance(node, Token):
        return expression(node).document
    return _FORMS[node.data](node.children)


def _trees(tree: Tree[Token]) -> list[Tree[Token]]:
    return [child for child in tree.children if isinstance(child, Tree)]


def _children(node: Node) -> list[Node]:
    assert isinstance(node, Tree)
    return node.children


def _docs(parts: Sequence[Node]) -> Document:
    lines: list[Document] = []
    for part in parts:
        lines += [Line(hard=True)] if lines else []
        lines.append(token(tidy(str(part))))
    return tuple(lines)


def _documented(parts: Sequence[Node]) -> Document:
    """Lay out an item, parameter or field, with its doc comments on lines of their own."""
    if len(parts) == 1:
        return _laid_out(parts[0])
    docs, node = parts
    # A group, so that a list with such an element breaks.
    return Group((_laid_out(docs), Line(hard=True), _laid_out(node)))


def _plain(parts: Sequence[Node]) -> Document:
    """Lay out words with spaces between them, but none before `:` and `;`."""
    words: list[Document] = []
    for part in parts:
        tight = isinstance(part, Token) and part.type in {"COLON", "SEMICOLON"}
        words += [SPACE] if words and not tight else []
        words.append(_laid_out(part))
    return tuple(words)


def _type(parts: Sequence[Node]) -> Document:
    name, *axes = parts
    return (token(str(name)), *([subscripts(*axes)] if axes else ()))


def _parameter(parts: Sequence[Node]) -> Document:
    """Lay out `mut x: f32[n]`, `x: f32 = 1.0` or a constant's `const X: f32 = 1.0;`."""
    at = next((n for n, part in enumerate(parts) if _is(part, "ASSIGN")), len(parts))
    left = _plain(parts[:at])
    if at == len(parts):
        return left
    sign, value, *end = parts[at:]
    content = assigned(left, token(str(sign)), expression(value))
    return (content, *map(_laid_out, end))


def _is(node: Node, kind: str) -> bool:
    return isinstance(node, Token) and node.type == kind


def _field(parts: Sequence[Node]) -> Document:
    attributes, *field = parts
    before = [_laid_out(attribute) for attribute in _children(attributes)]
    spaced = [word for attribute in before for word in (attribute, SPACE)]
    return (*spaced, _plain(field))


def _attribute(parts: Sequence[Node]) -> Document:
    at, name, opening, value, closing = parts
    words = (at, name, opening)
    inside = expression(value).document
    return (*(token(str(word)) for word in words), inside, token(str(closing)))


def _struct(parts: Sequence[Node]) -> Document:
    word, name, opening, *fields, closing = parts
    laid_out = [_laid_out(field) for field in fields if not is_comma(field)]
    lines: list[Document] = [
        (field, token(",") if number < len(laid_out) else LastComma())
        for number, field in enumerate(laid_out, 1)
    ]
    braces = block(token(str(opening)), lines, token(str(closing)))
    return (*_words(word, name), braces)


def _words(*words: Node) -> tuple[Document, ...]:
    return tuple(part for word in words for part in (token(str(word)), SPACE))


def _function(parts: Sequence[Node]) -> Document:
    word, name, *signature, arrow, result, opening, lets, value, closing = parts
    lines = [_laid_out(let) for let in _children(lets)]
    lines.append(expression(value).document)
    return (
        *_words(word),
        token(str(name)),
        _parameters(*signature),
        SPACE,
        *_words(arrow),
        _laid_out(result),
        SPACE,
        block(token(str(opening)), lines, token(str(closing))),
    )


def _parameters(opening: Node, inside: Node, closing: Node) -> Document:
    parameters = [_laid_out(each) for each in _children(inside) if not is_comma(each)]
    return bracketed(token(str(opening)), parameters, token(str(closing)))


def _kernel(parts: Sequence[Node]) -> Document:
    word, name, *signature = parts[:5]
    at = 7 if _is(parts[5], "ARROW") else 5
    opening, *statements, closing = parts[at:]
    lines = [_laid_out(statement) for statement in statements]
    return (
        *_words(word),
        token(str(name)),
        _parameters(*signature),
        SPACE,
        *(_outputs(*parts[5:7]) if at == 7 else ()),
        block(token(str(opening)), lines, token(str(closing))),
    )


def _outputs(arrow: Node, outputs: Node) -> Sequence[Document]:
    """Lay out `-> y: f32[n], z: f32[n]`: on the line, or below it with a line for each.

    One output without a doc comment always stays on the line.
    """
    each = [part for part in _children(outputs) if not is_comma(part)]
    laid_out = [_laid_out(output) for output in each]
    if len(each) == 1 and len(_children(each[0])) == 1:
        return (*_words(arrow), *laid_out, SPACE)
    inside = Indent((Line(" "), *separated(laid_out, Line(" ")), LastComma()))
    return (Group((token(str(arrow)), inside, Line(" ", closing=True))),)


def _gradient(parts: Sequence[Node]) -> Document:
    """Lay out `kernel g = gradient of f by x given y;`: on a line, or in three."""
    *words, semicolon = parts
    lines: list[Document] = []
    for part in words:
        if _is(part, "BY") or _is(part, "GIVEN"):
            lines += [Line(" "), token(str(part))]
        elif isinstance(part, Tree):
            names = [_laid_out(each) for each in part.children if not is_comma(each)]
            lines += [SPACE, tuple(separated(names, Line(" ")))]
        else:
            lines += [*([SPACE] if lines else []), token(str(part))]
    return (Group(Indent(tuple(lines))), token(str(semicolon)))


def _derivative(parts: Sequence[Node]) -> Document:
    word, of, name, *signature, opening, lets, values, closing = parts
    lines = [_laid_out(let) for let in _children(lets)]
    each = [
        expression(value).document for value in _children(values) if not is_comma(value)
    ]
    lines.append(Group(tuple(separated(each, Line(" ")))))
    return (
        *_words(word, of),
        token(str(name)),
        _parameters(*signature),
        SPACE,
        block(token(str(opening)), lines, token(str(closing))),
    )


def _schedule(parts: Sequence[Node]) -> Document:
    """Lay out a schedule: on a line, or its strategy on one of its own."""
    word, targets, *guard, opening, strategy, options, closing = parts
    content = [token(str(word)), _targets(targets)]
    if guard:
        when, expr = guard
        # If the line is too long, the guard is moved to a line of its own first; only if
        # it does not fit there, the kernels are.
        below = condition(expression(expr).document)
        content += [token(str(when)), replace(below, alone=below.content)]
    inside = (token(str(strategy)), _options(options))
    return Group((*content, braced(str(opening), inside, str(closing))))


def _targets(node: Node) -> Document:
    """Lay out the kernels of a schedule: on its line, or several below it, a line for each."""
    each = [_laid_out(part) for part in _children(node) if not is_comma(part)]
    if len(each) == 1:
        return (SPACE, *each, SPACE)
    inside = Indent((Line(" "), *separated(each, Line(" ")), LastComma()))
    return Group((inside, Line(" ", closing=True)))


def _joined(parts: Sequence[Node]) -> Document:
    """Lay out words with nothing between them."""
    return tuple(map(_laid_out, parts))


def _options(node: Node) -> Document:
    options = [_laid_out(option) for option in _children(node)]
    lines = ((Line(" "), option) for option in options)
    return Group(Indent(tuple(lines)))


def _option(parts: Sequence[Node]) -> Document:
    name, opening, *values, closing = parts
    numbers = [_laid_out(value) for value in values if not is_comma(value)]
    return (
        token(str(name)),
        bracketed(token(str(opening)), numbers, token(str(closing))),
    )


def _assignment(parts: Sequence[Node]) -> Document:
    """Lay out `let x[i] = value;` and other statements with a `=`."""
    *target, sign, value, end = parts
    left: list[Document] = []
    words = list(target)
    while words:
        first = words.pop(0)
        if _is(first, "OPEN_BRACKET"):
            left.append(subscripts(first, words.pop(0), words.pop(0)))
        else:
            spaced = _is(first, "LET") or _is(first, "HOST")
            left += [expression(first).document, *([SPACE] if spaced else [])]
    content = assigned(tuple(left), token(str(sign)), expression(value))
    return (content, token(str(end)))


def _require(parts: Sequence[Node]) -> Document:
    """Lay out `require a <= b;`: on a line, or broken after `and` and `or`."""
    word, value, end = parts
    content = Group(Indent((Line(" "), expression(value).document)))
    return (token(str(word)), content, token(str(end)))


_FORMS: Final[Mapping[str, Callable[[Sequence[Node]], Document]]] = {
    "file_docs": _docs,
    "docs": _docs,
    "documented": _documented,
    "described": _documented,
    "use": _plain,
    "const": _parameter,
    "struct": _struct,
    "plain_field": _field,
    "attribute": _attribute,
    "function": _function,
    "local": _assignment,
    "derivative": _derivative,
    "kernel": _kernel,
    "gradient": _gradient,
    "schedule": _schedule,
    "target": _joined,
    "pattern": _joined,
    "option": _option,
    "plain_parameter": _parameter,
    "plain_output": _parameter,
    "type": _type,
    "let": _assignment,
    "host": _assignment,
    "require": _require,
    "assignment": _assignment,
}

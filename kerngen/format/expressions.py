"""Formatting of expressions: a function for each form of the grammar."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from lark import Token, Tree

from kerngen.format.document import Document, Group, Indent, Line
from kerngen.format.pieces import (
    SPACE,
    Piece,
    braced,
    bracketed,
    condition,
    parenthesized,
    separated,
    token,
)

Node: TypeAlias = "Tree[Token] | Token"

_LEVELS: Final = (
    {"or"},
    {"and"},
    {"==", "!=", "<", "<=", ">", ">="},
    {"|"},
    {"^"},
    {"&"},
    {"<<", ">>"},
    {"+", "-"},
    {"*", "/", "%"},
)
"""Operators by precedence, the loosest first.

A chain of operators of one level is one group: its lines break together.
"""

_LEVEL: Final = {op: level for level, ops in enumerate(_LEVELS) for op in ops}


def number_text(text: str) -> str:
    """Return a number literal in canonical form: `0xFF`, `1e-8`."""
    if text[:2].lower() == "0x":
        return f"0x{text[2:].upper()}"
    return text.lower()


def expression(node: Node) -> Piece:
    """Return the document of an expression."""
    if isinstance(node, Token):
        numeric = node.type in {"INT", "FLOAT"}
        return Piece(token(number_text(str(node)) if numeric else str(node)))
    return _FORMS[node.data](node.children)


def elements(node: Node) -> list[Document]:
    """Return the documents of a list's expressions, without commas."""
    assert isinstance(node, Tree)
    parts = [part for part in node.children if not is_comma(part)]
    return [expression(part).document for part in parts]


def is_comma(node: Node) -> bool:
    """Whether a node is a comma of a list."""
    return isinstance(node, Token) and node.type == "COMMA"


def subscripts(opening: Node, inside: Node, closing: Node) -> Group:
    """Return the document of a list in brackets."""
    return bracketed(token(str(opening)), elements(inside), token(str(closing)))


def _same(parts: Sequence[Node]) -> Piece:
    return expression(parts[0])


def _parentheses(parts: Sequence[Node]) -> Piece:
    opening, inside, closing = parts
    content = expression(inside).document
    group = parenthesized(token(str(opening)), content, token(str(closing)))
    return Piece(group, tail=group)


def _call(parts: Sequence[Node]) -> Piece:
    called, opening, arguments, closing = parts
    group = subscripts(opening, arguments, closing)
    return Piece((expression(called).document, group), tail=group)


def _member(parts: Sequence[Node]) -> Piece:
    base, dot, name = parts
    return Piece((expression(base).document, token(str(dot)), token(str(name))))


def _unary(parts: Sequence[Node]) -> Piece:
    sign, operand = parts
    piece = expression(operand)
    space = (SPACE,) if sign == "not" else ()
    document = (token(str(sign)), *space, piece.document)
    return Piece(document, piece.tail, piece.opens)


def _binary(parts: Sequence[Node]) -> Piece:
    """Lay out a chain of operators of one level: on a line, or a line for each operator.

    a_long_operand
    + another
    - a third
    """
    level = _LEVEL[str(parts[1])]
    operands: list[tuple[Node, Node]] = []
    # A chain nests to the left, so its operands are found from the last to the first.
    left, sign, right = parts
    operands.append((sign, right))
    while isinstance(left, Tree) and left.data == "binary":
        first, sign, right = left.children
        if _LEVEL[str(sign)] != level:
            break
        operands.append((sign, right))
        left = first
    last = Piece(())
    content: list[Document] = [expression(left).document]
    for sign, right in reversed(operands):
        last = expression(right)
        content += [Line(" ", operator=True), token(str(sign)), SPACE, last.document]
    group = Group(tuple(content), last.open_tail)
    return Piece(group, group if last.opens else None, last.opens)


def _reduction(parts: Sequence[Node]) -> Piece:
    kind, opening, binders, *when, closing, body = parts
    piece = expression(body)
    if when:
        indices = _conditional_indices(opening, binders, when, closing)
        behind: Document = (SPACE, piece.document)
    else:
        indices = subscripts(opening, binders, closing)
        behind = Indent((Line(" "), piece.document))
    group = Group((token(str(kind)), indices, behind), piece.open_tail)
    return Piece(group, group if piece.opens else None, piece.opens)


def _conditional_indices(
    opening: Node, binders: Node, when: Sequence[Node], closing: Node
) -> Group:
    """Lay out indices and the condition behind them: on a line, or on one each."""
    word, test = when
    indices = Group(tuple(separated(elements(binders), Line(" "))))
    tested = (token(str(word)), SPACE, Indent((expression(test).document,)))
    content = (indices, Line(" "), *tested)
    return parenthesized(token(str(opening)), content, token(str(closing)))


def _binder(parts: Sequence[Node]) -> Piece:
    name, *bound = parts
    if not bound:
        return Piece(token(str(name)))
    sign, value = bound
    document = (
        token(str(name)),
        SPACE,
        token(str(sign)),
        SPACE,
        expression(value).document,
    )
    return Piece(document)


def _conditional(parts: Sequence[Node]) -> Piece:
    """Lay out an `if` with all its `else if`s as one group, whose braces break together."""
    content: list[Document] = []
    # An 'if' with another one behind its 'else' has 7 parts, one with braces there has 9.
    while len(parts) == 7:
        content += [_branch(parts[:5]), SPACE, token("else"), SPACE]
        nested = parts[6]
        assert isinstance(nested, Tree)
        parts = nested.children
    content += [_branch(parts[:5]), SPACE, token("else"), SPACE, _braces(parts[6:])]
    group = Group(tuple(content))
    return Piece(group, group, opens=True)


def _branch(parts: Sequence[Node]) -> Document:
    word, test, *branch = parts
    return (token(str(word)), condition(expression(test).document), _braces(branch))


def _braces(parts: Sequence[Node]) -> Document:
    opening, inside, closing = parts
    return braced(str(opening), expression(inside).document, str(closing))


_FORMS: Final[Mapping[str, Callable[[Sequence[Node]], Piece]]] = {
    "number": _same,
    "boolean": _same,
    "name": _same,
    "primary": _parentheses,
    "call": _call,
    "subscript": _call,
    "member": _member,
    "unary": _unary,
    "binary": _binary,
    "reduction": _reduction,
    "binder": _binder,
    "conditional": _conditional,
}

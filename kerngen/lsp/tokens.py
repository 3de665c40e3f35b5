"""Semantic tokens: highlighting by the meaning of names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

from lsprotocol import types

from kerngen.lsp.checked import Checked
from kerngen.syntax.highlight import KernLexer

_Token: TypeAlias = tuple[int, int, str, bool]
"""The start and end of a token, its type, and whether it is of the language's library."""

_OF_KINDS: Final[Mapping[str, str]] = {
    "kernel": "function",
    "function": "function",
    "struct": "struct",
    "constant": "enumMember",
    "a field": "property",
    "a parameter": "parameter",
    "an input": "parameter",
    "a 'mut' tensor": "parameter",
    "an output": "parameter",
    "a dim": "typeParameter",
}
"""The token types of names by their kind; all others are variables."""

_OF_WORDS: Final = (
    ("Token.Keyword.Type", "type"),
    ("Token.Keyword", "keyword"),
    ("Token.Comment", "comment"),
    ("Token.Literal.String.Doc", "comment"),
    ("Token.Literal.String", "string"),
    ("Token.Literal.Number", "number"),
    ("Token.Operator", "operator"),
    ("Token.Name.Builtin", "function"),
    ("Token.Name.Decorator", "decorator"),
)
"""Token types of lexemes, by the beginnings of Pygments' types; the first match counts."""

LEGEND: Final = types.SemanticTokensLegend(
    list(dict.fromkeys((*_OF_KINDS.values(), "variable", *(t for _, t in _OF_WORDS)))),
    ["defaultLibrary"],
)


def tokens(checked: Checked) -> types.SemanticTokens:
    """Return the semantic tokens of a file, in the protocol's relative form."""
    data: list[int] = []
    line = column = 0
    for start, end, kind, is_ours in sorted(
        {**_words(checked), **_names(checked)}.values()
    ):
        place = checked.columns.range(start, end)
        at = place.start
        data += (
            at.line - line,
            at.character - (column if at.line == line else 0),
            place.end.character - at.character,
            LEGEND.token_types.index(kind),
            int(is_ours),
        )
        line, column = at.line, at.character
    return types.SemanticTokens(data)


def _names(checked: Checked) -> dict[int, _Token]:
    return {
        name.span.start: (
            name.span.start,
            name.span.end,
            _OF_KINDS.get(name.means[0].kind, "variable"),
            False,
        )
        for name in checked.names
        if name.written
    }


def _words(checked: Checked) -> dict[int, _Token]:
    return {token[0]: token for token in _lexed(checked.source.text)}


def _lexed(text: str) -> Iterator[_Token]:
    lexer = cast("Any", KernLexer())
    for start, kind, value in lexer.get_tokens_unprocessed(text):
        name = str(kind)
        found = next((t for begin, t in _OF_WORDS if name.startswith(begin)), None)
        # No token is longer than a line.
        if found and value.strip() and "\n" not in value and "\r" not in value:
            yield start, start + len(value), found, name == "Token.Name.Builtin"

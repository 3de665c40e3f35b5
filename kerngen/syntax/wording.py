"""Terminals of the grammar in words: `OPEN_PAREN` is '('."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

COMPARISONS = frozenset({"EQUAL", "UNEQUAL", "LESS", "AT_MOST", "GREATER", "AT_LEAST"})

ITEMS = frozenset({"USE", "CONST", "STRUCT", "FN", "DERIVATIVE", "KERNEL", "SCHEDULE"})

CONTEXTUAL = frozenset({"REQUIRE", "GRADIENT", "OF", "BY", "GIVEN", "DERIVATIVE"})
"""Words that are names wherever the parser can't take them: `let gradient = ...`."""

KEYWORDS = ITEMS | CONTEXTUAL | {
    "WHEN", "MUT", "LET", "HOST", "IF", "ELSE", "TRUE", "FALSE", "OR", "AND", "NOT",
    "REDUCE",
}  # fmt: skip

CLOSERS = frozenset({"CLOSE_PAREN", "CLOSE_BRACKET", "CLOSE_BRACE", "$END"})

VALUE_STARTS = frozenset({"NAME", "INT", "FLOAT", "OPEN_PAREN"})

_OPERATORS = COMPARISONS | {
    "OR", "AND", "PIPE", "CARET", "AMPERSAND", "SHIFT_LEFT", "SHIFT_RIGHT",
    "PLUS", "MINUS", "STAR", "SLASH", "PERCENT",
}  # fmt: skip

_OPERANDS = frozenset(
    {"NAME", "REDUCE", "INT", "FLOAT", "TRUE", "FALSE", "IF", "OPEN_PAREN", "MINUS"}
)

_MORE = _OPERATORS | {"DOT", "OPEN_BRACKET", "OPEN_PAREN"}

# If all terminals of the first set are expected, the phrase replaces these and the second set.
_PHRASES: tuple[tuple[AbstractSet[str], AbstractSet[str], str], ...] = (
    (ITEMS, frozenset({"$END"}), "an item such as 'kernel' or 'fn'"),
    (ITEMS - {"USE", "SCHEDULE"}, frozenset(), "an item such as 'kernel' or 'fn'"),
    (frozenset({"LET", "HOST", "NAME"}), frozenset({"REQUIRE"}), "a statement"),
    (_OPERANDS, frozenset({"NOT", "TILDE"}), "a value"),
    (frozenset({"OR"}), _MORE, "an operator"),
    (frozenset({"PIPE"}), _MORE, "an operator"),
    # A pattern of kernels is rarer than what else may be there.
    (frozenset({"WHEN"}), frozenset({"STAR"}), "'when'"),
    (frozenset({"NAME", "STAR"}), frozenset({"REDUCE"}), "a name"),
    (frozenset({"NAME"}), frozenset({"REDUCE"}), "a name"),
    (frozenset({"ASSIGN"}), frozenset({"ASSIGN_OP"}), "'='"),
)

_PUNCTUATION = {
    "OPEN_PAREN": "(", "OPEN_BRACKET": "[", "OPEN_BRACE": "{",
    "CLOSE_PAREN": ")", "CLOSE_BRACKET": "]", "CLOSE_BRACE": "}",
    "SEMICOLON": ";", "COLON": ":", "COMMA": ",", "DOT": ".", "AT": "@", "ARROW": "->",
    "ASSIGN": "=", "ASSIGN_OP": "+=", "EQUAL": "==", "UNEQUAL": "!=",
    "LESS": "<", "AT_MOST": "<=", "GREATER": ">", "AT_LEAST": ">=",
    "PIPE": "|", "CARET": "^", "AMPERSAND": "&", "SHIFT_LEFT": "<<", "SHIFT_RIGHT": ">>",
    "PLUS": "+", "MINUS": "-", "STAR": "*", "SLASH": "/", "PERCENT": "%", "TILDE": "~",
}  # fmt: skip

_CLASSES = {
    "REDUCE": "a reduction",
    "INT": "a whole number",
    "FLOAT": "a number",
    "STRING": "a path in double quotes",
    "$END": "the end of the file",
}

_DOCS = frozenset({"DOC", "FILE_DOC"})


def describe(expected: AbstractSet[str]) -> tuple[str, ...]:
    """Return expected terminals in few words: `("')'", "a value")`."""
    rest = set(expected - _DOCS)
    phrases: list[str] = []
    for needed, covered, phrase in _PHRASES:
        if needed <= rest:
            phrases.append(phrase)
            rest -= needed | covered
    return (*sorted(map(_word, rest)), *phrases)


def _word(terminal: str) -> str:
    """Return a terminal in words; a keyword's terminal is its word in capitals."""
    if terminal in _CLASSES:
        return _CLASSES[terminal]
    return f"'{_PUNCTUATION.get(terminal, terminal.lower())}'"

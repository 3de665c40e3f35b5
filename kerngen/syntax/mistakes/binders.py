"""Hints for syntax errors where an index is declared, and around `mut`."""

from __future__ import annotations

import re
from typing import Final

from kerngen.syntax.lexemes import Lexeme, lexemes
from kerngen.syntax.mistakes import hints
from kerngen.syntax.mistakes.mistake import Mistake
from kerngen.syntax.mistakes.patterns import hint
from kerngen.syntax.wording import COMPARISONS

_TYPE = re.compile(r"\s*\w+\s*(?:\[[^\[\]]*\])?")


_SEPARATORS: Final = frozenset(
    {"if", "|", "and", "where", "while", "such", "with", "given"}
)
"""Words and signs before a condition in other notations: `sum[j | j <= i]`."""


def separates_condition(mistake: Mistake) -> bool:
    """Whether the token was meant to begin a condition: `sum[j | j <= i]`."""
    if not mistake.accepts >= {"WHEN", "CLOSE_BRACKET"}:
        return False
    return mistake.span.text in _SEPARATORS or _bar(mistake) is not None


def _bar(mistake: Mistake) -> Lexeme | None:
    """Return the `|` of `sum[j < n | j <= i]`, where the error is at the comparison after it.

    Up to there, `n | j` is a range.
    """
    if mistake.kind not in COMPARISONS or mistake.opening is None:
        return None
    inside = mistake.preceding[mistake.preceding.index(mistake.opening) :]
    return next((lexeme for lexeme in reversed(inside) if lexeme.text == "|"), None)


def _with_when(mistake: Mistake) -> str:
    """Return the hint `sum[j when j <= i] ...`, with the user's own indices and condition."""
    opening, text = mistake.opening, mistake.source.text
    assert opening is not None, "a reduction's"
    bar = _bar(mistake)
    begin, end = (bar.start, bar.end) if bar else (mistake.span.start, mistake.span.end)
    kind = mistake.preceding[mistake.preceding.index(opening) - 1].text
    indices = " ".join(text[opening.end : begin].split()).rstrip(", ")
    condition = " ".join(_up_to_bracket(text, end).split()).removeprefix("that ")
    return (
        f"A condition follows 'when': '{kind}[{indices} when {condition or 'c'}] ...'."
    )


def _up_to_bracket(text: str, begin: int) -> str:
    """Return the text before the bracket that closes the one it is in."""
    depth, end = 0, begin
    for lexeme in lexemes(text, begin):
        depth += {"[": 1, "]": -1}.get(lexeme.text, 0)
        if depth < 0 or lexeme.text == ";":
            break
        end = lexeme.end
    return text[begin:end]


def binder_remedy(mistake: Mistake) -> str:
    """Return the right way to declare an index here."""
    if separates_condition(mistake):
        return _with_when(mistake)
    if mistake.kind == "AT_MOST" and mistake.before:
        index = mistake.before.text
        rest = mistake.source.text[mistake.span.end :]
        bound = " ".join(re.split(r"[],;\n]", rest, maxsplit=1)[0].split())
        if bound in left_indices(mistake):
            return (
                "A range is the same for all elements; leave terms out by a condition: "
                f"'sum[{index} when {index} <= {bound}] ...'."
            )
        written = f"'{index} < {bound} + 1' for '{index} <= {bound}'"
        return f"A range ends before its bound: write {written}."
    return hint(hints.INDICES, mistake)


def left_indices(mistake: Mistake) -> set[str]:
    """Return the indices on the left of the statement with the error."""
    texts = [lexeme.text for lexeme in mistake.statement()]
    left = texts[: texts.index("=")] if "=" in texts else []
    start = max((n for n, text in enumerate(left) if text == "["), default=len(left))
    return {text for text in left[start:] if text.isidentifier()}


def mut_remedy(mistake: Mistake) -> str:
    """Return where `mut` belongs."""
    if mistake.text_before(1) == ":":
        name = mistake.text_before(2)
        written = _TYPE.match(mistake.source.text, mistake.span.end)
        type_ = " ".join(written[0].split()) if written else "f32[n]"
        return f"It goes before the name: 'mut {name}: {type_}'."
    return "Remove it: outputs are always writable, and a 'let' never changes."

"""Hints for indices and for `mut`: how they are introduced, and where they stand."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from kerngen.syntax.mistake import Mistake

_Condition: TypeAlias = Callable[[Mistake], bool]

_TYPE = re.compile(r"\s*\w+\s*(?:\[[^\[\]]*\])?")


def _compared(mistake: Mistake) -> bool:
    return mistake.source.text[mistake.span.end :].lstrip().startswith("<")


_BINDERS: tuple[tuple[_Condition, str], ...] = (
    (
        lambda m: m.kind in {"IF", "PIPE", "AND"} or m.span.text == "where",
        "A condition is part of what is reduced: 'sum[i] if c { x[i] } else { 0.0 }'.",
    ),
    (
        lambda m: m.kind == "INT" and not _compared(m),
        "Name the index, and give its range: 'let w[k < 3]', 'sum[k < 3]'.",
    ),
    (
        lambda m: m.kind == "INT",
        "Indices begin at 0; a range gives their end: 'sum[i < n]'.",
    ),
    (
        lambda m: m.kind in {"COLON", "ASSIGN"} or m.span.text == "in",
        "An index begins at 0 and ranges over its axis: 'sum[i]', or 'sum[i < n]'.",
    ),
)


def binder_remedy(mistake: Mistake) -> str:
    """Return how an index is introduced instead."""
    if mistake.kind == "AT_MOST" and mistake.before:
        index = mistake.before.text
        rest = mistake.source.text[mistake.span.end :]
        bound = " ".join(re.split(r"[],;\n]", rest, maxsplit=1)[0].split())
        if bound in left_indices(mistake):
            return (
                "A range is the same for all elements; use an 'if' inside of the "
                "reduction: 'sum[{index}] if {index} <= {bound} {{ ... }} else {{ 0.0 "
                "}}'."
            )
        written = f"'{index} < {bound} + 1' for '{index} <= {bound}'"
        return f"A range ends before its bound: write {written}."
    return next(
        (hint for holds, hint in _BINDERS if holds(mistake)),
        "Write a name, with a range if needed: 'sum[i]', 'sum[i < n]'.",
    )


def left_indices(mistake: Mistake) -> set[str]:
    """Return the indices on the left of the statement that this is in."""
    texts = [lexeme.text for lexeme in mistake.statement()]
    left = texts[: texts.index("=")] if "=" in texts else []
    start = max((n for n, text in enumerate(left) if text == "["), default=len(left))
    return {text for text in left[start:] if text.isidentifier()}


def mut_remedy(mistake: Mistake) -> str:
    """Return where `mut` stands."""
    if mistake.text_before(1) == ":":
        name = mistake.text_before(2)
        written = _TYPE.match(mistake.source.text, mistake.span.end)
        type_ = " ".join(written[0].split()) if written else "f32[n]"
        return f"It goes before the name: 'mut {name}: {type_}'."
    return "Remove it: outputs are always writable, and a 'let' never changes."

"""Hints for what no recogniser knows: where the mistake stands says what was meant."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from kerngen.syntax.foreign import TYPES
from kerngen.syntax.mistake import Mistake
from kerngen.syntax.wording import ITEMS

_Condition: TypeAlias = Callable[[Mistake], bool]

_TYPE = re.compile(r"\s*\w+\s*(?:\[[^\[\]]*\])?")
_VALUES = frozenset({"NAME", "INT", "FLOAT", "OPEN_PAREN"})
_CASTS = frozenset({*TYPES, "f32", "i32", "u32"})
_CLOSING = frozenset({"CLOSE_PAREN", "CLOSE_BRACKET"})
_AFTER_TARGET = frozenset({"ASSIGN", "ASSIGN_OP"})


def remedy(mistake: Mistake) -> str:
    """Return what to do about a mistake, or nothing."""
    return next((hint for holds, hint in _REMEDIES if holds(mistake)), "")


def _in_file(mistake: Mistake) -> bool:
    return mistake.accepts >= ITEMS


def _in_schedule(mistake: Mistake) -> bool:
    return mistake.item == "schedule" and not _in_file(mistake)


def _compared(mistake: Mistake) -> bool:
    return mistake.source.text[mistake.span.end :].lstrip().startswith("<")


_REMEDIES: tuple[tuple[_Condition, str], ...] = (
    (
        lambda m: m.kind == "AT",
        "Only fields of a struct have attributes; a schedule says how a kernel runs.",
    ),
    (
        lambda m: _in_file(m) and m.kind in {"LET", "HOST"},
        "Outside kernels, write a constant: 'const A: f32 = 1.0;'.",
    ),
    (
        lambda m: _in_file(m) and m.span.text == "}",
        "Remove it: the braces before it are closed.",
    ),
    (
        lambda m: _in_file(m) and m.kind == "SEMICOLON",
        "Remove it: what ends with a brace has no ';'.",
    ),
    (
        lambda m: _in_schedule(m)
        and m.kind == "OPEN_PAREN"
        and m.text_before(2) == "{",
        "A strategy comes before its options: 'gemm tile(64, 64, 16)'.",
    ),
    (
        lambda m: _in_schedule(m) and m.kind in {"COMMA", "SEMICOLON"},
        "Options follow each other without commas: 'gemm tile(64, 64, 16) micro(4, 4)'.",
    ),
    (
        lambda m: _in_schedule(m) and m.accepts_only("OPEN_PAREN"),
        "Options have their values in parentheses, as in 'tile(64, 64, 16)'.",
    ),
    (
        lambda m: _in_schedule(m) and "CLOSE_PAREN" in m.accepts,
        "The values of an option are whole numbers, written out.",
    ),
    (
        _in_schedule,
        "Write 'schedule name { strategy }', or 'schedule name when guard { ... }'.",
    ),
    (
        lambda m: m.accepts_only("ARROW"),
        "A function says what it returns: 'fn f(x: f32) -> f32 { ... }'.",
    ),
    (
        lambda m: m.accepts_only("ARROW", "OPEN_BRACE"),
        "Outputs follow '->', each with a name: '-> y: f32[n]'.",
    ),
    (
        lambda m: m.text_before(1) == "->" and m.kind == "OPEN_PAREN",
        "Outputs stand without parentheses: '-> y: f32[m], z: f32[n]'.",
    ),
    (
        lambda m: m.accepts >= {"CLOSE_PAREN", "COMMA"} and m.kind in {"NAME", "MUT"},
        "A ',' separates parameters and arguments.",
    ),
    (
        lambda m: m.kind == "COLON" and "OPEN_BRACE" in m.accepts,
        "Remove it: a body stands in braces alone.",
    ),
    (
        lambda m: m.text_before(1) == "let" and m.kind == "OPEN_PAREN",
        "A 'let' names one value: write one for each.",
    ),
    (
        lambda m: m.kind == "OPEN_BRACKET" and "FLOAT" in m.accepts,
        "There are no lists: pass a tensor, or choose by 'if k == 0 { ... } else { ... }'.",
    ),
    (
        lambda m: m.kind == "PIPE" and "FLOAT" in m.accepts,
        "A function is an item: 'fn f(x: f32) -> f32 { ... }'.",
    ),
    (
        lambda m: m.kind in _CLOSING and m.follows_value,
        "Remove it: what it would close is not open.",
    ),
    (
        lambda m: m.accepts >= _AFTER_TARGET and m.kind == "COMMA",
        "Write a statement for each target.",
    ),
    (
        lambda m: m.accepts >= _AFTER_TARGET and m.kind == "OPEN_PAREN",
        "An element is written with brackets: 'y[i] = ...;'.",
    ),
    (
        lambda m: m.accepts >= _AFTER_TARGET and m.kind not in _VALUES,
        "A statement writes 'target[i] = value;'.",
    ),
    (
        lambda m: m.item == "fn" and m.accepts_only("ASSIGN"),
        "In a function, a 'let' is one value and has no index.",
    ),
    (
        lambda m: m.accepts_only("ASSIGN") and m.kind == "OPEN_BRACKET",
        "A host is one number; a 'let' has one per index.",
    ),
    (
        lambda m: m.kind == "OPEN_BRACE" and "FLOAT" in m.accepts,
        "Braces hold the values of an 'if' alone; a 'let' is a statement of its own.",
    ),
    (
        lambda m: m.accepts_only("COLON") and m.kind == "OPEN_PAREN",
        "An attribute begins with '@', as in '@size(16) mass: f32'.",
    ),
    (
        lambda m: m.item == "struct" and m.kind == "SEMICOLON",
        "Fields are separated by ','.",
    ),
    (
        lambda m: m.kind == "STRING",
        "Strings stand only in 'use \"file.kern\";'.",
    ),
    (
        lambda m: m.text_before(1) == ")" and m.text_before(2) in _CASTS,
        "A cast is written like a call: 'f32(x)'.",
    ),
    (
        lambda m: m.follows_value and m.kind in _VALUES and not m.starts_line,
        "Between two values stands an operator; a product is written with '*'.",
    ),
)


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
        written = f"'{index} < {bound} + 1' for '{index} <= {bound}'"
        return f"A range ends before its bound: write {written}."
    return next(
        (hint for holds, hint in _BINDERS if holds(mistake)),
        "Write a name, with a range if need be: 'sum[i]', 'sum[i < n]'.",
    )


def mut_remedy(mistake: Mistake) -> str:
    """Return where `mut` stands."""
    if mistake.text_before(1) == ":":
        name = mistake.text_before(2)
        written = _TYPE.match(mistake.source.text, mistake.span.end)
        type_ = " ".join(written[0].split()) if written else "f32[n]"
        return f"It stands before the name: 'mut {name}: {type_}'."
    return "Remove it: an output can be written anyway, a 'let' never."

"""Hints for what no recogniser knows: where the mistake stands says what was meant."""

from __future__ import annotations

import re
from collections.abc import Callable
from string import Template
from typing import TypeAlias

from kerngen.ir.strategies import OPTIONS
from kerngen.syntax.foreign_types import TYPES
from kerngen.syntax.mistake import Mistake
from kerngen.syntax.wording import CLOSERS, COMPARISONS, ITEMS, VALUE_STARTS

_Condition: TypeAlias = Callable[[Mistake], bool]

_PARAMETER = re.compile(r"\s*(?:mut\s+)?\w+\s*:")
_STATEMENT = re.compile(r"\w+\s*(?:\[[^\[\]]*\]\s*)?[-+*/]?=(?!=)")
_FIELD = re.compile(r"\s*\w+\s*:")
_ASSIGNED = re.compile(r"\s*(?::\s*\w+\s*)?=(?!=)")
_CASTS = frozenset({*TYPES, "f32", "i32", "u32"})
_STARTS = (VALUE_STARTS - {"NAME"}) | {"REDUCE", "IF", "MINUS", "TRUE", "FALSE"}
_CLOSING = frozenset({"CLOSE_PAREN", "CLOSE_BRACKET"})
_OPERATORS = frozenset(
    {*"=+-*/%<>&|^~", "<=", ">=", "==", "!=", "<<", ">>", "+=", "-=", "*=", "/="}
    | {"and", "or", "not"}
)
_ENDS = _CLOSING | ITEMS | {"SEMICOLON", "COMMA", "CLOSE_BRACE", "$END"}
_AFTER_TARGET = frozenset({"ASSIGN", "ASSIGN_OP"})
_VALUE = frozenset({"FLOAT", "MINUS"})
_BINARY = COMPARISONS | {
    "STAR",
    "SLASH",
    "PERCENT",
    "PLUS",
    "SHIFT_LEFT",
    "SHIFT_RIGHT",
}


def remedy(mistake: Mistake) -> str:
    """Return what to do about a mistake, or nothing."""
    hint = next((hint for holds, hint in _REMEDIES if holds(mistake)), "")
    return Template(hint).safe_substitute(
        found=mistake.span.text, before=mistake.text_before(1)
    )


def separates_parameters(mistake: Mistake) -> bool:
    """Whether a `;` stands between two parameters."""
    if mistake.opening is None or mistake.opening.text != "(":
        return False
    rest = mistake.source.text[mistake.span.end :]
    return mistake.kind == "SEMICOLON" and _PARAMETER.match(rest) is not None


def _in_file(mistake: Mistake) -> bool:
    return mistake.accepts >= ITEMS


def _in_schedule(mistake: Mistake) -> bool:
    return mistake.item == "schedule" and not _in_file(mistake)


def _closes_nothing(mistake: Mistake) -> bool:
    """Whether a closing bracket has no opening one of its kind."""
    opens = {"CLOSE_PAREN": "(", "CLOSE_BRACKET": "["}.get(mistake.kind)
    return opens is not None and not (mistake.opening and mistake.opening.text == opens)


def _value_is_missing(mistake: Mistake) -> bool:
    """Whether an operator has nothing behind it."""
    is_operator = mistake.text_before(1) in _OPERATORS
    ends = mistake.kind in _ENDS or mistake.span.text in _OPERATORS
    return "FLOAT" in mistake.accepts and is_operator and ends


def _names_a_field(mistake: Mistake) -> bool:
    """Whether a brace opens what looks like a literal of a struct."""
    return _FIELD.match(mistake.source.text, mistake.span.end) is not None


def _begins(mistake: Mistake) -> bool:
    """Whether a value begins right behind another one."""
    return mistake.kind in VALUE_STARTS and not mistake.starts_line


def _lists_names(mistake: Mistake) -> bool:
    """Whether a name is missing behind the 'by' or the 'given' of a gradient."""
    texts = [lexeme.text for lexeme in mistake.statement()]
    return mistake.accepts_only("NAME") and {"gradient", "by"} <= set(texts)


def begins_statement(mistake: Mistake) -> bool:
    """Whether this looks like the left side of a statement, and its '='."""
    match = _STATEMENT.match(mistake.source.text, mistake.span.start)
    return mistake.kind == "NAME" and match is not None


_REMEDIES: tuple[tuple[_Condition, str], ...] = (
    (
        lambda m: m.span.text == m.text_before(1) and m.kind not in CLOSERS,
        "Remove one of the two '$found'.",
    ),
    (
        lambda m: m.text_before(1) == ":" and m.accepts_only("NAME"),
        "A type is 'f32', 'i32', 'u32', a vector, a matrix or a struct, a tensor 'f32[n]'.",
    ),
    (
        lambda m: m.kind == "COLON" and "NAME" in m.accepts,
        "A name is missing before the ':'.",
    ),
    (
        lambda m: m.accepts <= {"ASSIGN", "OPEN_BRACKET"} and m.kind in _STARTS,
        "A '=' is missing before the value.",
    ),
    (
        lambda m: m.kind == "SEMICOLON" and m.starts_statement and not _in_file(m),
        "Remove it: the statement before it has ended already.",
    ),
    (
        separates_parameters,
        "Parameters are separated by ','.",
    ),
    (
        lambda m: m.accepts_only("STRING"),
        "Write the path of the file in quotes: 'use \"math.kern\";'.",
    ),
    (
        lambda m: m.kind == "PERCENT" and (m.starts_line or m.starts_statement),
        "A comment begins with '//'.",
    ),
    (
        lambda m: m.kind == "ARROW" and m.follows_value,
        "A member is read with '.', as in 'p[i].mass'.",
    ),
    (
        lambda m: m.accepts >= _VALUE
        and m.text_before(1) == "{"
        and m.kind in _ENDS
        and "if" in (lexeme.text for lexeme in m.statement()),
        "A branch is a value: '{ 0.0 }'.",
    ),
    (
        lambda m: m.kind == "COLON" and "SEMICOLON" in m.accepts,
        "A statement ends with ';'.",
    ),
    (
        lambda m: m.accepts >= _VALUE and m.text_before(1) == "]" and m.kind in _ENDS,
        "What is reduced follows the brackets: 'sum[j] x[j]'.",
    ),
    (
        lambda m: m.text_before(1) == "->"
        and m.item == "fn"
        and m.kind != "OPEN_PAREN",
        "A function declares the type that it returns: 'fn f(x: f32) -> f32 { ... }'.",
    ),
    (
        lambda m: m.text_before(1) in {"let", "host"}
        and m.kind in {"ASSIGN", "OPEN_BRACKET"},
        "Give it a name: '$before t = ...;'.",
    ),
    (
        lambda m: m.kind in {"OPEN_BRACKET", "ASSIGN"}
        and m.starts_statement
        and not _in_file(m),
        "Name what is written: 'y[i] = ...;'.",
    ),
    (
        lambda m: m.accepts >= _AFTER_TARGET
        and m.kind == "NAME"
        and m.text_before(1).isidentifier(),
        "A value gets its name by 'let': 'let $found = ...;'.",
    ),
    (
        lambda m: m.kind in {"INT", "FLOAT"}
        and m.text_before(1) == ","
        and m.text_before(2).isdecimal(),
        "A fraction is written with a point: '0.5'.",
    ),
    (
        lambda m: m.kind == "COMMA"
        and "SEMICOLON" in m.accepts
        and m.text_before(1).isdecimal()
        and m.source.text[m.span.end : m.span.end + 1].isdecimal(),
        "A fraction is written with a point: '0.5'.",
    ),
    (
        lambda m: m.kind in {"INT", "FLOAT"}
        and "ASSIGN" in m.accepts
        and m.opening is not None
        and m.opening.text == "(",
        "A default follows a '=': 'alpha: f32 = 1.0'.",
    ),
    (
        lambda m: m.kind == "MINUS" and m.source.text.startswith("- >", m.span.start),
        "Write '->', without a blank in it.",
    ),
    (
        lambda m: m.item == m.text_before(1) == "schedule",
        "Name the kernel: 'schedule name { ... }'.",
    ),
    (
        lambda m: "NAME" in m.accepts and "" != m.item == m.text_before(1),
        "Give it a name, as in '$before name'.",
    ),
    (
        lambda m: m.kind in {"AMPERSAND", "STAR"} and "MUT" in m.accepts,
        "Write the name alone; what the kernel changes is marked 'mut'.",
    ),
    (
        lambda m: "OPEN_BRACE" in m.accepts
        and m.item in {"kernel", "fn"}
        and not m.follows_value
        and m.kind in {"NAME", "LET", "HOST"},
        "The body of a kernel or function is in braces: '{ ... }'.",
    ),
    (
        _closes_nothing,
        "Remove it: there is no opening bracket for it.",
    ),
    (
        lambda m: m.kind == "PIPE" and m.text_before(1) in {"=", "(", ","},
        "A function is an item: 'fn f(x: f32) -> f32 { ... }'.",
    ),
    (
        _value_is_missing,
        "A value is missing after '$before'.",
    ),
    (
        lambda m: m.kind in {"AMPERSAND", "STAR"} and m.accepts >= _VALUE,
        "There are no pointers: write the name alone.",
    ),
    (
        lambda m: m.kind in _BINARY and m.accepts >= _VALUE,
        "A value is missing before '$found'.",
    ),
    (
        lambda m: m.kind == "AT",
        "Only fields of a struct have attributes; how a kernel runs is set by a schedule.",
    ),
    (
        lambda m: m.kind == "WHEN" and m.follows_value,
        "A reduction has its condition in its brackets: 'sum[j when j <= i] x[j]'.",
    ),
    (
        lambda m: m.text_before(1) == "when" and m.kind == "CLOSE_BRACKET",
        "A condition follows 'when': 'sum[j when j <= i] x[j]'.",
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
        "Remove it: no ';' follows a closing brace.",
    ),
    (
        lambda m: _in_schedule(m)
        and m.kind == "OPEN_PAREN"
        and m.text_before(2) == "{",
        "A strategy comes before its options: 'gemm tile(64, 64, 16)'.",
    ),
    (
        lambda m: _in_schedule(m) and m.text_before(1) == "{",
        "Name a strategy, as in '{ generic }'.",
    ),
    (
        lambda m: _in_schedule(m) and m.kind == "SEMICOLON",
        "Remove it: a schedule has no ';' in it.",
    ),
    (
        lambda m: _in_schedule(m) and m.kind == "COMMA" and m.opening is not None,
        "Options follow each other without commas: 'gemm tile(64, 64, 16) micro(4, 4)'.",
    ),
    (
        lambda m: _in_schedule(m)
        and m.accepts_only("OPEN_PAREN")
        and m.text_before(1) in OPTIONS,
        "A schedule has one strategy: write a second schedule for '$before'.",
    ),
    (
        lambda m: _in_schedule(m) and m.kind == "IF",
        "A guard follows 'when': 'schedule f when n > 64 { ... }'.",
    ),
    (
        lambda m: _in_schedule(m) and "COMMA" in m.accepts and m.opening is None,
        "Kernels are separated by ',': 'schedule f, g when n > 64 { ... }'.",
    ),
    (
        lambda m: _in_schedule(m) and m.accepts_only("OPEN_PAREN"),
        "Options have their values in parentheses, as in 'tile(64, 64, 16)'.",
    ),
    (
        lambda m: _in_schedule(m) and "CLOSE_PAREN" in m.accepts,
        "The values of an option are literal whole numbers.",
    ),
    (
        _in_schedule,
        "Write 'schedule name { strategy }', or 'schedule name when guard { ... }'.",
    ),
    (
        lambda m: m.item == "const" and m.kind == "SEMICOLON",
        "A constant has a value: 'const A: f32 = 1.0;'.",
    ),
    (
        lambda m: m.accepts_only("ARROW"),
        "A function declares the type that it returns: 'fn f(x: f32) -> f32 { ... }'.",
    ),
    (
        lambda m: m.accepts_only("ARROW", "OPEN_BRACE"),
        "Outputs follow '->', each with a name: '-> y: f32[n]'.",
    ),
    (
        lambda m: m.text_before(1) == "->"
        and m.kind == "OPEN_PAREN"
        and m.item == "fn",
        "A function returns one value, whose type has no parentheses.",
    ),
    (
        lambda m: m.text_before(1) == "->" and m.kind == "OPEN_PAREN",
        "Outputs are written without parentheses: '-> y: f32[m], z: f32[n]'.",
    ),
    (
        lambda m: m.accepts >= {"CLOSE_PAREN", "COMMA"} and m.kind in {"NAME", "MUT"},
        "A ',' separates parameters and arguments.",
    ),
    (
        lambda m: m.kind == "COLON" and "OPEN_BRACE" in m.accepts,
        "Remove it: the body follows in braces.",
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
        lambda m: m.accepts >= _AFTER_TARGET and m.kind == "COMMA",
        "Write a statement for each target.",
    ),
    (
        lambda m: m.accepts >= _AFTER_TARGET and m.kind == "OPEN_PAREN",
        "An element is written with brackets: 'y[i] = ...;'.",
    ),
    (
        lambda m: m.accepts >= _AFTER_TARGET and m.text_before(1) == "]",
        "Write '=' between the target and its value: 'y[i] = value;'.",
    ),
    (
        lambda m: m.accepts >= _AFTER_TARGET and m.kind not in VALUE_STARTS,
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
        lambda m: m.kind == "OPEN_BRACE" and m.text_before(1) == "]",
        "What is reduced follows without braces: 'sum[j] x[j]'.",
    ),
    (
        lambda m: m.item == "struct" and m.kind == "ASSIGN",
        "A field has no default: every value gives all fields.",
    ),
    (
        lambda m: m.kind == "OPEN_BRACE" and "FLOAT" in m.accepts,
        "Only the values of an 'if' are in braces; a 'let' is a statement of its own.",
    ),
    (
        lambda m: m.accepts_only("COLON") and m.kind == "OPEN_PAREN",
        "An attribute begins with '@', as in '@size(16) mass: f32'.",
    ),
    (
        lambda m: m.item == "struct" and m.text_before(2) == "@",
        "An attribute has its value in parentheses: '@align(16)'.",
    ),
    (
        lambda m: m.item == "struct" and m.accepts_only("OPEN_BRACE"),
        "Fields are in braces: 'struct Body { mass: f32 }'.",
    ),
    (
        lambda m: m.item == "struct" and m.kind in {"SEMICOLON", "NAME", "AT"},
        "Fields are separated by ','.",
    ),
    (
        lambda m: m.item == "fn" and m.kind in ITEMS | {"CLOSE_BRACE", "$END"},
        "A function ends with its value, as in '{ x * 2.0 }'.",
    ),
    (
        lambda m: m.kind == "COMMA" and m.item == "use",
        "A 'use' takes one file: write another one for the next.",
    ),
    (
        lambda m: m.kind == "COMMA" and m.text_before(1) in {",", "(", "["},
        "Remove it: nothing comes before it.",
    ),
    (
        lambda m: m.kind == "COMMA" and "SEMICOLON" in m.accepts,
        "A statement has one value, and ends with ';'.",
    ),
    (
        lambda m: m.source.text.startswith('"""', m.span.start),
        "A comment begins with '//'; one that documents the next item, with '///'.",
    ),
    (
        lambda m: m.kind == "FN" and m.is_nested_item,
        "Move the 'fn' out of the kernel, to the top of the file.",
    ),
    (
        lambda m: m.kind == "STRING",
        "Strings are only used in 'use \"file.kern\";'.",
    ),
    (
        lambda m: m.text_before(1) == ")" and m.text_before(2) in _CASTS,
        "A cast is written like a call: 'f32(x)'.",
    ),
    (
        lambda m: m.item == "fn" and "SEMICOLON" in m.accepts and _begins(m),
        "A 'let' ends with ';'; a product is written with '*'.",
    ),
    (
        lambda m: m.kind == "OPEN_BRACE" and m.follows_value and _names_a_field(m),
        "A struct is written member by member, as in 'p[i].mass = 1.0;'.",
    ),
    (
        lambda m: m.kind == "OPEN_BRACE" and m.follows_value,
        "An element is read with brackets, as in 'x[i]'.",
    ),
    (
        lambda m: m.kind == "OPEN_PAREN" and m.text_before(2) == ":",
        "The axes of a tensor are in brackets: 'f32[n]'.",
    ),
    (
        lambda m: m.kind == "LESS" and m.accepts_only("OPEN_PAREN"),
        "There are no type parameters: write the types out, one item for each.",
    ),
    (
        lambda m: m.item == "fn" and m.accepts_only("OPEN_PAREN"),
        "A function is written 'fn name(x: f32) -> f32 { ... }'.",
    ),
    (
        lambda m: m.item == "fn" and m.kind == "ASSIGN" and "COMMA" in m.accepts,
        "Only the parameters of a kernel have defaults.",
    ),
    (
        lambda m: m.kind == "ASSIGN" and "OPEN_BRACE" in m.accepts,
        "An output has no default: the kernel writes it.",
    ),
    (
        lambda m: m.kind == "SEMICOLON" and "OPEN_BRACE" in m.accepts,
        "Remove it: the body follows.",
    ),
    (
        lambda m: m.item == "kernel"
        and (m.accepts <= {"GRADIENT", "OF", "BY"} or _lists_names(m)),
        "A gradient is written 'kernel g = gradient of f by x given y;'.",
    ),
    (
        lambda m: m.accepts_only("OF"),
        "A derivative is written 'derivative of f(x: f32) { ... }'.",
    ),
    (
        lambda m: m.item == "kernel" and m.accepts_only("OPEN_PAREN"),
        "A kernel is written 'kernel name(x: f32[n]) -> y: f32[n] { ... }'.",
    ),
    (
        lambda m: _in_file(m)
        and _ASSIGNED.match(m.source.text, m.span.end) is not None,
        "Outside kernels, write a constant: 'const A: f32 = 1.0;'.",
    ),
    (
        lambda m: _in_file(m) and m.starts_line and begins_statement(m),
        "Statements belong in the braces of a kernel.",
    ),
    (
        _in_file,
        "A file holds 'use', 'const', 'struct', 'fn', 'kernel' and 'schedule'.",
    ),
    (
        lambda m: _begins(m) and "CLOSE_BRACKET" in m.accepts,
        "Subscripts are separated by ',', and a product is written with '*'.",
    ),
    (
        lambda m: _begins(m) and m.accepts >= {"CLOSE_PAREN", "COMMA"},
        "Arguments are separated by ',', and a product is written with '*'.",
    ),
    (
        lambda m: m.follows_value and _begins(m) and m.text_before(1).isidentifier(),
        "A product is written with '*', a call with parentheses: '$before(x)'.",
    ),
    (
        lambda m: m.follows_value and _begins(m),
        "An operator is missing between the two values; a product is written with '*'.",
    ),
)

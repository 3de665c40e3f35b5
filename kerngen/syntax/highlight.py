"""The Pygments lexer of the language, and its rules, which the playground uses, too.

rich, mkdocs, Sphinx, IPython and others find the lexer by its entry point.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final, TypeAlias, cast

from pygments.lexer import (
    RegexLexer,
    bygroups,  # pyright: ignore[reportUnknownVariableType]  # it has no annotations
    default,
)
from pygments.token import string_to_tokentype

from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.geometry import GEOMETRY
from kerngen.syntax.wording import CONTEXTUAL, KEYWORDS

# The rules of syntax highlighting as data, for Pygments, the playground and TextMate
#
# In each state, the first rule that matches applies.  A rule is a pattern, the kinds of its
# groups (or one kind for the whole match), and the next state, None to stay.  The rule of
# `@size` has a pattern of three groups, their kinds "Punctuation", "Text.Whitespace" and
# "Name.Decorator", and None.
#
# Kinds are Pygments' names of tokens, and `#pop` goes back to the state before.  The patterns
# use only what means the same in Python and JavaScript.


Rule: TypeAlias = tuple[str, tuple[str, ...], str | None]


def _one_of(words: Iterable[str], after: str = r"\b") -> str:
    """Return a pattern of whole words."""
    return rf"\b(?:{'|'.join(sorted(words))}){after}"


_TYPE: Final = r"\b(?:[fiu]32|f16|[iu][48]|bool|vec[234][fiuh]|mat[234]x[234][fh])\b"
_NAME: Final = r"[A-Za-z_]\w*"
_WORDS: Final = {word.lower() for word in KEYWORDS - CONTEXTUAL - {"REDUCE"}}

RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    "root": (
        (r"\s+", ("Text.Whitespace",), None),
        (r"//!.*|///(?!/).*", ("Literal.String.Doc",), None),
        (r"//.*", ("Comment.Single",), None),
        (r'"[^"\n]*"?', ("Literal.String",), None),
        (
            rf"\b(kernel|fn|struct)(\s+)({_NAME})",
            ("Keyword.Declaration", "Text.Whitespace", "Name.Function"),
            None,
        ),
        (
            r"\b(gradient|derivative)(\s+)(of)\b",
            ("Keyword", "Text.Whitespace", "Keyword"),
            None,
        ),
        (r"\b(?:by|given)(?=\s+(?!and\b|or\b)\w)", ("Keyword",), None),
        (r"\brequire(?=\s+(?!and\b|or\b)[\w(])", ("Keyword",), None),
        (
            rf"\b(schedule)(\s+)(?={_NAME}|\*)",
            ("Keyword.Declaration", "Text.Whitespace"),
            "targets",
        ),
        (_one_of(_WORDS), ("Keyword",), None),
        (r"\b(?:sum|prod|max|min|argmax|argmin)(?=\s*\[)", ("Keyword.Reserved",), None),
        (_TYPE, ("Keyword.Type",), None),
        (_one_of((*BUILTINS, *GEOMETRY), r"(?=\s*\()"), ("Name.Builtin",), None),
        (rf"{_NAME}(?=\s*\()", ("Name.Function",), None),
        (
            rf"(@)(\s*)({_NAME})",
            ("Punctuation", "Text.Whitespace", "Name.Decorator"),
            None,
        ),
        (_NAME, ("Name",), None),
        (r"0[xX][0-9a-fA-F]+", ("Literal.Number.Hex",), None),
        (
            r"\d+(?:\.\d+(?:[eE][+-]?\d+)?|[eE][+-]?\d+)",
            ("Literal.Number.Float",),
            None,
        ),
        (r"\d+", ("Literal.Number.Integer",), None),
        (r"->|[-+*/]=|[=!<>]=|<<|>>|[-+*/%=<>|^&~]", ("Operator",), None),
        (r"[()\[\]{},;:.]", ("Punctuation",), None),
        (r".", ("Name",), None),
    ),
    # The kernels and stages of a schedule: `softmax, matmul_*.total`.
    "targets": (
        (r"\s+", ("Text.Whitespace",), None),
        (r"//.*", ("Comment.Single",), None),
        (rf"(\.)(\s*)({_NAME})", ("Punctuation", "Text.Whitespace", "Name"), None),
        (rf"(?!when\b){_NAME}", ("Name.Function",), None),
        (r"\*", ("Operator",), None),
        (r",", ("Punctuation",), None),
        (r"", (), "#pop"),
    ),
}


def _rule(rule: Rule) -> Any:
    """Return a rule in the form that Pygments takes."""
    pattern, kinds, then = rule
    if not kinds:
        return default(then)
    tokens = [string_to_tokentype(kind) for kind in kinds]
    action = tokens[0] if len(tokens) == 1 else _by_groups(*tokens)
    return (pattern, action, then) if then else (pattern, action)


def _by_groups(*tokens: Any) -> Any:
    return cast("Any", bygroups)(*tokens)


class KernLexer(RegexLexer):  # type: ignore[misc]  # it has no annotations
    """A tolerant lexer: it highlights programs with errors, and fragments."""

    name = "kerngen"
    aliases: ClassVar = ["kern", "kerngen"]
    filenames: ClassVar = ["*.kern"]
    tokens: ClassVar = {
        state: [_rule(rule) for rule in rules] for state, rules in RULES.items()
    }

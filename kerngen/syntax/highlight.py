"""The language for Pygments, so that whatever highlights by it knows `.kern` files.

That is rich, mkdocs, Sphinx, IPython and others: they find the lexer by its entry point.
"""

from __future__ import annotations

from typing import ClassVar, Final

from pygments.lexer import (
    RegexLexer,
    bygroups,  # pyright: ignore[reportUnknownVariableType]  # it has no annotations
    default,
    words,
)
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Whitespace,
)

from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.geometry import GEOMETRY
from kerngen.syntax.wording import CONTEXTUAL, KEYWORDS

_TYPE: Final = r"\b(?:[fiu]32|f16|bool|vec[234][fiuh]|mat[234]x[234][fh])\b"
_NAME: Final = r"[A-Za-z_]\w*"
_WORDS: Final = sorted(word.lower() for word in KEYWORDS - CONTEXTUAL - {"REDUCE"})


class KernLexer(RegexLexer):  # type: ignore[misc]  # it has no annotations
    """Tokens as the grammar has them, but nothing is an error: programs may be parts."""

    name = "kerngen"
    aliases: ClassVar = ["kern", "kerngen"]
    filenames: ClassVar = ["*.kern"]
    tokens: ClassVar = {
        "root": [
            (r"\s+", Whitespace),
            (r"//!.*|///(?!/).*", String.Doc),
            (r"//.*", Comment.Single),
            (r'"[^"\n]*"?', String),
            (
                rf"\b(kernel|fn|struct)(\s+)({_NAME})",
                bygroups(Keyword.Declaration, Whitespace, Name.Function),
            ),
            (
                r"\b(gradient|derivative)(\s+)(of)\b",
                bygroups(Keyword, Whitespace, Keyword),
            ),
            (r"\b(?:by|given)(?=\s+(?!and\b|or\b)\w)", Keyword),
            (r"\brequire(?=\s+(?!and\b|or\b)[\w(])", Keyword),
            (
                rf"\b(schedule)(\s+)(?={_NAME}|\*)",
                bygroups(Keyword.Declaration, Whitespace),
                "targets",
            ),
            (words(_WORDS, prefix=r"\b", suffix=r"\b"), Keyword),
            (r"\b(?:sum|prod|max|min|argmax|argmin)(?=\s*\[)", Keyword.Reserved),
            (_TYPE, Keyword.Type),
            (
                words((*BUILTINS, *GEOMETRY), prefix=r"\b", suffix=r"(?=\s*\()"),
                Name.Builtin,
            ),
            (rf"{_NAME}(?=\s*\()", Name.Function),
            (rf"(@)(\s*)({_NAME})", bygroups(Punctuation, Whitespace, Name.Decorator)),
            (_NAME, Name),
            (r"0[xX][0-9a-fA-F]+", Number.Hex),
            (r"\d+(?:\.\d+(?:[eE][+-]?\d+)?|[eE][+-]?\d+)", Number.Float),
            (r"\d+", Number.Integer),
            (r"->|[-+*/]=|[=!<>]=|<<|>>|[-+*/%=<>|^&~]", Operator),
            (r"[()\[\]{},;:.]", Punctuation),
            (r".", Name),
        ],
        # What a schedule is for: `softmax, matmul_*.total`.
        "targets": [
            (r"\s+", Whitespace),
            (r"//.*", Comment.Single),
            (rf"(\.)(\s*)({_NAME})", bygroups(Punctuation, Whitespace, Name)),
            (rf"(?!when\b){_NAME}", Name.Function),
            (r"\*", Operator),
            (r",", Punctuation),
            default("#pop"),
        ],
    }

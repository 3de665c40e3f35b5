"""A page of `kerngen explain` on a terminal: its programs and messages in colour.

Nothing paints the background: a terminal may be dark or light.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.highlighter import RegexHighlighter
from rich.markdown import CodeBlock, Markdown, MarkdownElement
from rich.padding import Padding
from rich.syntax import Syntax
from rich.text import Text
from rich.theme import Theme

from kerngen.syntax.wording import KEYWORDS

_KEYWORDS: Final = "|".join(word.lower() for word in KEYWORDS - {"REDUCE"})
_TYPES: Final = "[fiu]32|f16|bool|vec[234][fiuh]|mat[234]x[234][fh]"


class _Program(RegexHighlighter):
    """A program in the kernel language."""

    base_style = "program."
    highlights: ClassVar[Sequence[str]] = [
        r"\b(?P<number>0x[0-9a-fA-F]+|\d+(\.\d+)?([eE][+-]?\d+)?)\b",
        rf"\b(?P<keyword>{_KEYWORDS})\b",
        rf"\b(?P<type>{_TYPES})\b",
        r"(?P<string>\"[^\"\n]*\"?)",
        r"(?P<comment>//.*)",
    ]


class _Message(RegexHighlighter):
    """What the compiler prints about a program."""

    base_style = "message."
    highlights: ClassVar[Sequence[str]] = [
        r"(?m)^(?P<frame>(\s|\d)*\|| *(-->|:::|=)|\.\.\.$)",
        r"(?m)^(?P<fault>error\[\w+\])(?P<strong>:.*)",
        r"(?m)^ +\| +(?P<fault>\^+( .*)?)$",
        r"(?m)^ +\| +(?P<nearby>-+( .*)?)$",
        r"(?m)^ += (?P<strong>hint: )",
    ]


_HIGHLIGHTERS: Final = {"rust": _Program(), "text": _Message()}

_THEME: Final = Theme(
    {
        "markdown.code": "bold cyan",
        "program.keyword": "magenta",
        "program.type": "cyan",
        "program.number": "blue",
        "program.string": "green",
        "program.comment": "italic green",
        "message.fault": "bold red",
        "message.strong": "bold",
        "message.frame": "blue",
        "message.nearby": "cyan",
    }
)


class _Block(CodeBlock):
    """A block of code, by what it holds."""

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        """Yield the block a little to the right of the text."""
        code = str(self.text).rstrip()
        if highlight := _HIGHLIGHTERS.get(self.lexer_name):
            yield Padding(highlight(Text(code)), (0, 0, 0, 2))
        else:
            syntax = Syntax(
                code,
                self.lexer_name,
                theme="ansi_dark",
                background_color="default",
                word_wrap=True,
            )
            yield Padding(syntax, (0, 0, 0, 2))


class _Page(Markdown):
    """Markdown with blocks of ours."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "fence": _Block,
    }


def print_page(console: Console, text: str) -> None:
    """Print a page's Markdown for people."""
    with console.use_theme(_THEME):
        console.print(_Page(text))

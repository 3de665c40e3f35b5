"""Pages of `kerngen explain` printed on a terminal.

No style sets a background colour: a terminal may be dark or light.
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

from kerngen.syntax.highlight import KernLexer


class _Message(RegexHighlighter):
    """Highlights the compiler's messages in a page, as on a terminal."""

    base_style = "message."
    highlights: ClassVar[Sequence[str]] = [
        r"(?m)^(?P<frame>(\s|\d)*\|| *(-->|:::|=)|\.\.\.$)",
        r"(?m)^(?P<fault>error\[\w+\])(?P<strong>:.*)",
        r"(?m)^ +\| +(?P<fault>\^+( .*)?)$",
        r"(?m)^ +\| +(?P<nearby>-+( .*)?)$",
        r"(?m)^ += (?P<strong>hint: )",
    ]


_LEXERS: Final = {"rust": KernLexer()}
"""Programs are blocks of Rust in pages: its colours fit best where ours are unknown."""

_THEME: Final = Theme(
    {
        "markdown.code": "bold cyan",
        "message.fault": "bold red",
        "message.strong": "bold",
        "message.frame": "blue",
        "message.nearby": "cyan",
    }
)


class _Block(CodeBlock):
    """A block of code: a program is highlighted by its language, a message by `_Message`."""

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        """Yield the block a little to the right of the text."""
        code = str(self.text).rstrip()
        if self.lexer_name == "text":
            yield Padding(_Message()(Text(code)), (0, 0, 0, 2))
        else:
            syntax = Syntax(
                code,
                _LEXERS.get(self.lexer_name, self.lexer_name),
                theme="ansi_light",
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

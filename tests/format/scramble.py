"""The same program, laid out by chance: other blanks, and comments between its tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

LEXEME = re.compile(
    r"""(?P<comment>//(?![/!])[^\r\n]*|////[^\r\n]*)
    | (?P<doc>//[/!][^\r\n]*) | "[^"\n]*" | [A-Za-z_]\w*
    | \d+\.\d+(?:[eE][+-]?\d+)? | \d+[eE][+-]?\d+ | 0[xX][0-9a-fA-F]+ | \d+
    | -> | << | >> | [=!<>+*/-]= | [^\s\w]""",
    re.VERBOSE,
)
"""Written beside the grammar, not from it."""


def lexemes(text: str) -> list[re.Match[str]]:
    """Every token, doc comment and comment of a program."""
    return list(LEXEME.finditer(text))


def comments(text: str) -> list[str]:
    """The comments of a program, in order, without blanks around their words."""
    found = (match["comment"] for match in lexemes(text))
    return [comment.lstrip("/").strip() for comment in found if comment]


def tokens(text: str) -> list[str]:
    """The tokens of a program, doc comments too, but for the last commas of lists."""
    found = [match[0] for match in lexemes(text) if not match["comment"]]
    after = [*found[1:], ""]
    return [
        re.sub(r"^(//[/!]) ", r"\1", token)
        for token, next_ in zip(found, after, strict=True)
        if token != "," or next_ not in {")", "]", "}", "{", "when"}
    ]


def scrambled(text: str, seed: int, *, remarks: bool, empty_lines: bool) -> str:
    """Lay a program out by chance; its own comments are left out."""
    return "".join(_pieces(text, Random(seed), remarks, empty_lines))


def _pieces(
    text: str, random: Random, remarks: bool, empty_lines: bool
) -> Iterator[str]:
    count, between = 0, "\n"
    for match in lexemes(text):
        if match["comment"]:
            continue
        if match["doc"]:
            # A second line break would be an empty line, which some items keep.
            yield f"\n{match[0]}\n" if "\n" not in between else f"{match[0]}\n"
            between = "\n"
            continue
        yield match[0]
        between = random.choice([" ", " ", "\n", "  ", "\t", "\n    "])
        yield between
        if empty_lines and random.random() < 0.05:
            yield "\n\n\n"
        while remarks and random.random() < 0.15:
            count += 1
            yield random.choice(
                [f"// {count}\n", f"\n//{count}\n", f"\n\n  // {count} \n"]
            )

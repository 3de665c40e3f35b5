"""Spans around a diagnostic: its statement, value, call, item.

They are found by lexemes and not in a syntax tree, as the text may not parse.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Final, final

from kerngen.source.text import Span
from kerngen.syntax.lexemes import ITEM_WORDS, Lexeme, lexemes

_CLOSERS: Final = {"(": ")", "[": "]", "{": "}"}
_ENDS: Final = frozenset({";", "{", "}"})


@final
class Places:
    """The lexemes around a span."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self._text = span.source.text
        self._lexemes = [
            each for each in lexemes(self._text, 0) if not each.text.startswith("//")
        ]

    def at(self, offset: int) -> Span:
        """Return the empty span at an offset."""
        return Span(self.span.source, offset, offset)

    def _between(self, start: int, end: int) -> Span:
        return Span(self.span.source, start, end)

    @cached_property
    def _before(self) -> list[Lexeme]:
        return [each for each in self._lexemes if each.end <= self.span.start]

    @cached_property
    def _after(self) -> list[Lexeme]:
        return [each for each in self._lexemes if each.start >= self.span.end]

    @property
    def end_before(self) -> int:
        """The end of the lexeme before the span."""
        return self._before[-1].end if self._before else 0

    @cached_property
    def statement(self) -> Span:
        """The statement or item around the span, its ';' included."""
        # Back to the ';' or brace before the statement, or to the item's keyword.
        start = self.span.start
        depth = 0
        for each in reversed(self._before):
            depth += (each.text == "}") - (each.text == "{")
            if each.text == ";" and depth == 0:
                break
            if (
                each.text in ITEM_WORDS
                or depth < 0
                or (each.text == "}" and self._ends(each))
            ):
                start = each.start if each.text in ITEM_WORDS else start
                break
            start = each.start
        end = self.span.end
        depth = 0
        for each in self._after:
            depth += (each.text == "{") - (each.text == "}")
            if depth < 0:
                break
            end = each.end
            if each.text == ";" and depth == 0:
                break
        return self._between(start, end)

    def _ends(self, brace: Lexeme) -> bool:
        """Whether an item ends with a brace: another one follows."""
        following = (x for x in self._lexemes if x.start >= brace.end)
        after = next(following, None)
        return after is not None and after.text in ITEM_WORDS

    @cached_property
    def target(self) -> Span | None:
        """The left side of the statement, its '=' included, or None."""
        for each in self._inside(self.statement):
            if each.text in {"=", "+=", "-=", "*=", "/="}:
                return self._between(self.statement.start, each.end)
        return None

    @cached_property
    def value(self) -> Span | None:
        """The right side of the statement, without its ';', or None."""
        if self.target is None:
            return None
        inside = [x for x in self._inside(self.statement) if x.start >= self.target.end]
        if not inside:
            return None
        end = inside[-1].start if inside[-1].text == ";" else inside[-1].end
        return self._between(inside[0].start, end)

    @cached_property
    def parameters(self) -> int | None:
        """The offset where the parameters of the item around the span begin."""
        found: int | None = None
        wanted = ""
        for each in self._before:
            if each.text in {"kernel", "fn"}:
                wanted, found = each.text, None
            elif each.text == "(" and wanted:
                wanted, found = "", each.end
        return found

    def _inside(self, span: Span) -> list[Lexeme]:
        return [x for x in self._lexemes if span.start <= x.start and x.end <= span.end]

    def around(self) -> Iterator[Span]:
        """Yield larger spans that begin at or contain this one: calls, reads, the value."""
        if self._after and self._after[0].text in {"]", ")"}:
            yield self._between(self.span.start, self._after[0].end)
        for end in self._suffixes():
            yield self._between(self.span.start, end)
        start = self.base
        if start < self.span.start:
            yield self._between(start, self.span.end)
            for end in self._suffixes():
                yield self._between(start, end)
        if self.value is not None:
            yield self.value

    def _suffixes(self) -> Iterator[int]:
        """Yield the ends of the suffixes that follow without a blank: '(x)', '[i]', '.y'."""
        end = self.span.end
        after = iter(self._after)
        for each in after:
            if each.start != end:
                return
            if each.text in {"(", "["}:
                depth = 1
                for inner in after:
                    depth += (inner.text in {"(", "["}) - (inner.text in {")", "]"})
                    end = inner.end
                    if depth == 0:
                        break
                yield end
            elif each.text == ".":
                member = next(after, None)
                if member is None:
                    return
                end = member.end
                yield end
            else:
                return

    @cached_property
    def base(self) -> int:
        """The offset at which the expression around the span begins: `p` for `p[i].mass`."""
        start, depth = self.span.start, 0
        for each in reversed(self._before):
            if each.end != start and depth == 0 and start < self.span.start:
                break
            if each.text in {")", "]"}:
                depth += 1
            elif each.text in {"(", "["}:
                if depth == 0:
                    break
                depth -= 1
            elif depth == 0 and each.text != "." and not each.text.isidentifier():
                break
            start = each.start
        return start

    def heads(self, name: str) -> Iterator[Span]:
        """Yield the calls and reads of a name in the statement."""
        for each in self._inside(self.statement):
            if each.text == name:
                there = Places(self._between(each.start, each.end))
                for end in there._suffixes():
                    yield self._between(each.start, end)

    @cached_property
    def words(self) -> frozenset[str]:
        """The words in the item around the span."""
        return frozenset(each.text for each in self._inside(self.item))

    @cached_property
    def item(self) -> Span:
        """The item around the span."""
        start, end = 0, len(self._text)
        for each in self._lexemes:
            if each.text in ITEM_WORDS and each.start <= self.span.start:
                start = each.start
            elif each.text in ITEM_WORDS and each.start > self.span.start:
                end = each.start
                break
        return self._between(start, end)

    @property
    def end_of_body(self) -> int | None:
        """The offset of the closing brace of the item around the span."""
        inside = self._inside(self.item)
        closing = (each.start for each in reversed(inside) if each.text == "}")
        return next(closing, None)

    def declarations(self, name: str) -> Iterator[Span]:
        """Yield the spans where a name is declared with a type in the item."""
        inside = self._inside(self.item)
        for one, two, three in zip(inside, inside[1:], inside[2:], strict=False):
            if one.text == name and two.text == ":":
                yield self._between(one.start, three.end)

    def in_item(self, name: str) -> list[Span]:
        """Return the spans of a word in the item around the span."""
        inside = self._inside(self.item)
        return [self._between(x.start, x.end) for x in inside if x.text == name]

    def bodies(self) -> Iterator[Span]:
        """Yield possible spans of the bodies of reductions."""
        inside = self._inside(self.statement)
        for number, each in enumerate(inside):
            if each.text == "]" and number + 1 < len(inside):
                begin = inside[number + 1].start
                for end in inside[number + 1 :]:
                    if end.start >= self.span.start:
                        yield self._between(begin, end.end)

    def all_of(self, text: str) -> Iterator[Span]:
        """Yield the spans of a text: first those in a span, then those in its statement."""
        if not text:
            return
        for around in (self.span, self.statement):
            begin = around.start
            while (found := self._text.find(text, begin, around.end)) >= 0:
                begin = found + len(text)
                if self._is_whole(found, begin):
                    yield self._between(found, begin)

    def _is_whole(self, start: int, end: int) -> bool:
        """Whether no word goes on at either side."""
        text = self._text
        left = start > 0 and text[start - 1].isalnum() and text[start].isalnum()
        right = end < len(text) and text[end].isalnum() and text[end - 1].isalnum()
        return not left and not right

    def with_separator(self) -> Iterator[Span]:
        """Yield the span with an adjacent comma, point or colon."""
        if self._after and self._after[0].text in {",", ";"}:
            yield self._between(self.span.start, self._after[0].end)
        if self._before and self._before[-1].text in {",", ".", ":", "=", "given"}:
            yield self._between(self._before[-1].start, self.span.end)
        for end in self._suffixes():
            yield self._between(self.span.start, end)
        # ': f32' before the '='.
        for each in self._after:
            if each.text == "=":
                yield self._between(self.span.start, each.start)
                yield self._between(self.span.start, each.end)
            if each.text in {"=", ";"}:
                return

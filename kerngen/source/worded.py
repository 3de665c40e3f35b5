"""Diagnostics whose wording is a template over their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import ClassVar

from kerngen.source.diagnostic import Diagnostic, Related
from kerngen.source.text import Span


class _Values(Mapping[str, object]):
    """The attributes of a diagnostic, looked up by name."""

    def __init__(self, owner: Diagnostic) -> None:
        self._owner = owner

    def __getitem__(self, key: str) -> object:
        return getattr(self._owner, key)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


@dataclass(frozen=True, kw_only=True)
class Worded(Diagnostic):
    """A diagnostic that fills templates with its own values.

    A label or hint is left out where a value that it names is empty.
    """

    says: ClassVar[str]
    points: ClassVar[str] = ""
    advice: ClassVar[str] = ""

    @property
    def headline(self) -> str:
        """The sentence of `says`."""
        return self.says.format_map(_Values(self))

    @property
    def label(self) -> str:
        """The words of `points`."""
        return self._filled(self.points)

    @property
    def hint(self) -> str:
        """The sentence of `advice`."""
        return self._filled(self.advice)

    def _filled(self, template: str) -> str:
        names = [name for _, name, _, _ in Formatter().parse(template) if name]
        if any(getattr(self, name) == "" for name in names):
            return ""
        return template.format_map(_Values(self))


@dataclass(frozen=True, kw_only=True)
class WordedBeside(Worded):
    """A worded diagnostic that points at a second place, too."""

    beside: ClassVar[str]

    other: Span

    @property
    def related(self) -> tuple[Related, ...]:
        """The second place, with the words of `beside`."""
        return (Related(self.other, self.beside.format_map(_Values(self))),)


@dataclass(frozen=True, kw_only=True)
class WordedNear(Worded):
    """A worded diagnostic that points at a declaration, too, where there is one."""

    nearby: ClassVar[str]

    declared: Span | None = None

    @property
    def related(self) -> tuple[Related, ...]:
        """The declaration, with the words of `nearby`."""
        if self.declared is None:
            return ()
        return (Related(self.declared, self.nearby.format_map(_Values(self))),)


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return `1 axis` or `2 axes`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"

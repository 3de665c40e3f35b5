"""Diagnostics as data: what is wrong, where, and what to do about it.

Every fault of a user's program is a frozen dataclass derived from `Diagnostic`.  Call
sites pass values, never prose; the class owns the wording.  `CompileError` carries the
diagnostics of one run out of the compiler; it is the only exception that a wrong program
can cause.  Anything else that escapes is a bug of kerngen's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, Literal, final

from kerngen.source.text import Span


@final
@dataclass(frozen=True, slots=True)
class Related:
    """A second place that helps to understand a diagnostic."""

    span: Span
    label: str


@dataclass(frozen=True, kw_only=True)
class Diagnostic(ABC):
    """One fault.  Subclasses add the values that their wording needs."""

    code: ClassVar[str]
    rule: ClassVar[str]
    severity: ClassVar[Literal["error", "warning"]] = "error"
    """A warning is printed, and the program is compiled."""

    span: Span

    @property
    @abstractmethod
    def headline(self) -> str:
        """The fault in one sentence with a full stop."""

    @property
    def label(self) -> str:
        """A few words beside the caret; empty if the headline is enough."""
        return ""

    @property
    def related(self) -> tuple[Related, ...]:
        """Other places that matter."""
        return ()

    @property
    def hint(self) -> str:
        """What to do about it, or empty."""
        return ""


class CompileError(Exception):
    """A user's program is wrong; carries every diagnostic found.

    Its text is the report that the command line prints.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        """Return the diagnostics with their source lines."""
        return self._rendered(color=False)

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows: the diagnostics, and nothing of the compiler."""
        return self._rendered(color=True).splitlines()

    def _rendered(self, *, color: bool) -> str:
        # Imported here because rendering imports this module.
        from kerngen.source.render import render  # noqa: PLC0415

        return render(self.diagnostics, color=color).rstrip()


@final
class Faults:
    """Collects diagnostics so that one run reports all it can find."""

    def __init__(self) -> None:
        # Hashed, so that adding one to thousands takes no longer than to a few.
        self._found: dict[Diagnostic, None] = {}

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def add(self, diagnostic: Diagnostic) -> None:
        """Record one fault."""
        self._found.setdefault(diagnostic)

    def amend(self, better: Callable[[Diagnostic], Diagnostic]) -> None:
        """Put a better diagnostic in the place of each, or the same one."""
        self._found = dict.fromkeys(map(better, self._found))

    def drop(self, condition: Callable[[Diagnostic], bool]) -> None:
        """Forget the faults for which a condition holds."""
        kept = (fault for fault in self._found if not condition(fault))
        self._found = dict.fromkeys(kept)

    def in_order(self) -> tuple[Diagnostic, ...]:
        """Return what was recorded, in source order."""
        return tuple(
            sorted(self._found, key=lambda d: (d.span.source.path, d.span.start))
        )

    def raise_if_any(self) -> None:
        """Raise `CompileError`, in source order, when anything was recorded."""
        if self._found:
            raise CompileError(self.in_order())

    @contextmanager
    def collect(self) -> Generator[None]:
        """Absorb a `CompileError` raised inside the block, and go on after it."""
        try:
            yield
        except CompileError as error:
            for diagnostic in error.diagnostics:
                self.add(diagnostic)

"""Diagnostics as data: what is wrong, where, and what to do about it.

Every fault of a user's program is a class derived from `Diagnostic`, whose templates are
filled with its fields:

    class Recursion(Diagnostic, code="KG0207"):
        MESSAGE = "The function '{text}' calls itself: {chain}."
        HELP = "Use a reduction, such as 'prod[i < n] ...'."
        calls: tuple[Span, ...] = related("calls '{here}' here")
        chain: str

`{text}` is the text of its own place, `{here}` that of a related one; `{names}` lists the
names of a tuple, and `{count:axis/axes}` is '1 axis' or '2 axes'.  Call sites pass
values, never prose.  The rule behind a diagnostic is the title of its page in
`kerngen/explain/pages`.  `CompileError` carries the diagnostics of one run out of the
compiler; it is the only exception that a wrong program can cause.  Anything else that
escapes is a bug of kerngen's.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields
from string import Formatter
from threading import Lock
from typing import (
    Any,
    ClassVar,
    Final,
    Literal,
    Self,
    TypeAlias,
    cast,
    dataclass_transform,
    final,
)

from kerngen.source.text import Span
from kerngen.source.words import counted

Severity: TypeAlias = Literal["error", "warning"]
Help: TypeAlias = str | tuple[str, ...] | Mapping[str, str]
"""A template; several, of which the first is taken whose fields are given; or one for
each value that the field `case` has.
"""


@final
@dataclass(frozen=True, slots=True)
class Related:
    """A second span that helps to understand a diagnostic."""

    span: Span
    label: str


@final
@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement of a span's text; at an empty span it is inserted."""

    span: Span
    text: str


_FIELDS: Final = "__dataclass_fields__"
"""The attribute that a dataclass has, and a class derived from it has not yet itself."""

_COMPLETING: Final = Lock()
"""Held while a class is made a dataclass, so that no thread uses it half made: the fields are
set before `__init__` is."""

_LABEL: Final = "label"
"""The key of a related place's label, in the metadata of its field."""


def related(label: str, *, default: object = MISSING) -> Any:
    """Declare a field with a place that matters: a span, several spans, or None.

    `other: Span = related("'{name}' is declared here")` is shown with that label, in which
    `{here}` is the text of the place.
    """
    return field(default=default, metadata={_LABEL: label})


@dataclass_transform(
    frozen_default=True, kw_only_default=True, field_specifiers=(related,)
)
@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """A diagnostic: a subclass declares templates, and the fields that they use.

    A label or hint is left out if a field that it names is empty. A class may have the
    field `remedy`: a hint that whoever reports it has computed, in place of `HELP`.
    """

    CODE: ClassVar[str]
    SEVERITY: ClassVar[Severity] = "error"
    """A warning is printed, and the program is compiled."""
    MESSAGE: ClassVar[str]
    LABEL: ClassVar[str] = ""
    HELP: ClassVar[Help] = ""
    EDIT: ClassVar[str | None] = None
    """The text to write in the place of `span`, if the hint always means that."""

    span: Span

    def __init_subclass__(cls, code: str = "") -> None:
        """Give the subclass the code of its page; `complete` makes it a dataclass."""
        if code:
            cls.CODE = code

    def __new__(cls, *_: object, **__: object) -> Self:
        """Return one without its fields, of a complete class."""
        cls.complete()
        return super().__new__(cls)

    @classmethod
    def complete(cls) -> None:
        """Make the class a frozen dataclass, after those that it is derived from.

        Not where it is declared: the 200 classes took a third of the compiler's imports,
        and a program without mistakes needs none of them.
        """
        with _COMPLETING:
            for kind in reversed(cls.__mro__):
                if issubclass(kind, Diagnostic) and _FIELDS not in vars(kind):
                    dataclass(frozen=True, kw_only=True)(kind)

    @property
    def code(self) -> str:
        """The code of its page, such as `KG0207`."""
        return self.CODE

    @property
    def severity(self) -> Severity:
        """Whether it is an error or a warning."""
        return self.SEVERITY

    @property
    def message(self) -> str:
        """One sentence with a full stop: what is wrong."""
        return _Words(self).format(self.MESSAGE)

    @property
    def text(self) -> str:
        """The text of its place, for templates."""
        return self.span.one_line()

    @property
    def label(self) -> str:
        """A few words beside the caret, or "" if the message is enough."""
        return self._filled(self.LABEL)

    @property
    def help(self) -> str:
        """The hint: what to do, or ""."""
        remedy: str = getattr(self, "remedy", "")
        if remedy:
            return remedy
        if isinstance(self.HELP, str):
            return self._filled(self.HELP)
        if isinstance(self.HELP, tuple):
            return next((text for text in map(self._filled, self.HELP) if text), "")
        case: str = getattr(self, "case")  # noqa: B009
        return self._filled(self.HELP[case])

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits that carry out the hint, if it always means the same edits."""
        return () if self.EDIT is None else (Edit(self.span, self.EDIT),)

    @property
    def related(self) -> tuple[Related, ...]:
        """Other places that matter."""
        return tuple(
            Related(span, _Words(self, span.text).format(label))
            for each in fields(self)
            if (label := each.metadata.get(_LABEL))
            for span in _places(getattr(self, each.name))
        )

    def _filled(self, template: str) -> str:
        names = [name for _, name, _, _ in Formatter().parse(template) if name]
        if any(getattr(self, name) == "" for name in names):
            return ""
        return _Words(self).format(template)


def _places(value: Span | tuple[Span, ...] | None) -> tuple[Span, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, Span) else value


@final
class _Words(Formatter):
    """Fills templates: several names are listed, `{count:axis/axes}` is a count in words."""

    def __init__(self, owner: Diagnostic, here: str = "") -> None:
        self._owner = owner
        self._here = here

    def get_value(self, key: int | str, args: object, kwargs: object) -> object:
        del args, kwargs
        return self._here if key == "here" else getattr(self._owner, str(key))

    def format_field(self, value: object, format_spec: str) -> str:
        match value:
            case tuple():
                names = cast("tuple[str, ...]", value)
                return ", ".join(f"'{name}'" for name in names)
            case int() if format_spec[:1].isalpha():
                return counted(value, *format_spec.split("/"))
            case _:
                return format(value, format_spec)


class CompileError(Exception):
    """Raised for a faulty program, with all diagnostics of it.

    Its text is the report that the command line prints.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        """Return the diagnostics with their source lines."""
        return self._rendered(color=False)

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows: the diagnostics alone."""
        return self._rendered(color=True).splitlines()

    def _rendered(self, *, color: bool) -> str:
        # Imported here because rendering imports this module.
        from kerngen.source.render import render  # noqa: PLC0415

        return render(self.diagnostics, color=color).rstrip()


class CompileWarning(UserWarning):
    """Given by `kerngen.compile` and `kerngen.load` for what is legal, and likely a mistake."""


@final
class Faults:
    """A collection of diagnostics, so that one run can report all of them."""

    def __init__(self) -> None:
        # Hashed, so that adding one to thousands takes no longer than to a few.
        self._found: dict[Diagnostic, None] = {}

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def add(self, diagnostic: Diagnostic) -> None:
        """Add a diagnostic."""
        self._found.setdefault(diagnostic)

    def latest(self) -> Iterator[Diagnostic]:
        """Yield the diagnostics, the latest first."""
        return reversed(self._found)

    def amend(self, better: Callable[[Diagnostic], Diagnostic]) -> None:
        """Replace each diagnostic by what `better` returns for it."""
        self._found = dict.fromkeys(map(better, self._found))

    def drop(self, condition: Callable[[Diagnostic], bool]) -> None:
        """Remove the diagnostics for which a condition holds."""
        kept = (fault for fault in self._found if not condition(fault))
        self._found = dict.fromkeys(kept)

    def in_order(self) -> tuple[Diagnostic, ...]:
        """Return the diagnostics in source order."""
        return tuple(
            sorted(self._found, key=lambda d: (d.span.source.path, d.span.start))
        )

    def raise_if_any(self) -> None:
        """Raise `CompileError` with all diagnostics, if there are any."""
        if self._found:
            raise CompileError(self.in_order())

    @contextmanager
    def collect(self) -> Generator[None]:
        """Collect the diagnostics of a `CompileError` raised in the block."""
        try:
            yield
        except CompileError as error:
            for diagnostic in error.diagnostics:
                self.add(diagnostic)

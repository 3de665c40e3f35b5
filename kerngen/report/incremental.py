"""Incremental checks of a file that is being edited: only changed sections are checked.

Kernels and schedules that had no errors, and whose text and dependencies are as they were,
are left out of the text that is checked; their warnings and hints are moved to where their
items are now.  The whole text is checked where a finding depends on all kernels of a file:
if files schedule each other's kernels, if Python changes names of kernels, if a schedule or
gradient names a kernel that does not exist.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, TypeAlias, cast, final

from kerngen.check.faults.names import NoKernelToDerive
from kerngen.check.faults.schedules import (
    NothingMatches,
    TooManyMatches,
    UnknownKernel,
)
from kerngen.check.files.checked_file import CheckedFile, structs_of
from kerngen.check.items.gradients import kept_name
from kerngen.emit.python_names import are_kept
from kerngen.layout.order import better_order
from kerngen.layout.rules import Space
from kerngen.report.findings import Found, Hint, Sources
from kerngen.report.python_names import NamedFile
from kerngen.report.sections import Dependencies, TextSection, sections_of
from kerngen.source.diagnostic import CompileError
from kerngen.source.text import Source, Span
from kerngen.syntax import ast
from kerngen.syntax.library import Library

_Key: TypeAlias = tuple[object, ...]
"""The code that a section's findings follow from, and which part of it is the section.

It is the texts of the section and its dependencies, the section's place among these, and
the words in it that guards read.
"""

_COMPARE: Final = (UnknownKernel, NothingMatches, TooManyMatches, NoKernelToDerive)
"""Errors whose hints compare a name with those of all kernels."""

_MOST_REMEMBERED: Final = 5000
"""How many sections are remembered, so that an undone edit needs no check.

A file of 3,000 lines has about 300.
"""


@final
@dataclass(frozen=True, slots=True)
class _Right:
    """A section that had no errors, with its warnings and hints."""

    section: TextSection
    found: tuple[Found, ...]

    def explains(self, section: TextSection) -> bool:
        """Whether a section with the same key has these findings, perhaps moved.

        Comments are not in the key, and may differ if there are no findings to place.
        """
        return not self.found or section.text == self.section.text


@final
@dataclass(frozen=True, slots=True)
class _Plan:
    """Which sections of a text are checked: those with their numbers in `kept`.

    `keys` are those of all sections, in order.
    """

    sections: tuple[TextSection, ...]
    keys: tuple[_Key, ...]
    kept: frozenset[int]

    @property
    def left_out(self) -> tuple[int, ...]:
        """The numbers of the other sections."""
        return tuple(n for n in range(len(self.sections)) if n not in self.kept)

    @property
    def kernels(self) -> list[str]:
        """The names of all kernels, those that gradients bring along included."""
        named = {name for s in self.sections for name in s.contents.kernels}
        return [*named, *map(kept_name, named)]


@final
class Incremental:
    """The findings of one file, with a memory of the sections that had no errors."""

    def __init__(self) -> None:
        self._right: dict[_Key, _Right] = {}
        self._others: tuple[Source, ...] = ()
        self._used: Mapping[str, CheckedFile] = {}

    def found(
        self, library: Library, files: Sequence[NamedFile]
    ) -> tuple[tuple[Found, ...], Sources]:
        """Return the findings of a file, as `Sources.found` has them, and its sources."""
        whole = Sources(library, files)
        name = files[0].name
        try:
            source = library.source(name)
            is_alone = not (library.tuners(name) or library.tuned_by(name))
            self._forget(*map(library.source, library.closure(name)[:-1]))
        except (CompileError, OSError):
            return whole.found(), whole
        whole.compiler.checker.adopt(self._used)
        plans = self._plans(source.text)
        # A plan that turns out not to be enough is followed by the next, or the whole text.
        for plan in plans:
            if not (is_alone and plan.left_out):
                break
            part = _part(whole, source, plan.sections, plan.kept)
            found = part.found()
            if plan is not plans[-1] and part.compiler.checker.programs[name].faults:
                continue
            if not _holds(found, part, name, plan):
                break
            self._remember(plan, found, part, name)
            return self._together(plan, found, part.library.source(name)), whole
        found = whole.found()
        self._remember(plans[-1], found, whole, name)
        return found, whole

    def _forget(self, *others: Source) -> None:
        """Forget all findings if a file that the file uses has changed."""
        if others != self._others:
            self._right, self._others, self._used = {}, others, {}

    def _plans(self, text: str) -> tuple[_Plan, ...]:
        """Return the plans to try in order: a plan before the last counts if syntax is right.

        The message of a syntax error depends on the items before and after it, so these are
        checked, too.  If they have gradients, which take the longest, a plan without them
        comes first, for the usual case that there is no such error.
        """
        sections = sections_of(text)
        numbers = range(len(sections))
        depends = Dependencies(sections)
        guards = frozenset[str]().union(*(s.contents.guards for s in sections))
        keys = tuple(
            _key(sections, number, sorted(depends.of((number,))), guards)
            for number in numbers
        )
        # Sections that are new or changed, with their neighbours, and what all these need.
        changed = {n for n in numbers if not self._is_right(sections[n], keys[n])}
        edited = {n for n in changed if sections[n].contents.may_be_left_out}
        around = {n + by for n in edited for by in (-1, 1)}.intersection(numbers)
        few, all_ = depends.of(changed), depends.of(changed | around)
        derives = any(sections[n].contents.derives for n in all_ - few)
        kept = (few, all_) if derives else (all_,)
        return tuple(_Plan(sections, keys, frozenset(each)) for each in kept)

    def _is_right(self, section: TextSection, key: _Key) -> bool:
        """Whether a section may be left out, and the findings in it are known."""
        known = self._right.get(key) if section.contents.may_be_left_out else None
        return known is not None and known.explains(section)

    def _remember(
        self, plan: _Plan, found: Iterable[Found], sources: Sources, name: str
    ) -> None:
        """Remember the sections that were checked and had no errors."""
        checker = sources.compiler.checker
        self._used = {k: v for k, v in checker.right.items() if k != name}
        if any(each.severity == "error" for each in found):
            return
        if len(self._right) > _MOST_REMEMBERED:
            self._right.clear()
        # Only sections of whole items whose findings lie inside of them can be moved.
        whole = _whole_items(plan, checker.programs[name].items)
        placed = _by_section(plan, found)
        for number in plan.kept & whole:
            section = plan.sections[number]
            own = tuple(placed.get(number, ()))
            if all(_is_within(section, span) for each in own for span in _spans(each)):
                self._right[plan.keys[number]] = _Right(section, own)

    def _together(
        self, plan: _Plan, found: tuple[Found, ...], source: Source
    ) -> tuple[Found, ...]:
        """Return the findings of a part, with the known ones of sections that were left out."""
        if any(each.severity == "error" for each in found):
            return found
        others: list[Found] = []
        for number in plan.left_out:
            known = self._right[plan.keys[number]]
            by = plan.sections[number].start - known.section.start
            others += (_moved(each, source, by) for each in known.found)
        return tuple(sorted((*found, *others), key=_order)) if others else found


def around(whole: Sources, start: int, end: int) -> Sources:
    """Return sources in which the first file has only the sections from `start` to `end`.

    Their neighbours and dependencies are kept, too.  All sections are kept if the two are one
    offset in a schedule or gradient, which may name any kernel, or if other files schedule
    kernels of the file.
    """
    library, name = whole.library, whole.files[0].name
    try:
        source = library.source(name)
        is_alone = not (library.tuners(name) or library.tuned_by(name))
    except (CompileError, OSError):
        return whole
    sections = sections_of(source.text)
    numbers = range(len(sections))
    at = {n for n in numbers if sections[n].start <= end and start <= sections[n].end}
    near = {n for each in at for n in range(each - 1, each + 2) if n in numbers}
    shared = {n for n in numbers if not sections[n].contents.may_be_left_out}
    kept = Dependencies(sections).of(near | shared)
    wide = start == end and any(sections[n].contents.targets for n in at)
    if not is_alone or wide or len(kept) == len(sections):
        return whole
    return _part(whole, source, sections, kept)


def _part(
    whole: Sources,
    source: Source,
    sections: Sequence[TextSection],
    kept: Container[int],
) -> Sources:
    """Return sources in which a file has only some sections."""
    gone = tuple((s.start, s.end) for n, s in enumerate(sections) if n not in kept)
    part = Source(source.path, source.text, source.stable_name, gone)

    def read(name: str) -> Source:
        return part if name == source.name else whole.library.source(name)

    guards = frozenset[str]().union(*(s.contents.guards for s in sections))
    sources = Sources(whole.library.reading(read), whole.files, guards)
    right = whole.compiler.checker.right
    others = {name: file for name, file in right.items() if name != source.name}
    sources.compiler.checker.adopt(others)
    return sources


def _key(
    sections: Sequence[TextSection],
    number: int,
    needed: Sequence[int],
    guards: frozenset[str],
) -> _Key:
    texts = tuple(sections[each].contents.code for each in needed)
    # A value that nothing reads gets a hint, unless a guard reads it.
    return texts, needed.index(number), sections[number].contents.words & guards


def _holds(found: Iterable[Found], part: Sources, name: str, plan: _Plan) -> bool:
    """Whether a check of the whole text would have the same findings as that of a part."""
    kernels = plan.kernels
    if len({each.casefold() for each in kernels}) < len(kernels):
        return False  # of files whose names differ in case alone, all are compared
    errors = [each for each in found if each.severity == "error"]
    if errors:
        return not any(isinstance(each, _COMPARE) for each in errors)
    file = part.compiler.checker.right[name]
    structs = {**structs_of(file.uses), **file.structs}.values()
    if any(better_order(each, space) for each in structs for space in Space):
        return False  # a hint that depends on the kernels with such parameters
    return are_kept(kernels, structs)


def _whole_items(plan: _Plan, items: Iterable[ast.Item]) -> frozenset[int]:
    """Return the sections that have whole kernels and schedules, and nothing else."""
    starts = [section.start for section in plan.sections]
    found = {n for n, each in enumerate(plan.sections) if each.contents.may_be_left_out}
    for item in items:
        first = bisect_right(starts, item.span.start) - 1
        last = bisect_right(starts, item.span.end - 1) - 1
        kernel = ast.KernelItem | ast.GradientItem | ast.ScheduleItem
        if first != last or not isinstance(item, kernel):
            found -= {*range(first, last + 1)}
    return frozenset(found)


def _by_section(plan: _Plan, found: Iterable[Found]) -> dict[int, list[Found]]:
    """Return findings by the number of their section."""
    starts = [section.start for section in plan.sections]
    placed: dict[int, list[Found]] = {}
    for each in found:
        if each.span is not None:
            number = bisect_right(starts, each.span.start) - 1
            placed.setdefault(number, []).append(each)
    return placed


def _is_within(section: TextSection, span: Span) -> bool:
    return section.start <= span.start and span.end <= section.end


def _spans(found: Found) -> Iterator[Span]:
    for each in fields(found):
        yield from (e for e in _each(getattr(found, each.name)) if isinstance(e, Span))


def _each(value: object) -> tuple[object, ...]:
    return cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)


def _moved(found: Found, source: Source, by: int) -> Found:
    """Return a finding whose place has moved by some characters."""

    def moved(value: object) -> object:
        match value:
            case Span(start=start, end=end):
                return Span(source, start + by, end + by)
            case tuple():
                return tuple(map(moved, _each(cast("object", value))))
            case _:
                return value

    values: dict[str, Any] = {
        each.name: moved(getattr(found, each.name)) for each in fields(found)
    }
    return replace(found, **values)


def _order(found: Found) -> tuple[bool, bool, int]:
    """Return the key to sort findings by: warnings before hints, each by its offset."""
    start = -1 if found.span is None else found.span.start
    return isinstance(found, Hint), found.span is not None, start

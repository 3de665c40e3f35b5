"""Fixes: edits for hints, each proven by checking the edited program.

    let t = y[i] * lenght;          Did you mean 'length'?

A diagnostic may have `edits`.  For others, the code that its hint quotes is tried in the
places where it may belong: the name, the call around it, its statement.  The first candidate
that removes the fault, and adds none, is the fix.  The files that use the changed one count,
too: if the edited program has a new fault in one of them, the candidate is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, final

from kerngen.report.candidates import Edits, candidates
from kerngen.report.findings import Sources
from kerngen.source.diagnostic import CompileError, Diagnostic, Edit
from kerngen.source.text import Source
from kerngen.syntax import ast

MOST_FIXED: Final = 200
"""How many faults of a file are fixed in one run."""

MOST_TRIED: Final = 24
"""How many candidates are tried for one hint; each takes as long as a check."""


@final
@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that remove an error, and a title for them."""

    title: str
    edits: Edits


def fix_of(sources: Sources, fault: Diagnostic) -> Fix | None:
    """Return the fix of a diagnostic, or None."""
    before = _faults_of(sources)
    before[_key(fault)] -= 1
    for edits in _distinct(candidates(fault)):
        edited = _edited(sources, edits)
        after = _faults_of(edited)
        key = _key(fault)
        # For the diagnostic's own edits it is enough that the fault is gone: an error of
        # syntax may have hidden other faults, which only now are found.
        if edits == fault.edits and after[key] <= before[key]:
            return Fix(_title(edits), edits)
        if after <= before and not breaks_users(sources, edited, _files_of(edits)):
            return Fix(_title(edits), edits)
    return None


def fixed(sources: Sources, file: str) -> tuple[str, int]:
    """Return a file's text with all possible fixes applied, and their number.

    Fixes are applied one by one, as one may move what another is about.
    """
    for number in range(MOST_FIXED):
        text = sources.library.source(file).text
        faults = (each for each in sources.found() if isinstance(each, Diagnostic))
        own = (each for each in faults if each.span.source.name == file)
        fixes = (fix for each in own if (fix := fix_of(sources, each)))
        fix = next((f for f in fixes if _is_of(f, sources.library.source(file))), None)
        if fix is None:
            return text, number
        sources = _edited(sources, fix.edits)
    return sources.library.source(file).text, MOST_FIXED


def _files_of(edits: Edits) -> list[str]:
    return [*dict.fromkeys(edit.span.source.name for edit in edits)]


def _is_of(fix: Fix, source: Source) -> bool:
    return all(edit.span.source == source for edit in fix.edits)


def applied(text: str, edits: Iterable[Edit]) -> str:
    """Return a text with edits applied, which must not overlap."""
    for edit in sorted(edits, key=lambda each: -each.span.start):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return text


def _key(fault: Diagnostic) -> tuple[str, str, str]:
    return fault.code, fault.message, fault.span.source.name


def _faults_of(sources: Sources) -> Counter[tuple[str, str, str]]:
    try:
        found = sources.found()
    except (CompileError, OSError):
        return Counter({("", "", ""): 1})
    return Counter(_key(each) for each in found if isinstance(each, Diagnostic))


def _edited(sources: Sources, edits: Edits) -> Sources:
    """Return sources as they are with edits."""
    texts: dict[str, str] = {}
    for source in {edit.span.source for edit in edits}:
        own = (edit for edit in edits if edit.span.source == source)
        texts[source.name] = applied(source.text, own)

    def read(name: str) -> Source:
        source = sources.library.source(name)
        text = texts.get(name)
        return source if text is None else Source(source.path, text, source.stable_name)

    return Sources(sources.library.reading(read), sources.files)


def _distinct(found: Iterable[Edits]) -> Iterator[Edits]:
    seen: set[Edits] = set()
    for edits in found:
        changes = any(edit.span.text != edit.text for edit in edits)
        if changes and edits not in seen:
            seen.add(edits)
            yield edits
        if len(seen) == MOST_TRIED:
            return


def _title(edits: Edits) -> str:
    edit = edits[0]
    text = " ".join(edit.text.split())
    if not text:
        return f"Remove '{' '.join(edit.span.text.split())}'"
    if edit.span.start == edit.span.end:
        return f"Add '{text}'"
    return f"Write '{text}'"


# Whether an edit breaks the files that use the edited one
#
#     struct Pair { a: f3 }           Did you mean 'f32'?
#     y[i] = x[i + p.a];              In another file: no, as `p.a` is used as an index.
#
# A fault in a file hides the faults of its users, as they can't be checked.  A fault that is
# found in a user after the edit may be the edit's, unless the faulty item names nothing of
# another file: then it was wrong before.


_WORD: Final = re.compile(r"\w+")


def breaks_users(before: Sources, after: Sources, files: Iterable[str]) -> bool:
    """Whether files of the library that use changed ones have faults that may be new."""
    users = {u: None for file in files for u in after.library.needing(file)}
    for user in users:
        old = {(each.code, each.message) for each in _faults(before, user)}
        for fault in _faults(after, user):
            is_new = (fault.code, fault.message) not in old
            if is_new and _may_follow(fault, user, after):
                return True
    return False


def _faults(sources: Sources, file: str) -> tuple[Diagnostic, ...]:
    try:
        sources.compiler.check(file)
    except CompileError as error:
        return tuple(error.diagnostics)
    except OSError:
        pass  # a file that can't be read is no user
    return ()


def _may_follow(fault: Diagnostic, user: str, sources: Sources) -> bool:
    """Whether a fault in a user may be caused by a file that it uses."""
    if fault.span.source.name != user:
        return True
    programs = sources.compiler.checker.programs
    item = _item_at(programs[user], fault.span.start) if user in programs else None
    if item is None:
        return False  # an error of syntax
    if isinstance(item, ast.ScheduleItem):
        return True
    others = (programs[each] for each in programs if each != user)
    names = {name for other in others for name in _names(other)}
    return not names.isdisjoint(_WORD.findall(item.span.text))


def _item_at(program: ast.Program, offset: int) -> ast.Item | None:
    found = (i for i in program.items if i.span.start <= offset <= i.span.end)
    return next(found, None)


def _names(program: ast.Program) -> Iterator[str]:
    for item in program.items:
        match item:
            case ast.UseItem() | ast.ScheduleItem() | ast.DerivativeItem():
                pass
            case _:
                yield item.name.name

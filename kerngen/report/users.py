"""Whether a change of one file breaks the files that use it.

    struct Pair { a: f3 }           Did you mean 'f32'?
    y[i] = x[i + p.a];              No: another file has an index there.

A fault in a file hides what is wrong in its users.  Once it is gone, what is found in them
was there before, or is new: only an item that names nothing of another file was wrong all
along.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from kerngen.report.findings import Sources
from kerngen.source.diagnostic import CompileError, Diagnostic
from kerngen.syntax import ast

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
        pass  # what can't be read is no user
    return ()


def _may_follow(fault: Diagnostic, user: str, sources: Sources) -> bool:
    """Whether a fault that was found in a user may follow from what it uses."""
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

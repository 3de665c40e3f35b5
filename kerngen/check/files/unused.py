"""Hints about names that are declared and never used, and schedules never chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TypeAlias, final

from kerngen.check.traverse import names_in
from kerngen.ir.nodes import Expr, Kernel, Schedule
from kerngen.source.text import Span
from kerngen.syntax import ast
from kerngen.syntax.lexemes import lexemes

_Item: TypeAlias = ast.KernelItem | ast.FunctionItem


@final
@dataclass(frozen=True, slots=True)
class Unused:
    """A name that is never used: its span, and the hint to show there."""

    span: Span
    text: str


def find_unused(program: ast.Program, guards: Collection[str]) -> Iterator[Unused]:
    """Yield the unused names of a file's kernels and functions.

    `guards` are the names that guards of schedules read, in any file.
    """
    for item in program.items:
        match item:
            case ast.KernelItem():
                found = _in_kernel(item, guards)
                yield from sorted(found, key=lambda unused: unused.span.start)
            case ast.FunctionItem():
                yield from _never_read(item, item.parameters, ())
            case _:
                pass


def words_of_guards(program: ast.Program) -> frozenset[str]:
    """Return the names that the guards of a file's schedules read."""
    guards = (i.guard for i in program.items if isinstance(i, ast.ScheduleItem))
    return frozenset(n.name for guard in guards if guard for n in names_in(guard))


def _in_kernel(item: ast.KernelItem, guards: Collection[str]) -> Iterator[Unused]:
    written = {s.name.name for s in item.body if isinstance(s, ast.Assignment)}
    tensors = [p for p in item.parameters if p.type.axes is not None]
    for tensor in tensors:
        if tensor.mutable and tensor.name.name not in written:
            name = tensor.name.name
            text = f"'{name}' is 'mut', but '{item.name.name}' never writes it."
            yield Unused(tensor.name.span, text)
    read = [p for p in item.parameters if not p.mutable and not _gives_dims(p, tensors)]
    yield from _never_read(item, read, guards)


def _never_read(
    item: _Item, parameters: Collection[ast.Parameter], used: Collection[str]
) -> Iterator[Unused]:
    words = Counter(lexeme.text for lexeme in lexemes(item.span.text, 0))
    body = item.lets if isinstance(item, ast.FunctionItem) else item.equations
    values = [s.name for s in body if not isinstance(s, ast.Assignment)]
    for name in (*(parameter.name for parameter in parameters), *values):
        if words[name.name] == 1 and name.name not in used:
            text = f"'{name.name}' is never read in '{item.name.name}'."
            yield Unused(name.span, text)


def _gives_dims(tensor: ast.Parameter, tensors: Collection[ast.Parameter]) -> bool:
    """Whether a tensor is the only one with some dim: then it may be passed for its length."""
    others = {name for other in tensors if other is not tensor for name in _dims(other)}
    return not _dims(tensor) <= others


def _dims(tensor: ast.Parameter) -> frozenset[str]:
    axes = tensor.type.axes or ()
    return frozenset(axis.name for axis in axes if isinstance(axis, ast.Name))


def find_overlaps(kernel: Kernel) -> Iterator[Unused]:
    """Yield schedules that another file's schedule with the same guard always precedes.

    Schedules of the kernel's own file get no hint: other files' schedules are meant to come
    before them.
    """
    first: dict[tuple[str | None, Expr | None], Schedule] = {}
    for schedule in kernel.schedules:
        source = schedule.span.source
        if source == kernel.span.source:
            continue
        before = first.setdefault((schedule.stage, schedule.guard), schedule)
        if before.span.source != source:
            text = (
                f"'{before.span.source.path}' has a schedule of '{kernel.name}' for "
                "the same calls, and that one is used where it fits."
            )
            yield Unused(schedule.span, text)

"""Whole structs and arrays: copied by a statement for each value in them.

Each writes one member and reads the same one, so that together they do what one
statement would do: members are apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final, assert_never

from kerngen.check.expressions.places import Place
from kerngen.check.expressions.reads import find_place
from kerngen.check.faults.structs import TooMuchCopied
from kerngen.check.hints.examples import unused_names
from kerngen.ir.memory import FixedArray, Leaf, MemoryType, Struct
from kerngen.ir.nodes import At, Expr, Field, Index, IndexValue, Path
from kerngen.syntax import ast

if TYPE_CHECKING:
    from kerngen.check.expressions.checker import Expressions

MOST_COPIED: Final = 8192
"""The values that the copies of a file may move: one of the largest struct does fit."""


def copied_parts(
    ex: Expressions, node: ast.Assignment, target: Place
) -> list[tuple[Place, Expr]] | None:
    """Return what `node` copies: each part of the target, with what it becomes.

    None, if the right side is no place of the target's type.  Nothing, if the file's
    copies move too much; the first that does is recorded.
    """
    source = find_place(ex, node.value)
    if source is None or source.memory != target.memory:
        return None
    copied = ex.env.copied
    if copied.values > MOST_COPIED:
        return []
    levels = list(islice(unused_names(ex), _depth(target.memory)))
    values = [*_values(target.memory, levels)]
    copied.values += len(values)
    if copied.values > MOST_COPIED:
        ex.env.faults.add(
            TooMuchCopied(span=node.span, count=copied.values, limit=MOST_COPIED)
        )
        return []
    parts: list[tuple[Place, Expr]] = []
    for path, indices, leaf in values:
        part = replace(target.inside(path, leaf), indices=(*target.indices, *indices))
        parts.append((part, source.inside(path, leaf).value()))
    return parts


def _depth(memory: MemoryType) -> int:
    """Return how many arrays lie in one another."""
    match memory:
        case Leaf():
            return 0
        case FixedArray(element=element):
            return 1 + _depth(element)
        case Struct(members=members):
            return max(_depth(member.type) for member in members)
        case _:
            assert_never(memory)


def _values(
    memory: MemoryType, names: list[str]
) -> Iterator[tuple[Path, tuple[Index, ...], Leaf]]:
    """Yield the path to every value, with an index over each array on the way."""
    match memory:
        case Leaf():
            yield (), (), memory
        case FixedArray(element=element, length=length):
            index = Index(names[0], length)
            at = At(IndexValue(index), length)
            for path, indices, leaf in _values(element, names[1:]):
                yield (at, *path), (index, *indices), leaf
        case Struct(members=members):
            for member in members:
                for path, indices, leaf in _values(member.type, names):
                    yield (Field(member.name), *path), indices, leaf
        case _:
            assert_never(memory)

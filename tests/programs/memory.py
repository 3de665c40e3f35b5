"""What memory holds: leaves by name, fixed arrays and structs, and their values.

A value is a number, or the tuple of its parts: components of a vector, columns of a
matrix, elements of an array, members of a struct.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kerngen.syntax import ast

SCALARS: Final = ("f32", "i32", "u32")
_LETTERS: Final = {"f": "f32", "i": "i32", "u": "u32", "h": "f16"}
_COMPOSITE: Final = re.compile(r"vec([234])([fiuh])|mat([234])x([234])([fh])")


@dataclass(frozen=True)
class Fixed:
    """An array in a struct."""

    element: Memory
    length: int


@dataclass(frozen=True)
class Record:
    """A struct: its members by name, in order."""

    name: str
    members: tuple[tuple[str, Memory], ...]

    def place(self, name: str) -> int:
        """Return the number of a member."""
        return [member for member, _ in self.members].index(name)


Memory: TypeAlias = str | Fixed | Record
"""A leaf is a string: `f32`, `vec3h`."""

Path: TypeAlias = tuple[int, ...]
"""The number of a part in each of those that hold it, the outermost first."""


def vector(scalar: str, width: int) -> str:
    """Return the name of a vector type."""
    return f"vec{width}{scalar[0]}"


def parts_of(memory: Memory) -> tuple[Memory, ...]:
    """Return the types of the parts; a scalar has none."""
    if isinstance(memory, Record):
        return tuple(member for _, member in memory.members)
    if isinstance(memory, Fixed):
        return (memory.element,) * memory.length
    return _parts_of_leaf(memory)


@cache
def _parts_of_leaf(memory: str) -> tuple[str, ...]:
    found = _COMPOSITE.fullmatch(memory)
    if found is None:
        return ()
    width, letter, columns, rows, kind = found.groups()
    if columns:
        return (f"vec{rows}{kind}",) * int(columns)
    return (_LETTERS[letter],) * int(width)


def is_composite(memory: Memory) -> bool:
    """Whether it is a vector or a matrix."""
    return isinstance(memory, str) and bool(parts_of(memory))


def is_matrix(memory: Memory) -> bool:
    """Whether it is a matrix."""
    return isinstance(memory, str) and memory.startswith("mat")


def scalar_of(leaf: str) -> str:
    """Return the type of a leaf's numbers, as they are read."""
    inner = parts_of(leaf)
    if inner:
        assert isinstance(inner[0], str)
        return scalar_of(inner[0])
    return "f32" if leaf == "f16" else leaf


def is_half(leaf: str) -> bool:
    """Whether a leaf is kept as f16."""
    return leaf == "f16" or (leaf[:3] in {"vec", "mat"} and leaf.endswith("h"))


def read_as(leaf: str) -> str:
    """Return the type that a leaf has in expressions."""
    if not is_half(leaf):
        return leaf
    return "f32" if leaf == "f16" else f"{leaf[:-1]}f"


def as_half(leaf: str) -> str:
    """Return the leaf that is read as this, but kept as f16."""
    return "f16" if leaf == "f32" else f"{leaf[:-1]}h"


def numbers_in(memory: Memory) -> Iterator[tuple[Path, str]]:
    """Yield the path to every number, and how it is kept."""
    inner = parts_of(memory)
    if not inner:
        assert isinstance(memory, str)
        yield (), memory
    for number, part in enumerate(inner):
        for path, scalar in numbers_in(part):
            yield (number, *path), scalar


# Values


def built(memory: Memory, cells: Iterator[Any]) -> Any:
    """Return a value made of its numbers, which come in order."""
    inner = parts_of(memory)
    if not inner:
        return next(cells)
    return tuple(built(part, cells) for part in inner)


def blank(memory: Memory) -> Any:
    """Return a value of which nothing has been written."""
    return built(memory, iter(lambda: None, 0))


def mapped(memory: Memory, value: Any, change: Callable[[str, Any], Any]) -> Any:
    """Return a value with every number changed, which depends on how it is kept."""
    inner = parts_of(memory)
    if not inner:
        return change(str(memory), value)
    pairs = zip(inner, value, strict=True)
    return tuple(mapped(part, each, change) for part, each in pairs)


def at_path(value: Any, path: Sequence[int]) -> Any:
    """Return a part of a value."""
    for step in path:
        value = value[step]
    return value


def replaced(value: Any, path: Sequence[int], part: Any) -> Any:
    """Return a value with one part exchanged."""
    if not path:
        return part
    first, *rest = path
    inner = replaced(value[first], rest, part)
    return (*value[:first], inner, *value[first + 1 :])


# Items


def records_of(program: ast.Program) -> dict[str, Record]:
    """Return the structs of a file; each stands behind those that it holds."""
    known: dict[str, Record] = {}
    for item in program.items:
        if isinstance(item, ast.StructItem):
            members = [(f.name.name, memory_of(f.type, known)) for f in item.fields]
            known[item.name.name] = Record(item.name.name, tuple(members))
    return known


def memory_of(written: ast.TypeName, known: Mapping[str, Record]) -> Memory:
    """Return what a type of a struct's field says."""
    memory = element_of(written, known)
    for axis in reversed(written.axes or ()):
        assert isinstance(axis, ast.Number)
        memory = Fixed(memory, int(axis.value))
    return memory


def element_of(written: ast.TypeName, known: Mapping[str, Record]) -> Memory:
    """Return what the name of a type stands for."""
    return known.get(written.name.name, written.name.name)


# NumPy


def view(array: NDArray[Any], rank: int, memory: Memory, path: Path) -> NDArray[Any]:
    """Return one number of every element of an array, in the array's own memory.

    Where elements lie further apart than they are long, they are in records of one
    field, `value`.
    """
    outer: tuple[Any, ...] = (slice(None),) * rank
    for step in path:
        array = _bare(array, memory)
        if isinstance(memory, Record):
            names = array.dtype.names
            assert names is not None
            array = array[names[step]]
        else:
            array = array[(*outer, step, ...)]
        memory = parts_of(memory)[step]
    return _bare(array, memory)


def _bare(array: NDArray[Any], memory: Memory) -> NDArray[Any]:
    spaced = not isinstance(memory, Record) and array.dtype.names == ("value",)
    return array["value"] if spaced else array


def filled(
    dtype: np.dtype[Any], shape: tuple[int, ...], memory: Memory, cells: Sequence[Any]
) -> NDArray[Any]:
    """Return an array of values, of a struct's dtype or of bare numbers."""
    if isinstance(memory, Record):
        array = np.zeros(shape, dtype)
    else:
        inner: list[int] = []
        leaf: Memory = memory
        while parts := parts_of(leaf):
            inner.append(len(parts))
            leaf = parts[0]
        array = np.zeros((*shape, *inner), DTYPES[str(leaf)])
    for path, _ in numbers_in(memory):
        numbers = [at_path(cell, path) for cell in cells]
        place = view(array, len(shape), memory, path)
        place[...] = np.asarray(numbers, place.dtype).reshape(shape)
    return array


DTYPES: Final[Mapping[str, Any]] = {
    "f32": np.float32,
    "f16": np.float16,
    "i32": np.int32,
    "u32": np.uint32,
}
"""How memory keeps each number."""

"""What a program uses of structs, vectors and matrices, where its items tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kerngen.syntax import ast

from .composites import GEOMETRY
from .memory import (
    Fixed,
    Memory,
    Record,
    element_of,
    is_composite,
    is_half,
    is_matrix,
    records_of,
)

TYPED: Final = (
    *("struct", "struct in a struct", "array in a struct", "half in a struct"),
    *("attribute of a member", "struct as a parameter", "composite as a parameter"),
    *("tensor of structs", "structs changed in place", "output of structs"),
    *(
        "tensor of vectors",
        "tensor of matrices",
        "let of composites",
        "let of truths",
        "range by reads",
    ),
    *("component", "swizzle", "part", "part of an array", "computed part"),
    *("vector constructor", "matrix constructor", "cast of a vector"),
    *("vectors of reals", "vectors of integers", "vector and scalar", "matrix + -"),
    *("matrix * vector", "vector * matrix", "matrix * matrix"),
    *("select of composites", "host of a part"),
    *("built-in of vectors", "if of composites", "sign of composites"),
    *("fn of composites", "reduction of composites"),
    *("member as a target", "component as a target", "copy of a part"),
    *("array by index as a target", "array by number as a target"),
    *(f"{name}()" for name in sorted(GEOMETRY)),
)
"""Every such construct that is reported; the interpreter notes what types tell."""


def constructs_of_items(program: ast.Program, kernel: ast.KernelItem) -> Iterator[str]:
    """Yield what the structs of a file and the header of a kernel use."""
    known = records_of(program)
    for item in program.items:
        if isinstance(item, ast.StructItem):
            yield "struct"
            if any(field.attributes for field in item.fields):
                yield "attribute of a member"
    for record in known.values():
        for _, member in record.members:
            yield from _of_member(member)
    for parameter in kernel.parameters:
        memory = element_of(parameter.type, known)
        if parameter.type.axes is not None:
            yield from _of_tensor(memory)
            if parameter.mutable and isinstance(memory, Record):
                yield "structs changed in place"
        elif isinstance(memory, Record):
            yield "struct as a parameter"
        elif is_composite(memory):
            yield "composite as a parameter"
    for output in kernel.outputs:
        memory = element_of(output.type, known)
        yield from _of_tensor(memory)
        if isinstance(memory, Record):
            yield "output of structs"


def _of_member(memory: Memory) -> Iterator[str]:
    if isinstance(memory, Fixed):
        yield "array in a struct"
        yield from _of_member(memory.element)
    elif isinstance(memory, Record):
        yield "struct in a struct"
    elif is_half(memory):
        yield "half in a struct"


def _of_tensor(memory: Memory) -> Iterator[str]:
    if isinstance(memory, Record):
        yield "tensor of structs"
    elif is_matrix(memory):
        yield "tensor of matrices"
    elif is_composite(memory):
        yield "tensor of vectors"

"""The classes of structs that were built by hand or drawn, emitted and imported."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any, cast

from kerngen.emit.binding import emit_binding
from kerngen.ir.memory import LEAVES, FixedArray, Member, MemoryType, Struct, structs_in
from kerngen.ir.module import Module
from kerngen.ir.nodes import Kernel, Parameter
from kerngen.runtime import Struct as RuntimeStruct
from kerngen.source.text import Source, Span
from tests.compile import imported_binding

_numbers = count()
PATH = "dsl/declared.kern"


def struct(name: str, **members: str | MemoryType) -> Struct:
    """Return a struct; a member's type may be the name of a scalar, vector or matrix."""
    types = {n: LEAVES[t] if isinstance(t, str) else t for n, t in members.items()}
    return Struct(name, tuple(Member(n, t) for n, t in types.items()), PATH)


def array(element: str | MemoryType, *lengths: int) -> MemoryType:
    """Return a fixed array, the outermost length first."""
    type_ = LEAVES[element] if isinstance(element, str) else element
    for length in reversed(lengths):
        type_ = FixedArray(type_, length)
    return type_


def distinct(type_: MemoryType) -> MemoryType:
    """Return a type whose structs all have names of their own, and this path."""
    match type_:
        case FixedArray():
            return replace(type_, element=distinct(type_.element))
        case Struct():
            members = (replace(m, type=distinct(m.type)) for m in type_.members)
            name = f"Struct{next(_numbers)}"
            return replace(type_, name=name, members=tuple(members), path=PATH)
        case _:
            return type_


def emitted(*structs: Struct, path: str = PATH) -> str:
    """Return a module with these structs and those in them, and their uniform layouts.

    A kernel takes them as parameters; the module has its structs alone.
    """
    every = dict.fromkeys(inner for each in structs for inner in structs_in(each))
    parameters = tuple(Parameter(each.name.lower(), each, None) for each in structs)
    span = Span(Source(path, ""), 0, 0)
    kernel = Kernel("take", (), (), parameters, (), (), (), "", "", span)
    module = Module(path, "", (), (kernel,), structs=tuple(every))
    return emit_binding(module, (), "0" * 64, formatted=False)


def uniform_class(module: Any, cls: type[RuntimeStruct]) -> type[RuntimeStruct]:
    """Return the class that lays a struct out for uniform buffers, maybe its own."""
    values = cast("dict[str, object]", vars(module)).values()
    types = (value for value in values if isinstance(value, type))
    return next((made for made in types if made.__base__ is cls), cls)


def public_classes(module: Any) -> list[str]:
    """Return the names of a module's structs and uniform layouts, sorted."""
    own = {"TakeUniform", "take", "take_reference"}
    return sorted(set(module.__all__) - own)


@contextmanager
def declared(*structs: Struct) -> Generator[Any]:
    """Import the module that declares these structs, and those in them."""
    with imported_binding(emitted(*structs), "declared_sample") as module:
        yield module

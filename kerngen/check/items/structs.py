"""Checking struct items: from syntax to memory types, in any order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, final

from kerngen.check import faults as diag
from kerngen.check.environment import Environment
from kerngen.check.expressions.checker import complete
from kerngen.check.items.constants import check_attributes, check_lengths
from kerngen.check.items.types import Structs, report_narrow, report_unknown_type
from kerngen.check.scope import Scope
from kerngen.ir.memory import (
    LEAVES,
    NARROW,
    FixedArray,
    Leaf,
    Member,
    MemoryType,
    Struct,
)
from kerngen.ir.nodes import Kernel
from kerngen.layout.rules import Space
from kerngen.layout.struct import struct_layout, uniform_layout
from kerngen.layout.types import lay_out, nesting
from kerngen.source.diagnostic import Diagnostic, Faults
from kerngen.source.order import around, needed_first
from kerngen.source.similar import MOST_CHAINED, chained
from kerngen.source.text import Span
from kerngen.syntax import ast

MOST_FIELDS: Final = 1023
"""WGSL's limit for the members of a struct."""

MOST_FIELDS_IN_ALL: Final = 8191
"""Our own limit for the members of a struct and of the structs in it, together."""

DEEPEST: Final = 15
"""WGSL's limit for the nesting of types; a tensor of structs is one level of it."""

LARGEST: Final = 2**30
"""The bytes of a struct: naga's limit for a type; NumPy's, 2^31 - 1, is above it."""

LARGEST_UNIFORM: Final = 2**16
"""The bytes of a uniform buffer that every adapter can bind."""


def check_structs(
    env: Environment,
    items: list[ast.StructItem],
    constants: Scope,
    imported: Mapping[str, Struct],
    path: str,
) -> dict[str, Struct | None]:
    """Return a file's structs and those it uses, by name; None for a faulty one.

    `path` is the file's path; `constants` has the constants that array lengths may use.
    """
    own = {item.name.name: item for item in items}
    found: dict[str, Struct | None] = {**imported, **dict.fromkeys(own)}
    for item in _inner_first(env.faults, own):
        found[item.name.name] = _Checker(env, constants, found, path).check(item)
    return found


def resolve_memory(
    faults: Faults, name: ast.Identifier, structs: Structs
) -> MemoryType | None:
    """Return the memory type with this name, or None after a fault."""
    if name.name in LEAVES:
        return LEAVES[name.name]
    if name.name in NARROW:
        report_narrow(faults, name, "A member of a struct")
        return None
    if name.name not in structs:
        report_unknown_type(faults, name, [*LEAVES, *structs], "[4]")
        return None
    return structs[name.name]


def uniform_faults(type_: MemoryType, span: Span) -> Iterator[Diagnostic]:
    """Yield the reasons why a parameter can't have this type.

    The parameters of a kernel are the members of a struct in a uniform buffer.
    """
    if not isinstance(type_, Struct):
        return
    depth = nesting(lay_out(type_, Space.UNIFORM)) + 1
    if depth > DEEPEST:
        yield diag.UniformTooDeep(span=span, depth=depth, limit=DEEPEST)
    for struct, member, needed in _members_in_uniform(type_):
        if member.size is not None and member.size < needed:
            yield diag.SizeInUniform(
                span=span,
                struct=struct.name,
                field=member.name,
                needed=needed,
                value=member.size,
                declared=member.span,
            )


def uniform_size_fault(kernel: Kernel) -> Diagnostic | None:
    """Return a diagnostic if a kernel's parameters exceed a uniform buffer, else None."""
    size = uniform_layout(kernel).size
    if size <= LARGEST_UNIFORM:
        return None
    return diag.UniformTooLarge(
        span=kernel.span, name=kernel.name, size=size, limit=LARGEST_UNIFORM
    )


def _members_in_uniform(type_: MemoryType) -> Iterator[tuple[Struct, Member, int]]:
    """Yield the members of a type, each with its struct and its bytes in a uniform buffer."""
    while isinstance(type_, FixedArray):
        type_ = type_.element
    if not isinstance(type_, Struct):
        return
    for placed, member in zip(
        struct_layout(type_, Space.UNIFORM).fields, type_.members, strict=True
    ):
        yield from _members_in_uniform(member.type)
        yield type_, member, placed.size


# The order of the items


def _inner_first(
    faults: Faults, items: Mapping[str, ast.StructItem]
) -> list[ast.StructItem]:
    """Return the items, inner ones first; those in a cycle are left out.

    A cycle is reported once, at the struct of it that comes first in the text.
    """

    def held(name: str) -> dict[str, ast.StructField]:
        # Reversed, so that the first field with a struct is the one that is reported.
        fields = reversed(items[name].fields)
        known = ((f.type.name.name, f) for f in fields)
        return {inner: field for inner, field in known if inner in items}

    ordered, cycles = needed_first(items, held)
    for cycle in cycles:
        first = min(cycle, key=lambda name: items[name].span.start)
        names = around(cycle, first)
        field, *others = (held(outer)[inner] for outer, inner in pairwise(names))
        faults.add(
            diag.HoldsItself(
                span=field.type.span,
                name=first,
                chain=chained(names, "holds"),
                field=field.name.name,
                others=tuple(other.type.span for other in others[:MOST_CHAINED]),
            )
        )
    cyclic = {name for cycle in cycles for name in cycle}
    return [items[name] for name in ordered if name not in cyclic]


# One struct


@final
@dataclass(frozen=True)
class _Checker:
    """Checks one struct; `structs` has the structs that it may contain, already checked."""

    env: Environment
    scope: Scope
    structs: Structs
    path: str

    def check(self, item: ast.StructItem) -> Struct | None:
        """Return a struct, or None after a fault in it or in a struct that it contains."""
        count = len(self.env.faults)
        self._check_names(item)
        members = complete([self._member(field) for field in item.fields])
        if len(self.env.faults) > count or members is None:
            return None
        name = item.name
        struct = Struct(name.name, members, self.path, item.doc, name.span)
        return struct if self._fits(struct, name.span) else None

    def _check_names(self, item: ast.StructItem) -> None:
        name = item.name
        if name.name in LEAVES or name.name == "bool":
            self.env.faults.add(diag.StructNamedLikeType(span=name.span))
        if not item.fields:
            self.env.faults.add(diag.NoFields(span=name.span))
        first: dict[str, Span] = {}
        for each in item.fields:
            field_ = each.name
            if field_.name in first:
                twice = diag.DuplicateField(
                    span=field_.span, other=first[field_.name], struct=name.name
                )
                self.env.faults.add(twice)
            first.setdefault(field_.name, field_.span)

    def _member(self, item: ast.StructField) -> Member | None:
        type_ = self._type(item.type)
        attributes = check_attributes(self.env, self.scope, item)
        if type_ is None or None in attributes.values():
            return None
        align, size = attributes.get("align"), attributes.get("size")
        member = Member(item.name.name, type_, align, size, item.doc, item.name.span)
        at = {each.name.name: each.span for each in item.attributes}
        return member if self._holds(member, at) else None

    def _type(self, written: ast.TypeName) -> MemoryType | None:
        name = written.name
        if name.name == "bool":
            fault = diag.TypeNotAllowed(
                span=name.span,
                place="A member of a struct",
                type="bool",
                case="bool field",
            )
            self.env.faults.add(fault)
        lengths: tuple[int, ...] | None = ()
        if written.axes is not None:
            lengths = check_lengths(self.env, self.scope, written.axes, written.span)
        if name.name == "bool":
            return None
        type_ = resolve_memory(self.env.faults, name, self.structs)
        if type_ is None or lengths is None:
            return None
        if len(lengths) > DEEPEST:
            self._report_depth(written.span, "this array", len(lengths))
            return None
        for length in reversed(lengths):
            type_ = FixedArray(type_, length)
        return type_

    def _holds(self, member: Member, at: Mapping[str, Span]) -> bool:
        """Whether a member's `@align` and `@size` are at least what its type needs."""
        laid = lay_out(member.type, Space.STORAGE)
        spelling = member.type.spelling
        for name, value, needed, fault in (
            ("align", member.align, laid.align, diag.AlignTooSmall),
            ("size", member.size, laid.size, diag.SizeTooSmall),
        ):
            if value is not None and value < needed:
                span = at[name]
                self.env.faults.add(
                    fault(span=span, type=spelling, natural=needed, value=value)
                )
                return False
        return True

    def _fits(self, struct: Struct, span: Span) -> bool:
        """Whether a struct is within the limits; reports it if not."""
        in_all = _fields_in(struct) - 1
        limits = (
            (len(struct.members), MOST_FIELDS, ""),
            (in_all, MOST_FIELDS_IN_ALL, ", those of structs in it included"),
        )
        for count, limit, within in limits:
            if count > limit:
                many = diag.TooManyFields(
                    span=span, within=within, count=count, limit=limit
                )
                self.env.faults.add(many)
                return False
        depth = nesting(lay_out(struct, Space.STORAGE))
        if depth >= DEEPEST:
            self._report_depth(span, f"'{struct.name}'", depth)
            return False
        return self._is_small(struct, span)

    def _report_depth(self, span: Span, what: str, depth: int) -> None:
        deep = diag.StructTooDeep(span=span, what=what, depth=depth, limit=DEEPEST - 1)
        self.env.faults.add(deep)

    def _is_small(self, struct: Struct, span: Span) -> bool:
        laid = struct_layout(struct)
        if laid.size <= LARGEST:
            return True
        first = next(
            (f for f in laid.fields if f.offset + f.span > LARGEST), laid.fields[-1]
        )
        member = struct.member(first.name)
        self.env.faults.add(
            diag.StructTooLarge(
                span=member.span if member and member.span else span,
                name=struct.name,
                size=laid.size,
                limit=LARGEST,
            )
        )
        return False


def _fields_in(type_: MemoryType) -> int:
    """Return the number of fields in a field of this type, itself included."""
    match type_:
        case Leaf():
            return 1
        case FixedArray(element=element):
            return _fields_in(element)
        case Struct(members=members):
            return 1 + sum(_fields_in(member.type) for member in members)

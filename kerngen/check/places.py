"""Places: what members and subscripts lead to in structs, vectors and matrices.

`lights.items[j].color.xyz` starts at a parameter or an element of a tensor, goes into
structs and fixed arrays step by step, and ends in a value, of which components are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias, assert_never, final

from kerngen.check import faults_places
from kerngen.check.faults_names import UnknownMember
from kerngen.check.faults_statements import WRITE_FIRST, ReadBeforeWrite
from kerngen.check.scope import ParameterSymbol, TensorSymbol, one_line
from kerngen.check.subscripts import check_subscripts, free_names, report_count
from kerngen.ir.memory import FixedArray, Leaf, Member, MemoryType, Struct
from kerngen.ir.nodes import (
    At,
    Expr,
    Field,
    Load,
    Part,
    Path,
    Role,
    Subscript,
    Swizzle,
    Tensor,
    UniformValue,
)
from kerngen.ir.operators import part_type, swizzle_type
from kerngen.ir.types import Matrix, Scalar, Vector
from kerngen.source.diagnostic import Diagnostic
from kerngen.source.similar import closest
from kerngen.source.text import Span
from kerngen.syntax import ast

if TYPE_CHECKING:
    from kerngen.check.expressions import Expressions

LETTERS = {letter: "xyzw"[n % 4] for n, letter in enumerate("xyzwrgba")}
"""The letters of components: positions and colours, as in WGSL."""


@final
@dataclass(frozen=True, slots=True)
class Place:
    """A part of a parameter, or of an element of a tensor, which may not be a value."""

    root: ParameterSymbol | TensorSymbol
    memory: MemoryType
    subscripts: tuple[Subscript, ...] = ()
    path: Path = ()
    declared: Span | None = None
    """Where the field stands in its struct that this is, or lies in."""

    def member(self, member: Member) -> Place:
        """Return a member of this struct."""
        path = (*self.path, Field(member.name))
        return replace(self, memory=member.type, path=path, declared=member.span)

    def element(self, place: Subscript, array: FixedArray) -> Place:
        """Return an element of this array."""
        at = At(place, array.length)
        return replace(self, memory=array.element, path=(*self.path, at))


Found: TypeAlias = Place | Expr


def check_chain(ex: Expressions, node: ast.Member | ast.Subscript) -> Expr | None:
    """Return the value that members and subscripts lead to."""
    found = _follow(ex, node)
    return value_of(ex, found, node) if isinstance(found, Place) else found


def find_place(ex: Expressions, node: ast.Expr) -> Place | None:
    """Return the place that an expression names; values have none."""
    if not isinstance(node, ast.Member | ast.Subscript | ast.Name):
        return None
    found = _follow(ex, node)
    return found if isinstance(found, Place) else None


def value_at(place: Place) -> Expr:
    """Return the value at a place that holds one."""
    assert isinstance(place.memory, Leaf), "of others, only the parts are read"
    if isinstance(place.root, ParameterSymbol):
        return UniformValue(place.root.name, place.memory.type, place.path)
    return Load(place.root.tensor, place.subscripts, place.path)


def value_of(
    ex: Expressions, place: Place, node: ast.Expr, components: str = ""
) -> Expr | None:
    """Return the value at a place; of a struct or an array, only the parts have one.

    With `components`, no others of the vector are used, and need to be written before.
    """
    fault: Diagnostic
    match place.memory:
        case Leaf():
            return _read(ex, place, node, components)
        case Struct(members=members):
            names = tuple(member.name for member in members)
            fault = faults_places.StructAsValue(
                span=node.span,
                text=one_line(node.span.text),
                type=place.memory.spelling,
                member=names[0],
            )
        case FixedArray(lengths=lengths):
            fault = faults_places.ArrayAsValue(
                span=node.span,
                text=one_line(node.span.text),
                type=place.memory.spelling,
                indices=", ".join(islice(unused_names(ex), len(lengths))),
            )
        case _:
            assert_never(place.memory)
    ex.env.faults.add(fault)
    return None


def _read(
    ex: Expressions, place: Place, node: ast.Expr, components: str
) -> Expr | None:
    root = place.root
    if isinstance(root, ParameterSymbol):
        return value_at(place)
    used = [*components] or [""]
    if any(ex.env.unwritten(root.tensor, place.memory, place.path, c) for c in used):
        ex.env.faults.add(
            ReadBeforeWrite(
                span=node.span,
                other=root.span,
                name=one_line(node.span.text),
                remedy=WRITE_FIRST,
            )
        )
        return None
    return value_at(place)


# Steps


def _follow(ex: Expressions, node: ast.Expr) -> Found | None:
    match node:
        case ast.Member():
            if _is_whole_tensor(ex, node.base):
                ex.report_member(node)
                return None
            base = _follow(ex, node.base)
            return base and _member(ex, base, node)
        case ast.Subscript(base=ast.Name(name=name)) if isinstance(
            symbol := ex.scope.get(name), TensorSymbol
        ) and not _is_whole_value(symbol):
            return ex.element(symbol, node)
        case ast.Subscript():
            if _is_number(ex, node.base) or _is_row(ex, node.base):
                ex.report_subscripts(node)
                return None
            base = _follow(ex, node.base)
            return base and _subscript(ex, base, node)
        case ast.Name(name=name):
            return ex.root(node)
        case _:
            return ex.check(node)


def _is_whole_value(symbol: TensorSymbol) -> bool:
    """Whether a bare name is a vector or matrix, so that subscripts are of its parts."""
    tensor = symbol.tensor
    return tensor.rank == 0 and isinstance(tensor.element, Vector | Matrix)


def _is_whole_tensor(ex: Expressions, node: ast.Expr) -> bool:
    symbol = ex.scope.get(node.name) if isinstance(node, ast.Name) else None
    return isinstance(symbol, TensorSymbol) and symbol.tensor.rank > 0


def _is_number(ex: Expressions, node: ast.Expr) -> bool:
    """Whether this is an element of a tensor of scalars, complete or not."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.base, ast.Name):
        return False
    symbol = ex.scope.get(node.base.name)
    return isinstance(symbol, TensorSymbol) and isinstance(
        symbol.tensor.element, Scalar
    )


def _is_row(ex: Expressions, node: ast.Expr) -> bool:
    """Whether this takes some subscripts of an array, and leaves the rest out."""
    if not isinstance(node, ast.Subscript):
        return False
    memory = _memory_of(ex, node.base)
    count = len(node.subscripts)
    return isinstance(memory, FixedArray) and count < len(memory.lengths)


def _member(ex: Expressions, base: Found, node: ast.Member) -> Found | None:
    if isinstance(base, Place):
        if isinstance(base.memory, Struct):
            return _struct_member(ex, base, base.memory, node.member)
        leaf = base.memory.type if isinstance(base.memory, Leaf) else None
        letters = letters_of(node.member.name)
        known = leaf is not None and swizzle_type(leaf, letters)
        value = value_of(ex, base, node.base, letters if known else "")
        return value and swizzle(ex, value, node)
    return swizzle(ex, base, node)


def _struct_member(
    ex: Expressions, base: Place, struct: Struct, name: ast.Identifier
) -> Place | None:
    member = struct.member(name.name)
    if member is not None:
        return base.member(member)
    report_unknown_field(ex, struct, name)
    return None


def report_unknown_field(ex: Expressions, struct: Struct, name: ast.Identifier) -> None:
    """Record a member that a struct does not have."""
    names = [member.name for member in struct.members]
    ex.env.faults.add(
        faults_places.UnknownField(
            span=name.span,
            declared=struct.span,
            struct=struct.name,
            field=name.name,
            fields=", ".join(f"'{n}'" for n in names),
            suggestion=closest(name.name, names),
        )
    )


def letters_of(name: str) -> str:
    """Return components by `xyzw`; what is none, or mixes them with colours, is `?`."""
    sets = ("xyzw", "rgba")
    if not any(set(name) <= set(letters) for letters in sets):
        return "?"
    return "".join(LETTERS[letter] for letter in name)


def swizzle(ex: Expressions, value: Expr, node: ast.Member) -> Expr | None:
    """Return components of a vector, by one to four letters."""
    letters = letters_of(node.member.name)
    type_ = swizzle_type(value.type, letters)
    if type_ is not None:
        return Swizzle(value, letters, type_)
    if isinstance(value.type, Vector):
        components = "xyzw"[: value.type.width]
        ex.env.faults.add(
            UnknownMember(
                span=node.member.span,
                type=value.type.spelling,
                member=node.member.name,
                components=", ".join(f"'{letter}'" for letter in components),
            )
        )
    else:
        ex.report_member(node)
    return None


def _subscript(ex: Expressions, base: Found, node: ast.Subscript) -> Found | None:
    if isinstance(base, Place):
        if isinstance(base.memory, FixedArray):
            return _array_element(ex, base, base.memory, node)
        value = value_of(ex, base, node.base)
        if value is None:
            return None
        base = value
    known = part_type(base.type)
    if known is None:
        ex.report_subscripts(node)
        return None
    length, type_ = known
    if isinstance(base.type, Matrix) and len(node.subscripts) == 2:
        apart = "".join(f"[{one_line(s.span.text)}]" for s in node.subscripts)
        text = one_line(node.base.span.text)
        whole = Tensor(text, Scalar.F32, (length,), Role.INPUT)
        symbol = TensorSymbol("a matrix", whole, node.base.span)
        report_count(ex, symbol, node.span, 2, f"{text}{apart}")
        return None
    places = _places(ex, node, (length,))
    return None if places is None else Part(base, At(places[0], length), type_)


def _array_element(
    ex: Expressions, base: Place, array: FixedArray, node: ast.Subscript
) -> Place | None:
    places = _places(ex, node, array.lengths, base.declared)
    if places is None:
        return None
    for place in places:
        assert isinstance(base.memory, FixedArray), "as many as there are lengths"
        base = base.element(place, base.memory)
    return base


def _places(
    ex: Expressions,
    node: ast.Subscript,
    lengths: tuple[int, ...],
    declared: Span | None = None,
) -> tuple[Subscript, ...] | None:
    """Check subscripts as if they were those of a tensor with fixed lengths."""
    text = one_line(node.base.span.text)
    array = Tensor(text, Scalar.F32, lengths, Role.INPUT)
    symbol = TensorSymbol("an array", array, declared or node.base.span)
    return check_subscripts(ex, symbol, node.span, node.subscripts)


def unused_names(ex: Expressions) -> Iterator[str]:
    """Yield names that stand for nothing at all."""
    usual = free_names(ex.env, ex.scope)
    return (name for name in usual if ex.scope.get(name) is None)


# Without faults


def lengths_of(ex: Expressions, base: ast.Expr) -> tuple[int, ...]:
    """Return the lengths that subscripts of an expression range over, if it is known.

    Of tensors there are none here: their axes have names.
    """
    memory = _memory_of(ex, base)
    match memory:
        case FixedArray(lengths=lengths):
            return lengths
        case Leaf(type=type_):
            known = part_type(type_)
            return (known[0],) if known else ()
        case Struct() | None:
            return ()
        case _:
            assert_never(memory)


def _memory_of(ex: Expressions, node: ast.Expr) -> MemoryType | None:
    match node:
        case ast.Name(name=name):
            symbol = ex.scope.get(name)
            if isinstance(symbol, ParameterSymbol):
                return symbol.memory
            if isinstance(symbol, TensorSymbol) and symbol.tensor.rank == 0:
                return symbol.tensor.memory
            return None
        case ast.Subscript(base=ast.Name(name=name)) if isinstance(
            symbol := ex.scope.get(name), TensorSymbol
        ):
            return symbol.tensor.memory
        case ast.Subscript(base=base, subscripts=subscripts):
            memory = _memory_of(ex, base)
            for _ in subscripts:
                memory = memory.element if isinstance(memory, FixedArray) else None
            return memory
        case ast.Member(base=base, member=member):
            memory = _memory_of(ex, base)
            found = memory.member(member.name) if isinstance(memory, Struct) else None
            return found.type if found else None
        case _:
            return None

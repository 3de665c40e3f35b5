"""Places: parts of structs, vectors and matrices that members and subscripts lead to.

`lights.items[j].color` starts at a parameter or an element of a tensor, and goes into
structs and fixed arrays step by step.  Both sides of `=` have places: a read takes the
value at one, `targets` finds the one that a statement writes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice
from typing import TypeAlias, assert_never, final

from kerngen.check import faults as diag
from kerngen.check.expressions.checker import Expressions
from kerngen.check.expressions.subscripts import check_subscripts, report_count
from kerngen.check.hints.subscripts import unused_names
from kerngen.check.hints.unknown import report_member, report_subscripts, report_unknown
from kerngen.check.scope import (
    IndexSymbol,
    ParameterSymbol,
    Poison,
    Scope,
    Subscripted,
    TensorSymbol,
    ValueSymbol,
    is_whole_tensor,
)
from kerngen.ir import nodes as ir
from kerngen.ir.memory import FixedArray, Leaf, MemoryType, Struct
from kerngen.ir.operators import is_composite, part_type, swizzle_type
from kerngen.ir.types import Matrix, Scalar, ValueType, Vector, scalar_of
from kerngen.source.similar import closest
from kerngen.source.text import Span
from kerngen.syntax import ast

LETTERS = {letter: "xyzw"[n % 4] for n, letter in enumerate("xyzwrgba")}
"""The letters of components: positions and colours, as in WGSL."""


@final
@dataclass(frozen=True, slots=True)
class Place:
    """A place: a part of a parameter or of a tensor's element, which may be no value.

    On the left of `=`, `component` is the vector component that is written, and
    `indices` are those that range over the arrays in the path.
    """

    root: ParameterSymbol | TensorSymbol
    memory: MemoryType
    subscripts: tuple[ir.Subscript, ...] = ()
    path: ir.Path = ()
    declared: Span | None = None
    """Where the field is declared in its struct that this is, or lies in."""
    component: str = ""
    indices: tuple[ir.Index, ...] = ()

    @property
    def is_half(self) -> bool:
        """Whether it is stored as f16."""
        return isinstance(self.memory, Leaf) and self.memory.is_half

    @property
    def type(self) -> ValueType:
        """The type of the value there."""
        assert isinstance(self.memory, Leaf), "of others, only the parts have values"
        return scalar_of(self.memory.type) if self.component else self.memory.type

    def member(self, ex: Expressions, name: ast.Identifier) -> Place | None:
        """Return a member of this struct; report one that does not exist."""
        struct = self.memory
        assert isinstance(struct, Struct), "others have no members"
        member = struct.member(name.name)
        if member is not None:
            path = (*self.path, ir.Field(member.name))
            return replace(self, memory=member.type, path=path, declared=member.span)
        names = tuple(member.name for member in struct.members)
        ex.env.faults.add(
            diag.UnknownField(
                span=name.span,
                declared=struct.span,
                struct=struct.name,
                fields=names,
                suggestion=closest(name.name, names),
            )
        )
        return None

    def element(self, subscript: ir.Subscript) -> Place:
        """Return an element of this fixed array."""
        array = self.memory
        assert isinstance(array, FixedArray), "others have no elements"
        path = (*self.path, ir.At(subscript, array.length))
        return replace(self, memory=array.element, path=path)

    def inside(self, path: ir.Path, memory: MemoryType) -> Place:
        """Return the place that a path leads to from this one."""
        return replace(self, memory=memory, path=(*self.path, *path))

    def value(self) -> ir.Expr:
        """Return the expression that reads the value there."""
        if isinstance(self.root, ParameterSymbol):
            return ir.UniformValue(self.root.name, self.type, self.path)
        return ir.Load(self.root.tensor, self.subscripts, self.path)


def letters_of(name: str) -> str:
    """Return components as letters `xyzw`; invalid ones, or a mix with `rgba`, as `?`."""
    sets = ("xyzw", "rgba")
    if not any(set(name) <= set(letters) for letters in sets):
        return "?"
    return "".join(LETTERS[letter] for letter in name)


# Without faults


def lengths_of(scope: Scope, base: ast.Expr) -> tuple[int, ...]:
    """Return the lengths of a value's own axes; a tensor's are left out.

    Lengths of a tensor's axes are not among them: these have names.
    """
    memory = memory_of(scope, base)
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


def memory_of(scope: Scope, node: ast.Expr) -> MemoryType | None:
    """Return the memory type of the place that an expression names, or None."""
    match node:
        case ast.Name(name=name):
            symbol = scope.get(name)
            if isinstance(symbol, ParameterSymbol):
                return symbol.memory
            if isinstance(symbol, TensorSymbol) and symbol.tensor.rank == 0:
                return symbol.tensor.memory
            return None
        case ast.Subscript(base=ast.Name(name=name)) if isinstance(
            symbol := scope.get(name), TensorSymbol
        ):
            return symbol.tensor.memory
        case ast.Subscript(base=base, subscripts=subscripts):
            memory = memory_of(scope, base)
            for _ in subscripts:
                memory = memory.element if isinstance(memory, FixedArray) else None
            return memory
        case ast.Member(base=base, member=member):
            memory = memory_of(scope, base)
            found = memory.member(member.name) if isinstance(memory, Struct) else None
            return found.type if found else None
        case _:
            return None


_Found: TypeAlias = Place | ir.Expr | None
"""What a chain leads to: a place that may have parts, or a value; None after a fault."""


def check_name(ex: Expressions, node: ast.Name) -> ir.Expr | None:
    """Check a bare name; return its value, or None after a fault."""
    symbol = ex.scope.get(node.name)
    match symbol:
        case None:
            report_unknown(ex, node)
            return None
        case ValueSymbol(value=value):
            return value
        case IndexSymbol(index=index):
            return ir.IndexValue(index)
        case TensorSymbol() if not ex.rules.has_elements:
            ex.rules.refuse(ex, node.span, "a tensor")
            return None
        case TensorSymbol():
            return _value(ex, _read_element(ex, symbol, node), node)
        case ParameterSymbol(memory=memory):
            return _value(ex, Place(symbol, memory), node)
        case Poison():
            return None
        case _:
            assert_never(symbol)


def check_element(ex: Expressions, node: ast.Subscript) -> ir.Expr | None:
    """Check a subscripted value; return its element or part, or None after a fault."""
    base, symbol = node.base, ex.scope.of(node.base)
    has_parts = isinstance(symbol, ValueSymbol) and is_composite(symbol.value.type)
    if not isinstance(base, ast.Name) or has_parts:
        return check_chain(ex, node)
    if not ex.rules.has_elements:
        if not isinstance(symbol, Poison):
            ex.rules.refuse(ex, node.span, "a tensor")
        return None
    if symbol is None:
        for subscript in node.subscripts:
            if not isinstance(subscript, ast.Name):
                ex.check(subscript)
        report_unknown(ex, base)
        return None
    return check_chain(ex, node)


def check_chain(ex: Expressions, node: ast.Member | ast.Subscript) -> ir.Expr | None:
    """Check a chain of members and subscripts; return the value that it leads to."""
    return _value(ex, _follow(ex, node), node)


def find_place(ex: Expressions, node: ast.Expr) -> Place | None:
    """Return the place in memory that an expression names, or None for a value."""
    if not isinstance(node, ast.Member | ast.Subscript | ast.Name):
        return None
    found = _follow(ex, node)
    return found if isinstance(found, Place) else None


# Values


def _value(
    ex: Expressions, found: _Found, node: ast.Expr, components: str = ""
) -> ir.Expr | None:
    """Return the value at a place; of a struct or an array, only the parts have one.

    With `components`, no others of the vector are used, and need to be written before.
    """
    if not isinstance(found, Place):
        return found
    type_ = found.memory.spelling
    match found.memory:
        case Leaf():
            return _written_value(ex, found, node, components)
        case Struct(members=members):
            ex.env.faults.add(
                diag.StructAsValue(span=node.span, type=type_, member=members[0].name)
            )
        case FixedArray(lengths=lengths):
            indices = ", ".join(islice(unused_names(ex), len(lengths)))
            ex.env.faults.add(
                diag.ArrayAsValue(span=node.span, type=type_, indices=indices)
            )
        case _:
            assert_never(found.memory)
    return None


def _written_value(
    ex: Expressions, place: Place, node: ast.Expr, components: str
) -> ir.Expr | None:
    root = place.root
    if isinstance(root, ParameterSymbol):
        return place.value()
    used = [*components] or [""]
    if any(ex.env.unwritten(root.tensor, place.memory, place.path, c) for c in used):
        fault = diag.ReadBeforeWrite(
            span=node.span, case="first", other=root.span, name=node.span.one_line()
        )
        ex.env.faults.add(fault)
        return None
    return place.value()


def _swizzle(ex: Expressions, value: ir.Expr, node: ast.Member) -> ir.Expr | None:
    """Return components of a vector, by one to four letters."""
    letters = letters_of(node.member.name)
    type_ = swizzle_type(value.type, letters)
    if type_ is not None:
        return ir.Swizzle(value, letters, type_)
    if isinstance(value.type, Vector):
        components = "xyzw"[: value.type.width]
        ex.env.faults.add(
            diag.UnknownMember(
                span=node.member.span,
                type=value.type.spelling,
                components=(*components,),
            )
        )
    else:
        report_member(ex, node)
    return None


# Steps


def _follow(ex: Expressions, node: ast.Expr) -> _Found:
    match node:
        case ast.Member():
            if is_whole_tensor(ex.scope.of(node.base)):
                report_member(ex, node)
                return None
            return _member(ex, _follow(ex, node.base), node)
        case ast.Subscript(base=ast.Name(name=name)) if isinstance(
            symbol := ex.scope.get(name), TensorSymbol
        ) and not (
            symbol.tensor.rank == 0
            and isinstance(symbol.tensor.element, Vector | Matrix)
        ):
            return _read_element(ex, symbol, node)
        case ast.Subscript():
            if _has_no_elements(ex, node.base):
                report_subscripts(ex, node)
                return None
            return _subscript(ex, _follow(ex, node.base), node)
        case ast.Name(name=name):
            match symbol := ex.scope.get(name):
                case ParameterSymbol(memory=memory):
                    return Place(symbol, memory)
                case TensorSymbol() if isinstance(symbol.tensor.element, Struct):
                    return _read_element(ex, symbol, node)
                case _:
                    return ex.check(node)
        case _:
            return ex.check(node)


def _has_no_elements(ex: Expressions, node: ast.Expr) -> bool:
    """Whether this is an element of a tensor of scalars, complete or not.

    Or it takes some subscripts of an array, and leaves the rest out.
    """
    if not isinstance(node, ast.Subscript):
        return False
    symbol = ex.scope.of(node.base)
    if isinstance(symbol, TensorSymbol) and isinstance(symbol.tensor.element, Scalar):
        return True
    memory = memory_of(ex.scope, node.base)
    count = len(node.subscripts)
    return isinstance(memory, FixedArray) and count < len(memory.lengths)


def _read_element(ex: Expressions, symbol: TensorSymbol, node: ast.Expr) -> _Found:
    """Return an element of a tensor; of one with parts, a place."""
    tensor = symbol.tensor
    subscripts = node.subscripts if isinstance(node, ast.Subscript) else ()
    is_number = isinstance(tensor.element, Scalar)
    if is_number and ex.env.unwritten(tensor, tensor.memory):
        is_other = any(not isinstance(subscript, ast.Name) for subscript in subscripts)
        is_own = is_other and tensor.name == ex.env.current.target
        ex.env.faults.add(
            diag.ReadBeforeWrite(
                span=node.span,
                case="at once" if is_own else "first",
                other=symbol.span,
                name=tensor.name,
            )
        )
        return None
    places = check_subscripts(ex, Subscripted.of(symbol), node.span, subscripts)
    if places is None:
        return None
    load = ir.Load(tensor, places)
    current = ex.env.current
    if current.in_let and tensor.name == current.target:
        current.own_reads.setdefault(load, node.span)
    return load if is_number else Place(symbol, tensor.memory, places)


def _member(ex: Expressions, base: _Found, node: ast.Member) -> _Found:
    components = ""
    if isinstance(base, Place):
        if isinstance(base.memory, Struct):
            return base.member(ex, node.member)
        letters = letters_of(node.member.name)
        if isinstance(base.memory, Leaf) and swizzle_type(base.memory.type, letters):
            components = letters
    value = _value(ex, base, node.base, components)
    return value and _swizzle(ex, value, node)


def _subscript(ex: Expressions, base: _Found, node: ast.Subscript) -> _Found:
    text, span = node.base.span.one_line(), node.base.span
    if isinstance(base, Place) and isinstance(base.memory, FixedArray):
        array = Subscripted(text, base.memory.lengths, base.declared or span)
        places = check_subscripts(ex, array, node.span, node.subscripts)
        return None if places is None else reduce(Place.element, places, base)
    value = _value(ex, base, node.base)
    if value is None:
        return None
    known = part_type(value.type)
    if known is None:
        report_subscripts(ex, node)
        return None
    length, type_ = known
    vector = Subscripted(text, (length,), span)
    if isinstance(value.type, Matrix) and len(node.subscripts) == 2:
        apart = "".join(f"[{s.span.one_line()}]" for s in node.subscripts)
        report_count(ex, vector, node.span, 2, f"{text}{apart}")
        return None
    places = check_subscripts(ex, vector, node.span, node.subscripts)
    return None if places is None else ir.Part(value, ir.At(places[0], length), type_)

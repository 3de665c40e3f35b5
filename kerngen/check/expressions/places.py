"""Places: parts of structs, vectors and matrices that members and subscripts lead to.

`lights.items[j].color` starts at a parameter or at an element of a tensor, and leads into
structs and fixed arrays step by step.  There are places on both sides of `=`, and a `Walk`
finds them: a read takes the value at the place, and `targets` has the walk of left sides.
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
    memory_of,
)
from kerngen.ir import nodes as ir
from kerngen.ir.analysis.positions import moving_index
from kerngen.ir.memory import FixedArray, Leaf, MemoryType, Struct
from kerngen.ir.operators import is_composite, part_type, swizzle_type
from kerngen.ir.types import Matrix, Scalar, ValueType, Vector
from kerngen.ir.walk import places_in
from kerngen.source.similar import closest
from kerngen.source.text import Span
from kerngen.syntax import ast

LETTERS = {letter: "xyzw"[n % 4] for n, letter in enumerate("xyzwrgba")}
"""The letters of components: positions and colours, as in WGSL."""


@final
@dataclass(frozen=True, slots=True)
class Place:
    """A place: a part of a parameter or of a tensor's element.

    It has a value if its memory type is a leaf, a number, vector or matrix, and none if it is
    a struct or an array.  `components` are those of a vector, `xy`, or "" for all of it.
    """

    root: ParameterSymbol | TensorSymbol
    memory: MemoryType
    subscripts: tuple[ir.Subscript, ...] = ()
    path: ir.Path = ()
    declared: Span | None = None
    """The declaration of the field that the place is, or is inside of."""
    components: str = ""
    is_known: bool = True
    """Whether its subscripts have no fault."""

    @property
    def indices(self) -> tuple[ir.Index, ...]:
        """The indices that a statement writes the place for, each of one subscript."""
        moving = map(moving_index, (*self.subscripts, *places_in(self.path)))
        return tuple(index for index in moving if index is not None)

    @property
    def is_half(self) -> bool:
        """Whether it is stored as f16."""
        return isinstance(self.memory, Leaf) and self.memory.is_half

    @property
    def type(self) -> ValueType:
        """The type of the value there."""
        return self.value().type

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
        root, memory = self.root, self.memory
        assert isinstance(memory, Leaf), "of others, only the parts have values"
        whole: ir.Expr
        if isinstance(root, ParameterSymbol):
            whole = ir.UniformValue(root.name, memory.type, self.path)
        else:
            whole = ir.Load(root.tensor, self.subscripts, self.path)
        if not self.components:
            return whole
        type_ = swizzle_type(memory.type, self.components)
        assert type_ is not None, "checked where they are taken"
        return ir.Swizzle(whole, self.components, type_)


def letters_of(name: str) -> str:
    """Return components as letters `xyzw`; invalid ones, or a mix with `rgba`, as `?`."""
    sets = ("xyzw", "rgba")
    if not any(set(name) <= set(letters) for letters in sets):
        return "?"
    return "".join(LETTERS[letter] for letter in name)


Found: TypeAlias = Place | ir.Expr
"""The end of a chain of members and subscripts: a place that may have parts, or a value."""


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
        case TensorSymbol() | ParameterSymbol():
            return check_chain(ex, node)
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


def check_chain(ex: Expressions, node: ast.LValue) -> ir.Expr | None:
    """Check a chain of members and subscripts; return the value that it leads to."""
    walk = Walk(ex)
    return walk.value(walk.follow(node), node)


def find_place(ex: Expressions, node: ast.Expr) -> Place | None:
    """Return the place in memory that an expression names, or None for a value."""
    if not isinstance(node, ast.LValue):
        return None
    found = Walk(ex).follow(node)
    return found if isinstance(found, Place) else None


def _has_no_elements(scope: Scope, base: ast.Expr, count: int) -> bool:
    """Whether brackets after a base with `count` subscripts have nothing to subscript.

    That is so for `x[i][j]` of a tensor of scalars, and for an array whose subscripts are in
    separate brackets: in both, one pair of brackets was meant.
    """
    symbol, memory = scope.of(base), memory_of(scope, base)
    if isinstance(symbol, TensorSymbol):
        return isinstance(symbol.tensor.element, Scalar)
    return isinstance(memory, FixedArray) and count < len(memory.lengths)


@dataclass(frozen=True)
class Walk:
    """A walk along members and subscripts, to the place or the value that they name.

    Its rules are those of reads, and None is the result after a fault.  For the left of `=`,
    a subclass has other rules for the start and for subscripts.
    """

    ex: Expressions

    def follow(self, node: ast.Expr) -> Found | None:
        """Return the place or the value that an expression names."""
        match node:
            case ast.Member() | ast.Subscript() if self.refuses(node):
                return None
            case ast.Member(base=base, member=member):
                found = self.follow(base)
                if isinstance(found, Place) and isinstance(found.memory, Struct):
                    return found.member(self.ex, member)
                return found and self.component(found, node)
            case ast.Subscript(base=base) if not isinstance(
                self.ex.scope.of(base), TensorSymbol
            ):
                found = self.follow(base)
                if isinstance(found, Place) and isinstance(found.memory, FixedArray):
                    declared, lengths = (
                        found.declared or base.span,
                        found.memory.lengths,
                    )
                    array = Subscripted(base.span.one_line(), lengths, declared)
                    places = self.subscripts(array, node)
                    return reduce(Place.element, places, found) if places else None
                return found and self.part(found, node)
            case _:
                return self.start(node)

    def refuses(self, node: ast.Member | ast.Subscript) -> bool:
        """Whether a member or subscript is of a value without parts; reports it if so."""
        scope = self.ex.scope
        match node:
            case ast.Member(base=base) if is_whole_tensor(scope.of(base)):
                report_member(self.ex, node)
            case ast.Subscript(
                base=ast.Subscript(base=base, subscripts=given)
            ) if _has_no_elements(scope, base, len(given)):
                report_subscripts(self.ex, node)
            case _:
                return False
        return True

    def start(self, node: ast.Expr) -> Found | None:
        """Return the start of a chain, such as an element of a tensor."""
        base = node.base if isinstance(node, ast.Subscript) else node
        symbol = self.ex.scope.of(base)
        match symbol:
            case TensorSymbol(tensor=tensor) if (
                isinstance(node, ast.Subscript)
                and tensor.rank == 0
                and isinstance(tensor.element, Vector | Matrix)
            ):
                found = self._element(symbol, base)
                return found and self.part(found, node)
            case TensorSymbol():
                return self._element(symbol, node)
            case ParameterSymbol(memory=memory):
                return Place(symbol, memory)
            case _:
                return self.ex.check(node)

    def subscripts(
        self, array: Subscripted, node: ast.Subscript
    ) -> tuple[ir.Subscript, ...] | None:
        """Return the subscripts of a fixed array."""
        return check_subscripts(self.ex, array, node.span, node.subscripts)

    def component(self, base: Found, node: ast.Member) -> Found | None:
        """Return components of a vector, by one to four letters."""
        letters = letters_of(node.member.name)
        if isinstance(base, Place) and not base.components:
            memory = base.memory
            if isinstance(memory, Leaf) and swizzle_type(memory.type, letters):
                self.ex.env.model.add(self.ex.scope, node.base, base.value())
                return replace(base, components=letters)
        value = self._base(base, node.base)
        if value is None:
            return None
        type_ = swizzle_type(value.type, letters)
        if type_ is not None:
            return ir.Swizzle(value, letters, type_)
        if isinstance(value.type, Vector):
            fault = diag.UnknownMember(
                span=node.member.span,
                type=value.type.spelling,
                components=(*"xyzw"[: value.type.width],),
            )
            self.ex.env.faults.add(fault)
        else:
            report_member(self.ex, node, value.type)
        return None

    def part(self, base: Found, node: ast.Subscript) -> ir.Expr | None:
        """Return a component of a vector, or a column of a matrix, by its number."""
        value = self._base(base, node.base)
        if value is None:
            return None
        known = part_type(value.type)
        if known is None:
            report_subscripts(self.ex, node)
            return None
        length, type_ = known
        text = node.base.span.one_line()
        vector = Subscripted(text, (length,), node.base.span)
        if isinstance(value.type, Matrix) and len(node.subscripts) == 2:
            apart = "".join(f"[{s.span.one_line()}]" for s in node.subscripts)
            report_count(self.ex, vector, node.span, 2, f"{text}{apart}")
            return None
        places = self.subscripts(vector, node)
        return ir.Part(value, ir.At(places[0], length), type_) if places else None

    def _element(self, symbol: TensorSymbol, node: ast.Expr) -> Place | None:
        """Return an element of a tensor."""
        tensor = symbol.tensor
        is_result = tensor.role is ir.Role.OUTPUT and isinstance(tensor.element, Scalar)
        # Whether a number is written does not depend on its subscripts.
        if is_result and self.read(Place(symbol, tensor.memory), node) is None:
            return None
        given = node.subscripts if isinstance(node, ast.Subscript) else ()
        places = check_subscripts(self.ex, Subscripted.of(symbol), node.span, given)
        return None if places is None else Place(symbol, tensor.memory, places)

    # Values

    def _base(self, found: Found, node: ast.Expr) -> ir.Expr | None:
        """Return the value of a component's vector or a column's matrix, and record it."""
        value = self.value(found, node)
        self.ex.env.model.add(self.ex.scope, node, value)
        return value

    def value(self, found: Found | None, node: ast.Expr) -> ir.Expr | None:
        """Return the value at a place; of a struct or an array, only the parts have one."""
        if not isinstance(found, Place):
            return found
        type_, faults = found.memory.spelling, self.ex.env.faults
        match found.memory:
            case Leaf():
                return self.read(found, node)
            case Struct(members=members):
                faults.add(
                    diag.StructAsValue(
                        span=node.span, type=type_, member=members[0].name
                    )
                )
            case FixedArray(lengths=lengths):
                indices = ", ".join(islice(unused_names(self.ex), len(lengths)))
                faults.add(
                    diag.ArrayAsValue(span=node.span, type=type_, indices=indices)
                )
            case _:
                assert_never(found.memory)
        return None

    def read(self, place: Place, node: ast.Expr) -> ir.Expr | None:
        """Return the value at a place, which must be written before."""
        return place.value() if self.is_written(place, node) else None

    def is_written(self, place: Place, node: ast.Expr) -> bool:
        """Whether all that is at a place was written before; reports it if not."""
        root, env = place.root, self.ex.env
        if isinstance(root, ParameterSymbol) or not any(
            env.unwritten(root.tensor, place.memory, place.path, component)
            for component in ([*place.components] or [""])
        ):
            return True
        given = node.subscripts if isinstance(node, ast.Subscript) else ()
        is_number, name = isinstance(root.tensor.element, Scalar), root.tensor.name
        is_other = not all(isinstance(subscript, ast.Name) for subscript in given)
        at_once = is_number and is_other and name == env.current.target
        env.faults.add(
            diag.ReadBeforeWrite(
                span=node.span,
                case="at once" if at_once else "first",
                other=root.span,
                name=name if is_number else node.span.one_line(),
            )
        )
        return False

"""Places: parts of structs, vectors and matrices that members and subscripts lead to.

`lights.items[j].color` starts at a parameter or an element of a tensor, and goes into
structs and fixed arrays step by step.  Both sides of `=` have places: `reads` takes the
value at one, `targets` finds the one that a statement writes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never, final

from kerngen.check import faults as diag
from kerngen.check.expressions.checker import Expressions
from kerngen.check.scope import ParameterSymbol, Scope, TensorSymbol
from kerngen.ir import nodes as ir
from kerngen.ir.memory import FixedArray, Leaf, MemoryType, Struct
from kerngen.ir.operators import part_type
from kerngen.ir.types import Scalar, ValueType, scalar_of
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


@final
@dataclass(frozen=True)
class Subscripted:
    """A value with axes: a tensor, a fixed array, a vector or a matrix."""

    name: str
    extents: tuple[ir.Extent, ...]
    span: Span
    """Where it is declared; `axes` are where its axes are, if it is a tensor."""
    axes: tuple[Span, ...] = ()
    element: ValueType | Struct = Scalar.F32

    @classmethod
    def of(cls, symbol: TensorSymbol) -> Subscripted:
        """Return a tensor as a value with axes."""
        tensor = symbol.tensor
        return cls(
            tensor.name, tensor.extents, symbol.span, symbol.axes, tensor.element
        )

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.extents)


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

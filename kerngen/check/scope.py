"""Scopes: the meanings of names in a kernel, a function or a guard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias, TypeGuard, final

from kerngen.check import faults as diag
from kerngen.ir.memory import FixedArray, Leaf, MemoryType, Struct
from kerngen.ir.nodes import DimValue, Expr, Extent, Index, Role, Tensor, UniformValue
from kerngen.ir.types import Matrix, Scalar, ValueType
from kerngen.source.diagnostic import Faults
from kerngen.source.text import Span
from kerngen.syntax import ast

KINDS: Final = {
    Role.INPUT: "an input",
    Role.UPDATE: "a 'mut' tensor",
    Role.OUTPUT: "an output",
    Role.LET: "a let",
}
"""The kinds of tensors in words."""


@final
@dataclass(frozen=True, slots=True)
class ValueSymbol:
    """The meaning of a name that is a value; `kind` is "a dim", "a scalar" and so on."""

    kind: str
    value: Expr
    span: Span


@final
@dataclass(frozen=True, slots=True)
class TensorSymbol:
    """The meaning of a name that is a tensor; `axes` are the places of its lengths."""

    tensor: Tensor
    span: Span
    axes: tuple[Span, ...] = ()

    @property
    def kind(self) -> str:
        """The kind of tensor in words: "an input"."""
        return KINDS[self.tensor.role]


@final
@dataclass(frozen=True, slots=True)
class ParameterSymbol:
    """The meaning of a parameter that is a vector, a matrix or a struct."""

    name: str
    memory: Leaf | Struct
    span: Span

    @property
    def kind(self) -> str:
        """The kind of parameter in words: "a vector"."""
        if isinstance(self.memory, Struct):
            return "a struct"
        return "a matrix" if isinstance(self.memory.type, Matrix) else "a vector"


@final
@dataclass(frozen=True, slots=True)
class IndexSymbol:
    """The meaning of an index.

    `origin` is the place that its range is from: a bound, or a subscript.  `is_given` is set
    for a bound, `u < 3`.
    """

    index: Index
    span: Span
    origin: Span
    is_given: bool = False
    kind: ClassVar = "an index"


@final
@dataclass(frozen=True, slots=True)
class Poison:
    """The meaning of a name whose declaration has a fault, which is already reported.

    An expression that reads such a name has the value None, which is passed on without
    another report. The IR has no poison, as files with faults go no further.
    """

    kind: str
    span: Span


Symbol: TypeAlias = ValueSymbol | TensorSymbol | ParameterSymbol | IndexSymbol | Poison


@final
@dataclass(frozen=True)
class Subscripted:
    """A value with axes: a tensor, a fixed array, a vector or a matrix."""

    name: str
    extents: tuple[Extent, ...]
    span: Span
    """The place of its declaration; `axes` are those of a tensor's axes."""
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


def let_symbol(
    node: ast.LetStatement, type_: ValueType, indices: tuple[Index, ...]
) -> TensorSymbol:
    """Return the meaning of a let: a tensor with an axis for each of its indices."""
    name = node.name
    extents = tuple(index.extent for index in indices)
    tensor = Tensor(name.name, type_, extents, Role.LET, span=name.span)
    axes = tuple(binder.name.span for binder in node.binders)
    return TensorSymbol(tensor, name.span, axes)


def parameter_symbol(
    name: str, memory: MemoryType, span: Span
) -> ValueSymbol | ParameterSymbol:
    """Return the meaning of a parameter: a scalar is a value, others have parts."""
    assert not isinstance(memory, FixedArray), "no parameter is an array"
    if isinstance(memory, Leaf) and isinstance(memory.type, Scalar):
        return ValueSymbol("a scalar", UniformValue(name, memory.type), span)
    return ParameterSymbol(name, memory, span)


@final
class Scope:
    """The names that can be used at a place, inner scopes first.

    A kernel's statement has a scope of its own (`is_statement`), a reduction one inside of
    that.  A name that is poisoned by a fault is so until the statement's scope ends.
    """

    def __init__(
        self, faults: Faults, outer: Scope | None = None, *, is_statement: bool = False
    ) -> None:
        self._faults = faults
        self._outer = outer
        self._is_statement = is_statement
        self._symbols: dict[str, Symbol] = {}

    def get(self, name: str) -> Symbol | None:
        """Return the meaning of a name, or None."""
        if name in self._symbols:
            return self._symbols[name]
        return self._outer.get(name) if self._outer else None

    def of(self, node: ast.Expr) -> Symbol | None:
        """Return the meaning of an expression that is a name, or None."""
        return self.get(node.name) if isinstance(node, ast.Name) else None

    def names(self) -> Iterator[str]:
        """Yield every name that is declared here or further out."""
        yield from self._symbols
        if self._outer:
            yield from self._outer.names()

    def own_names(self) -> frozenset[str]:
        """Return the names that are declared in this scope itself."""
        return frozenset(self._symbols)

    def over(self, outer: Scope) -> Scope:
        """Return these names as a scope inside of `outer`."""
        scope = Scope(self._faults, outer)
        for name, symbol in self._symbols.items():
            scope.put(name, symbol)
        return scope

    def declare(self, name: ast.Named, symbol: Symbol) -> bool:
        """Declare a name; if it is declared already, report that and keep the first."""
        first = self.get(name.name)
        if first is not None:
            self._report_clash(name, symbol.kind, first)
            return False
        self._symbols[name.name] = symbol
        return True

    def put(self, name: str, symbol: Symbol) -> None:
        """Declare or replace a name without checks."""
        self._symbols[name] = symbol

    def poison(self, name: str, kind: str, span: Span) -> None:
        """Poison a name until the statement ends, so that its uses report nothing."""
        # In the scope that declares it, but no further out than the statement's.
        if name in self._symbols or self._is_statement:
            self._symbols[name] = Poison(kind, span)
        elif self._outer:
            self._outer.poison(name, kind, span)

    def poison_dims(self) -> None:
        """Poison all dims: this statement uses them as indices, which is reported."""
        for name in {*self.names()}:
            symbol = self.get(name)
            if is_dim(symbol):
                self.poison(name, "an index", symbol.span)

    def _report_clash(self, name: ast.Named, wanted: str, first: Symbol) -> None:
        if wanted == first.kind == "an index":
            self._faults.add(diag.IndexRebound(span=name.span, other=first.span))
            return
        self._faults.add(
            diag.NameClash(
                span=name.span, other=first.span, wanted=wanted, taken=first.kind
            )
        )


def is_dim(symbol: Symbol | None) -> TypeGuard[ValueSymbol]:
    """Whether the meaning is a dim."""
    return isinstance(symbol, ValueSymbol) and isinstance(symbol.value, DimValue)


def is_whole_tensor(symbol: Symbol | None) -> TypeGuard[TensorSymbol]:
    """Whether the meaning is a tensor with axes, of which a bare name is the whole."""
    return isinstance(symbol, TensorSymbol) and symbol.tensor.rank > 0


def ends_axis(symbol: Symbol | None, extent: Extent) -> bool:
    """Whether the meaning is the dim of this axis: as a subscript, one past the last element.

    For an axis of another length, the dim is an ordinary number.
    """
    return is_dim(symbol) and symbol.value == DimValue(str(extent))


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

"""The environment of an item: the state that all checks of it share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias, assert_never, final

from kerngen.check import faults as diag
from kerngen.check.expressions.literals import UntypedLiterals
from kerngen.check.model import Model
from kerngen.check.traverse import Read, walk_syntax
from kerngen.ir import nodes as ir
from kerngen.ir.analysis.requirements import Known
from kerngen.ir.memory import FixedArray, Leaf, MemoryType, Struct
from kerngen.ir.types import Matrix, Scalar, ValueType, Vector
from kerngen.ir.walk import subscript_value
from kerngen.source.diagnostic import Diagnostic, Faults
from kerngen.source.text import Span
from kerngen.syntax import ast


@final
@dataclass(frozen=True, slots=True)
class FormalParameter:
    """A parameter of a function; its type is None where it was faulty."""

    name: str
    type: ValueType | None
    span: Span


@final
@dataclass(frozen=True, slots=True)
class Signature:
    """A function's signature, against which its calls are checked."""

    name: str
    parameters: tuple[FormalParameter, ...]
    result: ValueType | None
    span: Span


Signatures: TypeAlias = dict[str, Signature]

Parts: TypeAlias = frozenset[str]
"""Names of the parts of an element, its scalars and matrices: `.pos.x`, `.trail[0]`."""


@final
@dataclass
class CurrentStatement:
    """The statement that is being checked: number `place` of `body`.

    `body` is empty where no statement is checked, as in a function or constant.  `reads` is
    a cache of the reads of the whole body, by name.
    """

    body: tuple[ast.Equation, ...] = ()
    place: int = 0
    reads: dict[str, list[Read]] | None = None

    def begin(self, body: tuple[ast.Equation, ...], place: int) -> None:
        """Make statement `place` of a body the current one."""
        self.body = body
        self.place = place

    @property
    def target(self) -> str:
        """The name of the tensor or let that the statement writes; "" outside of one."""
        return self.body[self.place].name.name if self.body else ""

    @property
    def in_let(self) -> bool:
        """Whether the statement is a let."""
        return bool(self.body) and isinstance(self.body[self.place], ast.LetStatement)

    def binds(self, name: str, before: Span) -> bool:
        """Whether a reduction of the statement that begins before a span has this index."""
        return bool(self.body) and any(
            isinstance(part, ast.Reduction)
            and part.span.start < before.start
            and any(binder.name.name == name for binder in part.binders)
            for part in walk_syntax(self.body[self.place].value)
        )

    def covers(self, span: Span) -> bool:
        """Whether a span lies within the statement."""
        return bool(self.body) and self.body[self.place].span.covers(span)


_NONE: Final[frozenset[str]] = frozenset()


@final
@dataclass
class Copied:
    """A count of the values that a file's copies of structs move; `MOST_COPIED` limits it."""

    values: int = 0


@final
@dataclass(frozen=True)
class Environment:
    """The state of checking one kernel, function or constant.

    Of the file:

    - `functions`: the signatures of all functions; `bodies`: the functions that are checked
    - `structs`: the structs in scope; None for a faulty one
    - `copied`, `warnings`, `model`: shared by all items of the file

    Of the item:

    - `tensors`: parameters and outputs; `derived`: the lengths that the host computes
    - `known`: the facts that the kernel's `require`s prove
    - `identifiers`: all names in the text

    Of the statements so far:

    - `hosts`: the values of hosts; `lets`: the indices and values of the lets that are
      arithmetic on indices and scalars
    - `written`: the tensors that are written; `parts`: the written parts of outputs' elements
    - `indices`: where each index was first declared; `later`: where the lets and hosts of
      later statements are
    - `reported`: the names and reads that are reported, and get no second report
    - `untyped`: a cache of the types that literals may take
    """

    faults: Faults
    functions: Signatures
    later: dict[str, Span] = field(default_factory=dict[str, Span])
    written: set[str] = field(default_factory=set[str])
    tensors: list[ir.Tensor] = field(default_factory=list[ir.Tensor])
    derived: list[ir.DerivedDim] = field(default_factory=list[ir.DerivedDim])
    known: Known = field(default_factory=Known)
    hosts: dict[str, ir.Expr] = field(default_factory=dict[str, ir.Expr])
    identifiers: frozenset[str] = frozenset()
    indices: dict[str, Span] = field(default_factory=dict[str, Span])
    reported: set[str] = field(default_factory=set[str])
    current: CurrentStatement = field(default_factory=CurrentStatement)
    lets: dict[str, tuple[tuple[ir.Index, ...], ir.Expr]] = field(
        default_factory=dict[str, tuple[tuple[ir.Index, ...], ir.Expr]]
    )
    structs: Mapping[str, Struct | None] = field(
        default_factory=dict[str, "Struct | None"]
    )
    bodies: dict[str, ir.Function] = field(default_factory=dict[str, ir.Function])
    parts: dict[str, Parts] = field(default_factory=dict[str, Parts])
    untyped: UntypedLiterals = field(default_factory=UntypedLiterals)
    copied: Copied = field(default_factory=Copied)
    warnings: Faults = field(default_factory=Faults)
    model: Model = field(default_factory=Model)

    def begin(
        self, later: dict[str, Span] | None = None, identifiers: frozenset[str] = _NONE
    ) -> Environment:
        """Return an environment for another item of the same file."""
        return Environment(
            self.faults,
            self.functions,
            {} if later is None else later,
            identifiers=identifiers,
            structs=self.structs,
            bodies=self.bodies,
            copied=self.copied,
            warnings=self.warnings,
            model=self.model,
        )

    def unwritten(
        self,
        tensor: ir.Tensor,
        memory: MemoryType,
        path: ir.Path = (),
        component: str = "",
    ) -> Parts:
        """Return the parts that `path` leads to and that no statement has written yet.

        A part that a faulty statement writes counts as written.
        """
        if tensor.role is not ir.Role.OUTPUT:
            return frozenset()
        if tensor.name in self.written and tensor.name not in self.parts:
            return frozenset()
        parts = parts_of(memory, path, component)
        return parts - self.parts.get(tensor.name, frozenset())

    def mark_written(self, tensor: ir.Tensor, parts: Parts) -> None:
        """Mark these parts of a tensor's elements as written."""
        self.written.add(tensor.name)
        self.parts[tensor.name] = self.parts.get(tensor.name, frozenset()) | parts

    def length_text(self, extent: ir.Extent) -> str:
        """Return the text of an axis length, as the user wrote it."""
        texts = (dim.text for dim in self.derived if dim.name == extent)
        return next(texts, str(extent))

    @property
    def unranged(self) -> dict[str, Diagnostic]:
        """This statement's indices without a known range, each with its diagnostic."""
        # The latest faults come first; those of earlier statements end the search.
        found: dict[str, Diagnostic] = {}
        for fault in self.faults.latest():
            if not self.current.covers(fault.span):
                break
            if isinstance(fault, diag.RangeNotFound):
                found.update(dict.fromkeys(fault.names, fault))
        return found

    def drop_range_fault(self, name: str) -> None:
        """Drop the diagnostic of an index without a range: another one explains it."""
        if fault := self.unranged.get(name):
            self.faults.drop(lambda other: other is fault)


# Parts of elements

MOST_APART: Final = 8
"""Up to this length, each element of a fixed array is a part of its own.

A longer array is a single part, which counts as written as soon as one element is.  That is
enough, as so many elements are written by an index, not one by one.
"""


def parts_of(memory: MemoryType, path: ir.Path, component: str = "") -> Parts:
    """Return the names of the parts that a read or write at a path touches.

    An index in the path ranges over all elements of a fixed array: `.trail[j]` of `f32[2]`
    is `.trail[0]` and `.trail[1]`.
    """
    prefixes = [""]
    for step in path:
        match step:
            case ir.Field(name):
                prefixes = [f"{prefix}.{name}" for prefix in prefixes]
            case ir.At(place=place, length=length):
                value = subscript_value(place)
                at = _elements(length)
                if isinstance(value, ir.Constant) and len(at) > 1:
                    at = [f"[{value.value}]"]
                prefixes = [
                    f"{prefix}{element}" for prefix in prefixes for element in at
                ]
            case _:
                assert_never(step)
    if component:
        return frozenset(f"{prefix}.{component}" for prefix in prefixes)
    return frozenset(f"{p}{part}" for p in prefixes for part in all_parts(memory))


def _elements(length: int) -> list[str]:
    """Return the names of an array's elements as parts: `[0]`, `[1]`, or `[...]` for all."""
    return [f"[{n}]" for n in range(length)] if length <= MOST_APART else ["[...]"]


def all_parts(memory: MemoryType) -> Iterator[str]:
    """Yield every part of an element, in order."""
    match memory:
        case Leaf(type=Vector(width=width)):
            yield from (f".{letter}" for letter in "xyzw"[:width])
        case Leaf(type=Scalar() | Matrix()):
            yield ""
        case FixedArray(element=element, length=length):
            inner = tuple(all_parts(element))
            yield from (f"{at}{part}" for at in _elements(length) for part in inner)
        case Struct(members=members):
            for member in members:
                yield from (f".{member.name}{part}" for part in all_parts(member.type))
        case Leaf():
            raise AssertionError(memory)
        case _:
            assert_never(memory)

"""The model of a file: the type of each expression, and what each name means.

    kernel scale(x: f32[n], alpha: f32) -> y: f32[n] { y[i] = alpha * x[i]; }
                                                              ^^^^^ 'f32', a scalar
                                                                      ^ an input 'f32[n]'
                                                                        ^ an index below n

Whatever explains a text to its reader asks it: a hint on a name, a list of its uses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never, final

from kerngen.check.scope import (
    IndexSymbol,
    ParameterSymbol,
    Poison,
    Scope,
    Symbol,
    TensorSymbol,
    ValueSymbol,
)
from kerngen.ir.nodes import Expr, Extent
from kerngen.ir.types import ValueType
from kerngen.source.text import Span
from kerngen.syntax import ast

_At: TypeAlias = tuple[int, int]
"""Where an expression begins and ends in its file."""


@final
@dataclass(frozen=True, slots=True)
class Meaning:
    """What is known of a name or another expression at one place.

    A tensor's type has its shape, as in `f32[m, n]`; `extent` is the range of an index.
    """

    start: int
    end: int
    type: str
    kind: str = ""
    extent: Extent | None = None
    definition: Span | None = None


@final
@dataclass(frozen=True)
class Model:
    """What the checker found out about the expressions of a file, while it judged them."""

    _types: dict[_At, ValueType] = field(default_factory=dict[_At, ValueType])
    _names: dict[_At, Symbol] = field(default_factory=dict[_At, Symbol])
    _called: dict[_At, Meaning] = field(default_factory=dict[_At, "Meaning"])

    def add(self, scope: Scope, node: ast.Expr, value: Expr | None) -> None:
        """Keep the type of an expression, and what the names in it mean."""
        if value is not None:
            self._types[node.span.start, node.span.end] = value.type
        if isinstance(node, ast.Name):
            self._name(scope, node)
        elif isinstance(node, ast.Subscript):
            for part in (node.base, *node.subscripts):
                if isinstance(part, ast.Name):
                    self._name(scope, part)

    def _name(self, scope: Scope, node: ast.Name) -> None:
        if (symbol := scope.get(node.name)) is not None:
            self.define(node.span, symbol)

    def define(self, span: Span, symbol: Symbol) -> None:
        """Keep what the name at a place means."""
        self._names[span.start, span.end] = symbol

    def call(self, span: Span, result: ValueType, definition: Span) -> None:
        """Keep which function the name at a place calls."""
        at = span.start, span.end
        self._called[at] = Meaning(*at, result.spelling, "a function", None, definition)

    def __iter__(self) -> Iterator[Meaning]:
        """Yield what is known, in the order of the text."""
        for at in sorted({*self._types, *self._names, *self._called}):
            if at in self._called:
                yield self._called[at]
                continue
            symbol, type_ = self._names.get(at), self._types.get(at)
            if symbol is not None and not isinstance(symbol, Poison):
                yield _meaning(at, symbol)
            elif type_ is not None:
                yield Meaning(*at, type_.spelling)

    def at(self, offset: int) -> Meaning | None:
        """Return what is known of the smallest expression around a character."""
        around = (each for each in self if each.start <= offset < each.end)
        return min(around, key=lambda each: each.end - each.start, default=None)

    def uses(self, definition: Span) -> list[Meaning]:
        """Return the places of a name, that of its definition first."""
        return [each for each in self if each.definition == definition]


def _meaning(at: _At, symbol: Symbol) -> Meaning:
    kind, span = symbol.kind, symbol.span
    match symbol:
        case ValueSymbol(value=value):
            return Meaning(*at, value.type.spelling, kind, definition=span)
        case TensorSymbol(tensor=tensor):
            axes = ", ".join(map(str, tensor.extents))
            type_ = f"{tensor.memory.spelling}[{axes}]"
            return Meaning(*at, type_, kind, definition=span)
        case ParameterSymbol(memory=memory):
            return Meaning(*at, memory.spelling, kind, definition=span)
        case IndexSymbol(index=index):
            return Meaning(*at, "i32", kind, index.extent, span)
        case Poison():
            raise AssertionError("it means nothing")
        case _:
            assert_never(symbol)

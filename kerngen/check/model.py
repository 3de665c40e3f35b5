"""The semantic model of a file: the value and meaning of every expression.

    kernel scale(x: f32[n], alpha: f32) -> y: f32[n] { y[i] = alpha * x[i]; }
                                                              ^^^^^ 'f32', a scalar
                                                                      ^ an input 'f32[n]'
                                                                        ^ an index below n

An editor's hover and its list of uses ask the model, and so do hints of the checker that need
the typed form of an expression.
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
"""The start and end offset of an expression in its file."""


@final
@dataclass(frozen=True, slots=True)
class Meaning:
    """The type and meaning of an expression at one span.

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
    """The values and meanings of a file's expressions, by their spans."""

    _values: dict[_At, Expr] = field(default_factory=dict[_At, Expr])
    _names: dict[_At, Symbol] = field(default_factory=dict[_At, Symbol])
    _called: dict[_At, Meaning] = field(default_factory=dict[_At, "Meaning"])

    def add(self, scope: Scope, node: ast.Expr, value: Expr | None) -> None:
        """Record the value of an expression, and the meanings of the names in it."""
        at = node.span.start, node.span.end
        if value is not None:
            self._values[at] = value
        else:  # It may have had one in a trial.
            self._values.pop(at, None)
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
        """Record the meaning of a name where it is declared."""
        self._names[span.start, span.end] = symbol

    def value(self, node: ast.Expr) -> Expr | None:
        """Return the value of an expression that is checked; None if it is faulty."""
        return self._values.get((node.span.start, node.span.end))

    def call(self, span: Span, result: ValueType, definition: Span) -> None:
        """Record which function a name calls."""
        at = span.start, span.end
        self._called[at] = Meaning(*at, result.spelling, "a function", None, definition)

    def __iter__(self) -> Iterator[Meaning]:
        """Yield all meanings, in the order of the text."""
        for at in sorted({*self._values, *self._names, *self._called}):
            if at in self._called:
                yield self._called[at]
                continue
            symbol, value = self._names.get(at), self._values.get(at)
            if symbol is not None and not isinstance(symbol, Poison):
                yield _meaning(at, symbol)
            elif value is not None:
                yield Meaning(*at, value.type.spelling)

    def at(self, offset: int) -> Meaning | None:
        """Return the meaning of the smallest expression around an offset."""
        around = (each for each in self if each.start <= offset < each.end)
        return min(around, key=lambda each: each.end - each.start, default=None)

    def uses(self, definition: Span) -> list[Meaning]:
        """Return the declaration of a name and its uses, in the order of the text."""
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

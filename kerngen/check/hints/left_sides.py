"""Hints for left sides with a subscript that is no index: the statement that was meant.

For `y[0] = a;` that is `y[i] = if i == 0 { a } else { y[i] };`, and for a scatter,
`y[ids[i]] += x[i];`, the gather `y[j] = sum[i when ids[i] == j] x[i];`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

from kerngen.check import faults as diag
from kerngen.check.environment import Environment, parts_of
from kerngen.check.hints.subscripts import example_read, free_names
from kerngen.check.scope import (
    Scope,
    Symbol,
    TensorSymbol,
    ValueSymbol,
    is_whole_tensor,
)
from kerngen.check.traverse import bare_subscripts, names_in, walk_syntax
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.geometry import GEOMETRY
from kerngen.ir.memory import FixedArray, Leaf, MemoryType, Struct
from kerngen.ir.nodes import At, Field, Index, IndexValue, Path, Role, Step, Tensor
from kerngen.ir.types import CASTS, COMPOSITES, Scalar, ValueType, Vector, scalar_of
from kerngen.source.text import Span
from kerngen.syntax import ast

_LONGEST_TEXT: Final = 80
"""A longer expression of the user is `...` in a hint."""

_NO_INDEX: Final = "Give the index a name of its own."

_GATHERED: Final[dict[ast.AssignOp, tuple[ast.ReduceKind, str]]] = {
    "=": ("sum", "0"),
    "+=": ("sum", "0"),
    "-=": ("sum", "0"),
    "*=": ("prod", "1"),
    "/=": ("prod", "1"),
}
"""The reduction that a scatter becomes, by its assignment operator, with the neutral value."""


@final
@dataclass(frozen=True)
class FaultyLeftSide:
    """The left side of a statement, in which some subscript is no new index."""

    env: Environment
    scope: Scope
    node: ast.Assignment
    symbol: TensorSymbol | None

    @cached_property
    def indices(self) -> list[str]:
        """The index to write in the place of each subscript: its own name, or a free one."""
        words = {n.name for n in names_in(self.node.target, self.node.value)}
        free = free_names(self.env, self.scope, words)
        found: list[str] = []
        for subscript in self.node.subscripts:
            name = subscript.name if isinstance(subscript, ast.Name) else ""
            is_new = name and name not in found and self.scope.get(name) is None
            found.append(name if is_new else next(free))
        return found

    @property
    def _written(self) -> str:
        element = f"{self.node.name.name}[{', '.join(self.indices)}]"
        if self.symbol is None:
            return f"{element}{_members(self.node)}"
        return f"{element}{self._part.text if self._part else ''}"

    @cached_property
    def _part(self) -> _Part | None:
        return _part(self.node, self.symbol.tensor) if self.symbol else None

    def report(self, subscript: ast.Expr) -> None:
        """Report a subscript that is not an index."""
        what, remedy = self._describe(subscript)
        known, span = self.scope.of(subscript), subscript.span
        declared = known.span if known else None
        self.env.faults.add(
            diag.LeftSubscript(span=span, declared=declared, what=what, remedy=remedy)
        )

    def report_repeated(self, name: ast.Name) -> None:
        """Report an index that is on the left twice."""
        first = next(s for s in self.node.subscripts if s == name)
        self.env.faults.add(
            diag.RepeatedLeftIndex(
                span=name.span, other=first.span, remedy=self._chosen()
            )
        )

    def _describe(self, subscript: ast.Expr) -> tuple[str, str]:
        """Return the kind of a subscript, and the statement to write instead."""
        moving = self._moving(subscript)
        reads = [s.base for s in walk_syntax(subscript) if isinstance(s, ast.Subscript)]
        if isinstance(subscript, ast.Binary) and subscript.op in ast.TRUTHS:
            bare = (
                isinstance(subscript.left, ast.Name) and subscript.left.name in moving
            )
            remedy = "An index on the left ranges over its whole axis."
            return "a condition", remedy if bare else self._chosen("c")
        if reads:
            what = f"read from '{reads[0].span.one_line()}'"
            return what, self._gathered(moving) if moving else self._chosen()
        if isinstance(subscript, ast.Name):
            known = self.scope.get(subscript.name)
            is_scalar = isinstance(known, TensorSymbol) and not is_whole_tensor(known)
            is_number = isinstance(known, ValueSymbol) or is_scalar
            remedy = self._chosen() if is_number else _NO_INDEX
            return known.kind if known else "a value", remedy
        if isinstance(subscript, ast.Number):
            return "a constant", self._chosen()
        if not moving:
            return "an expression", self._chosen()
        where = "compute on the right"
        if "*" in subscript.span.one_line():
            where = "use '/' and '%' of the index on the right"
        return "an expression", f"Write '{self._written} = ...', and {where}."

    def _moving(self, subscript: ast.Expr) -> list[str]:
        """Return the new names in a subscript that are no bare index on the left."""
        names = (name.name for name in names_in(subscript))
        new = [name for name in names if self.scope.get(name) is None]
        return [name for name in dict.fromkeys(new) if name not in self.indices]

    # The statement to write instead

    def _chosen(self, condition: str = "") -> str:
        """Return the hint to write every element, with an `if` on the right.

        Of `y[0] = a;` that is `y[i] = if i == 0 { a } else { y[i] };`.  `condition` replaces
        `i == 0` where the subscript is a condition itself.
        """
        picks = condition or self._conditions
        chosen = f"if {picks} {{ {self._value} }} else {{ {self._rest} }}"
        return (
            "A statement writes every element; choose on the right: "
            f"'{self._written} {self.node.op} {chosen};'."
        )

    def _gathered(self, moving: list[str]) -> str:
        """Return the hint that turns a scatter over indices into a gather."""
        op = self.node.op
        kind, _ = _GATHERED[op]
        over = f"[{', '.join(moving)} when {self._keys}]"
        value = f"{kind}{over} {self._factor}"
        if op == "=" and self._is_kept:
            value = f"if (sum{over} 1) > 0 {{ {value} }} else {{ {self._written} }}"
        if op in {"+=", "-="} and self._is_new:
            op = "="
        return f"Turn the scatter into a gather: '{self._written} {op} {value};'."

    @property
    def _places(self) -> Iterator[tuple[str, ast.Expr]]:
        """The indices to write on the left, each with the subscript that is there now."""
        for index, subscript in zip(self.indices, self.node.subscripts, strict=True):
            if not (isinstance(subscript, ast.Name) and subscript.name == index):
                yield index, subscript

    @property
    def _conditions(self) -> str:
        """The condition on the element that was meant: `j == 0`."""
        return " and ".join(f"{i} == {self._as_index(at)}" for i, at in self._places)

    @property
    def _keys(self) -> str:
        """The condition on the terms that belong to an element: `ids[i] == u32(j)`."""
        return " and ".join(
            (
                f"{subscript.span.one_line(limit=_LONGEST_TEXT)} == u32({index})"
                if self._types(subscript) == {Scalar.U32}
                else f"{self._as_index(subscript)} == {index}"
            )
            for index, subscript in self._places
        )

    def _as_index(self, subscript: ast.Expr) -> str:
        """Return the text of a subscript, as the i32 that an index is."""
        text = subscript.span.one_line(limit=_LONGEST_TEXT)
        return text if self._types(subscript) <= {Scalar.I32} else f"i32({text})"

    def _types(self, subscript: ast.Expr) -> set[ValueType | Struct]:
        """Return the types of the names in a subscript that are no new indices."""
        symbols = map(self.scope.of, names_in(subscript))
        return {_type_of(symbol) for symbol in symbols if symbol}

    @property
    def _value(self) -> str:
        return self.node.value.span.one_line(limit=_LONGEST_TEXT)

    @property
    def _factor(self) -> str:
        """The value as the body of a reduction: in parentheses unless it is a product."""
        value = self.node.value
        is_open = isinstance(value, ast.Binary) and value.op != "*"
        return f"({self._value})" if is_open else self._value

    @property
    def _rest(self) -> str:
        if self.node.op == "=" and self._is_kept:
            return self._written
        number = _GATHERED[self.node.op][1]
        memory = self._part.memory if self._part else Leaf(Scalar.F32)
        if not isinstance(memory, Leaf):
            return "..."
        number += ".0" * (scalar_of(memory.type) is Scalar.F32)
        is_number = isinstance(memory.type, Scalar)
        return number if is_number else f"{memory.type.spelling}({number})"

    @property
    def _is_new(self) -> bool:
        """Whether nothing of the part was written before."""
        if self.symbol is None or self._part is None:
            return False
        part, tensor = self._part, self.symbol.tensor
        if tensor.role is not Role.OUTPUT:
            return False
        parts = parts_of(part.memory, part.path, part.component)
        return parts <= self.env.unwritten(
            tensor, part.memory, part.path, part.component
        )

    @property
    def _is_kept(self) -> bool:
        return self.symbol is not None and not self._is_new


def _type_of(symbol: Symbol | None) -> ValueType | Struct:
    match symbol:
        case ValueSymbol(value=value):
            return value.type
        case TensorSymbol(tensor=tensor):
            return tensor.element
        case _:
            return Scalar.I32


def free_indices(scope: Scope, node: ast.Assignment) -> tuple[str, ...]:
    """Return the names on the right that are used as indices but not declared."""
    known: set[str] = set()
    for part in walk_syntax(node.value):
        if isinstance(part, ast.Reduction):
            known.update(binder.name.name for binder in part.binders)
    names = (part.name for _, _, part in bare_subscripts(node.value))
    found = dict.fromkeys(name for name in names if scope.get(name) is None)
    return tuple(name for name in found if name not in known)


def as_sum(scope: Scope, node: ast.Assignment) -> str:
    """Return the hint to write a `sum`, for a `+=` that was meant as a loop, else ""."""
    left = {part.name for part in names_in(node.target)}
    free = [name for name in free_indices(scope, node) if name not in left]
    if node.op != "+=" or not free:
        return ""
    symbol = scope.get(node.name.name)
    is_output = isinstance(symbol, TensorSymbol) and symbol.tensor.role is Role.OUTPUT
    value = node.value.span.one_line(limit=_LONGEST_TEXT)
    if isinstance(node.value, ast.Binary) and node.value.op != "*":
        value = f"({value})"
    written = f"{'' if is_output else 'let '}{node.target.span.one_line()}"
    return f"To add up, write '{written} = sum[{', '.join(free)}] {value};'."


def elementwise(
    env: Environment, scope: Scope, node: ast.Assignment, symbol: TensorSymbol
) -> str:
    """Return a statement about whole tensors, rewritten for their elements."""
    example = example_read(env, scope, symbol.tensor)
    subscripts = example.removeprefix(symbol.tensor.name)
    if named := _part(node, symbol.tensor):
        example += named.text
    start, source = node.value.span.start, node.span.source.text
    text = source[start : node.value.span.end]
    if node.subscripts or len(text) > _LONGEST_TEXT or "\n" in text:
        return example
    parts = [*walk_syntax(node.value)]
    if any(_is_no_element(env, scope, part) for part in parts):
        return f"{example} {node.op} ...;"
    read = [part.base for part in parts if isinstance(part, ast.Subscript)]
    for part in reversed(parts):
        whole = scope.of(part)
        if not isinstance(whole, TensorSymbol) or any(part is base for base in read):
            continue
        if whole.tensor.rank == symbol.tensor.rank:
            at = part.span.end - start
            text = f"{text[:at]}{subscripts}{text[at:]}"
    return f"{example} {node.op} {text};"


@final
@dataclass(frozen=True, slots=True)
class _Part:
    """The part of an element that a left side names: `.pos.x`, or "" for all of it."""

    text: str
    memory: MemoryType
    path: Path
    component: str = ""


def _part(node: ast.Assignment, tensor: Tensor) -> _Part | None:
    """Return the part of an element that a left side names, if it has one."""
    chain = ast.chain_of(node.target)
    memory: MemoryType = tensor.memory
    path, component = list[Step](), ""
    for step in chain[chain.index(node.element) + 1 :]:
        match step, memory:
            case ast.Member(member=name), Struct() if found := memory.member(name.name):
                memory = found.type
                path.append(Field(name.name))
            case ast.Member(member=name), Leaf(type=Vector(scalar, width)) if (
                name.name in [*"xyzw"[:width]] and not component
            ):
                memory, component = Leaf(scalar), name.name
            case ast.Subscript(), FixedArray() as array:
                for length in array.lengths:
                    path.append(At(IndexValue(Index("", length)), length))
                memory = array.innermost
            case _:
                return None
    return _Part(_members(node), memory, tuple(path), component)


def _members(node: ast.Assignment) -> str:
    """Return the members of a left side, as they are written."""
    element, target = node.element.span, node.target.span
    return Span(target.source, element.end, target.end).one_line()


def _is_no_element(env: Environment, scope: Scope, part: ast.Expr) -> bool:
    """Whether a part can't be rewritten for one element: `x.T`, or `zeros(n)`."""
    match part:
        case ast.Member(base=ast.Name(name=name)):
            return isinstance(scope.get(name), TensorSymbol)
        case ast.Call(function=function):
            known = {*env.functions, *BUILTINS, *GEOMETRY, *CASTS, *COMPOSITES}
            return function.name not in known
        case _:
            return False

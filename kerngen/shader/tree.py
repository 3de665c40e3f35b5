"""A syntax tree of WGSL's expressions and statements, as far as schedules need them.

Expressions overload Python's operators, so that `row * k + column` is the tree of that sum.
Python ints become u32 literals, as all addresses are u32: `lane // 4` is `lane >> 2u`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias, final


class Expr:
    """The base of all expressions."""

    __slots__ = ()

    def __add__(self, other: Operand) -> Expr:
        return add(self, lift(other))

    def __radd__(self, other: Operand) -> Expr:
        return add(lift(other), self)

    def __sub__(self, other: Operand) -> Expr:
        return Binary("-", self, lift(other))

    def __mul__(self, other: Operand) -> Expr:
        return multiply(self, lift(other))

    def __rmul__(self, other: Operand) -> Expr:
        return multiply(lift(other), self)

    def __floordiv__(self, other: Operand) -> Expr:
        return divide(self, lift(other))

    def __mod__(self, other: Operand) -> Expr:
        return modulo(self, lift(other))

    def __lt__(self, other: Operand) -> Expr:
        return Binary("<", self, lift(other))

    def __gt__(self, other: Operand) -> Expr:
        return Binary(">", self, lift(other))

    def __ge__(self, other: Operand) -> Expr:
        return Binary(">=", self, lift(other))

    def __getitem__(self, index: Operand) -> Expr:
        return Element(self, lift(index))

    def member(self, name: str) -> Expr:
        """Return the member access `self.name`."""
        return Member(self, name)

    def equals(self, other: Operand) -> Expr:
        """Return the comparison `self == other` of the shader."""
        return Binary("==", self, lift(other))


Operand: TypeAlias = Expr | int
"""An expression, or a Python int that becomes a u32 literal."""


@final
@dataclass(frozen=True, slots=True)
class Ident(Expr):
    """A name used as an expression."""

    name: str


@final
@dataclass(frozen=True, slots=True)
class Literal(Expr):
    """A literal, as its text."""

    text: str


@final
@dataclass(frozen=True, slots=True)
class Unary(Expr):
    """A unary operator: `op operand`."""

    op: str
    operand: Expr


@final
@dataclass(frozen=True, slots=True)
class Binary(Expr):
    """A binary operator: `left op right`."""

    op: str
    left: Expr
    right: Expr


@final
@dataclass(frozen=True, slots=True)
class Call(Expr):
    """A call of a function or a value constructor."""

    function: str
    arguments: tuple[Expr, ...]


@final
@dataclass(frozen=True, slots=True)
class Template(Expr):
    """A call that is printed by a format template of a built-in's row.

    That of `tanh` is `tanh(clamp({0}, {T}(-15.0), {T}(15.0)))`: `{0}` is the first argument,
    and `{T}` is `type`, f32 or vec4f.
    """

    template: str
    arguments: tuple[Expr, ...]
    type: str


@final
@dataclass(frozen=True, slots=True)
class Element(Expr):
    """An element: `base[index]`."""

    base: Expr
    index: Expr


@final
@dataclass(frozen=True, slots=True)
class Member(Expr):
    """A member: `base.name`."""

    base: Expr
    name: str


@lru_cache(maxsize=4096)
def u32(value: int) -> Expr:
    """Return a u32 literal."""
    return Literal(f"{value}u")


def lift(value: Operand) -> Expr:
    """Return an unsigned Python int as a literal; an expression stays as it is."""
    return u32(value) if isinstance(value, int) else value


def call(function: str, *arguments: Operand) -> Expr:
    """Return the call `function(arguments)`."""
    return Call(function, tuple(lift(argument) for argument in arguments))


def all_of(first: Expr, *others: Expr) -> Expr:
    """Return `first && others && ...`."""
    result = first
    for other in others:
        result = Binary("&&", result, other)
    return result


def any_of(first: Expr, *others: Expr) -> Expr:
    """Return `first || others || ...`."""
    result = first
    for other in others:
        result = Binary("||", result, other)
    return result


ZERO = u32(0)
"""The literal `0u`."""

ONE = u32(1)
"""The literal `1u`."""


def as_int(expr: Expr) -> int | None:
    """Return the value of an expression that is a u32 literal, or None for others."""
    return _u32_of(expr.text) if isinstance(expr, Literal) else None


@lru_cache(maxsize=4096)
def _u32_of(text: str) -> int | None:
    return int(text[:-1]) if text.endswith("u") else None


def add(left: Expr, right: Expr) -> Expr:
    """Return `left + right`, without additions of zero."""
    match as_int(left), as_int(right):
        case int(a), int(b):
            return u32(a + b)
        case 0, _:
            return right
        case _, 0:
            return left
        case _:
            return Binary("+", left, right)


def multiply(left: Expr, right: Expr) -> Expr:
    """Return `left * right`, without multiplications by zero or one."""
    match as_int(left), as_int(right):
        case int(a), int(b):
            return u32(a * b)
        case (0, _) | (_, 0):
            return ZERO
        case 1, _:
            return right
        case _, 1:
            return left
        case _:
            return Binary("*", left, right)


def divide(left: Expr, right: Expr) -> Expr:
    """Return `left / right`, or a shift where `right` is a literal power of two.

    naga writes a division as a call of a function that tests for zero.
    """
    match as_int(left), as_int(right):
        case int(a), int(b):
            return u32(a // b)
        case _, 1:
            return left
        case _, int(b) if b & (b - 1) == 0:
            return _shift_right(left, b.bit_length() - 1)
        case _:
            return Binary("/", left, right)


def modulo(left: Expr, right: Expr) -> Expr:
    """Return `left % right`, or a mask where `right` is a literal power of two."""
    match as_int(left), as_int(right):
        case int(a), int(b):
            return u32(a % b)
        case _, 1:
            return ZERO
        case _, int(b) if b & (b - 1) == 0:
            return _mask(left, b - 1)
        case _:
            return Binary("%", left, right)


def _shift_right(left: Expr, count: int) -> Expr:
    """Return `left >> count`; of two shifts by literals, one by their sum."""
    match left:
        case Binary(">>", inner, Literal() as before) if as_int(before) is not None:
            return Binary(">>", inner, add(before, u32(count)))
        case _:
            return Binary(">>", left, u32(count))


def _mask(left: Expr, bits: int) -> Expr:
    """Return `left & bits`, where `bits` is 2^n - 1; of two such masks, the narrower one."""
    match left:
        case Binary("&", inner, Literal() as before):
            width = as_int(before)
            if width is not None and width & (width + 1) == 0:
                return Binary("&", inner, u32(min(width, bits)))
        case _:
            pass
    return Binary("&", left, u32(bits))


# Statements


@final
@dataclass(frozen=True, slots=True)
class Let:
    """A `let` statement: `let name = value;`."""

    name: str
    value: Expr


@final
@dataclass(frozen=True, slots=True)
class Var:
    """A variable: `var name = value;`, or `var name: type;`, which WGSL sets to zero."""

    name: str
    value: Expr | None = None
    type: str = ""


@final
@dataclass(frozen=True, slots=True)
class Assign:
    """An assignment, `target op value;`, where `op` is `=`, `+=`, `*=` or the like."""

    target: Expr
    value: Expr
    op: str = "="


@final
@dataclass(frozen=True, slots=True)
class If:
    """An `if` statement: `if (condition) { then }`."""

    condition: Expr
    then: tuple[Stmt, ...]


@final
@dataclass(frozen=True, slots=True)
class Switch:
    """A `switch` that assigns one of several values, which are numbered from 0.

    Example: `switch number { case 0u: { total = a; } default: { total = b; } }`.
    """

    target: Expr
    selector: Expr
    values: tuple[Expr, ...]


@final
@dataclass(frozen=True, slots=True)
class For:
    """A `for` loop: `for (var name = start; condition; update) { body }`."""

    name: str
    start: Expr
    condition: Expr
    update: Assign
    body: tuple[Stmt, ...]


@final
@dataclass(frozen=True, slots=True)
class Block:
    """A block with a scope of its own: `{  // comment`, then the body."""

    comment: str
    body: tuple[Stmt, ...]


@final
@dataclass(frozen=True, slots=True)
class Evaluate:
    """A call as a statement: `workgroupBarrier();`."""

    call: Expr


@final
@dataclass(frozen=True, slots=True)
class Return:
    """A return statement: `return;` or `return value;`."""

    value: Expr | None = None


@final
@dataclass(frozen=True, slots=True)
class Break:
    """A `break;` statement."""


@final
@dataclass(frozen=True, slots=True)
class Blank:
    """An empty line."""


Stmt: TypeAlias = (
    Let | Var | Assign | If | Switch | For | Block | Evaluate | Return | Break | Blank
)

BARRIER = Evaluate(Call("workgroupBarrier", ()))
"""The statement `workgroupBarrier();`, at which all lanes of a workgroup meet."""


def count_up(name: str, start: Operand, end: Expr, step: Operand, *body: Stmt) -> For:
    """Return the loop `for (var name = start; name < end; name += step) { body }`."""
    counter = Ident(name)
    return For(
        name, lift(start), counter < end, Assign(counter, lift(step), "+="), body
    )

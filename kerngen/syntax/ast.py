"""The abstract syntax tree of a `.kern` file, before any name is looked up.

Nodes are frozen and compare by meaning: spans are left out of equality.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, dataclass_transform, final

from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Span

BinaryOp: TypeAlias = Literal[
    "or", "and", "==", "!=", "<", "<=", ">", ">=",
    "|", "^", "&", "<<", ">>", "+", "-", "*", "/", "%",
]  # fmt: skip
COMPARISONS: Final = frozenset(("==", "!=", "<", "<=", ">", ">="))
LOGIC: Final = frozenset(("and", "or"))
TRUTHS: Final = COMPARISONS | LOGIC
SHIFTS: Final = frozenset(("<<", ">>"))
ON_BITS: Final = frozenset(("&", "|", "^"))
UnaryOp: TypeAlias = Literal["-", "~", "not"]
ReduceKind: TypeAlias = Literal["sum", "prod", "max", "min", "argmax", "argmin"]
AssignOp: TypeAlias = Literal["=", "+=", "-=", "*=", "/="]
DECLARING: Final = frozenset(("let", "host", "const", "struct", "fn", "kernel"))
"""The keywords that a name follows."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
@dataclass(frozen=True)
class Node:
    """A node: a subclass declares its parts, and has a place in the text."""

    span: Span = field(kw_only=True, compare=False, repr=False)

    def __init_subclass__(cls) -> None:
        """Make the subclass a frozen dataclass."""
        dataclass(frozen=True)(cls)


class Identifier(Node):
    """A name with its span, where it is declared or used."""

    name: str


# Expressions


class Number(Node):
    """A literal: `value` is an int for `1`, a float for `1.0` and `1e-8`."""

    value: int | float


class Boolean(Node):
    """`true` or `false`."""

    value: bool


class Name(Node):
    """A bare name: an index, dim, scalar, host, const, rank-0 tensor or local."""

    name: str


Named: TypeAlias = Identifier | Name
"""A name where it is declared: an index on the left of `=` is parsed as an expression."""


class Call(Node):
    """`f(x, y)`: a function, a built-in, or a cast such as `f32(i)`."""

    function: Identifier
    arguments: tuple[Expr, ...]


class Subscript(Node):
    """An element or a part: `x[i, ids[i]]`."""

    base: Expr
    subscripts: tuple[Expr, ...]


class Member(Node):
    """A member or component: `origin.x`."""

    base: Expr
    member: Identifier


class Unary(Node):
    """A unary operator: `-x`, `~x` or `not x`."""

    op: UnaryOp
    operand: Expr


class Binary(Node):
    """A binary operator: `left op right`."""

    left: Expr
    op: BinaryOp
    right: Expr


class Conditional(Node):
    """A choice: `if condition { then } else { otherwise }`."""

    condition: Expr
    then: Expr
    otherwise: Expr


class Binder(Node):
    """An index where it is introduced, with its range if one is given (`u < 2`)."""

    name: Identifier
    bound: Expr | None


class Reduction(Node):
    """`sum[p] body`, or `sum[p when condition] body`, over one or more indices."""

    kind: ReduceKind
    binders: tuple[Binder, ...]
    condition: Expr | None
    body: Expr

    @property
    def terms(self) -> tuple[Expr, ...]:
        """The expressions that can use its indices: the condition if any, and the body."""
        return (self.body,) if self.condition is None else (self.condition, self.body)


Expr: TypeAlias = (
    Number
    | Boolean
    | Name
    | Call
    | Subscript
    | Member
    | Unary
    | Binary
    | Conditional
    | Reduction
)
LValue: TypeAlias = Name | Subscript | Member


def chain_of(expr: Expr) -> tuple[Expr, ...]:
    """Return the expressions that an access consists of, from its name to the whole.

    Of `p[i].pos.x` these are `p`, `p[i]`, `p[i].pos` and `p[i].pos.x`.
    """
    found = [expr]
    while isinstance(expr, Subscript | Member):
        expr = expr.base
        found.insert(0, expr)
    return tuple(found)


# Types and parameters


class TypeName(Node):
    """A type as written: `f32` has no axes, `f32[]` has rank 0, `f32[m, k]` rank 2."""

    name: Identifier
    axes: tuple[Expr, ...] | None


class Parameter(Node):
    """A parameter or output of a kernel, or a parameter of a function."""

    name: Identifier
    type: TypeName
    mutable: bool
    default: Expr | None
    doc: str = ""


# Statements


class LetStatement(Node):
    """`let z[i, j] = value;` (no binders: a rank-0 value)."""

    name: Identifier
    binders: tuple[Binder, ...]
    value: Expr


class HostStatement(Node):
    """A value computed on the host: `host rest1 = 1 - beta1;`."""

    name: Identifier
    value: Expr


class RequireStatement(Node):
    """A condition on calls: `require d % 8 == 0;`."""

    condition: Expr


class Assignment(Node):
    """`c[i, j] = value;` or `p[i].pos.x += value;`: `target` is the place written."""

    target: LValue
    op: AssignOp
    value: Expr

    @property
    def name(self) -> Name:
        """The name of the tensor that is written."""
        root = chain_of(self.target)[0]
        assert isinstance(root, Name), "the grammar has no other lvalue"
        return root

    @property
    def element(self) -> Name | Subscript:
        """The element of the tensor: the target without its members."""
        first = chain_of(self.target)[:2][-1]
        return first if isinstance(first, Subscript) else self.name

    @property
    def subscripts(self) -> tuple[Expr, ...]:
        """The subscripts of the tensor itself, none of an array in its elements."""
        return self.element.subscripts if isinstance(self.element, Subscript) else ()


Equation: TypeAlias = LetStatement | HostStatement | Assignment
Statement: TypeAlias = Equation | RequireStatement


# Items


class UseItem(Node):
    """An import of another file: `use "other.kern";`."""

    path: str


class ConstItem(Node):
    """A constant: `const TWO: f32 = 2.0;`."""

    name: Identifier
    type: TypeName
    value: Expr
    doc: str = ""


class Attribute(Node):
    """`@size(16)` or `@align(8)` before a struct field."""

    name: Identifier
    value: Expr


class StructField(Node):
    """One field of a struct."""

    attributes: tuple[Attribute, ...]
    name: Identifier
    type: TypeName
    doc: str = ""


class StructItem(Node):
    """A struct: `struct P { pos: vec3f, mass: f32 }`."""

    name: Identifier
    fields: tuple[StructField, ...]
    doc: str = ""


class FunctionItem(Node):
    """A function: `fn name(params) -> result { lets body }`."""

    name: Identifier
    parameters: tuple[Parameter, ...]
    result: TypeName
    lets: tuple[LetStatement, ...]
    body: Expr
    doc: str = ""


class KernelItem(Node):
    """A kernel: `kernel name(parameters) -> outputs { body }`."""

    name: Identifier
    parameters: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    body: tuple[Statement, ...]
    doc: str = ""

    @property
    def equations(self) -> tuple[Equation, ...]:
        """The statements that define or write a value, in order."""
        return tuple(s for s in self.body if not isinstance(s, RequireStatement))

    @property
    def requires(self) -> tuple[RequireStatement, ...]:
        """The conditions on a call, in order."""
        return tuple(s for s in self.body if isinstance(s, RequireStatement))


class GradientItem(Node):
    """A derived kernel: `kernel name = gradient of kernel by x given y;`."""

    name: Identifier
    kernel: Identifier
    by: tuple[Identifier, ...]
    given: tuple[Identifier, ...]
    doc: str = ""


class DerivativeItem(Node):
    """A function's derivatives: `derivative of function(parameters) { lets values }`."""

    function: Identifier
    parameters: tuple[Parameter, ...]
    lets: tuple[LetStatement, ...]
    values: tuple[Expr, ...]


class Option(Node):
    """One option of a schedule: `tile(128, 64, 16)`."""

    name: Identifier
    values: tuple[int, ...]


class ScheduleTarget(Node):
    """A target of a schedule: `softmax`, its stage `softmax.top`, or `matmul_*`.

    In the name of a `kernel`, a `*` matches any characters, or none.
    """

    kernel: Identifier
    stage: Identifier | None


class ScheduleItem(Node):
    """A schedule: `schedule target, ... when guard { strategy option(...)* }`."""

    targets: tuple[ScheduleTarget, ...]
    guard: Expr | None
    strategy: Identifier
    options: tuple[Option, ...]


Item: TypeAlias = (
    UseItem
    | ConstItem
    | StructItem
    | FunctionItem
    | DerivativeItem
    | KernelItem
    | GradientItem
    | ScheduleItem
)


@final
@dataclass(frozen=True, slots=True)
class Gap:
    """Text that was skipped because of a syntax error, and what the parser read of it.

    Of `let total = sum[i x[i];` these are the `keyword` let and the `name` total; it did not
    read the text from the offset `unread` on, `x[i];`.  The name is that of an item, or of
    the value or tensor that a statement declares or writes; it is "" if the parser did not
    come so far.
    """

    span: Span
    unread: int
    keyword: str = ""
    name: str = ""

    @property
    def lacks_name(self) -> bool:
        """Whether the keyword of a declaration has no name behind it: `let = 1.0;`."""
        return self.keyword in DECLARING and not self.name

    @property
    def rest(self) -> str:
        """The part of the text that the parser did not read."""
        return self.span.source.text[self.unread : self.span.end]


@final
@dataclass(frozen=True, slots=True)
class Program:
    """A parsed file; parts with syntax errors are left out.

    `faults` are its syntax errors, and `gaps` the parts that were passed over because of them.
    """

    doc: str
    items: tuple[Item, ...]
    faults: tuple[Diagnostic, ...] = field(default=(), repr=False)
    gaps: tuple[Gap, ...] = field(default=(), compare=False, repr=False)

"""The nodes of the typed IR: the checker's result, and the input of every later pass.

Nodes are frozen and hashable, and compare by meaning: documentation, spans and texts do not
count.  An expression is a scalar, a vector or a matrix, and has its `type`.  Names are the
user's; the namer of an output language renames those that are reserved there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Literal, TypeAlias, final, get_args

from kerngen.ir.cached import HashedOnce, hashed_once
from kerngen.ir.memory import FixedArray, Leaf, MemoryType, Struct
from kerngen.ir.recurrence import Recurrence
from kerngen.ir.store import StoreAt
from kerngen.ir.types import Matrix, Scalar, Storage, ValueType, Vector, scalar_of
from kerngen.plan.tree import GradientOf
from kerngen.source.text import Span

Extent: TypeAlias = str | int
"""The length of an axis: the name of a dim, plain or derived, or a literal."""

BinaryOp: TypeAlias = Literal[
    "or", "and", "==", "!=", "<", "<=", ">", ">=",
    "|", "^", "&", "<<", ">>", "+", "-", "*", "/", "%",
]  # fmt: skip
UnaryOp: TypeAlias = Literal["-", "~", "not"]
ReduceKind: TypeAlias = Literal["sum", "prod", "max", "min", "argmax", "argmin"]
REDUCE_KINDS: Final[tuple[ReduceKind, ...]] = get_args(ReduceKind)


@final
class Role(Enum):
    """The role of a tensor in its kernel: input, output, let and so on."""

    INPUT = "input"
    UPDATE = "update"  # a `mut` parameter
    OUTPUT = "output"
    LET = "let"  # a value; becomes a temporary, a local or nothing


@final
@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of a kernel: a parameter, an output or a let.

    - `element`: the type that elements are read as, or a struct, whose members are read
    - `extents`: the lengths of its axes
    - `is_half`, `narrow`: whether f32 is stored as f16, and integers in 8 or 4 bits
    """

    name: str
    element: ValueType | Struct
    extents: tuple[Extent, ...]
    role: Role
    doc: str = field(default="", compare=False, repr=False)
    span: Span | None = field(default=None, compare=False, repr=False)
    is_half: bool = False
    narrow: Storage | None = None

    def __hash__(self) -> int:
        """Return the hash of the name, as passes look tensors up all the time."""
        return hash(self.name)

    @property
    def memory(self) -> Leaf | Struct:
        """The memory type of the elements."""
        if isinstance(self.element, Struct):
            return self.element
        return Leaf(self.element, self.is_half, self.narrow)

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.extents)


@final
@dataclass(frozen=True, slots=True)
class Index:
    """An index and the extent that it ranges over: `0 <= i < extent`."""

    name: str
    extent: Extent


# Expressions


@final
@dataclass(frozen=True, slots=True)
class Constant:
    """A literal value, or `inf`.

    A float is never NaN; if finite, it is the double that was written, and finite in f32.
    """

    value: float | int | bool
    type: Scalar


@final
@dataclass(frozen=True, slots=True)
class ConstRef:
    """A `const` item by name, with its value."""

    name: str
    value: float | int | bool
    type: Scalar


@final
@dataclass(frozen=True, slots=True)
class IndexValue:
    """An index as an i32 value."""

    index: Index

    @property
    def type(self) -> Scalar:
        """Always i32."""
        return Scalar.I32


@final
@dataclass(frozen=True, slots=True)
class DimValue:
    """A dim as an i32 value."""

    name: str

    @property
    def type(self) -> Scalar:
        """Always i32."""
        return Scalar.I32


@final
@dataclass(frozen=True, slots=True)
class UniformValue:
    """The value of a parameter or host, or of a part of a parameter: `camera.pos`."""

    name: str
    type: ValueType
    path: Path = ()


@final
@dataclass(frozen=True, slots=True)
class LocalValue:
    """A value computed once per element: a function's parameter or let, a stage's let."""

    name: str
    type: ValueType


@final
@dataclass(frozen=True, slots=True)
class Affine:
    """A subscript that is affine in the indices, as `2 * i + u`: the host checks its range.

    `text` is the subscript as the user wrote it.
    """

    value: Expr
    text: str = field(default="", compare=False)


@final
@dataclass(frozen=True, slots=True)
class Clamped:
    """Any other subscript, as `ids[t]` or `i / 2`: it is clamped to the axis."""

    value: Expr


Subscript: TypeAlias = IndexValue | Affine | Clamped
"""The subscript of an axis: a bare index, or an expression that is checked or clamped."""


@final
@dataclass(frozen=True, slots=True)
class Field:
    """A step of a path into a struct: `.pos`."""

    name: str


@final
@dataclass(frozen=True, slots=True)
class At:
    """A step of a path into a fixed array, `[j]`; also a `Part`'s component or column."""

    place: Subscript
    length: int


Step: TypeAlias = Field | At
Path: TypeAlias = tuple[Step, ...]
"""How a part of a struct is reached: `.lights[j].color` is a field, a place, a field."""


@final
@hashed_once
@dataclass(frozen=True, slots=True)
class Load(HashedOnce):
    """A read of one element of a tensor, `x[i, j]`, or of a part of it: `balls[i].pos`."""

    tensor: Tensor
    subscripts: tuple[Subscript, ...]
    path: Path = ()

    @property
    def memory(self) -> Leaf:
        """The memory type of the value that is read."""
        leaf = reach(self.tensor.memory, self.path)
        assert isinstance(leaf, Leaf), "structs and arrays are read part by part"
        return leaf

    @property
    def type(self) -> ValueType:
        """The type of the value that is read."""
        return self.memory.type


def reach(type_: MemoryType, path: Path) -> MemoryType:
    """Return the type at the end of a path into a type."""
    for step in path:
        match step, type_:
            case Field(name), Struct():
                member = type_.member(name)
                assert member is not None, f"{type_.name} has no '{name}'"
                type_ = member.type
            case At(), FixedArray(element=element):
                type_ = element
            case _:
                raise AssertionError(f"{step} in a {type_.spelling}")
    return type_


@final
@dataclass(frozen=True, slots=True)
class Swizzle:
    """One component of a vector, or several as a new one: `v.x`, `v.zyx`."""

    operand: Expr
    components: str
    type: Scalar | Vector


@final
@dataclass(frozen=True, slots=True)
class Part:
    """A component of a vector or a column of a matrix, by its number: `v[i]`, `m[0]`."""

    operand: Expr
    at: At
    type: Scalar | Vector


@final
@dataclass(frozen=True, slots=True)
class Construct:
    """A vector or matrix made of its parts in order: `vec4f(v.xyz, 1.0)`.

    A vector of one scalar is that scalar in every component; a matrix is made of
    columns.
    """

    type: Vector | Matrix
    parts: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Computed(HashedOnce):
    """The base of operations, which WGSL computes when it compiles if they are constant.

    - `is_constant`: whether all operands are constant
    - `known`: the value of a constant one, from the first time that a pass asks for it
    """

    is_constant: bool = field(init=False, compare=False, repr=False)
    known: float | None = field(init=False, default=None, compare=False, repr=False)

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions that it computes with, in the order of the source."""
        match self:
            case Unary(operand=operand) | Cast(operand=operand):
                return (operand,)
            case Binary(left=left, right=right):
                return (left, right)
            case Select(condition=condition, then=then, otherwise=otherwise):
                return (condition, then, otherwise)
            case BuiltinCall(arguments=arguments):
                return arguments
            case _:
                raise AssertionError(f"{type(self).__name__} has no operands")

    def __post_init__(self) -> None:
        """Set `is_constant`."""
        object.__setattr__(self, "is_constant", all(map(is_constant, self.operands)))


@final
@hashed_once
@dataclass(frozen=True, slots=True)
class Unary(Computed):
    """A unary operator: `-x`, `~x`, `not x`."""

    op: UnaryOp
    operand: Expr
    type: ValueType


@final
@hashed_once
@dataclass(frozen=True, slots=True)
class Binary(Computed):
    """A binary operation, `left op right`; shifts have a u32 on the right."""

    op: BinaryOp
    left: Expr
    right: Expr
    type: ValueType


@final
@hashed_once
@dataclass(frozen=True, slots=True)
class Select(Computed):
    """A choice between two values: `if condition { then } else { otherwise }`."""

    condition: Expr
    then: Expr
    otherwise: Expr
    type: ValueType


@final
@hashed_once
@dataclass(frozen=True, slots=True)
class Cast(Computed):
    """A conversion to `type` by WGSL's rules: `f32(n)`.

    One that `is_halved` rounds an f32 to f16 and back; such casts are in stages alone.
    """

    operand: Expr
    type: ValueType
    is_halved: bool = False


@final
@hashed_once
@dataclass(frozen=True, slots=True)
class BuiltinCall(Computed):
    """A call of a built-in: a row of `kerngen.ir.builtins.table.BUILTINS`."""

    builtin: str
    arguments: tuple[Expr, ...]
    type: ValueType


@final
@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of one of the user's functions."""

    function: str
    arguments: tuple[Expr, ...]
    type: ValueType


@final
@hashed_once
@dataclass(frozen=True, slots=True)
class Reduce(HashedOnce):
    """A reduction of `body` over `indices`: `sum[j] x[j]`.

    With a `condition`, `sum[j when j <= i] x[j]`, terms for which it is false are not
    evaluated.  An `argmax` has one index, and the value of that index, an i32.
    """

    kind: ReduceKind
    indices: tuple[Index, ...]
    body: Expr
    type: ValueType
    condition: Expr | None = None

    @property
    def finds_place(self) -> bool:
        """Whether the result is a value of the index, as of `argmax` and `argmin`."""
        return self.kind in {"argmax", "argmin"}


Expr: TypeAlias = (
    Constant
    | ConstRef
    | IndexValue
    | DimValue
    | UniformValue
    | LocalValue
    | Load
    | Swizzle
    | Part
    | Construct
    | Unary
    | Binary
    | Select
    | Cast
    | BuiltinCall
    | FunctionCall
    | Reduce
    | StoreAt
)


def is_constant(expr: Expr) -> bool:
    """Whether an expression has literals and `const` items as its only operands.

    WGSL evaluates such an expression when it compiles.
    """
    match expr:
        case Computed():
            return expr.is_constant
        case Construct(parts=parts):
            return all(map(is_constant, parts))
        case Swizzle(operand=operand):
            return is_constant(operand)
        case Part(operand=operand, at=At(place=Affine(place) | Clamped(place))):
            return is_constant(operand) and is_constant(place)
        case _:
            return isinstance(expr, Constant | ConstRef)


# Kernels


@final
@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that is not a tensor: a field of the uniform struct."""

    name: str
    memory: MemoryType
    default: float | int | tuple[float, ...] | None
    doc: str = field(default="", compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class Host:
    """A scalar that the host computes once for each call: `host rest = 1 - beta;`.

    `type` is I32, computed exactly, or F32, computed in double.  In `value` number types
    mix: a `Binary` of mixed types has type F32.  `text` is the user's own.
    """

    name: str
    type: Scalar
    value: Expr
    text: str = field(default="", compare=False, repr=False)


@final
@dataclass(frozen=True)
class Function:
    """One of the user's functions: `lets` in order, then the value, `body`.

    `partials` are the names of the functions that a `derivative of` item declares, one for
    each parameter, and "" for a parameter that is no f32.
    """

    name: str
    parameters: tuple[LocalValue, ...]
    lets: tuple[tuple[LocalValue, Expr], ...]
    body: Expr
    type: ValueType
    doc: str = field(default="", compare=False, repr=False)
    partials: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Statement:
    """A statement: `target[indices] = value` for every value of `indices`, as if at once.

    - `value`: a `StoreAt` if the elements are written at a position
    - `path`, `component`: the part of the element that is written, as in
      `balls[i].pos.x = ...`, if it is not the whole; indices in the path are in `indices`,
      after those of the tensor's axes
    - `along`: the order in which elements are written, of a let that reads itself
    - `text`: the statement as the user wrote it, on one line

    Compound assignments are already expanded: `x[i] += 1` is `x[i] = x[i] + 1`.  A `let` is
    a statement whose target has role LET.
    """

    target: Tensor
    indices: tuple[Index, ...]
    value: Expr
    text: str = field(default="", compare=False, repr=False)
    span: Span | None = field(default=None, compare=False, repr=False)
    path: Path = ()
    component: str = ""
    along: Recurrence | None = None

    @property
    def is_partial(self) -> bool:
        """Whether only a part of each element is written."""
        return bool(self.path or self.component)

    @property
    def written(self) -> ValueType:
        """The type of the value that is written."""
        leaf = reach(self.target.memory, self.path)
        assert isinstance(leaf, Leaf), "structs and arrays are written part by part"
        return scalar_of(leaf.type) if self.component else leaf.type


@final
@dataclass(frozen=True, slots=True)
class DerivedDim:
    """A length that the host computes, of an axis or of an index's range: `(d + 31) / 32`.

    `value` is an integer over dims and scalars, computed exactly; `text` is the user's.
    """

    name: str
    value: Expr
    text: str = field(compare=False)


@final
@dataclass(frozen=True, slots=True)
class Requirement:
    """A condition that every call must meet: `require d % 8 == 0;`.

    `condition` is over dims and integer scalars, computed exactly; `text` is the user's.
    `implied` marks a gradient's equation for a length that the forward kernel derives.
    """

    condition: Expr
    text: str = field(compare=False)
    span: Span = field(compare=False, repr=False)
    implied: bool = field(default=False, compare=False)


@final
@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule: a strategy with options, for one stage or for every stage that it fits.

    `schedule unit.length when m < 8 { reduce }` has the stage `length` and the guard
    `m < 8`.  `span` is that of the strategy and its options.
    """

    stage: str | None
    guard: Expr | None
    strategy: str
    options: tuple[tuple[str, tuple[int, ...]], ...]
    span: Span = field(compare=False, repr=False)
    stage_span: Span | None = field(default=None, compare=False, repr=False)


@final
@dataclass(frozen=True)
class Kernel:
    """A typed kernel.

    `dims` are the lengths that arguments have, in order of first appearance, `derived` those
    that the host computes from them.  `tensors` has the tensor parameters in order, then the
    outputs.  `signature` and each statement's text are the user's own.
    """

    name: str
    dims: tuple[str, ...]
    tensors: tuple[Tensor, ...]
    parameters: tuple[Parameter, ...]
    hosts: tuple[Host, ...]
    body: tuple[Statement, ...]
    schedules: tuple[Schedule, ...]
    signature: str = field(compare=False, repr=False)
    doc: str = field(compare=False, repr=False)
    span: Span = field(compare=False, repr=False)
    order: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """Every parameter's name, tensors and scalars, in the order of the source."""
    derived: tuple[DerivedDim, ...] = ()
    requires: tuple[Requirement, ...] = ()
    gradient: GradientOf | None = field(default=None, compare=False)
    """The kernel and parameters that it is a gradient of, if it was derived."""

    @property
    def lengths(self) -> tuple[str, ...]:
        """The names of all dims: those of arguments, then derived ones."""
        return (*self.dims, *(dim.name for dim in self.derived))

"""What the program being drawn holds so far: dims, tensors, values and functions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from .dice import Dice
from .memory import Memory, as_half, is_composite, scalar_of
from .names import FUNCTIONS, INDICES, KERNELS, ODD_INDICES, PLAIN, RESERVED, Names
from .structs import StructItem, spelled

Type: TypeAlias = Literal["f32", "i32", "u32"]
Role: TypeAlias = Literal["input", "update", "output", "let"]

LANDED = frozenset({"affine", "computed", "neighbours", "given ranges", "output dims"})
"""The features that may be drawn."""

MOST_INPUTS = 5
LITERAL_AXES = ("2", "3", "4")


def scalar_type(name: str) -> Type:
    """Return a scalar type by its name."""
    if name == "f32":
        return "f32"
    return "i32" if name == "i32" else "u32"


@dataclass
class Tensor:
    """A tensor that the program declares; axes are as written: `n`, `3`, `h / 2`."""

    name: str
    type: Memory
    axes: tuple[str, ...]
    role: Role
    readable: bool = True
    big: bool = False
    """Whether its integers may be any of 32 bits."""
    half: bool = False
    """Whether it is stored as f16."""

    @property
    def scalar(self) -> Type:
        """The type of its elements, which are scalars."""
        return scalar_type(str(self.type))

    @property
    def element(self) -> str:
        """The type of its elements, as declared."""
        return spelled(self.memory)

    @property
    def memory(self) -> Memory:
        """What an element is in memory."""
        if self.half:
            assert isinstance(self.type, str), "structs hold halves of their own"
            return as_half(self.type)
        return self.type


@dataclass(frozen=True)
class Value:
    """A scalar, host or constant that expressions may read."""

    name: str
    type: Type
    role: Literal["scalar", "host", "const"]
    text: str = ""
    """A scalar's default, a host's or constant's value."""
    argument: float | tuple[float, ...] = 0

    @property
    def parameter(self) -> str:
        """The name of a scalar parameter; that of a vector, for one of its components."""
        return self.name.partition(".")[0]

    @property
    def declared(self) -> str:
        """A scalar parameter as declared."""
        type_ = self.type if self.parameter == self.name else "vec2f"
        default = f" = {self.text}" if self.text else ""
        return f"{self.parameter}: {type_}{default}"


@dataclass(frozen=True)
class Parameter:
    """A vector, matrix or struct that is passed by value."""

    name: str
    memory: Memory


@dataclass(frozen=True)
class Function:
    """A function of the file."""

    name: str
    parameters: tuple[str, ...]
    result: str
    text: str


@dataclass(frozen=True)
class Index:
    """An index in scope, with its range as written."""

    name: str
    axis: str


@dataclass(frozen=True)
class Place:
    """Where an expression stands.

    `typed` says that the place decides the type of literals; `branch`, that it is inside
    a branch of an `if`; `bare` forbids tensors and reductions, as in functions.
    """

    indices: tuple[Index, ...] = ()
    depth: int = 3
    typed: bool = True
    branch: bool = False
    locals: tuple[tuple[str, str], ...] | None = None

    @property
    def inner(self) -> Place:
        """The place of an operand."""
        return replace(self, depth=self.depth - 1)

    def self_typed(self) -> Place:
        """The place of an operand that decides the type itself."""
        return replace(self.inner, typed=False)


@dataclass
class World:
    """The program so far."""

    dice: Dice
    is_pure: bool = False
    """Whether nothing is written twice or in place: it has a gradient."""
    values_named: Names = field(init=False)
    functions_named: Names = field(init=False)
    kernel: str = field(init=False)
    halves: int = field(init=False)
    """How many of a hundred f32 tensors are stored as f16: none in most programs."""
    composites: bool = field(init=False)
    """Whether there are vectors, matrices and structs."""
    dims: tuple[str, ...] = field(init=False)
    index_names: tuple[str, ...] = field(init=False)
    tensors: list[Tensor] = field(default_factory=list[Tensor])
    values: list[Value] = field(default_factory=list[Value])
    structs: list[StructItem] = field(default_factory=list[StructItem])
    parameters: list[Parameter] = field(default_factory=list[Parameter])
    functions: list[Function] = field(default_factory=list[Function])
    statements: list[str] = field(default_factory=list[str])
    schedules: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.values_named = Names(self.dice)
        self.functions_named = Names(self.dice)
        self.kernel = Names(self.dice).of(KERNELS[:1], KERNELS[1:])
        count = 2 + self.dice.below(2)
        self.halves = 40 if self.dice.chance(25) else 0
        self.composites = self.dice.chance(60)
        self.index_names = tuple(
            self.values_named.of(INDICES, ODD_INDICES, 15) for _ in range(8)
        )
        self.dims = tuple(self.name() for _ in range(count))

    def name(self) -> str:
        """Return a new name for a value."""
        return self.values_named.of(PLAIN, RESERVED)

    def function_name(self) -> str:
        """Return a new name for a function."""
        return self.functions_named.of(FUNCTIONS[:3], FUNCTIONS[3:])

    def fresh_indices(
        self, axes: tuple[str, ...], used: tuple[Index, ...]
    ) -> list[Index]:
        """Name one index per axis, apart from those in scope."""
        taken = {index.name for index in used}
        free = [name for name in self.index_names if name not in taken]
        names = self.dice.several(free, len(axes))
        return [Index(name, axis) for name, axis in zip(names, axes, strict=True)]

    def axis(self) -> str:
        """Draw an axis: mostly a dim."""
        if self.dice.chance(15):
            return self.dice.pick(LITERAL_AXES)
        return self.dice.pick(self.dims)

    def add(self, type_: Memory, axes: tuple[str, ...], role: Role) -> Tensor:
        """Declare a tensor."""
        big = type_ == "u32" and self.dice.chance(50)
        real = isinstance(type_, str) and scalar_of(type_) == "f32"
        half = real and role != "let" and self.dice.chance(self.halves)
        tensor = Tensor(self.name(), type_, axes, role, role != "output", big, half)
        self.tensors.append(tensor)
        return tensor

    def input(self, type_: Memory, axes: tuple[str, ...]) -> Tensor:
        """Return an input of this form: one that is there, or a new one."""
        alike = [
            t for t in self.tensors if (t.type, t.axes) == (type_, axes) and t.readable
        ]
        if alike and (self.crowded or self.dice.chance(60)):
            return self.dice.pick(alike)
        return self.add(type_, axes, "input")

    def begin(self) -> None:
        """Declare inputs that have the dims."""
        self.add("f32", self.dims[:2], "input")
        if len(self.dims) > 2:
            self.add("f32", (self.dims[2],), "input")

    def dims_read(self) -> tuple[str, ...]:
        """Return the dims: expressions may read each."""
        return self.dims

    def input_axes(self) -> frozenset[str]:
        """Return the axes that an input may have; others are arithmetic."""
        return frozenset((*self.dims, *LITERAL_AXES))

    def landed(self, feature: str) -> bool:
        """Whether the compiler has a feature already."""
        return feature in LANDED

    def forms_for(self, axis: str, place: Place) -> list[str]:
        """Return subscripts for an axis that are not bare."""
        forms = ["gather"]
        for index in place.indices:
            name, range_ = index.name, index.axis
            if self.landed("computed"):
                forms += [f"{name} / 2", f"min({name}, 1)", f"{name} % 3"][
                    : 1 + len(name) % 3
                ]
            if not self.landed("affine"):
                continue
            if range_ == axis:
                forms += [f"{axis} - 1 - {name}"] * 2
                if place.branch:
                    forms += [f"{name} + 1", f"{name} - 1", f"2 * {name}"]
            if range_ == f"{axis} / 2":
                forms += [f"2 * {name}", f"2 * {name} + 1"] * 3
            if range_ in LITERAL_AXES and axis in self.dims:
                forms.append(f"{name} + 1")
            if range_ == f"{axis} - 1":
                forms += [f"{name} + 1", name] * 3
        if self.landed("affine"):
            if axis in self.input_axes():
                forms.append("0" if axis in self.dims else str(int(axis) - 1))
            forms += [
                v.name
                for v in self.values
                if v.role == "scalar" and v.argument == 0 and v.type != "f32"
            ]
        return forms

    @property
    def crowded(self) -> bool:
        """Whether the program should do with the tensors that it has."""
        return sum(t.role in {"input", "update"} for t in self.tensors) >= MOST_INPUTS

    def in_parts(self) -> list[Tensor]:
        """Return the tensors of vectors, matrices and structs that may be read."""
        known = [t for t in self.tensors if t.readable]
        return [t for t in known if not isinstance(t.type, str) or is_composite(t.type)]

    def readable(self, type_: Type) -> list[Tensor]:
        """Return the tensors that an expression may read."""
        return [t for t in self.tensors if t.type == type_ and t.readable]

    def of_type(self, type_: Type) -> list[Value]:
        """Return the values of a type."""
        return [value for value in self.values if value.type == type_]

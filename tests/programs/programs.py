"""Random well-typed programs: text, sizes and arguments."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st
from hypothesis.vendor.pretty import RepresentationPrinter

from .dice import Dice
from .memory import built, numbers_in
from .statements import Statements
from .structs import spelled
from .tensors import Given
from .world import Parameter, Tensor, Value, World

CHOICES = 1000
"""What a large program takes; a larger one ends in the simplest choices."""

Argument: TypeAlias = Any
"""A number, or nested tuples of them."""

LENGTHS = (3, 2, 5, 1, 3, 5, 4, 33, 2, 64, 1, 5, 0)
SHORT = (2, 1, 3)
LONG = (1030, 516, 2053, 4100, 700, 4099, 8200)
"""Rows that their lanes hold several values of, and ones too long for that."""


@dataclass(frozen=True)
class Program:
    """A program of one kernel, and how to call it."""

    kernel: str
    text: str
    schedules: tuple[str, ...]
    dims: tuple[str, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[str, ...]
    scalars: Mapping[str, Argument]
    sizes: Mapping[str, int]
    seed: int

    def __repr__(self) -> str:
        """The source, and the sizes, as a failing example shows them."""
        return "\n".join(["", self.source, f"// {dict(self.sizes)}, seed {self.seed}"])

    def _repr_pretty_(self, printer: RepresentationPrinter, cycle: bool) -> None:
        """Show hypothesis the same."""
        del cycle
        printer.text(repr(self))

    @property
    def source(self) -> str:
        """The text with its schedules."""
        return "\n".join([self.text, *self.schedules])

    @property
    def sources(self) -> tuple[str, ...]:
        """The text with its schedules, and without: they may fit none of its stages."""
        return (self.source, self.text) if self.schedules else (self.text,)

    def arrays(self, sizes: Mapping[str, int]) -> dict[str, Given]:
        """Arguments: small whole numbers and halves; any bits where a u32 may be big."""
        rng = np.random.default_rng(self.seed)
        arrays: dict[str, Given] = {}
        for tensor in self.inputs:
            shape = tuple(sizes[a] if a in sizes else int(a) for a in tensor.axes)
            arrays[tensor.name] = _drawn(rng, tensor, shape)
        return arrays


def _drawn(rng: np.random.Generator, tensor: Tensor, shape: tuple[int, ...]) -> Given:
    memory, count = tensor.memory, math.prod(shape)
    columns = [
        _numbers(rng, kept, count, big=tensor.big) for _, kept in numbers_in(memory)
    ]
    cells = [built(memory, iter(row)) for row in zip(*columns, strict=True)]
    return Given(memory, shape, cells)


def _numbers(
    rng: np.random.Generator, kept: str, count: int, *, big: bool = False
) -> list[Any]:
    """Draw one number of each element."""
    if kept in {"f32", "f16"}:
        values = np.asarray(rng.integers(-2, 4, count))
        halves = rng.integers(0, 4) == 0
        drawn = values / 2 if halves else values.astype(np.float64)
        return list(drawn.tolist())
    if kept == "i32":
        return list(rng.integers(-2, 6, count).tolist())
    return list(rng.integers(0, 2**32 if big else 6, count).tolist())


def _values(seed: int, parameters: Sequence[Parameter]) -> dict[str, Argument]:
    """Draw what is passed for vectors, matrices and structs."""
    rng = np.random.default_rng(seed)
    values: dict[str, Argument] = {}
    for parameter in parameters:
        memory = parameter.memory
        numbers = [_numbers(rng, kept, 1)[0] for _, kept in numbers_in(memory)]
        values[parameter.name] = built(memory, iter(numbers))
    return values


def program_of(choices: bytes, *, is_pure: bool = False) -> Program:
    """Return the program that a string of choices makes."""
    dice = Dice(choices)
    world = World(dice, is_pure)
    Statements(world).draw()
    sizes = _sizes(dice, world)
    inputs = tuple(t for t in world.tensors if t.role in {"input", "update"})
    scalars = [v for v in world.values if v.role == "scalar"]
    seed = dice.below(256)
    return Program(
        kernel=world.kernel,
        text=_text(world, inputs, scalars),
        schedules=tuple(world.schedules),
        dims=world.dims,
        inputs=inputs,
        outputs=tuple(t.name for t in world.tensors if t.role == "output"),
        scalars={
            **{v.parameter: v.argument for v in scalars},
            **_values(seed, world.parameters),
        },
        sizes=sizes,
        seed=seed,
    )


def _sizes(dice: Dice, world: World) -> dict[str, int]:
    """Draw the length of each dim; one is long at times, and the others short then.

    None is if a tensor has it twice: that would be millions of elements.
    """
    sizes = {dim: dice.pick(LENGTHS) for dim in world.dims}
    long = dice.pick(world.dims[::-1])
    if not dice.chance(12) or any(t.axes.count(long) > 1 for t in world.tensors):
        return sizes
    return {dim: dice.pick(LONG if dim == long else SHORT) for dim in world.dims}


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Draw a program."""
    return program_of(draw(st.binary(min_size=CHOICES, max_size=CHOICES)))


def _text(world: World, inputs: tuple[Tensor, ...], scalars: list[Value]) -> str:
    parameters = [_declared(t, "mut " if t.role == "update" else "") for t in inputs]
    parameters += [value.declared for value in scalars]
    parameters += [f"{p.name}: {spelled(p.memory)}" for p in world.parameters]
    outputs = ", ".join(_declared(t) for t in world.tensors if t.role == "output")
    lines = [item.text for item in world.structs]
    lines += [
        f"const {v.name}: {v.type} = {v.text};"
        for v in world.values
        if v.role == "const"
    ]
    lines += [function.text for function in world.functions]
    arrow = f" -> {outputs}" if outputs else ""
    lines.append(f"kernel {world.kernel}({', '.join(parameters)}){arrow} {{")
    hosts = [v for v in world.values if v.role == "host"]
    lines += [f"    host {v.name} = {v.text};" for v in hosts]
    lines += [f"    {statement}" for statement in world.statements]
    return "\n".join([*lines, "}"])


def _declared(tensor: Tensor, prefix: str = "") -> str:
    return f"{prefix}{tensor.name}: {tensor.element}[{', '.join(tensor.axes)}]"

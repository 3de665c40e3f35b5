"""Random well-typed programs: text, sizes and arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from hypothesis import strategies as st
from hypothesis.vendor.pretty import RepresentationPrinter
from numpy.typing import NDArray

from .dice import Dice
from .statements import Statements
from .world import Tensor, Value, World

CHOICES = 1000
"""What a large program takes; a larger one ends in the simplest choices."""

Argument: TypeAlias = float | tuple[float, ...]

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

    def arrays(self, sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
        """Arguments: small whole numbers and halves; any bits where a u32 may be big."""
        rng = np.random.default_rng(self.seed)
        arrays: dict[str, NDArray[Any]] = {}
        for tensor in self.inputs:
            shape = tuple(sizes[a] if a in sizes else int(a) for a in tensor.axes)
            arrays[tensor.name] = _drawn(rng, tensor, shape)
        return arrays


def _drawn(
    rng: np.random.Generator, tensor: Tensor, shape: tuple[int, ...]
) -> NDArray[Any]:
    if tensor.type == "f32":
        values = np.asarray(rng.integers(-2, 4, shape))
        halves = rng.integers(0, 4) == 0
        drawn = values / 2 if halves else values
        return drawn.astype(np.float16 if tensor.half else np.float32)
    if tensor.type == "i32":
        return np.asarray(rng.integers(-2, 6, shape)).astype(np.int32)
    high = 2**32 if tensor.big else 6
    return np.asarray(rng.integers(0, high, shape)).astype(np.uint32)


def program_of(choices: bytes) -> Program:
    """Return the program that a string of choices makes."""
    dice = Dice(choices)
    world = World(dice)
    Statements(world).draw()
    sizes = _sizes(dice, world)
    inputs = tuple(t for t in world.tensors if t.role in {"input", "update"})
    scalars = [v for v in world.values if v.role == "scalar"]
    return Program(
        kernel=world.kernel,
        text=_text(world, inputs, scalars),
        schedules=tuple(world.schedules),
        dims=world.dims,
        inputs=inputs,
        outputs=tuple(t.name for t in world.tensors if t.role == "output"),
        scalars={v.parameter: v.argument for v in scalars},
        sizes=sizes,
        seed=dice.below(256),
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
    outputs = ", ".join(_declared(t) for t in world.tensors if t.role == "output")
    lines = [
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

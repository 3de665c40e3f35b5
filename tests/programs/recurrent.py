"""Statements over what comes before: sums so far, and `let`s that read themselves.

The interpreter has no recurrences: these are for programs whose references are compared
with differences of themselves.
"""

from __future__ import annotations

from .grammar import Grammar
from .pieces import Piece, binary, element
from .world import Index, Place, Tensor, World

_DECAYS = ("0.5", "-0.25", "0.75")


def so_far(world: World, grammar: Grammar) -> Tensor:
    """Declare sums, products or maxima of what comes before or after in a row."""
    dice = world.dice
    i, t = _row_and_step(world)
    p = world.fresh_indices((t.axis,), (i, t))[0]
    x = element(world.input("f32", (i.axis, t.axis)).name, [i.name, p.name])
    if dice.chance(50):
        x = binary("*", x, grammar.of("f32", Place((i, p), 1)))
    kind = dice.pick(("sum", "sum", "sum", "max", "prod"))
    condition = dice.pick(("<=", "<", ">=", ">"))
    tensor = world.add("f32", (i.axis, t.axis), "let")
    world.statements.append(
        f"let {tensor.name}[{i.name}, {t.name} < {t.axis}] = "
        f"{kind}[{p.name} when {p.name} {condition} {t.name}] ({x.text});"
    )
    return tensor


def recurrence(world: World, grammar: Grammar) -> Tensor:
    """Declare a `let` that reads itself one or two steps earlier, or later."""
    dice = world.dice
    i, t = _row_and_step(world)
    first = element(world.input("f32", (i.axis, t.axis)).name, [i.name, t.name])
    tensor = world.add("f32", (i.axis, t.axis), "let")
    is_back = dice.chance(30)
    step, most = ("+ 1", 1) if is_back else ("- 1", 1 + dice.below(2))
    before = Piece(f"{tensor.name}[{i.name}, {t.name} {step}]")
    new = binary("*", Piece(dice.pick(_DECAYS)), before)
    if dice.chance(50):
        new = binary("*", element(_slopes(world, i, t), [i.name, t.name]), new)
    if dice.chance(35):
        new = Piece(f"sin({new.text})")
    if most == 2:
        further = f"{tensor.name}[{i.name}, {t.name} - 2]"
        new = binary("+", new, Piece(f"0.25 * {further}"))
    if dice.chance(70):
        new = binary("+", new, grammar.of("f32", Place((i, t), 1)))
    holds = f"{t.name} + 1 < {t.axis}" if is_back else f"{t.name} >= {most}"
    world.statements.append(
        f"let {tensor.name}[{i.name}, {t.name}] = "
        f"if {holds} {{ {new.text} }} else {{ {first.text} }};"
    )
    return tensor


def _row_and_step(world: World) -> tuple[Index, Index]:
    axes = tuple(world.dice.several(world.dims, 2))
    i, t = world.fresh_indices(axes, ())
    return i, t


def _slopes(world: World, i: Index, t: Index) -> str:
    return world.input("f32", (i.axis, t.axis)).name

"""Recognise sorts: stages that compute sorted positions, and those that move elements.

    let place[i] = sum[j when key[j] < key[i] or key[j] == key[i] and j < i] 1;
    y[p] = sum[i when place[i] == p] x[i];

An element is one or more words of 32 bits: what is moved, and the key if that is not
computed of those.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, final

from kerngen.ir.analysis.conditions import conditional
from kerngen.ir.analysis.ordering import Order, order_of
from kerngen.ir.analysis.reads import holds_reduce, is_at, loads
from kerngen.ir.nodes import Expr, Index, IndexValue, Load, LocalValue, Role, Tensor
from kerngen.ir.staging.grouping import MAX_TENSORS
from kerngen.ir.staging.keyed import keyed
from kerngen.ir.staging.stages import Stage, Write
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children, walk, with_indices
from kerngen.schedule.task import Task

MOST_WORDS: Final = 3
"""So many words are read and written by a pass, beside the counts and totals."""

_WORDS: Final = (Scalar.U32, Scalar.I32, Scalar.F32)


@final
@dataclass(frozen=True)
class Move:
    """A stage that moves elements to their positions: the value, and the target."""

    stage: Stage
    value: Expr
    target: Tensor


@final
@dataclass(frozen=True)
class FoundSort:
    """A sort: the stage of positions, and the stages after it that move elements there."""

    places: Stage
    order: Order
    moves: tuple[Move, ...]

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages that run together."""
        return (self.places, *(move.stage for move in self.moves))

    @property
    def index(self) -> Index:
        """The index of elements in their old order."""
        return self.order.index

    @cached_property
    def words(self) -> tuple[Expr, ...]:
        """The values that each pass moves; the key is computed from the first."""
        values = dict.fromkeys(move.value for move in self.moves)
        own = next(filter(self._makes_key, values), self.order.key)
        return tuple(dict.fromkeys((own, *values)))

    @cached_property
    def key(self) -> Expr:
        """The key, as an expression of the first moved value, the local `word`."""
        return _with(self.order.key, self.words[0])

    def _makes_key(self, value: Expr) -> bool:
        rest = _with(self.order.key, value)
        return not any(isinstance(node, Load | IndexValue) for node in walk(rest))

    @property
    def tensors_read(self) -> frozenset[Tensor]:
        """The tensors that the first pass reads."""
        return frozenset(
            x.tensor for e in (*self.words, self.order.key) for x in loads(e)
        )


def _with(expr: Expr, word: Expr) -> Expr:
    """Return an expression with a local value for a part of it."""
    if expr == word:
        return LocalValue("word", word.type)
    return map_children(expr, lambda part: _with(part, word))


def sorted_of(task: Task) -> FoundSort | str:
    """Return the sort that begins with a stage, or why none does."""
    stage = task.stage
    order = order_of(conditional(stage.reduction)) if stage.reduction else None
    if order is None:
        return "it counts no elements that come before, by key and then by number"
    match stage.steps:
        case (Write(tensor=places, value=value),) if value == stage.reduction:
            return _sorted(task, FoundSort(stage, order, ()), places)
        case _:
            return "it computes more than places"


def _sorted(task: Task, found: FoundSort, places: Tensor) -> FoundSort | str:
    stage = found.places
    if stage.domain != (found.index,):
        return "it orders rows, and not a vector"
    if holds_reduce(found.order.key):
        return "there is a reduction in the key"
    if places.role is not Role.LET:
        return f"'{places.name}' is written"
    number = task.staged.stages.index(stage)
    moves: list[Move] = []
    for behind in task.staged.stages[number + 1 : task.end]:
        move = _move(behind, found.index, places)
        if isinstance(move, str):
            break
        moves.append(move)
    readers = [s for s in task.staged.stages if places in s.tensors_read]
    if readers != [move.stage for move in moves]:
        return (
            f"'{places.name}' is read by more than stages behind it that move elements"
        )
    return _checked(replace(found, moves=tuple(moves)))


def _checked(found: FoundSort) -> FoundSort | str:
    """Return the sort if it can be run, or why it can't."""
    written = [move.target for move in found.moves]
    if len(found.words) > MOST_WORDS:
        return f"more than {MOST_WORDS} words are moved of each element"
    if found.tensors_read & {*written}:
        return "it writes what it reads"
    if len(found.tensors_read) + len(found.words) + 2 > MAX_TENSORS:
        return f"together they bind more than {MAX_TENSORS} buffers"
    if len(written) + len(found.words) + 2 > MAX_TENSORS:
        return f"together they bind more than {MAX_TENSORS} buffers"
    return found


def _move(stage: Stage, index: Index, places: Tensor) -> Move | str:
    """Return the move that a stage makes, or why it makes none."""
    match stage.steps:
        case (Write(tensor=target, value=value) as write,) if value == stage.reduction:
            pass
        case _:
            return "it does more"
    reduce = None if stage.loop else stage.reduction
    by = None if reduce is None else keyed(conditional(reduce))
    if by is None or len(by.keys) != 1 or len(by.reduce.indices) != 1:
        return "it has no key"
    (key,), (own,), body = by.keys, by.reduce.indices, by.reduce.body
    match key.value:
        case Load(tensor) as load if tensor == places and is_at(load, (own,)):
            pass
        case _:
            return "its key is no place"
    if by.reduce.condition is not None:
        return "it moves some elements alone"
    if stage.domain != (key.index,) or {own.extent, key.index.extent} != {index.extent}:
        return "it is of other lengths"
    is_exact = by.reduce.kind in {"max", "min"} or (
        by.reduce.kind == "sum" and body.type is not Scalar.F32
    )
    whole = target.element is body.type and not target.is_half and not target.narrow
    if body.type not in _WORDS or not is_exact or not whole or write.is_partial:
        return "it is no word"
    if holds_reduce(body) or key.index in _indices(body):
        return "it moves more than elements"
    return Move(stage, with_indices(body, {own: IndexValue(index)}), target)


def _indices(expr: Expr) -> set[Index]:
    return {node.index for node in walk(expr) if isinstance(node, IndexValue)}

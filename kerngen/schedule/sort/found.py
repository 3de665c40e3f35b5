"""Recognise sorts: a stage that counts places, and the stages that move elements there.

    let place[i] = sum[j when key[j] < key[i] or key[j] == key[i] and j < i] 1;
    y[p] = sum[i when place[i] == p] x[i];
    at[p] = sum[i when place[i] == p] u32(i);

The passes of the sort move each element as one to three words of 32 bits: here `x[i]` and
`u32(i)`, and `key[i]`, unless the key can be computed from one of them, as `key[i] = x[i]`.
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
"""The most words of an element.

A pass binds two buffers for each, to read and to write, and those of the counts and the
totals: eight buffers, as many as `MAX_TENSORS`.
"""

_WORDS: Final = (Scalar.U32, Scalar.I32, Scalar.F32)
"""The types whose values a sort moves: those of 32 bits."""


@final
@dataclass(frozen=True)
class Move:
    """A stage that moves elements to their places: `y[p] = sum[i when place[i] == p] x[i]`.

    `value` is `x[i]`, as an expression of the sort's index, and `target` is y.
    """

    stage: Stage
    value: Expr
    target: Tensor


@final
@dataclass(frozen=True)
class FoundSort:
    """A sort: the stage that counts places, and the stages after it that move elements."""

    places: Stage
    order: Order
    moves: tuple[Move, ...]

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages that the sort's passes run together."""
        return (self.places, *(move.stage for move in self.moves))

    @property
    def index(self) -> Index:
        """The index that numbers the elements before the sort: i."""
        return self.order.index

    @cached_property
    def words(self) -> tuple[Expr, ...]:
        """The words of an element that the passes move, each once; the first gives the key.

        It is a moved value from which the key can be computed, if there is one, else the key.
        """
        values = dict.fromkeys(move.value for move in self.moves)
        own = next(filter(self._makes_key, values), self.order.key)
        return tuple(dict.fromkeys((own, *values)))

    @cached_property
    def key(self) -> Expr:
        """The key as an expression of the local value `word`, which is the first word."""
        return _with(self.order.key, self.words[0])

    def _makes_key(self, value: Expr) -> bool:
        """Return whether the key reads a value, and no other element or index."""
        rest = _with(self.order.key, value)
        return not any(isinstance(node, Load | IndexValue) for node in walk(rest))

    @property
    def tensors_read(self) -> frozenset[Tensor]:
        """The tensors that the first pass reads."""
        return frozenset(
            x.tensor for e in (*self.words, self.order.key) for x in loads(e)
        )


def _with(expr: Expr, word: Expr) -> Expr:
    """Return an expression in which the local value `word` replaces a part."""
    if expr == word:
        return LocalValue("word", word.type)
    return map_children(expr, lambda part: _with(part, word))


def sorted_of(task: Task) -> FoundSort | str:
    """Return the sort that begins with the task's stage, or the reason why none does."""
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
    """Return the sort with its moves, or the reason why it is none."""
    stage = found.places
    if stage.domain != (found.index,):
        return "it orders rows, and not a vector"
    if holds_reduce(found.order.key):
        return "there is a reduction in the key"
    if places.role is not Role.LET:
        return f"'{places.name}' is written"
    # All following stages that move elements, up to the first other one.
    number = task.staged.stages.index(stage)
    moves: list[Move] = []
    for behind in task.staged.stages[number + 1 : task.end]:
        move = _move(behind, found.index, places)
        if isinstance(move, str):
            break
        moves.append(move)
    # The places are not stored, so no other stage may read them.
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
    # The first pass reads tensors and writes words, the last one reads words and writes
    # results; both bind counts and totals.
    if len(found.tensors_read) + len(found.words) + 2 > MAX_TENSORS:
        return f"together they bind more than {MAX_TENSORS} buffers"
    if len(written) + len(found.words) + 2 > MAX_TENSORS:
        return f"together they bind more than {MAX_TENSORS} buffers"
    return found


def _move(stage: Stage, index: Index, places: Tensor) -> Move | str:
    """Return the move that a stage makes, or the reason why it makes none.

    Each key is a place, which one element has: a `sum`, `max` or `min` of a single term is
    that term.  Of floats, `sum` is refused.
    """
    match stage.steps:
        case (Write(tensor=target, value=value) as write,) if value == stage.reduction:
            pass
        case _:
            return "it does more"
    # A reduction by one key, which is the place of the own element.
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
    # It moves every element, over as many places as there are elements.
    if by.reduce.condition is not None:
        return "it moves some elements alone"
    if stage.domain != (key.index,) or {own.extent, key.index.extent} != {index.extent}:
        return "it is of other lengths"
    # The value is a word of 32 bits, and stays one in the target.
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

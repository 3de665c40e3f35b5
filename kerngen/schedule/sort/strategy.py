"""Strategy `sort`: elements in the order of their keys, by a radix sort in four passes.

    let place[i] = sum[j when key[j] < key[i] or key[j] == key[i] and j < i] 1;
    y[p] = sum[i when place[i] == p] x[i];

Each pass sorts by eight bits of the key, the lowest first, and moves the words of an element
from one set of scratch buffers to the other:

    pass 0      tensors      -> moved           bits 0 to 7
    pass 1      moved        -> moved_back      bits 8 to 15
    pass 2      moved_back   -> moved           bits 16 to 23
    pass 3      moved        -> results         bits 24 to 31

Places are not stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, final

from kerngen.ir.staging.stages import Stage
from kerngen.ir.types import Scalar, ValueType
from kerngen.plan.size import ALWAYS
from kerngen.plan.tree import Scratch
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.values import Value
from kerngen.schedule.program import DispatchShader, Variant
from kerngen.schedule.rows.run import names_of
from kerngen.schedule.sizes import extent_size
from kerngen.schedule.sort.found import FoundSort, sorted_of
from kerngen.schedule.sort.passes import SortItems, count_scratch, sort_passes
from kerngen.schedule.sort.tile import DIGIT_BITS
from kerngen.schedule.task import Options, Task
from kerngen.shader import tree as t

PASSES: Final = 32 // DIGIT_BITS
"""The number of passes: four, for keys of 32 bits."""

LAST: Final = PASSES - 1
"""The number of the last pass, which writes the results."""


def fits_sort(task: Task) -> str:
    """Return why no sort begins with the stage, or "" if one does."""
    found = sorted_of(task)
    return found if isinstance(found, str) else ""


def sort_run(task: Task) -> tuple[Stage, ...]:
    """Return the stages that run together: the one that counts places, and those that move."""
    found = sorted_of(task)
    return (task.stage,) if isinstance(found, str) else found.stages


def lower_sort(task: Task, options: Options) -> Iterator[Variant]:
    """Yield the only variant: four passes, with three dispatches each."""
    del options
    found = sorted_of(task)
    assert isinstance(found, FoundSort), found
    sorting = _Sorting(_together(task, found), found)
    yield Variant("", ALWAYS, tuple(sorting.shaders()), sorting.scratch())


def _together(task: Task, found: FoundSort) -> Task:
    """Return a task whose stage has the steps of all moves."""
    steps = tuple(step for move in found.moves for step in move.stage.steps)
    stage = replace(found.places, name=names_of(found.stages), steps=steps)
    stem = task.stem
    if len(task.staged.stages) == len(found.stages):
        stem = stem.removesuffix(f".{task.stage.name}")
    return replace(task, stage=stage, stem=stem)


@final
@dataclass(frozen=True)
class _Sorting:
    """Writes the shaders of the passes, which read one set of buffers and write the other."""

    task: Task
    found: FoundSort

    def scratch(self) -> tuple[Scratch, ...]:
        """Return the scratch buffers: two for each word of an element, and those of counts."""
        name, count = self.task.scratch_name, extent_size(self.found.index.extent)
        words = range(len(self.found.words))
        moved = (
            Scratch(name(_buffer(s, word)), count) for s in (0, 1) for word in words
        )
        return (*moved, *count_scratch(self._terms(0)))

    def shaders(self) -> Iterator[DispatchShader]:
        """Yield the dispatches of all passes."""
        words = range(len(self.found.words))
        here, there = ([_buffer(s, word) for word in words] for s in (0, 1))
        return sort_passes(self._terms, (here, there), PASSES, begins_back=True)

    def _terms(self, number: int) -> SortItems:
        """Return how the pass of a number reads and writes the words of an element.

        The passes between the first and the last one share their shaders.
        """
        count = extent_size(self.found.index.extent)
        words = len(self.found.words)
        variant = {0: ".first", LAST: ".last"}.get(number, "")
        first = ".first" if number == 0 else ""
        read = self._read_first if number == 0 else self._read
        write = self._write_last if number == LAST else self._write
        return SortItems(
            self.task, count, words, read, self._key, write, variant, first
        )

    def _read_first(
        self, shader: ShaderBuilder, block: list[t.Stmt], term: t.Expr, word: int
    ) -> t.Expr:
        """Return an element's word, computed from the tensors."""
        value = self.found.words[word]
        lowered = Lowerer(shader, {self.found.index: term}, block).lower(value).expr
        return _as_word(lowered, value.type)

    def _read(
        self, shader: ShaderBuilder, block: list[t.Stmt], term: t.Expr, word: int
    ) -> t.Expr:
        """Return an element's word, read from the buffer that the pass before wrote."""
        del block
        return shader.scratch(_buffer(0, word), Scalar.U32, written=False).load(term)

    def _key(self, shader: ShaderBuilder, block: list[t.Stmt], word: t.Expr) -> t.Expr:
        """Return a u32 whose order is that of the key.

        For an i32 the sign bit is flipped, so that negative keys are below all others;
        for a descending order all bits are.
        """
        found = self.found
        own = Value(_of_word(word, found.words[0].type))
        lowerer = Lowerer(shader, {}, block, locals={"word": own})
        key = lowerer.lower(found.key).expr
        if found.order.key.type is Scalar.I32:
            sign = t.Literal("0x80000000u")
            key = t.Binary("^", _as_word(key, Scalar.I32), sign)
        return t.Unary("~", key) if found.order.descending else key

    def _write(
        self, shader: ShaderBuilder, place: t.Expr, word: int, value: t.Expr
    ) -> tuple[t.Stmt, ...]:
        """Return the store of a word in the buffer that the next pass reads."""
        to = shader.scratch(_buffer(1, word), Scalar.U32, written=True)
        return (to.store(place, value),)

    def _write_last(
        self, shader: ShaderBuilder, place: t.Expr, word: int, value: t.Expr
    ) -> tuple[t.Stmt, ...]:
        """Return the stores of a word in all results that it is; a key may be in none."""
        own = self.found.words[word]
        to = (move.target for move in self.found.moves if move.value == own)
        shown = _of_word(value, own.type)
        return tuple(shader.buffer(each).store(place, shown) for each in to)


def _buffer(side: int, word: int) -> str:
    """Return the name of a buffer of words: `moved`, `moved_back_1`."""
    name = "moved_back" if side else "moved"
    return f"{name}_{word}" if word else name


def _as_word(value: t.Expr, type_: ValueType) -> t.Expr:
    """Return the bits of a value as a u32."""
    return value if type_ is Scalar.U32 else t.call("bitcast<u32>", value)


def _of_word(word: t.Expr, type_: ValueType) -> t.Expr:
    """Return the value of a type whose bits a u32 has."""
    return word if type_ is Scalar.U32 else t.call(f"bitcast<{type_.spelling}>", word)

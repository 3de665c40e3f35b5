"""Keyed reductions by sorting: terms are sorted by bin,
then each bin's terms are joined.

What is joined is in the order of the terms, so that a sum of f32 has the same bits each
time.  An invocation takes 8 terms that follow each other, in one column or four:

    bins    0 0 0 2 | 2 2 2 2 | 2 2 5 5
    runs    a     b   ...       ...   c

A run that begins within those (a, b, c) is written to its bin.  What continues a run from
before is carried: it is a term of the next dispatch, which does the same with the parts
that are carried, and the last one joins what that carries.  So a single bin of all terms
takes no longer than a loop over 1/1024 of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, final

from kerngen.ir.nodes import Expr, Index
from kerngen.ir.types import Scalar
from kerngen.plan.size import (
    ALWAYS,
    NEVER,
    Guard,
    Literal,
    Size,
    all_of,
    ceil_div,
    compare,
    maximum,
    negate,
    select,
)
from kerngen.plan.tree import Scratch
from kerngen.schedule.lowering.builder import Buffer, ShaderBuilder, wgsl_type
from kerngen.schedule.lowering.cooperation import reduction_label
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.identities import accumulate, combine, identity
from kerngen.schedule.lowering.steps import (
    last_extents,
    tensors_in_runs,
    vector_tensors,
    write_steps,
)
from kerngen.schedule.lowering.values import LANES, Value
from kerngen.schedule.per_element import start_invocation, unravel
from kerngen.schedule.program import Shader, Variant
from kerngen.schedule.scatter.few import FEW, compares, sorting_few
from kerngen.schedule.scatter.shape import Scatter
from kerngen.schedule.scatter.sort import (
    moves_values,
    sort_scratch,
    sorted_into,
    sorting,
)
from kerngen.schedule.sizes import all_divisible, domain_size, to_wgsl
from kerngen.schedule.sort.passes import renamed
from kerngen.schedule.sort.tile import DIGIT_BITS
from kerngen.schedule.trip_count import serial_trips
from kerngen.shader import tree as t

GROUP: Final = 256
"""Of 64 invocations, an H200 writes the 154 MB of an embedding's gradient in twice the time."""

RUN: Final = 8
CARRIES: Final = 128
"""How many terms an invocation takes, and how many parts that are carried."""

FEW_TERMS: Final = 1 << 16
"""Up to so many terms, what they carry is joined at once: runs are at most 8,192 parts."""

BUFFERS: Final = 4
"""The buffers of the shader that reads the terms: keys, items, bins and `filled`."""

PASSES: Final = (1, 2, 3, 4)
"""The digits of 8 bits that the number of a bin may have."""


def lower_lists(found: Scatter) -> Iterator[Variant]:
    """Yield the variants: few terms, else by the number of digits of a bin's number.

    Either for four columns at once, or for one.
    """
    few = compare("<=", found.term_count, FEW) if compares(found) else NEVER
    for name, when, wide in _widths(found):
        if NEVER not in {few, when}:
            shaders = tuple(_shaders(found, 0, wide))
            yield Variant(f"few_{name}", all_of(few, when), shaders, _scratch(found))
    for number in PASSES:
        fits = compare("<", found.bin_count, 1 << DIGIT_BITS * number)
        last = number == PASSES[-1]
        for name, when, wide in _widths(found):
            guard = when if last else all_of(fits, when)
            if guard == NEVER:
                continue
            label = f"digits{number}_{name}"
            yield Variant(
                label, guard, tuple(_shaders(found, number, wide)), _scratch(found)
            )


def _widths(found: Scatter) -> Iterator[tuple[str, Guard, frozenset[str]]]:
    """Yield which tensors are read four columns at once, where sizes allow; then none."""
    if found.columns:
        last = found.columns[-1]
        task, names = found.task, tensors_in_runs((found.body,), last)
        all_ = names | _written_by_four(found)
        extents = last_extents(task.stage, (*task.values, found.body), all_)
        aligned = all_divisible((last.extent, *extents), LANES)
        if names and aligned != NEVER:
            yield "aligned", aligned, frozenset(names)
    yield "edge", ALWAYS, frozenset()


def _written_by_four(found: Scatter) -> set[str]:
    """Return the tensors that the last dispatch can bind as vectors of four columns."""
    task, last = found.task, found.columns[-1]
    if task.domain[-1] != last:
        return set()
    return vector_tensors(task.stage, task.values, last)


def _scratch(found: Scatter) -> tuple[Scratch, ...]:
    name, columns = found.task.scratch_name, domain_size(found.columns)
    carried = (_Level(found, 0).groups + _Level(found, 1).groups) * columns
    return (
        *sort_scratch(found),
        Scratch(name("filled"), found.bin_count),
        Scratch(name("bins"), found.result_count + carried),
    )


def _shaders(found: Scatter, passes: int, names: frozenset[str]) -> Iterator[Shader]:
    """Yield the dispatches; with no `passes` of a radix sort, terms are compared."""
    once = found.task.once
    if passes:
        where = sorted_into(found, passes)
        yield once(_keying, lambda: _keying(found))
        yield from sorting(found, passes)
    else:
        where = sorted_into(found, 1)
        yield sorting_few(found)
    first, rest, further, last = (renamed(x, where) for x in _joining(found, names))
    few = compare("<=", found.term_count, FEW_TERMS)
    yield first
    yield _where(few, rest)
    yield _where(negate(few), further)
    yield _where(negate(few), last)
    wide = bool(names and _written_by_four(found))
    yield once((_finishing, wide), lambda: _finishing(found, wide=wide))


def _joining(found: Scatter, names: frozenset[str]) -> Iterator[Shader]:
    """Yield the dispatches that join runs and the rest, of both levels in turn."""
    for number in (0, 1):
        level = _Level(found, number)
        for write in (_joining_runs, _joining_rest):
            key = write, number, names
            yield found.task.once(key, partial(write, level, names))


def _where(guard: Guard, shader: Shader) -> Shader:
    """Return a dispatch that is left out unless a condition holds."""
    return replace(shader, groups=select(guard, shader.groups, 0))


def _keying(found: Scatter) -> Shader:
    """Write the bin of each term, and mark all bins as empty."""
    shader = ShaderBuilder(found.task, {})
    body, element = start_invocation(shader, GROUP, to_wgsl(_longer(found), shader))
    filled = shader.scratch("filled", Scalar.U32, written=True)
    keys = shader.scratch("keys", Scalar.U32, written=True)
    bins = shader.size(found.bins)
    body.append(t.If(element < bins, (filled.store(element, t.ZERO),)))
    block: list[t.Stmt] = []
    lowerer = Lowerer(shader, {}, block, label=reduction_label(found.task))
    lowerer.at.update(unravel(shader, block, found.terms, element))
    counts, number = found.lower_key(lowerer)
    block.append(keys.store(element, t.call("select", bins, number, counts)))
    if moves_values(found):
        items = shader.scratch("items", Scalar.U32, written=True)
        value = lowerer.lower(found.body).expr
        block.append(items.store(element, t.call("bitcast<u32>", value)))
    body.append(t.If(element < shader.size(found.terms), tuple(block)))
    return shader.finish(
        body,
        groups=ceil_div(_longer(found), GROUP),
        workgroup_size=GROUP,
        summary="the number of each term's bin; that of no bin, where it counts nowhere.",
        variant="keys",
        terms=found.term_count,
        trips=serial_trips(_of_terms(found)),
    )


def _of_terms(found: Scatter) -> tuple[Expr, ...]:
    """Return the expressions that are computed for each term first."""
    values = (found.body,) if moves_values(found) else ()
    return (*found.guards, *(key.value for key in found.keys), *values)


def _longer(found: Scatter) -> Size:
    return maximum(found.term_count, found.bin_count)


@final
@dataclass(frozen=True)
class _Level:
    """The items that a dispatch joins: terms, or parts carried by the first dispatch."""

    found: Scatter
    number: int

    @property
    def count(self) -> Size:
        """How many there are."""
        terms = self.found.term_count
        return ceil_div(terms, RUN) if self.number else terms

    @property
    def each(self) -> int:
        """How many an invocation takes."""
        return CARRIES if self.number else RUN

    @property
    def stride(self) -> int:
        """How many terms each is, at most."""
        return RUN if self.number else 1

    @property
    def groups(self) -> Size:
        """How many parts this may carry."""
        return ceil_div(self.count, self.each)


@final
class _Columns:
    """A shader whose invocations each work in a column of the results, or in four."""

    def __init__(self, found: Scatter, names: frozenset[str], parts: Size) -> None:
        """Start with an invocation for each part and column; `names` are read by four."""
        task, self.found, self.lanes = found.task, found, LANES if names else 1
        kept = task.scratch_name("bins")
        lanes_of = dict.fromkeys((*names, kept), LANES) if names else {}
        self.shader = shader = ShaderBuilder(task, lanes_of)
        self.keys = shader.scratch("keys", Scalar.U32, written=False)
        self.limit = shader.size(found.bins)
        self._width = shader.size(found.columns) // self.lanes
        all_ = to_wgsl(parts, shader) * self._width
        self.body, element = start_invocation(shader, GROUP, all_)
        self.part, self._column = element, t.ZERO
        self.at: dict[Index, t.Expr] = {}
        if found.columns:
            self.part, self._column = map(self.fresh, ("part", "column"))
            self.let(self.part, element // self._width)
            self.let(self._column, element % self._width)
            first = self._column * self.lanes
            self.at = unravel(shader, self.body, found.columns, first)
        self.total, self.run = map(self.fresh, ("total", "run"))

    def fresh(self, name: str) -> t.Ident:
        """Return a variable that nothing else is called like."""
        return t.Ident(self.shader.fresh(name))

    def let(self, name: t.Expr, value: t.Expr) -> None:
        """Write a `let`."""
        assert isinstance(name, t.Ident)
        self.body.append(t.Let(name.name, value))

    def bins(self) -> Buffer:
        """Return the results of the bins, with those of parts that are carried behind."""
        return self.shader.scratch("bins", self.found.reduce.type, written=True)

    def place(self, bin_: t.Expr) -> t.Expr:
        """Return where the result of a bin lies, in the own column."""
        return bin_ * self._width + self._column

    def carried(self, level: int, part: t.Expr) -> t.Expr:
        """Return where the result of a part lies that a level carries."""
        before = self.limit
        for number in range(level):
            before = before + to_wgsl(_Level(self.found, number).groups, self.shader)
        return self.place(before + part)

    @property
    def is_first_column(self) -> t.Expr:
        """Whether this is the invocation that works for all columns."""
        return self._column.equals(0)

    def continues(self, at: t.Expr) -> t.Expr:
        """Return whether the term at a place is of the same bin as the one before."""
        before = self.keys.load(t.call("max", at, 1) - 1).equals(self.keys.load(at))
        return t.all_of(at > 0, self.keys.load(at) < self.limit, before)

    def nothing(self) -> t.Expr:
        """Return the reduction's neutral value."""
        reduce = self.found.reduce
        return identity(self.shader, reduce.kind, reduce.type, self.lanes)

    def take(self, value: t.Expr) -> t.Stmt:
        """Return the statement that adds a value to the total."""
        return accumulate(self.found.reduce.kind, self.total, value)

    def finish(self, parts: Size, summary: str, variant: str, trips: Size) -> Shader:
        """Return the whole shader."""
        columns = domain_size(self.found.columns)
        wide = self.lanes == LANES
        return self.shader.finish(
            self.body,
            groups=ceil_div(parts * columns, GROUP * self.lanes),
            workgroup_size=GROUP,
            summary=summary,
            variant=variant if wide else f"{variant}.edge",
            trips=trips,
        )


def _joining_runs(level: _Level, names: frozenset[str]) -> Shader:
    """Join the runs of one bin among what an invocation takes."""
    found = level.found
    to = _Columns(found, names, level.groups)
    first, end, term, key, carries = map(
        to.fresh, ("first", "end", "term", "key", "carries")
    )
    stride, count = level.stride, to_wgsl(level.count, to.shader)
    to.let(first, to.part * level.each)
    to.let(end, t.call("min", first + level.each, count))
    flush = _flush(level, to, carries)
    take = _term(to, term) if level.number == 0 else _carried(to, term)

    def own_run(at: t.Expr) -> t.Expr:
        """Return the bin of a term; of a part, only if it is carried."""
        own = to.keys.load(at * stride)
        if level.number == 0:
            return own
        return t.call("select", to.limit, own, to.continues(at * stride))

    begin = (
        *flush,
        t.Assign(carries, t.Literal("false")),
        t.Assign(to.total, to.nothing()),
        t.Assign(to.run, key),
    )
    to.body += [
        t.Var(to.run.name, own_run(first)),
        t.Var(carries.name, to.continues(first * stride)),
        t.Var(to.total.name, to.nothing()),
        t.count_up(
            term.name,
            first,
            end,
            1,
            t.Let(key.name, own_run(term)),
            t.If(t.Binary("!=", key, to.run), begin),
            t.If(key < to.limit, take),
        ),
        *flush,
    ]
    what = "parts that are carried" if level.number else "terms"
    return to.finish(
        level.groups,
        f"the runs of a bin among {level.each} {what}.",
        "carries" if level.number else "runs",
        Literal(level.each) * maximum(serial_trips((found.body,)), 1),
    )


def _term(to: _Columns, place: t.Ident) -> tuple[t.Stmt, ...]:
    """Return the statements that add the sorted term at a place."""
    found, shader, block = to.found, to.shader, list[t.Stmt]()
    items = shader.scratch("items", Scalar.U32, written=False)
    if moves_values(found):
        own = t.call(f"bitcast<{wgsl_type(found.reduce.type)}>", items.load(place))
        return (to.take(own),)
    item = to.fresh("item")
    block.append(t.Let(item.name, items.load(place)))
    at = {**to.at, **unravel(shader, block, found.terms, item)}
    vector = found.columns[-1] if to.lanes == LANES else None
    label = reduction_label(found.task)
    lowerer = Lowerer(shader, at, block, vector=vector, label=label)
    value = lowerer.lower(found.body)
    wide = to.lanes == LANES
    term = lowerer.widen(value, found.reduce.type) if wide else value.expr
    return (*block, to.take(term))


def _carried(to: _Columns, part: t.Ident) -> tuple[t.Stmt, ...]:
    """Return the statements that add a part carried by the dispatch before."""
    return (to.take(to.bins().load(to.carried(0, part))),)


def _flush(level: _Level, to: _Columns, carries: t.Ident) -> tuple[t.Stmt, ...]:
    """Return the statements at the end of a run: carry it, or write it to its bin."""
    bins, place = to.bins(), to.place(to.run)
    carried = to.carried(level.number, to.part)
    whole: tuple[t.Stmt, ...]
    if level.number:
        whole = (_add(to, bins, place),)
    else:
        filled = to.shader.scratch("filled", Scalar.U32, written=True)
        mark = t.If(to.is_first_column, (filled.store(to.run, t.ONE),))
        whole = (bins.store(place, to.total), mark)
    is_whole = t.all_of(t.Unary("!", carries), to.run < to.limit)
    return (
        t.If(carries, (bins.store(carried, to.total),)),
        t.If(is_whole, whole),
    )


def _add(to: _Columns, bins: Buffer, place: t.Expr) -> t.Stmt:
    """Return the statement that adds the total to a bin in which no other run begins."""
    return bins.store(place, combine(to.found.reduce.kind, bins.load(place), to.total))


def _joining_rest(level: _Level, names: frozenset[str]) -> Shader:
    """Join what a level carries, of each run where it begins."""
    found, parts = level.found, level.groups
    stride = level.stride * level.each
    to = _Columns(found, names, parts)
    part = to.fresh("next")
    at = to.part * stride
    before = t.call("max", to.part, 1) * stride - (stride + 1)
    is_later = t.all_of(
        to.part > 1, to.keys.load(t.call("min", before, at)).equals(to.run)
    )
    begins = t.all_of(to.continues(at), t.Unary("!", is_later))
    bins = to.bins()
    loop = t.For(
        part.name,
        to.part,
        t.all_of(
            part < to_wgsl(parts, to.shader),
            to.keys.load(part * stride).equals(to.run),
        ),
        t.Assign(part, t.ONE, "+="),
        (to.take(bins.load(to.carried(level.number, part))),),
    )
    to.let(to.run, to.keys.load(at))
    join = (
        t.Var(to.total.name, to.nothing()),
        loop,
        _add(to, bins, to.place(to.run)),
    )
    to.body.append(t.If(begins, join))
    variant = f"rest{stride}"
    return to.finish(parts, "what is carried still, of each run.", variant, parts)


def _finishing(found: Scatter, *, wide: bool) -> Shader:
    """Do the stage's steps with what the bins hold; those without terms hold nothing."""
    task, reduce, lanes = found.task, found.reduce, LANES if wide else 1
    names = (
        {*_written_by_four(found), task.scratch_name("bins")} if wide else set[str]()
    )
    shader = ShaderBuilder(task, dict.fromkeys(names, LANES))
    results = shader.size(task.domain) // lanes
    body, element = start_invocation(shader, GROUP, results)
    at = unravel(shader, body, task.domain, element * lanes)
    filled = shader.scratch("filled", Scalar.U32, written=False)
    bins = shader.scratch("bins", reduce.type, written=False)
    bin_, total = (t.Ident(shader.fresh(name)) for name in ("bin", "total"))
    value = bins.load(found.result_at(shader, bin_, at) // lanes)
    body += [
        t.Let(bin_.name, found.bin_at(shader, at)),
        t.Var(total.name, identity(shader, reduce.kind, reduce.type, lanes)),
        t.If(filled.load(bin_).equals(1), (t.Assign(total, value),)),
    ]
    vector = found.columns[-1] if wide else None
    lowerer = Lowerer(shader, at, body, vector=vector, label=reduction_label(task))
    lowerer.reduced[reduce] = Value(total, wide=wide)
    write_steps(lowerer, task.stage)
    return shader.finish(
        body,
        groups=ceil_div(found.result_count, GROUP * lanes),
        workgroup_size=GROUP,
        summary="last dispatch: the stage's steps with each bin.",
        variant="finish" if wide else "finish.edge",
    )

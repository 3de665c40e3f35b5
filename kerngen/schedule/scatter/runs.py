"""The dispatches that join the sorted terms of each bin: its run.

`lists.py` has a picture of parts and runs.  The mark of a bin is what a part finds of it:

    filled[q]   0       bin q has no terms
                1       its results are written
                p + 2   its run begins in part p, and its total is not final

A run that begins and ends in one part is final.  Its results are written at once, and the
last dispatch skips them, unless the stage writes a tensor that other terms still read.

    runs      joins 8 terms in an invocation        always
    carries   joins 128 parts that are carried      above 2^16 terms
    rest      joins what `carries` carries          above 2^16 terms
    finish    the stage's steps for each bin        always
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kerngen.ir.nodes import Index
from kerngen.ir.staging.grouping import MAX_TENSORS
from kerngen.ir.types import Scalar
from kerngen.plan.size import Literal, ceil_div, maximum
from kerngen.schedule.lowering.builder import ShaderBuilder, StorageBinding, wgsl_type
from kerngen.schedule.lowering.cooperation import reduction_label
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.identities import accumulate, combine, identity
from kerngen.schedule.lowering.positions import start_invocation, unravel
from kerngen.schedule.lowering.steps import vector_tensors, write_steps
from kerngen.schedule.lowering.values import LANES, Value
from kerngen.schedule.program import DispatchShader
from kerngen.schedule.scatter.columns import GROUP, RUN, ColumnShader, Level
from kerngen.schedule.scatter.shape import Scatter
from kerngen.schedule.scatter.sort import moves_values
from kerngen.schedule.sizes import serial_trips, to_wgsl
from kerngen.shader import tree as t

BUFFERS: Final = 4
"""The scratch buffers of the shader that reads the terms: keys, items, bins and `filled`."""

FEW_TERMS: Final = 1 << 16
"""Up to this many terms, `finish` itself adds what is carried, of at most 8,192 parts."""

AT_ONCE: Final = 8
"""How many carried parts `finish` reads before it adds any."""


def written_by_four(found: Scatter) -> set[str]:
    """Return the names of the stage's tensors that can be bound as vectors of four columns.

    The set is empty unless the last column is the last index of the domain.
    """
    if not found.columns:
        return set()
    task, last = found.task, found.columns[-1]
    if task.domain[-1] != last:
        return set()
    return vector_tensors(task.stage, task.values, last)


def _writes_at_once(found: Scatter, names: frozenset[str]) -> bool:
    """Whether the shader that reads the terms can write final results.

    It must be able to bind all tensors, and write none that terms or keys read.
    """
    read = found.read_of_terms | found.read_of_keys
    bound = len(found.read_of_terms | found.beside) + BUFFERS
    fits = bool(written_by_four(found)) or not names
    return fits and bound <= MAX_TENSORS and found.written.isdisjoint(read)


def joining_runs(found: Scatter, names: frozenset[str]) -> DispatchShader:
    """Return the shader that joins the terms of each run within parts of 8 sorted terms.

    The loop has a ninth turn, behind the terms, to end the last run.  In WGSL:

        var run = keys[first];
        var carries = (the term before `first` has the same key);
        for (var number = 0u; number < 9u; number++) {
            let key = select(limit, keys[first + number], first + number < u.n);
            if (number == 8u || key != run) {
                ...                                      // end the run, begin that of `key`
            }
            if (number < 8u && key < limit) {
                total += x[items[first + number]];
            }
        }
    """
    level, at_once = Level(found, 0), _writes_at_once(found, names)
    also = written_by_four(found) if names and at_once else set[str]()
    to = ColumnShader(found, names | also, level.groups)
    first, number, key, carries = map(to.fresh, ("first", "number", "key", "carries"))
    count, place = to_wgsl(level.count, to.shader), first + number
    to.let(first, to.part * RUN)
    # In the ninth turn, `key` is that of the next part's first term: if it is the same, the
    # run goes on there.
    own = to.keys.load(t.call("min", place, count - 1))
    last = number.equals(RUN)
    goes_on = t.all_of(last, key.equals(to.run))
    end = (
        *_end_run(to, carries, goes_on, at_once=at_once),
        t.Assign(carries, t.Literal("false")),
        t.Assign(to.total, to.nothing()),
        t.Assign(to.run, key),
    )
    to.body += [
        t.Var(to.run.name, to.keys.load(first)),
        t.Var(carries.name, to.continues(first)),
        t.Var(to.total.name, to.nothing()),
        t.count_up(
            number.name,
            0,
            t.u32(RUN + 1),
            1,
            t.Let(key.name, t.call("select", to.limit, own, place < count)),
            t.If(t.any_of(last, t.Binary("!=", key, to.run)), end),
            t.If(t.all_of(number < RUN, key < to.limit), _term(to, place)),
        ),
    ]
    return to.finish(
        level.groups,
        f"the runs of a bin among {RUN} terms.",
        "runs",
        Literal(RUN + 1) * maximum(serial_trips((found.body,)), 1) + RUN,
    )


def _end_run(
    to: ColumnShader, carries: t.Ident, goes_on: t.Expr, *, at_once: bool
) -> tuple[t.Stmt, ...]:
    """Return the statements at the end of a run, or of the part if the run goes on.

    A run that continues one of the part before is carried.  One that goes on in the next
    part is stored in its bin, with the mark `part + 2`.  One that is whole becomes results.
    """
    bins = to.bins()
    carried = bins.store(to.carried(0, to.part), to.total)
    begun = (bins.store(to.place(to.run), to.total), *_mark(to, to.part + 2))
    whole = t.all_of(t.Unary("!", carries), to.run < to.limit)
    ends = t.all_of(whole, t.Unary("!", goes_on))
    return (
        t.If(carries, (carried,)),
        t.If(t.all_of(whole, goes_on) if at_once else whole, begun),
        *((t.If(ends, _write(to)),) if at_once else ()),
    )


def _term(to: ColumnShader, place: t.Expr) -> tuple[t.Stmt, ...]:
    """Return the statements that add the sorted term at a place."""
    block = list[t.Stmt]()
    value = _value(to, place, block)
    return (*block, to.take(value))


def _value(to: ColumnShader, place: t.Expr, block: list[t.Stmt]) -> t.Expr:
    """Return the value of the sorted term at a place: moved by the sort, or computed here."""
    found, shader = to.found, to.shader
    items = shader.scratch("items", Scalar.U32, written=False)
    if moves_values(found):
        return t.call(f"bitcast<{wgsl_type(found.reduce.type)}>", items.load(place))
    item = to.fresh("item")
    block.append(t.Let(item.name, items.load(place)))
    at = {**to.at, **unravel(shader, block, found.terms, item)}
    vector = found.columns[-1] if to.lanes == LANES else None
    label = reduction_label(found.task)
    lowerer = Lowerer(shader, at, block, vector=vector, label=label)
    value = lowerer.lower(found.body)
    wide = to.lanes == LANES
    return lowerer.widen(value, found.reduce.type) if wide else value.expr


def _mark(to: ColumnShader, value: t.Operand) -> tuple[t.Stmt, ...]:
    """Return the statement that marks the run's bin, in the first column alone."""
    filled = to.shader.scratch("filled", Scalar.U32, written=True)
    return (t.If(to.is_first_column, (filled.store(to.run, t.lift(value)),)),)


def _write(to: ColumnShader) -> tuple[t.Stmt, ...]:
    """Return the stage's steps with the total of a run, and the mark 1 of its bin."""
    found, block = to.found, list[t.Stmt]()
    at = {**to.at, **unravel(to.shader, block, found.bins, to.run)}
    total = Value(to.total, wide=to.lanes == LANES)
    _write_steps(found, to.shader, block, at, total)
    return (*block, *_mark(to, 1))


def _write_steps(
    found: Scatter,
    shader: ShaderBuilder,
    block: list[t.Stmt],
    at: dict[Index, t.Expr],
    total: Value,
) -> None:
    """Write the stage's steps at a place, given the total of its bin."""
    vector = found.columns[-1] if total.wide else None
    label = reduction_label(found.task)
    lowerer = Lowerer(shader, at, block, vector=vector, label=label)
    lowerer.reduced[found.reduce] = total
    write_steps(lowerer, found.task.stage)


def joining_carried(found: Scatter, names: frozenset[str]) -> DispatchShader:
    """Return the shader that joins the carried results of each run within groups of 128 parts.

    It does with carried parts what `joining_runs` does with terms: a run that begins here
    is added to its bin, and one that began before is carried on.  A part that carries
    nothing has the key `limit`.
    """
    level = Level(found, 1)
    to = ColumnShader(found, names, level.groups)
    names_of_part = ("first", "end", "carried", "key", "carries")
    first, end, part, key, carries = map(to.fresh, names_of_part)
    stride, bins = level.stride, to.bins()

    def own_run(at: t.Expr) -> t.Expr:
        """Return the bin that a part carries a result of, or `limit`."""
        own = to.keys.load(at * stride)
        return t.call("select", to.limit, own, to.continues(at * stride))

    # The end of one run and the beginning of the next.
    flush = _flush_carried(to, carries, bins)
    begin = (
        *flush,
        t.Assign(carries, t.Literal("false")),
        t.Assign(to.total, to.nothing()),
        t.Assign(to.run, key),
    )
    to.let(first, to.part * level.each)
    to.let(end, t.call("min", first + level.each, to_wgsl(level.count, to.shader)))
    to.body += [
        t.Var(to.run.name, own_run(first)),
        t.Var(carries.name, to.continues(first * stride)),
        t.Var(to.total.name, to.nothing()),
        t.count_up(
            part.name,
            first,
            end,
            1,
            t.Let(key.name, own_run(part)),
            t.If(t.Binary("!=", key, to.run), begin),
            t.If(key < to.limit, (to.take(bins.load(to.carried(0, part))),)),
        ),
        *flush,
    ]
    return to.finish(
        level.groups,
        f"the runs of a bin among {level.each} parts that are carried.",
        "carries",
        Literal(level.each),
    )


def _flush_carried(
    to: ColumnShader, carries: t.Ident, bins: StorageBinding
) -> tuple[t.Stmt, ...]:
    """Return the statements at the end of a run: carry its total on, or add it to its bin."""
    is_whole = t.all_of(t.Unary("!", carries), to.run < to.limit)
    return (
        t.If(carries, (bins.store(to.carried(1, to.part), to.total),)),
        t.If(is_whole, (_add(to, bins, to.place(to.run)),)),
    )


def _add(to: ColumnShader, bins: StorageBinding, place: t.Expr) -> t.Stmt:
    """Return the statement that adds the total to a bin.

    No other invocation changes that bin, as a run begins in one place.
    """
    return bins.store(place, combine(to.found.reduce.kind, bins.load(place), to.total))


def joining_rest(found: Scatter, names: frozenset[str]) -> DispatchShader:
    """Return the shader that adds to the bins what `joining_carried` carries on.

    A run may go on through several groups of 128 parts: the invocation of the first of them
    adds what all of them carry, in a loop.
    """
    level = Level(found, 1)
    parts, stride = level.groups, level.stride * level.each
    to = ColumnShader(found, names, parts)
    part = to.fresh("next")
    at = to.part * stride
    # The term before the group before: if it has the same bin, that group continues the
    # run, too, and this is not the first one.
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
        (to.take(bins.load(to.carried(1, part))),),
    )
    to.let(to.run, to.keys.load(at))
    join = (
        t.Var(to.total.name, to.nothing()),
        loop,
        _add(to, bins, to.place(to.run)),
    )
    to.body.append(t.If(begins, join))
    summary = "what is carried still, of each run."
    return to.finish(parts, summary, f"rest{stride}", parts)


def finishing(found: Scatter, names: frozenset[str]) -> DispatchShader:
    """Return the last shader: it does the stage's steps with the result of each bin.

    A bin without terms has the neutral value.  Up to 2^16 terms, what later parts carry of
    a bin's run is added here.  In WGSL:

        let mark = filled[bin];
        if (mark == 1u) { return; }                      // the results are written
        var total = vec4f(0.0);
        if (mark > 1u) {
            ...                                          // `rest`: what later parts carry
            total = bins[...] + rest;
        }
        y[...] = total;
    """
    task, reduce, four = found.task, found.reduce, written_by_four(found)
    wide = bool(names and four)
    lanes = LANES if wide else 1
    vectors = {*four, task.scratch_name("bins")} if wide else set[str]()
    shader = ShaderBuilder(task, dict.fromkeys(vectors, LANES))
    results = shader.size(task.domain) // lanes
    body, element = start_invocation(shader, GROUP, results)
    at = unravel(shader, body, task.domain, element * lanes)
    filled = shader.scratch("filled", Scalar.U32, written=False)
    bins = shader.scratch("bins", reduce.type, written=False)
    bin_, mark, total = (t.Ident(shader.fresh(n)) for n in ("bin", "mark", "total"))

    def sum_of(number: t.Expr) -> t.Expr:
        return bins.load(found.result_at(shader, number, at) // lanes)

    body.append(t.Let(bin_.name, found.bin_at(shader, at)))
    body.append(t.Let(mark.name, filled.load(bin_)))
    # Results that `runs` has written are left alone.
    if _writes_at_once(found, names):
        body.append(t.If(mark.equals(1), (t.Return(),)))
    nothing = identity(shader, reduce.kind, reduce.type, lanes)
    rest = t.Ident(shader.fresh("rest"))
    joined = combine(reduce.kind, sum_of(bin_), rest)
    begun = (
        t.Var(rest.name, nothing),
        *_later_parts(found, shader, (bin_, mark), rest, sum_of, lanes),
        t.Assign(total, joined),
    )
    body += [t.Var(total.name, nothing), t.If(mark > 1, begun)]
    _write_steps(found, shader, body, at, Value(total, wide=wide))
    return shader.finish(
        body,
        groups=ceil_div(found.result_count, GROUP * lanes),
        workgroup_size=GROUP,
        summary="last dispatch: the stage's steps with each bin.",
        variant="finish" if wide else "finish.edge",
        trips=Literal(FEW_TERMS // RUN),
    )


def _later_parts(
    found: Scatter,
    shader: ShaderBuilder,
    bin_: tuple[t.Ident, t.Ident],
    rest: t.Ident,
    sum_of: Callable[[t.Expr], t.Expr],
    lanes: int,
) -> tuple[t.Stmt, ...]:
    """Return the loop that adds the sums that later parts of a bin's run carry to `rest`.

    `bin_` is the bin's number and its mark; with mark p + 2 the run goes on from part
    p + 1.  Eight parts are read before any is added: one at a time, an H200 took 0.35 us
    for each.
    """
    number, mark = bin_
    keys = shader.scratch("keys", Scalar.U32, written=False)
    part, end = (t.Ident(shader.fresh(name)) for name in ("part", "end"))
    level = Level(found, 0)
    few = t.Binary("<=", to_wgsl(level.count, shader), t.u32(FEW_TERMS))
    parts = t.call("select", t.ZERO, to_wgsl(level.groups, shader), few)
    reads, adds = list[t.Stmt](), list[t.Stmt]()
    nothing = identity(shader, found.reduce.kind, found.reduce.type, lanes)
    for further in range(AT_ONCE):
        at, value, own = (
            t.Ident(shader.fresh(f"{name}{further}"))
            for name in ("at", "carried", "is_own")
        )
        same = keys.load(at * RUN).equals(number)
        is_own = t.Binary("&", part + further < end, same)
        reads += [
            t.Let(at.name, t.call("min", part + further, end - 1)),
            t.Let(value.name, sum_of(shader.size(found.bins) + at)),
            t.Let(own.name, is_own),
        ]
        term = t.call("select", nothing, value, own)
        adds.append(accumulate(found.reduce.kind, rest, term))
    begins = t.all_of(part < end, keys.load(part * RUN).equals(number))
    step = t.Assign(part, t.u32(AT_ONCE), "+=")
    loop = t.For(part.name, mark - 1, begins, step, (*reads, *adds))
    return (t.Let(end.name, parts), loop)

"""Keyed reductions by atomic operations: three dispatches.

    1. clear    each bin gets the neutral value
    2. take     each term is reduced into its bin:   atomicAdd(&bins[k], 1u);
    3. finish   the stage's steps with each bin's result

Where bins are few, a workgroup first reduces its terms into bins of its own, in workgroup
memory, and then those into the bins in storage.  Atomics in workgroup memory are some 200
times as fast where neighbours have the same key: with 256 bins, an H200 takes 856 billion
keys per second, and 4 billion by atomics in storage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from kerngen.ir.nodes import ReduceKind
from kerngen.ir.types import Scalar, ValueType
from kerngen.plan import size as host
from kerngen.plan.tree import Scratch
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.cooperation import reduction_label
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.positions import linear_group, start_invocation, unravel
from kerngen.schedule.lowering.steps import last_extents, tensors_in_runs, write_steps
from kerngen.schedule.lowering.values import COMPONENTS, LANES, Value
from kerngen.schedule.program import DispatchShader, Variant
from kerngen.schedule.scatter.shape import Scatter
from kerngen.schedule.sizes import (
    all_divisible,
    ceil_division,
    domain_size,
    serial_trips,
    to_wgsl,
)
from kerngen.shader import tree as t

GROUP: Final = 256
"""The lanes of a workgroup."""

PRIVATE_BINS: Final = (256, 1024, 4096)
"""How many bins a workgroup may have in its memory, a variant each.

4,096 take the 16 KiB that WebGPU promises.  With fewer, more workgroups run at the same
time.
"""

MOST_SLICES: Final = 4
"""Into how many slices of 4,096 the bins may be cut.

A workgroup has one slice, so that all terms are read once for each.  For more bins, atomics
in storage are faster.
"""

TERMS_PER_LANE: Final = 16
"""How many terms a lane takes at most, while there are fewer workgroups than `MOST_GROUPS`."""

MOST_GROUPS: Final = 1024
"""The most workgroups for a slice: enough for a large device.

Each one adds all of its bins to those in storage, so more would not be free.
"""


def lower_atomics(found: Scatter, *, private: bool) -> Iterator[Variant]:
    """Yield the variants: bins in workgroup memory if they are few; last, bins in storage.

    Without `private`, only the last variant is there.
    """
    first, last = _clearing(found), _finishing(found)
    bins = found.result_count
    scratch = (Scratch(found.task.scratch_name("bins"), bins),)
    names, aligned = _read_by_four(found)
    # Only the most bins of a workgroup are cut into slices.
    for number in PRIVATE_BINS if private else ():
        most = number * (MOST_SLICES if number == PRIVATE_BINS[-1] else 1)
        few = host.compare("<=", bins, most)
        for name, when, read in (
            (f"bins{most}_aligned", host.all_of(few, aligned), names),
            (f"bins{most}_edge", few, frozenset[str]()),
        ):
            if when != host.NEVER:
                taking = _taking_privately(found, number, read)
                yield Variant(name, when, (first, taking, last), scratch)
    yield Variant("", host.ALWAYS, (first, _taking(found), last), scratch)


def _clearing(found: Scatter) -> DispatchShader:
    """Return the first shader: it stores the neutral value in each bin."""
    task, reduce = found.task, found.reduce
    shader = ShaderBuilder(task, {})
    body, at = start_invocation(shader, GROUP, shader.size(task.domain))
    bins = shader.scratch("bins", Scalar.U32, written=True)
    body.append(bins.store(at, start_word(reduce.kind, reduce.type)))
    return shader.finish(
        body,
        groups=host.ceil_div(found.result_count, GROUP),
        workgroup_size=GROUP,
        summary="first of three dispatches: what a reduction of nothing gives.",
        variant="clear",
    )


def _taking(found: Scatter) -> DispatchShader:
    """Return the second shader for bins in storage: an invocation has a term in a column."""
    shader = ShaderBuilder(found.task, {})
    indices = (*found.terms, *found.columns)
    body, element = start_invocation(shader, GROUP, shader.size(indices))
    lowerer = Lowerer(shader, {}, body, label=reduction_label(found.task))
    lowerer.at.update(unravel(shader, body, indices, element))
    bins = shader.atomics("bins")
    return shader.finish(
        [*_take(found, lowerer, bins.expr)],
        groups=host.ceil_div(domain_size(indices), GROUP),
        workgroup_size=GROUP,
        summary="second of three dispatches: each term to its bin, in memory.",
        variant="take",
        terms=domain_size(indices),
        trips=_trips(found),
    )


def _taking_privately(
    found: Scatter, number: int, names: frozenset[str]
) -> DispatchShader:
    """Return the second shader for bins in workgroup memory: `number` in each workgroup.

    An invocation takes one term at a time, or four neighbours of the tensors `names`.  In
    WGSL, for a histogram:

        let slice = group % slices * BINS;               // the slice's first bin
        ...                                              // clear `own`
        for (var element = group / slices * 256u + lane; ...; element += parts * 256u) {
            let k = x[element];
            if (k < u.bins_length) {
                let bin = k - slice;
                if (bin < BINS) { atomicAdd(&own[bin], 1u); }
            }
        }
        ...                                              // add `own` to `bins`

    `bin` wraps around where k is below the slice, so that one comparison is enough.  There
    are never so many workgroups that they fold into two dimensions.
    """
    shader = ShaderBuilder(found.task, dict.fromkeys(names, LANES))
    indices, width = (*found.terms, *found.columns), LANES if names else 1
    count = shader.override("BINS", number)
    own = shader.workgroup_array("own", f"array<atomic<u32>, {count.name}>", 4 * number)
    slices, parts, slice_, element = (
        t.Ident(shader.fresh(name)) for name in ("slices", "parts", "slice", "element")
    )
    group, total = linear_group(shader), shader.size(found.task.domain)
    body: list[t.Stmt] = [
        t.Let(slices.name, ceil_division(total, count)),
        t.Let(parts.name, to_wgsl(_parts(found), shader)),
        t.Let(slice_.name, group % slices * count),
        *_fill(found, shader, own, count),
        t.BARRIER,
    ]
    # The loop's body: the indices of a term, or of four, and its way to its bin.
    at = Lowerer(shader, {}, [], label=reduction_label(found.task))
    at.at.update(unravel(shader, at.block, indices, element * width))
    take = _take_four if names else _take
    loop = t.count_up(
        element.name,
        group // slices * GROUP + shader.lane,
        shader.size(indices) // width,
        parts * GROUP,
        *take(found, at, own, (slice_, count)),
    )
    body += [loop, t.BARRIER, *_flush(found, shader, own, (slice_, count))]
    turns = host.ceil_div(domain_size(indices), _parts(found) * (GROUP * width))
    return shader.finish(
        body,
        groups=_slices(found, number) * _parts(found),
        workgroup_size=GROUP,
        summary="second of three dispatches: each term to its bin, in workgroup memory.",
        variant="private" if names else "private.edge",
        terms=domain_size(indices) + MOST_GROUPS * GROUP,
        trips=turns * (_trips(found) + 1),
    )


def _read_by_four(found: Scatter) -> tuple[frozenset[str], host.Guard]:
    """Return the tensors that are read as vectors of four terms, and for which lengths."""
    last = found.terms[-1]
    read = (found.body, *found.guards, *(key.value for key in found.keys))
    names = set[str]() if found.columns else tensors_in_runs(read, last)
    extents = last_extents(found.task.stage, read, names)
    when = all_divisible((last.extent, *extents), LANES) if names else host.NEVER
    return frozenset(names), when


def _slices(found: Scatter, number: int) -> host.Size:
    """Return the number of slices of the bins, of `number` bins each."""
    return host.ceil_div(found.result_count, number)


def _parts(found: Scatter) -> host.Size:
    """Return the number of workgroups that share the terms of a slice: at least one."""
    terms = domain_size((*found.terms, *found.columns))
    return host.maximum(
        host.minimum(host.ceil_div(terms, GROUP * TERMS_PER_LANE), MOST_GROUPS), 1
    )


def _fill(
    found: Scatter, shader: ShaderBuilder, own: t.Expr, count: t.Expr
) -> list[t.Stmt]:
    """Return the loop that fills a workgroup's bins with the neutral value.

    WGSL initialises workgroup memory with 0, but wgpu-native does not if an array's length
    is an override.
    """
    start = start_word(found.reduce.kind, found.reduce.type)
    at = t.Ident(shader.name("own_bin", "loop"))
    store = t.Evaluate(t.call("atomicStore", t.Unary("&", own[at]), start))
    return [t.count_up(at.name, shader.lane, count, GROUP, store)]


def _flush(
    found: Scatter, shader: ShaderBuilder, own: t.Expr, slice_: tuple[t.Expr, t.Expr]
) -> list[t.Stmt]:
    """Return the loop that adds a workgroup's bins to those in storage.

    Bins that still have the neutral value are skipped.
    """
    first, count = slice_
    kind, type_ = found.reduce.kind, found.reduce.type
    at, word = (t.Ident(shader.name(name, "loop")) for name in ("own_bin", "word"))
    bins = shader.atomics("bins").expr
    change = t.Evaluate(t.call(ATOMIC[kind], t.Unary("&", bins[first + at]), word))
    took = t.Binary("!=", word, start_word(kind, type_))
    body = (
        t.Let(word.name, t.call("atomicLoad", t.Unary("&", own[at]))),
        t.If(took, (change,)),
    )
    return [t.count_up(at.name, shader.lane, count, GROUP, *body)]


def _take(
    found: Scatter,
    lowerer: Lowerer,
    bins: t.Expr,
    slice_: tuple[t.Expr, t.Expr] | None = None,
) -> tuple[t.Stmt, ...]:
    """Return the statements that reduce a term into its bin, if that is in the slice.

    `slice_` is the number of the slice's first bin and of its bins; None for bins in
    storage.
    """
    chosen = found.lower_key(lowerer)
    inner = lowerer.nested({})
    value = inner.lower(found.body).expr
    change = _change(found, inner, bins, value, slice_)
    return (*lowerer.block, _at_bin(found, lowerer, chosen, change, slice_))


def _take_four(
    found: Scatter,
    lowerer: Lowerer,
    bins: t.Expr,
    slice_: tuple[t.Expr, t.Expr] | None = None,
) -> tuple[t.Stmt, ...]:
    """Return the statements of `_take` for four neighbours, which are read as vectors.

    Keys, guards and values are computed as vectors; each component is a block of its own.
    """
    four = replace(lowerer, vector=found.terms[-1])
    keys = [four.named(four.lower(key.value), "keys") for key in found.keys]
    guards = [four.named(four.lower(guard), "guards") for guard in found.guards]
    terms = four.named(four.lower(found.body), "terms")
    blocks: list[t.Stmt] = []
    for number, component in enumerate(COMPONENTS):
        inner = lowerer.nested({})
        chosen = found.choose_bin(
            inner,
            [key.lane(component) for key in keys],
            [guard.lane(component) for guard in guards],
        )
        taken = inner.nested({})
        change = _change(found, taken, bins, terms.lane(component), slice_)
        inner.block.append(_at_bin(found, lowerer, chosen, change, slice_))
        blocks.append(t.Block(f"Term {number} of four.", tuple(inner.block)))
    return (*lowerer.block, *blocks)


def _change(
    found: Scatter,
    inner: Lowerer,
    bins: t.Expr,
    value: t.Expr,
    slice_: tuple[t.Expr, t.Expr] | None,
) -> tuple[t.Stmt, ...]:
    """Return the atomic operation that reduces a value into the named bin."""
    shader, reduce = inner.shader, found.reduce
    place = t.Ident(shader.name("bin", "bin"))
    word = to_word(reduce.kind, reduce.type, value)
    change = t.Evaluate(t.call(ATOMIC[reduce.kind], t.Unary("&", bins[place]), word))
    taken: tuple[t.Stmt, ...] = (*inner.block, change)
    return taken if slice_ is None else (t.If(place < slice_[1], taken),)


def _at_bin(
    found: Scatter,
    lowerer: Lowerer,
    chosen: tuple[t.Expr, t.Expr],
    change: tuple[t.Stmt, ...],
    slice_: tuple[t.Expr, t.Expr] | None,
) -> t.Stmt:
    """Return the statement that computes the address of a term's bin, then does `change`.

        if (k < u.bins_length) { let bin = k - slice; ... }

    It does nothing for a term that counts nowhere.
    """
    counts, number = chosen
    name = lowerer.shader.name("bin", "bin")
    address = found.result_at(lowerer.shader, number, lowerer.at)
    at = address if slice_ is None else address - slice_[0]
    return t.If(counts, (t.Let(name, at), *change))


def _finishing(found: Scatter) -> DispatchShader:
    """Return the last shader: it does the stage's steps with the result of each bin."""
    task, reduce = found.task, found.reduce
    shader = ShaderBuilder(task, {})
    body, element = start_invocation(shader, GROUP, shader.size(task.domain))
    at = unravel(shader, body, task.domain, element)
    bins = shader.scratch("bins", Scalar.U32, written=False)
    word = bins.load(found.result_at(shader, found.bin_at(shader, at), at))
    value = from_word(reduce.kind, reduce.type, word)
    lowerer = Lowerer(shader, at, body, label=reduction_label(task))
    total = shader.let(body, "total", value)
    lowerer.reduced[reduce] = Value(total)
    write_steps(lowerer, task.stage)
    return shader.finish(
        body,
        groups=host.ceil_div(found.result_count, GROUP),
        workgroup_size=GROUP,
        summary="last of three dispatches: the stage's steps with each bin.",
        variant="finish",
    )


def _trips(found: Scatter) -> host.Size:
    """Return the trips of the loops for one term."""
    return serial_trips((found.body, *found.guards, *(k.value for k in found.keys)))


# Values encoded as u32, for atomic operations, as WGSL has none on f32:
#
#     sum of u32 and i32      the bits of the value; both wrap around in the same way
#     max, min of u32         the value
#     max, min of i32         the bits with the sign flipped, so that negative values are less
#
# `max` and `min` of f32 are reduced as those of the numbers' ranks, which are i32.


ATOMIC: Final[dict[ReduceKind, str]] = {
    "sum": "atomicAdd",
    "max": "atomicMax",
    "min": "atomicMin",
}
"""WGSL's atomic operation of each kind of reduction; there is none for products."""

_SIGN: Final = t.Literal("0x80000000u")
"""The sign bit of an i32."""

_START: Final[dict[tuple[ReduceKind, Scalar], str]] = {
    ("sum", Scalar.U32): "0u",
    ("sum", Scalar.I32): "0u",
    ("max", Scalar.U32): "0u",
    ("max", Scalar.I32): "0u",
    ("min", Scalar.U32): "0xffffffffu",
    ("min", Scalar.I32): "0xffffffffu",
}
"""The encoded neutral value of each reduction, with which bins begin."""


def has_word(kind: ReduceKind, type_: ValueType) -> bool:
    """Whether atomic operations can reduce values of a type, encoded as a u32."""
    by_rank = type_ is Scalar.F32 and kind in {"max", "min"}
    return by_rank or (isinstance(type_, Scalar) and (kind, type_) in _START)


def start_word(kind: ReduceKind, type_: ValueType) -> t.Expr:
    """Return the neutral value of a reduction, encoded as a u32."""
    assert isinstance(type_, Scalar)
    return t.Literal(_START[kind, type_])


def to_word(kind: ReduceKind, type_: ValueType, value: t.Expr) -> t.Expr:
    """Return a value encoded as a u32 for atomic operations."""
    match type_:
        case Scalar.I32 if kind == "sum":
            return t.call("bitcast<u32>", value)
        case Scalar.I32:
            return t.Binary("^", t.call("bitcast<u32>", value), _SIGN)
        case _:
            return value


def from_word(kind: ReduceKind, type_: ValueType, word: t.Expr) -> t.Expr:
    """Return the value that a u32 encodes."""
    match type_:
        case Scalar.I32 if kind == "sum":
            return t.call("bitcast<i32>", word)
        case Scalar.I32:
            return t.call("bitcast<i32>", t.Binary("^", word, _SIGN))
        case _:
            return word

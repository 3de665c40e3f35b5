"""Keyed reductions by sorting: terms are sorted by bin, then the terms of each bin joined.

They are joined in the order of the terms, so that a sum of f32 has the same bits each time.
A part is 8 consecutive sorted terms (4 in the picture), which an invocation joins in one
column of the results, or in four.  The terms of a bin are a run:

    part      0         1         2
    bins      0 0 0 2 | 2 2 2 2 | 2 2 5 5
    runs      a     b | b       | b   c
    bins[0] = a    bins[2] = b of part 0    bins[5] = c
    carried:  b of part 1, b of part 2

Each part stores the runs that begin in it to their bins.  The sum of a run that a part
continues is carried: it is stored behind the bins, and added later:

    up to 2^16 terms   the last dispatch adds what is carried for its bin, in a loop
    above that         a dispatch joins 128 carried parts at a time, in the same way, and
                       another one joins what that carries

So a single bin with all terms takes no longer than a loop over 1/1024 of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from kerngen.ir.nodes import Expr
from kerngen.ir.types import Scalar
from kerngen.plan import size as host
from kerngen.plan.tree import Scratch
from kerngen.schedule.lowering.builder import ShaderBuilder
from kerngen.schedule.lowering.cooperation import reduction_label
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.positions import start_invocation, unravel
from kerngen.schedule.lowering.steps import (
    last_extents,
    tensors_in_runs,
)
from kerngen.schedule.lowering.values import LANES
from kerngen.schedule.program import DispatchShader, Variant
from kerngen.schedule.scatter.columns import GROUP, Level
from kerngen.schedule.scatter.few import FEW, compares, sorting_few
from kerngen.schedule.scatter.runs import (
    FEW_TERMS,
    finishing,
    joining_carried,
    joining_rest,
    joining_runs,
    written_by_four,
)
from kerngen.schedule.scatter.shape import Scatter
from kerngen.schedule.scatter.sort import (
    moves_values,
    sort_scratch,
    sorted_into,
    sorting,
)
from kerngen.schedule.sizes import all_divisible, domain_size, serial_trips, to_wgsl
from kerngen.schedule.sort.passes import renamed
from kerngen.schedule.sort.tile import DIGIT_BITS
from kerngen.shader import tree as t

PASSES: Final = (1, 2, 3, 4)
"""How many digits of 8 bits a bin's number may have; each number of passes is a variant."""


def lower_lists(found: Scatter) -> Iterator[Variant]:
    """Yield the variants: one for few terms, then for one to four digits of a bin's number.

    Each is there for four columns at once (`aligned`), where that is possible, and for one
    column (`edge`).  A digit has eight bits, and takes a pass of the sort.
    """
    few = host.compare("<=", found.term_count, FEW) if compares(found) else host.NEVER
    for name, when, wide in _widths(found):
        if host.NEVER not in {few, when}:
            shaders = tuple(_shaders(found, 0, wide))
            yield Variant(
                f"few_{name}", host.all_of(few, when), shaders, _scratch(found)
            )
    for number in PASSES:
        # `<`, not `<=`: the number of bins is the key of terms that count nowhere.
        fits = host.compare("<", found.bin_count, 1 << DIGIT_BITS * number)
        last = number == PASSES[-1]
        for name, when, wide in _widths(found):
            guard = when if last else host.all_of(fits, when)
            if guard == host.NEVER:
                continue
            label = f"digits{number}_{name}"
            yield Variant(
                label, guard, tuple(_shaders(found, number, wide)), _scratch(found)
            )


def _widths(found: Scatter) -> Iterator[tuple[str, host.Guard, frozenset[str]]]:
    """Yield which tensors are read four columns at once, where sizes allow; then none."""
    if found.columns:
        last = found.columns[-1]
        task, names = found.task, tensors_in_runs((found.body,), last)
        all_ = names | written_by_four(found)
        extents = last_extents(task.stage, (*task.values, found.body), all_)
        aligned = all_divisible((last.extent, *extents), LANES)
        if names and aligned != host.NEVER:
            yield "aligned", aligned, frozenset(names)
    yield "edge", host.ALWAYS, frozenset()


def _scratch(found: Scatter) -> tuple[Scratch, ...]:
    """Return the scratch buffers of all dispatches.

    In WGSL:

        filled    a mark for each bin: `runs.py` has their meanings
        bins      the results of the bins | carried by parts | carried by 128 parts
    """
    name, columns = found.task.scratch_name, domain_size(found.columns)
    carried = (Level(found, 0).groups + Level(found, 1).groups) * columns
    return (
        *sort_scratch(found),
        Scratch(name("filled"), found.bin_count),
        Scratch(name("bins"), found.result_count + carried),
    )


def _shaders(
    found: Scatter, passes: int, names: frozenset[str]
) -> Iterator[DispatchShader]:
    """Yield the dispatches; with 0 `passes`, a single one sorts the terms by comparison.

    The joining shaders name the buffers of `FIRST`; they are bound to those in which the
    sort ends.
    """
    once = found.task.once
    if passes:
        where = sorted_into(found, passes)
        yield once(_keying, lambda: _keying(found))
        yield from sorting(found, passes)
    else:
        where = sorted_into(found, 1)
        yield sorting_few(found)
    # These are the same shaders for any number of passes, with other buffers.
    rest = (
        once((joining_runs, names), lambda: joining_runs(found, names)),
        _of_many(
            found,
            once((joining_carried, names), partial(joining_carried, found, names)),
        ),
        _of_many(
            found, once((joining_rest, names), partial(joining_rest, found, names))
        ),
        once((finishing, names), lambda: finishing(found, names)),
    )
    yield from (renamed(shader, where) for shader in rest)


def _of_many(found: Scatter, shader: DispatchShader) -> DispatchShader:
    """Return a dispatch that is left out for few terms: it has 0 workgroups."""
    few = host.compare("<=", found.term_count, FEW_TERMS)
    return replace(shader, groups=host.select(few, 0, shader.groups))


def _keying(found: Scatter) -> DispatchShader:
    """Return the first shader: it computes each term's bin, and marks all bins as empty.

    In WGSL:

        if (element < u.segments_length) { filled[element] = 0u; }
        if (element < u.n) {
            let s = segment[element];
            keys_[element] = select(u.segments_length, s, s < u.segments_length);
        }
    """
    shader = ShaderBuilder(found.task, {})
    body, element = start_invocation(shader, GROUP, to_wgsl(_longer(found), shader))
    filled = shader.scratch("filled", Scalar.U32, written=True)
    keys = shader.scratch("keys", Scalar.U32, written=True)
    bins = shader.size(found.bins)
    body.append(t.If(element < bins, (filled.store(element, t.ZERO),)))
    # A term that counts nowhere has the number of bins as its key, and so is sorted last.
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
        groups=host.ceil_div(_longer(found), GROUP),
        workgroup_size=GROUP,
        summary="the number of each term's bin; that of no bin, where it counts nowhere.",
        variant="keys",
        terms=found.term_count,
        trips=serial_trips(_of_terms(found)),
    )


def _of_terms(found: Scatter) -> tuple[Expr, ...]:
    """Return the expressions that the first shader computes for each term."""
    values = (found.body,) if moves_values(found) else ()
    return (*found.guards, *(key.value for key in found.keys), *values)


def _longer(found: Scatter) -> host.Size:
    """Return the number of terms or bins, whichever is greater."""
    return host.maximum(found.term_count, found.bin_count)

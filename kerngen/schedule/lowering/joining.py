"""A function of the shader that joins the partial results of lanes that share a row.

It joins them by a tree over workgroup memory.  With subgroups, if the adapter has them, each
subgroup joins its lanes without a barrier, and then each lane takes part in joining the
results of all subgroups.  Every lane gets the result.  The order is fixed, so the same input
gives the same bits each time.

    fn row_sum(part: f32, lane: u32) -> f32 {             // 256 lanes
        partial[lane] = part;
        workgroupBarrier();
        if (lane < 64u) {
            partial[lane] = partial[lane] + partial[lane + 64u] + (...);
        }
        workgroupBarrier();
        ...                                               // 16 lanes, then 4
        let joined = partial[0u] + partial[1u] + (partial[2u] + partial[3u]);
        workgroupBarrier();
        return joined;
    }

The last barrier is for the next call, which stores to the same array.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from kerngen.ir.nodes import ReduceKind
from kerngen.ir.types import Matrix, ValueType
from kerngen.schedule.lowering.argmax import best_in_subgroup
from kerngen.schedule.lowering.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.lowering.cooperation import value_bytes
from kerngen.schedule.lowering.identities import accumulate, combine, identity, in_pairs
from kerngen.schedule.task import Options
from kerngen.shader import declarations as wgsl
from kerngen.shader import tree as t

JOINED: Final = 4
"""How many values a lane joins between two barriers: with fours, the tree has half of the
barriers that it has with pairs."""


def left_to_join(lanes: int) -> int:
    """Return how many values are left for the last step of a tree over a power of two lanes.

    That is 4 or 2: of 64 lanes 4 (64, 16, 4), of 128 lanes 2 (128, 32, 8, 2).
    """
    while lanes > JOINED:
        lanes //= JOINED
    return lanes


def by_subgroups(options: Options) -> bool:
    """Whether a schedule's options ask for joining by subgroups."""
    return options.get("subgroups", (0,)) == (1,)


def suits_subgroups(type_: ValueType) -> str:
    """Return why subgroups can't join values of a type, or "" if they can."""
    is_matrix = isinstance(type_, Matrix)
    return "no subgroup joins matrices" if is_matrix else ""


@final
@dataclass(frozen=True, slots=True)
class Rungs:
    """How many lanes share a row, as expressions of overrides that are set with the pipeline.

    So one shader serves several ranges of row lengths, the rungs of a ladder.

    - `lanes`: the lanes of a row, a power of two of up to `most`
    - `workgroup`: the lanes of a workgroup
    - `last`: the values left for the last step, `left_to_join(lanes)`
    """

    lanes: t.Expr
    workgroup: t.Ident
    last: t.Expr
    most: int


@final
class Joiner:
    """Emits the shader functions that join lanes, one for each kind of reduction and type.

    Variables in these functions have the same names in every shader, so that the entry points
    of a file share the functions.
    """

    def __init__(
        self,
        shader: ShaderBuilder,
        lanes: int,
        workgroup: int,
        *,
        subgroups: bool,
        rungs: Rungs | None = None,
    ) -> None:
        """Join `lanes` of a workgroup at a time: neighbours, a power of two of them.

        Subgroups only join all lanes of a workgroup, whose number the shader has: with `rungs`
        the pipeline has it.
        """
        self._shader = shader
        self._rungs = rungs
        self._lanes = lanes
        self._workgroup = workgroup
        self._subgroups = subgroups and lanes == workgroup and rungs is None
        self._functions: dict[tuple[ReduceKind, ValueType], str] = {}
        self._arrays: dict[ValueType, t.Expr] = {}

    def joined(self, kind: ReduceKind, type_: ValueType, part: t.Expr) -> t.Expr:
        """Return a call that joins the values `part` of a row's lanes; every lane must call it.

        The function is declared at its first use.
        """
        if (kind, type_) not in self._functions:
            name = self._shader.fresh(f"row_{kind}")
            self._functions[kind, type_] = name
            self._shader.declare(f"function {name}", self._write(name, kind, type_))
        others = self._shader.subgroup if self._subgroups else ()
        function = self._functions[kind, type_]
        return t.call(function, part, self._shader.lane, *others)

    def _write(self, name: str, kind: ReduceKind, type_: ValueType) -> wgsl.Function:
        if self._subgroups:
            return self._of_subgroups(name, kind, type_)
        if self._rungs:
            return self._tree_of(self._rungs, name, kind, type_)
        return self._tree(name, kind, type_)

    def _shared(self, type_: ValueType) -> t.Expr:
        if type_ not in self._arrays:
            length = self._rungs.workgroup.name if self._rungs else self._workgroup
            array = f"array<{wgsl_type(type_)}, {length}>"
            size = self._workgroup * value_bytes(type_)
            self._arrays[type_] = self._shader.workgroup_array("partial", array, size)
        return self._arrays[type_]

    def _tree(self, name: str, kind: ReduceKind, type_: ValueType) -> wgsl.Function:
        shader, lanes, shared = self._shader, self._lanes, self._shared(type_)
        part, joined = map(t.Ident, ("part", "joined"))
        # Several rows may share a workgroup: `start` is the row's first lane.
        whole = lanes == self._workgroup
        place = shader.lane if whole else shader.lane % lanes
        start = t.ZERO if whole else t.Binary("-", shader.lane, place)
        body: list[t.Stmt] = [t.Assign(shared[shader.lane], part), t.BARRIER]
        count = lanes
        # A fourth of the lanes joins four values each, until four or two are left.
        while count > JOINED:
            count //= JOINED
            of = [shared[shader.lane + number * count] for number in range(JOINED)]
            merged = t.Assign(shared[shader.lane], in_pairs(kind, of))
            body += [t.If(place < count, (merged,)), t.BARRIER]
        left = [shared[start + number] for number in range(count)]
        body.append(t.Let(joined.name, in_pairs(kind, left)))
        body += [t.BARRIER, t.Return(joined)]
        comment = (
            f"The {_SAID[kind]} over the {lanes} lanes of a row, in a fixed order."
        )
        return self._function(name, type_, (part, shader.lane), body, comment)

    def _tree_of(
        self, rungs: Rungs, name: str, kind: ReduceKind, type_: ValueType
    ) -> wgsl.Function:
        """Join as `_tree` does, in as many steps as the pipeline's lanes need.

        The order is that of `_tree`.  A driver folds the conditions on the override LANES:

            if (LANES > 4u) {
                let count = LANES >> 2u;
                if (place < count) { partial[lane] = ...; }
                workgroupBarrier();
            }
            if (LANES > 16u) { ... }
        """
        shader, shared = self._shader, self._shared(type_)
        names = ("part", "place", "count", "start", "joined")
        part, place, count, start, joined = map(t.Ident, names)
        body: list[t.Stmt] = [
            t.Let(place.name, shader.lane % rungs.lanes),
            t.Assign(shared[shader.lane], part),
            t.BARRIER,
        ]
        # As many steps as the most lanes need; with fewer, conditions leave some out.
        step = JOINED
        while step < rungs.most:
            of = [shared[shader.lane + count * number] for number in range(JOINED)]
            merged = t.Assign(shared[shader.lane], in_pairs(kind, of))
            inner = (
                t.Let(count.name, rungs.lanes // step),
                t.If(place < count, (merged,)),
                t.BARRIER,
            )
            body.append(t.If(rungs.lanes > step, inner))
            step *= JOINED
        # The last step: two values, and two more where four are left.
        first, *others = (shared[start + number] for number in range(JOINED))
        rest = in_pairs(kind, others[1:])
        body += [
            t.Let(start.name, t.Binary("-", shader.lane, place)),
            t.Var(joined.name, in_pairs(kind, [first, others[0]])),
            t.If(rungs.last > 2, (t.Assign(joined, combine(kind, joined, rest)),)),
            t.BARRIER,
            t.Return(joined),
        ]
        comment = f"The {_SAID[kind]} over the lanes of a row, in a fixed order."
        return self._function(name, type_, (part, shader.lane), body, comment)

    def _of_subgroups(
        self, name: str, kind: ReduceKind, type_: ValueType
    ) -> wgsl.Function:
        """Join by subgroups of any size, of which each is a run of lanes.

            let own = subgroupAdd(part);
            if (subgroup_lane == 0u) {
                partial[lane / subgroup_size] = own;
            }
            workgroupBarrier();
            var rest = 0.0;
            for (var number = subgroup_lane; number < count; number += subgroup_size) {
                rest += partial[number];
            }
            let joined = subgroupAdd(rest);

        The loop is there as a subgroup may have fewer lanes than there are subgroups.
        """
        shader, lanes, shared = self._shader, self._lanes, self._shared(type_)
        size, place = shader.subgroup
        names = ("part", "own", "rest", "count", "number", "joined")
        part, own, rest, count, number, joined = map(t.Ident, names)
        joined_by = _SUBGROUP.get(kind) or best_in_subgroup(shader)
        take = accumulate(kind, rest, shared[number])
        body: list[t.Stmt] = [
            t.Let(own.name, t.call(joined_by, part)),
            t.If(place.equals(0), (t.Assign(shared[shader.lane // size], own),)),
            t.BARRIER,
            t.Let(count.name, (size + (lanes - 1)) // size),
            t.Var(rest.name, identity(shader, kind, type_)),
            t.count_up(number.name, place, count, size, take),
            t.Let(joined.name, t.call(joined_by, rest)),
            t.BARRIER,
            t.Return(joined),
        ]
        comment = (
            f"The {_SAID[kind]} over the {lanes} lanes of a row: of every subgroup, "
            "then of all."
        )
        parameters = (part, shader.lane, size, place)
        return self._function(name, type_, parameters, body, comment)

    @staticmethod
    def _function(
        name: str,
        type_: ValueType,
        parameters: tuple[t.Expr, ...],
        body: list[t.Stmt],
        comment: str,
    ) -> wgsl.Function:
        part, *places = (p.name for p in parameters if isinstance(p, t.Ident))
        named = ((part, wgsl_type(type_)), *((place, "u32") for place in places))
        return wgsl.Function(name, named, wgsl_type(type_), tuple(body), comment)


# The words of comments in WGSL, and WGSL's built-in functions, for each kind of reduction.

_SAID: Final[dict[ReduceKind, str]] = {
    "sum": "sum",
    "prod": "product",
    "max": "maximum",
    "min": "minimum",
    "argmax": "place of the maximum",
    "argmin": "place of the minimum",
}

_SUBGROUP: Final[dict[ReduceKind, str]] = {
    "sum": "subgroupAdd",
    "prod": "subgroupMul",
    "max": "subgroupMax",
    "min": "subgroupMin",
}

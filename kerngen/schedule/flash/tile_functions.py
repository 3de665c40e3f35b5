"""WGSL functions of a tile's products, such as the score of a row and a key.

A function is called for a row and four neighbouring keys.  What it reads of the keys alone,
such as the statistics of the rows that are the keys of dk and dv, is loaded once for all rows
of an invocation:

    let total_0 = vec4f(total[...], ...);                           // of four keys
    product_0_0 = weight(n, g, j, i, product_0_0, total_0);         // of the first row
    product_1_0 = weight(n, g, j, i, product_1_0, total_0);

Functions may return any number for keys past the last one: `masked` replaces these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.reads import free_indices, loads
from kerngen.ir.types import Scalar
from kerngen.ir.walk import replaced
from kerngen.schedule.gemm.register_tile import RegisterTile
from kerngen.schedule.lowering.addresses import is_contiguous, varies
from kerngen.schedule.lowering.builder import wgsl_type
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.values import COMPONENTS, LANES, Value
from kerngen.shader import declarations as wgsl
from kerngen.shader import tree as t

if TYPE_CHECKING:
    from kerngen.schedule.flash.tile_pass import KeyPass, Rows


_STEPS: Final = t.Call("vec4u", tuple(map(t.u32, range(LANES))))
"""From the first of four neighbours to each: `vec4u(0u, 1u, 2u, 3u)`."""


@final
@dataclass(frozen=True, slots=True)
class TileFunction:
    """A WGSL function of products: its name, and the reads of the keys that it is given."""

    name: str
    of_keys: tuple[ir.Load, ...]


@final
class TileFunctions:
    """Declares and calls functions of the products of a pass over the keys.

    `loads` are the statements that load what calls are given of a turn's keys.
    """

    def __init__(self, run: KeyPass) -> None:
        """Begin without functions."""
        self._run = run
        self._of_keys: dict[ir.Load, list[t.Ident]] = {}
        self._keys: dict[int, t.Ident] = {}
        self.loads: list[t.Stmt] = []

    # Declarations

    def declare(
        self,
        wanted: str,
        value: ir.Expr,
        products: Mapping[ir.LocalValue, str],
        about: str,
    ) -> TileFunction:
        """Declare a WGSL function of a row's products with four keys.

        It returns `value`, such as `u.scale * product` for attention, in which the `products`
        are local values with these names.  `about` is its comment.  Where `value` reads tensors
        along rows and keys, and keys come in no whole vectors, it calls a function of one key.
        """
        run, s = self._run, self._run.builder
        of_keys = tuple(dict.fromkeys(filter(self._is_of_keys, loads(value))))
        given = {local: t.Ident(s.fresh(called)) for local, called in products.items()}
        for number, load in enumerate(of_keys):
            local = ir.LocalValue(f"{load.tensor.name} of keys, {number}", load.type)
            value = replaced(value, load, local)
            given[local] = t.Ident(s.fresh(load.tensor.name))
        reads = [*loads(value)]
        wide = run.whole_keys or not any(varies(x, run.key_index) for x in reads)
        name = s.fresh(wanted)
        indices = (*run.batch, *run.outer, run.row_index, run.key_index)
        named = {index: t.Ident(s.name(index.name)) for index in indices}
        at: dict[ir.Index, t.Expr] = {**named}
        body = list[t.Stmt]()
        for index, nearest, width in (
            (run.row_index, "nearest_row", 1),
            (run.key_index, "nearest_key", LANES if wide else 1),
        ):
            if any(varies(load, index) for load in reads):
                at[index] = s.let(
                    body, nearest, self._nearest(named[index], index, width)
                )
        vector = run.key_index if wide else None
        lowerer = Lowerer(s, at, body, vector=vector, label=name)
        for local, ident in given.items():
            lowerer.locals[local.name] = Value(ident, wide=wide)
        lowered = lowerer.lower(value)
        result = lowerer.widen(lowered, Scalar.F32) if wide else lowered.expr
        body.append(t.Return(result))
        lanes = LANES if wide else 1
        inputs = (
            *((x.name, "u32") for x in named.values()),
            *((x.name, wgsl_type(local.type, lanes)) for local, x in given.items()),
        )
        type_ = wgsl_type(Scalar.F32, lanes)
        function = wgsl.Function(name, inputs, type_, tuple(body), about)
        s.declare(f"function {name}", function)
        if not wide:
            name = self._of_four(name, wanted, (*named.values(),), given)
        return TileFunction(name, of_keys)

    def _of_four(
        self,
        name: str,
        wanted: str,
        places: tuple[t.Ident, ...],
        given: Mapping[ir.LocalValue, t.Ident],
    ) -> str:
        """Declare a WGSL function that calls function `name` for four neighbouring keys.

        Its name is the plural of `wanted`, such as of the score:

            fn scores(i: u32, j: u32, product: vec4f) -> vec4f {
                return vec4f(score(i, j, product.x), score(i, j + 1u, product.y), ...);
            }
        """
        s, (*others, key) = self._run.builder, places
        calls = tuple(
            t.call(name, *others, key + n, *(t.Member(x, c) for x in given.values()))
            for n, c in enumerate(COMPONENTS)
        )
        several = s.fresh(f"{wanted}s")
        inputs = (
            *((x.name, "u32") for x in places),
            *((x.name, wgsl_type(local.type, LANES)) for local, x in given.items()),
        )
        body = (t.Return(t.Call("vec4f", calls)),)
        about = f"The {wanted}s of four neighbouring keys."
        function = wgsl.Function(several, inputs, "vec4f", body, about)
        s.declare(f"function {several}", function)
        return several

    def _is_of_keys(self, load: ir.Load) -> bool:
        """Whether a read depends on the key, not on the row, and is legal for every key."""
        run = self._run
        places = zip(load.subscripts, load.tensor.extents, strict=True)
        return (
            not load.path
            and isinstance(load.type, Scalar)
            and run.key_index in free_indices(load)
            and free_indices(load) <= {*run.batch, *run.outer, run.key_index}
            and all(_is_legal(place, extent) for place, extent in places)
        )

    def _nearest(self, place: t.Expr, index: ir.Index, width: int) -> t.Expr:
        """Return a place, or the last one from which on there are `width` elements."""
        last = t.Binary("-", self._run.builder.extent(index.extent), t.u32(width))
        return t.call("min", place, last)

    # Calls

    def apply(
        self,
        function: TileFunction,
        tile: RegisterTile,
        number: int,
        products: Sequence[t.Ident],
    ) -> t.Expr:
        """Return the call for accumulator `number` of a tile: a row and four keys."""
        run, (row, vector) = self._run, divmod(number, tile.vectors)
        batch = [run.at[index] for index in (*run.batch, *run.outer)]
        of_keys = [self._loaded(load, tile)[vector] for load in function.of_keys]
        return t.call(
            function.name,
            *batch,
            run.tile_row + tile.tile_row(row),
            self._key(tile, vector),
            *products,
            *of_keys,
        )

    def _key(self, tile: RegisterTile, vector: int) -> t.Expr:
        return self._run.first + tile.tile_columns(vector)[0]

    def _loaded(self, load: ir.Load, tile: RegisterTile) -> list[t.Ident]:
        """Return variables with the elements of a read, for each four keys of an invocation."""
        if load not in self._of_keys:
            name, let = load.tensor.name, self._run.builder.let
            self._of_keys[load] = [
                let(self.loads, f"{name}_{vector}", self._four(load, tile, vector))
                for vector in range(tile.vectors)
            ]
        return self._of_keys[load]

    def _four(self, load: ir.Load, tile: RegisterTile, vector: int) -> t.Expr:
        """Return the elements of a read for four neighbouring keys; any, past the last one."""
        run, s, index = self._run, self._run.builder, self._run.key_index
        if run.whole_keys and is_contiguous(load, index):
            nearest = self._nearest(self._key(tile, vector), index, LANES)
            at = {**run.at, index: nearest}
            return Lowerer(s, at, self.loads, vector=index).lower(load).expr
        if vector not in self._keys:
            last = t.Binary("-", s.extent(index.extent), t.ONE)
            keys = t.call("vec4u", self._key(tile, vector)) + _STEPS
            keys = t.call("min", keys, t.call("vec4u", last))
            self._keys[vector] = s.let(self.loads, f"keys_{vector}", keys)
        places = (t.Member(self._keys[vector], c) for c in COMPONENTS)
        ats = ({**run.at, index: place} for place in places)
        elements = (Lowerer(s, at, self.loads).lower(load).expr for at in ats)
        return t.Call(wgsl_type(load.type, LANES), tuple(elements))

    def masked(
        self, tile: RegisterTile, values: Sequence[tuple[Rows, t.Expr]]
    ) -> t.Stmt:
        """Return the statement that replaces the values of keys past the last one.

        Each of `values` has the variables of all rows, and what takes their place; `tile` has
        their places.  Only the last turn has such keys:

            if (first_key + 128u > u.t) {
                let is_key_0 = vec4u(first_key + column * 4u) + vec4u(0u, ...) < vec4u(u.t);
                score_0_0 = select(vec4f(-infinity()), score_0_0, is_key_0);
                ...
            }
        """
        run, s = self._run, self._run.builder
        count, body = s.extent(run.key_index.extent), list[t.Stmt]()
        inside = list[t.Expr]()
        for vector in range(tile.vectors):
            keys = t.call("vec4u", self._key(tile, vector)) + _STEPS
            is_key = keys < t.call("vec4u", count)
            inside.append(s.let(body, f"is_key_{vector}", is_key))
        for rows, beyond in values:
            other = t.call("vec4f", beyond)
            body += [
                t.Assign(value, t.call("select", other, value, is_key))
                for row in rows
                for value, is_key in zip(row, inside, strict=True)
            ]
        return t.If(run.first + run.tiling.keys > count, (*body,))


def _is_legal(place: ir.Subscript, extent: ir.Extent) -> bool:
    """Whether a subscript is inside of its axis, whatever guards the read."""
    match place:
        case ir.IndexValue(index):
            return index.extent == extent
        case ir.Affine(ir.Constant(value)):
            return isinstance(extent, int) and 0 <= value < extent
        case _:
            return False

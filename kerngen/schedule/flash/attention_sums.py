"""Recognise the gradients of attention: sums over tiles of scores that are recomputed.

    score[i, j]  = scale * sum[p] q[i, p] * k[j, p];
    dweight[i, j] = sum[c] dy[i, c] * v[j, c];
    top[i]       = max[j] score[i, j];                              statistics of rows
    total[i]     = sum[j] exp(score[i, j] - top[i]);
    weight[i, j] = exp(score[i, j] - top[i]) / total[i];
    along[i]     = sum[j] weight[i, j] * dweight[i, j];
    dscore[i, j] = weight[i, j] * (dweight[i, j] - along[i]);
    dq[i, p]     = scale * sum[j] dscore[i, j] * k[j, p];           sums over keys
    dk[j, p]     = scale * sum[i] dscore[i, j] * q[i, p];           sums over queries
    dv[j, c]     = sum[i] weight[i, j] * dy[i, c];

Every value of a query and a key (`score` to `dscore` above) is a function of products (those
of `q` and `k`, of `dy` and `v`), of statistics of the row, and of tensors.  So no tensor of
such values is stored: each of the sums computes its tiles again, out of the products; sums of
the same tiles share them, as `dk` and `dv` do.  The statistics are one pass over the keys
(`row_numbers.py`), unless the caller has kept them: then `along[i]` alone is computed, as
`sum[c] dy[i, c] * y[i, c]`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.reads import (
    free_indices,
    holds_reduce,
    loads,
    outer_reductions,
)
from kerngen.ir.staging.grouping import MAX_TENSORS
from kerngen.ir.staging.stages import Stage, Write, inlined_writes
from kerngen.ir.types import Scalar
from kerngen.ir.walk import factors_of, map_children, replaced
from kerngen.schedule.contraction import Contraction, contraction_of, contraction_over
from kerngen.schedule.flash.attention import SUM
from kerngen.schedule.flash.attention_places import (
    NoSumsError,
    moved,
    ordered_condition,
)
from kerngen.schedule.flash.key_bounds import mask_of
from kerngen.schedule.flash.row_numbers import ZERO, Rows, softmax_rows, times
from kerngen.schedule.task import Task


def product(number: int) -> ir.LocalValue:
    """Return the local value by which expressions use product `number` of a tile."""
    return ir.LocalValue(f"product {number}", Scalar.F32)


@final
@dataclass(frozen=True)
class AttentionTiles:
    """The tiles that a pass computes: products of rows and keys, for each value of `batch`."""

    batch: tuple[ir.Index, ...]
    row: ir.Index
    key: ir.Index
    products: tuple[Contraction, ...]


@final
@dataclass(frozen=True)
class Statistics:
    """The pass over the keys that finds each row's statistics: a maximum, and sums of weights.

    - `factors`: for each sum the factor of its weights, such as `dweight` of `along`
    - `numbers`: the statistics of a row, such as `top`, `total` and `along`, as expressions of
      `TOP`, `TOTAL` and the sums
    - `stored`: the statistics that other stages or the caller read, each with its tensor
    """

    tiles: AttentionTiles
    domain: tuple[ir.Index, ...]
    score: ir.Expr
    factors: tuple[ir.Expr, ...]
    numbers: tuple[ir.Expr, ...]
    stored: tuple[tuple[ir.Tensor, ir.Expr], ...]

    @property
    def tensors(self) -> frozenset[ir.Tensor]:
        """The tensors that the pass reads, and those in which it stores statistics."""
        read = _read(self.tiles, (self.score, *self.factors, *self.numbers))
        return frozenset((*read, *(tensor for tensor, _ in self.stored)))


@final
@dataclass(frozen=True)
class TileSum:
    """The sum of `weight * value` over the keys, for each row and column."""

    weight: ir.Expr
    value: ir.Expr
    column: ir.Index
    finish: Stage


@final
@dataclass(frozen=True)
class SumPass:
    """One pass over the keys that computes several sums, whose weights are of the same tiles.

    - `outer`: indices that it sums over besides the keys, such as heads that share their keys
    - `is_turned`: whether rows and keys are exchanged: the keys of this pass are the rows of
      the softmax, as for dk and dv, which are sums over queries
    """

    tiles: AttentionTiles
    outer: tuple[ir.Index, ...]
    sums: tuple[TileSum, ...]
    is_turned: bool

    @property
    def tensors(self) -> frozenset[ir.Tensor]:
        """All tensors that the pass reads or writes."""
        ends = (step.value for each in self.sums for step in each.finish.steps)
        terms = (x for each in self.sums for x in (each.weight, each.value))
        read = _read(self.tiles, (*terms, *ends))
        return frozenset(
            (*read, *(x for s in self.sums for x in s.finish.tensors_written))
        )


@final
@dataclass(frozen=True)
class AttentionSums:
    """The gradients of attention: stages that run together, first statistics, then sums.

    - `statistics`: the pass over the keys that computes the statistics of rows; or a plain
      stage if the caller has kept those that need such a pass; or None if the sums use no
      statistics
    - `numbers`: the tensor in which the statistics of all rows are stored
    """

    stages: tuple[Stage, ...]
    statistics: Statistics | Stage | None
    numbers: ir.Tensor | None
    passes: tuple[SumPass, ...]


def attention_sums_of(task: Task) -> AttentionSums | str:
    """Return the gradients of attention that begin with the task's stage, or why none do."""
    found = contraction_of(task)
    if isinstance(found, str):
        return found
    if found.row is None or found.kind != "sum" or found.type is not Scalar.F32:
        return "it is no product of queries and keys"
    try:
        return _Reader(task).read()
    except NoSumsError as reason:
        return str(reason)


@final
class _Reader:
    """Reads stages in order; values of tiles are inlined where they are read.

    - `_tiles`: the tensors with a value for each query and key, with domain and value
    - `_rows`: the numbers of rows so far
    - `_sums`: for each sum its stage, its reduction with tiles inlined, and its last steps
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._tiles: dict[ir.Tensor, tuple[tuple[ir.Index, ...], ir.Expr]] = {}
        self._rows: Rows | None = None
        self._sums: list[tuple[Stage, ir.Reduce, Stage]] = []

    def read(self) -> AttentionSums:
        """Return the sums of as many stages as belong together, up to the last sum."""
        stages, ends = list[Stage](), 0
        reason = "no sum over its columns, weighted by a softmax, follows it"
        # As many stages as can be taken; `ends` is the number up to the last sum.
        for stage in self._task.following:
            try:
                self._take(stage)
            except NoSumsError as found:
                reason = str(found)
                break
            stages.append(stage)
            if self._sums and self._sums[-1][0] is stage:
                ends = len(stages)
        rows = self._rows
        has_score = rows is not None and rows.score is not None
        if not ends or (rows and has_score and not rows.is_softmax):
            raise NoSumsError(reason)
        del stages[ends:]
        self._check_unread(stages, reason)
        return self._found(tuple(stages), rows)

    def _take(self, stage: Stage) -> None:
        if any(isinstance(s, Write) and not s.is_plain for s in stage.steps):
            message = f"'{stage.name}' writes parts, or at positions"
            raise NoSumsError(message)
        written = {
            tensor for done, _, _ in self._sums for tensor in done.tensors_written
        }
        if not written.isdisjoint(stage.tensors_read):
            message = f"'{stage.name}' reads one of the sums"
            raise NoSumsError(message)
        # What kind of stage it is: values of tiles, a product, a number of rows, or a sum.
        own = [r for step in stage.steps for r in outer_reductions(step.value)]
        if len(own) > 1:
            message = f"'{stage.name}' has several reductions"
            raise NoSumsError(message)
        if not own:
            self._take_tile(stage)
            return
        if not any(load.tensor in self._tiles for load in loads(own[0])):
            self._take_apart(stage)
            return
        inlined = self._put_in(own[0])
        assert isinstance(inlined, ir.Reduce), "as it was"
        # An index of the result that no product has is the column of a sum.
        used = _product_indices(inlined)
        others = [index for index in stage.domain if index not in used]
        if not others:
            self._take_row(stage, inlined)
        elif len(others) == 1:
            self._sums.append((stage, inlined, _summed(stage, own[0])))
        else:
            message = f"'{stage.name}' has other axes than rows and one of columns"
            raise NoSumsError(message)

    # Tiles

    def _take_apart(self, stage: Stage) -> None:
        """Take a reduction that reads no tiles: a product, or a number of each row."""
        found = contraction_of(replace(self._task, stage=stage))
        if not isinstance(found, str) and (
            found.row is not None and found.kind == "sum" and found.type is Scalar.F32
        ):
            self._remember(stage, lambda value: self._put_in(self._renamed(value)))
            return
        if any(load.tensor in self._tiles for load in stage.reads):
            message = f"'{stage.name}' is no product of queries and keys"
            raise NoSumsError(message)
        self._take_row(stage, None)

    def _take_tile(self, stage: Stage) -> None:
        if not any(load.tensor in self._tiles for load in stage.reads):
            message = f"'{stage.name}' reads nothing of it"
            raise NoSumsError(message)
        self._remember(stage, self._put_in)

    def _remember(self, stage: Stage, form: Callable[[ir.Expr], ir.Expr]) -> None:
        """Note the values of the tensors that a stage writes, as those of tiles."""
        for write in inlined_writes(
            replace(x, value=form(x.value)) for x in stage.steps
        ):
            tensor = write.tensor
            if tensor.role is not ir.Role.LET or tensor.is_half:
                message = f"'{tensor.name}' is stored"
                raise NoSumsError(message)
            self._tiles[tensor] = (stage.domain, write.value)

    def _renamed(self, expr: ir.Expr) -> ir.Expr:
        """Give a product's reduction an index that no other stage has."""
        if isinstance(expr, ir.Reduce):
            places: dict[ir.Index, ir.Subscript] = {}
            for index in expr.indices:
                name = self._task.scratch_name(f"{index.name}_term")
                places[index] = ir.IndexValue(ir.Index(name, index.extent))
            indices = tuple(
                x.index for x in places.values() if isinstance(x, ir.IndexValue)
            )
            return replace(expr, indices=indices, body=moved(expr.body, places))
        return map_children(expr, self._renamed)

    def _put_in(self, expr: ir.Expr) -> ir.Expr:
        """Replace reads of tiles' tensors by their values: inline them."""
        if isinstance(expr, ir.Load) and expr.tensor in self._tiles:
            domain, value = self._tiles[expr.tensor]
            return moved(value, dict(zip(domain, expr.subscripts, strict=True)))
        return map_children(expr, self._put_in)

    # Numbers of rows

    def _take_row(self, stage: Stage, inlined: ir.Reduce | None) -> None:
        """Add the numbers of rows of a stage; `inlined` is its reduction over tiles, if any."""
        if self._sums:
            message = f"'{stage.name}' is no number of a row"
            raise NoSumsError(message)
        if self._rows is None:
            self._rows = Rows(stage.domain)
        self._rows.take(stage, inlined)

    # The whole

    def _check_unread(self, stages: list[Stage], reason: str) -> None:
        """Make sure that no tile is read by stages that do not run together."""
        for other in self._task.staged.stages:
            if other not in stages and not other.tensors_read.isdisjoint(self._tiles):
                raise NoSumsError(reason or f"'{other.name}' reads it, too")

    def _found(self, stages: tuple[Stage, ...], rows: Rows | None) -> AttentionSums:
        read = [x for s in stages for x in s.tensors_read if x not in self._tiles]
        written = [x for stage, _, _ in self._sums for x in stage.tensors_written]
        if not set(read).isdisjoint(written):
            message = "it reads what it writes"
            raise NoSumsError(message)
        statistics: Statistics | Stage | None = None
        numbers = None
        if rows is not None:
            stored = (*self._stored(rows, stages),)
            if rows.score is None:
                self._check_private(stored)
                rows.add_kept(inlined for _, inlined, _ in self._sums)
            numbers = self._numbers(rows)
            statistics = self._statistics(rows, stored) or rows.stage(numbers)
        values = tuple(rows.values) if rows else ()
        passes = [self._pass_of(each, values, numbers) for each in self._sums]
        found = AttentionSums(stages, statistics, numbers, (*_together(passes),))
        if max(_bindings(found)) > MAX_TENSORS:
            message = f"it takes more than {MAX_TENSORS} tensors"
            raise NoSumsError(message)
        return found

    def _stored(
        self, rows: Rows, stages: tuple[Stage, ...]
    ) -> Iterator[tuple[ir.Tensor, ir.Expr]]:
        """Yield the numbers of rows that the caller or stages outside of the run read."""
        others = [s for s in self._task.staged.stages if s not in stages]
        for tensor, value in rows.values.items():
            read = any(tensor in s.tensors_read for s in others)
            if read or tensor.role is not ir.Role.LET:
                yield tensor, value

    def _check_private(self, stored: tuple[tuple[ir.Tensor, ir.Expr], ...]) -> None:
        for tensor, _ in stored:
            message = f"'{tensor.name}' is read elsewhere, too"
            raise NoSumsError(message)

    def _statistics(
        self, rows: Rows, stored: tuple[tuple[ir.Tensor, ir.Expr], ...]
    ) -> Statistics | None:
        """Return the pass over the keys that numbers of rows need, if they do."""
        if rows.score is None or rows.key is None:
            return None
        values = (rows.score, *rows.factors)
        tiles, named = _tiles_of(rows.domain, (), rows.key, values)
        numbers = tuple(rows.values.values())
        return Statistics(tiles, rows.domain, named[0], named[1:], numbers, stored)

    def _numbers(self, rows: Rows) -> ir.Tensor:
        """Return the tensor of all numbers of rows: one binding, and not many."""
        name = self._task.scratch_name("row_numbers")
        extents = (len(rows.values), *(index.extent for index in rows.domain))
        return ir.Tensor(name, Scalar.F32, extents, ir.Role.LET)

    def _pass_of(
        self,
        found: tuple[Stage, ir.Reduce, Stage],
        rows: tuple[ir.Tensor, ...],
        numbers: ir.Tensor | None,
    ) -> SumPass:
        stage, inlined, finish = found
        places = {tensor: number for number, tensor in enumerate(rows)}
        used = _product_indices(inlined)
        (column,) = (index for index in stage.domain if index not in used)
        body = inlined.body
        if numbers is not None:
            body = _numbered(body, places, numbers)
        # The sum's factors, the index that it goes over, and the products of its tiles.
        weight, value = _split(body, column)
        softmax = [*self._softmax_of(weight, numbers)]
        if not softmax:
            message = f"'{stage.name}' does not weight by a softmax"
            raise NoSumsError(message)
        own = [index for index in stage.domain if index != column]
        key = _key_of(own, inlined.indices, weight)
        outer = tuple(index for index in inlined.indices if index != key)
        tiles, (weight,) = _tiles_of(tuple(own), outer, key, (weight,))
        if tiles.row in free_indices(value) or key not in free_indices(value):
            message = f"what '{stage.name}' weights depends on its rows"
            raise NoSumsError(message)
        is_turned = any(key in free_indices(each) for each in softmax)
        one = TileSum(weight, value, column, finish)
        return SumPass(tiles, outer, (one,), is_turned)

    def _softmax_of(
        self, weight: ir.Expr, numbers: ir.Tensor | None
    ) -> Iterator[ir.Expr]:
        """Yield the values of a weight that belong to the rows with the softmax."""
        if self._rows is None or self._rows.score is None:
            yield from softmax_rows(weight)
        else:
            yield from (load for load in loads(weight) if load.tensor == numbers)


def _products(expr: ir.Expr) -> list[ir.Reduce]:
    """Return the products in the value of a tile, each once."""
    return list(dict.fromkeys(outer_reductions(expr)))


def _product_indices(found: ir.Reduce) -> frozenset[ir.Index]:
    used = (free_indices(each) for each in _products(found.body))
    return frozenset[ir.Index]().union(*used)


def _summed(stage: Stage, own: ir.Reduce) -> Stage:
    """Return a stage with `SUM` in place of its reduction."""
    steps = tuple(
        replace(step, value=replaced(step.value, own, SUM)) for step in stage.steps
    )
    return replace(stage, steps=steps)


def _numbered(
    expr: ir.Expr, places: Mapping[ir.Tensor, int], numbers: ir.Tensor
) -> ir.Expr:
    """Replace reads of a row's tensors by reads of the tensor of all numbers of rows."""
    if isinstance(expr, ir.Load) and expr.tensor in places:
        which = ir.Affine(ir.Constant(places[expr.tensor], Scalar.I32))
        return ir.Load(numbers, (which, *expr.subscripts))
    return map_children(expr, lambda part: _numbered(part, places, numbers))


def _split(body: ir.Expr, column: ir.Index) -> tuple[ir.Expr, ir.Expr]:
    """Return the weight of a tile, and the value that it is multiplied with.

    Factors that have the column are the value.  Conditions and divisors go to the weight:
    `if c { w * v } else { 0.0 }` has the weight `if c { w } else { 0.0 }`.
    """
    match body:
        case ir.Select(condition, then, otherwise) if otherwise == ZERO:
            weight, value = _split(then, column)
            sides = (weight, ZERO)
        case ir.Select(condition, then, otherwise) if then == ZERO:
            weight, value = _split(otherwise, column)
            sides = (ZERO, weight)
        case ir.Binary("/", left, right):
            weight, value = _split(left, column)
            return _checked(ir.Binary("/", weight, right, Scalar.F32), value, column)
        case _:
            factors = list(factors_of(body))
            values = [each for each in factors if column in free_indices(each)]
            weights = [each for each in factors if each not in values]
            if not values or not weights:
                message = "a sum that follows is no product of weights and values"
                raise NoSumsError(message)
            return reduce(times, weights), reduce(times, values)
    weight = ir.Select(condition, *sides, Scalar.F32)
    return _checked(weight, value, column)


def _checked(
    weight: ir.Expr, value: ir.Expr, column: ir.Index
) -> tuple[ir.Expr, ir.Expr]:
    if column in free_indices(weight) or holds_reduce(value):
        message = "a sum that follows is no product of weights and values"
        raise NoSumsError(message)
    return weight, value


def _key_of(
    own: list[ir.Index], over: tuple[ir.Index, ...], weight: ir.Expr
) -> ir.Index:
    """Return the key of a sum: the last index that is the column of all its products."""
    for key in reversed(over):
        outer = tuple(index for index in over if index != key)
        try:
            _tiles_of(tuple(own), outer, key, (weight,))
        except NoSumsError:
            continue
        return key
    message = "the products of a sum that follows have no rows and columns"
    raise NoSumsError(message)


def _tiles_of(
    own: tuple[ir.Index, ...],
    outer: tuple[ir.Index, ...],
    key: ir.Index,
    values: tuple[ir.Expr, ...],
) -> tuple[AttentionTiles, tuple[ir.Expr, ...]]:
    """Return the tiles of values, and the values as functions of the tiles' products.

    `own` are the indices of the result but for the column, of which the row is one; `outer`
    those that are summed over besides the key.
    """
    products = list(dict.fromkeys(p for value in values for p in _products(value)))
    found = [contraction_over((*own, *outer, key), each) for each in products]
    contractions = [each for each in found if not isinstance(each, str)]
    rows = {each.row for each in contractions}
    if len(contractions) < len(found) or len(rows) != 1:
        message = "its products have no rows and columns in common"
        raise NoSumsError(message)
    (row,) = rows
    if row is None or row not in own:
        message = "its products have no rows and columns in common"
        raise NoSumsError(message)
    names = dict(zip(products, map(product, range(len(products))), strict=True))
    batch = tuple(index for index in own if index != row)
    named = tuple(_named(value, names) for value in values)
    return AttentionTiles(batch, row, key, tuple(contractions)), named


def _named(expr: ir.Expr, names: Mapping[ir.Reduce, ir.LocalValue]) -> ir.Expr:
    if isinstance(expr, ir.Reduce):
        return names[expr]
    return map_children(expr, lambda part: _named(part, names))


def _together(passes: list[SumPass]) -> Iterator[SumPass]:
    """Yield passes; neighbouring ones whose tiles are of the same products become one."""
    last, *others = passes
    for each in others:
        joined = _joined(last, each)
        if joined is None:
            yield last
        last = joined or each
    yield last


def _joined(one: SumPass, other: SumPass) -> SumPass | None:
    """Return one pass for the sums of two, if it makes fewer products than both."""
    parts = [(x.tiles.batch, x.tiles.row, x.tiles.key, x.outer) for x in (one, other)]
    products = dict.fromkeys((*one.tiles.products, *other.tiles.products))
    alike = parts[0] == parts[1] and one.is_turned == other.is_turned
    masks = {_mask(each.weight) for x in (one, other) for each in x.sums}
    many = len(one.tiles.products), len(other.tiles.products)
    if not alike or len(masks) > 1 or len(products) > max(many):
        return None
    whole = replace(one.tiles, products=(*products,))
    sums = (_renumbered(s, x.tiles, whole) for x in (one, other) for s in x.sums)
    joined = replace(one, tiles=whole, sums=(*sums,))
    return joined if len(joined.tensors) <= MAX_TENSORS else None


def _mask(weight: ir.Expr) -> Hashable:
    """Return the condition of a weight's mask in one form, and whether it must hold."""
    found = mask_of(weight)
    return found and (ordered_condition(found[0]), found[1])


def _renumbered(found: TileSum, own: AttentionTiles, whole: AttentionTiles) -> TileSum:
    """Return a sum whose weight has its products by their numbers in the joined pass."""
    places = (whole.products.index(each) for each in own.products)
    named = {product(n): product(place) for n, place in enumerate(places)}
    return replace(found, weight=_renamed_products(found.weight, named))


def _renamed_products(
    expr: ir.Expr, named: Mapping[ir.LocalValue, ir.LocalValue]
) -> ir.Expr:
    if isinstance(expr, ir.LocalValue):
        return named.get(expr, expr)
    return map_children(expr, lambda part: _renamed_products(part, named))


def _bindings(found: AttentionSums) -> Iterator[int]:
    """Yield how many tensors each dispatch takes."""
    if isinstance(found.statistics, Statistics):
        yield len(found.statistics.tensors) + 1
    elif found.statistics is not None:
        yield len(found.statistics.tensors_read) + 1
    yield from (len(each.tensors) for each in found.passes)


def _read(tiles: AttentionTiles, values: tuple[ir.Expr, ...]) -> Iterator[ir.Tensor]:
    sides = (side for p in tiles.products for side in (p.left, p.right))
    return (load.tensor for value in (*sides, *values) for load in loads(value))

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

What is there for each query and key is a function of products (those of `q` and `k`, of `dy`
and `v`), of statistics of the row, and of tensors.  So no such tensor is stored: each of the
sums makes its tiles again, out of the products.  The statistics are one pass over the keys,
by the rule of `attention.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Final, final

from kerngen.ir.analysis.conditions import identity_of
from kerngen.ir.analysis.reads import (
    free_indices,
    holds_reduce,
    loads,
    outer_reductions,
)
from kerngen.ir.nodes import (
    Affine,
    Binary,
    Constant,
    Expr,
    Index,
    IndexValue,
    Load,
    LocalValue,
    Reduce,
    Role,
    Select,
    Subscript,
    Tensor,
)
from kerngen.ir.staging.grouping import MAX_TENSORS
from kerngen.ir.staging.stages import Define, Stage, Write
from kerngen.ir.store import StoreAt
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children, walk
from kerngen.schedule.contraction import Contraction, contraction_of, contraction_over
from kerngen.schedule.flash.attention import (
    SUM,
    TOP,
    TOTAL,
    is_computed,
    scaled,
    weighted,
    with_locals,
)
from kerngen.schedule.flash.attention_places import NoSumsError, moved, ordered
from kerngen.schedule.task import Task

_ZERO: Final = identity_of("sum", Scalar.F32)


def product(number: int) -> LocalValue:
    """Return the local value for product `number` of a tile, as its functions name it."""
    return LocalValue(f"product {number}", Scalar.F32)


def weighted_sum(number: int) -> tuple[LocalValue, LocalValue]:
    """Return the local values for a row's weighted sum and for its weighted mean."""
    names = (f"weighted sum {number}", f"weighted mean {number}")
    first, second = (LocalValue(name, Scalar.F32) for name in names)
    return first, second


@final
@dataclass(frozen=True)
class Tiles:
    """The tiles that a pass computes: their row and key index, and their products."""

    batch: tuple[Index, ...]
    row: Index
    key: Index
    products: tuple[Contraction, ...]


@final
@dataclass(frozen=True)
class Statistics:
    """One pass over the keys of each row: the largest score, and sums of weights.

    `factors` multiply the weights, one for each sum. `numbers` are the values kept of
    each row; those in `stored` are also written to tensors.
    """

    tiles: Tiles
    domain: tuple[Index, ...]
    score: Expr
    factors: tuple[Expr, ...]
    numbers: tuple[Expr, ...]
    stored: tuple[tuple[Tensor, Expr], ...]

    @property
    def tensors(self) -> frozenset[Tensor]:
        """All tensors that the pass reads, and those that it stores."""
        read = _read(self.tiles, (self.score, *self.factors))
        return frozenset((*read, *(tensor for tensor, _ in self.stored)))


@final
@dataclass(frozen=True)
class TileSum:
    """One pass over the keys for each row and column: the sum of `weight * value`.

    `outer` are the indices besides the keys that it sums over. It `is_turned` if its
    keys are the softmax's rows, as in the gradient by k.
    """

    tiles: Tiles
    outer: tuple[Index, ...]
    weight: Expr
    value: Expr
    column: Index
    finish: Stage
    is_turned: bool

    @property
    def tensors(self) -> frozenset[Tensor]:
        """All tensors that the pass reads or writes."""
        ends = tuple(step.value for step in self.finish.steps)
        read = _read(self.tiles, (self.weight, self.value, *ends))
        return frozenset((*read, *_written(self.finish)))


@final
@dataclass(frozen=True)
class AttentionSums:
    """Stages of attention's gradients that run together: row statistics, then the sums."""

    stages: tuple[Stage, ...]
    statistics: Statistics
    numbers: Tensor
    sums: tuple[TileSum, ...]


def attention_sums_of(task: Task) -> AttentionSums | str:
    """Return the gradient sums that begin with this stage, or why there are none."""
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
@dataclass
class _Rows:
    """The values of row statistics, in terms of `TOP` and the like."""

    domain: tuple[Index, ...]
    key: Index
    score: Expr | None = None
    factors: list[Expr] = field(default_factory=list[Expr])
    values: dict[Tensor, Expr] = field(default_factory=dict[Tensor, Expr])

    @property
    def is_softmax(self) -> bool:
        """Whether the weights have a total."""
        return any(TOTAL in set(walk(value)) for value in self.values.values())


@final
class _Reader:
    """Reads stages in order; those of tiles are put in where they are read."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._tiles: dict[Tensor, tuple[tuple[Index, ...], Expr]] = {}
        self._rows: _Rows | None = None
        self._sums: list[tuple[Stage, Reduce, Stage]] = []

    def read(self) -> AttentionSums:
        """Return the sums."""
        stages, ends = list[Stage](), 0
        reason = "no sum over its columns, weighted by a softmax, follows it"
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
        if rows is None or rows.score is None or not rows.is_softmax or not ends:
            raise NoSumsError(reason)
        del stages[ends:]
        self._check_unread(stages, reason)
        return self._found(tuple(stages), rows, rows.score)

    def _take(self, stage: Stage) -> None:
        if any(isinstance(s, Write) and _is_special(s) for s in stage.steps):
            message = f"'{stage.name}' writes parts, or at positions"
            raise NoSumsError(message)
        written = {tensor for done, _, _ in self._sums for tensor in _written(done)}
        if not written.isdisjoint(stage.tensors_read):
            message = f"'{stage.name}' reads one of the sums"
            raise NoSumsError(message)
        own = [r for step in stage.steps for r in outer_reductions(step.value)]
        if len(own) > 1:
            message = f"'{stage.name}' has several reductions"
            raise NoSumsError(message)
        if not own:
            self._take_tile(stage)
            return
        reads_tiles = any(load.tensor in self._tiles for load in loads(own[0]))
        if not reads_tiles:
            self._take_product(stage)
            return
        inlined = self._put_in(own[0])
        assert isinstance(inlined, Reduce), "as it was"
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

    def _take_product(self, stage: Stage) -> None:
        found = contraction_of(replace(self._task, stage=stage))
        fits = not isinstance(found, str) and (
            found.row is not None and found.kind == "sum" and found.type is Scalar.F32
        )
        if not fits:
            message = f"'{stage.name}' is no product of queries and keys"
            raise NoSumsError(message)
        self._remember(stage, self._renamed_terms)

    def _take_tile(self, stage: Stage) -> None:
        if not any(load.tensor in self._tiles for load in stage.reads):
            message = f"'{stage.name}' reads nothing of it"
            raise NoSumsError(message)
        self._remember(stage, self._put_in)

    def _remember(self, stage: Stage, form: Callable[[Expr], Expr]) -> None:
        """Note the values of a tile's tensors."""
        values: dict[str, Expr] = {}
        for step in stage.steps:
            value = with_locals(form(step.value), values)
            if isinstance(step, Define):
                values[step.local.name] = value
                continue
            if step.tensor.role is not Role.LET or step.tensor.is_half:
                message = f"'{step.tensor.name}' is stored"
                raise NoSumsError(message)
            self._tiles[step.tensor] = (stage.domain, value)

    def _renamed_terms(self, expr: Expr) -> Expr:
        """Give a product's reduction an index that no other stage has."""
        if isinstance(expr, Reduce):
            places: dict[Index, Subscript] = {}
            for index in expr.indices:
                name = self._task.scratch_name(f"{index.name}_term")
                places[index] = IndexValue(Index(name, index.extent))
            indices = tuple(
                x.index for x in places.values() if isinstance(x, IndexValue)
            )
            return replace(expr, indices=indices, body=moved(expr.body, places))
        return map_children(expr, self._renamed_terms)

    def _put_in(self, expr: Expr) -> Expr:
        """Replace what is read of tiles by what it is."""
        if isinstance(expr, Load) and expr.tensor in self._tiles:
            domain, value = self._tiles[expr.tensor]
            return moved(value, dict(zip(domain, expr.subscripts, strict=True)))
        return map_children(expr, self._put_in)

    # Statistics

    def _take_row(self, stage: Stage, inlined: Reduce) -> None:
        """Add a statistic of rows."""
        if self._sums or len(inlined.indices) != 1:
            message = f"'{stage.name}' is no number of a row"
            raise NoSumsError(message)
        (key,) = inlined.indices
        if self._rows is None:
            self._rows = _Rows(stage.domain, key)
        rows = self._rows
        if (stage.domain, key) != (rows.domain, rows.key):
            message = f"'{stage.name}' has other rows, or other names for them"
            raise NoSumsError(message)
        body = self._of_row(inlined.body, rows)
        value = self._maximum(rows, body, inlined) or self._sum(rows, body, inlined)
        values: dict[str, Expr] = {}
        for step in stage.steps:
            outside = _replaced(step.value, stage.reduction, value)
            outside = with_locals(self._of_row(outside, rows), values)
            if isinstance(step, Define):
                values[step.local.name] = outside
            elif len(step.tensor.extents) != len(stage.domain):
                message = f"'{step.tensor.name}' has other axes than its rows"
                raise NoSumsError(message)
            else:
                rows.values[step.tensor] = outside

    def _of_row(self, expr: Expr, rows: _Rows) -> Expr:
        """Replace statistics that are read of the same row."""
        if isinstance(expr, Load) and expr.tensor in rows.values:
            if expr.subscripts != tuple(map(IndexValue, rows.domain)):
                message = f"'{expr.tensor.name}' is read of other rows"
                raise NoSumsError(message)
            return rows.values[expr.tensor]
        return map_children(expr, lambda part: self._of_row(part, rows))

    def _maximum(self, rows: _Rows, body: Expr, found: Reduce) -> Expr | None:
        if found.kind != "max":
            return None
        if is_computed(body) or rows.score not in (None, body):
            message = "its softmax has one maximum, that of the scores"
            raise NoSumsError(message)
        rows.score = body
        return TOP

    def _sum(self, rows: _Rows, body: Expr, found: Reduce) -> Expr:
        term = weighted(body, rows.key) if found.kind == "sum" else None
        if term is None or ordered(term.score) != ordered(rows.score):
            message = "a sum that follows is not of exp(score - the largest score)"
            raise NoSumsError(message)
        if not term.factors:
            return scaled(TOTAL, TOTAL, term, rows.key.extent)
        factor = reduce(_times, term.factors)
        if is_computed(factor):
            message = "what is weighted depends on the softmax"
            raise NoSumsError(message)
        for condition, holds in term.conditions:
            sides = (factor, _ZERO) if holds else (_ZERO, factor)
            factor = Select(condition, *sides, Scalar.F32)
        if factor not in rows.factors:
            rows.factors.append(factor)
        total, mean = weighted_sum(rows.factors.index(factor))
        return scaled(total, mean, term, rows.key.extent)

    # The whole

    def _check_unread(self, stages: list[Stage], reason: str) -> None:
        """Make sure that no tile is read by stages that do not run together."""
        for other in self._task.staged.stages:
            if other not in stages and not other.tensors_read.isdisjoint(self._tiles):
                raise NoSumsError(reason or f"'{other.name}' reads it, too")

    def _found(
        self, stages: tuple[Stage, ...], rows: _Rows, score: Expr
    ) -> AttentionSums:
        read = [x for s in stages for x in s.tensors_read if x not in self._tiles]
        written = [x for stage, _, _ in self._sums for x in _written(stage)]
        if not set(read).isdisjoint(written):
            message = "it reads what it writes"
            raise NoSumsError(message)
        numbers = self._numbers(rows)
        values = (score, *rows.factors)
        tiles, named = _tiles_of(rows.domain, (), rows.key, values)
        others = [s for s in self._task.staged.stages if s not in stages]
        stored = tuple(
            (tensor, value)
            for tensor, value in rows.values.items()
            if tensor.role is not Role.LET
            or any(tensor in s.tensors_read for s in others)
        )
        statistics = Statistics(
            tiles, rows.domain, named[0], named[1:], (*rows.values.values(),), stored
        )
        sums = tuple(self._sum_of(each, rows, numbers) for each in self._sums)
        bound = (len(statistics.tensors) + 1, *(len(each.tensors) for each in sums))
        if max(bound) > MAX_TENSORS:
            message = f"it takes more than {MAX_TENSORS} tensors"
            raise NoSumsError(message)
        return AttentionSums(stages, statistics, numbers, sums)

    def _numbers(self, rows: _Rows) -> Tensor:
        """Return the tensor of all numbers of rows: one binding, and not many."""
        name = self._task.scratch_name("row_numbers")
        extents = (len(rows.values), *(index.extent for index in rows.domain))
        return Tensor(name, Scalar.F32, extents, Role.LET)

    def _sum_of(
        self, found: tuple[Stage, Reduce, Stage], rows: _Rows, numbers: Tensor
    ) -> TileSum:
        stage, inlined, finish = found
        places = {tensor: number for number, tensor in enumerate(rows.values)}
        used = _product_indices(inlined)
        (column,) = (index for index in stage.domain if index not in used)
        weight, value = _split(_numbered(inlined.body, places, numbers), column)
        own = [index for index in stage.domain if index != column]
        key = _key_of(own, inlined.indices, weight)
        outer = tuple(index for index in inlined.indices if index != key)
        tiles, (weight,) = _tiles_of(tuple(own), outer, key, (weight,))
        if tiles.row in free_indices(value) or key not in free_indices(value):
            message = f"what '{stage.name}' weights depends on its rows"
            raise NoSumsError(message)
        is_turned = any(
            key in free_indices(load)
            for load in loads(weight)
            if load.tensor == numbers
        )
        return TileSum(tiles, outer, weight, value, column, finish, is_turned)


def _is_special(step: Write) -> bool:
    return step.is_partial or isinstance(step.value, StoreAt)


def _written(stage: Stage) -> Iterator[Tensor]:
    return (step.tensor for step in stage.steps if isinstance(step, Write))


def _times(left: Expr, right: Expr) -> Expr:
    return Binary("*", left, right, Scalar.F32)


def _products(expr: Expr) -> list[Reduce]:
    """Return the products in the value of a tile, each once."""
    return list(dict.fromkeys(outer_reductions(expr)))


def _product_indices(found: Reduce) -> frozenset[Index]:
    used = (free_indices(each) for each in _products(found.body))
    return frozenset[Index]().union(*used)


def _summed(stage: Stage, own: Reduce) -> Stage:
    """Return a stage with `SUM` in place of its reduction."""
    steps = tuple(
        replace(step, value=_replaced(step.value, own, SUM)) for step in stage.steps
    )
    return replace(stage, steps=steps)


def _replaced(expr: Expr, old: Expr | None, new: Expr) -> Expr:
    if expr == old:
        return new
    return map_children(expr, lambda part: _replaced(part, old, new))


def _numbered(expr: Expr, places: Mapping[Tensor, int], numbers: Tensor) -> Expr:
    """Read the numbers of rows where all of them are."""
    if isinstance(expr, Load) and expr.tensor in places:
        which = Affine(Constant(places[expr.tensor], Scalar.I32))
        return Load(numbers, (which, *expr.subscripts))
    return map_children(expr, lambda part: _numbered(part, places, numbers))


def _split(body: Expr, column: Index) -> tuple[Expr, Expr]:
    """Return the weight of a tile, and the value that it is multiplied with."""
    match body:
        case Select(condition, then, otherwise) if otherwise == _ZERO:
            weight, value = _split(then, column)
            sides = (weight, _ZERO)
        case Select(condition, then, otherwise) if then == _ZERO:
            weight, value = _split(otherwise, column)
            sides = (_ZERO, weight)
        case Binary("/", left, right):
            weight, value = _split(left, column)
            return _checked(Binary("/", weight, right, Scalar.F32), value, column)
        case _:
            factors = list(_factors(body))
            values = [each for each in factors if column in free_indices(each)]
            weights = [each for each in factors if each not in values]
            if not values or not weights:
                message = "a sum that follows is no product of weights and values"
                raise NoSumsError(message)
            return reduce(_times, weights), reduce(_times, values)
    weight = Select(condition, *sides, Scalar.F32)
    return _checked(weight, value, column)


def _checked(weight: Expr, value: Expr, column: Index) -> tuple[Expr, Expr]:
    if column in free_indices(weight) or holds_reduce(value):
        message = "a sum that follows is no product of weights and values"
        raise NoSumsError(message)
    return weight, value


def _factors(expr: Expr) -> Iterator[Expr]:
    match expr:
        case Binary("*", left, right):
            yield from _factors(left)
            yield from _factors(right)
        case _:
            yield expr


def _key_of(own: list[Index], over: tuple[Index, ...], weight: Expr) -> Index:
    """Return the index of a sum that its products have on one side alone."""
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
    own: tuple[Index, ...],
    outer: tuple[Index, ...],
    key: Index,
    values: tuple[Expr, ...],
) -> tuple[Tiles, tuple[Expr, ...]]:
    """Return the tiles that values are functions of, and the values as such.

    `own` are the indices of rows, `outer` those that are neither row nor key.
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
    return Tiles(batch, row, key, tuple(contractions)), named


def _named(expr: Expr, names: Mapping[Reduce, LocalValue]) -> Expr:
    if isinstance(expr, Reduce):
        return names[expr]
    return map_children(expr, lambda part: _named(part, names))


def _read(tiles: Tiles, values: tuple[Expr, ...]) -> Iterator[Tensor]:
    sides = (side for p in tiles.products for side in (p.left, p.right))
    return (load.tensor for value in (*sides, *values) for load in loads(value))

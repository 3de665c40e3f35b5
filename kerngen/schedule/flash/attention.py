"""Recognise attention: sums of values over keys, weighted by the softmax of scores.

    score[i, j] = scale * sum[p] q[i, p] * k[j, p];
    top[i]      = max[j] score[i, j];
    total[i]    = sum[j] exp(score[i, j] - top[i]);
    y[i, c]     = sum[j] exp(score[i, j] - top[i]) / total[i] * v[j, c];

The score is any function of the product, of the indices and of tensors: a mask, a bias, a
soft cap.  The weights may be a `let` of their own, and the division may follow the sum.

Such stages are one pass over the keys: `sum_j exp(s_j - m) g_j`, with `m` the maximum of `s`,
may be summed block by block, if the sum so far is multiplied by `exp(m_before - m_after)`
where a block raises the maximum.  That is FlashAttention (Dao et al., 2022).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final, Literal, final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.conditions import identity_of
from kerngen.ir.analysis.reads import free_indices, is_at, loads
from kerngen.ir.staging.grouping import MAX_TENSORS
from kerngen.ir.staging.stages import Stage, Write, inlined_writes
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children, walk
from kerngen.schedule.contraction import Contraction, all_parts, contraction_of
from kerngen.schedule.task import Task

DOT: Final = ir.LocalValue("dot product", Scalar.F32)
TOP: Final = ir.LocalValue("largest score", Scalar.F32)
TOTAL: Final = ir.LocalValue("total of weights", Scalar.F32)
SUM: Final = ir.LocalValue("weighted sum", Scalar.F32)
MEAN: Final = ir.LocalValue("weighted mean", Scalar.F32)
"""The numbers that a pass computes, as local values in rewritten equations.

No user's name has a space.  `MEAN` is `SUM` divided by `TOTAL`.
"""

_ZERO: Final = identity_of("sum", Scalar.F32)
_LOWEST: Final = identity_of("max", Scalar.F32)


@final
@dataclass(frozen=True)
class Attention:
    """Attention that was recognised: stages that one pass over the keys computes together.

    - `product`: the product of queries and keys; its column is the key
    - `score`: the score of a row and a key, as a function of `DOT`, the value of `product`
    - `value`: the value of a key and a column
    - `finish`: the steps of the last stage, which use `SUM`, `MEAN`, `TOP` and `TOTAL`
    - `beside`: writes of other results that have one value per row, such as the largest score;
      each with the indices that it is written for

    All expressions use the indices of the first stage.
    """

    stages: tuple[Stage, ...]
    product: Contraction
    row: ir.Index
    score: ir.Expr
    value: ir.Expr
    column: ir.Index
    finish: Stage
    beside: tuple[tuple[tuple[ir.Index, ...], Write], ...]
    differs: bool
    """Whether conditions leave out keys of some rows that count for others."""

    @property
    def key(self) -> ir.Index:
        """The index of the keys, which the softmax is over."""
        return self.product.column

    @property
    def tensors(self) -> frozenset[ir.Tensor]:
        """All tensors that the pass over the keys reads or writes."""
        product, kept = self.product, [write for _, write in self.beside]
        steps = (*self.finish.steps, *kept)
        values = [product.left, product.right, self.score, self.value]
        read = _tensors(*values, *(step.value for step in steps))
        return frozenset((*read, *(x.tensor for x in steps if isinstance(x, Write))))

    @property
    def batch(self) -> tuple[ir.Index, ...]:
        """The result's indices besides row and column; each value of them has its own keys."""
        own = (self.row, self.column)
        return tuple(index for index in self.finish.domain if index not in own)


class _NoAttention(Exception):  # noqa: N818 - an answer, not an error
    """Raised inside recognition: the reason why stages are no attention."""


def attention_of(task: Task) -> Attention | str:
    """Return the attention whose first stage is the task's, or the reason why there is none."""
    found = contraction_of(task)
    if isinstance(found, str):
        return found
    is_sum = found.kind == "sum" and found.type is Scalar.F32
    if found.row is None or not is_sum:
        return "it is no product of queries and keys"
    try:
        return _Reader(task, found, found.row).read()
    except _NoAttention as reason:
        return str(reason)


@final
class _Reader:
    """Reads stages in order, and rewrites them in terms of `DOT`, `TOP` and `TOTAL`.

    - `_known`: the tensors of the stages so far, each with its domain and its value, so that
      later stages can read the value instead
    - `_score`, `_value`: the score and the weighted value, once a stage has them
    - `_differs`: `Attention.differs`
    - `_written`: the writes of the stages so far
    """

    def __init__(self, task: Task, product: Contraction, row: ir.Index) -> None:
        self._task = task
        self._product = product
        self._row = row
        self._known: dict[ir.Tensor, tuple[tuple[ir.Index, ...], ir.Expr]] = {}
        self._score: ir.Expr | None = None
        self._value: ir.Expr | None = None
        self._differs = False
        self._written: list[tuple[tuple[ir.Index, ...], Write]] = []

    def read(self) -> Attention:
        """Return the attention; raise `_NoAttention` with the reason if the stages are none."""
        first, *following = self._task.following
        self._take(first, {index: index for index in first.domain})
        for number, stage in enumerate(following):
            renaming = self._renaming(stage)
            finish = self._take(stage, renaming)
            if self._value is not None:
                stages = (first, *following[: number + 1])
                return self._found(stages, finish)
        message = "no sum over its columns, weighted by a softmax, follows it"
        raise _NoAttention(message)

    def _renaming(self, stage: Stage) -> dict[ir.Index, ir.Index]:
        """Return the renaming of a stage's indices to those of the first stage.

        The subscripts with which a stage reads a known tensor give it: where the score is
        `score[g, i, j]`, a read `score[h, m, n]` renames h, m and n to g, i and j.
        """
        renaming: dict[ir.Index, ir.Index] = {}
        for load in stage.reads:
            if load.tensor not in self._known:
                continue
            # Each subscript must be a bare index over the same axis, the same in all reads.
            own, _ = self._known[load.tensor]
            for subscript, index in zip(load.subscripts, own, strict=True):
                known = isinstance(subscript, ir.IndexValue) and (
                    subscript.index.extent == index.extent
                    and renaming.setdefault(subscript.index, index) == index
                )
                if not known:
                    message = f"'{load.tensor.name}' is read at other places, too"
                    raise _NoAttention(message)
        if not renaming:
            message = f"'{stage.name}', which follows, reads nothing of it"
            raise _NoAttention(message)
        return renaming

    def _take(self, stage: Stage, renaming: dict[ir.Index, ir.Index]) -> Stage:
        """Return a stage rewritten in terms of the first stage's indices and known values.

        Its tensors become known, unless it is the last stage, which has the weighted sum.
        """
        self._rename_others(stage, renaming)
        domain = tuple(renaming[index] for index in stage.domain)
        before = self._value
        steps = tuple(
            replace(step, value=self._rewritten(step.value, renaming))
            for step in stage.steps
        )
        taken = replace(stage, domain=domain, steps=steps)
        if self._value is before:
            self._remember(taken)
        return taken

    def _rename_others(self, stage: Stage, renaming: dict[ir.Index, ir.Index]) -> None:
        """Give indices that only this stage has names that the first stage has not."""
        names = {index.name for index in self._product_domain}
        for index in stage.domain:
            if index in renaming:
                continue
            name = index.name
            if name in names:
                name = self._task.scratch_name(f"{name}_column")
            renaming[index] = ir.Index(name, index.extent)

    @property
    def _product_domain(self) -> tuple[ir.Index, ...]:
        return self._task.domain

    def _remember(self, stage: Stage) -> None:
        """Note the values of tensors that later stages may read."""
        for write in inlined_writes(stage.steps):
            if write.is_partial:
                message = f"a part of '{write.tensor.name}' is written"
                raise _NoAttention(message)
            self._known[write.tensor] = (stage.domain, write.value)
            self._written.append((stage.domain, write))

    def _rewritten(
        self, expr: ir.Expr, renaming: Mapping[ir.Index, ir.Index]
    ) -> ir.Expr:
        match expr:
            case ir.IndexValue(index):
                return ir.IndexValue(renaming.get(index, index))
            case ir.Load(tensor=tensor) if tensor in self._known:
                return self._known[tensor][1]
            case ir.Reduce():
                return self._reduced(expr, renaming)
            case _:
                return map_children(expr, lambda part: self._rewritten(part, renaming))

    # Reductions

    def _reduced(
        self, expr: ir.Reduce, renaming: Mapping[ir.Index, ir.Index]
    ) -> ir.Expr:
        """Return the local value for a reduction: the product, or one over the keys."""
        # The first stage's reduction is the product: no tensor is known before it.
        if not self._known:
            return DOT
        over = tuple(renaming.get(index) for index in expr.indices)
        if over != (self._product.column,):
            message = "a reduction that follows is not over its columns"
            raise _NoAttention(message)
        body = self._rewritten(expr.body, renaming)
        if expr.kind == "max":
            return self._maximum(body)
        if expr.kind == "sum":
            return self._sum(body)
        message = f"no softmax has a '{expr.kind}'"
        raise _NoAttention(message)

    def _maximum(self, body: ir.Expr) -> ir.Expr:
        computed = any(node in (TOP, TOTAL) for node in walk(body))
        if computed or self._score not in (None, body):
            message = "its softmax has one maximum, that of the scores"
            raise _NoAttention(message)
        self._score = body
        return TOP

    def _sum(self, body: ir.Expr) -> ir.Expr:
        """Return the total of the weights, or the weighted sum of values."""
        term = weighted(body, self._product.column)
        if term is None or term.score != self._score:
            message = "a sum that follows is not of exp(score - the largest score)"
            raise _NoAttention(message)
        if not term.factors:
            return scaled(TOTAL, TOTAL, term, self._product.column.extent)
        value = reduce(_times, term.factors)
        fixed = {self._row}.isdisjoint(free_indices(value))
        if not fixed or is_computed(value) or self._value is not None:
            message = "what is weighted depends on the row, or there are two such sums"
            raise _NoAttention(message)
        self._value = self._where_known(value, term)
        return scaled(SUM, MEAN, term, self._product.column.extent)

    def _where_known(self, value: ir.Expr, term: AttentionTerm) -> ir.Expr:
        """Return the weighted value, or 0 for a key that counts for no row.

        Memory of such a key, as in a cache that is not full, may be NaN, and 0 times NaN is
        NaN.  A condition that depends on the row stays in the score alone.
        """
        parts = [
            part
            for each, holds in term.conditions
            for part in all_parts(each, holds=holds)
        ]
        for condition, holds in parts:
            if self._row in free_indices(condition) or is_computed(condition):
                self._differs = True
                continue
            sides = (value, _ZERO) if holds else (_ZERO, value)
            value = ir.Select(condition, *sides, Scalar.F32)
        return value

    # The whole

    def _found(self, stages: tuple[Stage, ...], finish: Stage) -> Attention:
        assert self._score is not None, "compared with the score of each sum"
        assert self._value is not None, "the last stage has it"
        # The result has the axes of the scores, but for the keys, and one axis of columns.
        first = set(self._task.domain) - {self._product.column}
        columns = [index for index in finish.domain if index not in first]
        if len(columns) != 1 or set(finish.domain) != {*first, *columns}:
            message = f"'{finish.name}' has other axes than rows and one of columns"
            raise _NoAttention(message)
        if columns[0] not in free_indices(self._value):
            message = "what is weighted has no columns"
            raise _NoAttention(message)
        beside = tuple(self._stored(stages))
        found = Attention(
            stages,
            self._product,
            self._row,
            self._score,
            self._value,
            columns[0],
            finish,
            beside,
            self._differs,
        )
        self._check_tensors(found)
        return found

    def _stored(
        self, stages: tuple[Stage, ...]
    ) -> Iterator[tuple[tuple[ir.Index, ...], Write]]:
        """Yield the writes that are made once per row."""
        others = [s for s in self._task.staged.stages if s not in stages]
        for domain, write in self._written:
            read = any(write.tensor in other.tensors_read for other in others)
            if write.tensor.role is ir.Role.LET and not read:
                continue
            if self._product.column in domain:
                message = f"'{write.tensor.name}' is read elsewhere, too"
                raise _NoAttention(message)
            yield domain, write

    def _check_tensors(self, found: Attention) -> None:
        """Make sure that nothing is read that the pass writes, and that bindings suffice."""
        own = [step for step in found.finish.steps if isinstance(step, Write)]
        written = {step.tensor for step in own} | {w.tensor for _, w in found.beside}
        product = found.product
        read = set(_tensors(product.left, product.right, found.score, found.value))
        read |= set(_tensors(*(write.value for _, write in found.beside)))
        ends = [load for step in found.finish.steps for load in loads(step.value)]
        elsewhere = {x.tensor for x in ends if not is_at(x, found.finish.domain)}
        if not written.isdisjoint(read | elsewhere):
            message = "it reads what it writes"
            raise _NoAttention(message)
        if len(found.tensors) > MAX_TENSORS:
            message = f"it takes more than {MAX_TENSORS} tensors"
            raise _NoAttention(message)


def _tensors(*values: ir.Expr) -> Iterator[ir.Tensor]:
    return (load.tensor for value in values for load in loads(value))


# Terms


@final
@dataclass(frozen=True, slots=True)
class AttentionTerm:
    """A term of a sum over keys: `exp(score - TOP)` times factors and a constant.

    - `factors`: the factors that depend on the key, such as the value
    - `outer`: the operations that are the same for all keys, such as `/ TOTAL`, in the order in
      which they are applied to the sum; "if" and "unless" have a condition of the whole row:
      the sum is 0 where the condition of an "if" is false, or of an "unless" true
    """

    score: ir.Expr
    factors: tuple[ir.Expr, ...] = ()
    outer: tuple[tuple[ir.BinaryOp | Literal["if", "unless"], ir.Expr], ...] = ()
    conditions: tuple[tuple[ir.Expr, bool], ...] = ()
    """The conditions of its score, each with the outcome that lets the term count."""


def weighted(expr: ir.Expr, key: ir.Index) -> AttentionTerm | None:
    """Split a term into weight, factors and outer operations; None if it has no such weight.

    A condition on the key becomes a part of the score.  For example
    `if j <= i { exp(s - TOP) / TOTAL * v[j, c] } else { 0.0 }` has the score
    `if j <= i { s } else { -inf }`, the factor `v[j, c]` and the outer operation `/ TOTAL`.
    """
    match expr:
        case ir.BuiltinCall("exp", (ir.Binary("-", score, ir.LocalValue() as top),)):
            return (
                AttentionTerm(score) if top == TOP and not _is_summed(score) else None
            )
        case ir.Binary("*", left, right):
            for weight, other in ((left, right), (right, left)):
                found = weighted(weight, key)
                if found is not None:
                    return _multiplied(found, "*", other, key)
            return None
        case ir.Binary("/", left, right):
            found = weighted(left, key)
            return None if found is None else _multiplied(found, "/", right, key)
        case ir.Select(condition, then, otherwise) if otherwise == _ZERO:
            found = weighted(then, key)
            return None if found is None else _under(found, condition, key, holds=True)
        case ir.Select(condition, then, otherwise) if then == _ZERO:
            found = weighted(otherwise, key)
            return None if found is None else _under(found, condition, key, holds=False)
        case _:
            return None


def _multiplied(
    term: AttentionTerm, op: ir.BinaryOp, by: ir.Expr, key: ir.Index
) -> AttentionTerm | None:
    if key not in free_indices(by) and DOT not in set(walk(by)):
        return replace(term, outer=(*term.outer, (op, by)))
    if op == "/":
        by = ir.Binary("/", ir.Constant(1.0, Scalar.F32), by, Scalar.F32)
    return replace(term, factors=(*term.factors, by))


def _under(
    term: AttentionTerm, condition: ir.Expr, key: ir.Index, *, holds: bool
) -> AttentionTerm:
    """Put a term under a condition, which may be of its row, of its key, or of both.

    `if top[i] > -inf and j <= i` has a part of each kind.  Where the row's part does not
    hold, the whole sum is 0: it goes to `outer`.  The key's part goes to the score, as -inf.
    """
    parts = [*all_parts(condition, holds=holds)]
    of_row = [part for part in parts if _is_of_row(part[0], key)]
    rest = [part for part in parts if part not in of_row]
    for guard, wanted in of_row:
        term = replace(term, outer=(*term.outer, ("if" if wanted else "unless", guard)))
    if not of_row:
        rest = [(condition, holds)]
    elif rest and all(wanted for _, wanted in rest):
        # As one condition: scores are compared with that of the maximum, which has one.
        rest = [(reduce(_and, (each for each, _ in rest)), True)]
    for each, wanted in rest:
        sides = (term.score, _LOWEST) if wanted else (_LOWEST, term.score)
        score = ir.Select(each, *sides, Scalar.F32)
        term = replace(term, score=score, conditions=(*term.conditions, (each, wanted)))
    return term


def _is_of_row(condition: ir.Expr, key: ir.Index) -> bool:
    """Whether a condition is of a whole row: it uses `TOP` or `TOTAL`, and no key."""
    nodes = set(walk(condition))
    return (
        not nodes.isdisjoint((TOP, TOTAL))
        and DOT not in nodes
        and (key not in free_indices(condition))
    )


def scaled(
    total: ir.LocalValue, mean: ir.LocalValue, term: AttentionTerm, keys: ir.Extent
) -> ir.Expr:
    """Return the sum over the keys, `total`, with the outer operations of its term applied.

    Where these divide by `TOTAL`, `mean` is used instead of `total / TOTAL`: the pass computes
    it without overflow (`scale.py`).  Without any key the result is 0, and not 0 / 0.
    """
    if not term.outer:
        return total
    value: ir.Expr = total
    outer = [*term.outer]
    if total != TOTAL and ("/", TOTAL) in outer[: _guarded_from(outer)]:
        value = mean
        outer.remove(("/", TOTAL))
    for op, factor in outer:
        match op:
            case "if":
                value = ir.Select(factor, value, _ZERO, Scalar.F32)
            case "unless":
                value = ir.Select(factor, _ZERO, value, Scalar.F32)
            case _:
                value = ir.Binary(op, value, factor, Scalar.F32)
    if term.conditions:
        empty: ir.Expr = ir.Binary("==", TOTAL, _ZERO, Scalar.BOOL)
    elif isinstance(keys, str):
        none = ir.Constant(0, Scalar.I32)
        empty = ir.Binary("==", ir.DimValue(keys), none, Scalar.BOOL)
    else:
        return value
    return ir.Select(empty, _ZERO, value, Scalar.F32)


def _guarded_from(outer: Sequence[tuple[str, ir.Expr]]) -> int:
    """Return how many of a term's outer operations come before its first condition."""
    ops = [op for op, _ in outer]
    return next((n for n, op in enumerate(ops) if op in ("if", "unless")), len(ops))


def _and(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    return ir.Binary("and", left, right, Scalar.BOOL)


def _times(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    return ir.Binary("*", left, right, Scalar.F32)


def is_computed(expr: ir.Expr) -> bool:
    """Whether an expression uses a value that the pass computes, such as `TOTAL`."""
    return any(node in (DOT, TOP, TOTAL, SUM) for node in walk(expr))


def _is_summed(expr: ir.Expr) -> bool:
    return any(node in (TOP, TOTAL, SUM) for node in walk(expr))

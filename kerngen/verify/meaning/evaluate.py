"""Evaluation of typed expressions over a whole domain at once, with error bounds.

This is the language's own definition, read off the typed kernel: no stages, no fusion, no
shader.  Every index is an array of its values, shaped such that arrays of a domain
broadcast against each other; a reduction puts its indices before those:

    y[i, j] = sum[p] a[i, p] * b[p, j]      i: (m, 1)      j: (1, n)       outside the sum
                                 p: (k, 1, 1)   i: (m, 1)   j: (1, n)      inside of it
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Final, TypeAlias, assert_never, final

import numpy as np

from kerngen.ir import nodes as ir
from kerngen.ir.builtins.evaluate import bounds
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.geometry import GEOMETRY
from kerngen.ir.staging.keyed import Prefix
from kerngen.ir.store import StoreAt
from kerngen.ir.types import Scalar, Vector, scalar_of
from kerngen.ir.walk import factors_of, walk
from kerngen.verify.hazards import HazardCollector
from kerngen.verify.meaning import number, vectors
from kerngen.verify.meaning.functions import convert, of_floats, of_integers, wrap
from kerngen.verify.meaning.number import Array, BoundedArray
from kerngen.verify.meaning.operators import operation
from kerngen.verify.meaning.places import doubted, grid, scanned, taken

Contents: TypeAlias = "BoundedArray | Computed | Mapping[str, Contents]"
"""The contents of a tensor or parameter: numbers, or those of each field of a struct.

The axes of a tensor come first, then those of fixed arrays, then components.
"""

_REDUCTIONS: Final[
    Mapping[str, Callable[[BoundedArray, number.Join], BoundedArray]]
] = {
    "sum": number.total,
    "prod": number.product,
    "max": number.highest,
    "min": number.lowest,
}
_JOINS: Final[Mapping[str, np.ufunc]] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}
_LIMITS: Final = {scalar: bounds(scalar) for scalar in (Scalar.I32, Scalar.U32)}


@final
@dataclass(frozen=True)
class EvaluationScope:
    """The scope of an expression: values of its indices and locals, and its number of axes.

    `rank` counts the axes of the domain: indices of the statement, and those of the
    reductions around the expression.
    """

    indices: Mapping[str, Array] = field(default_factory=dict[str, Array])
    rank: int = 0
    locals: Mapping[str, BoundedArray] = field(default_factory=dict[str, BoundedArray])


@final
@dataclass(frozen=True)
class Computed:
    """A tensor whose elements are computed when they are read, for large calls."""

    evaluator: Evaluator
    indices: tuple[ir.Index, ...]
    value: ir.Expr
    is_half: bool = False

    def at(self, places: Sequence[Array]) -> BoundedArray:
        """Return the elements at positions, which broadcast against each other."""
        rank = max((place.ndim for place in places), default=0)
        names = (index.name for index in self.indices)
        scope = EvaluationScope(dict(zip(names, places, strict=True)), rank)
        found = self.evaluator.of(self.value, scope)
        return number.to_half(found) if self.is_half else found

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of all axes."""
        axes = (self.evaluator.length(index.extent) for index in self.indices)
        return (*axes, *vectors.components(self.value.type))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values."""
        return number.dtype_of(scalar_of(self.value.type))


@final
@dataclass(frozen=True)
class Evaluator:
    """Evaluates expressions of one call; `contents` has its tensors and parameters."""

    functions: Mapping[str, ir.Function]
    lengths: Mapping[str, int]
    contents: Mapping[str, Contents]
    watch: HazardCollector | None = None

    def length(self, extent: ir.Extent) -> int:
        """Return the length of an axis."""
        return extent if isinstance(extent, int) else self.lengths[extent]

    def of(self, expr: ir.Expr, scope: EvaluationScope) -> BoundedArray:
        """Return the value of an expression for every point of its domain."""
        match expr:
            case ir.Constant(value=value, type=type_) | ir.ConstRef(
                value=value, type=type_
            ):
                return _literal(value, type_)
            case ir.DimValue(name=name):
                return number.known(np.asarray(self.lengths[name], np.int64))
            case ir.IndexValue(index=index):
                return number.known(scope.indices[index.name])
            case ir.LocalValue(name=name):
                return scope.locals[name]
            case ir.UniformValue() | ir.Load():
                return self._loaded(expr, scope)
            case ir.Swizzle() | ir.Part() | ir.Construct():
                return self._rearranged(expr, scope)
            case ir.Unary() | ir.Binary() | ir.Select() | ir.Cast():
                return self._operation(expr, scope)
            case ir.BuiltinCall():
                return self._builtin(expr, scope)
            case ir.FunctionCall():
                return self._call(expr, scope)
            case ir.Reduce():
                return self._reduce(expr, scope)
            case StoreAt():
                return self.of(expr.value, scope)
            case _:
                assert_never(expr)

    # Reads

    def _loaded(
        self, expr: ir.UniformValue | ir.Load, scope: EvaluationScope
    ) -> BoundedArray:
        match expr:
            case ir.UniformValue(name=name, path=path):
                return self._read(self.contents[name], (), path, scope)
            case ir.Load(tensor=tensor, subscripts=subscripts, path=path):
                return self._read(self.contents[tensor.name], subscripts, path, scope)

    def _read(
        self,
        contents: Contents,
        subscripts: tuple[ir.Subscript, ...],
        path: ir.Path,
        scope: EvaluationScope,
    ) -> BoundedArray:
        """Return elements; `balls[i].trail[k].x` has the places `i` and `k`."""
        places = list(subscripts)
        for step in path:
            match step:
                case ir.Field(name):
                    assert isinstance(contents, Mapping)
                    contents = contents[name]
                case ir.At(place=place):
                    places.append(place)
        assert isinstance(contents, BoundedArray | Computed)
        if not places:
            return contents if isinstance(contents, BoundedArray) else contents.at(())
        return taken(contents, [self._place(p, scope) for p in places])

    def _place(self, place: ir.Subscript, scope: EvaluationScope) -> BoundedArray:
        match place:
            case ir.IndexValue():
                return self.of(place, scope)
            case ir.Affine(value=value) | ir.Clamped(value=value):
                return self.of(value, scope)
            case _:
                assert_never(place)

    # Vectors

    def _rearranged(
        self, expr: ir.Swizzle | ir.Part | ir.Construct, scope: EvaluationScope
    ) -> BoundedArray:
        match expr:
            case ir.Swizzle(operand=operand, components=components):
                places = ["xyzw".index(c) for c in components]
                at: Any = places if len(places) > 1 else places[0]
                return self.of(operand, scope)[..., at]
            case ir.Part():
                return self._part(expr, scope)
            case ir.Construct():
                return self._construct(expr, scope)

    def _part(self, expr: ir.Part, scope: EvaluationScope) -> BoundedArray:
        """Return a component of a vector or a column of a matrix."""
        whole, place = self.of(expr.operand, scope), self._place(expr.at.place, scope)
        inner = len(vectors.components(expr.operand.type))
        at = np.clip(place.value, 0, expr.at.length - 1)
        around = np.broadcast_shapes(at.shape, whole.value.shape[:-inner])
        at = np.broadcast_to(at, around).reshape((*around, *(1,) * inner))

        def take(part: Array) -> Array:
            spread = np.broadcast_to(part, (*around, *part.shape[-inner:]))
            return np.take_along_axis(spread, at, -inner).squeeze(-inner)

        found = whole.map(take)
        doubt = place.unsure.reshape((*place.unsure.shape, *(1,) * (inner - 1)))
        return doubted(found, doubt)

    def _construct(self, expr: ir.Construct, scope: EvaluationScope) -> BoundedArray:
        parts = [self.of(part, scope) for part in expr.parts]
        if not isinstance(expr.type, Vector):
            return vectors.stacked(parts, -2)
        wide = [
            value if isinstance(part.type, Vector) else value[..., None]
            for part, value in zip(expr.parts, parts, strict=True)
        ]
        if len(wide) == 1:
            width = expr.type.width
            return wide[0].map(
                lambda x: np.broadcast_to(x, (*x.shape[:-1], width)),
            )
        return vectors.concatenated(wide)

    # Operators

    def _operation(
        self, expr: ir.Unary | ir.Binary | ir.Select | ir.Cast, scope: EvaluationScope
    ) -> BoundedArray:
        match expr:
            case ir.Unary():
                return self._unary(expr, scope)
            case ir.Binary():
                return self._binary(expr, scope)
            case ir.Select():
                return self._select(expr, scope)
            case ir.Cast(operand=operand, type=type_):
                given = number.finite(self.of(operand, scope))
                return convert(given, scalar_of(operand.type), scalar_of(type_))

    def _unary(self, expr: ir.Unary, scope: EvaluationScope) -> BoundedArray:
        operand, scalar = self.of(expr.operand, scope), scalar_of(expr.type)
        if expr.op == "not":
            return number.unsure_where(~operand.value, operand.unsure)
        if scalar is Scalar.F32:
            return number.negate(operand)
        value = -operand.value if expr.op == "-" else ~operand.value
        return number.unsure_where(wrap(value, scalar), operand.unsure)

    def _binary(self, expr: ir.Binary, scope: EvaluationScope) -> BoundedArray:
        a, b = expr.left.type, expr.right.type
        left, right = (
            number.finite(self.of(operand, scope))
            for operand in (expr.left, expr.right)
        )
        ranks = {len(vectors.components(a)), len(vectors.components(b))}
        if expr.op == "*" and 2 in ranks and 0 not in ranks:
            return vectors.multiplied(left, right, a, b)
        left, right = vectors.widened(left, a, b), vectors.widened(right, b, a)
        result = operation(expr.op, left, right, scalar_of(a))
        if expr.op in {"+", "-"} and scalar_of(expr.type) is Scalar.F32:
            result = self._factored(expr, result, scope)
        if self.watch and scalar_of(a) is Scalar.F32:
            self.watch.operator(expr.op, left, right, result)
        return result

    def _factored(
        self, expr: ir.Binary, result: BoundedArray, scope: EvaluationScope
    ) -> BoundedArray:
        """Return a sum or difference, unknown where it may overflow with a factor taken out.

        Compilers of shaders may compute `0.5 * a + 0.5 * b` as `0.5 * (a + b)`: Mesa does.  A
        factor in a `let` is not looked for.
        """
        shared: dict[ir.Expr, list[ir.Expr]] = {}
        for term in _terms_of(expr):
            for factor in dict.fromkeys(factors_of(term)):
                shared.setdefault(factor, []).append(term)

        def widened(part: ir.Expr) -> BoundedArray:
            return vectors.widened(self.of(part, scope), part.type, expr.type)

        for factor, terms in shared.items():
            if len(terms) > 1:
                scale = np.abs(widened(factor).value)
                with np.errstate(all="ignore"):
                    whole = sum(widened(x).size for x in terms) / np.minimum(scale, 1)
                result = doubted(result, (scale > 0) & ~(whole <= number.HIGHEST))
        return result

    def _select(self, expr: ir.Select, scope: EvaluationScope) -> BoundedArray:
        condition = self.of(expr.condition, scope)
        then, other = self.of(expr.then, scope), self.of(expr.otherwise, scope)
        condition = vectors.widened(condition, Scalar.BOOL, expr.type)
        return number.choose(condition, then, other)

    # Calls

    def _builtin(self, expr: ir.BuiltinCall, scope: EvaluationScope) -> BoundedArray:
        given = [number.finite(self.of(each, scope)) for each in expr.arguments]
        first = expr.arguments[0].type
        if expr.builtin in GEOMETRY:
            return vectors.of_geometry(expr.builtin, given, first)
        assert expr.builtin in BUILTINS
        if scalar_of(first) is Scalar.F32:
            result = of_floats(expr.builtin, given)
            if self.watch:
                self.watch.builtin(expr.builtin, given, result)
            return result
        return of_integers(expr.builtin, given, scalar_of(first))

    def _call(self, expr: ir.FunctionCall, scope: EvaluationScope) -> BoundedArray:
        function = self.functions[expr.function]
        values = (self.of(argument, scope) for argument in expr.arguments)
        names = (parameter.name for parameter in function.parameters)
        own = dict(zip(names, values, strict=True))
        for local, value in function.lets:
            own[local.name] = self.of(value, replace(scope, locals=own))
        return self.of(function.body, replace(scope, locals=own))

    # Reductions

    def _reduce(self, expr: ir.Reduce, scope: EvaluationScope) -> BoundedArray:
        if expr.finds_place:
            return self._found(expr, scope)
        prefix = None if self.watch else scanned(expr)
        if prefix is not None:
            return self._running(prefix, scope)
        join = number.Join(len(expr.indices))
        terms = self._terms(expr, scope)
        result = _joined(expr, terms, join)
        if self.watch and scalar_of(expr.type) is Scalar.F32:
            self.watch.reduction(expr.kind, terms, join.axes, result)
        return result

    def _within(
        self, expr: ir.Reduce, scope: EvaluationScope
    ) -> tuple[tuple[int, ...], EvaluationScope]:
        """Return the lengths of a reduction's axes, and the scope of its terms."""
        extents = tuple(self.length(index.extent) for index in expr.indices)
        rank = len(extents) + scope.rank
        indices = {**scope.indices, **grid(expr.indices, extents, rank)}
        return extents, replace(scope, indices=indices, rank=rank)

    def _found(self, expr: ir.Reduce, scope: EvaluationScope) -> BoundedArray:
        """Find the place of the best term."""
        extents, inner = self._within(expr, scope)
        body, holds = self.of(expr.body, inner), number.known(np.True_)
        if expr.condition is not None:
            holds = self.of(expr.condition, inner)
        # The reduced axis needs its full length, also where a term does not depend on it.
        around = np.broadcast_shapes(body.shape, holds.shape)
        missing = inner.rank - len(around)
        shape = (*extents, *((1,) * missing + around)[1:])
        terms, counted = (
            each.map(lambda part: np.broadcast_to(part, shape))
            for each in (body, holds)
        )
        return number.first_best(terms, counted, least=expr.kind == "argmin")

    def _terms(self, expr: ir.Reduce, scope: EvaluationScope) -> BoundedArray:
        """Return the terms along the first axes; one left out is the neutral value."""
        extents, inner = self._within(expr, scope)
        axes, rank = len(extents), inner.rank
        factors: dict[str, BoundedArray] = {}
        if expr.kind == "sum" and _has_codes(expr.body):
            # Each factor is computed once, as a local. No user's name has a blank.
            each = enumerate(factors_of(expr.body))
            factors = {f"factor {n}": self.of(factor, inner) for n, factor in each}
            known = replace(inner, locals={**inner.locals, **factors})
            body = self.of(_product_of_locals(expr.body, iter(factors)), known)
        else:
            body = self.of(expr.body, inner)
        if expr.condition is not None:
            condition = self.of(expr.condition, inner)
            condition = vectors.widened(condition, Scalar.BOOL, expr.type)
            body = number.choose(condition, body, _nothing(expr))
        parts = len(vectors.components(expr.body.type))

        def spread(part: Array) -> Array:
            missing = rank + parts - part.ndim
            whole = part.reshape((*(1,) * missing, *part.shape))
            return np.broadcast_to(whole, (*extents, *whole.shape[axes:]))

        terms = body.map(spread)
        if not factors:
            return terms
        # A shader multiplies the scale that narrow integers share with the sum of their
        # products: `scale * sum(x * w)`. Where that sum may overflow, as no factor below
        # 1 makes it less, the terms are unknown.
        sizes = (np.abs(factor.map(spread).value) for factor in factors.values())
        largest = reduce(lambda one, size: one * np.maximum(size, 1), sizes)
        whole = largest.sum(tuple(range(axes)), keepdims=True)
        return doubted(terms, np.broadcast_to(whole > number.HIGHEST, largest.shape))

    def _running(self, prefix: Prefix, scope: EvaluationScope) -> BoundedArray:
        """Return the values of a prefix or suffix reduction, at each point.

        All n results are read from one running reduction of n terms: n reductions of n
        terms would take too long for long rows.
        """
        terms = self._terms(prefix.reduce, scope)
        count = len(terms.value)
        # How many terms each result takes: `j + shift + 1` of the first ones, or of the
        # terms in reverse order those from `j + shift` on.
        ends = self.of(prefix.shift, scope).value + scope.indices[prefix.index.name]
        taken = count - ends if prefix.is_suffix else ends + 1
        taken = np.clip(taken, 0, count)
        taken = taken.reshape((1,) * (terms.value.ndim - taken.ndim) + taken.shape)
        ordered = terms.map(np.flipud) if prefix.is_suffix else terms
        running = _joined(prefix.reduce, ordered, number.Join(running=True))
        return running.map(lambda part: np.take_along_axis(part, taken, 0)[0])


def _joined(expr: ir.Reduce, terms: BoundedArray, join: number.Join) -> BoundedArray:
    """Return the results of a reduction of terms: of f32 with bounds, of integers wrapped."""
    scalar = scalar_of(expr.type)
    if scalar is Scalar.F32:
        if expr.kind in {"sum", "prod"}:
            terms = number.finite(terms)
        return _REDUCTIONS[expr.kind](terms, join)
    start = {"sum": 0, "prod": 1}.get(expr.kind)
    if start is None:
        start = _LIMITS[scalar][expr.kind == "min"]
    value = join(_JOINS[expr.kind], terms.value, start)
    unsure = join(np.logical_or, terms.unsure, False)
    return number.unsure_where(wrap(value, scalar), unsure)


def _terms_of(expr: ir.Expr) -> Iterator[ir.Expr]:
    """Yield the terms of sums and differences: `a`, `b * c` and `d` of `a + (b * c - d)`."""
    match expr:
        case ir.Binary("+" | "-", left, right):
            yield from (*_terms_of(left), *_terms_of(right))
        case _:
            yield expr


def _product_of_locals(expr: ir.Expr, names: Iterator[str]) -> ir.Expr:
    """Return a product with locals of these names in place of its factors."""
    match expr:
        case ir.Binary("*", left, right):
            first = _product_of_locals(left, names)
            return replace(expr, left=first, right=_product_of_locals(right, names))
        case _:
            return ir.LocalValue(next(names), expr.type)


def _has_codes(expr: ir.Expr) -> bool:
    """Whether a term reads integers of 8 or 4 bits."""
    return any(isinstance(x, ir.Load) and x.tensor.narrow for x in walk(expr))


def _literal(value: float, type_: Scalar) -> BoundedArray:
    if type_ is Scalar.F32:
        return number.literal(value)
    return number.known(np.asarray(value, number.dtype_of(type_)))


def _nothing(expr: ir.Reduce) -> BoundedArray:
    """Return the neutral value of a reduction."""
    scalar, first = scalar_of(expr.type), {"sum": 0, "prod": 1}
    if expr.kind in first:
        return _literal(first[expr.kind], scalar)
    least, most = _LIMITS.get(scalar, (-np.inf, np.inf))
    return _literal(most if expr.kind == "min" else least, scalar)

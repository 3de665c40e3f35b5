"""Prepare the forward program: inline functions, name reductions, rename indices apart.

    Before:  y[i] = sqrt(sum[j] x[i, j] * x[i, j]);
    After:   let y_sum[i#3#0#y] = sum[j#4] x[i#3#0#y, j#4] * x[i#3#0#y, j#4];
             y[i#3] = sqrt(y_sum[i#3]);

So a reduction has an adjoint of its own, and no index is bound twice.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, final

from kerngen.gradient.composites import is_real, part_of, part_types, zero_of
from kerngen.gradient.indices import free_indices
from kerngen.gradient.integers.conditions import all_hold, conjuncts, negated
from kerngen.gradient.integers.forms import form_of, length, number, plus, value_of
from kerngen.gradient.match import anonymous
from kerngen.gradient.terms import substituted, with_places
from kerngen.gradient.written import written_once
from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import affine_form
from kerngen.ir.analysis.extremes import stays_inside
from kerngen.ir.analysis.reads import tensors_read
from kerngen.ir.staging.hoisting import Fresh, named_let
from kerngen.ir.types import Scalar, Vector
from kerngen.ir.walk import called, map_children, walk

_F32: Final = Scalar.F32


@final
@dataclass(frozen=True)
class RecurrenceStep:
    """A step of a recurrence with its reductions replaced by reads of lets.

    For `h[t, i] = tanh(sum[j] w[i, j] * h[t - 1, j])` the let is of the sums, `h_sum[t, i]`,
    and the step is `tanh(h_sum[t, i])`.  The gradient knows h, so it can compute the sums of
    all steps in one product.
    """

    statement: ir.Statement
    lets: tuple[ir.Statement, ...]


@final
@dataclass(frozen=True)
class Forward:
    """The prepared forward program: each index is bound once, reductions have names.

    - `active`: the names of tensors and scalars that the gradient passes through
    - `steps`: recurrences with their reductions named, by lets that come after them
    - `named`: each tensor by its value, a key as `match.anonymous` returns it
    """

    kernel: ir.Kernel
    statements: tuple[ir.Statement, ...]
    active: frozenset[str]
    functions: Mapping[str, ir.Function]
    steps: Mapping[ir.Tensor, RecurrenceStep]
    named: Mapping[Hashable, ir.Tensor]

    def is_active(self, expr: ir.Expr) -> bool:
        """Whether a derivative flows through an expression."""
        return any(_name_of(node) in self.active for node in walk(expr))


def _name_of(node: ir.Expr) -> str:
    """Return the tensor or scalar that a float is read from, "" for any other node."""
    if isinstance(node, ir.Load) and is_real(node.type):
        return node.tensor.name
    return node.name if isinstance(node, ir.UniformValue) and is_real(node.type) else ""


def made_ready(
    kernel: ir.Kernel,
    functions: Mapping[str, ir.Function],
    by: tuple[str, ...],
    fresh: Fresh,
) -> Forward:
    """Return a kernel's prepared forward program, to be derived by the names in `by`."""
    apart = _Apart()
    body = tuple(map(apart.statement, kernel.body))
    kernel = written_once(replace(kernel, body=body), fresh)
    active = frozenset(by) | _active_hosts(kernel, by)
    statements: list[ir.Statement] = []
    steps: dict[ir.Tensor, RecurrenceStep] = {}
    for original in kernel.body:
        target = original.target
        inlined = _by_components(_inlined(original.value, functions, active))
        passes = any(_name_of(node) in active for node in walk(inlined))
        if is_real(original.written) and passes:
            active |= {target.name}
        statement = apart.statement(replace(original, value=inlined))
        reduced = frozenset(
            s.target
            for s in statements
            if any(isinstance(node, ir.Reduce) for node in walk(s.value))
        )
        if target.name in active and statement.along:
            before, step = _of_recurrence(statement, active, fresh)
            statements += (*before, *step.lets)
            steps[target] = step
        elif target.name in active:
            statements += _named(statement, active, fresh, reduced)
        else:
            statements.append(statement)
        # In order: of nested reductions, the let of the outer one reads that of the inner.
        for each in statements:
            passes = any(_name_of(node) in active for node in walk(each.value))
            if is_real(each.written) and passes:
                active |= {each.target.name}
    kept = {let.target for step in steps.values() for let in step.lets}
    different, named = _without_equal(statements, kept)
    return Forward(kernel, different, active, functions, steps, named)


def _without_equal(
    statements: Iterable[ir.Statement], kept: Container[ir.Tensor]
) -> tuple[tuple[ir.Statement, ...], dict[Hashable, ir.Tensor]]:
    """Return statements without lets that are equal to earlier ones, and tensors by value."""
    different: list[ir.Statement] = []
    named: dict[Hashable, ir.Tensor] = {}
    instead: dict[ir.Tensor, ir.Tensor] = {}

    def visit(expr: ir.Expr) -> ir.Expr:
        expr = map_children(expr, visit)
        if isinstance(expr, ir.Load) and expr.tensor in instead:
            return replace(expr, tensor=instead[expr.tensor])
        return expr

    for each in statements:
        statement = replace(each, value=visit(each.value)) if instead else each
        target = statement.target
        if not (statement.along or statement.path or statement.is_partial):
            key = anonymous(statement.indices, statement.value)
            first = named.setdefault(key, target)
            is_let = target.role is ir.Role.LET and target not in kept
            if first is not target and is_let:
                instead[target] = first
                continue
        different.append(statement)
    return tuple(different), named


def _active_hosts(kernel: ir.Kernel, by: tuple[str, ...]) -> frozenset[str]:
    found = set(by)
    for host in kernel.hosts:
        if host.type is _F32 and any(
            isinstance(n, ir.UniformValue) and n.name in found for n in walk(host.value)
        ):
            found.add(host.name)
    return frozenset(found)


# Functions


def _inlined(
    expr: ir.Expr, functions: Mapping[str, ir.Function], active: frozenset[str]
) -> ir.Expr:
    """Inline the calls of functions that the gradient passes through.

    Functions that return a bool are inlined, too: proofs about subscripts read conditions.
    Functions of integers stay calls, as ten rounds of Philox would grow without bound; so do
    functions with a `derivative of` item.
    """

    def visit(node: ir.Expr) -> ir.Expr:
        node = map_children(node, visit)
        if not isinstance(node, ir.FunctionCall):
            return node
        passes = any(_name_of(n) in active for n in walk(node))
        function = functions[node.function]
        if function.partials or (not passes and node.type is not Scalar.BOOL):
            return node
        return visit(called(function, node.arguments))

    return visit(expr)


def _by_components(expr: ir.Expr) -> ir.Expr:
    """Return an expression with each `max`, `min` or `prod` of vectors as one per component.

    Each component has ties and zeros of its own: `max[j] v[j]` of vec2f becomes
    `vec2f(max[j] v[j].x, max[j] v[j].y)`.
    """
    expr = map_children(expr, _by_components)
    if not isinstance(expr, ir.Reduce) or expr.kind == "sum":
        return expr
    if not isinstance(expr.type, Vector):
        return expr
    parts = (
        replace(expr, body=part_of(expr.body, place), type=scalar)
        for place, scalar in enumerate(part_types(expr.type))
    )
    return ir.Construct(expr.type, tuple(parts))


# Indices


@final
@dataclass
class _Apart:
    """Gives every binding of an index a name of its own: `j#3`."""

    count: int = 0

    def statement(self, statement: ir.Statement) -> ir.Statement:
        """Return a statement with its indices renamed."""
        by = {index: self.index(index) for index in statement.indices}
        value = self._renamed(substituted(statement.value, _values(by)))
        values = _values(by)
        path = with_places(statement.path, lambda place: substituted(place, values))
        indices = tuple(by.values())
        return replace(statement, indices=indices, value=value, path=path)

    def index(self, index: ir.Index) -> ir.Index:
        """Return an index of a name that no other has."""
        self.count += 1
        return replace(index, name=f"{base_name(index)}#{self.count}")

    def _renamed(self, expr: ir.Expr) -> ir.Expr:
        expr = map_children(expr, self._renamed)
        if not isinstance(expr, ir.Reduce):
            return expr
        by = {index: self.index(index) for index in expr.indices}
        return substituted(expr, _values(by))


def _values(by: Mapping[ir.Index, ir.Index]) -> dict[ir.Index, ir.Expr]:
    return {old: ir.IndexValue(new) for old, new in by.items()}


def base_name(index: ir.Index) -> str:
    """Return an index's name as the user wrote it, without a suffix."""
    return index.name.split("#")[0]


# Reductions


def _named(
    statement: ir.Statement,
    active: frozenset[str],
    fresh: Fresh,
    reduced: frozenset[ir.Tensor],
) -> Iterator[ir.Statement]:
    """Yield a statement after lets for its reductions.

    A sum in which the statement is linear stays, as in `y[i] = a[i] + sum[j] x[i, j]`.  So
    does a reduction that is the whole value, except that of a struct's member: the rules
    for reductions read the target as a whole tensor, which a let is.
    """
    namer = _Namer(statement, active, fresh)
    value = statement.value
    if isinstance(value, ir.Reduce) and not statement.is_partial:
        value = namer.inside(value, linear=value.kind == "sum")
    else:
        value = namer.visit(value, linear=True)
    yield from namer.lets
    yield from _with_scales(replace(statement, value=value), fresh, reduced)


def _of_recurrence(
    statement: ir.Statement, active: frozenset[str], fresh: Fresh
) -> tuple[tuple[ir.Statement, ...], RecurrenceStep]:
    """Return a recurrence after lets for its reductions of other tensors, and its step."""
    others = _Namer(statement, active, fresh, kept=statement.target)
    value = others.visit(statement.value, linear=True)
    own = _Namer(statement, active, fresh, guarded=statement.target)
    step = replace(statement, value=own.visit(value, linear=True))
    before = (*others.lets, replace(statement, value=value))
    return before, RecurrenceStep(step, tuple(own.lets))


@final
@dataclass
class _Namer:
    """Makes lets of the reductions of one statement, except those that read `kept`.

    A let is computed where no branch guards it, so reads of `guarded` in it get the conditions
    of the branches around them, in `path`: `if t > 0 { h[t - 1, j] } else { 0.0 }`.
    """

    statement: ir.Statement
    active: frozenset[str]
    fresh: Fresh
    kept: ir.Tensor | None = None
    guarded: ir.Tensor | None = None
    path: tuple[ir.Expr, ...] = ()
    lets: list[ir.Statement] = field(default_factory=list[ir.Statement])
    known: dict[ir.Expr, ir.Expr] = field(default_factory=dict[ir.Expr, ir.Expr])

    def _passes(self, expr: ir.Expr) -> bool:
        return any(_name_of(n) in self.active for n in walk(expr))

    # A value is linear in a sum if it adds it, or multiplies it by what no gradient passes
    # through; in a function of it, or a product of two, it is not.
    def visit(self, expr: ir.Expr, *, linear: bool) -> ir.Expr:
        """Return a value with reads of lets in the place of reductions.

        `linear`: the statement's value is linear in this part of it, so a sum may stay.
        """
        match expr:
            case ir.Reduce() if self.kept in {*tensors_read(expr)}:
                return expr
            case ir.Reduce(kind="sum") if linear and self._passes(expr):
                return self.inside(expr, linear=True)
            case ir.Reduce():
                return self._let(self.inside(expr, linear=False))
            case (
                ir.Binary(op="+" | "-")
                | ir.Unary(op="-")
                | ir.Swizzle()
                | ir.Construct()
            ):
                return map_children(expr, lambda c: self.visit(c, linear=linear))
            case ir.Binary(op="*" | "/" as op, left=left, right=right):
                first = linear and not self._passes(right)
                second = linear and op == "*" and not self._passes(left)
                left = self.visit(left, linear=first)
                return replace(expr, left=left, right=self.visit(right, linear=second))
            case ir.Select(condition=condition, then=then, otherwise=otherwise):
                holds, fails = self._under(condition), self._under(negated(condition))
                condition = self.visit(condition, linear=False)
                then = holds.visit(then, linear=linear)
                otherwise = fails.visit(otherwise, linear=linear)
                return ir.Select(condition, then, otherwise, expr.type)
            case _:
                return map_children(expr, lambda c: self.visit(c, linear=False))

    def inside(self, reduce: ir.Reduce, *, linear: bool) -> ir.Reduce:
        """Return a reduction with lets for those in it."""
        condition = reduce.condition and self.visit(reduce.condition, linear=False)
        body = self.visit(reduce.body, linear=linear)
        return replace(reduce, condition=condition, body=body)

    def _under(self, condition: ir.Expr) -> _Namer:
        """Return a namer for a branch with this condition; it adds to the same lets."""
        of_places = (c for c in conjuncts(condition) if not _reads_memory(c))
        return replace(self, path=(*self.path, *of_places))

    def _guard(self, expr: ir.Expr) -> ir.Expr:
        """Return an expression whose reads of `guarded` are 0 outside of the path."""
        expr = map_children(expr, self._guard)
        if (
            not isinstance(expr, ir.Load)
            or expr.tensor != self.guarded
            or not self.path
        ):
            return expr
        return ir.Select(all_hold(self.path), expr, zero_of(expr.type), expr.type)

    def _let(self, reduce: ir.Reduce) -> ir.Expr:
        """Make a let of a reduction, over indices of its own, and return its read."""
        reduce = replace(reduce, body=self._guard(reduce.body))
        known = self.known.get(_anonymous(reduce))
        if known is not None:
            return known
        statement, free = self.statement, free_indices(reduce)
        outside = [index for index in statement.indices if index in free]
        outside += sorted(free.difference(outside), key=lambda index: index.name)
        suffix = f"{len(self.lets)}#{statement.target.name}"
        own = tuple(replace(i, name=f"{i.name}#{suffix}") for i in outside)
        by = _values(dict(zip(outside, own, strict=True)))
        name = self.fresh.name(f"{statement.target.name}_{reduce.kind}")
        value = substituted(_clamped(reduce, frozenset(outside)), by)
        let = named_let(statement, name, own, value)
        self.lets.append(let)
        load = ir.Load(let.target, tuple(ir.IndexValue(index) for index in outside))
        self.known[_anonymous(reduce)] = load
        return load


def _anonymous(reduce: ir.Reduce) -> ir.Expr:
    """Return a reduction with its own indices by number, so that equal ones are equal."""
    by = {i: replace(i, name=f"#{place}") for place, i in enumerate(reduce.indices)}
    return substituted(reduce, _values(by))


def _reads_memory(expr: ir.Expr) -> bool:
    return any(isinstance(node, ir.Load | ir.Reduce) for node in walk(expr))


def _clamped(reduce: ir.Reduce, outside: frozenset[ir.Index]) -> ir.Expr:
    """Return a reduction with `clamp` written out in subscripts that a condition guarded.

    In `if i > 0 { v[i] * prod[j] x[i - 1, j] }` the product becomes a let, which is computed
    for every i: it reads `x[clamp(i - 1, 0, m - 1), j]`.
    """
    own = frozenset[ir.Index]().union(
        *(free_indices(c) for node in walk(reduce) for c in _conditions_of(node))
    )

    def place(subscript: ir.Subscript, extent: ir.Extent) -> ir.Subscript:
        if not isinstance(subscript, ir.Clamped):
            return subscript
        # Only an affine subscript that may leave its axis, and by indices of the let alone:
        # one with an index of the reduction, or guarded inside of it, stays clamped.
        form = affine_form(subscript.value)
        if form is None or not form.terms or stays_inside(form, extent):
            return subscript
        if not outside.issuperset(form.terms) or own.intersection(form.terms):
            return subscript
        last = value_of(plus(form_of(length(extent)), -1))
        limits = (subscript.value, number(0), last)
        return ir.Clamped(ir.BuiltinCall("clamp", limits, Scalar.I32))

    def visit(node: ir.Expr) -> ir.Expr:
        node = map_children(node, visit)
        if not isinstance(node, ir.Load):
            return node
        pairs = zip(node.subscripts, node.tensor.extents, strict=True)
        return replace(node, subscripts=tuple(place(s, e) for s, e in pairs))

    return visit(reduce)


def _conditions_of(node: ir.Expr) -> Iterator[ir.Expr]:
    if isinstance(node, ir.Select):
        yield node.condition
    if isinstance(node, ir.Reduce) and node.condition is not None:
        yield node.condition


def _with_scales(
    statement: ir.Statement, fresh: Fresh, reduced: frozenset[ir.Tensor]
) -> Iterator[ir.Statement]:
    """Yield a statement after lets for the reciprocals of its rows' divisors.

    Before:  y[i, j] = x[i, j] / sqrt(square[i] + eps);
    After:   let y_scale[i] = 1.0 / sqrt(square[i] + eps);    y[i, j] = x[i, j] * y_scale[i];
    """
    domain = frozenset(statement.indices)
    lets: list[ir.Statement] = []

    def visit(expr: ir.Expr) -> ir.Expr:
        expr = map_children(expr, visit)
        if not isinstance(expr, ir.Binary) or expr.op != "/" or expr.type is not _F32:
            return expr
        below = expr.right
        of_rows = any(
            isinstance(n, ir.Load) and n.tensor in reduced for n in walk(below)
        )
        # A plain read is short enough, and a divisor with all indices differs everywhere.
        if isinstance(below, ir.Load) or not of_rows or free_indices(below) >= domain:
            return expr
        own = tuple(i for i in statement.indices if i in free_indices(below))
        name = fresh.name(f"{statement.target.name}_scale")
        value = ir.Binary("/", ir.Constant(1.0, _F32), below, _F32)
        lets.append(named_let(statement, name, own, value))
        scale = ir.Load(lets[-1].target, tuple(map(ir.IndexValue, own)))
        return ir.Binary("*", expr.left, scale, _F32)

    if any(isinstance(node, ir.Reduce) for node in walk(statement.value)):
        yield statement
        return
    value = visit(statement.value)
    yield from lets
    yield replace(statement, value=value)


def as_select(expr: ir.BuiltinCall) -> ir.Select:
    """Return `select(b, a, c)` as `if c { a } else { b }`."""
    otherwise, then, condition = expr.arguments
    return ir.Select(condition, then, otherwise, expr.type)

"""The forward program, made ready: functions inlined, reductions named, indices apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, final

from kerngen.gradient.fault import GradientError, Kind
from kerngen.gradient.terms import substituted
from kerngen.ir.hoisting import Fresh
from kerngen.ir.nodes import (
    Binary,
    BuiltinCall,
    Constant,
    Expr,
    Function,
    FunctionCall,
    Index,
    IndexValue,
    Kernel,
    Load,
    LocalValue,
    Reduce,
    Role,
    Select,
    Statement,
    Tensor,
    Unary,
    UniformValue,
)
from kerngen.ir.reads import free_indices
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children, walk

_F32: Final = Scalar.F32


@final
@dataclass(frozen=True)
class Forward:
    """A kernel with every index bound once, and every reduction that matters named.

    `active` are the tensors and scalars that the gradient passes through.
    """

    kernel: Kernel
    statements: tuple[Statement, ...]
    active: frozenset[str]
    functions: Mapping[str, Function]

    def is_active(self, expr: Expr) -> bool:
        """Whether the gradient passes through an expression."""
        return any(_name_of(node) in self.active for node in walk(expr))


def _name_of(node: Expr) -> str:
    """Return the name of what a float is read from."""
    if isinstance(node, Load) and node.type is _F32:
        return node.tensor.name
    return node.name if isinstance(node, UniformValue) and node.type is _F32 else ""


def made_ready(
    kernel: Kernel,
    functions: Mapping[str, Function],
    by: tuple[str, ...],
    fresh: Fresh,
) -> Forward:
    """Return a kernel as the derivation wants it."""
    _refuse_writes(kernel)
    active = frozenset(by) | _active_hosts(kernel, by)
    statements: list[Statement] = []
    apart = _Apart()
    for original in kernel.body:
        target = original.target
        inlined = _inlined(original.value, functions, active)
        passes = any(_name_of(node) in active for node in walk(inlined))
        if passes and not isinstance(target.element, Scalar):
            what = f"'{target.name}', which has components"
            fields = {"kernel": kernel.name, "what": what}
            raise GradientError(Kind.NO_DERIVATIVE, fields, original.span)
        if target.element is _F32 and passes:
            active |= {target.name}
        statement = apart.statement(replace(original, value=inlined))
        reduced = frozenset(
            s.target
            for s in statements
            if any(isinstance(node, Reduce) for node in walk(s.value))
        )
        if target.name in active:
            statements += _named(statement, active, fresh, reduced)
        else:
            statements.append(statement)
        active |= {
            each.target.name
            for each in statements
            if each.target.element is _F32
            and any(_name_of(n) in active for n in walk(each.value))
        }
    return Forward(kernel, tuple(statements), active, functions)


def _refuse_writes(kernel: Kernel) -> None:
    written: set[str] = set()
    for statement in kernel.body:
        target = statement.target
        if target.role is Role.UPDATE:
            fields = {"kernel": kernel.name, "tensor": target.name}
            raise GradientError(Kind.IN_PLACE, fields, statement.span)
        if statement.is_partial or target.name in written:
            fields = {"kernel": kernel.name, "what": f"writes '{target.name}' in parts"}
            raise GradientError(Kind.NO_DERIVATIVE, fields, statement.span)
        written.add(target.name)


def _active_hosts(kernel: Kernel, by: tuple[str, ...]) -> frozenset[str]:
    found = set(by)
    for host in kernel.hosts:
        if host.type is _F32 and any(
            isinstance(n, UniformValue) and n.name in found for n in walk(host.value)
        ):
            found.add(host.name)
    return frozenset(found)


# Functions


def _inlined(
    expr: Expr, functions: Mapping[str, Function], active: frozenset[str]
) -> Expr:
    """Put functions in the place of their calls, where the gradient passes through.

    Conditions are inlined, too: what they say of indices is wanted.  Functions of
    integers stay calls, as ten rounds of Philox would grow without bound; so do those
    whose derivatives the user gave.
    """

    def visit(node: Expr) -> Expr:
        node = map_children(node, visit)
        if not isinstance(node, FunctionCall):
            return node
        passes = any(_name_of(n) in active for n in walk(node))
        function = functions[node.function]
        if function.partials or (not passes and node.type is not Scalar.BOOL):
            return node
        return visit(called(function, node.arguments))

    return visit(expr)


def called(function: Function, arguments: tuple[Expr, ...]) -> Expr:
    """Return the value of a function at some arguments."""
    values = {
        local.name: value
        for local, value in zip(function.parameters, arguments, strict=True)
    }

    def visit(node: Expr) -> Expr:
        if isinstance(node, LocalValue):
            return values[node.name]
        return map_children(node, visit)

    for local, value in function.lets:
        values[local.name] = visit(value)
    return visit(function.body)


# Indices


@final
@dataclass
class _Apart:
    """Gives every binding of an index a name of its own: `j#3`."""

    count: int = 0

    def statement(self, statement: Statement) -> Statement:
        """Return a statement with its indices renamed."""
        by = {index: self.index(index) for index in statement.indices}
        value = self._renamed(substituted(statement.value, _values(by)))
        return replace(statement, indices=tuple(by.values()), value=value)

    def index(self, index: Index) -> Index:
        """Return an index of a name that no other has."""
        self.count += 1
        return replace(index, name=f"{base_name(index)}#{self.count}")

    def _renamed(self, expr: Expr) -> Expr:
        expr = map_children(expr, self._renamed)
        if not isinstance(expr, Reduce):
            return expr
        by = {index: self.index(index) for index in expr.indices}
        return substituted(expr, _values(by))


def _values(by: Mapping[Index, Index]) -> dict[Index, Expr]:
    return {old: IndexValue(new) for old, new in by.items()}


def base_name(index: Index) -> str:
    """Return the name that the user gave to an index."""
    return index.name.split("#")[0]


# Reductions


def _named(
    statement: Statement,
    active: frozenset[str],
    fresh: Fresh,
    reduced: frozenset[Tensor],
) -> Iterator[Statement]:
    """Yield a statement after lets for its reductions.

    A sum in which the statement is linear stays; so does a reduction that is the
    whole value.
    """
    lets: list[Statement] = []

    def passes(expr: Expr) -> bool:
        return any(_name_of(n) in active for n in walk(expr))

    def visit(expr: Expr, *, linear: bool) -> Expr:
        match expr:
            case Reduce(kind="sum") if linear and passes(expr):
                return inside(expr, linear=True)
            case Reduce():
                return let(inside(expr, linear=False))
            case Binary(op="+" | "-"):
                return map_children(expr, lambda c: visit(c, linear=linear))
            case Binary(op="*" | "/" as op, left=left, right=right):
                first = linear and not passes(right)
                second = linear and op == "*" and not passes(left)
                left = visit(left, linear=first)
                return replace(expr, left=left, right=visit(right, linear=second))
            case Unary(op="-"):
                return map_children(expr, lambda c: visit(c, linear=linear))
            case Select(condition=condition, then=then, otherwise=otherwise):
                condition = visit(condition, linear=False)
                then = visit(then, linear=linear)
                otherwise = visit(otherwise, linear=linear)
                return Select(condition, then, otherwise, expr.type)
            case _:
                return map_children(expr, lambda c: visit(c, linear=False))

    def inside(reduce: Reduce, *, linear: bool) -> Reduce:
        condition = reduce.condition and visit(reduce.condition, linear=False)
        return replace(
            reduce, condition=condition, body=visit(reduce.body, linear=linear)
        )

    def let(reduce: Reduce) -> Expr:
        free = free_indices(reduce)
        outside = [index for index in statement.indices if index in free]
        outside += sorted(free.difference(outside), key=lambda index: index.name)
        # One let for each value that its own indices have.
        own = tuple(
            replace(i, name=f"{i.name}#{len(lets)}#{statement.target.name}")
            for i in outside
        )
        by = _values(dict(zip(outside, own, strict=True)))
        name = fresh.name(f"{statement.target.name}_{reduce.kind}")
        extents = tuple(index.extent for index in own)
        tensor = Tensor(name, reduce.type, extents, Role.LET, span=statement.span)
        lets.append(
            replace(
                statement, target=tensor, indices=own, value=substituted(reduce, by)
            )
        )
        return Load(tensor, tuple(IndexValue(index) for index in outside))

    value = statement.value
    if isinstance(value, Reduce):
        value = inside(value, linear=value.kind == "sum")
    else:
        value = visit(value, linear=True)
    yield from lets
    yield from _with_scales(replace(statement, value=value), fresh, reduced)


def _with_scales(
    statement: Statement, fresh: Fresh, reduced: frozenset[Tensor]
) -> Iterator[Statement]:
    """Yield a statement after lets for what divides whole rows of it.

    Before:  y[i, j] = x[i, j] / sqrt(square[i] + eps);
    After:   let y_scale[i] = 1.0 / sqrt(square[i] + eps);    y[i, j] = x[i, j] * y_scale[i];
    """
    domain = frozenset(statement.indices)
    lets: list[Statement] = []

    def visit(expr: Expr) -> Expr:
        expr = map_children(expr, visit)
        if not isinstance(expr, Binary) or expr.op != "/" or expr.type is not _F32:
            return expr
        below = expr.right
        of_rows = any(isinstance(n, Load) and n.tensor in reduced for n in walk(below))
        if isinstance(below, Load) or not of_rows or free_indices(below) >= domain:
            return expr
        own = tuple(i for i in statement.indices if i in free_indices(below))
        name = fresh.name(f"{statement.target.name}_scale")
        extents = tuple(index.extent for index in own)
        target = Tensor(name, _F32, extents, Role.LET, span=statement.span)
        value = Binary("/", Constant(1.0, _F32), below, _F32)
        lets.append(replace(statement, target=target, indices=own, value=value))
        scale = Load(target, tuple(map(IndexValue, own)))
        return Binary("*", expr.left, scale, _F32)

    if any(isinstance(node, Reduce) for node in walk(statement.value)):
        yield statement
        return
    value = visit(statement.value)
    yield from lets
    yield replace(statement, value=value)


def as_select(expr: BuiltinCall) -> Select:
    """Return `select(b, a, c)` as `if c { a } else { b }`."""
    otherwise, then, condition = expr.arguments
    return Select(condition, then, otherwise, expr.type)

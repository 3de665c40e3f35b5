"""Checking the body of a kernel: lets, hosts and assignments."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import assert_never, final

from kerngen.check import faults as diag
from kerngen.check.environment import Environment, parts_of
from kerngen.check.expressions.checker import Expressions
from kerngen.check.expressions.index_ranges import bind_indices
from kerngen.check.expressions.negatives import record_let
from kerngen.check.expressions.operators import report_operands
from kerngen.check.expressions.places import Place
from kerngen.check.expressions.reductions import KERNEL
from kerngen.check.expressions.rules import HOST
from kerngen.check.hints.left_sides import as_sum, free_indices
from kerngen.check.scope import (
    Poison,
    Scope,
    Symbol,
    TensorSymbol,
    ValueSymbol,
    is_whole_tensor,
    let_symbol,
)
from kerngen.check.statements.recurrences import check_let_value
from kerngen.check.statements.targets import (
    check_target,
    copied_parts,
    report_whole,
    written_tensor,
)
from kerngen.check.traverse import walk_syntax
from kerngen.ir import nodes as ir
from kerngen.ir.analysis.positions import at_places
from kerngen.ir.builtins.evaluate import NotFiniteError, constant_value
from kerngen.ir.fold import fold
from kerngen.ir.memory import Leaf, lowest_and_highest
from kerngen.ir.nodes import Binary, Constant, Expr, Tensor
from kerngen.ir.operators import composite_type, is_composite
from kerngen.ir.types import F16_MAX, Scalar, scalar_of
from kerngen.syntax import ast

_OPERATORS: dict[ast.AssignOp, ir.BinaryOp] = {
    "+=": "+",
    "-=": "-",
    "*=": "*",
    "/=": "/",
}


@final
@dataclass(frozen=True)
class Body:
    """Checks the statements of one kernel in order."""

    env: Environment
    scope: Scope
    hosts: list[ir.Host] = field(default_factory=list[ir.Host])
    statements: list[ir.Statement] = field(default_factory=list[ir.Statement])

    def check(self, body: tuple[ast.Equation, ...]) -> None:
        """Check every statement."""
        for statement in body:
            if not isinstance(statement, ast.Assignment):
                name = statement.name
                self.env.later.setdefault(name.name, name.span)
        for place, statement in enumerate(body):
            self.env.current.begin(body, place)
            match statement:
                case ast.LetStatement():
                    self._let(statement)
                case ast.HostStatement():
                    self._host(statement)
                case ast.Assignment():
                    self._assign(statement)
                case _:
                    assert_never(statement)

    def _declare(self, name: ast.Identifier, symbol: Symbol) -> None:
        """Declare a let or host, which may not have the name of an earlier index."""
        first = self.env.indices.get(name.name)
        self.env.model.define(name.span, symbol)
        self.env.later.pop(name.name, None)
        if first is not None and self.scope.get(name.name) is None:
            self.env.faults.add(
                diag.NameClash(
                    span=name.span, other=first, wanted=symbol.kind, taken="an index"
                )
            )
        if not self.scope.declare(name, symbol):
            self.env.written.add(name.name)
            # The name has two meanings now: its uses are not reported.
            self.scope.put(name.name, Poison(symbol.kind, name.span))

    def _expressions(self) -> Expressions:
        """Return a checker for the expressions of a statement."""
        scope = Scope(self.env.faults, self.scope, is_statement=True)
        return Expressions(self.env, scope, KERNEL)

    # Lets and hosts

    def _let(self, node: ast.LetStatement) -> None:
        inner = self._expressions()
        with bind_indices(inner, node.binders, (node.value,)) as indices:
            value, along = check_let_value(inner, node, indices)
        name = node.name
        if value is None or indices is None:
            self._declare(name, Poison("a let", name.span))
            return
        record_let(self.env, name.name, indices, value)
        symbol = let_symbol(node, value.type, indices)
        self._declare(name, symbol)
        places = tuple(map(ir.IndexValue, indices))
        self._add(node, Place(symbol, symbol.tensor.memory, places), value)
        self.statements[-1] = replace(self.statements[-1], along=along)

    def _host(self, node: ast.HostStatement) -> None:
        name = node.name
        value = self._host_value(node.value)
        if value is None:
            self._declare(name, Poison("a host", name.span))
            return
        assert isinstance(value.type, Scalar), "hosts are numbers"
        text = _text(node)
        self.hosts.append(ir.Host(name.name, value.type, value, text))
        self.env.hosts[name.name] = value
        result = ir.UniformValue(name.name, value.type)
        self._declare(name, ValueSymbol("a host", result, name.span))

    def _host_value(self, node: ast.Expr) -> ir.Expr | None:
        """Return the value of a host: an i32 or an f32."""
        value = Expressions(self.env, self.scope, HOST).check(node)
        if value is None:
            return None
        if value.type is Scalar.BOOL:
            self.env.faults.add(diag.HostType(span=node.span))
            return None
        try:
            constant_value(value)
        except NotFiniteError:
            self.env.faults.add(diag.NotFinite(span=node.span, type="f32"))
            return None
        return value if value.type is not Scalar.U32 else ir.Cast(value, Scalar.I32)

    def _add(self, node: ast.Equation, place: Place, value: ir.Expr) -> None:
        assert isinstance(place.root, TensorSymbol), "nothing else is written"
        tensor = place.root.tensor
        self.statements.append(
            ir.Statement(
                tensor,
                place.indices,
                narrowed(at_places(value, place.subscripts), tensor),
                _text(node),
                node.span,
                place.path,
                place.components,
            )
        )

    # Assignments

    def _assign(self, node: ast.Assignment) -> None:
        """Check an assignment: its target, then its value; add a statement for each part."""
        symbol = written_tensor(self.env, self.scope, node)
        if symbol:
            self.env.model.define(node.name.span, symbol)
        inner = self._expressions()
        place = check_target(inner, self.scope, node, symbol)
        if place is None or not place.is_known:
            _poison_right(inner.scope, node)
        # The right side is checked in any case, so that its own faults are reported, too.
        parts: list[tuple[Place, ir.Expr]] = []
        if symbol is None or place is None:
            inner.check(node.value)
        elif not isinstance(place.memory, Leaf):
            parts = self._copied(inner, node, place)
        elif (value := self._value(inner, node, symbol, place)) is not None:
            parts = [(place, value)]
        if symbol is not None:
            self._mark_written(symbol.tensor, place)
        for part, written in parts:
            if part.is_known:
                self._add(node, part, written)

    def _copied(
        self, inner: Expressions, node: ast.Assignment, place: Place
    ) -> list[tuple[Place, ir.Expr]]:
        """Return the parts that `a = b` copies, if these are structs or arrays of one type."""
        faults = len(self.env.faults)
        parts = copied_parts(inner, node, place) if node.op == "=" else None
        if parts is not None:
            return parts
        if not isinstance(node.value, ast.Name | ast.Member | ast.Subscript):
            inner.check(node.value)
        if len(self.env.faults) == faults:
            report_whole(inner, node, place)
        return []

    def _mark_written(self, tensor: ir.Tensor, place: Place | None) -> None:
        """Mark the parts that a statement writes; after a fault, those of the whole element."""
        if tensor.role is not ir.Role.OUTPUT:
            self.env.written.add(tensor.name)
            return
        parts = parts_of(tensor.memory, ())
        if place is not None:
            parts = parts_of(place.memory, place.path, place.components)
        self.env.mark_written(tensor, parts)

    def _value(
        self,
        inner: Expressions,
        node: ast.Assignment,
        symbol: TensorSymbol,
        place: Place,
    ) -> ir.Expr | None:
        """Check the right side, and return it; of `x[i] += v` that is `x[i] + v`."""
        tensor, type_ = symbol.tensor, place.type
        updates = node.op != "="
        written = place.memory, place.path, place.components
        if updates and place.is_known and self.env.unwritten(tensor, *written):
            self._report_unwritten(inner, node, symbol)
        value = inner.check(node.value, scalar_of(type_))
        if value is None:
            return None
        # `v[i] *= 2.0` scales a vector: the sides differ, and the result has the right type.
        scales = updates and composite_type(_OPERATORS[node.op], type_, value.type)
        if type_ not in (value.type, scales):
            if updates and is_composite(type_) and scales is None:
                sides = (node.target.span, type_), (node.value.span, value.type)
                report_operands(inner, node.span, _OPERATORS[node.op], *sides)
                return None
            what = f"An element of '{tensor.name}'"
            inner.report_mismatch(node.value, value, type_, what, symbol.span)
            return None
        if node.op == "=":
            self._check_range(value, node.value, place)
        if node.op == "=" or not place.is_known:
            return value
        combined = ir.Binary(_OPERATORS[node.op], place.value(), value, type_)
        return inner.finish(combined, node.value.span)

    def _report_unwritten(
        self, inner: Expressions, node: ast.Assignment, symbol: TensorSymbol
    ) -> None:
        """Report `y[i] += ...` of an element that has no value yet.

        If a loop that adds up was meant, the hint is a `sum`, and the indices on the right are
        not reported as unknown.
        """
        summed = as_sum(self.scope, node)
        if summed:
            _poison_right(inner.scope, node)
        self.env.faults.add(
            diag.ReadBeforeWrite(
                span=node.name.span,
                other=symbol.span,
                name=symbol.tensor.name,
                case="sum" if summed else "first",
                sum=summed,
            )
        )

    def _check_range(self, value: ir.Expr, node: ast.Expr, place: Place) -> None:
        """Refuse a constant that no element of f16, or of 8 or 4 bits, holds."""
        narrow = place.memory.narrow if isinstance(place.memory, Leaf) else None
        ends: tuple[float, float] | None
        ends = lowest_and_highest(narrow) if narrow else None
        if place.is_half:
            ends = -F16_MAX, F16_MAX
        constant = constant_value(value) if ends else None
        if constant is None or not ends or ends[0] <= constant <= ends[1]:
            return
        low, high = map(str, ends)
        text, type_ = node.span.one_line(), place.memory.spelling
        self.env.faults.add(
            diag.LiteralRange(
                span=node.span, value=text, type=type_, low=low, high=high
            )
        )


def _poison_right(scope: Scope, node: ast.Assignment) -> None:
    """Poison names on the right that a correct left side would have explained.

    These are new indices, and whole tensors: `y = x` lacks its subscripts on both sides, and
    is reported once, at `y`.
    """
    for name in free_indices(scope, node):
        scope.poison(name, "an index", node.span)
    parts = [*walk_syntax(node.value)]
    bases = {p.base.span for p in parts if isinstance(p, ast.Subscript | ast.Member)}
    for part in parts:
        if is_whole_tensor(symbol := scope.of(part)) and part.span not in bases:
            scope.poison(symbol.tensor.name, "a tensor", part.span)


def _text(statement: ast.Statement) -> str:
    """Return a statement on one line, with its semicolon."""
    return statement.span.collapsed.rstrip("; ") + ";"


# Writes of integers of 8 and 4 bits: the lower bits of the value are kept


def narrowed(value: Expr, target: Tensor) -> Expr:
    """Return the value that a read gives after a write to a narrow tensor.

    Before:  y[i] = x[i];             with y of u4; then of i4
    After:   y[i] = x[i] & 15;        y[i] = x[i] << 28 >> 28;
    """
    if target.narrow is None:
        return value
    bits = target.narrow.bits
    if value.type is Scalar.U32:
        return fold(
            Binary("&", value, Constant((1 << bits) - 1, Scalar.U32), value.type)
        )
    above = Constant(32 - bits, Scalar.U32)
    up = fold(Binary("<<", value, above, value.type))
    return fold(Binary(">>", up, above, value.type))

"""Lower typed expressions to shader expressions, one or four elements at a time.

A `Lowerer` writes the code of one invocation.  With a `vector` index it computes four elements
at once, those at places j to j + 3 of that index.  A value is *wide*, a `vec4`, if it may
differ between the four; a narrow value is splat only where WGSL needs a vector.  With j as the
vector index:

    x[i, j] * scale[i]     x[...] * scale[i]                    wide times narrow: no splat
    max(x[i, j], 0.0)      max(x[...], vec4f(0.0))              splat
    sum[p] a[i, p]         a loop with a narrow accumulator
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import assert_never, final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import as_literal
from kerngen.ir.analysis.finite import is_finite
from kerngen.ir.analysis.signs import is_natural
from kerngen.ir.builtins.evaluate import constant_value
from kerngen.ir.builtins.table import BUILTINS, TRUNCATING
from kerngen.ir.geometry import GEOMETRY
from kerngen.ir.memory import Struct
from kerngen.ir.operators import is_composite
from kerngen.ir.store import StoreAt
from kerngen.ir.types import F16_MAX, Matrix, Scalar, ValueType, Vector, scalar_of
from kerngen.layout.types import Laid
from kerngen.schedule.lowering import memory
from kerngen.schedule.lowering.argmax import find_serially
from kerngen.schedule.lowering.builder import ShaderBuilder, wgsl_type
from kerngen.schedule.lowering.composites import (
    halved_columns,
    lanes_of,
    lower_choice,
    lower_componentwise,
    lower_geometry,
    lower_operation,
    lower_part,
)
from kerngen.schedule.lowering.identities import accumulate, identity, infinity
from kerngen.schedule.lowering.loads import lower_load
from kerngen.schedule.lowering.ranges import terms_along
from kerngen.schedule.lowering.ranks import helper_of
from kerngen.schedule.lowering.values import COMPONENTS, LANES, Value
from kerngen.shader import declarations as wgsl
from kerngen.shader import tree as t
from kerngen.shader.depth import named_where_deep

# Operators whose sides may be a vector and a scalar (WGSL 8.7), and WGSL's logical
# operators for one element and for four: `&&` has no form for vectors.
_MIXES_WIDTHS = frozenset({"+", "-", "*", "/", "%"})
_LOGICAL = {"and": ("&&", "&"), "or": ("||", "|")}


@final
@dataclass(frozen=True)
class Lowerer:
    """Lowers typed expressions to WGSL, with statements in `block` where they need some.

    - `at`: the WGSL expression of each index; of the vector index, that of the first of four
    - `vector`: the index along which four elements are computed at once, if any
    - `locals`: the values of local names: of `let`s, parameters, and a strategy's own
    - `reduced`: the values of reductions that a strategy has computed itself; others
      become serial loops
    - `label`: the beginning of the names of accumulators and other variables
    - `element`: the domain's indices and the address of the invocation's own element, where
      a strategy knows that address
    - `counts_vectors`: whether addresses count vectors of four, as is cheap where a turn of a
      loop reads several rows; the first element of each vector is at a multiple of four
    """

    shader: ShaderBuilder
    at: dict[ir.Index, t.Expr]
    block: list[t.Stmt]
    vector: ir.Index | None = None
    locals: dict[str, Value] = field(default_factory=dict)
    reduced: dict[ir.Reduce, Value] = field(default_factory=dict)
    label: str = "value"
    element: tuple[tuple[ir.Index, ...], t.Expr] | None = None
    counts_vectors: bool = False

    def lower(self, expr: ir.Expr) -> Value:
        """Return the WGSL value of an expression; statements that it needs go to `block`."""
        match expr:
            # Leaves: numbers, indices, the call's scalars, and elements of tensors.
            case ir.Constant(value, type_):
                return Value(self._literal(value, type_))
            case ir.ConstRef(name, value, type_):
                # WGSL's constants are finite.
                if not math.isfinite(value):
                    return Value(self._literal(value, type_))
                return Value(self.shader.const(name, type_, literal(value, type_)))
            case ir.IndexValue(index):
                return self._index(index)
            case ir.DimValue(name):
                return Value(t.call("i32", self.shader.uniform(name)))
            case ir.UniformValue():
                return Value(memory.read(*self.uniform_place(expr)))
            case ir.LocalValue(name):
                return self.locals[name]
            case ir.Load():
                return lower_load(self, expr)
            # Parts of vectors and matrices, and vectors of parts.
            case ir.Swizzle(operand, components):
                return Value(t.Member(self.lower(operand).expr, components))
            case ir.Part():
                return Value(lower_part(self, expr))
            case ir.Construct(type_, parts):
                values = (self.lower(part).expr for part in parts)
                return Value(t.Call(type_.spelling, tuple(values)))
            # Operators, conversions and calls.
            case ir.Unary():
                return self._unary(expr)
            case ir.Binary():
                return self._binary(expr)
            case ir.Select():
                return self._select(expr)
            case ir.Cast(operand, is_halved=True):
                return self._halved(operand)
            case ir.Cast(operand, type_):
                return self._cast(operand, type_)
            case ir.BuiltinCall():
                return self._builtin(expr)
            case ir.FunctionCall():
                return self._function_call(expr)
            case ir.Reduce():
                return self._reduce(expr)
            case StoreAt():
                raise AssertionError("writes lower their positions themselves")
            case _:
                assert_never(expr)

    def uniform_place(self, value: ir.UniformValue) -> tuple[t.Expr, Laid]:
        """Return the place and layout of a scalar parameter, or its part, in the uniform."""
        place = self.shader.uniform(value.name)
        laid = self.shader.laid_uniform(value.name)
        return memory.follow(self, place, laid, value.path)

    # Widths

    def widen(self, value: Value, type_: ValueType | Struct) -> t.Expr:
        """Return a value as a vector of four: a narrow one is repeated four times."""
        if value.wide:
            return value.expr
        assert isinstance(type_, Scalar), "vectors are not widened"
        return t.call(wgsl_type(type_, LANES), value.expr)

    def together(self, *parts: tuple[Value, ValueType]) -> tuple[bool, list[t.Expr]]:
        """Return whether any value is wide, and all the values, which are then all widened."""
        wide = any(value.wide for value, _ in parts)
        if not wide:
            return False, [value.expr for value, _ in parts]
        return True, [self.widen(value, type_) for value, type_ in parts]

    def named(self, value: Value, wanted: str) -> Value:
        """Emit a `let` for a wide value, so that its four elements can be read one by one.

        A narrow value is returned as it is.
        """
        if not value.wide:
            return value
        name = self.shader.fresh(wanted)
        self.block.append(t.Let(name, value.expr))
        return Value(t.Ident(name), wide=True)

    # Leaves

    def _index(self, index: ir.Index) -> Value:
        at = self.at[index]
        if index != self.vector:
            return Value(t.call("i32", at))
        # The values of the four elements: vec4i(i32(j)) + vec4i(0, 1, 2, 3).
        first = t.call("vec4i", t.call("i32", at))
        steps = tuple(map(t.Literal, "0123"))
        return Value(t.Binary("+", first, t.Call("vec4i", steps)), wide=True)

    def _literal(self, value: float | bool, type_: Scalar) -> t.Expr:
        if math.isfinite(value):
            return literal(value, type_)
        return infinity(self.shader, negative=value < 0)

    # Operators

    def _cast(self, operand: ir.Expr, type_: ValueType) -> Value:
        value = self.lower(operand)
        to, source = scalar_of(type_), scalar_of(operand.type)
        # A helper where the operand may be infinite or NaN, which has no integer.
        if source is Scalar.F32 and to.is_integer and not is_finite(operand):
            helper = self.shader.helper(f"to_{to.value}", lanes_of(operand.type, value))
            return Value(t.call(helper, value.expr), value.wide)
        return Value(t.call(wgsl_type(type_, value.lanes), value.expr), value.wide)

    def _halved(self, operand: ir.Expr) -> Value:
        """Round to the nearest f16, as a store to a tensor of f16 and a load would."""
        value = self.lower(operand)
        if isinstance(operand.type, Matrix):
            return Value(halved_columns(self, value.expr, operand.type))
        name = self.shader.helper("nearest_f16", lanes_of(operand.type, value))
        return Value(t.call(name, value.expr), value.wide)

    def storable(self, expr: ir.Expr) -> Value:
        """Return the value of `expr` in a form that WGSL can convert to f16.

        WGSL refuses to convert a constant beyond f16's range: such a constant gets a name, and
        becomes infinite when it is converted.
        """
        value, constant = self.lower(expr), constant_value(expr)
        if constant is None or abs(constant) <= F16_MAX:
            return value
        name = self.shader.fresh(f"{self.label}_value")
        self.block.append(t.Let(name, value.expr))
        return Value(t.Ident(name), value.wide)

    def _unary(self, expr: ir.Unary) -> Value:
        value = self.lower(expr.operand)
        if isinstance(expr.type, Matrix):
            # WGSL has no sign before a matrix (8.7, Arithmetic Expressions).
            return Value(t.Binary("*", value.expr, t.Literal("-1.0")))
        op = "!" if expr.op == "not" else expr.op
        return Value(t.Unary(op, value.expr), value.wide)

    def _binary(self, expr: ir.Binary) -> Value:
        if is_composite(expr.type):
            return Value(lower_operation(self, expr))
        if self.vector is not None and self._is_block(expr):
            return replace(self, vector=None).lower(expr)
        left, right = self.lower(expr.left), self.lower(expr.right)
        # A vector and a scalar need no splat where WGSL's operator takes both.
        mixed = left.wide != right.wide
        helped = _may_be_remainder_of_negatives(expr)
        if mixed and expr.op in _MIXES_WIDTHS and not helped:
            return Value(t.Binary(expr.op, left.expr, right.expr), wide=True)
        wide, (a, b) = self.together((left, expr.left.type), (right, expr.right.type))
        if helped:
            remainder = self.shader.helper("remainder", LANES if wide else 1)
            return Value(t.call(remainder, a, b), wide)
        op = _LOGICAL[expr.op][wide] if expr.op in _LOGICAL else expr.op
        return Value(t.Binary(op, a, b), wide)

    def _is_block(self, expr: ir.Binary) -> bool:
        """Whether a division is the same for four neighbours.

        `p / 32` is, where p is the vector index and begins at a multiple of four: it is
        computed, and what is read there, once.
        """
        if not self.counts_vectors or expr.op != "/":
            return False
        divisor = as_literal(expr.right) or 0
        is_own = self.vector is not None and expr.left == ir.IndexValue(self.vector)
        return is_own and divisor > 0 and divisor % LANES == 0

    def _select(self, expr: ir.Select) -> Value:
        """Return a choice by WGSL's `select`, which evaluates both sides.

        Sides are free of traps: subscripts in them are clamped.
        """
        condition = self.lower(expr.condition)
        then, otherwise = self.lower(expr.then), self.lower(expr.otherwise)
        parts = [(otherwise, expr.type), (then, expr.type)]
        if condition.wide or then.wide or otherwise.wide:
            falsy, truthy = (self.widen(value, type_) for value, type_ in parts)
            chosen = t.call("select", falsy, truthy, condition.expr)
            return Value(chosen, wide=True)
        sides = otherwise.expr, then.expr
        if is_composite(expr.type):
            return Value(lower_choice(self, expr, sides, condition.expr))
        return Value(t.call("select", otherwise.expr, then.expr, condition.expr))

    # Calls

    def _builtin(self, expr: ir.BuiltinCall) -> Value:
        # A floored division of numbers that are not negative is WGSL's operator.
        if _is_truncating(expr):
            op, (left, right) = TRUNCATING[expr.builtin], expr.arguments
            return self._binary(ir.Binary(op, left, right, expr.type))
        if expr.builtin not in GEOMETRY and isinstance(expr.type, Vector):
            return Value(lower_componentwise(self, expr))
        parts = [(self.lower(a), a.type) for a in expr.arguments]
        if expr.builtin in GEOMETRY:
            operands = tuple(value.expr for value, _ in parts)
            return Value(lower_geometry(self, expr, operands))
        # A function that WGSL lacks is a helper; others are a template, `max({0}, {1})`.
        if name := helper_of(expr.builtin):
            wide, arguments = self.together(*parts)
            helper = self.shader.helper(name, LANES if wide else 1)
            return Value(t.call(helper, *arguments), wide)
        row = BUILTINS[expr.builtin]
        if not row.wide and any(value.wide for value, _ in parts):
            scalar = wgsl_type(expr.type, 1)
            return self._element_by_element(
                expr, parts, lambda given: t.Template(row.template, given, scalar)
            )
        wide, arguments = self.together(*parts)
        type_ = wgsl_type(expr.type, LANES if wide else 1)
        return Value(t.Template(row.template, tuple(arguments), type_), wide)

    def _element_by_element(
        self,
        expr: ir.BuiltinCall | ir.FunctionCall,
        parts: list[tuple[Value, ValueType]],
        called: Callable[[tuple[t.Expr, ...]], t.Expr],
    ) -> Value:
        """Call a function that has no form for four elements once for each of them.

            vec4f(f(x_argument.x), f(x_argument.y), f(x_argument.z), f(x_argument.w))

        Narrow arguments are passed as they are.
        """
        named = [self.named(value, f"{self.label}_argument") for value, _ in parts]
        calls = tuple(
            called(tuple(value.lane(component) for value in named))
            for component in COMPONENTS
        )
        return Value(t.Call(wgsl_type(expr.type, LANES), calls), wide=True)

    def _function_call(self, expr: ir.FunctionCall) -> Value:
        parts = [(self.lower(a), a.type) for a in expr.arguments]
        wide, arguments = self.together(*parts)
        if wide and expr.function not in self.shader.task.plain_functions:
            name = self._function(expr.function, 1)
            return self._element_by_element(
                expr, parts, lambda given: t.call(name, *given)
            )
        name = self._function(expr.function, LANES if wide else 1)
        return Value(t.call(name, *arguments), wide)

    def _function(self, function: str, lanes: int) -> str:
        """Return the shader's name of a user's function at a width, declaring it.

        `square` is declared as `fn square(x: f32) -> f32`, and for four elements as
        `fn square4(x: vec4f) -> vec4f`.
        """
        suffix = "" if lanes == 1 else str(lanes)
        name = self.shader.name(function, "function", suffix)
        key = f"function {name}"
        if self.shader.has(key):
            return name
        # The body is lowered by a lowerer of its own, which knows the parameters alone.
        item = self.shader.function(function)
        names = {p.name: self.shader.name(p.name) for p in item.parameters}
        body: list[t.Stmt] = []
        wide = lanes > 1
        inner = Lowerer(self.shader, {}, body)
        inner.locals.update(
            {p.name: Value(t.Ident(names[p.name]), wide) for p in item.parameters}
        )
        for local, defined in item.lets:
            inner.define(local, defined)
        result = inner.lower(item.body)
        body.append(t.Return(inner.widen(result, item.type) if wide else result.expr))
        parameters = tuple(
            (names[p.name], wgsl_type(p.type, lanes)) for p in item.parameters
        )
        comment = item.doc.split("\n")[0]
        self.shader.declare(
            key,
            wgsl.Function(
                name,
                parameters,
                wgsl_type(item.type, lanes),
                named_where_deep(body, self.shader.fresh),
                comment,
            ),
        )
        return name

    def define(self, local: ir.LocalValue, expr: ir.Expr) -> None:
        """Emit `let local = expr;`, and remember the name as the value of the local.

        A constant becomes a `var`: naga evaluates a `let` of a constant when it compiles, and
        refuses what overflows there.
        """
        value = replace(self, label=local.name).lower(expr)
        name = self.shader.name(local.name)
        form = t.Var if ir.is_constant(expr) else t.Let
        self.block.append(form(name, value.expr))
        self.locals[local.name] = Value(t.Ident(name), value.wide)

    # Reductions

    def _reduce(self, expr: ir.Reduce) -> Value:
        """Accumulate in serial loops, one around the other, unless a strategy has the value.

        For `sum[p] a[i, p]`:

            var y_sum = 0.0;
            for (var p = 0u; p < u.k; p += 1u) {
                y_sum += a[i * u.k + p];
            }
        """
        if expr in self.reduced:
            return self.reduced[expr]
        if expr.finds_place:
            return find_serially(self, expr)
        name = self.shader.fresh(f"{self.label}_{expr.kind}")
        # Whether the terms are wide is known when the loop is written: its variable is then
        # declared in front of it.
        loop, wide = self._loop(expr, expr.indices, t.Ident(name))
        zero = identity(self.shader, expr.kind, expr.type, LANES if wide else 1)
        self.block.extend((t.Var(name, zero), loop))
        return Value(t.Ident(name), wide)

    def _loop(
        self, reduce: ir.Reduce, indices: tuple[ir.Index, ...], total: t.Ident
    ) -> tuple[t.Stmt, bool]:
        """Return the loop over the first index, and whether its terms are wide."""
        # The inner loop is in the block of the outer one, behind what both need.
        first, *rest = indices
        inner = self.nested(self.counters((first,)))
        along = terms_along(self, reduce, first)
        if rest:
            loop, wide = inner._loop(reduce, tuple(rest), total)  # noqa: SLF001
            inner.block.append(loop)
        else:
            term = inner.lower(reduce.body)
            wide = term.wide
            inner.block.append(accumulate(reduce.kind, total, term.expr))
        name = self.shader.name(first.name)
        return t.count_up(name, along.begin, along.end, 1, *inner.block), wide

    def counters(self, indices: tuple[ir.Index, ...]) -> dict[ir.Index, t.Expr]:
        """Return the variables that count serial loops: each has the name of its index."""
        return {index: t.Ident(self.shader.name(index.name)) for index in indices}

    def serial_loops(
        self, indices: tuple[ir.Index, ...], body: list[t.Stmt]
    ) -> list[t.Stmt]:
        """Return `body` in serial loops over whole axes, one per index, the last innermost."""
        for index in reversed(indices):
            counter = self.shader.name(index.name)
            end = self.shader.extent(index.extent)
            body = [t.count_up(counter, 0, end, 1, *body)]
        return body

    def nested(self, at: dict[ir.Index, t.Expr]) -> Lowerer:
        """Return a lowerer with an empty block, which knows the indices in `at` as well."""
        return replace(self, at={**self.at, **at}, block=[])


def literal(value: float | bool, type_: Scalar) -> t.Expr:
    """Return the WGSL literal of `value`; a float must be finite."""
    match type_:
        case Scalar.F32:
            return t.Literal(repr(float(value)))
        case Scalar.I32:
            return t.Literal(str(value))
        case Scalar.U32:
            return t.Literal(f"{value}u")
        case Scalar.BOOL:
            return t.Literal("true" if value else "false")
        case _:
            assert_never(type_)


def _may_be_remainder_of_negatives(expr: ir.Binary) -> bool:
    """Whether an expression is a `%` of i32 with a side that may be negative.

    Vulkan's OpSRem lets drivers get those wrong: a helper computes them.
    """
    is_remainder = expr.op == "%" and expr.type is Scalar.I32
    return is_remainder and not is_natural(expr, wraps=True)


def _is_truncating(expr: ir.BuiltinCall) -> bool:
    """Whether a floored division has no negative sides, so that an operator does it."""
    if expr.builtin not in TRUNCATING or as_literal(expr.arguments[1]) == 0:
        return False
    sides = expr.arguments
    natural = all(is_natural(side, wraps=True) for side in sides)
    return natural or scalar_of(expr.type) is Scalar.U32

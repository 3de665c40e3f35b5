"""Expressions of kernels and functions: types from the language's rules, then values.

An expression becomes a closure from the values of the indices to its own value.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from kerngen.syntax import ast

from . import composites, numbers
from .functions import BITS, GENERIC, TRUTHS, Accuracy, integer_function, real_function
from .memory import (
    Fixed,
    Memory,
    Record,
    is_composite,
    is_matrix,
    mapped,
    numbers_in,
    parts_of,
    read_as,
    scalar_of,
)
from .numbers import Value
from .reductions import At, Run, chosen, collect, joining, place_of
from .tensors import Array, clamped, inside

if TYPE_CHECKING:
    from .interpreter import Call, Interpreter

CASTS = frozenset({"f32", "i32", "u32"})
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_REAL: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": numbers.add,
    "-": numbers.subtract,
    "*": numbers.multiply,
    "/": numbers.divide,
    "%": numbers.remainder,
}
_INTEGER: Mapping[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b % 32,
    ">>": lambda a, b: a >> b % 32,
}


@dataclass(frozen=True)
class Compiled:
    """An expression's type, and how to compute it; of a struct or array, all of it."""

    memory: Memory
    run: Run

    @property
    def type(self) -> str:
        """The type of a value."""
        assert isinstance(self.memory, str), "structs and arrays are no values"
        return self.memory


@dataclass
class Scope:
    """What names stand for in one statement; `clamps` inside the branches of an `if`."""

    functions: Mapping[str, ast.FunctionItem]
    accuracies: Mapping[str, Accuracy]
    values: dict[str, Compiled] = field(default_factory=dict[str, Compiled])
    tensors: dict[str, Array] = field(default_factory=dict[str, Array])
    indices: Mapping[str, int] = field(default_factory=dict[str, int])
    clamps: bool = False

    def within(self, ranges: Mapping[str, int]) -> Scope:
        """Return the scope with more indices."""
        return replace(self, indices={**self.indices, **ranges})


def literal_kind(expr: ast.Expr) -> str | None:
    """Return what a tree of literals is by itself, f32 or i32; None for other trees."""
    match expr:
        case ast.Number(value=value):
            return "f32" if isinstance(value, float) else "i32"
        case ast.Unary(op="-" | "~", operand=operand):
            return literal_kind(operand)
        case ast.Binary(op="<<" | ">>", left=left):
            return literal_kind(left)
        case ast.Binary(op=op, left=left, right=right) if op not in _COMPARE:
            return _joined(left, right)
        case ast.Conditional(then=then, otherwise=otherwise):
            return _joined(then, otherwise)
        case ast.Call(function=name, arguments=arguments) if name.name in GENERIC:
            return _joined(*(arguments[:2] if name.name == "select" else arguments))
        case ast.Call(function=name, arguments=arguments) if name.name in BITS:
            return _joined(*arguments[: 2 if name.name == "insertBits" else 1])
        case _:
            return None


def _joined(*exprs: ast.Expr) -> str | None:
    kinds = [literal_kind(expr) for expr in exprs]
    if None in kinds:
        return None
    return "f32" if "f32" in kinds else "i32"


@dataclass
class Body:
    """Compiles expressions in one scope."""

    scope: Scope
    interpreter: Interpreter
    call: Call | None = None

    def of(self, expr: ast.Expr, want: str | None = None) -> Compiled:
        """Compile an expression; a literal takes the type that its place asks for."""
        match expr:
            case ast.Number(value=value):
                return _literal(value, want)
            case ast.Boolean(value=value):
                return Compiled("bool", lambda _: value)
            case ast.Name(name=name):
                return self._name(name)
            case ast.Subscript():
                return self._read(expr)
            case ast.Unary():
                return self._unary(expr, want)
            case ast.Binary(op=op) if op in {"and", "or"}:
                return self._logic(expr)
            case ast.Binary(op=op) if op in _COMPARE:
                return self._comparison(expr)
            case ast.Binary():
                return self._binary(expr, want)
            case ast.Conditional():
                return self._conditional(expr, want)
            case ast.Call():
                return self._called(expr, want)
            case ast.Reduction():
                return self._reduction(expr, want)
            case ast.Member():
                return self._member(expr)

    def together(self, want: str | None, *exprs: ast.Expr) -> list[Compiled]:
        """Compile operands of one type: literals take that of the others."""
        kinds = [literal_kind(expr) for expr in exprs]
        typed = {n: self.of(e, want) for n, e in enumerate(exprs) if kinds[n] is None}
        shared = next((scalar_of(c.type) for c in typed.values()), None)
        if shared is None:
            number = want if want in CASTS else "i32"
            shared = "f32" if "f32" in kinds else number
        done = [
            typed[n] if n in typed else self.of(e, shared) for n, e in enumerate(exprs)
        ]
        assert len({scalar_of(c.type) for c in done}) == 1, "operands of several types"
        return done

    # Leaves

    def _name(self, name: str) -> Compiled:
        if name in self.scope.indices:
            return Compiled("i32", operator.itemgetter(name))
        if name in self.scope.values:
            return self.scope.values[name]
        array = self.scope.tensors[name]
        return Compiled(array.type, lambda _: array.read(()))

    def _read(self, expr: ast.Subscript) -> Compiled:
        """An element of a tensor, or a part of what the base is."""
        base, subscripts = expr.base, expr.subscripts
        if not isinstance(base, ast.Name) or base.name not in self.scope.tensors:
            return self._part(self.of(base), subscripts)
        array = self.scope.tensors[base.name]
        if not array.shape:
            return self._part(self.of(base), subscripts)
        lengths = array.shape
        assert len(subscripts) == len(lengths)
        places = [self._place(n, s) for n, s in zip(lengths, subscripts, strict=True)]
        if len(places) == 1:
            (only,) = places
            return Compiled(array.type, lambda at: array.read((only(at),)))
        return Compiled(array.type, lambda at: array.read([p(at) for p in places]))

    def _part(self, whole: Compiled, subscripts: Sequence[ast.Expr]) -> Compiled:
        """An element of an array, a component of a vector, a column of a matrix."""
        for subscript in subscripts:
            inner = parts_of(whole.memory)
            assert inner
            assert not isinstance(whole.memory, Record)
            whole = self._element(whole, subscript, len(inner))
        return whole

    def _element(self, whole: Compiled, subscript: ast.Expr, length: int) -> Compiled:
        run, place = whole.run, self._place(length, subscript)
        self.note("part of an array" if isinstance(whole.memory, Fixed) else "part")
        self.note("computed part", really=not isinstance(subscript, ast.Number))
        return Compiled(
            _value(parts_of(whole.memory)[0]), lambda at: run(at)[place(at)]
        )

    def _member(self, expr: ast.Member) -> Compiled:
        base, name = self.of(expr.base), expr.member.name
        run, memory = base.run, base.memory
        if isinstance(memory, Record):
            place = memory.place(name)
            return Compiled(_value(parts_of(memory)[place]), lambda at: run(at)[place])
        take = composites.swizzled(name)
        self.note("swizzle" if len(name) > 1 else "component")
        type_ = composites.component_type(base.type, name)
        return Compiled(type_, lambda at: take(run(at)))

    def _place(self, length: int, subscript: ast.Expr) -> Run:
        """A bare index and an affine form must lie inside; all else is clamped."""
        run = self.of(subscript).run
        bare = isinstance(subscript, ast.Name) and subscript.name in self.scope.indices
        if bare or (not self.scope.clamps and self._is_affine(subscript)):
            return lambda at: inside(run(at), length)
        return lambda at: clamped(run(at), length)

    def note(self, what: str, *, really: bool = True) -> None:
        """Note what of the language the program uses, where its types are known."""
        if really:
            self.interpreter.noted.add(what)

    def _is_affine(self, expr: ast.Expr) -> bool:
        match expr:
            case ast.Number():
                return True
            case ast.Name(name=name):
                return name not in self.scope.tensors
            case ast.Unary(op="-", operand=operand):
                return self._is_affine(operand)
            case ast.Call(function=name, arguments=(argument,)) if name.name in CASTS:
                return self._is_affine(argument)
            case ast.Binary(op="+" | "-", left=left, right=right):
                return self._is_affine(left) and self._is_affine(right)
            case ast.Binary(op="*", left=left, right=right):
                sides = self._is_affine(left) and self._is_affine(right)
                return sides and (self._is_fixed(left) or self._is_fixed(right))
            case _:
                return self._is_fixed(expr)

    def _is_fixed(self, expr: ast.Expr) -> bool:
        """Whether no index and no tensor occurs in an expression."""
        match expr:
            case ast.Number():
                return True
            case ast.Name(name=name):
                return name not in self.scope.tensors and name not in self.scope.indices
            case ast.Unary(operand=operand):
                return self._is_fixed(operand)
            case ast.Binary(left=left, right=right):
                return self._is_fixed(left) and self._is_fixed(right)
            case ast.Call(arguments=arguments):
                return all(map(self._is_fixed, arguments))
            case _:
                return False

    # Operators

    def _unary(self, expr: ast.Unary, want: str | None) -> Compiled:
        operand = self.of(expr.operand, want)
        run, type_ = operand.run, operand.type
        if expr.op == "not":
            return Compiled("bool", lambda at: not run(at))
        self.note("sign of composites", really=is_composite(type_))
        apply = _signed(expr.op, scalar_of(type_))
        return Compiled(type_, _over_numbers(type_, apply, run))

    def _logic(self, expr: ast.Binary) -> Compiled:
        inner = replace(self, scope=replace(self.scope, clamps=True))
        left, right, stops = (
            self.of(expr.left).run,
            inner.of(expr.right).run,
            expr.op == "or",
        )

        def run(at: At) -> Value:
            if left(at) != stops:
                decided: Value = right(at)
                return decided
            with suppress(numbers.UndecidedError):
                # What it reads must be there; its value does not matter.
                right(at)
            return stops

        return Compiled("bool", run)

    def _comparison(self, expr: ast.Binary) -> Compiled:
        left, right = self.together(None, expr.left, expr.right)
        compare, a, b = _COMPARE[expr.op], left.run, right.run
        if left.type == "f32":
            return Compiled("bool", lambda at: compare(numbers.order(a(at), b(at)), 0))
        return Compiled("bool", lambda at: compare(a(at), b(at)))

    def _binary(self, expr: ast.Binary, want: str | None) -> Compiled:
        op = expr.op
        if op in {"<<", ">>"}:
            left, right = self.of(expr.left, want), self.of(expr.right, "u32")
            assert scalar_of(right.type) == "u32"
        else:
            left, right = self.together(want, expr.left, expr.right)
        type_, a, b = left.type, left.run, right.run
        apply = _operator(op, scalar_of(type_))
        if is_composite(type_) or is_composite(right.type):
            self._note_operation(op, type_, right.type)
            type_, apply = composites.operation(op, type_, right.type, apply)
        return Compiled(type_, lambda at: apply(a(at), b(at)))

    def _note_operation(self, op: str, left: str, right: str) -> None:
        kinds = [
            "matrix" if is_matrix(t) else "vector" if is_composite(t) else "scalar"
            for t in (left, right)
        ]
        if kinds == ["vector", "vector"]:
            of = "reals" if scalar_of(left) == "f32" else "integers"
            self.note(f"vectors of {of}")
        elif "matrix" in kinds and op == "*":
            self.note(f"{kinds[0]} * {kinds[1]}")
        else:
            self.note("vector and scalar" if "vector" in kinds else "matrix + -")

    def _conditional(self, expr: ast.Conditional, want: str | None) -> Compiled:
        condition = self.of(expr.condition)
        assert condition.type == "bool"
        inner = replace(self, scope=replace(self.scope, clamps=True))
        then, otherwise = inner.together(want, expr.then, expr.otherwise)
        self.note("if of composites", really=is_composite(then.type))
        c, a, b = condition.run, then.run, otherwise.run

        def run(at: At) -> Value:
            chosen, other = (a, b) if c(at) else (b, a)
            with suppress(numbers.UndecidedError):
                # What it reads must be there; its value does not matter.
                other(at)
            value: Value = chosen(at)
            return value

        return Compiled(then.type, run)

    # Calls

    def _called(self, expr: ast.Call, want: str | None) -> Compiled:
        name = expr.function.name
        if name in CASTS:
            return _cast(self.of(expr.arguments[0]), name)
        if is_composite(name):
            return self._construct(name, expr.arguments)
        if name in self.scope.functions:
            return self._function(self.scope.functions[name], expr)
        if name == "select":
            no, yes = self.together(want, *expr.arguments[:2])
            chosen = self.of(expr.arguments[2]).run
            a, b = no.run, yes.run
            self.note("select of composites", really=is_composite(no.type))
            return Compiled(no.type, lambda at: [a(at), b(at)][chosen(at)])
        if name in composites.GEOMETRY:
            return self._geometry(name, expr.arguments)
        if name in GENERIC:
            parts = self.together(want, *expr.arguments)
        elif name in BITS:
            parts = self._of_bits(expr, want)
        else:
            parts = [self.of(argument, "f32") for argument in expr.arguments]
        return self._builtin(name, parts)

    def _of_bits(self, expr: ast.Call, want: str | None) -> list[Compiled]:
        """The places of bits and their number are u32, whatever the rest is."""
        values = 2 if expr.function.name == "insertBits" else 1
        parts = self.together(want, *expr.arguments[:values])
        return parts + [self.of(e, "u32") for e in expr.arguments[values:]]

    def _builtin(self, name: str, parts: list[Compiled]) -> Compiled:
        runs = [part.run for part in parts]
        if name in TRUTHS:
            verdict = name == "is_finite"
            return Compiled("bool", lambda at: runs[0](at) is not None and verdict)
        type_ = parts[0].type
        apply = self._numbers(name, scalar_of(type_))
        if not is_composite(type_):
            return Compiled(type_, lambda at: apply([r(at) for r in runs]))
        self.note("built-in of vectors")
        width = len(parts_of(type_))
        whole = [is_composite(part.type) for part in parts]

        def run(at: At) -> tuple[Any, ...]:
            given = [
                value if all_of_it else (value,) * width
                for all_of_it, value in zip(whole, [r(at) for r in runs], strict=True)
            ]
            return tuple(apply(beside) for beside in zip(*given, strict=True))

        return Compiled(type_, run)

    def _numbers(self, name: str, type_: str) -> Callable[[Sequence[Any]], Any]:
        accuracies = self.scope.accuracies
        if type_ == "f32":
            return lambda values: real_function(name, values, accuracies)
        return lambda values: integer_function(name, values, type_)

    def _geometry(self, name: str, arguments: Sequence[ast.Expr]) -> Compiled:
        self.note(f"{name}()")
        parts = [self.of(argument, None) for argument in arguments]
        runs = [part.run for part in parts]
        first = parts[0].type
        apply = composites.geometry(name, first, self.scope.accuracies)
        type_ = composites.geometry_type(name, first)
        return Compiled(type_, lambda at: apply([r(at) for r in runs]))

    def _construct(self, type_: str, arguments: Sequence[ast.Expr]) -> Compiled:
        """A vector or matrix made of parts, or converted number by number."""
        scalar = scalar_of(type_)
        parts = [self.of(argument, scalar) for argument in arguments]
        if len(parts) == 1 and len(parts_of(parts[0].type)) == len(parts_of(type_)):
            self.note("cast of a vector", really=parts[0].type != type_)
            return _cast(parts[0], type_)
        self.note("matrix constructor" if is_matrix(type_) else "vector constructor")
        make = composites.construct(type_, [part.type for part in parts])
        runs = [part.run for part in parts]
        return Compiled(type_, lambda at: make([r(at) for r in runs]))

    def _function(self, function: ast.FunctionItem, expr: ast.Call) -> Compiled:
        """Compile the function's body anew; its parameters are read like indices."""
        scope = Scope(
            self.scope.functions,
            self.scope.accuracies,
            values=dict(self.interpreter.constants),
        )
        arguments: list[tuple[str, Run]] = []
        for parameter, node in zip(function.parameters, expr.arguments, strict=True):
            type_, name = parameter.type.name.name, parameter.name.name
            self.note("fn of composites", really=is_composite(type_))
            argument = self.of(node, scalar_of(type_))
            assert argument.type == type_
            arguments.append((name, argument.run))
            scope.values[name] = Compiled(type_, operator.itemgetter(name))
        inner = Body(scope, self.interpreter)
        lets: list[tuple[str, Run]] = []
        for let in function.lets:
            compiled, name = inner.of(let.value), let.name.name
            lets.append((name, compiled.run))
            scope.values[name] = Compiled(compiled.type, operator.itemgetter(name))
        result = inner.of(function.body, scalar_of(function.result.name.name))
        assert result.type == function.result.name.name

        def run(at: At) -> Value:
            own: At = {name: argument(at) for name, argument in arguments}
            for name, value in lets:
                own[name] = value(own)
            computed: Value = result.run(own)
            return computed

        return Compiled(result.type, run)

    # Reductions

    def _reduction(self, expr: ast.Reduction, want: str | None) -> Compiled:
        assert self.call is not None
        ranges = self.call.ranges(expr.binders, expr.terms, self.scope)
        inner = replace(self, scope=self.scope.within(ranges))
        condition = None
        if expr.condition is not None:
            condition = inner.of(expr.condition)
            assert condition.type == "bool"
            inner = replace(inner, scope=replace(inner.scope, clamps=True))
        finds_place = expr.kind in {"argmax", "argmin"}
        body = inner.of(expr.body, None if finds_place else want)
        type_, spend = body.type, self.interpreter.spend
        run = body.run if condition is None else chosen(condition.run, body.run)
        names = list(ranges)
        lengths = list(ranges.values())

        def terms(at: At) -> list[Any]:
            collected: list[Any] = []
            collect(dict(at), names, lengths, run, collected)
            spend(len(collected) * cost)
            return collected

        cost = len(list(numbers_in(type_)))
        self.note("reduction of composites", really=cost > 1)
        if finds_place:
            return Compiled("i32", lambda at: place_of(expr.kind, terms(at)))
        join = joining(expr.kind, type_)
        return Compiled(
            type_, lambda at: join([term for term in terms(at) if term is not None])
        )


def _literal(value: float, want: str | None) -> Compiled:
    if isinstance(value, float) or want == "f32":
        real = numbers.leaf(float(value))
        return Compiled("f32", lambda _: real)
    type_ = want if want is not None and want in CASTS else "i32"
    return Compiled(type_, lambda _: value)


def _cast(operand: Compiled, to: str) -> Compiled:
    change = _conversion(scalar_of(operand.type), scalar_of(to))
    return Compiled(to, _over_numbers(to, change, operand.run)) if change else operand


def _conversion(source: str, to: str) -> Callable[[Any], Any] | None:
    if source == to:
        return None
    if to == "f32":
        return lambda value: numbers.from_integer(int(value))
    if source == "f32":
        return lambda value: numbers.saturate(value, to)
    return lambda value: numbers.wrap(int(value), to)


def _value(memory: Memory) -> Memory:
    """Return what a part is read as; the halves of a vector are so already."""
    return read_as(memory) if isinstance(memory, str) else memory


def _over_numbers(type_: str, change: Callable[[Any], Any], run: Run) -> Run:
    """Return what computes a value, and changes each number of it."""
    if not is_composite(type_):
        return lambda at: change(run(at))
    return lambda at: mapped(type_, run(at), lambda _, number: change(number))


def _signed(op: str, type_: str) -> Callable[[Any], Any]:
    if type_ == "f32":
        return numbers.negate
    if op == "-":
        return lambda value: numbers.wrap(-value, type_)
    return lambda value: numbers.wrap(~value, type_)


def _operator(op: str, type_: str) -> Callable[[Any, Any], Any]:
    if type_ == "f32":
        return _REAL[op]
    if op == "/":
        return lambda a, b: numbers.integer_divide(a, b, type_)
    if op == "%":
        return lambda a, b: numbers.integer_remainder(a, b, type_)
    whole = _INTEGER[op]
    return lambda a, b: numbers.wrap(whole(a, b), type_)

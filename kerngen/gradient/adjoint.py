"""The rules of derivation: what each read of a statement adds to the adjoint of its tensor.

A term is carried from the root of the statement's value down to its reads, and multiplied by
a partial derivative at each operation:

    y[i] = x[2 * i] * w[i];      the term of `dy[i]` at `*` is `dy[i] * w[i]` at `x[2 * i]`

At the read, its subscripts are solved for the indices: the adjoint of `x[K]` gets
`dy[K / 2] * w[K / 2]` where K is even.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final, assert_never, final

from kerngen.gradient.fault import GradientError, Kind, Lacking
from kerngen.gradient.forward import Forward, as_select
from kerngen.gradient.handing import handed_on, has_components
from kerngen.gradient.integers.conditions import (
    BOOL,
    all_hold,
    chosen,
    conjuncts,
    negated,
)
from kerngen.gradient.integers.facts import IntegerFacts
from kerngen.gradient.integers.solve import solved, with_fixed
from kerngen.gradient.members import key_of
from kerngen.gradient.partials import partials
from kerngen.gradient.taken import AdjointCondition, has_reduce, needed
from kerngen.gradient.terms import ONE, Term, as_subscript, product_of, substituted
from kerngen.ir import nodes as ir
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.geometry import GEOMETRY
from kerngen.ir.store import StoreAt
from kerngen.ir.types import Scalar
from kerngen.ir.walk import called, subscript_value

_F32: Final = Scalar.F32
_ZERO: Final = ir.Constant(0.0, _F32)
_ONE: Final = ir.Constant(1.0, _F32)


@final
@dataclass
class ReadAdjoints:
    """Collects the terms that a statement's reads add to adjoints.

    - `fresh`: makes an index with a computed range
    - `places`: returns the indices of the adjoint of a tensor or of a member of it;
      `scalar_places`: those of a parameter's member
    - `let`: makes a let of the derived program, and returns its read
    - `found`: the terms so far, by the key that `members.key_of` returns for a read
    """

    forward: Forward
    facts: IntegerFacts
    fresh: Callable[[str, ir.Expr], ir.Index]
    places: Callable[[ir.Tensor, ir.Path], tuple[ir.Index, ...]]
    scalar_places: Callable[[str, ir.Path], tuple[ir.Index, ...]]
    let: Callable[[str, tuple[ir.Index, ...], ir.Expr], ir.Load]
    found: dict[str, list[Term]] = field(default_factory=dict[str, list[Term]])
    _guards: tuple[AdjointCondition, ...] = ()

    def of(
        self,
        statement: ir.Statement,
        adjoint: Term,
        guards: tuple[AdjointCondition, ...] = (),
    ) -> None:
        """Add the terms that follow from one term of the target's adjoint.

        The adjoint is 0 where one of the `guards` is false.
        """
        self._statement, self._adjoint, self._guards = statement, adjoint, guards
        value = statement.value
        if isinstance(value, ir.Reduce) and value.kind != "sum":
            self._reduction(value, adjoint)
        else:
            self._visit(value, adjoint)

    def _visit(self, expr: ir.Expr, term: Term) -> None:
        """Carry a term, the adjoint of `expr`, on to the reads in it."""
        if not self.forward.is_active(expr):
            return
        match expr:
            case ir.Load():
                self._read(expr, term)
            case ir.UniformValue(name=name, path=path):
                self._solve(name, path, term, [], self.scalar_places(name, path))
            case ir.Binary() if has_components(expr):
                self._hand_on(expr, term)
            case ir.Binary():
                self._binary(expr, term)
            case ir.Unary(operand=operand):
                self._visit(operand, term.times(Term(-ONE)))
            case ir.Select(condition=condition, then=then, otherwise=otherwise):
                self._visit(then, _under(term, tuple(conjuncts(condition))))
                opposite = tuple(conjuncts(negated(condition)))
                self._visit(otherwise, _under(term, opposite))
            case ir.Reduce(kind="sum", indices=indices, body=body):
                inner = _under(term.over(indices), _conditions(expr))
                self._visit(body, inner)
            case ir.BuiltinCall(builtin="select"):
                self._visit(as_select(expr), term)
            case ir.BuiltinCall():
                self._builtin(expr, term)
            case ir.Reduce(kind="argmax" | "argmin"):
                return
            case (
                ir.Cast()
                | ir.IndexValue()
                | ir.DimValue()
                | ir.Constant()
                | ir.ConstRef()
            ):
                return
            case ir.FunctionCall():
                self._call(expr, term)
            case ir.Swizzle() | ir.Part() | ir.Construct():
                self._hand_on(expr, term)
            case ir.LocalValue():
                raise AssertionError("functions are inlined")
            case ir.Reduce(kind=kind):
                raise self._fault(f"'{kind}' here")
            case StoreAt():
                raise self._fault("a store at a position")
            case _:
                assert_never(expr)

    def _fault(self, what: str, lacking: Lacking = "rule") -> GradientError:
        fields = {
            "kernel": self.forward.kernel.name,
            "reason": f"there is no rule for {what}",
        }
        span = self._statement.span
        return GradientError(Kind.NO_DERIVATIVE, fields, span, lacking=lacking)

    # Leaves

    def _add(self, name: str, term: Term) -> None:
        self.found.setdefault(name, []).append(term)

    def _read(self, load: ir.Load, term: Term) -> None:
        tensor = load.tensor
        if tensor.name in self.forward.active:
            axes = [*zip(load.subscripts, tensor.extents, strict=True)]
            places = self.places(tensor, load.path)
            self._solve(tensor.name, load.path, term, axes, places)

    def _solve(
        self,
        name: str,
        path: ir.Path,
        term: Term,
        axes: list[tuple[ir.Subscript, ir.Extent]],
        places: tuple[ir.Index, ...],
    ) -> None:
        """Add a term to the adjoint of the tensor that is read, at the subscripts' places."""
        axes += [(s.place, s.length) for s in path if isinstance(s, ir.At)]
        found = self._solved(term, axes, places)
        # Solved once without guards, as which of them are needed depends on the result.
        is_product = bool(found.bound) and has_reduce(self._statement.value)
        guards = needed(self._guards, self._adjoint, term, is_product=is_product)
        if guards:
            found = self._solved(_under(term, guards), axes, places)
        self._add(key_of(name, path), found)

    def _solved(
        self,
        term: Term,
        axes: list[tuple[ir.Subscript, ir.Extent]],
        places: tuple[ir.Index, ...],
    ) -> Term:
        """Return the term that a read adds to the adjoint over `places`."""
        term, own, by = with_fixed(term, self._statement.indices)
        equations = [
            (as_subscript(substituted(subscript_value(s), by)) if by else s, at, extent)
            for (s, extent), at in zip(axes, places, strict=True)
        ]
        return solved(term, own, equations, self.facts, self.fresh)

    # Operators

    def _hand_on(self, expr: ir.Expr, term: Term) -> None:
        for operand, inner in handed_on(expr, term):
            self._visit(operand, inner)

    def _binary(self, expr: ir.Binary, term: Term) -> None:
        left, right = expr.left, expr.right
        if expr.type is not _F32:
            return
        match expr.op:
            case "+":
                self._visit(left, term)
                self._visit(right, term)
            case "-":
                self._visit(left, term)
                self._visit(right, term.times(Term(-ONE)))
            case "*":
                self._visit(left, term.times(product_of(right)))
                self._visit(right, term.times(product_of(left)))
            case "/":
                below = self._divisor(right)
                self._visit(left, term.times(below.to(-ONE)))
                above = product_of(left).times(below.to(Fraction(-2)))
                self._visit(right, term.times(above).times(Term(-ONE)))
            case "%":
                # x % y is x - trunc(x / y) * y, and trunc has the slope 0.
                self._visit(left, term)
                quotient = ir.BuiltinCall(
                    "trunc", (ir.Binary("/", left, right, _F32),), _F32
                )
                by = Term(-ONE, {quotient: ONE})
                self._visit(right, term.times(by))
            case _:
                raise self._fault(f"'{expr.op}'")

    def _divisor(self, expr: ir.Expr) -> Term:
        """Return a divisor as a product; a literal 0 stays a factor, to be refused later."""
        below = product_of(expr)
        return below if below.coefficient else Term(factors={expr: ONE})

    def _builtin(self, call: ir.BuiltinCall, term: Term) -> None:
        if call.builtin in GEOMETRY or has_components(call):
            self._hand_on(call, term)
            return
        found = partials(call) if call.builtin in BUILTINS else None
        if found is None or call.type is not _F32:
            raise self._fault(f"'{call.builtin}'")
        if call.builtin == "pow" and isinstance(call.arguments[1], ir.Constant):
            # The table's slope has a choice for the exponent 0, which a literal decides.
            found = (_power(*call.arguments), _ZERO)
        for partial, argument in zip(found, call.arguments, strict=True):
            if self.forward.is_active(argument):
                factor = product_of(_decided(partial, term.conditions))
                if factor.coefficient:
                    self._visit(argument, term.times(factor))

    def _call(self, call: ir.FunctionCall, term: Term) -> None:
        """Derive a function by its `derivative of` items."""
        functions = self.forward.functions
        names = functions[call.function].partials
        for name, argument in zip(names, call.arguments, strict=True):
            if name and self.forward.is_active(argument):
                partial = called(functions[name], call.arguments)
                factor = product_of(partial)
                if factor.coefficient:
                    self._visit(argument, term.times(factor))

    # Reductions

    def _reduction(self, reduce: ir.Reduce, term: Term) -> None:
        match reduce.kind:
            case "max" | "min":
                self._extreme(reduce, term)
            case "prod":
                self._product(reduce, term)
            case "sum" | "argmax" | "argmin":
                raise AssertionError("walked by _visit")
            case _:
                assert_never(reduce.kind)

    def _result(self) -> ir.Load:
        statement = self._statement
        return ir.Load(statement.target, tuple(map(ir.IndexValue, statement.indices)))

    def _count(self, reduce: ir.Reduce, condition: ir.Expr, name: str) -> ir.Load:
        """Make a let of how many terms of a reduction a condition is true for."""
        holds = all_hold((*_conditions(reduce), condition))
        counted = ir.Reduce("sum", reduce.indices, _ONE, _F32, holds)
        statement = self._statement
        return self.let(f"{statement.target.name}_{name}", statement.indices, counted)

    def _extreme(self, reduce: ir.Reduce, term: Term) -> None:
        """Share the adjoint of a maximum or minimum among the terms that are equal to it.

        let y_ties[i] = sum[j when x[i, j] == y[i]] 1.0;
        dx[i, j] = if x[i, j] == y[i] { dy[i] / y_ties[i] } else { 0.0 };
        """
        is_top = ir.Binary("==", reduce.body, self._result(), BOOL)
        count = self._count(reduce, is_top, "ties")
        share = term.times(Term(factors={count: -ONE}))
        holds = (*_conditions(reduce), is_top)
        self._visit_terms(reduce.body, _under(share.over(reduce.indices), holds))

    def _product(self, reduce: ir.Reduce, term: Term) -> None:
        """Derive `y = prod[j] x[j]`; the slope by `x[j]` is the product of the other factors.

        - Where no factor is 0, that is `y / x[j]`.
        - Where `x[j]` alone is 0, that is `y_others`, the product of the factors that are not.
        - Where two are 0, that is 0.

        The gradient of `y_others` is refused: derived like any product, it would not be the
        second derivative where a factor is 0.
        """
        zero = ir.Binary("==", reduce.body, _ZERO, BOOL)
        is_of_others = negated(zero) in _conditions(reduce)
        if self.forward.kernel.gradient is not None and is_of_others:
            raise self._fault("the gradient of 'prod'", "prod")
        zeros = self._count(reduce, zero, "zeros")
        rest = all_hold((*_conditions(reduce), negated(zero)))
        statement = self._statement
        others = self.let(
            f"{statement.target.name}_others",
            statement.indices,
            ir.Reduce("prod", reduce.indices, reduce.body, _F32, rest),
        )
        inner = _under(term.over(reduce.indices), _conditions(reduce))
        # if zeros == 0 { dy y / x[j] }  and  if zeros == 1 and x[j] == 0 { dy others }
        plain = inner.times(Term(factors={self._result(): ONE, reduce.body: -ONE}))
        none = ir.Binary("==", zeros, _ZERO, BOOL)
        self._visit_terms(reduce.body, _under(plain, (none,)))
        single = inner.times(Term(factors={others: ONE}))
        one = ir.Binary("==", zeros, _ONE, BOOL)
        self._visit_terms(reduce.body, _under(single, (one, zero)))

    def _visit_terms(self, body: ir.Expr, adjoint: Term) -> None:
        """Visit a reduction's body, whose adjoint is finite where its conditions are true.

        So only slopes inside of the body decide which guards are needed.
        """
        self._adjoint = adjoint
        self._visit(body, adjoint)


def _conditions(reduce: ir.Reduce) -> tuple[ir.Expr, ...]:
    return tuple(conjuncts(reduce.condition)) if reduce.condition else ()


def _power(base: ir.Expr, exponent: ir.Expr) -> ir.Expr:
    """Return the derivative of a power with a literal exponent: n x^(n - 1)."""
    assert isinstance(exponent, ir.Constant)
    lower = float(exponent.value) - 1.0
    rest = ir.BuiltinCall("pow", (base, ir.Constant(lower, _F32)), _F32)
    known: dict[float, ir.Expr] = {-1.0: _ZERO, 0.0: _ONE, 1.0: base}
    return ir.Binary("*", exponent, known.get(lower, rest), _F32)


def _under(term: Term, conditions: tuple[ir.Expr, ...]) -> Term:
    """Return a term under further conditions, with the branches taken that they decide."""
    known = (*term.conditions, *conditions)
    own = tuple(chosen(c, conditions) for c in term.conditions)
    product = Term(term.coefficient)
    for atom, exponent in term.factors.items():
        one = product_of(chosen(atom, known))
        product = product.times(one.to(exponent) if one.coefficient else one)
    product = replace(product, conditions=own, bound=term.bound, solved=term.solved)
    return product.under(*conditions)


# Partial derivatives under conditions


def _decided(partial: ir.Expr, conditions: tuple[ir.Expr, ...]) -> ir.Expr:
    """Return a partial derivative with the branches taken that the conditions decide.

    Where `x >= 0.0`, `abs(x)` is x: its slope `sign(x)` is 1, at 0 too.
    """
    if isinstance(partial, ir.BuiltinCall) and partial.builtin == "sign":
        sign = _relation(partial.arguments[0], _ZERO, conditions)
        known = {">": 1.0, "<": -1.0, "==": 0.0}.get(sign)
        return partial if known is None else ir.Constant(known, _F32)
    if isinstance(partial, ir.Select):
        holds = _holds(partial.condition, conditions)
        if holds is not None:
            chosen_ = partial.then if holds else partial.otherwise
            return _decided(chosen_, conditions)
    return partial


def _holds(condition: ir.Expr, conditions: tuple[ir.Expr, ...]) -> bool | None:
    """Return whether a condition is true where the others are, None if that is unknown."""
    match condition:
        case ir.Binary(op="and" | "or" as op, left=left, right=right):
            both = _holds(left, conditions), _holds(right, conditions)
            decisive = op == "or"
            if decisive in both:
                return decisive
            return None if None in both else not decisive
        case ir.Binary(op=op, left=left, right=right):
            relation = _relation(left, right, conditions)
            return (op in {relation, f"{relation}="}) if relation else None
        case _:
            return None


def _relation(left: ir.Expr, right: ir.Expr, conditions: tuple[ir.Expr, ...]) -> str:
    """Return "<", ">" or "==" between two floats if the conditions imply it, else "".

    `<=` counts as `<`: where `x <= 0.0`, `abs(x)` is -x, at 0 too.
    """
    for condition in conditions:
        for is_opposite, each in _comparisons(condition):
            op = each.op[0] if each.op in {"<", "<=", ">", ">="} else each.op
            if op not in {"<", ">", "=="} or (is_opposite and op == "=="):
                continue
            if is_opposite:
                op = "<" if op == ">" else ">"
            if (each.left, each.right) == (left, right):
                return op
            if (each.left, each.right) == (right, left):
                return {"<": ">", ">": "<", "==": "=="}[op]
    return ""


def _comparisons(condition: ir.Expr) -> Iterator[tuple[bool, ir.Binary]]:
    """Yield the comparison that a condition is, and whether it is negated by `not`."""
    match condition:
        case ir.Binary():
            yield False, condition
        case ir.Unary(op="not", operand=ir.Binary() as operand):
            yield True, operand
        case _:
            return

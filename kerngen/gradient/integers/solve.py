"""Solve subscripts for indices, which turns the scatter of a gradient into a gather.

A read `x[2 * i + u]` gives `x`'s adjoint at K the sum over the i and u where
`2 * i + u == K`.  Solved for i, that is a sum over u alone, at `i = (K - u) / 2` where
2 divides `K - u` and the quotient is in range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, final

from kerngen.gradient.indices import free_indices
from kerngen.gradient.integers.conditions import (
    BOOL,
    facts_of,
    unequal_to_zero,
    without_known,
)
from kerngen.gradient.integers.digits import tightened, with_digits
from kerngen.gradient.integers.elimination import Equation, Replacement
from kerngen.gradient.integers.facts import IntegerFacts
from kerngen.gradient.integers.forms import (
    Form,
    coefficient,
    combined,
    form_of,
    length,
    mentions,
    number,
    plus,
    scaled,
    value_of,
    variables,
)
from kerngen.gradient.terms import Term, substituted
from kerngen.ir import nodes as ir
from kerngen.ir.types import Scalar
from kerngen.ir.walk import subscript_value

_I32: Final = Scalar.I32


@final
@dataclass
class Solver:
    """Solves the equations of one read's subscripts for the indices around it.

    - `own`: the statement's indices, which are solved for first
    - `bound`: the indices of reductions, and new ones; unsolved indices of both are summed over
    - `fresh`: makes a new index with a computed range
    - `conditions`: the term's, and those under which a solution is whole and in range;
      `solved` has the latter
    - `terms`: each factor of the term, and that factor at the solutions so far
    """

    facts: IntegerFacts
    own: list[ir.Index]
    bound: list[ir.Index]
    fresh: Callable[[str, ir.Expr], ir.Index]
    conditions: list[ir.Expr]
    terms: dict[ir.Expr, ir.Expr]
    solved: set[ir.Expr] = field(default_factory=set[ir.Expr])
    equations: list[Equation] = field(default_factory=list[Equation])

    @property
    def _unknown(self) -> frozenset[ir.Index]:
        return frozenset((*self.own, *self.bound))

    def add(self, subscript: ir.Subscript, place: ir.Index, extent: ir.Extent) -> None:
        """Add the equation of one axis: the subscript of the read is the adjoint's place."""
        value = subscript_value(subscript)
        if isinstance(subscript, ir.Clamped):
            value = self._clamped(self._chosen(value), extent)
        self.equations.append(Equation(value, ir.IndexValue(place)))

    def _chosen(self, value: ir.Expr) -> ir.Expr:
        """Return the argument that a minimum or maximum is equal to, if facts prove which."""
        match value:
            case ir.BuiltinCall(
                builtin="min" | "max" as name, arguments=both, type=t
            ) if (t is _I32):
                for least, most in (both, both[::-1]):
                    room = combined("-", form_of(most), form_of(least))
                    if self.facts.is_never_negative(room, self._known()):
                        return self._chosen(least if name == "min" else most)
            case _:
                pass
        return value

    def _clamped(self, value: ir.Expr, extent: ir.Extent) -> ir.Expr:
        """Return a subscript with its clamp, unless it surely lies inside of its axis."""
        end = form_of(length(extent))
        form = with_digits(form_of(value), self.conditions)
        known = self._known_digits()
        from_start = self.facts.is_never_negative(form, known)
        beyond = plus(combined("-", end, form), -1)
        before_end = self.facts.is_never_negative(beyond, known)
        last = value_of(plus(end, -1))
        if value.type is Scalar.U32 and not before_end:
            return _call("min", value, ir.Cast(last, Scalar.U32))
        if from_start:
            return value if before_end else _call("min", value, last)
        if before_end:
            return _call("max", value, number(0))
        return _call("clamp", value, number(0), last)

    def _known(self) -> tuple[Form, ...]:
        """Return the forms that are never negative where the conditions are true."""
        known = tuple(form for c in self.conditions for form in facts_of(c))
        unequal = [form for c in self.conditions for form in unequal_to_zero(c)]
        # 'i != 0' and 'i != 1' in any order: each may have to wait for the others.
        for form in unequal * len(unequal):
            if self.facts.is_never_negative(form, known):
                known = (*known, plus(form, -1))
        return known

    def _known_digits(self) -> tuple[Form, ...]:
        facts = (with_digits(fact, self.conditions) for fact in self._known())
        return tuple(map(tightened, facts))

    def solve(self) -> None:
        """Solve as many equations as possible; the others become conditions."""
        # The statement's own indices first: those of a reduction are often a window, which
        # is short, and the indices that are left are summed over.
        steps: tuple[Callable[[Equation], bool], ...] = (
            self._settled,
            self._radix,
            partial(self._unit, self.own),
            self._pair,
            partial(self._multiple, self.own),
            partial(self._unit, self.bound),
            partial(self._multiple, self.bound),
            self._quotient,
        )
        failed: set[tuple[int, Equation]] = set()
        while self.equations:
            for place, step in enumerate(steps):
                # After a success, the cheap steps are tried again first.
                waiting = [e for e in self.equations if (place, e) not in failed]
                if any(step(equation) for equation in waiting):
                    break
                failed |= {(place, equation) for equation in waiting}
            else:
                self._give_up(self.equations[0])
                # The equation is a condition now, so more is known: all steps get another try.
                failed.clear()
        while any(self._fixed(condition) for condition in self.conditions):
            pass

    def _fixed(self, condition: ir.Expr) -> bool:
        """Replace an index that a condition of the program fixes by its one value.

        Before:  sum[k when ids[i] == u32(k)] dy[k]      sum[t when 2 * i + u == t] dy[t]
        After:   if ids[i] < u32(m) { dy[ids[i]] }       if 2 * i + u < n { dy[2 * i + u] }
        """
        if not isinstance(condition, ir.Binary) or condition.op != "==":
            return False
        sides = (condition.left, condition.right)
        for one, other in (sides, sides[::-1]):
            index = _index_of(one)
            if index in self._unknown and index not in free_indices(other):
                self.conditions.remove(condition)
                limits = _limits(index, other)
                place = ir.Cast(other, _I32) if other.type is not _I32 else other
                self._put(index, place, Equation(ir.IndexValue(index), place))
                self.conditions += limits
                return True
        return False

    def _give_up(self, equation: Equation) -> None:
        """Make a condition of an equation: the sum is over all values of its indices."""
        self.equations.remove(equation)
        place = equation.place
        if equation.value.type is Scalar.U32:
            place = ir.Cast(place, Scalar.U32)
        self.conditions.append(ir.Binary("==", equation.value, place, BOOL))

    def _settled(self, equation: Equation) -> bool:
        """Make a condition of an equation that has no unknowns left."""
        if mentions(equation.value, self._unknown):
            return False
        self._give_up(equation)
        return True

    def _linear(
        self, equation: Equation, of: Sequence[ir.Index]
    ) -> Iterator[tuple[ir.Index, Form, Form]]:
        """Yield each index i of `of` in which a value is `g i + r`, with the forms g and r."""
        form = form_of(equation.value)
        plain = {v.index for v in variables(form) if isinstance(v, ir.IndexValue)}
        inside = frozenset(
            index
            for v in variables(form)
            if not isinstance(v, ir.IndexValue)
            for index in free_indices(v)
        )
        for index in of:
            if index in plain and index not in inside:
                parts = coefficient(form, ir.IndexValue(index))
                if parts is not None:
                    yield index, *parts

    def _radix(self, equation: Equation) -> bool:
        """Solve `g a + r == K` where r counts from 0 to g - 1: a = K / g, r = K % g.

        `a` is an index, or another expression with unknowns: `i % 2`.
        """
        form = form_of(equation.value)
        for part in self._parts(form):
            split = coefficient(form, part)
            if split is None or split[0] in ({(): 1}, {(): -1}):
                continue
            factor, rest = split
            if not mentions(value_of(rest), self._unknown):
                continue
            # Only if 0 <= r < g are quotient and remainder unique.
            room, known = plus(combined("-", factor, rest), -1), self._known()
            if not self.facts.is_never_negative(rest, known):
                continue
            if not self.facts.is_never_negative(room, known):
                continue
            by, place = value_of(factor), equation.place
            self.equations.remove(equation)
            self.equations += [
                Equation(part, value_of(form_of(ir.Binary("/", place, by, _I32)))),
                Equation(
                    value_of(rest), value_of(form_of(ir.Binary("%", place, by, _I32)))
                ),
            ]
            return True
        return False

    def _parts(self, form: Form) -> Iterator[ir.Expr]:
        """Yield the variables of a form that have unknowns in them, bare indices first."""
        found = dict.fromkeys(v.expr for monomial in form for v in monomial)
        own = [ir.IndexValue(index) for index in (*self.own, *self.bound)]
        yield from (index for index in own if index in found)
        for part in found:
            if not isinstance(part, ir.IndexValue) and mentions(part, self._unknown):
                yield part

    def _unit(self, of: Sequence[ir.Index], equation: Equation) -> bool:
        """Solve `i + r == K` or `r - i == K` for i."""
        for index, factor, rest in self._linear(equation, of):
            if factor in ({(): 1}, {(): -1}):
                place = combined("-", form_of(equation.place), rest)
                solution = value_of(scaled(place, factor[()]))
                self.equations.remove(equation)
                self._define(index, solution, equation)
                return True
        return False

    def _multiple(self, of: Sequence[ir.Index], equation: Equation) -> bool:
        """Solve `g i + r == K`: i is `(K - r) / g`, under the condition `(K - r) % g == 0`."""
        for index, factor, rest in self._linear(equation, of):
            if not self.facts.is_nonzero(factor):
                continue
            left = combined("-", form_of(equation.place), rest)
            sign = -1 if all(each < 0 for each in factor.values()) else 1
            above, by = (value_of(scaled(each, sign)) for each in (left, factor))
            self.equations.remove(equation)
            self._require("==", ir.Binary("%", above, by, _I32), number(0))
            self._define(index, ir.Binary("/", above, by, _I32), equation)
            return True
        return False

    def _pair(self, equation: Equation) -> bool:
        """Merge the equations `e / c == K` and `e % c == L` into `e == K c + L`.

        L is 0 if the program has the condition `e % c == 0`.
        """
        match equation.value:
            case ir.Binary(op="/", left=whole, right=by):
                rest = ir.Binary("%", whole, by, _I32)
            case _:
                return False
        if self._is_multiple(rest):
            other = Equation(rest, number(0))
        elif self._splits(whole, by):
            others = (e for e in self.equations if e.value == rest)
            found = next(others, None)
            if found is None:
                return False
            other = found
            self.equations.remove(other)
            self._require("<", other.place, by)
        else:
            return False
        self.equations.remove(equation)
        product = form_of(ir.Binary("*", equation.place, by, _I32))
        place = value_of(combined("+", product, form_of(other.place)))
        self.equations.append(Equation(whole, place))
        return True

    def _is_multiple(self, rest: ir.Binary) -> bool:
        """Whether a condition of the program is that a remainder is 0."""
        wanted = form_of(rest)
        return self.facts.is_nonzero(form_of(rest.right)) and any(
            isinstance(c, ir.Binary)
            and c.op == "=="
            and not form_of(c.right)
            and form_of(c.left) == wanted
            for c in self.conditions
        )

    def _splits(self, whole: ir.Expr, by: ir.Expr) -> bool:
        """Whether `whole / by` is a plain division: of no negative number, by a known one."""
        known = not mentions(by, self._unknown) and self.facts.is_nonzero(form_of(by))
        return known and self.facts.is_never_negative(form_of(whole), self._known())

    def _quotient(self, equation: Equation) -> bool:
        """Replace `e / c == K` by `e == K c + u`, or `e % c == K` by `e == u c + K`.

        u is a new index, which stays summed: it ranges over the c remainders, or the quotients.
        """
        match equation.value:
            case ir.BuiltinCall(builtin="mod", arguments=(whole, by)):
                return self._wrapped(equation, whole, by)
            case ir.Binary(op="%", left=whole, right=by) if self._splits(
                whole, by
            ) and self._wrapped(equation, whole, by):
                return True
            case ir.Binary(op="/", left=whole, right=by) if self._splits(whole, by):
                index = self.fresh("u", by)
                product = ir.Binary("*", equation.place, by, _I32)
                place = ir.Binary("+", product, ir.IndexValue(index), _I32)
            case ir.Binary(
                op="%", left=ir.IndexValue(ranged) as whole, right=by
            ) if self._splits(whole, by):
                above = plus(
                    combined("+", form_of(length(ranged.extent)), form_of(by)), -1
                )
                count = ir.Binary("/", value_of(above), by, _I32)
                index = self.fresh("u", count)
                product = ir.Binary("*", ir.IndexValue(index), by, _I32)
                place = ir.Binary("+", product, equation.place, _I32)
                self._require("<", equation.place, by)
            case _:
                return False
        self.equations.remove(equation)
        self.bound.append(index)
        # `e` is solved for an older index: u is in `bound`, behind all others.
        self.equations.append(Equation(whole, place))
        return True

    def _wrapped(self, equation: Equation, whole: ir.Expr, by: ir.Expr) -> bool:
        """Solve `mod(i + r, m) == K` for an i that ranges over m."""
        end = self.facts.whole(form_of(by))
        for index, factor, rest in self._linear(
            Equation(whole, equation.place), (*self.own, *self.bound)
        ):
            own = self.facts.whole(form_of(length(index.extent)))
            if factor not in ({(): 1}, {(): -1}) or own != end:
                continue
            place = combined("-", form_of(equation.place), rest)
            solution = _call("mod", value_of(scaled(place, factor[()])), by)
            self.equations.remove(equation)
            self._require("<", equation.place, by)
            self._define(index, solution, None)
            return True
        return False

    def _define(self, index: ir.Index, solution: ir.Expr, by: Equation | None) -> None:
        """Replace an index by its solution, under the conditions that this is in its range."""
        self._put(index, solution, by)
        self._require(">=", solution, number(0))
        self._require("<", solution, length(index.extent))

    def _put(self, index: ir.Index, solution: ir.Expr, by: Equation | None) -> None:
        (self.own if index in self.own else self.bound).remove(index)
        replace_ = Replacement(index, solution, by, self._reduced, self._clamped)
        self.conditions = [replace_(c) for c in self.conditions]
        self.solved = {replace_(c) for c in self.solved}
        self.equations = [replace_.equation(e) for e in self.equations]
        self.terms = {key: replace_(value) for key, value in self.terms.items()}

    def _reduced(self, expr: ir.Expr) -> ir.Expr:
        return self.facts.reduced(expr, self._known())

    def _require(self, op: ir.BinaryOp, left: ir.Expr, right: ir.Expr) -> None:
        condition = ir.Binary(op, left, right, BOOL)
        self.conditions.append(condition)
        self.solved.add(condition)


def _index_of(expr: ir.Expr) -> ir.Index | None:
    """Return the index of `i` or `u32(i)`, None for any other expression."""
    match expr:
        case ir.IndexValue(index=index):
            return index
        case ir.Cast(operand=ir.IndexValue(index=index), type=Scalar.U32):
            return index
        case _:
            return None


def _limits(index: ir.Index, place: ir.Expr) -> tuple[ir.Expr, ...]:
    """Return the conditions under which a place is in the range of an index."""
    end = length(index.extent)
    if place.type is Scalar.U32:
        return (ir.Binary("<", place, ir.Cast(end, Scalar.U32), BOOL),)
    low = ir.Binary(">=", place, number(0), BOOL)
    return low, ir.Binary("<", place, end, BOOL)


def _call(name: str, *arguments: ir.Expr) -> ir.Expr:
    return ir.BuiltinCall(name, arguments, arguments[0].type)


def solved(
    term: Term,
    own: Sequence[ir.Index],
    subscripts: Sequence[tuple[ir.Subscript, ir.Index, ir.Extent]],
    facts: IntegerFacts,
    fresh: Callable[[str, ir.Expr], ir.Index],
) -> Term:
    """Return the term that a read adds to the adjoint of its tensor.

    `subscripts` has for each axis the read's subscript, the adjoint's index, and the length:
    of `x[2 * i + u]`, `2 * i + u`, K and n.  `own` are the statement's indices.
    """
    factors = list(term.factors)
    solver = Solver(
        facts,
        list(own),
        list(term.bound),
        fresh,
        list(term.conditions),
        {atom: atom for atom in factors},
        set(term.solved),
    )
    for subscript, place, extent in subscripts:
        solver.add(subscript, place, extent)
    # The usual case, x[i, j], needs no proofs: the adjoint has the same indices.
    if _is_renaming(solver.equations, frozenset(own)):
        return _renamed(term, own, solver.equations)
    solver.solve()
    product = Term(term.coefficient)
    for atom in factors:
        one = Term(factors={solver.terms[atom]: term.factors[atom]})
        product = product.times(one)
    conditions = without_known(solver.conditions, facts)
    return replace(
        product,
        conditions=conditions,
        bound=(*solver.own, *solver.bound),
        solved=frozenset(solver.solved),
    )


def with_fixed(
    term: Term, own: Sequence[ir.Index]
) -> tuple[Term, Sequence[ir.Index], Mapping[ir.Index, ir.Expr]]:
    """Return a term with indices of known value replaced, the other indices, and the values.

    The read `v[k]` of a vector gives each component of v a term of its own, under `k == 0`,
    `k == 1` and so on.
    """
    by: dict[ir.Index, ir.Expr] = {}
    for condition in term.conditions:
        match condition:
            case ir.Binary(
                op="==", left=ir.IndexValue(index=index), right=ir.Constant() as place
            ) if (condition in term.solved and index not in by):
                by[index] = place
            case _:
                pass
    if not by:
        return term, own, by
    # In the place of `k == 2` there is `2 < n`, where the range of k is no literal.
    fixed = {ir.Binary("==", ir.IndexValue(i), place, BOOL) for i, place in by.items()}
    limits = tuple(
        ir.Binary("<", place, length(index.extent), BOOL)
        for index, place in by.items()
        if isinstance(index.extent, str)
    )
    kept = tuple(c for c in term.conditions if c not in fixed)
    bound = tuple(index for index in term.bound if index not in by)
    solved = (term.solved - fixed) | {*limits}
    found = replace(term, conditions=(*kept, *limits), bound=bound, solved=solved)
    return over_renamed(found, by), [i for i in own if i not in by], by


def _is_renaming(equations: Sequence[Equation], own: frozenset[ir.Index]) -> bool:
    """Whether the subscripts are some of the statement's indices, each by itself."""
    values = [e.value for e in equations]
    bare = [
        v.index
        for v, e in zip(values, equations, strict=True)
        if isinstance(v, ir.IndexValue)
        and isinstance(e.place, ir.IndexValue)
        and v.index.extent == e.place.index.extent
    ]
    return len(bare) == len(values) == len(set(bare)) and own.issuperset(bare)


def _renamed(
    term: Term, own: Sequence[ir.Index], equations: Sequence[Equation]
) -> Term:
    """Return a term at the places that bare indices are equal to."""
    by: dict[ir.Index, ir.Expr] = {
        e.value.index: e.place for e in equations if isinstance(e.value, ir.IndexValue)
    }
    left = tuple(index for index in own if index not in by)
    return over_renamed(replace(term, bound=(*left, *term.bound)), by)


def over_renamed(term: Term, by: Mapping[ir.Index, ir.Expr]) -> Term:
    """Return a term with its indices renamed, bound ones included."""
    return replace(
        term,
        factors={substituted(atom, by): e for atom, e in term.factors.items()},
        conditions=tuple(substituted(c, by) for c in term.conditions),
        solved=frozenset(substituted(c, by) for c in term.solved),
    )

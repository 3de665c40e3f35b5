"""Derive a kernel's gradient: the reverse sweep over its statements.

Statements are walked in reverse.  Each let and output has an adjoint, the derivative of
the whole by it: a sum of products.  A statement adds its target's adjoint, times a slope,
to the adjoint of each value that it reads.  An adjoint of one product is put in where it is
used; any other becomes a let of its own:

    Forward:   let z[i] = x[i] * w[i];           y[i] = exp(z[i]);
    Adjoints:  of z[i], dy[i] * exp(z[i])        of x[i], dy[i] * exp(z[i]) * w[i]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Final, final

from kerngen.gradient.adjoint import ReadAdjoints
from kerngen.gradient.assemble import Derived, assembled
from kerngen.gradient.composites import (
    Number,
    direction_of,
    is_real,
    is_zero,
    kept,
    numbers_of,
    zero_of,
)
from kerngen.gradient.exchange import GradientProgram, with_sums_exchanged
from kerngen.gradient.fault import GradientError, Kind
from kerngen.gradient.forward import Forward, RecurrenceStep, base_name, made_ready
from kerngen.gradient.indices import free_indices
from kerngen.gradient.integers.known import divisors, known_of
from kerngen.gradient.match import anonymous
from kerngen.gradient.members import has_real, indices_of, key_of, leaves
from kerngen.gradient.merge import merged
from kerngen.gradient.recurrences import Back, copies_in, read_from
from kerngen.gradient.render import is_choice, rendered
from kerngen.gradient.simplify import Simplifier, named_sums
from kerngen.gradient.sums.keyed import Keys
from kerngen.gradient.taken import (
    AdjointCondition,
    ByNumber,
    Guards,
    alike,
    has_pole,
    has_reduce,
    has_slopes,
    is_never_empty,
    shared,
)
from kerngen.gradient.terms import ONE, Term, added_up, product_of
from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import as_literal
from kerngen.ir.analysis.reads import tensors_read
from kerngen.ir.memory import Struct
from kerngen.ir.recurrence import Recurrence
from kerngen.ir.staging.hoisting import Fresh
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children, replaced, subscript_value, walk

_F32: Final = Scalar.F32
_MOST_STATEMENTS: Final = 64
"""A gradient of more statements is refused: KG1211, whose message has the number."""
_NO_WORD: Final = str.maketrans(".", "_", "[]")
"""Turns the key of a member into a name: `scene.lights[].color` into scene_lights_color."""


def derive(
    kernel: ir.Kernel,
    *,
    name: str,
    by: tuple[str, ...],
    given: tuple[str, ...] = (),
    functions: Mapping[str, ir.Function] | None = None,
) -> ir.Kernel:
    """Return the kernel, called `name`, that computes the gradient of another.

    `by` are the parameters to differentiate by; `given` are outputs and lets of `kernel`
    that the caller passes, so that they are not computed again; `functions` are the user's
    functions by name.

    Raises `GradientError` if a name does not fit, or an equation has no derivative.
    """
    _check(kernel, by, given)
    derivation = _Derivation(kernel, by, given, functions or {})
    return assembled(derivation.run(), name)


def _check(kernel: ir.Kernel, by: tuple[str, ...], given: tuple[str, ...]) -> None:
    inputs = {t.name: t for t in kernel.tensors if t.role is not ir.Role.OUTPUT}
    scalars = {p.name: p for p in kernel.parameters}
    for place, wanted in enumerate(by):
        fields = {"kernel": kernel.name, "name": wanted}
        if wanted in by[:place]:
            raise GradientError(Kind.BY_TWICE, fields)
        if wanted not in inputs and wanted not in scalars:
            raise GradientError(Kind.BY_UNKNOWN, fields)
        memory = inputs[wanted].memory if wanted in inputs else scalars[wanted].memory
        if not has_real(memory):
            fields["type"] = memory.spelling
            raise GradientError(Kind.BY_INTEGER, fields)
    known = {
        s.target.name
        for s in kernel.body
        if s.target.role in {ir.Role.LET, ir.Role.OUTPUT}
    }
    for wanted in given:
        if wanted not in known:
            fields = {"kernel": kernel.name, "name": wanted}
            raise GradientError(Kind.GIVEN_UNKNOWN, fields)


@final
@dataclass
class _Derivation:
    """One derivation, from the forward kernel to the statements of the gradient.

    - `statements`: the lets of the gradient so far, in the order of the reverse sweep
    - `dims`: the computed lengths of new indices, `s_range`
    - `places`: the indices that the adjoint of each tensor is over, by the tensor's name
    """

    kernel: ir.Kernel
    by: tuple[str, ...]
    given: tuple[str, ...]
    functions: Mapping[str, ir.Function]
    statements: list[ir.Statement] = field(default_factory=list[ir.Statement])
    dims: list[ir.DerivedDim] = field(default_factory=list[ir.DerivedDim])
    places: dict[str, tuple[ir.Index, ...]] = field(
        default_factory=dict[str, tuple[ir.Index, ...]]
    )
    _indices: int = 0
    simplifier: Simplifier = field(default_factory=Simplifier)

    def run(self) -> Derived:
        """Return the parts that the kernel of the gradient is assembled from."""
        self._fresh = Fresh(self.kernel)
        kernel = _recast(self.kernel, self.given)
        forward = made_ready(kernel, self.functions, self.by, self._fresh)
        self._forward, self._facts = forward, known_of(kernel)
        self._lets = dict(forward.named)
        results = {t.name for t in self.kernel.tensors if t.role is ir.Role.OUTPUT}
        # The rules by which adjoints are simplified: what each forward tensor equals.
        for statement in forward.statements:
            is_given = statement.target.role is ir.Role.INPUT
            is_let = statement.target.name not in results
            if not statement.along:
                self.simplifier.define(statement, first=is_given, is_computed=is_let)
            self.places[statement.target.name] = statement.indices
        self._seeds = dict(self._gradients_of_outputs())
        self._guards = Guards()
        self._keys = Keys(self._facts, self._counted, len(self._seeds) > 1)
        reads = self._reads()
        # The sweep begins with the outputs' adjoints: `dy`, an argument of the call.
        for statement in forward.statements:
            name, path = statement.target.name, statement.path
            if name in self._seeds and is_real(statement.written):
                own = statement.indices[: statement.target.rank]
                seed = ir.Load(self._seeds[name], tuple(map(ir.IndexValue, own)), path)
                reads.found[key_of(name, path)] = [Term(factors={seed: ONE})]
        for statement in reversed(forward.statements):
            self._hand_on(statement, reads)
        for host in reversed(_hosts(kernel, forward)):
            self.places[host.target.name] = ()
            self._hand_on(host, reads)
        outputs = tuple(s for wanted in self.by for s in self._output(wanted, reads))
        program = GradientProgram(forward.statements, tuple(self.statements), outputs)
        exchanged = with_sums_exchanged(program, self.simplifier)
        copies = copies_in(forward.statements)
        return Derived(
            self.kernel,
            kernel,
            tuple(s if s.along else read_from(copies, s) for s in forward.statements),
            tuple(read_from(copies, s) for s in exchanged),
            tuple(read_from(copies, s) for s in outputs),
            self._seeds,
            self.given,
            self.by,
            tuple(self.dims),
            divisors(self.kernel),
            self._fresh,
        )

    def _reads(self) -> ReadAdjoints:
        return ReadAdjoints(
            self._forward,
            self._facts,
            self._counted,
            self._places,
            self._scalar_places,
            self._let,
        )

    # Names

    def _gradients_of_outputs(self) -> Iterator[tuple[str, ir.Tensor]]:
        for tensor in self.kernel.tensors:
            if tensor.role is ir.Role.OUTPUT and has_real(tensor.memory):
                name = self._gradient_name(tensor.name)
                doc = f"The gradient by `{tensor.name}`."
                yield (
                    tensor.name,
                    ir.Tensor(
                        name,
                        tensor.element,
                        tensor.extents,
                        ir.Role.INPUT,
                        doc,
                        tensor.span,
                    ),
                )

    def _gradient_name(self, name: str) -> str:
        return self._fresh.name(f"d{name}")

    def _places(self, tensor: ir.Tensor, path: ir.Path = ()) -> tuple[ir.Index, ...]:
        """Return the indices that the adjoint of a tensor, or of a member, is over."""
        if path:
            return (*self._places(tensor), *self._scalar_places(tensor.name, path))
        if tensor.name not in self.places:
            names = self._usual_names(tensor)
            self.places[tensor.name] = tuple(
                ir.Index(f"{name}#{tensor.name}{axis}", extent)
                for axis, (name, extent) in enumerate(
                    zip(names, tensor.extents, strict=True)
                )
            )
        return self.places[tensor.name]

    def _scalar_places(self, name: str, path: ir.Path) -> tuple[ir.Index, ...]:
        """Return the indices of the arrays on the way to a member."""
        memories = {p.name: p.memory for p in self.kernel.parameters}
        memories |= {t.name: t.memory for t in self.kernel.tensors}
        memory = memories.get(name)
        key = key_of("", path)
        known = leaves(memory) if memory else ()
        return next((indices_of(p) for p, _ in known if key_of("", p) == key), ())

    def _usual_names(self, tensor: ir.Tensor) -> list[str]:
        """Return the index names that the forward program uses for a tensor's axes."""
        names = ["ijklpq"[axis % 6] for axis in range(tensor.rank)]
        for statement in self._forward.statements:
            for node in walk(statement.value):
                if isinstance(node, ir.Load) and node.tensor == tensor:
                    for axis, subscript in enumerate(node.subscripts):
                        used = free_indices(subscript_value(subscript))
                        if used:
                            first = min(used, key=lambda index: index.name)
                            names[axis] = base_name(first)
                    return names
        return names

    def _counted(self, name: str, count: ir.Expr) -> ir.Index:
        """Return a new index that ranges over `count`, which becomes a dim if no literal."""
        self._indices += 1
        own = f"{name}#count{self._indices}"
        count = self._without_hosts(count)
        literal = as_literal(count)
        if literal is not None:
            return ir.Index(own, literal)
        dims = (*self.kernel.derived, *self.dims)
        known = next((dim for dim in dims if dim.value == count), None)
        if known is None:
            known = ir.DerivedDim(self._fresh.name(f"{name}_range"), count, "")
            self.dims.append(known)
            self._facts.defined[ir.DimValue(known.name)] = count
        return ir.Index(own, known.name)

    def _without_hosts(self, expr: ir.Expr) -> ir.Expr:
        """Return a length with each host replaced by its value.

        Lengths can't read hosts, which come after them.  They mix i32 and u32 without casts.
        """
        hosts = {host.name: host.value for host in self.kernel.hosts}
        if isinstance(expr, ir.Cast):
            return self._without_hosts(expr.operand)
        if isinstance(expr, ir.UniformValue) and expr.name in hosts:
            return self._without_hosts(hosts[expr.name])
        return map_children(expr, self._without_hosts)

    # Statements

    def _let(self, name: str, indices: tuple[ir.Index, ...], value: ir.Expr) -> ir.Load:
        """Make a let of a value, and return its read; a let of an equal value is reused."""
        key = anonymous(indices, value)
        if key not in self._lets:
            extents = tuple(index.extent for index in indices)
            target = ir.Tensor(self._fresh.name(name), value.type, extents, ir.Role.LET)
            self.statements.append(ir.Statement(target, indices, value))
            self._lets[key] = target
        return ir.Load(self._lets[key], tuple(map(ir.IndexValue, indices)))

    def _adjoint(
        self, key: str, indices: tuple[ir.Index, ...], reads: ReadAdjoints
    ) -> list[Term]:
        """Return the adjoint of a tensor or member, simplified; it is taken from `reads`."""
        terms = merged(self.simplifier.shortened(reads.found.pop(key, ())))
        let = partial(self._let, f"{key.translate(_NO_WORD)}_terms")
        return [part for each in terms for part in self._keys.parts(each, indices, let)]

    def _hand_on(self, statement: ir.Statement, reads: ReadAdjoints) -> None:
        """Add the adjoint of a statement's target to those of the tensors that it reads."""
        name = key_of(statement.target.name, statement.path)
        terms = self._adjoint(name, statement.indices, reads)
        if not terms:
            return
        name = name.translate(_NO_WORD)
        terms = self._with_named_sums(name, terms, statement.indices)
        if not terms:
            return
        guards = self._guards.of(terms)
        if statement.along:
            self._hand_back(statement, statement.along, terms, reads)
            return
        chooses = bool(terms[0].conditions) or any(map(is_choice, terms[0].factors))
        computed = isinstance(
            direction_of(terms[0])[1], ir.Construct | ir.Binary | ir.Select
        )
        if len(terms) > 1 or computed or (chooses and has_reduce(statement.value)):
            # One value under a condition, so that a product behind it stays one.
            indices = statement.indices
            let = self._let(f"d{name}", indices, rendered(terms))
            self.simplifier.define(self.statements[-1])
            self._guards.record(let, indices, guards)
            terms = [Term(factors={let: ONE})]
        if len(self.statements) > _MOST_STATEMENTS:
            fields = {"kernel": self.kernel.name}
            raise GradientError(Kind.TOO_LARGE, fields, statement.span)
        rest, own = direction_of(terms[0])
        for inside, numbers in _groups(statement.value, guards).items():
            of_group = rest.times(product_of(kept(own, numbers)))
            reads.of(statement, of_group, inside)

    def _count(
        self, target: str, let: ir.Load, own: tuple[ir.Index, ...], inside: Term
    ) -> None:
        """Make a let of how many terms `let` sums, if it may sum none and slopes are infinite.

        Where `r_taken[i]` is 0 so is the adjoint, and the slope `1 / sqrt(s[i])` is infinite.
        """
        if not self._has_poles or is_never_empty(inside):
            return
        used = frozenset[ir.Index]().union(*map(free_indices, inside.conditions))
        indices = tuple(index for index in own if index in used)
        bound = tuple(index for index in inside.bound if index in used)
        ones = replace(inside, factors={}, bound=bound)
        count = self._let(f"{target}_taken", indices, rendered([ones]))
        self._guards.record_count(let, own, count)

    @cached_property
    def _has_poles(self) -> bool:
        return any(
            has_pole(s.value)
            for s in self._forward.statements
            if s.target.name in self._forward.active
        )

    def _hand_back(
        self,
        of: ir.Statement,
        along: Recurrence,
        terms: list[Term],
        reads: ReadAdjoints,
    ) -> None:
        """Make the let of a recurrence's adjoint; `terms` come from the reads that follow it.

        Forward:   let h[t] = if t > 0 { a * h[t - 1] + x[t] } else { x[t] };
        Gradient:  let dh[t] = dy[t] + (if t + 1 < n { dh[t + 1] * a } else { 0.0 });
        """
        back = Back(of, along, self._gradient_name(of.target.name))
        self.places[of.target.name] = back.places
        step = self._forward.steps[of.target]
        reads.of(step.statement, self._living(step, terms, back.own, reads))
        # The step's own lets, its sums over earlier steps, are derived like any let at the end.
        for let in step.lets:
            of_let = merged(reads.found.pop(let.target.name, []))
            slopes = [self._with_slope(let, term, back.target) for term in of_let]
            reads.found[let.target.name] = slopes
        own = self.simplifier.shortened(_handed_to(step, reads))
        self.statements.append(back.statement(terms, own))
        for let in reversed(step.lets):
            self._hand_on(let, reads)
        reads.found.pop(of.target.name, None)

    def _living(
        self, step: RecurrenceStep, terms: list[Term], own: ir.Load, reads: ReadAdjoints
    ) -> Term:
        """Return a step's adjoint, with zeros for numbers of the state that nothing reads."""
        # A number lives, too, if a living one of a later step depends on it: to a fixed point.
        living, more = frozenset[Number](), frozenset(self._guards.of(terms))
        while living != more < frozenset(numbers_of(own.type)):
            living = more
            inside = replace(reads, found={})
            inside.of(step.statement, product_of(kept(own, living)))
            more |= self._guards.of(_handed_to(step, inside)).keys()
        return product_of(kept(own, more))

    def _with_slope(self, let: ir.Statement, term: Term, back: ir.Tensor) -> Term:
        """Return a term of a recurrence's adjoint with its other factors as one let.

        So `1 - tanh(h_sum[t, i])^2` is computed once, and not in each turn of a sum.
        """
        rest = {
            atom: e
            for atom, e in term.factors.items()
            if back not in tensors_read(atom)
        }
        if all(isinstance(atom, ir.Load) for atom in rest):
            return term
        is_guarded = not all(map(_reads_inside, rest))
        conditions = term.conditions if is_guarded else ()
        product = rendered([Term(factors=rest, conditions=conditions)])
        used = free_indices(product)
        indices = tuple(i for i in (*let.indices, *term.bound) if i in used)
        slope = self._let(f"{let.target.name}_slope", indices, product)
        kept = {a: e for a, e in term.factors.items() if a not in rest}
        return replace(term, factors={**kept, slope: ONE})

    def _with_named_sums(
        self, target: str, terms: list[Term], indices: tuple[ir.Index, ...]
    ) -> list[Term]:
        """Return terms in which every sum is a read of a let; equal sums share one."""
        is_single = len(terms) == 1

        def name(inside: Term) -> Term:
            known = self.simplifier.by_name(inside)
            if known is not None:
                return known
            used = frozenset[ir.Index]().union(
                *(free_indices(e) for e in (*inside.factors, *inside.conditions))
            )
            own = tuple(index for index in indices if index in used)
            is_whole = is_single and terms[0].coefficient == 1 and own == indices
            is_whole = is_whole and terms[0].factors == inside.factors
            # A sum that is the whole adjoint is the `dx` of its tensor, a part `x_along`.
            wanted = f"d{target}" if is_whole else f"{target}_along"
            let = self._let(wanted, own, rendered([inside]))
            result = Term(factors={let: ONE})
            self.simplifier.learn(own, inside, result, Term())
            self._count(target, let, own, inside)
            return result

        return merged(added_up(named_sums(term, name) for term in terms))

    def _output(self, wanted: str, reads: ReadAdjoints) -> Iterator[ir.Statement]:
        """Yield the statement of a gradient, or one for each member of a struct."""
        tensor = next((t for t in self.kernel.tensors if t.name == wanted), None)
        own = next((p.memory for p in self.kernel.parameters if p.name == wanted), None)
        memory = tensor.memory if tensor else own
        assert memory is not None
        found = {key_of(wanted, path): (path, leaf) for path, leaf in leaves(memory)}
        if not any(reads.found.get(key) for key in found):
            fields = {"kernel": self.kernel.name, "name": wanted}
            raise GradientError(Kind.ZERO, fields)
        extents = tensor.extents if tensor else ()
        axes = self._places(tensor) if tensor else ()
        name, doc = self._gradient_name(wanted), f"The gradient by `{wanted}`."
        values: list[tuple[ir.Path, tuple[ir.Index, ...], ir.Expr]] = []
        for key, (path, leaf) in found.items():
            indices = (*axes, *indices_of(path))
            value = self._value(key, reads, indices)
            values.append((path, indices, value or zero_of(leaf.type)))
        if not isinstance(memory, Struct) and is_zero(values[0][2]):
            fields = {"kernel": self.kernel.name, "name": wanted}
            raise GradientError(Kind.ZERO, fields)
        element = memory if isinstance(memory, Struct) else values[0][2].type
        target = ir.Tensor(name, element, extents, ir.Role.OUTPUT, doc)
        for path, indices, value in values:
            yield ir.Statement(target, indices, value, path=path)

    def _value(
        self, key: str, reads: ReadAdjoints, indices: tuple[ir.Index, ...]
    ) -> ir.Expr | None:
        """Return the value of an adjoint, None if it is 0."""
        terms = self._adjoint(key, indices, reads)
        if not terms:
            return None
        name = key.translate(_NO_WORD)
        if len(terms) > 1:
            terms = self._with_named_sums(name, terms, indices)
        if not terms:
            return None
        return self._with_repeated_named(name, indices, rendered(terms))

    def _with_repeated_named(
        self, target: str, indices: tuple[ir.Index, ...], value: ir.Expr
    ) -> ir.Expr:
        """Return a value with a call that it repeats as a let: `tanh(u)` in 1 - tanh(u)^2."""
        if has_reduce(value):
            return value
        nodes = [*walk(value)]
        calls = Counter(
            n for n in nodes if isinstance(n, ir.BuiltinCall | ir.FunctionCall)
        )
        repeated = [call for call, count in calls.items() if count > 1]
        if any(isinstance(node, ir.Select) for node in nodes):
            # A condition may keep a read inside of its axis; a let would read without it.
            repeated = [call for call in repeated if _reads_inside(call)]
        for call in repeated[:1]:
            if call.type is not _F32:
                continue
            let = self._let(f"{_called_name(call)}_{target}", indices, call)
            value = replaced(value, call, let)
        return value


def _groups(
    value: ir.Expr, guards: ByNumber
) -> dict[tuple[AdjointCondition, ...], frozenset[Number]]:
    """Return the numbers of a let, grouped by the guards that their adjoints have.

    A number that nothing reads is in no group, and so not derived: its slope may be NaN.
    """
    if has_slopes(value):
        return alike(guards)
    whole = any(isinstance(node, ir.Construct) for node in walk(value))
    numbers = guards if whole else numbers_of(value.type)
    return {shared(guards): frozenset(numbers)}


def _handed_to(step: RecurrenceStep, reads: ReadAdjoints) -> list[Term]:
    """Return the terms that a step adds to the adjoint of earlier steps."""
    inside = replace(reads, found={name: [*of] for name, of in reads.found.items()})
    for let in reversed(step.lets):
        for term in inside.found.pop(let.target.name, ()):
            inside.of(let, term)
    return inside.found.get(step.statement.target.name, [])


def _called_name(call: ir.BuiltinCall | ir.FunctionCall) -> str:
    return call.builtin if isinstance(call, ir.BuiltinCall) else call.function


def _reads_inside(expr: ir.Expr) -> bool:
    """Whether all subscripts are bare indices over their axes, so that none is outside."""
    return all(
        isinstance(subscript, ir.IndexValue) and subscript.index.extent == extent
        for node in walk(expr)
        if isinstance(node, ir.Load)
        for subscript, extent in zip(node.subscripts, node.tensor.extents, strict=True)
    )


def _recast(kernel: ir.Kernel, given: tuple[str, ...]) -> ir.Kernel:
    """Return the forward kernel with its outputs as lets, and given tensors as inputs."""
    roles = {
        s.target: replace(
            s.target, role=ir.Role.INPUT if s.target.name in given else ir.Role.LET
        )
        for s in kernel.body
        if s.target.role is not ir.Role.UPDATE
    }

    def visit(expr: ir.Expr) -> ir.Expr:
        expr = map_children(expr, visit)
        if isinstance(expr, ir.Load) and expr.tensor in roles:
            return replace(expr, tensor=roles[expr.tensor])
        return expr

    body = tuple(
        replace(s, target=roles.get(s.target, s.target), value=visit(s.value))
        for s in kernel.body
    )
    return replace(kernel, body=body)


def _hosts(kernel: ir.Kernel, forward: Forward) -> list[ir.Statement]:
    """Return the hosts that the gradient passes through, as statements."""
    found: list[ir.Statement] = []
    for host in kernel.hosts:
        if host.name in forward.active:
            target = ir.Tensor(host.name, _F32, (), ir.Role.LET)
            found.append(ir.Statement(target, (), _on_device(host.value)))
    return found


def _on_device(expr: ir.Expr) -> ir.Expr:
    """Return a host's expression with the casts to f32 that a kernel's body requires."""
    expr = map_children(expr, _on_device)
    if isinstance(expr, ir.Binary) and expr.type is _F32:
        left, right = (
            ir.Cast(side, _F32) if side.type is not _F32 else side
            for side in (expr.left, expr.right)
        )
        return replace(expr, left=left, right=right)
    return expr

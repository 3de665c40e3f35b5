"""Assemble the derived kernel: its statements in order, its signature, its names.

The result is a kernel as the checker would make it from the text of the gradient: a test
compiles the printed kernel and compares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Final, final

from kerngen.gradient.composites import is_zero
from kerngen.gradient.fault import GradientError, Kind
from kerngen.gradient.forward import base_name
from kerngen.gradient.integers.subscripts import formed, without_needless_clamps
from kerngen.gradient.terms import with_places
from kerngen.gradient.text import expr_text, signature_text, statement_text
from kerngen.ir import nodes as ir
from kerngen.ir.analysis.reads import tensors_read
from kerngen.ir.builtins.evaluate import NotFiniteError
from kerngen.ir.memory import Leaf
from kerngen.ir.staging.hoisting import Fresh
from kerngen.ir.staging.inlining import refold
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children, subscript_value, walk
from kerngen.plan.tree import GradientOf

_LETTERS: Final = "ijklpqrstuvwabcdefghmnoxyz"
"""Names for indices whose own name is taken, the usual ones first."""


@final
@dataclass(frozen=True)
class Derived:
    """The parts of a derived kernel, still with the names of the derivation (`j#3`).

    - `original`: the forward kernel; `recast`: the same with given tensors as inputs, and
      outputs as lets
    - `forward`: its prepared statements; `statements`: the lets of the gradient; `outputs`:
      the statements of `dx`
    - `seeds`: the gradient by each output, an input of the gradient: `dy` by "y"
    - `divisors`: the integers that the derivation assumes to be positive
    """

    original: ir.Kernel
    recast: ir.Kernel
    forward: tuple[ir.Statement, ...]
    statements: tuple[ir.Statement, ...]
    outputs: tuple[ir.Statement, ...]
    seeds: Mapping[str, ir.Tensor]
    given: tuple[str, ...]
    by: tuple[str, ...]
    dims: tuple[ir.DerivedDim, ...]
    divisors: frozenset[ir.Expr]
    fresh: Fresh


def assembled(derived: Derived, name: str) -> ir.Kernel:
    """Return the derived kernel, typed and named as by the checker."""
    body = _in_order(_needed(derived))
    tensors = _inputs(derived, body)
    return _Assembly(derived, name, body, tensors).kernel()


# Statements


def _needed(derived: Derived) -> list[ir.Statement]:
    """Return the statements that the outputs depend on, in the order they were made in."""
    lets = [s for s in derived.forward if s.target.role is ir.Role.LET]
    waiting = [*derived.outputs]
    found: dict[ir.Tensor, ir.Statement] = {}
    known = {s.target: s for s in (*lets, *derived.statements)}
    while waiting:
        for tensor in tensors_read(waiting.pop().value):
            if tensor in known and tensor not in found:
                found[tensor] = known[tensor]
                waiting.append(known[tensor])
    return [*(s for t, s in known.items() if t in found), *derived.outputs]


def _in_order(body: list[ir.Statement]) -> tuple[ir.Statement, ...]:
    """Return statements in topological order; among those that are ready, products first.

    So the statements over rows stay neighbours, which `rows` runs in one dispatch.
    """
    waiting, done = list(body), list[ir.Statement]()
    known = {s.target for s in body}
    written: set[ir.Tensor] = set()
    needs = {
        id(s): known.intersection(tensors_read(s.value)) - {s.target} for s in body
    }
    while waiting:
        ready = [s for s in waiting if needs[id(s)] <= written]
        chosen = next((s for s in ready if _is_product(s)), ready[0])
        waiting.remove(chosen)
        written.add(chosen.target)
        done.append(chosen)
    return tuple(done)


def _is_product(statement: ir.Statement) -> bool:
    """Whether a statement is a matrix product, and no output.

    Each factor has an index that the other lacks: `sum[p] dy[i, p] * v[j, p]`.
    """
    if statement.target.role is ir.Role.OUTPUT:
        return False
    for node in walk(statement.value):
        match node:
            case ir.Reduce(kind="sum", body=ir.Binary(op="*", left=left, right=right)):
                one, other = set(_indices(left)), set(_indices(right))
                return bool(one - other and other - one)
            case _:
                pass
    return False


def _indices(expr: ir.Expr) -> Iterator[ir.Index]:
    return (n.index for n in walk(expr) if isinstance(n, ir.IndexValue))


# Inputs


def _inputs(derived: Derived, body: tuple[ir.Statement, ...]) -> tuple[ir.Tensor, ...]:
    """Return the tensors that the gradient reads: inputs, given ones, then `dy`.

    Raises `GradientError` for a given tensor that is not read.
    """
    read = {t for s in body for t in tensors_read(s.value)}
    original = derived.original
    plain = [t for t in original.tensors if t.role is ir.Role.INPUT and t in read]
    targets = {s.target.name: s.target for s in derived.forward}
    given: list[ir.Tensor] = []
    for name in derived.given:
        if targets[name] not in read:
            fields = {"kernel": original.name, "name": name}
            raise GradientError(Kind.GIVEN_UNUSED, fields)
        outputs = {t.name: t for t in original.tensors if t.role is ir.Role.OUTPUT}
        usual = f"What `{original.name}` gave."
        doc = targets[name].doc or usual
        if name not in outputs:
            doc = f"`{name}` of `{original.name}`."
        given.append(replace(targets[name], doc=doc, is_half=False))
    seeds = [t for t in derived.seeds.values() if t in read]
    return (*plain, *given, *seeds)


@final
@dataclass
class _Assembly:
    """Gives lengths, indices and subscripts the form that the checker gives them.

    - `lengths`: new names of lengths. The length of `y: f32[n - w + 1]` is computed in the
      forward kernel, and a dim of `dy: f32[p]` here.
    - `missing`: a parameter `n_len` for each dim `n` that no input has as its length
    """

    derived: Derived
    name: str
    body: tuple[ir.Statement, ...]
    inputs: tuple[ir.Tensor, ...]
    lengths: dict[str, str] = field(default_factory=dict[str, str])
    missing: dict[str, ir.Parameter] = field(default_factory=dict[str, ir.Parameter])

    def kernel(self) -> ir.Kernel:
        """Return the kernel of the gradient."""
        original = self.derived.original
        # Lengths first: which dims are missing depends on the new names, and the body on both.
        self._name_lengths()
        inputs = tuple(map(self._with_lengths, self.inputs))
        dims = tuple(
            dict.fromkeys(e for t in inputs for e in t.extents if isinstance(e, str))
        )
        hosts = self._hosts()
        self._find_missing(dims, hosts)
        body = tuple(map(self._statement, self.body))
        written = (s.target for s in body if s.target.role is ir.Role.OUTPUT)
        outputs = tuple(dict.fromkeys(written))
        parameters = self._parameters(dims, body, hosts)
        tensors = (*inputs, *outputs)
        derived = self._derived(body, outputs)
        kernel = ir.Kernel(
            name=self.name,
            dims=dims,
            tensors=tensors,
            parameters=parameters,
            hosts=tuple(
                replace(h, value=self._sized(h.value, on_host=True)) for h in hosts
            ),
            body=body,
            schedules=(),
            signature="",
            doc=self._doc(),
            span=original.span,
            order=(*(t.name for t in inputs), *(p.name for p in parameters)),
            derived=derived,
            requires=self._requires(dims, parameters),
            gradient=self._gradient(),
        )
        kernel = replace(kernel, signature=signature_text(kernel))
        return _named_apart(without_needless_clamps(kernel))

    def _gradient(self) -> GradientOf:
        """Return which arguments and results belong to which of the forward kernel's."""
        derived = self.derived
        read = {tensor.name for tensor in self.inputs}
        targets = dict.fromkeys(s.target.name for s in derived.outputs)
        return GradientOf(
            derived.original.name,
            by=tuple(zip(derived.by, targets, strict=True)),
            from_=tuple(
                (o, s.name) for o, s in derived.seeds.items() if s.name in read
            ),
            given=derived.given,
            lengths=tuple((dim, p.name) for dim, p in self.missing.items()),
        )

    def _doc(self) -> str:
        by = " and ".join(f"`{name}`" for name in self.derived.by)
        given = ", ".join(f"`{name}`" for name in self.derived.given)
        given = f", given {given}" if given else ""
        first = f"The gradient of `{self.derived.original.name}` by {by}{given}."
        own = self.derived.original.doc
        return f"{first}\n\n{own}" if own else first

    # Lengths

    def _name_lengths(self) -> None:
        """Name the lengths that the forward kernel computes, and that are dims of `dy` here."""
        computed = {dim.name for dim in self.derived.original.derived}
        taken = {e for t in self.inputs for e in t.extents}
        fresh = self.derived.fresh
        # `i` to `l` come last, as indices mostly have these names.
        letters = (x for x in "pqrstuvwabcdefghmnoxyzijkl" if x not in taken)
        free = (fresh.name(letter) for letter in letters)
        names = chain((name for name in free if len(name) == 1), _endless(()))
        for tensor in self.inputs:
            for extent in tensor.extents:
                if extent in computed and extent not in self.lengths:
                    self.lengths[str(extent)] = next(names)

    def _with_lengths(self, tensor: ir.Tensor) -> ir.Tensor:
        extents = tuple(map(self._extent, tensor.extents))
        return replace(tensor, extents=extents)

    def _extent(self, extent: ir.Extent) -> ir.Extent:
        return self.lengths.get(str(extent), extent)

    def _find_missing(self, dims: tuple[str, ...], hosts: tuple[ir.Host, ...]) -> None:
        """Make parameters of the dims that no input has any more."""
        for dim in self.derived.original.dims:
            if dim not in dims and self._is_used(dim, hosts):
                name = self.derived.fresh.name(f"{dim}_len")
                doc = (
                    f"The length of the axes `{dim}` of `{self.derived.original.name}`."
                )
                self.missing[dim] = ir.Parameter(name, Leaf(Scalar.U32), None, doc)
                self.lengths[dim] = f"{name}_length"

    def _is_used(self, dim: str, hosts: tuple[ir.Host, ...]) -> bool:
        values = [*(h.value for h in hosts)]
        values += [d.value for d in self._computed() if d.name in self._ranges()]
        values += self._required
        return dim in self._dims_of_body or any(
            isinstance(n, ir.DimValue) and n.name == dim
            for v in values
            for n in walk(v)
        )

    @cached_property
    def _dims_of_body(self) -> set[ir.Extent]:
        """The lengths that the statements range over or compute with."""
        values = [s.value for s in self.body]
        found = {i.extent for s in self.body for i in (*s.indices, *_bound(s.value))}
        return found | {
            n.name for v in values for n in walk(v) if isinstance(n, ir.DimValue)
        }

    def _computed(self) -> tuple[ir.DerivedDim, ...]:
        return (*self.derived.original.derived, *self.derived.dims)

    def _ranges(self) -> set[ir.Extent]:
        return {
            self._extent(i.extent)
            for s in self.body
            for i in (*s.indices, *_bound(s.value))
        } | {self._extent(e) for s in self.body for e in s.target.extents}

    def _derived(
        self, body: tuple[ir.Statement, ...], outputs: tuple[ir.Tensor, ...]
    ) -> tuple[ir.DerivedDim, ...]:
        used = {e for t in outputs for e in t.extents}
        used |= {i.extent for s in body for i in (*s.indices, *_bound(s.value))}
        found = [
            ir.DerivedDim(
                f"{p.name}_length", ir.UniformValue(p.name, Scalar.U32), p.name
            )
            for p in self.missing.values()
        ]
        for dim in self._computed():
            if dim.name not in self.lengths:
                value = self._sized(dim.value, on_host=True)
                text = dim.text if value == dim.value else ""
                found.append(ir.DerivedDim(dim.name, value, text or expr_text(value)))
        return tuple(dim for dim in found if dim.name in used)

    def _sized(self, expr: ir.Expr, *, on_host: bool) -> ir.Expr:
        """Return an expression with the lengths that the derived kernel has.

        A dim that no input has, `n`, is the parameter `n_len`, a u32.  Expressions on the
        host may mix it with i32; in the kernel's body it is `i32(n_len)`.
        """

        def visit(node: ir.Expr) -> ir.Expr:
            if not isinstance(node, ir.DimValue):
                return map_children(node, visit)
            if node.name in self.missing:
                scalar = ir.UniformValue(self.missing[node.name].name, Scalar.U32)
                return scalar if on_host else ir.Cast(scalar, Scalar.I32)
            if node.name in self.lengths:
                return ir.DimValue(self.lengths[node.name])
            if node.name in self._values:
                value = visit(self._values[node.name])
                return value if on_host else _of_i32(value)
            return node

        return visit(expr)

    @cached_property
    def _values(self) -> dict[str, ir.Expr]:
        return {dim.name: dim.value for dim in self._computed()}

    @property
    def _required(self) -> list[ir.Expr]:
        """The conditions of the forward kernel: the gradient is right where they are true.

        So the gradient has the scalars and lengths in them as parameters, even if it reads
        them for nothing else.
        """
        requires = self.derived.original.requires
        return [each.condition for each in requires if not each.implied]

    def _requires(
        self, dims: tuple[str, ...], parameters: tuple[ir.Parameter, ...]
    ) -> tuple[ir.Requirement, ...]:
        """Return the requirements of the gradient.

        - those of the forward kernel
        - that lengths agree: of `y: f32[2 * h]`, computed in the forward kernel, `dy` has
          a dim, so `require p == 2 * h`
        - that scalars by which lengths are divided are positive: `x / 0` is x in the forward
          kernel, which the inverse of a subscript `i * stride` does not consider
        """
        known = {parameter.name for parameter in parameters}
        original = self.derived.original
        own = [each for each in original.requires if not each.implied]
        scalars = (x for x in self.derived.divisors if isinstance(x, ir.UniformValue))
        positive = (
            ir.Requirement(
                ir.Binary(">", scalar, ir.Constant(0, Scalar.I32), Scalar.BOOL),
                f"{scalar.name} > 0",
                original.span,
            )
            for scalar in sorted(scalars, key=lambda scalar: scalar.name)
            if scalar.name in known
        )
        lengths = map(self._requirement, self._equations())
        held = (
            each for each in lengths if _names_in(each.condition) <= {*dims, *known}
        )
        required = map(self._requirement, (*own, *positive))
        return tuple({each.condition: each for each in (*required, *held)}.values())

    def _equations(self) -> Iterator[ir.Requirement]:
        """Yield `p == 2 * h` for each dim `p` whose length the forward kernel computes."""
        yield from (r for r in self.derived.original.requires if r.implied)
        for dim in self.derived.original.derived:
            if dim.name in self.lengths:
                own = ir.DimValue(dim.name)
                equal = ir.Binary("==", own, dim.value, Scalar.BOOL)
                span = self.derived.original.span
                yield ir.Requirement(equal, "", span, implied=True)

    def _requirement(self, requirement: ir.Requirement) -> ir.Requirement:
        """Return a requirement with the lengths that the derived kernel has."""
        condition = self._sized(requirement.condition, on_host=True)
        if condition == requirement.condition:
            return requirement
        return replace(requirement, condition=condition, text=expr_text(condition))

    # Scalars

    def _hosts(self) -> tuple[ir.Host, ...]:
        """Return the hosts that the body, a range's length or another of these hosts reads."""
        used = {
            n.name
            for s in self.body
            for n in walk(s.value)
            if isinstance(n, ir.UniformValue)
        }
        used |= {
            n.name
            for dim in self._computed()
            if dim.name in self._ranges()
            for n in walk(dim.value)
            if isinstance(n, ir.UniformValue)
        }
        # In reverse, as a host reads earlier ones.
        kept: list[ir.Host] = []
        for host in reversed(self.derived.original.hosts):
            if host.name in used:
                kept.insert(0, host)
                used |= {
                    n.name for n in walk(host.value) if isinstance(n, ir.UniformValue)
                }
        return tuple(kept)

    def _parameters(
        self,
        dims: tuple[str, ...],
        body: tuple[ir.Statement, ...],
        hosts: tuple[ir.Host, ...],
    ) -> tuple[ir.Parameter, ...]:
        """Return the missing dims as parameters, then the scalars that anything reads."""
        values = [*(s.value for s in body), *(h.value for h in hosts)]
        values += [
            dim.value
            for dim in self._computed()
            if dim.name in self._ranges() and dim.name not in self.lengths
        ]
        values += self._required
        values += (
            each.condition
            for each in self._equations()
            if _lengths_in(each.condition) <= {*dims, *self.missing, *self.lengths}
        )
        used = {
            n.name for v in values for n in walk(v) if isinstance(n, ir.UniformValue)
        }
        own = [p for p in self.derived.original.parameters if p.name in used]
        return (*self.missing.values(), *own)

    # Statements

    def _statement(self, statement: ir.Statement) -> ir.Statement:
        """Return a statement with final names, lengths and subscripts."""
        by = self._index_names(statement)
        indices = tuple(by[index] for index in statement.indices)
        value = self._sized(self._renamed(statement.value, by), on_host=False)
        value = formed(value)
        self._check_constants(value)
        target = self._with_lengths(statement.target)
        path = self._path(statement.path, by)
        return replace(
            statement, target=target, indices=indices, value=value, path=path
        )

    def _path(self, path: ir.Path, by: Mapping[ir.Index, ir.Index]) -> ir.Path:
        return with_places(path, lambda place: self._renamed(place, by))

    def _check_constants(self, value: ir.Expr) -> None:
        """Refuse constants without a finite value, as the slope of `x / 0.0` is."""
        try:
            refold(value)
        except NotFiniteError:
            kernel = self.derived.original
            reason = "a constant in it is not finite"
            fields = {"kernel": kernel.name, "reason": reason}
            span = next((s.span for s in kernel.body if _divides_by_zero(s)), None)
            raise GradientError(
                Kind.NO_DERIVATIVE, fields, span, lacking="infinite"
            ) from None

    def _index_names(self, statement: ir.Statement) -> dict[ir.Index, ir.Index]:
        """Return the statement's indices under names that nothing else has."""
        found = dict.fromkeys((*statement.indices, *_bound(statement.value)))
        taken = self._taken
        names: dict[ir.Index, ir.Index] = {}
        for index in found:
            wanted = [base_name(index), *_LETTERS]
            name = next(n for n in _endless(wanted) if n not in taken)
            taken = taken | {name}
            names[index] = ir.Index(name, self._extent(index.extent))
        return names

    @property
    def _taken(self) -> frozenset[str]:
        """The names of all things but indices: an index must not have one of them."""
        original = self.derived.original
        return frozenset(
            (
                *original.lengths,
                *self.lengths.values(),
                *(p.name for p in self.missing.values()),
                *original.order,
                *(t.name for t in self.inputs),
                *(s.target.name for s in self.body),
                *(h.name for h in original.hosts),
            )
        )

    def _renamed(self, expr: ir.Expr, by: Mapping[ir.Index, ir.Index]) -> ir.Expr:
        def visit(node: ir.Expr) -> ir.Expr:
            match node:
                case ir.IndexValue(index=index):
                    return ir.IndexValue(by[index])
                case ir.UniformValue(path=path) if path:
                    return replace(node, path=self._path(path, by))
                case ir.Part(at=at):
                    place = _subscript(visit(subscript_value(at.place)))
                    at = replace(at, place=place)
                    return replace(node, operand=visit(node.operand), at=at)
                case ir.Load(tensor=tensor, subscripts=subscripts, path=path):
                    moved = tuple(
                        _subscript(visit(subscript_value(s))) for s in subscripts
                    )
                    tensor = self._with_lengths(tensor)
                    path = self._path(path, by)
                    return replace(node, tensor=tensor, subscripts=moved, path=path)
                case ir.Reduce(indices=indices):
                    own = tuple(by[index] for index in indices)
                    inner = map_children(node, visit)
                    assert isinstance(inner, ir.Reduce)
                    return replace(inner, indices=own)
                case _:
                    return map_children(node, visit)

        return visit(expr)


def _divides_by_zero(statement: ir.Statement) -> bool:
    return any(
        isinstance(node, ir.Binary) and node.op == "/" and is_zero(node.right)
        for node in walk(statement.value)
    )


def _names_in(expr: ir.Expr) -> set[str]:
    """Return the dims and scalars that an expression reads."""
    nodes = (n for n in walk(expr) if isinstance(n, ir.DimValue | ir.UniformValue))
    return {node.name for node in nodes}


def _lengths_in(expr: ir.Expr) -> set[str]:
    """Return the dims that an expression reads."""
    return {node.name for node in walk(expr) if isinstance(node, ir.DimValue)}


def _of_i32(expr: ir.Expr) -> ir.Expr:
    """Return a length as the body of a kernel computes it, in i32."""
    if isinstance(expr, ir.UniformValue) and expr.type is Scalar.U32:
        return ir.Cast(expr, Scalar.I32)
    if isinstance(expr, ir.Cast) and isinstance(expr.operand, ir.UniformValue):
        return expr
    expr = map_children(expr, _of_i32)
    if isinstance(expr, ir.Binary | ir.BuiltinCall) and expr.type.is_integer:
        return replace(expr, type=Scalar.I32)
    return expr


def _subscript(value: ir.Expr) -> ir.Subscript:
    return value if isinstance(value, ir.IndexValue) else ir.Clamped(value)


def _endless(names: Iterable[str]) -> Iterator[str]:
    yield from names
    for number in range(1, 1000):
        yield f"i{number}"


def _bound(expr: ir.Expr) -> Iterator[ir.Index]:
    for node in walk(expr):
        if isinstance(node, ir.Reduce):
            yield from node.indices


def _named_apart(kernel: ir.Kernel) -> ir.Kernel:
    """Return the kernel with the text of each statement."""
    extents = {dim.name: dim.value for dim in kernel.derived}
    body = tuple(replace(s, text=statement_text(s, extents)) for s in kernel.body)
    return replace(kernel, body=body)

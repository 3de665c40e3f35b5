"""Checking a kernel's header: tensors, dims, scalars, defaults, and its requires."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, final

from kerngen.check import faults as diag
from kerngen.check.environment import Environment
from kerngen.check.expressions.checker import Expressions
from kerngen.check.expressions.lengths import MAX_EXTENT, check_length
from kerngen.check.expressions.reductions import KERNEL
from kerngen.check.expressions.rules import RequireRules
from kerngen.check.items.constants import check_default
from kerngen.check.items.structs import uniform_faults
from kerngen.check.items.types import (
    HALVES,
    report_narrow,
    resolve_element,
    resolve_type,
)
from kerngen.check.scope import (
    KINDS,
    ParameterSymbol,
    Poison,
    Scope,
    TensorSymbol,
    ValueSymbol,
    parameter_symbol,
)
from kerngen.check.traverse import names_in
from kerngen.ir import nodes as ir
from kerngen.ir.analysis.requirements import Known
from kerngen.ir.memory import NARROW, Leaf, Struct
from kerngen.ir.nodes import Expr, Parameter, Requirement
from kerngen.ir.types import Scalar
from kerngen.ir.walk import walk
from kerngen.source.similar import closest
from kerngen.syntax import ast


@final
@dataclass(frozen=True)
class Header:
    """Checks the head of a kernel, and declares its names in `scope`."""

    env: Environment
    scope: Scope
    dims: dict[str, ast.Name] = field(default_factory=dict[str, ast.Name])
    parameters: list[ir.Parameter] = field(default_factory=list[ir.Parameter])

    def check(self, item: ast.KernelItem) -> None:
        """Check all parameters and outputs; dims need all inputs to be known first."""
        inputs = [p for p in item.parameters if p.type.axes is not None]
        for parameter in item.parameters:
            self._reserve(parameter, "a parameter")
        for output in item.outputs:
            self._reserve(output, KINDS[ir.Role.OUTPUT])
        for name in _axis_names(inputs).values():
            self._declare_dim(name)
        # Scalars first: axes may be computed from those that follow them.
        for parameter in sorted(item.parameters, key=lambda p: p.type.axes is not None):
            self._check_parameter(parameter)
        for output in item.outputs:
            self._check_output(output)
        self._check_defaults(item)
        assigns = any(isinstance(s, ast.Assignment) for s in item.body)
        updates = any(p.mutable for p in item.parameters)
        if not item.outputs and not updates and not assigns:
            self.env.faults.add(diag.NoResult(span=item.name.span))

    def _reserve(self, parameter: ast.Parameter, kind: str) -> None:
        """Declare a parameter's name before its type is known, so that dims can clash with it.

        A name that two parameters have is poisoned, as it could mean either of them.
        """
        name = parameter.name
        if not self.scope.declare(name, Poison(kind, name.span)):
            self.env.written.add(name.name)
            self.scope.put(name.name, Poison("a parameter", parameter.span))

    def _define(
        self, name: ast.Identifier, symbol: TensorSymbol | ParameterSymbol | ValueSymbol
    ) -> None:
        """Give a reserved name its meaning, unless another parameter has the same name."""
        self.env.model.define(name.span, symbol)
        current = self.scope.get(name.name)
        if isinstance(current, Poison) and current.span == name.span:
            self.scope.put(name.name, symbol)

    def _declare_dim(self, name: ast.Name) -> None:
        """Declare the name of an input's axis as a dim, unless it is a constant or known."""
        symbol = self.scope.get(name.name)
        if isinstance(symbol, ValueSymbol) and isinstance(
            symbol.value, ir.DimValue | ir.ConstRef
        ):
            return
        if isinstance(symbol, Poison) and symbol.kind == "a constant":
            return
        dim = ValueSymbol("a dim", ir.DimValue(name.name), name.span)
        if self.scope.declare(name, dim):
            self.dims[name.name] = name
        else:
            self.env.written.add(name.name)
            self.scope.put(name.name, Poison("a parameter", name.span))

    # Parameters

    def _check_parameter(self, parameter: ast.Parameter) -> None:
        span, name = parameter.span, parameter.name
        if parameter.type.axes is not None:
            role = ir.Role.UPDATE if parameter.mutable else ir.Role.INPUT
            if parameter.default is not None:
                given = diag.TensorDefault(span=span, name=name.name, kind=KINDS[role])
                self.env.faults.add(given)
            self._add_tensor(parameter, role)
            return
        type_ = resolve_type(self.env.faults, parameter.type.name, self.env.structs)
        memory = type_ if type_ is None or isinstance(type_, Struct) else Leaf(type_)
        symbol = memory and parameter_symbol(name.name, memory, name.span)
        if parameter.mutable:
            kind = symbol.kind if symbol else "a scalar"
            self.env.faults.add(
                diag.MutableScalar(span=span, name=name.name, kind=kind)
            )
        elif memory and symbol:
            self._add_value(parameter, memory, symbol)

    def _check_defaults(self, item: ast.KernelItem) -> None:
        """Add the defaults, after all names of the header are declared."""
        written = {p.name.name: p.default for p in item.parameters}
        for n, parameter in enumerate(self.parameters):
            default = written[parameter.name]
            if default is not None:
                value = check_default(self.env, self.scope, default, parameter.memory)
                self.parameters[n] = replace(parameter, default=value)

    def _add_value(
        self,
        parameter: ast.Parameter,
        memory: Leaf | Struct,
        symbol: ValueSymbol | ParameterSymbol,
    ) -> None:
        if memory == Leaf(Scalar.BOOL):
            self._report_bool(parameter, "A parameter", "bool")
            return
        for fault in uniform_faults(memory, parameter.type.span):
            self.env.faults.add(fault)
        name = parameter.name.name
        self.parameters.append(ir.Parameter(name, memory, None, parameter.doc))
        self._define(parameter.name, symbol)

    def _report_bool(
        self, parameter: ast.Parameter, place: str, case: diag.NotAllowed
    ) -> None:
        text, span = parameter.type.span.one_line(), parameter.type.span
        self.env.faults.add(
            diag.TypeNotAllowed(span=span, case=case, place=place, type=text)
        )

    # Tensors

    def _check_output(self, output: ast.Parameter) -> None:
        if output.type.axes is None:
            type_ = resolve_type(self.env.faults, output.type.name, self.env.structs)
            if type_ is not None:
                self.env.faults.add(
                    diag.OutputForm(
                        span=output.span, name=output.name.name, type=type_.spelling
                    )
                )
            return
        self._add_tensor(output, ir.Role.OUTPUT)

    def _add_tensor(self, parameter: ast.Parameter, role: ir.Role) -> None:
        written = parameter.type.name
        type_ = resolve_element(self.env.faults, written, self.env.structs)
        is_half = written.name in HALVES
        narrow = NARROW[written.name].narrow if written.name in NARROW else None
        extents = [
            self._extent(axis, role, f"{parameter.name.name}_axis_{number}")
            for number, axis in enumerate(parameter.type.axes or ())
        ]
        if type_ is Scalar.BOOL:
            self._report_bool(parameter, "An element of a tensor", "bools")
            return
        if isinstance(type_, Scalar) and narrow and role is ir.Role.UPDATE:
            report_narrow(self.env.faults, written, f"An element of {KINDS[role]}")
            return
        known = tuple(extent for extent in extents if extent is not None)
        if type_ is None or len(known) < len(extents):
            return
        name = parameter.name
        doc, span = parameter.doc, name.span
        tensor = ir.Tensor(name.name, type_, known, role, doc, span, is_half, narrow)
        self.env.tensors.append(tensor)
        axes = tuple(axis.span for axis in parameter.type.axes or ())
        self._define(name, TensorSymbol(tensor, name.span, axes))

    def _extent(self, axis: ast.Expr, role: ir.Role, name: str) -> ir.Extent | None:
        """Return the length of an axis: a dim, a literal, or an expression of the host."""
        if isinstance(axis, ast.Number) and isinstance(axis.value, int):
            if 0 < axis.value <= MAX_EXTENT:
                return axis.value
        elif isinstance(axis, ast.Name):
            return self._named_extent(axis, role, name)
        elif not isinstance(axis, ast.Number):
            return self._computed(axis, role, name)
        self.env.faults.add(diag.AxisForm(span=axis.span, case=_wrong_axis(axis)))
        return None

    def _report_no_dim(self, axis: ast.Name) -> None:
        symbol, dims = self.scope.get(axis.name), tuple(self.dims)
        suggestion = closest(axis.name, dims)
        case: diag.NoDim = "dims" if dims else "no dims"
        if isinstance(symbol, TensorSymbol):
            case = "tensor"
        elif suggestion:
            case = "slip"
        elif symbol is not None:
            case = "taken, dims" if dims else "taken, no dims"
        self.env.faults.add(
            diag.OutputOnlyDim(
                span=axis.span, case=case, suggestion=suggestion, dims=dims
            )
        )

    def _computed(self, axis: ast.Expr, role: ir.Role, name: str) -> ir.Extent | None:
        ex = Expressions(self.env, self.scope, KERNEL)
        extent = check_length(ex, axis, f"An axis of {KINDS[role]}", name)
        # A name that is no dim is reported at its first use alone.
        for node in names_in(axis) if role is not ir.Role.OUTPUT else ():
            if extent is None and self.scope.of(node) is None:
                self.scope.put(node.name, Poison("a dim", node.span))
        return extent

    def _named_extent(
        self, axis: ast.Name, role: ir.Role, name: str
    ) -> ir.Extent | None:
        """Return the length of an axis that is a name: a dim, a constant, or a scalar."""
        symbol = self.scope.get(axis.name)
        match symbol:
            case ValueSymbol(value=ir.DimValue(name=name)):
                return name
            case ValueSymbol(value=ir.ConstRef(value=value, type=type_)):
                if type_.is_integer and 0 < value <= MAX_EXTENT:
                    return int(value)
                self.env.faults.add(
                    diag.AxisForm(
                        span=axis.span,
                        case="constant",
                        name=axis.name,
                        value=value,
                        type=type_.spelling,
                    )
                )
            case ValueSymbol(value=ir.UniformValue()) if role is ir.Role.OUTPUT:
                return self._computed(axis, role, name)
            case Poison(kind=kind) if kind != KINDS[ir.Role.OUTPUT]:
                pass
            case _ if role is ir.Role.OUTPUT:
                self._report_no_dim(axis)
            case _:
                pass
        return None


def _wrong_axis(axis: ast.Expr) -> Literal["empty", "fraction", "long"]:
    match axis:
        case ast.Number(value=0):
            return "empty"
        case ast.Number(value=float()):
            return "fraction"
        case _:
            return "long"


def _axis_names(inputs: list[ast.Parameter]) -> dict[str, ast.Name]:
    """Return the names among the axes, each at its first place."""
    first: dict[str, ast.Name] = {}
    for parameter in inputs:
        for axis in parameter.type.axes or ():
            if isinstance(axis, ast.Name):
                first.setdefault(axis.name, axis)
    return first


_LONGEST: Final = 80
"""A longer condition of a `require` is `...` in the error of a call."""


def check_requires(
    env: Environment,
    scope: Scope,
    item: ast.KernelItem,
    dims: Sequence[str],
    parameters: Sequence[Parameter],
) -> Known:
    """Return the facts that a kernel's `require`s prove about every call.

    `a and b` are two conditions, so that a call's error shows the one that is false.
    """
    unsigned = [p.name for p in parameters if p.memory.spelling == Scalar.U32.value]
    values = (s for s in item.equations if not isinstance(s, ast.Assignment))
    computed = frozenset(statement.name.name for statement in values)
    ex = Expressions(env, scope, RequireRules(computed))
    known = Known((), dims, unsigned, env.derived, env.hosts)
    for statement in item.requires:
        for node in _conjuncts(statement.condition):
            condition = _condition(ex, node)
            if condition is None or not _is_contingent(
                env, item, known, node, condition
            ):
                continue
            text = node.span.one_line(limit=_LONGEST)
            requirement = Requirement(condition, text, node.span)
            known = replace(known, requires=(*known.requires, requirement))
    return known


def _conjuncts(node: ast.Expr) -> Iterator[ast.Expr]:
    if isinstance(node, ast.Binary) and node.op == "and":
        yield from _conjuncts(node.left)
        yield from _conjuncts(node.right)
    else:
        yield node


def _condition(ex: Expressions, node: ast.Expr) -> Expr | None:
    """Check one condition of a `require`: true or false, by integers alone."""
    value = ex.check(node)
    if value is None:
        return None
    if any(part.type is Scalar.F32 for part in walk(value)):
        ex.rules.refuse(ex, node.span, "numbers with a fraction")
        return None
    if value.type is Scalar.BOOL:
        return value
    text = node.span.one_line()
    example = f"{text} == 0" if "%" in text else f"{text} > 0"
    ex.env.faults.add(diag.RequireType(span=node.span, example=example))
    return None


def _is_contingent(
    env: Environment,
    item: ast.KernelItem,
    known: Known,
    node: ast.Expr,
    condition: Expr,
) -> bool:
    """Whether a condition is true for some calls and false for others; report it if not."""
    guard = known.guard(condition)
    found = known.facts.decide(guard)
    if found is None:
        return True
    alone = replace(known, requires=()).facts.decide(guard) is not None
    case: Literal["alone", "beside"] = "alone" if alone else "beside"
    kind = diag.AlwaysMet if found else diag.NeverMet
    env.faults.add(kind(span=node.span, case=case, kernel=item.name.name))
    return False

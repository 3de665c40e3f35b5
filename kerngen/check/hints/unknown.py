"""Diagnostics of unknown names, with suggestions."""

from __future__ import annotations

from itertools import islice
from typing import Final, Literal

from kerngen.check import faults as diag
from kerngen.check.environment import Environment
from kerngen.check.expressions.checker import Expressions
from kerngen.check.hints.subscripts import INDEX_NAMES, example_read, free_names
from kerngen.check.items.types import HALVES, report_cast_to_half, report_narrow
from kerngen.check.scope import (
    IndexSymbol,
    Poison,
    Symbol,
    TensorSymbol,
    ValueSymbol,
    is_whole_tensor,
)
from kerngen.check.traverse import names_in
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.geometry import GEOMETRY
from kerngen.ir.memory import NARROW, Struct
from kerngen.ir.operators import is_composite
from kerngen.ir.types import CASTS, COMPOSITES, Matrix, Scalar, ValueType
from kerngen.source.similar import closest, did_you_mean
from kerngen.syntax import ast
from kerngen.syntax.faults import SeparateSubscripts
from kerngen.syntax.mistakes import foreign
from kerngen.syntax.mistakes.foreign_types import TYPES

_MOST_SUGGESTED: Final = 30
"""After so many unknown names of an item, no similar ones are looked for."""


def _why_undefined(
    ex: Expressions, name: str
) -> Literal["constant", "own", "mutual", "later"]:
    """Return why a value has no definition before its use."""
    env = ex.env
    if ex.rules.must_fit:
        return "constant"
    if env.current.in_let and env.current.target == name:
        return "own"
    if env.current.in_let and _reads(env, name, env.current.target):
        return "mutual"
    return "later"


def _reads(env: Environment, let: str, name: str) -> bool:
    """Whether a let further down reads a name."""
    return any(
        part.name == name
        for statement in env.current.body[env.current.place :]
        if isinstance(statement, ast.LetStatement) and statement.name.name == let
        for part in names_in(statement.value)
    )


def report_unknown(ex: Expressions, node: ast.Name, otherwise: str = "") -> None:
    """Report an unknown name, once.

    `otherwise` is the hint if no known name is similar.
    """
    name, env = node.name, ex.env
    if name in env.reported:
        return
    if name in env.later:
        env.faults.add(
            diag.UsedBeforeDefinition(
                span=node.span, other=env.later[name], case=_why_undefined(ex, name)
            )
        )
    elif name in env.indices or env.current.binds(name, node.span):
        env.drop_range_fault(name)
        env.faults.add(
            diag.IndexAsValue(span=node.span, declared=env.indices.get(name))
        )
        return
    else:
        remedy = _name_remedy(ex, name) or otherwise or _introduction(ex, name)
        env.faults.add(diag.UnknownName(span=node.span, remedy=remedy))
    env.reported.add(name)


def _name_remedy(ex: Expressions, name: str) -> str:
    """Return the hint for an unknown name that is, or is similar to, something known."""
    if name in foreign.VALUES:
        return f"Write {foreign.VALUES[name]}."
    if name in BUILTINS or name in GEOMETRY or name in ex.env.functions:
        return f"It is a function: call it, as in '{name}(x)'."
    if name in CASTS or name in COMPOSITES:
        return f"It is a type: '{name}(x)' makes a value of it."
    # Comparing names takes time, and a file with so many unknown ones needs no more hints.
    few = len(ex.env.reported) < _MOST_SUGGESTED
    known = [*ex.scope.names(), *ex.env.later] if few else []
    return did_you_mean(closest(name, known))


def _introduction(ex: Expressions, name: str) -> str:
    """Return how an unknown name is introduced here."""
    current = ex.env.current
    if not current.in_let or len(name) != 1:
        return ex.rules.introduction
    written = f"'let {current.target}[{name} < n] = ...;'"
    return f"An index is introduced on the left, with its range: {written}."


def is_tensor_of_numbers(ex: Expressions, node: ast.Expr) -> bool:
    """Whether an argument is a tensor without subscripts whose elements are scalars."""
    symbol = ex.scope.of(node)
    return is_whole_tensor(symbol) and isinstance(symbol.tensor.element, Scalar)


def report_unknown_function(ex: Expressions, node: ast.Call) -> None:
    """Report a call of an unknown function."""
    name, span = node.function.name, node.function.span
    symbol = ex.scope.get(name)
    faults = ex.env.faults
    if name == "bool":
        text = node.arguments[0].span.one_line() if node.arguments else "x"
        faults.add(diag.CastToBool(span=node.span, argument=text))
    elif name in HALVES:
        report_cast_to_half(faults, node)
    elif name in NARROW:
        report_narrow(faults, node.function, "A value")
    elif name in ex.env.structs:
        struct = ex.env.structs[name]
        member = struct.members[0].name if struct else "member"
        target = ex.env.current.target or "p"
        faults.add(
            diag.StructConstructed(
                span=node.span, struct=name, target=target, member=member
            )
        )
    elif isinstance(symbol, Poison):
        return
    elif symbol is not None:
        faults.add(
            diag.TensorAsFunction(span=span, declared=symbol.span, kind=symbol.kind)
        )
    else:
        remedy = _function_remedy(ex, node)
        faults.add(diag.UnknownFunction(span=span, remedy=remedy))


def _function_remedy(ex: Expressions, node: ast.Call) -> str:
    """Return the hint for a call of an unknown function."""
    name = node.function.name
    if name in foreign.OF_VECTORS and _takes_vectors(ex, node):
        return f"Write {foreign.OF_VECTORS[name]}."
    if name in foreign.REDUCTIONS:
        return f"Write {reduced_by(ex, node).by(name)}."
    if name in foreign.FUNCTIONS:
        given = [part.span.one_line() for part in node.arguments]
        return f"Write {foreign.called(name, given)}."
    known = [*ex.env.functions, *BUILTINS, *GEOMETRY, *CASTS, *COMPOSITES]
    ours = TYPES.get(name, "")
    similar = did_you_mean(ours if ours in known else closest(name, known))
    return similar or f"Define it: 'fn {name}(x: f32) -> f32 {{ ... }}'."


def _takes_vectors(ex: Expressions, node: ast.Call) -> bool:
    """Whether an argument is a vector or a matrix."""
    values = map(ex.env.model.value, node.arguments)
    return any(value is not None and is_composite(value.type) for value in values)


def reduced_by(ex: Expressions, node: ast.Call) -> foreign.Reduced:
    """Return the tensor and the axis that a call such as `mean(x)` would reduce."""
    if not node.arguments:
        return foreign.Reduced()
    argument = next(
        (part for part in node.arguments if isinstance(part, ast.Subscript)),
        node.arguments[0],
    )
    subscripts: tuple[ast.Expr, ...] = ()
    if isinstance(argument, ast.Subscript):
        subscripts = argument.subscripts
        argument = argument.base
    symbol = ex.scope.of(argument)
    if isinstance(argument, ast.Name) and not subscripts and symbol is not None:
        whole = foreign.Reduced("i", f"{argument.name}[i]", left="")
        if not isinstance(symbol, TensorSymbol) or not symbol.tensor.extents:
            return whole
    if not isinstance(symbol, TensorSymbol) or not symbol.tensor.extents:
        return foreign.Reduced()
    names = [subscript.span.one_line() for subscript in subscripts]
    unused = (name for name in INDEX_NAMES if name not in names)
    tensor = symbol.tensor
    names += [next(unused) for _ in range(tensor.rank - len(names))]
    *left, index = names[: tensor.rank]
    return foreign.Reduced(
        index,
        f"{tensor.name}[{', '.join((*left, index))}]",
        ex.env.length_text(tensor.extents[-1]),
        f"[{', '.join(left)}]" if left else "",
    )


def report_member(
    ex: Expressions, node: ast.Member, type_: ValueType | None = None
) -> None:
    """Report a member of a value that has no members; `type_` is None if it is unknown."""
    base = node.base
    symbol, remedy = ex.scope.of(base), ""
    if isinstance(type_, Matrix):
        remedy = f"A matrix has columns: '{base.span.one_line()}[0]'."
    ex.env.faults.add(
        diag.MemberOfScalar(
            span=node.member.span,
            declared=symbol.span if symbol else None,
            base=base.span.one_line(),
            kind=symbol.kind if symbol else "a value",
            remedy=remedy or _member_remedy(ex, symbol, node.member.name),
        )
    )


def _member_remedy(ex: Expressions, symbol: Symbol | None, member: str) -> str:
    """Return the hint for a member of a tensor such as `shape` or `T`."""
    if not isinstance(symbol, TensorSymbol):
        return "A value is one number: leave the member out."
    element = symbol.tensor.element
    if isinstance(element, Struct) and element.member(member) is not None:
        read = example_read(ex.env, ex.scope, symbol.tensor)
        return f"Subscript the tensor first: '{read}.{member}'."
    if member == "T":
        free = islice(free_names(ex.env, ex.scope), symbol.tensor.rank)
        indices = ", ".join(reversed([*free]))
        return f"Swap the subscripts: '{symbol.tensor.name}[{indices}]'."
    dims = [extent for extent in symbol.tensor.extents if isinstance(extent, str)]
    length = f"The length of an axis is its dim: '{dims[0]}'. " if dims else ""
    return f"{length}Elements are read as '{example_read(ex.env, ex.scope, symbol.tensor)}'."


def report_module(ex: Expressions, node: ast.Member) -> None:
    """Report a member of another language's module: `math.pi`."""
    member = node.member.name
    instead = foreign.VALUES.get(
        member, f"'{member}' alone, if it is one of your values"
    )
    ex.env.faults.add(diag.UnknownName(span=node.span, remedy=f"Write {instead}."))


def report_subscripts(ex: Expressions, node: ast.Subscript) -> None:
    """Report subscripts of a value that has no elements."""
    if isinstance(node.base, ast.Subscript):  # in brackets of their own: `x[i][j]`
        subscripts: list[str] = []
        base: ast.Expr = node
        while isinstance(base, ast.Subscript):
            subscripts[:0] = [part.span.one_line() for part in base.subscripts]
            base = base.base
        joined = f"{base.span.one_line()}[{', '.join(subscripts)}]"
        ex.env.faults.add(SeparateSubscripts(span=node.span, joined=joined))
        return
    symbol = ex.scope.of(node.base)
    remedy = (
        "Only tensors, lets with indices, arrays, vectors and matrices have elements."
    )
    if isinstance(symbol, ValueSymbol | IndexSymbol):
        remedy = "It is one number: read it by its bare name."
    ex.env.faults.add(
        diag.NotSubscriptable(
            span=node.span,
            declared=symbol.span if symbol else None,
            base=node.base.span.one_line(),
            kind=symbol.kind if symbol else "a value",
            remedy=remedy,
        )
    )

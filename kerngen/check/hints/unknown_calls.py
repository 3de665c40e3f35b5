"""Calls of what is no function here, and what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kerngen.check.faults.names import TensorAsFunction, UnknownFunction
from kerngen.check.faults.places import StructConstructed
from kerngen.check.faults.types import CastToBool
from kerngen.check.hints.examples import INDEX_NAMES
from kerngen.check.items.types import HALVES, report_cast_to_half, report_narrow
from kerngen.check.scope import Poison, TensorSymbol, one_line
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.geometry import GEOMETRY
from kerngen.ir.memory import NARROW
from kerngen.ir.operators import is_composite
from kerngen.ir.types import CASTS, COMPOSITES, Scalar
from kerngen.source.similar import closest, did_you_mean
from kerngen.syntax import ast
from kerngen.syntax.mistakes import foreign
from kerngen.syntax.mistakes.foreign_types import TYPES

if TYPE_CHECKING:
    from kerngen.check.expressions.checker import Expressions


def is_whole_tensor(ex: Expressions, node: ast.Expr) -> bool:
    """Whether an argument is a tensor by its bare name, as elsewhere it may be."""
    symbol = ex.scope.get(node.name) if isinstance(node, ast.Name) else None
    return isinstance(symbol, TensorSymbol) and symbol.tensor.rank > 0


def is_tensor_of_numbers(ex: Expressions, node: ast.Expr) -> bool:
    """Whether an argument is a whole tensor, and its elements have no components."""
    symbol = ex.scope.get(node.name) if isinstance(node, ast.Name) else None
    return (
        is_whole_tensor(ex, node)
        and isinstance(symbol, TensorSymbol)
        and isinstance(symbol.tensor.element, Scalar)
    )


def report_unknown_function(ex: Expressions, node: ast.Call) -> None:
    """Record a call of something that is no function."""
    name, span = node.function.name, node.function.span
    symbol = ex.scope.get(name)
    faults = ex.env.faults
    if name == "bool":
        text = one_line(node.arguments[0].span.text) if node.arguments else "x"
        faults.add(CastToBool(span=node.span, text=text))
    elif name in HALVES:
        report_cast_to_half(faults, node)
    elif name in NARROW:
        report_narrow(faults, node.function, "A value")
    elif name in ex.env.structs:
        struct = ex.env.structs[name]
        member = struct.members[0].name if struct else "member"
        target = ex.env.current.target or "p"
        faults.add(
            StructConstructed(span=node.span, struct=name, target=target, member=member)
        )
    elif isinstance(symbol, Poison):
        return
    elif symbol is not None:
        faults.add(
            TensorAsFunction(
                span=span, declared=symbol.span, name=name, kind=symbol.kind
            )
        )
    else:
        known = [*ex.env.functions, *BUILTINS, *GEOMETRY, *CASTS, *COMPOSITES]
        ours = TYPES.get(name, "")
        remedy = did_you_mean(ours if ours in known else closest(name, known))
        if name in foreign.OF_VECTORS and _takes_vectors(ex, node):
            remedy = f"Write {foreign.OF_VECTORS[name]}."
        elif name in foreign.REDUCTIONS:
            remedy = f"Write {reduced_by(ex, node).by(name)}."
        elif name in foreign.FUNCTIONS:
            given = [one_line(part.span.text) for part in node.arguments]
            remedy = f"Write {foreign.called(name, given)}."
        remedy = remedy or f"Define it: 'fn {name}(x: f32) -> f32 {{ ... }}'."
        faults.add(UnknownFunction(span=span, name=name, remedy=remedy))


def _takes_vectors(ex: Expressions, node: ast.Call) -> bool:
    """Whether an argument is a vector or a matrix."""
    plain = (part for part in node.arguments if not is_whole_tensor(ex, part))
    values = (ex.check(part) for part in plain)
    return any(value is not None and is_composite(value.type) for value in values)


def reduced_by(ex: Expressions, node: ast.Call) -> foreign.Reduced:
    """Read off what `mean(x)`, `mean(x[i])` or `mean(x[i, j])` reduces: a last axis."""
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
    symbol = ex.scope.get(argument.name) if isinstance(argument, ast.Name) else None
    if isinstance(argument, ast.Name) and not subscripts and symbol is not None:
        whole = foreign.Reduced("i", f"{argument.name}[i]", left="")
        if not isinstance(symbol, TensorSymbol) or not symbol.tensor.extents:
            return whole
    if not isinstance(symbol, TensorSymbol) or not symbol.tensor.extents:
        return foreign.Reduced()
    names = [one_line(subscript.span.text) for subscript in subscripts]
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

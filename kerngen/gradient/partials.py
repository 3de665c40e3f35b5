"""The derivatives of built-ins, from their rows in the table.

At a tie `max` and `min` give half to each argument: the mean of both sides' derivatives.
So kinks that cancel do so at the kink, too: `max(x, 0.0) + log(1.0 + exp(-abs(x)))` has
the slope 1/2 at 0.
"""

from __future__ import annotations

from functools import cache

from kerngen.check.files.checker import Checker
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.nodes import BuiltinCall, Expr, LocalValue
from kerngen.ir.types import Scalar
from kerngen.ir.walk import map_children
from kerngen.syntax.library import Library


@cache
def _template(name: str, place: int) -> Expr:
    """Return a built-in's derivative as an expression of locals named x, y, z and f."""
    row = BUILTINS[name]
    overload = next(o for o in row.overloads if o.result is Scalar.F32)
    types = zip(("x", "y", "z"), overload.parameters, strict=False)
    parameters = ", ".join(f"{local}: {type_.spelling}" for local, type_ in types)
    assert row.partials is not None
    text = row.partials[place]
    source = f"fn partial({parameters}, f: f32) -> f32 {{ {text} }}\n"
    module = Checker(Library.of_text(source, "partial.kern")).module("partial.kern")
    return module.functions[0].body


def partials(call: BuiltinCall) -> tuple[Expr, ...] | None:
    """Return a call's derivative by each argument, or None if it has none."""
    if BUILTINS[call.builtin].partials is None:
        return None
    return tuple(_partial(call, place) for place in range(len(call.arguments)))


def _partial(call: BuiltinCall, place: int) -> Expr:
    """Return the derivative by one argument: its template, with x, y, z and f put in."""
    by = dict(zip(("x", "y", "z"), call.arguments, strict=False)) | {"f": call}

    def visit(expr: Expr) -> Expr:
        if isinstance(expr, LocalValue):
            return by[expr.name]
        return map_children(expr, visit)

    return visit(_template(call.builtin, place))

"""The derivatives of built-ins, by each argument, in the language itself.

`x`, `y` and `z` are the arguments, `f` is the result.  An empty text is a derivative
that is 0 wherever there is one.  At a tie `max` and `min` give half to each argument:
the mean of both sides' derivatives.  So kinks that cancel do so at the kink, too:
`max(x, 0.0) + log(1.0 + exp(-abs(x)))` has the slope 1/2 at 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from kerngen.check.files import Checker
from kerngen.ir.nodes import Expr, LocalValue
from kerngen.ir.walk import map_children
from kerngen.syntax.library import Library

PARTIALS: Final[Mapping[str, tuple[str, ...]]] = {
    "abs": ("sign(x)",),
    "sign": ("",),
    "min": (
        "if x < y { 1.0 } else if x == y { 0.5 } else { 0.0 }",
        "if y < x { 1.0 } else if x == y { 0.5 } else { 0.0 }",
    ),
    "max": (
        "if x > y { 1.0 } else if x == y { 0.5 } else { 0.0 }",
        "if y > x { 1.0 } else if x == y { 0.5 } else { 0.0 }",
    ),
    "saturate": (
        "if x > 0.0 and x < 1.0 { 1.0 } "
        "else if x == 0.0 or x == 1.0 { 0.5 } else { 0.0 }",
    ),
    "clamp": (
        "if x > y and x < z { 1.0 } "
        "else if (x == y or x == z) and y < z { 0.5 } else { 0.0 }",
        "if x < y and y < z { 1.0 } else if x == y and y < z { 0.5 } else { 0.0 }",
        "if x > z or y > z { 1.0 } else if x == z { 0.5 } else { 0.0 }",
    ),
    "floor": ("",),
    "ceil": ("",),
    "round": ("",),
    "trunc": ("",),
    "fract": ("1.0",),
    "sqrt": ("0.5 / f",),
    "inverseSqrt": ("-0.5 * f / x",),
    "exp": ("f",),
    "exp2": ("0.6931471805599453 * f",),
    "expm1": ("f + 1.0",),
    "log": ("1.0 / x",),
    "log2": ("1.4426950408889634 / x",),
    "log1p": ("1.0 / (1.0 + x)",),
    "sin": ("cos(x)",),
    "cos": ("-sin(x)",),
    "tan": ("1.0 + f * f",),
    "asin": ("1.0 / sqrt(1.0 - x * x)",),
    "acos": ("-1.0 / sqrt(1.0 - x * x)",),
    "atan": ("1.0 / (1.0 + x * x)",),
    "sinh": ("cosh(x)",),
    "cosh": ("sinh(x)",),
    "tanh": ("1.0 - f * f",),
    "asinh": ("1.0 / sqrt(x * x + 1.0)",),
    "acosh": ("1.0 / sqrt(x * x - 1.0)",),
    "atanh": ("1.0 / (1.0 - x * x)",),
    "erf": ("1.1283791670955126 * exp(-x * x)",),
    "degrees": ("57.29577951308232",),
    "radians": ("0.017453292519943295",),
    "quantizeToF16": ("1.0",),
    "pow": (
        "if y == 0.0 { 0.0 } else { y * pow(x, y - 1.0) }",
        "if x > 0.0 { f * log(x) } else { 0.0 }",
    ),
    "atan2": ("y / (x * x + y * y)", "-x / (x * x + y * y)"),
    "step": ("", ""),
    "fma": ("y", "x", "1.0"),
    "mix": ("1.0 - z", "z", "y - x"),
    "smoothstep": (
        "if z > x and z < y { 6.0 * (z - x) * (z - y) * (y - z) / "
        "((y - x) * (y - x) * (y - x) * (y - x)) } else { 0.0 }",
        "if z > x and z < y { 6.0 * (z - x) * (z - x) * (z - y) / "
        "((y - x) * (y - x) * (y - x) * (y - x)) } else { 0.0 }",
        "if z > x and z < y { 6.0 * (z - x) * (y - z) / "
        "((y - x) * (y - x) * (y - x)) } else { 0.0 }",
    ),
    "ldexp": ("ldexp(1.0, y)", ""),
}


@cache
def template(text: str, arity: int) -> Expr:
    """Return a derivative as an expression of locals named x, y, z and f."""
    typed = ", ".join(f"{name}: f32" for name in ("x", "y", "z")[:arity])
    integer = typed.replace("y: f32", "y: i32") if "ldexp" in text else typed
    path = "partial.kern"
    source = f"fn partial({integer}, f: f32) -> f32 {{ {text} }}\n"
    module = Checker(Library.of_text(source, path)).module(path)
    return module.functions[0].body


def applied(text: str, arguments: tuple[Expr, ...], result: Expr) -> Expr:
    """Return a derivative at these arguments."""
    by = dict(zip(("x", "y", "z"), arguments, strict=False)) | {"f": result}

    def visit(expr: Expr) -> Expr:
        if isinstance(expr, LocalValue):
            return by[expr.name]
        return map_children(expr, visit)

    return visit(template(text, len(arguments)))

"""Print a reference's parameters, and parts of them.

A scalar is a Python number.  A part of a struct that depends on an index is gathered from an
array of all such parts, which is made before the statements:

    scene.lights[j].color    ->    scene_lights_color = real([item.color for item in ...])
                                   scene_lights_color[j]
"""

from __future__ import annotations

from kerngen.emit.members import is_static, literal_place
from kerngen.emit.python_code import Code, call
from kerngen.emit.reference.runs import Frame
from kerngen.emit.reference.scope import ExpressionPrinter, FunctionBody
from kerngen.ir import nodes as ir
from kerngen.ir.memory import Leaf
from kerngen.ir.types import Scalar
from kerngen.ir.walk import subscript_value

NUMBERS = {Scalar.F32: "float", Scalar.I32: "int", Scalar.U32: "int"}
"""The function that makes a Python number of each type."""


def print_uniform(
    printer: ExpressionPrinter, expr: ir.UniformValue, frame: Frame
) -> Code:
    """Return the code of a parameter, a host or a part of one, aligned with the frame."""
    scope = printer.scope
    if is_static(expr.path):
        code = print_static(scope, expr)
        assert code is not None, "its path is literal"
        return code
    # An array of all parts, with an axis for each subscript that is no literal.
    text = _typed(scope, expr, scope.argument(expr)).text
    words = [step.name for step in expr.path if isinstance(step, ir.Field)]
    source = scope.gather_source("_".join([expr.name, *words]), text)
    steps = (step for step in expr.path if isinstance(step, ir.At))
    free = [step.place for step in steps if literal_place(step) is None]
    places = [printer.print(subscript_value(place), frame) for place in free]
    texts = [place.text for place in places]
    # Loop variables and scalars, all inside of their axes: plain subscripts are enough.
    if all(p.weak for p in places) and not any(isinstance(p, ir.Clamped) for p in free):
        return Code(f"{source}[{', '.join(texts)}]")
    return call("ref.at", [source, *texts])


def print_static(scope: FunctionBody, expr: ir.Expr) -> Code | None:
    """Return the code of a parameter or its part, if all subscripts are literals, else None.

    Before:  camera.view[3].x
    After:   float(camera.view[3][0])
    """
    found = _static(scope, expr)
    if found is None:
        return None
    value, text = found
    # Vectors and f16 are arrays; a scalar parameter is a Python number already; a part of
    # another one is made a number.
    if not isinstance(expr.type, Scalar) or _is_half(scope, value):
        return _typed(scope, value, text)
    if text == scope.names[value.name]:
        return Code(text, weak=True)
    return Code(f"{NUMBERS[expr.type]}({text})", weak=True)


def _static(scope: FunctionBody, expr: ir.Expr) -> tuple[ir.UniformValue, str] | None:
    """Return the parameter that an expression is a part of, and the part."""
    match expr:
        case ir.UniformValue(path=path):
            return (expr, scope.argument(expr)) if is_static(path) else None
        case ir.Swizzle(operand=operand, components=components, type=Scalar()):
            place: int | None = "xyzw".index(components)
        case ir.Part(operand=operand, at=at):
            place = literal_place(at)
        case _:
            return None
    found = _static(scope, operand)
    if found is None or place is None:
        return None
    value, text = found
    return value, f"{text}[{place}]"


def _typed(scope: FunctionBody, value: ir.UniformValue, text: str) -> Code:
    """Return an argument's part as an array of the type that the kernel reads."""
    return (
        scope.halved(text)
        if _is_half(scope, value)
        else scope.typed(Code(text), value.type)
    )


def _is_half(scope: FunctionBody, value: ir.UniformValue) -> bool:
    if value.name not in scope.parameters:
        return False
    leaf = ir.reach(scope.parameters[value.name], value.path)
    return isinstance(leaf, Leaf) and leaf.is_half

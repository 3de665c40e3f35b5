"""Print operations on vectors and matrices: parts, constructors and products."""

from __future__ import annotations

from kerngen.emit.members import literal_place
from kerngen.emit.python_code import Code, call
from kerngen.emit.reference.arguments import print_static
from kerngen.emit.reference.runs import Frame
from kerngen.emit.reference.scope import Printer
from kerngen.emit.reference.types import inner, lift
from kerngen.ir.nodes import Binary, Clamped, Construct, Part, Swizzle
from kerngen.ir.types import Matrix, Scalar, Vector
from kerngen.ir.walk import subscript_value


def print_swizzle(printer: Printer, expr: Swizzle, frame: Frame) -> Code:
    """
    Take components of a vector by their letters.

    Before:  v.x      v.xy        v.zyx
    After:   v[..., 0]  v[..., :2]  v[..., [2, 1, 0]]
    """
    static = print_static(printer.scope, expr)
    if static is not None:
        return static
    operand = printer.print(expr.operand, frame)
    places = ["xyzw".index(letter) for letter in expr.components]
    if len(places) == 1:
        return inner(operand, [str(places[0])])
    if places == [*range(len(places))]:
        return inner(operand, [f":{len(places)}"])
    return Code(inner(operand, [str(places)]).text, fresh=True)


def print_part(printer: Printer, expr: Part, frame: Frame) -> Code:
    """
    Take a component of a vector or a column of a matrix by its number.

    Before:  m[1]         m[k]
    After:   m[..., 1, :]  geometry.column(m, k)
    """
    static = print_static(printer.scope, expr)
    if static is not None:
        return static
    operand = printer.print(expr.operand, frame)
    is_column = isinstance(expr.operand.type, Matrix)
    literal = literal_place(expr.at)
    place = printer.print(subscript_value(expr.at.place), frame)
    if literal is not None:
        return inner(operand, _of_column(str(literal), is_column=is_column))
    if place.weak and not isinstance(expr.at.place, Clamped):
        return inner(operand, _of_column(place.text, is_column=is_column))
    function = "geometry.column" if is_column else "geometry.component"
    return call(function, [operand.text, place.text])


def _of_column(place: str, *, is_column: bool) -> list[str]:
    return [place, ":"] if is_column else [place]


def print_construct(printer: Printer, expr: Construct, frame: Frame) -> Code:
    """
    Make a vector or a matrix of its parts.

    Before:  vec3f(x, y, 1.0)                 vec4f(v, 1.0)
    After:   geometry.vector(real, x, y, 1.0)  geometry.join(v, real([1.0]))
    """
    codes = [printer.print(part, frame) for part in expr.parts]
    texts = [code.text for code in codes]
    if isinstance(expr.type, Matrix):
        return call("geometry.matrix", texts)
    if len(codes) == 1 and isinstance(expr.parts[0].type, Vector):
        return codes[0]
    maker = printer.scope.maker(expr.type)
    if all(isinstance(part.type, Scalar) for part in expr.parts):
        if len(texts) == 1:
            return call("geometry.splat", [maker, str(expr.type.width), *texts])
        return call("geometry.vector", [maker, *texts])
    parts = [
        (
            f"{maker}([{code.text}])"
            if code.weak
            else lift(code, part.type, expr.type).text
        )
        for code, part in zip(codes, expr.parts, strict=True)
    ]
    return call("geometry.join", parts)


def print_product(expr: Binary, left: Code, right: Code) -> Code | None:
    """Return a product with a matrix that is not componentwise, else None."""
    function = _product_function(expr) if expr.op == "*" else None
    return None if function is None else call(function, [left.text, right.text])


def _product_function(expr: Binary) -> str | None:
    match expr.left.type, expr.right.type:
        case Matrix(), Vector():
            return "geometry.matrix_by_vector"
        case Vector(), Matrix():
            return "geometry.vector_by_matrix"
        case Matrix(), Matrix():
            return "geometry.matrix_by_matrix"
        case _:
            return None

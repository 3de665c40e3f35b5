"""Print expressions as NumPy code over whole arrays.

Every value keeps the kernel's type: arrays are of `real`, int32, uint32 or bool, and
Python's numbers stay weak, so that NumPy gives them the type of the array they meet.
Where only weak ones meet, the first is made an array:

    x[i] + 1        ->    x + 1                the 1 is weak
    n + 1, in i32   ->    ref.i32(n) + 1       else Python's sum would not wrap
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never, final

from kerngen.emit.calls import fill_template
from kerngen.emit.members import literal_place
from kerngen.emit.python_code import Code, Precedence, binary, call, number
from kerngen.emit.reference.arguments import print_static, print_uniform
from kerngen.emit.reference.load import print_index, print_load
from kerngen.emit.reference.reduce import print_reduce
from kerngen.emit.reference.runs import Frame
from kerngen.emit.reference.scope import ExpressionPrinter, FunctionBody
from kerngen.emit.reference.types import inner, is_float, lift, widest
from kerngen.ir import nodes as ir
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.geometry import GEOMETRY
from kerngen.ir.nodes import Binary, Clamped, Construct, Part, Swizzle
from kerngen.ir.store import StoreAt
from kerngen.ir.types import Matrix, Scalar, Vector, scalar_of
from kerngen.ir.walk import subscript_value, walk

_FUNCTIONS_OF_INTEGERS: dict[ir.BinaryOp, str] = {
    "/": "ref.idiv",
    "%": "ref.irem",
    "<<": "ref.shift_left",
    ">>": "ref.shift_right",
}
_FUNCTIONS_OF_FLOATS: dict[ir.BinaryOp, str] = {"%": "np.fmod"}
_OPERATORS: dict[ir.BinaryOp, ir.BinaryOp] = {"and": "&", "or": "|"}
_COMPARISONS = frozenset[ir.BinaryOp](("==", "!=", "<", "<=", ">", ">=", "and", "or"))
_SHIFTS = frozenset[ir.BinaryOp](("<<", ">>"))
"""The operators whose sides differ in type: the type of the left one is the result's."""
_EXACT = frozenset[ir.BinaryOp](("+", "-", "*"))
"""The operators that are the same for Python's floats as for arrays; integers may wrap."""


@final
class ReferencePrinter:
    """Prints the expressions of one generated function as Python code."""

    def __init__(self, scope: FunctionBody) -> None:
        self._scope = scope

    @property
    def scope(self) -> FunctionBody:
        """The function being printed."""
        return self._scope

    def print(self, expr: ir.Expr, frame: Frame) -> Code:
        """Return the code of an expression, whose value is aligned with the frame."""
        match expr:
            case ir.Constant(value=value):
                return number(value)
            case ir.ConstRef(name=name):
                return Code(self._scope.constants[name], weak=True)
            case ir.IndexValue(index=index):
                return print_index(self._scope, index, frame)
            case ir.DimValue(name=name):
                return Code(self._scope.dim(name), weak=True)
            case ir.UniformValue():
                return print_uniform(self, expr, frame)
            case ir.LocalValue(name=name):
                return Code(self._scope.names[name])
            case ir.Load():
                return print_load(self, expr, frame)
            case ir.Swizzle():
                return print_swizzle(self, expr, frame)
            case ir.Part():
                return print_part(self, expr, frame)
            case ir.Construct():
                return print_construct(self, expr, frame)
            case ir.Unary():
                return self._unary(expr, frame)
            case ir.Binary():
                return self._binary(expr, frame)
            case ir.Select():
                return self._select(expr, frame)
            case ir.Cast():
                return self._cast(expr, frame)
            case ir.BuiltinCall():
                return self._builtin(expr, frame)
            case ir.FunctionCall():
                return self._function(expr, frame)
            case ir.Reduce():
                return print_reduce(self, expr, frame)
            case StoreAt():
                raise AssertionError("statements print their positions themselves")
            case _:
                assert_never(expr)

    def array(self, expr: ir.Expr, frame: Frame) -> Code:
        """Return the code of an expression, made an array if it is a plain number."""
        code = self.print(expr, frame)
        return self._scope.typed(code, expr.type) if code.weak else code

    def _operands(self, operands: Iterable[ir.Expr], frame: Frame) -> list[Code]:
        """Return operands, of which those of the first one's type are not all weak."""
        listed = list(operands)
        codes = [self.print(operand, frame) for operand in listed]
        of = listed[0].type
        alike = (code for code, x in zip(codes, listed, strict=True) if x.type == of)
        if all(code.weak for code in alike):
            codes[0] = self._scope.typed(codes[0], of)
        return self._level(listed, codes)

    def _level(self, operands: Sequence[ir.Expr], codes: Iterable[Code]) -> list[Code]:
        """Return operands with as many axes of components as any of them has."""
        to = widest(*(operand.type for operand in operands))
        pairs = zip(operands, codes, strict=True)
        return [lift(code, operand.type, to) for operand, code in pairs]

    def _unary(self, expr: ir.Unary, frame: Frame) -> Code:
        operand = self.print(expr.operand, frame)
        if operand.weak and expr.op == "not":
            return Code(f"not {operand.at(Precedence.NOT)}", Precedence.NOT, weak=True)
        if operand.weak and expr.op == "~":
            operand = self._scope.typed(operand, expr.type)
        op = "~" if expr.op == "not" else expr.op
        text = f"{op}{operand.at(Precedence.UNARY)}"
        return Code(text, Precedence.UNARY, operand.weak, fresh=not operand.weak)

    def _binary(self, expr: ir.Binary, frame: Frame) -> Code:
        sides = (expr.left, expr.right)
        pair = [self.print(side, frame) for side in sides]
        product = print_product(expr, *pair)
        if product is not None:
            return product
        # Two Python numbers: comparisons and exact floats stay, others become arrays.
        of = scalar_of(expr.left.type)
        weak = pair[0].weak and (pair[1].weak or expr.op in _SHIFTS)
        stays = expr.op in _COMPARISONS or (expr.op in _EXACT and is_float(of))
        if weak and not stays:
            pair[0] = self._scope.typed(pair[0], of)
            weak = False
        left, right = self._level(sides, pair)
        functions = _FUNCTIONS_OF_INTEGERS if of.is_integer else _FUNCTIONS_OF_FLOATS
        if expr.op in functions:
            return call(functions[expr.op], [left.text, right.text])
        return binary(_OPERATORS.get(expr.op, expr.op), left, right, weak=weak)

    def _select(self, expr: ir.Select, frame: Frame) -> Code:
        condition = self.print(expr.condition, frame)
        condition = lift(condition, expr.condition.type, expr.type)
        branches = self._operands((expr.then, expr.otherwise), frame)
        # For type checkers: functions and elements are Any, of which they can't infer the
        # type of `np.where`; `ref.where` has one.
        untyped = any(isinstance(node, ir.FunctionCall) for node in walk(expr))
        untyped |= all(code.text.endswith("]") for code in branches)
        function = "ref.where" if untyped else "np.where"
        return call(function, [condition.text, *(code.text for code in branches)])

    def _cast(self, expr: ir.Cast, frame: Frame) -> Code:
        operand = self.print(expr.operand, frame)
        if expr.type is Scalar.BOOL:
            array = self.array(expr.operand, frame)
            return binary("!=", array, Code("0"))
        return self._scope.typed(operand, expr.type)

    def _builtin(self, expr: ir.BuiltinCall, frame: Frame) -> Code:
        if expr.builtin in GEOMETRY:
            arguments = [self.array(argument, frame) for argument in expr.arguments]
            return fill_template(GEOMETRY[expr.builtin].numpy, arguments)
        # Functions of `ref` look at the types of all arguments: none may be weak.
        template = BUILTINS[expr.builtin].numpy
        if "ref." in template:
            arrays = (self.array(argument, frame) for argument in expr.arguments)
            arguments = self._level(expr.arguments, arrays)
        else:
            arguments = self._operands(expr.arguments, frame)
        return fill_template(template, arguments)

    def _function(self, expr: ir.FunctionCall, frame: Frame) -> Code:
        function = self._scope.functions[expr.function]
        arguments = [self.array(argument, frame).text for argument in expr.arguments]
        if function.needs_real:
            self._scope.uses_real = True
            arguments.insert(0, "real")
        return call(function.name, arguments, fresh=function.fresh)


# Operations on vectors and matrices: parts, constructors and products


def print_swizzle(printer: ExpressionPrinter, expr: Swizzle, frame: Frame) -> Code:
    """Return the code that takes components of a vector by their letters.

    Before:  v.x      v.xy        v.zyx
    After:   v[..., 0]  v[..., :2]  v[..., [2, 1, 0]]
    """
    static = print_static(printer.scope, expr)
    if static is not None:
        return static
    operand = printer.print(expr.operand, frame)
    # A view where NumPy has one: a component, or the first ones.
    places = ["xyzw".index(letter) for letter in expr.components]
    if len(places) == 1:
        return inner(operand, [str(places[0])])
    if places == [*range(len(places))]:
        return inner(operand, [f":{len(places)}"])
    return Code(inner(operand, [str(places)]).text, fresh=True)


def print_part(printer: ExpressionPrinter, expr: Part, frame: Frame) -> Code:
    """Return the code that takes a vector's component or a matrix's column by its number.

    Before:  m[1]         m[k]
    After:   m[..., 1, :]  geometry.column(m, k)
    """
    static = print_static(printer.scope, expr)
    if static is not None:
        return static
    operand = printer.print(expr.operand, frame)
    is_column = isinstance(expr.operand.type, Matrix)
    # A literal place, a number that is inside, or a computed one that is clamped.
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


def print_construct(printer: ExpressionPrinter, expr: Construct, frame: Frame) -> Code:
    """Return the code that makes a vector or a matrix of its parts.

    Before:  vec3f(x, y, 1.0)                 vec4f(v, 1.0)
    After:   geometry.vector(real, x, y, 1.0)  geometry.join(v, real([1.0]))
    """
    # Columns; another vector; one scalar; scalars; or scalars and vectors.
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
    """Return the code of a product with a matrix, if it is not componentwise, else None."""
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

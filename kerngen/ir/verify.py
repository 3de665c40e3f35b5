"""The verifier of the typed IR: invariants that hold after every pass.

`verify_module` returns the violated invariants as sentences, none for valid IR.  Each is a
bug of kerngen, never of a user's program.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import assert_never, final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import affine_form
from kerngen.ir.analysis.positions import moving_index
from kerngen.ir.builtins.evaluate import NotFiniteError, as_f32, bounds
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.dump import dump_expr
from kerngen.ir.geometry import GEOMETRY
from kerngen.ir.memory import LEAVES, NARROW, Leaf, MemoryType, Struct
from kerngen.ir.module import Module
from kerngen.ir.operators import (
    composite_type,
    fits_construct,
    is_composite,
    part_type,
    swizzle_type,
)
from kerngen.ir.store import StoreAt
from kerngen.ir.types import Scalar, scalar_of
from kerngen.ir.walk import children, places_in, subscript_value

_ELEMENTS = frozenset((*LEAVES.values(), *NARROW.values()))
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_LOGIC = frozenset({"and", "or"})
_SHIFTS = frozenset({"<<", ">>"})
_ON_BITS = frozenset({"&", "|", "^"})


@final
@dataclass(frozen=True)
class VisibleNames:
    """The names that an expression may use.

    In a `free` expression number types may mix: hosts and derived lengths have such ones.
    """

    functions: Mapping[str, ir.Function]
    dims: frozenset[str] = frozenset()
    uniforms: Mapping[str, MemoryType] = field(default_factory=dict[str, MemoryType])
    locals: frozenset[ir.LocalValue] = frozenset()
    tensors: frozenset[ir.Tensor] = frozenset()
    free: bool = False


def verify_module(module: Module) -> list[str]:
    """Return the violated invariants of a module; each is a bug of kerngen."""
    faults: list[str] = []
    known: dict[str, ir.Function] = {}
    for function in module.functions:
        where = f"function '{function.name}'"
        faults += (f"{where}: {fault}" for fault in _function(function, known))
        known[function.name] = function
    for kernel in module.kernels:
        faults += verify_kernel(kernel, known)
    return faults


def verify_kernel(kernel: ir.Kernel, functions: Mapping[str, ir.Function]) -> list[str]:
    """Return the violated invariants of a kernel."""
    faults = [*_header(kernel)]
    dims = frozenset(kernel.lengths)
    uniforms = {p.name: p.memory for p in kernel.parameters}
    reach = VisibleNames(functions, frozenset(kernel.dims), uniforms, free=True)
    for derived in kernel.derived:
        faults += verify_expr(derived.value, reach)
    for host in kernel.hosts:
        faults += _host(host, VisibleNames(functions, dims, uniforms, free=True))
        uniforms = {**uniforms, host.name: Leaf(host.type)}
    # A statement may read tensors and earlier lets; a recurrence also itself.
    tensors = set(kernel.tensors)
    for statement in kernel.body:
        itself = {statement.target} if statement.along else set[ir.Tensor]()
        known = frozenset(tensors | itself)
        reach = VisibleNames(functions, dims, uniforms, tensors=known)
        faults += _statement(statement, reach)
        if statement.target.role is ir.Role.LET:
            tensors.add(statement.target)
    return [f"kernel '{kernel.name}': {fault}" for fault in faults]


# Parts of a module


def _function(function: ir.Function, known: Mapping[str, ir.Function]) -> Iterator[str]:
    locals_ = set(function.parameters)
    for local, value in function.lets:
        reach = VisibleNames(known, locals=frozenset(locals_))
        yield from verify_expr(value, reach)
        if local.type != value.type:
            yield f"let '{local.name}' has the type of another value"
        locals_.add(local)
    yield from verify_expr(
        function.body, VisibleNames(known, locals=frozenset(locals_))
    )
    if function.body.type != function.type:
        yield "the body has another type than the function"


def _header(kernel: ir.Kernel) -> Iterator[str]:
    for tensor in kernel.tensors:
        if tensor.role is ir.Role.LET or tensor.element is Scalar.BOOL:
            yield f"tensor '{tensor.name}' is no parameter or output"
        known = isinstance(tensor.element, Struct) or tensor.memory in _ELEMENTS
        if tensor.role is not ir.Role.LET and not known:
            yield f"tensor '{tensor.name}' keeps as f16 or few bits what is of another type"
        for extent in tensor.extents:
            if isinstance(extent, str) and extent not in kernel.lengths:
                yield f"tensor '{tensor.name}' has the unknown dim '{extent}'"
    names = {
        tensor.name for tensor in kernel.tensors if tensor.role is not ir.Role.OUTPUT
    }
    names |= {parameter.name for parameter in kernel.parameters}
    if names != set(kernel.order) or len(kernel.order) != len(names):
        yield "the order of the parameters does not name each once"
    outputs = {t for t in kernel.tensors if t.role is ir.Role.OUTPUT}
    for tensor in outputs - {statement.target for statement in kernel.body}:
        yield f"output '{tensor.name}' is never written"


def _host(host: ir.Host, reach: VisibleNames) -> Iterator[str]:
    yield from verify_expr(host.value, reach)
    if host.type not in {Scalar.I32, Scalar.F32} or host.type != host.value.type:
        yield f"host '{host.name}' is neither an i32 nor an f32 of its value's type"


def _statement(statement: ir.Statement, reach: VisibleNames) -> Iterator[str]:
    target = statement.target
    if target.role is ir.Role.INPUT:
        yield f"input '{target.name}' is written"
    if target.role is not ir.Role.LET and target not in reach.tensors:
        yield f"'{target.name}' is no tensor of the kernel"
    # The statement's indices: those of the tensor's axes, then those in its path.
    inner = [s for s in statement.path if isinstance(s, ir.At) and not _is_fixed(s)]
    own = statement.indices[: len(statement.indices) - len(inner)]
    lengths = tuple(index.extent for index in statement.indices[len(own) :])
    is_whole = tuple(index.extent for index in own) == target.extents
    if lengths != tuple(step.length for step in inner):
        yield f"the indices of '{target.name}' do not range over its parts"
    if isinstance(statement.value, StoreAt):
        yield from _positions(statement.value, target, own)
    elif not is_whole:
        yield f"the indices of '{target.name}' do not range over its axes"
    indices = map(ir.IndexValue, statement.indices[len(own) :])
    if [step.place for step in inner] != list(indices):
        yield f"the path into '{target.name}' has other indices than the statement"
    if len({index.name for index in statement.indices}) < len(statement.indices):
        yield f"the indices of '{target.name}' are not distinct"
    if statement.value.type != statement.written:
        yield f"'{target.name}' is given a value of another type"
    yield from verify_expr(statement.value, reach, statement.indices)


def _positions(
    stored: StoreAt, target: ir.Tensor, indices: tuple[ir.Index, ...]
) -> Iterator[str]:
    """Yield the faults of a store's position: each index must be in one subscript."""
    if len(stored.places) != target.rank:
        yield f"'{target.name}' is stored at a wrong number of subscripts"
    if target.role is not ir.Role.UPDATE:
        yield f"'{target.name}' is stored at a position, and is no 'mut' parameter"
    used = [moving_index(place) for place in stored.places]
    if [index for index in used if index is not None] != [*indices]:
        yield f"the position in '{target.name}' may be the same for two elements"


def _is_fixed(at: ir.At) -> bool:
    return isinstance(subscript_value(at.place), ir.Constant)


# Expressions


def verify_expr(
    expr: ir.Expr, reach: VisibleNames, indices: tuple[ir.Index, ...] = ()
) -> Iterator[str]:
    """Yield the violated invariants of an expression and its parts.

    It may use the names in `reach`, and the `indices` of what is around it.
    """
    inner = indices
    if isinstance(expr, ir.Reduce):
        inner = (*indices, *expr.indices)
    for child in children(expr):
        yield from verify_expr(child, reach, inner)
    for fault in _node(expr, reach, indices):
        yield f"{fault} in {dump_expr(expr)}"


def _node(
    expr: ir.Expr, reach: VisibleNames, indices: tuple[ir.Index, ...]
) -> Iterator[str]:
    match expr:
        case ir.Constant(value=value, type=scalar) | ir.ConstRef(
            value=value, type=scalar
        ):
            yield from _constant(value, scalar)
        case ir.IndexValue(index=index):
            if index not in indices:
                yield "index out of scope"
        case ir.DimValue(name=name):
            if name not in reach.dims:
                yield "unknown dim"
        case ir.UniformValue():
            yield from _uniform(expr, reach)
        case ir.LocalValue():
            if expr not in reach.locals:
                yield "unknown local"
        case ir.Load():
            yield from _load(expr, reach)
        case ir.Swizzle(operand=operand, components=components, type=type_):
            if swizzle_type(operand.type, components) != type_:
                yield "components that the vector does not have"
        case ir.Part(operand=operand, at=at, type=type_):
            yield from _place(at.place)
            if part_type(operand.type) != (at.length, type_):
                yield "a part that the value does not have"
        case ir.Construct(type=type_, parts=parts):
            if not fits_construct(type_, tuple(part.type for part in parts)):
                yield "parts that make no such vector or matrix"
        case ir.Unary() | ir.Binary() | ir.Select():
            yield from () if reach.free else _operation(expr)
        case ir.Cast(operand=operand, type=scalar):
            same = operand.type == scalar
            if scalar is Scalar.BOOL or (same and not reach.free):
                yield "a cast that converts nothing"
        case ir.BuiltinCall():
            yield from _builtin(expr, reach)
        case ir.FunctionCall():
            yield from _call(expr, reach)
        case ir.Reduce():
            yield from _reduce(expr, indices)
        case StoreAt(places=places):
            for place in places:
                yield from _place(place)
        case _:
            assert_never(expr)


def _uniform(expr: ir.UniformValue, reach: VisibleNames) -> Iterator[str]:
    memory = reach.uniforms.get(expr.name)
    if memory is None:
        yield "unknown scalar"
        return
    leaf = ir.reach(memory, expr.path)
    if not isinstance(leaf, Leaf) or leaf.type != expr.type:
        yield "another type than the parameter's"
    for place in places_in(expr.path):
        yield from _place(place)


def _constant(value: object, scalar: Scalar) -> Iterator[str]:
    # Types are compared exactly: to Python, True is an int, too.
    match scalar:
        case Scalar.BOOL:
            fits = isinstance(value, bool)
        case Scalar.F32:
            try:
                infinite = value in {math.inf, -math.inf}
                fits = isinstance(value, float) and (infinite or as_f32(value) == value)
            except NotFiniteError:
                fits = False
        case Scalar.I32 | Scalar.U32:
            low, high = bounds(scalar)
            fits = isinstance(value, int) and low <= value <= high
            fits = fits and not isinstance(value, bool)
        case _:
            assert_never(scalar)
    if not fits:
        yield "a constant that its type does not hold"


def _load(load: ir.Load, reach: VisibleNames) -> Iterator[str]:
    if load.tensor not in reach.tensors:
        yield "a tensor that is not there"
    if len(load.subscripts) != load.tensor.rank:
        yield "a wrong number of subscripts"
    for subscript in (*load.subscripts, *places_in(load.path)):
        yield from _place(subscript)


def _place(subscript: ir.Subscript) -> Iterator[str]:
    value = subscript_value(subscript)
    if not value.type.is_integer:
        yield "a subscript that is no integer"
    if isinstance(subscript, ir.Affine) and affine_form(value) is None:
        yield "a subscript that is marked as affine"


def _operation(expr: ir.Unary | ir.Binary | ir.Select) -> Iterator[str]:
    match expr:
        case ir.Unary(op=op, operand=operand):
            accepted = {
                "-": (Scalar.F32, Scalar.I32),
                "~": (Scalar.I32, Scalar.U32),
                "not": (Scalar.BOOL,),
            }[op]
            right = scalar_of(operand.type) in accepted and expr.type == operand.type
        case ir.Binary():
            right = _binary_fits(expr)
        case ir.Select(condition=condition, then=then, otherwise=otherwise):
            one_type = then.type == otherwise.type == expr.type
            right = condition.type is Scalar.BOOL and one_type
        case _:
            assert_never(expr)
    if not right:
        yield "types that do not fit"


def _binary_fits(expr: ir.Binary) -> bool:
    left, right, op = expr.left.type, expr.right.type, expr.op
    if is_composite(left) or is_composite(right):
        return composite_type(op, left, right) == expr.type
    if op in _SHIFTS:
        return left.is_integer and right is Scalar.U32 and expr.type is left
    if left is not right:
        return False
    if op in _LOGIC:
        return left is expr.type is Scalar.BOOL
    if op in _COMPARISONS:
        return expr.type is Scalar.BOOL and (left.is_numeric or op in {"==", "!="})
    if op in _ON_BITS:
        return left.is_integer and expr.type is left
    return left.is_numeric and expr.type is left


def _builtin(expr: ir.BuiltinCall, reach: VisibleNames) -> Iterator[str]:
    builtin = BUILTINS.get(expr.builtin) or GEOMETRY.get(expr.builtin)
    if builtin is None:
        yield "an unknown built-in"
        return
    given = tuple(argument.type for argument in expr.arguments)
    fits = builtin.result(given) == expr.type
    if not fits and not (reach.free and len(given) == builtin.arity):
        yield "arguments that the built-in does not take"


def _call(expr: ir.FunctionCall, reach: VisibleNames) -> Iterator[str]:
    function = reach.functions.get(expr.function)
    if function is None:
        yield "a function that is not there, or comes later"
        return
    given = [argument.type for argument in expr.arguments]
    if given != [parameter.type for parameter in function.parameters]:
        yield "arguments that the function does not take"
    if expr.type != function.type:
        yield "another type than the function's"


def _reduce(expr: ir.Reduce, indices: tuple[ir.Index, ...]) -> Iterator[str]:
    outer = {index.name for index in indices}
    names = [index.name for index in expr.indices]
    if not names or len(set(names)) < len(names) or outer & set(names):
        yield "reduction indices that are not new and distinct"
    if expr.condition is not None and expr.condition.type is not Scalar.BOOL:
        yield "a reduction under a condition that is no bool"
    if expr.finds_place and len(names) > 1:
        yield "a place of several indices"
    type_ = Scalar.I32 if expr.finds_place else expr.body.type
    if not expr.body.type.is_numeric or expr.type != type_:
        yield "a reduction of another type than its body"

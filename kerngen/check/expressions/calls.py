"""Checking calls: casts, constructors, built-ins and the user's functions."""

from __future__ import annotations

from collections.abc import Iterable

from kerngen.check import faults as diag
from kerngen.check.environment import Signature
from kerngen.check.expressions.checker import Expressions, complete
from kerngen.check.expressions.operators import (
    check_construct,
    report_operand,
    shared_type,
)
from kerngen.check.hints.conversions import (
    composite_conversion,
    conversion,
)
from kerngen.check.hints.unknown import (
    is_tensor_of_numbers,
    reduced_by,
    report_unknown_function,
)
from kerngen.check.scope import is_whole_tensor
from kerngen.ir import nodes as ir
from kerngen.ir.builtins.evaluate import constant_value
from kerngen.ir.builtins.table import BUILTINS, Builtin, Overload
from kerngen.ir.geometry import GEOMETRY, Geometry
from kerngen.ir.operators import is_composite
from kerngen.ir.types import (
    CASTS,
    COMPOSITES,
    Scalar,
    ValueType,
    Vector,
    scalar_of,
)
from kerngen.source.text import Span
from kerngen.syntax import ast
from kerngen.syntax.mistakes import foreign


def check_call(ex: Expressions, node: ast.Call, want: Scalar | None) -> ir.Expr | None:
    """Check a call of any function; return it typed, or None after a fault."""
    name = node.function.name
    if name in CASTS:
        return _cast(ex, node, CASTS[name])
    if name in COMPOSITES:
        return check_construct(ex, node, COMPOSITES[name])
    if name in ex.env.functions:
        return _function(ex, node, ex.env.functions[name])
    # `max(x[j])` is meant as a reduction, `max(a, b)` is the built-in.
    is_lone = len(node.arguments) < 2 and not ex.rules.mixes
    lone_reduction = name in ir.REDUCE_KINDS and is_lone
    # `dot(x, y)` of tensors of numbers is another library's, not the function of vectors.
    sums = name in foreign.REDUCTIONS and any(
        is_tensor_of_numbers(ex, argument) for argument in node.arguments
    )
    if name in GEOMETRY and not sums:
        return check_geometry(ex, node, GEOMETRY[name])
    if name in BUILTINS and not lone_reduction:
        return _builtin(ex, node, BUILTINS[name], want)
    if lone_reduction or name in ir.REDUCE_KINDS:
        reduced = reduced_by(ex, node)
        example = f"{name}[{reduced.index}] {reduced.value}"
        ex.env.faults.add(
            diag.ReductionAsCall(span=node.function.span, example=example)
        )
        return None
    if name not in foreign.REDUCTIONS or name in foreign.OF_VECTORS:
        for argument in node.arguments:
            if not is_whole_tensor(ex.scope.of(argument)):
                ex.check(argument)
    report_unknown_function(ex, node)
    return None


def check_count(
    ex: Expressions,
    node: ast.Call,
    expected: int,
    *,
    of: str = "",
    remedy: str = "",
    declared: Span | None = None,
) -> bool:
    """Whether a call has the expected number of arguments; reports it if not."""
    actual = len(node.arguments)
    if actual == expected:
        return True
    name = node.function.name
    if name in ir.REDUCE_KINDS and actual > expected:
        remedy = f"Nest the calls: '{name}(a, {name}(b, c))'."
    ex.env.faults.add(
        diag.ArgumentCount(
            span=node.span,
            declared=declared,
            function=of or name,
            expected=expected,
            actual=actual,
            remedy=remedy,
        )
    )
    for argument in node.arguments:
        ex.check(argument)
    return False


def _cast(ex: Expressions, node: ast.Call, scalar: Scalar) -> ir.Expr | None:
    if not check_count(ex, node, 1, remedy=f"Write '{scalar.spelling}(x)'."):
        return None
    (argument,) = node.arguments
    value = ex.check(argument, scalar)
    if value is None or (value.type is scalar and not ex.rules.mixes):
        return value
    if is_composite(value.type):
        remedy = conversion(argument, value.type, scalar)
        report_operand(ex, scalar.spelling, argument, value.type, "numbers", remedy)
        return None
    return ex.finish(ir.Cast(value, scalar), node.span)


def _function(ex: Expressions, node: ast.Call, signature: Signature) -> ir.Expr | None:
    parameters = ", ".join(p.span.one_line() for p in signature.parameters)
    takes = (
        f"It takes '({parameters})'." if parameters else "Call it without arguments."
    )
    count = len(signature.parameters)
    if not check_count(ex, node, count, remedy=takes, declared=signature.span):
        return None
    values: list[ir.Expr] = []
    for parameter, argument in zip(signature.parameters, node.arguments, strict=True):
        # The parameter's type is faulty: it may have been meant as a tensor.
        if parameter.type is None and is_whole_tensor(ex.scope.of(argument)):
            continue
        value = ex.check(argument, parameter.type and scalar_of(parameter.type))
        if value is None or parameter.type is None:
            continue
        if value.type == parameter.type:
            values.append(value)
            continue
        if ex.rules.mixes and not is_composite(value.type):
            values.append(ir.Cast(value, parameter.type))
            continue
        ex.env.faults.add(
            diag.ArgumentType(
                span=argument.span,
                other=parameter.span,
                function=signature.name,
                parameter=parameter.name,
                expected=parameter.type.spelling,
                actual=value.type.spelling,
                remedy=conversion(argument, value.type, parameter.type),
            )
        )
    if len(values) < len(node.arguments) or signature.result is None:
        return None
    ex.env.model.call(node.function.span, signature.result, signature.span)
    return ir.FunctionCall(signature.name, tuple(values), signature.result)


# Built-ins


def _builtin(
    ex: Expressions, node: ast.Call, builtin: Builtin, want: Scalar | None
) -> ir.Expr | None:
    names = ", ".join("xyzw"[: builtin.arity])
    if not check_count(
        ex, node, builtin.arity, remedy=f"Write '{builtin.name}({names})'."
    ):
        return None
    if ex.rules.mixes:
        return _mixing_builtin(ex, node, builtin)
    # Typed arguments first: they choose the overload, and it gives literals their types.
    kinds = [ex.env.untyped.kind(argument) for argument in node.arguments]
    typed = [
        None if kind else ex.check(argument)
        for kind, argument in zip(kinds, node.arguments, strict=True)
    ]
    if any(not k and not v for k, v in zip(kinds, typed, strict=True)):
        return None
    if any(value and is_composite(value.type) for value in typed):
        return check_componentwise(ex, node, builtin, typed)
    types = [value.type if value else None for value in typed]
    overload = _choose(builtin, kinds, types, want)
    if overload is None:
        shown = [t or k or Scalar.I32 for t, k in zip(types, kinds, strict=True)]
        _report_scalars(ex, node, builtin, shown)
        return None
    values = [
        value or ex.check(argument, wanted)
        for value, argument, wanted in zip(
            typed, node.arguments, overload.parameters, strict=True
        )
    ]
    known: tuple[ir.Expr, ...] | None = complete(values)
    if known is None:
        return None
    call = ir.BuiltinCall(builtin.name, known, overload.result)
    return ex.finish(call, node.span) if _defined(ex, node, call) else None


def _mixing_builtin(
    ex: Expressions, node: ast.Call, builtin: Builtin
) -> ir.Expr | None:
    """Return a call on the host: integers are i32, and are converted to f32 if needed."""
    known = ex.check_all(node.arguments)
    if known is None:
        return None

    def fits(value: ir.Expr, wanted: Scalar) -> bool:
        if Scalar.BOOL in (wanted, value.type):
            return wanted is value.type
        return wanted is Scalar.F32 or value.type.is_integer

    rows = [row for row in builtin.overloads if all(map(fits, known, row.parameters))]
    if not rows:
        _report_scalars(ex, node, builtin, [value.type for value in known])
        return None
    preferred = shared_type(*(v for v in known if v.type is not Scalar.BOOL))
    results = [row.result for row in rows]
    result = preferred if preferred in results else results[0]
    return ir.BuiltinCall(
        builtin.name, known, Scalar.I32 if result.is_integer else result
    )


def _choose(
    builtin: Builtin,
    kinds: list[Scalar | None],
    types: list[ValueType | None],
    want: Scalar | None,
) -> Overload | None:
    """Return the overload that the arguments fit; `types` has None for trees of literals.

    A float literal fits f32 alone, a whole one any number.  Of several overloads, that with
    the result `want` is taken, else the one of the literals' own type.
    """

    def fits(overload: Overload) -> bool:
        return all(
            (
                actual is wanted
                if actual is not None
                else wanted is Scalar.F32 or (kind is Scalar.I32 and wanted.is_integer)
            )
            for wanted, actual, kind in zip(
                overload.parameters, types, kinds, strict=True
            )
        )

    fitting = [overload for overload in builtin.overloads if fits(overload)]
    for result in (want, Scalar.F32 if Scalar.F32 in kinds else Scalar.I32):
        for overload in fitting:
            if overload.result is result:
                return overload
    return fitting[0] if fitting else None


def _report_arguments(
    ex: Expressions,
    node: ast.Call,
    actual: Iterable[ValueType],
    accepted: str,
    remedy: str,
) -> None:
    """Report arguments of types that a built-in does not take."""
    ex.env.faults.add(
        diag.BuiltinArguments(
            span=node.span,
            function=node.function.name,
            actual=", ".join(type_.spelling for type_ in actual),
            accepted=accepted,
            remedy=remedy,
        )
    )


def _report_scalars(
    ex: Expressions, node: ast.Call, builtin: Builtin, actual: list[ValueType]
) -> None:
    accepted = " or ".join(
        f"({', '.join(scalar.spelling for scalar in overload.parameters)})"
        for overload in builtin.overloads
    )
    remedy = _argument_hint(ex, node, builtin, actual)
    _report_arguments(ex, node, actual, accepted, remedy)


def _argument_hint(
    ex: Expressions, node: ast.Call, builtin: Builtin, actual: list[ValueType]
) -> str:
    """Return the hint to convert the first argument that does not fit the likely overload."""
    floats = Scalar.F32 in actual or len(builtin.overloads) == 1
    candidates = builtin.overloads if floats else builtin.overloads[::-1]
    wanted = candidates[0].parameters
    if builtin.name == "select" and actual[0] is Scalar.BOOL is not actual[2]:
        condition, then, otherwise = (a.span.one_line() for a in node.arguments)
        written = f"'select({otherwise}, {then}, {condition})'"
        return f"The condition comes last, after the value where it is true: {written}."
    for argument, given, scalar in zip(node.arguments, actual, wanted, strict=True):
        adapts = ex.env.untyped.kind(argument) is Scalar.I32 and scalar.is_numeric
        if given is not scalar and not adapts:
            return conversion(argument, given, scalar)
    return ""


def _defined(ex: Expressions, node: ast.Call, call: ir.BuiltinCall) -> bool:
    """Whether WGSL defines a built-in for its constant arguments."""
    values = [constant_value(argument) for argument in call.arguments]
    reason = BUILTINS[call.builtin].refused(values)
    if reason:
        ex.env.faults.add(
            diag.ConstantArguments(span=node.span, function=call.builtin, reason=reason)
        )
    return not reason


# Vectors and matrices


def check_geometry(
    ex: Expressions, node: ast.Call, function: Geometry
) -> ir.Expr | None:
    """Check a call of a function of whole vectors or matrices, such as `dot`."""
    known = ex.check_all(node.arguments, Scalar.F32)
    if known is None:
        return None
    result = function.result(tuple(value.type for value in known))
    if result is not None:
        return ir.BuiltinCall(function.name, known, result)
    _report_composites(ex, node, known, function.accepted)
    return None


def check_componentwise(
    ex: Expressions, node: ast.Call, builtin: Builtin, typed: list[ir.Expr | None]
) -> ir.Expr | None:
    """Check a call of a built-in that works on each component of vectors.

    Literals take the type of the vectors; the last argument of `mix` may be a scalar.
    """
    like = next(v.type for v in typed if v is not None and is_composite(v.type))
    pairs = zip(typed, node.arguments, strict=True)
    values = [value or ex.check(part, scalar_of(like)) for value, part in pairs]
    known: tuple[ir.Expr, ...] | None = complete(values)
    if known is None:
        return None
    if builtin.splats_last:
        known = (*known[:-1], splat(known[-1], like))
    if builtin.name == "select":  # by one condition for all of two vectors
        otherwise, then, condition = known
        if then.type == otherwise.type and condition.type is Scalar.BOOL:
            return ir.Select(condition, then, otherwise, like)
    result = builtin.result(tuple(value.type for value in known))
    if result is not None:
        return ir.BuiltinCall(builtin.name, known, result)
    _report_composites(ex, node, known, "vectors of one type, or scalars of one")
    return None


def _report_composites(
    ex: Expressions, node: ast.Call, values: tuple[ir.Expr, ...], accepted: str
) -> None:
    like = next((v.type for v in values if isinstance(v.type, Vector)), None)
    scalars = [n for n, value in enumerate(values) if not is_composite(value.type)]
    remedy = f"Pass {accepted}, or convert the arguments."
    if like is not None and scalars:
        text = node.arguments[scalars[0]].span.one_line()
        remedy = composite_conversion(text, values[scalars[0]].type, like)
    _report_arguments(ex, node, [v.type for v in values], accepted, remedy)


def splat(value: ir.Expr, like: ValueType) -> ir.Expr:
    """Return a scalar as a vector of equal components, if `like` is a vector."""
    if isinstance(like, Vector) and not is_composite(value.type):
        return ir.Construct(like, (value,))
    return value

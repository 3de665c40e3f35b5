"""Print the NumPy references of functions and kernels."""

from __future__ import annotations

from collections.abc import Mapping

from kerngen.emit.calls import FunctionInfo
from kerngen.emit.docs import summary, write_docstring
from kerngen.emit.python_code import call, tuple_text
from kerngen.emit.python_names import KernelNames, ModuleNames, function_names
from kerngen.emit.reference.body import reference_body
from kerngen.emit.reference.expr import ReferencePrinter
from kerngen.emit.reference.scope import FunctionBody
from kerngen.emit.reference.types import ARRAY, array_annotation, as_one
from kerngen.emit.signature import (
    output_tensors,
    scalar_parameter,
    tensor_parameters,
)
from kerngen.emit.writer import Writer
from kerngen.ir.memory import MemoryType, Struct, holds_half
from kerngen.ir.nodes import Expr, Function, Kernel, LocalValue, Role
from kerngen.ir.walk import walk


def write_function(
    writer: Writer,
    function: Function,
    names: ModuleNames,
    functions: Mapping[str, FunctionInfo],
) -> FunctionInfo:
    """Write a user's function as Python over arrays, and return how generated code calls it."""
    own = function_names(function, names.constants)
    scope = FunctionBody(own, names.constants, functions)
    printer = ReferencePrinter(scope)
    for local, value in function.lets:
        scope.writer.line(f"{own[local.name]} = {printer.array(value, ()).text}")
    result = printer.array(function.body, ())
    ignored = [as_one(own[p.name], p.type, function.type) for p in _ignored(function)]
    if ignored:
        # Callers count on the shape that all the arguments have together.
        result = call("ref.spread", [result.text, *ignored])
    scope.writer.line(f"return {result.text}")
    # Parameters come last: only now it is known whether the body needs `real`.
    name = names.functions[function.name]
    parameters = ["real: ref.Real"] if scope.uses_real else []
    parameters += [f"{own[local.name]}: {ARRAY}" for local in function.parameters]
    with writer.block(f"def {name}({', '.join(parameters)}) -> Any:"):
        if function.doc:
            write_docstring(writer, summary(function.doc, function.name))
        writer.lines(scope.writer.text)
    return FunctionInfo(name, scope.uses_real, result.fresh)


def _ignored(function: Function) -> list[LocalValue]:
    """Return the parameters that the result does not depend on, in order."""
    # From the last let to the first: one that is needed needs what it reads.
    wanted = _names_read(function.body)
    for local, value in reversed(function.lets):
        if local.name in wanted:
            wanted |= _names_read(value)
    return [p for p in function.parameters if p.name not in wanted]


def _names_read(expr: Expr) -> set[str]:
    return {node.name for node in walk(expr) if isinstance(node, LocalValue)}


def write_reference(
    writer: Writer,
    kernel: Kernel,
    names: ModuleNames,
    functions: Mapping[str, FunctionInfo],
) -> None:
    """Write the NumPy reference of a kernel."""
    own = names.kernels[kernel.name]
    parameters = {parameter.name: parameter.memory for parameter in kernel.parameters}
    scope = FunctionBody(
        own.values, names.constants, functions, names.structs, parameters
    )
    body = reference_body(kernel, scope, own.arrays)
    writer.line("@kernel_function")
    with writer.block(
        f"def {own.reference}({_parameters(kernel, own)}) -> {_result(kernel, own)}:"
    ):
        lines = [f"NumPy twin of `{own.function}`, in float64 where its arrays are."]
        if any(tensor.role is Role.UPDATE for tensor in kernel.tensors):
            lines += ["", "`mut` arrays change in place."]
        if any(isinstance(tensor.element, Struct) for tensor in kernel.tensors):
            lines += ["", "Structs keep the types of their members."]
        if any(map(holds_half, _memories(kernel))):
            lines += [
                "",
                "What f16 holds is read as float32; in float64 it is not rounded.",
            ]
        write_docstring(writer, lines)
        if kernel.order:
            writer.line(_check(kernel, own))
        writer.lines(body)


def _memories(kernel: Kernel) -> list[MemoryType]:
    """Return the types of all that a kernel is given and returns."""
    tensors = [tensor.memory for tensor in kernel.tensors]
    return [*tensors, *(parameter.memory for parameter in kernel.parameters)]


def _parameters(kernel: Kernel, names: KernelNames) -> str:
    tensors = [
        f"{names.values[t.name]}: {array_annotation(t)}"
        for t in tensor_parameters(kernel)
    ]
    scalars = [scalar_parameter(p, names.values[p.name]) for p in kernel.parameters]
    return ", ".join([*tensors, *(["*"] if scalars else []), *scalars])


def _check(kernel: Kernel, names: KernelNames) -> str:
    """Return the line that refuses what does not fit, as the binding does."""
    arguments = [tuple_text(names.values[t.name] for t in tensor_parameters(kernel))]
    if kernel.parameters:
        scalars = tuple_text(names.values[p.name] for p in kernel.parameters)
        arguments.append(scalars)
    return call(f"{names.description}.check", arguments).text


def _result(kernel: Kernel, names: KernelNames) -> str:
    match [array_annotation(tensor) for tensor in output_tensors(kernel)]:
        case []:
            return "None"
        case [single]:
            return single
        case _:
            return names.arrays

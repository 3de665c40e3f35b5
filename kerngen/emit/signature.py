"""The parameters of generated functions: annotations and defaults in Python."""

from __future__ import annotations

from kerngen.emit.python_code import tuple_text
from kerngen.ir.nodes import Kernel, Parameter, Role, Tensor
from kerngen.ir.types import Scalar, ValueType, Vector

_SCALARS = {Scalar.F32: "float", Scalar.I32: "int", Scalar.U32: "int"}


def scalar_annotation(type_: ValueType) -> str:
    """Return `float`, `int`, or a tuple of as many."""
    if isinstance(type_, Vector):
        return f"tuple[{', '.join([_SCALARS[type_.scalar]] * type_.width)}]"
    return _SCALARS[type_]


def scalar_parameter(parameter: Parameter, name: str) -> str:
    """Return `alpha: float = 1.0`."""
    declared = f"{name}: {scalar_annotation(parameter.type)}"
    if parameter.default is None:
        return declared
    return f"{declared} = {default_text(parameter)}"


def default_text(parameter: Parameter) -> str:
    """Return a parameter's default as a Python literal."""
    type_, default = parameter.type, parameter.default
    scalar = type_.scalar if isinstance(type_, Vector) else type_
    convert = float if scalar is Scalar.F32 else int
    if isinstance(default, tuple):
        return tuple_text(repr(convert(value)) for value in default)
    assert default is not None, "asked for only where there is one"
    return repr(convert(default))


def tensor_parameters(kernel: Kernel) -> tuple[Tensor, ...]:
    """Return the tensors that a caller passes."""
    return tuple(t for t in kernel.tensors if t.role in (Role.INPUT, Role.UPDATE))


def output_tensors(kernel: Kernel) -> tuple[Tensor, ...]:
    """Return the tensors that a call returns."""
    return tuple(tensor for tensor in kernel.tensors if tensor.role is Role.OUTPUT)

"""The parameters of generated functions: annotations and defaults in Python."""

from __future__ import annotations

from typing import assert_never

from kerngen.emit.python_code import number, tuple_text
from kerngen.emit.python_names import class_name
from kerngen.ir.memory import FixedArray, Leaf, MemoryType, Struct
from kerngen.ir.nodes import Kernel, Parameter, Role, Tensor
from kerngen.ir.types import Matrix, Scalar, ValueType, Vector, scalar_of

_SCALARS = {Scalar.F32: "float", Scalar.I32: "int", Scalar.U32: "int"}
"""The Python types of scalar arguments."""


def memory_annotation(memory: MemoryType) -> str:
    """Return the annotation of a parameter's type: `tuple[float, float]`, `Mat4x4`, `Light`."""
    match memory:
        case Leaf(type=type_):
            return _value_annotation(type_)
        case FixedArray(element=element):
            return f"tuple[{memory_annotation(element)}, ...]"
        case Struct():
            return class_name(memory)
        case _:
            assert_never(memory)


def _value_annotation(type_: ValueType) -> str:
    match type_:
        case Scalar():
            return _SCALARS[type_]
        case Vector(scalar=scalar, width=width):
            return f"tuple[{', '.join([_SCALARS[scalar]] * width)}]"
        case Matrix(columns=columns, rows=rows):
            return f"Mat{columns}x{rows}"
        case _:
            assert_never(type_)


def scalar_parameter(parameter: Parameter, name: str) -> str:
    """Return a scalar parameter's declaration: `alpha: float = 1.0`."""
    # `Mat4x4` is a tuple of columns; an array of NumPy's is taken, too.
    declared = f"{name}: {memory_annotation(parameter.memory)}"
    if isinstance(parameter.memory, Leaf) and isinstance(parameter.memory.type, Matrix):
        declared += " | NDArray[Any]"
    if parameter.default is None:
        return declared
    return f"{declared} = {default_text(parameter)}"


def default_text(parameter: Parameter) -> str:
    """Return a parameter's default as a Python literal."""
    memory, default = parameter.memory, parameter.default
    assert isinstance(memory, Leaf), "structs have no default"
    convert = float if scalar_of(memory.type) is Scalar.F32 else int
    if isinstance(default, tuple):
        return tuple_text(number(convert(value)).text for value in default)
    assert default is not None, "asked for only where there is one"
    return number(convert(default)).text


def tensor_parameters(kernel: Kernel) -> tuple[Tensor, ...]:
    """Return a kernel's tensors that a caller passes: inputs, and those updated in place."""
    return tuple(t for t in kernel.tensors if t.role in (Role.INPUT, Role.UPDATE))


def output_tensors(kernel: Kernel) -> tuple[Tensor, ...]:
    """Return a kernel's tensors that a call returns."""
    return tuple(tensor for tensor in kernel.tensors if tensor.role is Role.OUTPUT)


def element_name(tensor: Tensor) -> str:
    """Return the Python name of a tensor's element type: `f32`, or a class."""
    memory = tensor.memory
    return class_name(memory) if isinstance(memory, Struct) else memory.spelling


def parameter_element(parameter: Parameter) -> str:
    """Return the element type of a parameter: `f32`, `vec3f`, or a struct's class."""
    memory = parameter.memory
    assert not isinstance(memory, FixedArray), "that is a tensor"
    return class_name(memory) if isinstance(memory, Struct) else memory.spelling

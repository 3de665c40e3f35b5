"""Print the typed function that launches a kernel, with its docstring."""

from __future__ import annotations

from kerngen.emit.docs import (
    paragraphs,
    section,
    source_texts,
    summary,
    wrapped,
    write_docstring,
)
from kerngen.emit.python_code import tuple_text
from kerngen.emit.python_names import KernelNames
from kerngen.emit.signature import (
    default_text,
    element_name,
    output_tensors,
    scalar_parameter,
    tensor_parameters,
)
from kerngen.emit.writer import INDENT, Writer
from kerngen.ir.nodes import Kernel, Parameter, Role, Tensor

_BY_RANK = {0: "Scalar", 1: "Vector", 2: "Matrix", 3: "Tensor3", 4: "Tensor4"}
_BY_ORDER = "in the order of the outputs"


def tensor_annotation(tensor: Tensor) -> str:
    """Return the annotation of a tensor: `Matrix[f32]`, `Tensor[f32, Literal[5]]`."""
    element = element_name(tensor)
    if tensor.rank in _BY_RANK:
        return f"{_BY_RANK[tensor.rank]}[{element}]"
    return f"Tensor[{element}, Literal[{tensor.rank}]]"


def write_output_tuple(writer: Writer, kernel: Kernel, names: KernelNames) -> None:
    """Write the class of a tuple of several outputs."""
    with writer.block(f"class {names.output}(NamedTuple):"):
        write_docstring(writer, [f"The outputs of `{names.function}`, {_BY_ORDER}."])
        writer.line()
        for tensor in output_tensors(kernel):
            writer.line(f"{names.outputs[tensor.name]}: {tensor_annotation(tensor)}")


def write_function(writer: Writer, kernel: Kernel, names: KernelNames) -> None:
    """Write the function that users call."""
    outputs = output_tensors(kernel)
    result = _result(kernel, names)
    head = f"def {names.function}({', '.join(_parameters(kernel, names))}) -> {result}:"
    writer.line(f"@{names.description}.function")
    with writer.block(head):
        write_docstring(writer, _docstring(kernel, names))
        launch = _launch(kernel, names)
        match [names.values[output.name] for output in outputs]:
            case []:
                writer.line(launch)
            case [name]:
                writer.line(f"({name},) = {launch}")
                writer.line(f"return {name}")
            case _:
                writer.line(f"return {names.output}(*{launch})")


def _result(kernel: Kernel, names: KernelNames) -> str:
    match output_tensors(kernel):
        case ():
            return "None"
        case (output,):
            return tensor_annotation(output)
        case _:
            return names.output


def _parameters(kernel: Kernel, names: KernelNames) -> list[str]:
    tensors = [
        f"{names.values[tensor.name]}: {tensor_annotation(tensor)}"
        for tensor in tensor_parameters(kernel)
    ]
    scalars = [scalar_parameter(p, names.values[p.name]) for p in kernel.parameters]
    result = _result(kernel, names)
    out = [f"out: {result} | None = None"] if result != "None" else []
    return [*tensors, "*", *scalars, *out, "ctx: Context | None = None"]


def _launch(kernel: Kernel, names: KernelNames) -> str:
    tensors = tuple_text(names.values[t.name] for t in tensor_parameters(kernel))
    scalars = tuple_text(names.values[p.name] for p in kernel.parameters)
    arguments = ["ctx", tensors, scalars]
    match len(output_tensors(kernel)):
        case 0:
            pass
        case 1:
            arguments.append("(out,)")
        case _:
            arguments.append("out")
    return f"{names.description}.launch({', '.join(arguments)})"


# Documentation


def _docstring(kernel: Kernel, names: KernelNames) -> list[str]:
    doc = summary(kernel.doc, f"Run the kernel '{kernel.name}'.")
    place = f"{kernel.span.source.name}:{kernel.span.line}"
    return [
        *paragraphs("\n".join(doc), depth=1),
        *section("Args", _arguments(kernel, names), depth=1),
        *section("Returns", _returns(kernel, names), depth=1),
        "",
        f"The source, {place}::",
        "",
        *_equations(kernel),
    ]


def _equations(kernel: Kernel) -> list[str]:
    return [
        INDENT + line
        for text in source_texts(kernel)
        for line in wrapped(text, depth=2, indent=INDENT)
    ]


def _arguments(kernel: Kernel, names: KernelNames) -> list[tuple[str, str]]:
    tensors = [
        (names.values[t.name], _tensor_text(kernel, t))
        for t in tensor_parameters(kernel)
    ]
    scalars = [(names.values[p.name], _scalar_text(p)) for p in kernel.parameters]
    outputs = output_tensors(kernel)
    where = "Where to put the result, instead of a new tensor."
    if len(outputs) > 1:
        where = f"Where to put the results, {_BY_ORDER}, instead of new tensors."
    out = [("out", where)] if outputs else []
    context = "The context; tensor arguments imply it."
    return [*tensors, *scalars, *out, ("ctx", context)]


def _tensor_text(kernel: Kernel, tensor: Tensor) -> str:
    written = {dim.name: dim.text for dim in kernel.derived}
    shape = ", ".join(written.get(str(axis), str(axis)) for axis in tensor.extents)
    changed = ", changed in place" if tensor.role is Role.UPDATE else ""
    return _sentence(f"{tensor.memory.spelling}[{shape}]{changed}.", tensor.doc)


def _scalar_text(parameter: Parameter) -> str:
    default = ""
    if parameter.default is not None:
        default = f", {default_text(parameter)} by default"
    return _sentence(f"{parameter.memory.spelling}{default}.", parameter.doc)


def _sentence(facts: str, doc: str) -> str:
    return f"{facts} {' '.join(doc.split())}".strip()


def _returns(kernel: Kernel, names: KernelNames) -> list[tuple[str, str]]:
    outputs = output_tensors(kernel)
    return [
        (names.outputs[tensor.name], _tensor_text(kernel, tensor)) for tensor in outputs
    ]

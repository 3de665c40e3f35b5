"""Print the `.d.ts` file of an ES module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kerngen.emit.docs import paragraphs, plain, summary, wrapped
from kerngen.emit.kernel_plan import PlannedKernel
from kerngen.emit.python_names import (
    KernelNames,
    ModuleNames,
    member_names,
    module_names,
)
from kerngen.emit.signature import output_tensors, tensor_parameters
from kerngen.emit.structs import inner_first
from kerngen.ir.memory import Struct
from kerngen.ir.module import Module
from kerngen.ir.nodes import Kernel, Parameter, Role, Tensor
from kerngen.layout.struct import struct_layout
from kerngen.typescript.module import (
    equations,
    header,
    import_lines,
    initial_text,
)
from kerngen.typescript.names import INHERITED, RUNTIME, js_name, js_string
from kerngen.typescript.structs import doc_table, record_lines, value_type

_BY_RANK = {0: "Scalar", 1: "Vector", 2: "Matrix", 3: "Tensor3", 4: "Tensor4"}


def emit_declarations(
    module: Module, planned: Sequence[PlannedKernel], source_sha: str
) -> str:
    """Return the text of the `.d.ts` file."""
    names = module_names(module)
    lines = [*jsdoc(header(module, source_sha)), ""]
    lines.append(f"import type * as $ from {js_string(RUNTIME)};")
    lines += (
        line.replace("import ", "import type ", 1)
        for line in import_lines(module, names)
    )
    for struct in inner_first(module.structs):
        lines += ["", *_struct(module, struct, names)]
    for each in planned:
        lines += ["", *_function(each.kernel, names)]
    return "\n".join(lines) + "\n"


def jsdoc(lines: Iterable[str]) -> list[str]:
    """Return lines as a JSDoc comment, escaped."""
    safe = (plain(line).replace("*/", "*\\/").rstrip() for line in lines)
    return ["/**", *(f" * {line}".rstrip() for line in safe), " */"]


def _struct(module: Module, struct: Struct, names: ModuleNames) -> Iterator[str]:
    layout = struct_layout(struct)
    doc = summary(struct.doc, f"The struct '{struct.name}' of {module.path}.")
    yield from jsdoc([*doc, "", *doc_table(layout)])
    classes = {s.name: js_name(name) for s, name in names.structs.items()}
    name = js_name(names.structs[struct])
    yield from record_lines(name, layout, member_names(struct), classes)


def _function(kernel: Kernel, names: ModuleNames) -> Iterator[str]:
    own = names.kernels[kernel.name]
    yield from jsdoc(_doc(kernel, own))
    parameters = [
        f"  {js_name(own.values[t.name])}: {tensor_type(t, names)},"
        for t in tensor_parameters(kernel)
    ]
    result = _result(kernel, own, names)
    yield f"export declare function {js_name(own.function)}("
    yield from parameters
    yield from _options(kernel, own, names, result)
    yield f"): {result};"


def tensor_type(tensor: Tensor, names: ModuleNames) -> str:
    """Return `$.Matrix<"f32">`; of a struct, `$.Vector<Light>`."""
    memory = tensor.memory
    if isinstance(memory, Struct):
        element = js_name(names.structs[memory])
    else:
        element = js_string(memory.spelling)
    if tensor.rank in _BY_RANK:
        return f"$.{_BY_RANK[tensor.rank]}<{element}>"
    return f"$.Tensor<{element}, {tensor.rank}>"


def _result(kernel: Kernel, own: KernelNames, names: ModuleNames) -> str:
    match output_tensors(kernel):
        case ():
            return "void"
        case (output,):
            return tensor_type(output, names)
        case several:
            members = (
                f"readonly {own.outputs[t.name]}: {tensor_type(t, names)}"
                for t in several
            )
            return f"{{ {'; '.join(members)} }}"


def _options(
    kernel: Kernel, own: KernelNames, names: ModuleNames, result: str
) -> Iterator[str]:
    """Yield the parameter of scalars, outputs and the context."""
    classes = {s.name: js_name(name) for s, name in names.structs.items()}
    scalars = [
        f"    readonly {_scalar(p, own.values[p.name], value_type(p.memory, classes))};"
        for p in kernel.parameters
    ]
    needed = "" if any(p.default is None for p in kernel.parameters) else "?"
    call = "$.Call" if result == "void" else f"$.Call<{result}>"
    if not scalars:
        yield f"  options{needed}: {call},"
        return
    yield f"  options{needed}: {{"
    yield from scalars
    yield f"  }} & {call},"


def _scalar(parameter: Parameter, name: str, type_: str) -> str:
    """Return an option's declaration: `lr?: number`."""
    if parameter.default is None:
        return f"{name}: {type_}"
    # An object literal without this option inherits a property of that name, as
    # `toString`, from Object: its type must be allowed, too.
    inherited = f' | Object["{name}"]' if name in INHERITED else ""
    return f"{name}?: {type_}{inherited}"


def _doc(kernel: Kernel, own: KernelNames) -> Iterator[str]:
    doc = summary(kernel.doc, f"Run the kernel '{kernel.name}'.")
    yield from paragraphs("\n".join(doc), depth=1)
    yield ""
    for tensor in tensor_parameters(kernel):
        name = js_name(own.values[tensor.name])
        yield from _entry(f"@param {name} - {_tensor_text(kernel, tensor)}")
    for parameter in kernel.parameters:
        name = f"options.{own.values[parameter.name]}"
        yield from _entry(f"@param {name} - {_scalar_text(parameter)}")
    outputs = output_tensors(kernel)
    if outputs:
        where = "Where to put the result, instead of a new tensor."
        yield f"@param options.out - {where}"
    yield "@param options.ctx - The context; tensor arguments imply it."
    for tensor in outputs:
        text = f"{own.outputs[tensor.name]}: {_tensor_text(kernel, tensor)}"
        yield from _entry(f"@returns {text}" if len(outputs) == 1 else f"- {text}")
    yield ""
    yield f"The source, {kernel.span.source.name}:{kernel.span.line}:"
    yield "```rust"
    yield from equations(kernel)
    yield "```"


def _entry(text: str) -> list[str]:
    return wrapped(text, depth=1, indent="  ")


def _tensor_text(kernel: Kernel, tensor: Tensor) -> str:
    written = {dim.name: dim.text for dim in kernel.derived}
    shape = ", ".join(written.get(str(axis), str(axis)) for axis in tensor.extents)
    changed = ", changed in place" if tensor.role is Role.UPDATE else ""
    doc = " ".join(tensor.doc.split())
    return f"{tensor.memory.spelling}[{shape}]{changed}. {doc}".strip()


def _scalar_text(parameter: Parameter) -> str:
    shown = parameter.memory.spelling
    if parameter.default is not None:
        shown += f", {initial_text(parameter.default)} by default"
    return f"{shown}. {' '.join(parameter.doc.split())}".strip()

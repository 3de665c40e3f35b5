"""Print the function that computes the values of a kernel's uniform struct.

    def _blend_hosts(n: int, turn: int) -> tuple[float, ...]:
        most = float(BITS)
        return (n, turn, most)

A kernel has none if its struct has the dims and scalars of the call as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kerngen.emit.calls import FunctionInfo
from kerngen.emit.docs import write_docstring
from kerngen.emit.host_expr import HostPrinter, warns
from kerngen.emit.members import attributes
from kerngen.emit.python_code import tuple_text
from kerngen.emit.python_names import KernelNames, ModuleNames
from kerngen.emit.signature import memory_annotation
from kerngen.emit.writer import Writer
from kerngen.ir.memory import Leaf, MemoryType, Struct
from kerngen.ir.nodes import DimValue, Expr, Kernel, UniformValue
from kerngen.ir.types import Matrix, Vector


def has_hosts(kernel: Kernel) -> bool:
    """Whether the uniform struct has other values than the call's dims and scalars.

    Then the generated module has a function that computes all of them.
    """
    flat = [x for p in kernel.parameters for x in _flat(p.memory, p.name)]
    return bool(kernel.hosts) or flat != [p.name for p in kernel.parameters]


def write_hosts(
    writer: Writer,
    kernel: Kernel,
    names: ModuleNames,
    functions: Mapping[str, FunctionInfo],
) -> None:
    """Write the Python function that computes the values of a kernel's uniform struct.

    Its parameters are the dims and scalars of a call.
    """
    own = names.kernels[kernel.name]
    memories = {parameter.name: parameter.memory for parameter in kernel.parameters}

    def value(node: DimValue | UniformValue) -> str:
        name = own.values[node.name]
        if isinstance(node, DimValue) or not node.path:
            return name
        return attributes(memories[node.name], node.path, name)

    printer = HostPrinter(value, names.constants, functions)
    parameters = [f"{own.values[dim]}: int" for dim in kernel.lengths]
    parameters += [
        f"{own.values[p.name]}: {memory_annotation(p.memory)}"
        for p in kernel.parameters
    ]
    body = Writer()
    for host in kernel.hosts:
        body.line(f"{own.values[host.name]} = {printer.print(host.value).text}")
    body.line(f"return {tuple_text(_values(kernel, own))}")
    result = (
        "Any"
        if any(isinstance(p.memory, Struct) for p in kernel.parameters)
        else "float"
    )
    with writer.block(
        f"def {own.hosts}({', '.join(parameters)}) -> tuple[{result}, ...]:"
    ):
        write_docstring(writer, [f"The values of `{own.uniform}`, in double."])
        if any(warns(host.value) for host in kernel.hosts):
            with writer.block('with np.errstate(all="ignore"):'):
                writer.lines(body.text)
        else:
            writer.lines(body.text)


def write_computed(
    writer: Writer,
    kernel: Kernel,
    names: ModuleNames,
    functions: Mapping[str, FunctionInfo],
    computed: Sequence[tuple[Expr, bool]],
) -> None:
    """Write the Python function that computes sizes which a plan can't express, as with floats.

    The function takes dims and scalars by name, and returns the values of the plan's
    `computed` symbols.  `computed` has pairs: an expression, and whether its integers wrap.

        def _root_computed(d: dict[str, Any]) -> tuple[int, ...]:
            with np.errstate(all="ignore"):
                return (hostmath.to_u32(hostmath.sqrt(float(d["n"]))),)
    """
    own = names.kernels[kernel.name]
    memories = {parameter.name: parameter.memory for parameter in kernel.parameters}
    hosts = {host.name: host.value for host in kernel.hosts}

    # A size may read a host: its expression is printed in the place of its name.
    def value(node: DimValue | UniformValue) -> str:
        if node.name in hosts:
            return f"({printer.print(hosts[node.name]).text})"
        if isinstance(node, DimValue):
            return f'd["{node.name}"]'
        text = f'd["{own.values[node.name]}"]'
        return attributes(memories[node.name], node.path, text)

    printer = HostPrinter(value, names.constants, functions)
    wrapping = replace(printer, wraps=True)
    texts = [(wrapping if w else printer).print(e).text for e, w in computed]
    with writer.block(f"def {own.computed}(d: dict[str, Any]) -> tuple[int, ...]:"):
        write_docstring(writer, [f"What the plan of '{kernel.name}' calls computed."])
        with writer.block('with np.errstate(all="ignore"):'):
            writer.line(f"return {tuple_text(texts)}")


def _values(kernel: Kernel, names: KernelNames) -> Iterator[str]:
    """Yield the struct's values in the order of its fields.

    Vectors and matrices are flattened; a struct is itself.
    """
    yield from (names.values[dim] for dim in kernel.lengths)
    for parameter in kernel.parameters:
        yield from _flat(parameter.memory, names.values[parameter.name])
    yield from (names.values[host.name] for host in kernel.hosts)


def _flat(memory: MemoryType, name: str) -> Iterator[str]:
    """Yield the items for a parameter in a tuple: `*v`, and `*m[0]`, `*m[1]` of a matrix."""
    match memory:
        case Leaf(type=Vector()):
            yield f"*{name}"
        case Leaf(type=Matrix(columns=columns)):
            yield from (f"*{name}[{column}]" for column in range(columns))
        case _:
            yield name

"""Print the body of a reference: preparation of arguments, then the statements.

    real = ref.real(x)                         float64 if x is, else float32
    x = real(x)                                arguments in the kernel's types
    m, n = x.shape                             the dims that are needed
    with np.errstate(all="ignore"):
        # let top[i] = max[j] x[i, j];         each statement, below its source
        top = np.max(x, axis=1, initial=-np.inf)
        return y

Statements run in order, each over its whole index domain.  A name always gets a new array:
with a view of another one, a later write would change an earlier value.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from kerngen.emit.docs import write_comment
from kerngen.emit.host_expr import HostPrinter
from kerngen.emit.members import fields
from kerngen.emit.python_code import Code, call
from kerngen.emit.reference.arguments import NUMBERS
from kerngen.emit.reference.expr import ReferencePrinter
from kerngen.emit.reference.runs import read_regardless, run_of, run_text
from kerngen.emit.reference.scope import TYPED, FunctionBody
from kerngen.emit.reference.types import array_annotation, is_float
from kerngen.emit.signature import output_tensors, tensor_parameters
from kerngen.emit.writer import Writer
from kerngen.ir import nodes as ir
from kerngen.ir.analysis.positions import moving_index
from kerngen.ir.analysis.reads import free_indices, tensors_read
from kerngen.ir.analysis.subscript_checks import may_be_empty
from kerngen.ir.memory import Leaf, Struct
from kerngen.ir.nodes import At, Statement
from kerngen.ir.recurrence import Recurrence
from kerngen.ir.store import StoreAt
from kerngen.ir.types import Matrix, Scalar, Vector, scalar_of
from kerngen.ir.walk import subscript_value, walk


def reference_body(kernel: ir.Kernel, scope: FunctionBody, arrays: str) -> str:
    """Return the lines of the body of a kernel's reference, as one text.

    `arrays` is the class of the tuple that it returns, if it has several outputs.
    """
    # Statements are printed first: they determine which dims, hosts and arguments are needed.
    written: set[ir.Tensor] = set()
    for statement in kernel.body:
        _write_statement(scope, statement, is_first=statement.target not in written)
        written.add(statement.target)
    hosts = list(_host_lines(kernel, scope))
    derived = list(_derived_lines(kernel, scope))
    writer = Writer()
    _write_arguments(writer, kernel, scope)
    for line in derived:
        writer.line(line)
    with writer.block('with np.errstate(all="ignore"):'):
        for line in hosts:
            writer.line(line)
        writer.lines(scope.writer.text)
        match [scope.names[tensor.name] for tensor in output_tensors(kernel)]:
            case []:
                pass
            case [name]:
                writer.line(f"return {name}")
            case several:
                writer.line(f"return {call(arrays, several).text}")
    return writer.text


def _write_statement(
    scope: FunctionBody, statement: ir.Statement, *, is_first: bool
) -> None:
    """Write a statement; one that reads elements whatever its indices, under a condition.

    Where its target is empty it must not read: `x` may be empty as well.

    Before:  y[i, j] = x[0] * z[i];
    After:   y: NDArray[Any] = np.empty((m, n), real.dtype)
             if y.size:
                 y = ref.filled(x[0] * z[:, None], (m, n), real.dtype)
    """
    write_comment(scope.writer, statement.text)
    if isinstance(statement.value, StoreAt):
        write_store(scope, statement, statement.value)
        return
    if statement.along is not None:
        _write_recurrence(scope, statement, statement.along)
        return
    is_given = statement.target.role is ir.Role.UPDATE
    if statement.is_partial and is_first and not is_given:
        _write_zeros(scope, statement.target)
    if not read_regardless(statement.value, statement.indices):
        _write_assignment(scope, statement, is_first=is_first)
        return
    name = scope.names[statement.target.name]
    if is_first and not is_given and not statement.is_partial:
        empty = f"np.empty({_shape_and_type(scope, statement)})"
        scope.writer.line(f"{name}: NDArray[Any] = {empty}")
    with scope.block(f"if {name}.size:"):
        _write_assignment(scope, statement, is_first=False)


def _write_recurrence(
    scope: FunctionBody, statement: ir.Statement, along: Recurrence
) -> None:
    """
    Write a let that reads itself: all elements of one step at once, step by step.

    Before:  let h[i, t] = if t > 0 { h[i, t - 1] + x[i, t] } else { x[i, t] };
    After:   h = np.zeros((m, n), real.dtype)
             for t in range(n):
                 h[:, t] = np.where(t > 0, ref.take(h, t - 1, 1) + x[:, t], x[:, t])
    """
    # The other indices are the axes of each step; the array begins as zeros, and a step
    # reads what earlier ones wrote.
    target, step = statement.target, statement.indices[along.axis]
    frame = tuple(index for index in statement.indices if index is not step)
    scope.writer.line(
        f"{scope.names[target.name]} = np.zeros({_whole_shape(scope, target)})"
    )
    with ExitStack() as stack:
        if read_regardless(statement.value, statement.indices):
            stack.enter_context(scope.block(f"if {scope.names[target.name]}.size:"))
        stack.enter_context(scope.loop(step, descending=along.descending))
        value = ReferencePrinter(scope).array(statement.value, frame)
        places = [":"] * along.axis + [scope.loops[step]]
        scope.writer.line(
            f"{scope.names[target.name]}[{', '.join(places)}] = {value.text}"
        )


def _whole_shape(scope: FunctionBody, target: ir.Tensor) -> str:
    return f"{scope.whole(target)}, {scope.kept(target)}"


def _write_zeros(scope: FunctionBody, target: ir.Tensor) -> None:
    """Write the array that statements fill part by part."""
    shape, dtype = scope.whole(target), scope.kept(target)
    name = scope.names[target.name]
    annotation = array_annotation(target)
    scope.writer.line(f"{name}: {annotation} = np.zeros({shape}, {dtype})")


def _write_assignment(
    scope: FunctionBody, statement: ir.Statement, *, is_first: bool
) -> None:
    target = statement.target
    value = ReferencePrinter(scope).array(statement.value, statement.indices)
    name = scope.names[target.name]
    if statement.is_partial:
        scope.writer.line(f"{_part_written(scope, statement)} = {value.text}")
    elif target.role is ir.Role.UPDATE:
        scope.writer.line(f"{name}[...] = {value.text}")
    else:
        declared = target.role is ir.Role.OUTPUT and is_first
        head = f"{name}: NDArray[Any]" if declared else name
        scope.writer.line(f"{head} = {_new_array(scope, statement, value)}")


def _part_written(scope: FunctionBody, statement: ir.Statement) -> str:
    """
    Return the part of an array that a statement writes.

    Before:  p[i].pos    p[i].pos.x      p[i].trail[2]
    After:   p["pos"][...]  p["pos"][:, 0]  p["trail"][:, 2]
    """
    target = statement.target
    array = scope.names[target.name] + fields(target.memory, statement.path)
    parts = [":"] * target.rank
    for step in statement.path:
        if isinstance(step, ir.At):
            run = run_of(step.place, ())
            assert run is not None, "targets have no clamped places"
            parts.append(run_text(scope, run, step.length))
    if statement.component:
        parts.append(str("xyzw".index(statement.component)))
    needed = ", ".join(parts) if set(parts) - {":"} else "..."
    return f"{array}[{needed}]"


def _new_array(scope: FunctionBody, statement: ir.Statement, value: Code) -> str:
    """Return the value as an array of the target's shape that nothing else can reach."""
    # 1. Broadcast to the target's shape; 2. stored as f16 or narrow integers; 3. of rank 0,
    # where NumPy's functions return scalars; 4. copied if it may be a view.
    target = statement.target
    if not free_indices(statement.value).issuperset(statement.indices):
        return f"ref.filled({value.text}, {_shape_and_type(scope, statement)})"
    if target.is_half or target.narrow:
        return f"np.array({value.text}, {scope.kept(target)})"
    if target.rank == 0 and target.role is ir.Role.OUTPUT:
        return f"np.{'asarray' if value.fresh else 'array'}({value.text})"
    return value.text if value.fresh else f"{value.atom}.copy()"


def _shape_and_type(scope: FunctionBody, statement: ir.Statement) -> str:
    shape = scope.shape(statement.indices, statement.written)
    return f"{shape}, {scope.kept(statement.target)}"


# Hosts


def _host_lines(kernel: ir.Kernel, scope: FunctionBody) -> Iterator[str]:
    """Yield a line for each host that the statements need, also indirectly."""
    printer = _host_printer(scope)
    for host in _needed_hosts(kernel, scope):
        yield f"{scope.names[host.name]} = {printer.print(host.value).text}"


def _derived_lines(kernel: ir.Kernel, scope: FunctionBody) -> Iterator[str]:
    """Yield a line for each length that the statements need."""
    printer = _host_printer(scope)
    for dim in kernel.derived:
        if dim.name in scope.dims:
            yield f"{scope.names[dim.name]} = {printer.print(dim.value).text}"


def _host_printer(scope: FunctionBody) -> HostPrinter:
    """Return the printer of hosts and lengths, in the names of the body."""

    def value(node: ir.DimValue | ir.UniformValue) -> str:
        if isinstance(node, ir.DimValue):
            return scope.dim(node.name)
        return scope.argument(node)

    return HostPrinter(value, scope.constants, scope.functions)


def _needed_hosts(kernel: ir.Kernel, scope: FunctionBody) -> list[ir.Host]:
    """Return the hosts that the body reads, and those that they read, in order."""
    # From the last to the first: a host reads earlier ones alone.
    wanted = set(scope.scalars)
    for host in reversed(kernel.hosts):
        if host.name in wanted:
            wanted |= _values_read(host)
    return [host for host in kernel.hosts if host.name in wanted]


def _values_read(host: ir.Host) -> set[str]:
    return {node.name for node in walk(host.value) if isinstance(node, ir.UniformValue)}


# Arguments


def _write_arguments(writer: Writer, kernel: ir.Kernel, scope: FunctionBody) -> None:
    """Convert what the body reads to the kernel's types, and look dims up."""
    names = scope.names
    sources = _dim_sources(kernel, scope)
    read = {t for s in kernel.body for t in tensors_read(s.value)} | set(sources)
    inputs = [t for t in kernel.tensors if t.role is ir.Role.INPUT and t in read]
    if scope.uses_real or any(map(_holds_floats, inputs)):
        floats = filter(_holds_floats, tensor_parameters(kernel))
        writer.line(f"real = ref.real({', '.join(names[t.name] for t in floats)})")
    for tensor in inputs:
        name = names[tensor.name]
        if not isinstance(tensor.element, Struct):
            writer.line(f"{name} = {TYPED[scalar_of(tensor.element)]}({name})")
    for tensor, dims in sources.items():
        _write_dims(writer, scope, tensor, dims)
    _write_numbers(writer, kernel, scope)
    for text, name in scope.gathered.items():
        writer.line(f"{name} = {text}")


def _write_numbers(writer: Writer, kernel: ir.Kernel, scope: FunctionBody) -> None:
    """Write lines that make Python numbers of parameters, if the body or a host needs them."""
    hosts = _needed_hosts(kernel, scope)
    read = {name for host in hosts for name in _values_read(host)}
    for parameter in kernel.parameters:
        name = scope.names[parameter.name]
        match parameter.memory:
            case Leaf(type=Scalar() as scalar) if parameter.name in scope.scalars:
                writer.line(f"{name} = {NUMBERS[scalar]}({name})")
            case Leaf(type=Vector() | Matrix()) if parameter.name in read:
                writer.line(f"{name} = np.asarray({name}).tolist()")
            case _:
                pass


def _holds_floats(tensor: ir.Tensor) -> bool:
    """Whether a tensor's array decides the type of arithmetic: float64 if it is that."""
    return not isinstance(tensor.element, Struct) and is_float(tensor.element)


def _dim_sources(kernel: ir.Kernel, scope: FunctionBody) -> dict[ir.Tensor, list[str]]:
    """Return the tensors that the needed dims are taken from, each with its dims."""
    # Each dim is taken from the first tensor that has it.
    missing = set(scope.dims).intersection(kernel.dims)
    sources: dict[ir.Tensor, list[str]] = {}
    for tensor in tensor_parameters(kernel):
        named = (dim for dim in tensor.extents if isinstance(dim, str))
        dims = [dim for dim in dict.fromkeys(named) if dim in missing]
        if dims:
            sources[tensor] = dims
            missing.difference_update(dims)
    return sources


def _write_dims(
    writer: Writer, scope: FunctionBody, tensor: ir.Tensor, dims: list[str]
) -> None:
    """Write the lines that take dims from a shape: `m, n = x.shape`, or `n = x.shape[1]`."""
    name = scope.names[tensor.name]
    if tensor.rank > 1 and tuple(dims) == tensor.extents:
        is_composite = not isinstance(tensor.element, Scalar | Struct)
        shape = f"{name}.shape[:{tensor.rank}]" if is_composite else f"{name}.shape"
        writer.line(f"{', '.join(scope.names[dim] for dim in dims)} = {shape}")
        return
    for dim in dims:
        axis = tensor.extents.index(dim)
        writer.line(f"{scope.names[dim]} = {name}.shape[{axis}]")


# Stores at a position: as slices where possible, else element by element


def write_store(scope: FunctionBody, statement: Statement, stored: StoreAt) -> None:
    """Write the lines of a statement that stores values at a position.

    Before:  cache[at + i, g] = k[i, g];     m[pos[0], j] = v[j];
    After:   cache[at : at + s, :] = k       if n:
                                                 ref.store(m, v, pos[0], ref.index(n))
    """
    # Over an empty range, a store at a fixed position, or of a fixed element, writes nothing.
    indices = statement.indices
    fixed = any(moving_index(place) is None for place in stored.places)
    extents = dict.fromkeys(i.extent for i in indices if may_be_empty(i.extent))
    if not extents or not (fixed or read_regardless(stored, indices)):
        scope.writer.line(_store_text(scope, statement, stored))
        return
    with scope.block(f"if {' and '.join(map(scope.extent, extents))}:"):
        scope.writer.line(_store_text(scope, statement, stored))


def _store_text(scope: FunctionBody, statement: Statement, stored: StoreAt) -> str:
    """Return the line that stores: in a slice, or element by element."""
    target = statement.target
    printer = ReferencePrinter(scope)
    value = printer.array(stored.value, statement.indices)
    array = scope.names[target.name] + fields(target.memory, statement.path)
    inner = [
        (step.place, step.length) for step in statement.path if isinstance(step, At)
    ]
    # The axes of the tensor, then those of fixed arrays in its elements: if all are slices,
    # an assignment to a part of the array, else `ref.store`.
    axes = [*zip(stored.places, target.extents, strict=True), *inner]
    runs = [(run_of(place, ()), extent) for place, extent in axes]
    parts = [run_text(scope, run, extent) for run, extent in runs if run is not None]
    component = str("xyzw".index(statement.component)) if statement.component else ""
    if len(parts) == len(axes):
        key = ", ".join([*parts, component] if component else parts)
        return f"{array}[{key}] = {value.text}"
    if component:
        array += f"[..., {component}]"
    frame = statement.indices
    places = (printer.array(subscript_value(place), frame).text for place, _ in axes)
    return call("ref.store", [array, value.text, *places]).text

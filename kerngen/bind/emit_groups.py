"""Print the classes of bind groups."""

from __future__ import annotations

from kerngen.bind.model import (
    Binding,
    Sampler,
    Stage,
    StorageTexture,
    Texture,
    memory_of,
)
from kerngen.bind.names import Group, Names
from kerngen.emit.docs import write_docstring
from kerngen.emit.signature import memory_annotation
from kerngen.emit.structs import StructPrinter
from kerngen.emit.writer import Writer
from kerngen.ir.memory import FixedArray, Leaf, Member, MemoryType
from kerngen.layout.rules import Space
from kerngen.layout.types import lay_out, place


def write_group(writer: Writer, group: Group, names: Names, *, filters: bool) -> None:
    """Write a bind group's class; `filters`: the module has filtering samplers."""
    fields = names.fields(group)
    writer.apart()
    writer.line("@dataclass(frozen=True, slots=True)")
    with writer.block(f"class {group.name}(bound.BindGroup):"):
        write_docstring(writer, [f"What is bound at '@group({group.index})'."])
        writer.line()
        for each in group.bindings:
            writer.line(f"{fields[each.name]}: {_annotation(each)}")
        writer.line()
        writer.line(f"GROUP = {group.index}")
        specs = [
            _spec(each, fields[each.name], names, stages, filters=filters)
            for each, stages in zip(group.bindings, group.stages, strict=True)
        ]
        if len(specs) == 1:
            writer.line(f"BINDINGS = ({specs[0]},)")
            return
        with writer.block("BINDINGS = (", ")"):
            for spec in specs:
                writer.line(f"{spec},")


def _annotation(binding: Binding) -> str:
    memory = memory_of(binding.type)
    if memory is None:
        is_sampler = isinstance(binding.type, Sampler)
        return f"bound.GPU{'Sampler' if is_sampler else 'TextureView'}"
    if binding.space == "uniform":
        return f"{memory_annotation(memory)} | bound.BufferBinding"
    return f"Tensor[{_element(memory)}, Any]"


def _element(memory: MemoryType) -> str:
    """Return the element type of the tensor that a storage buffer is."""
    inner = memory.innermost if isinstance(memory, FixedArray) else memory
    return inner.spelling if isinstance(inner, Leaf) else memory_annotation(inner)


def _spec(
    binding: Binding,
    name: str,
    names: Names,
    stages: tuple[Stage, ...],
    *,
    filters: bool,
) -> str:
    """Return the constructor call of a binding, by which the runtime checks values."""
    head, seen = f'"{name}", {binding.number}', _visibility(stages)
    match binding.type:
        case Texture(dimension, sample, multisampled):
            if sample == "float" and (multisampled or not filters):
                sample = "unfilterable-float"
            multi = ", multisampled=True" if multisampled else ""
            return f'bound.Texture({head}, "{sample}", "{dimension}"{multi}{seen})'
        case StorageTexture(dimension, format_, access):
            word = {"read": "read-only", "write": "write-only"}.get(
                access, "read-write"
            )
            return f'bound.StorageTexture({head}, "{format_}", "{word}", "{dimension}"{seen})'
        case Sampler(comparison):
            kind = ', "comparison"' if comparison else ""
            return f"bound.Sampler({head}{kind}{seen})"
        case _:
            return _buffer_spec(binding, name, head, names, seen)


def _buffer_spec(
    binding: Binding, name: str, head: str, names: Names, seen: str
) -> str:
    memory = memory_of(binding.type)
    assert memory is not None, "the other types are no buffers"
    size = lay_out(memory, Space.STORAGE).size
    if binding.space == "uniform":
        layout = place("", (Member(name, memory),), Space.STORAGE)
        printer = StructPrinter(Writer(), names.structs, {name: name})
        return f"bound.Uniform({head}, {printer.field(layout.fields[0])}, {size}{seen})"
    writes = ", writes=True" if binding.writes else ""
    return f"bound.Storage({head}, {_element(memory)}, {size}{writes}{seen})"


def _visibility(stages: tuple[Stage, ...]) -> str:
    """Return the stages that see a binding, if it is not the compute shaders alone."""
    if stages == ("compute",):
        return ""
    return f", visibility={' | '.join(f'bound.{each.upper()}' for each in stages)}"

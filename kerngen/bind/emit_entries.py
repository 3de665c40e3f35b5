"""Print the classes of entry points: pipelines, vertex and fragment shaders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kerngen.bind.host import PYTHON, integer
from kerngen.bind.model import (
    Bound,
    EntryPoint,
    Location,
    Override,
    Sampler,
    Stage,
    Texture,
)
from kerngen.bind.names import Group, Names
from kerngen.emit.docs import write_docstring
from kerngen.emit.python_code import number, tuple_text
from kerngen.emit.writer import Writer
from kerngen.ir.memory import Leaf
from kerngen.ir.types import Scalar, Vector, scalar_of

_KINDS: Final = {"i32": "i32", "u32": "u32", "f32": "f32", "f16": "f16", "bool": "None"}
_BASES: Final[Mapping[Stage, tuple[str, str]]] = {
    "compute": ("ComputePipeline", "The pipeline of the entry point"),
    "vertex": ("VertexShader", "The vertex shader"),
    "fragment": ("FragmentShader", "The fragment shader"),
}
_FORMATS: Final = {Scalar.F32: "float32", Scalar.I32: "sint32", Scalar.U32: "uint32"}


def write_entry(writer: Writer, entry: EntryPoint, bound: Bound, names: Names) -> None:
    """Write the class of an entry point, its overrides as fields."""
    overrides, groups = names.overrides(entry), names.of_entry[entry.name]
    base, doc = _BASES[entry.stage]
    writer.apart()
    writer.line("@dataclass(frozen=True, slots=True, kw_only=True)")
    with writer.block(f"class {names.entries[entry.name]}(bound.{base}):"):
        write_docstring(writer, [f"{doc} '{entry.name}'."])
        writer.line()
        _write_fields(writer, entry, overrides)
        writer.line("SHADER = _SHADER")
        writer.line(f'ENTRY = "{entry.name}"')
        writer.line(f"GROUPS = {tuple_text(group.name for group in groups)}")
        if entry.overrides:
            specs = (
                f'bound.Override("{overrides[o.name]}", "{o.key}", {_KINDS[o.kind]})'
                for o in entry.overrides
            )
            writer.line(f"OVERRIDES = {tuple_text(specs)}")
        match entry.stage:
            case "compute":
                writer.line()
                _write_workgroup(writer, entry, bound, overrides)
                _write_bind(writer, groups)
            case "vertex":
                inputs = tuple_text(map(_attribute, entry.locations))
                writer.line(f"INPUTS = {inputs}")
            case "fragment":
                outputs = tuple_text(str(each.number) for each in entry.locations)
                writer.line(f"OUTPUTS = {outputs}")


def _write_fields(writer: Writer, entry: EntryPoint, names: Mapping[str, str]) -> None:
    for each in entry.overrides:
        writer.line(f"{names[each.name]}: {_override(each)}")
    if _may_filter(entry):
        writer.line("unfilterable: tuple[str, ...] = ()")
        write_docstring(writer, ["Textures and samplers that don't filter."])
    if entry.overrides or _may_filter(entry):
        writer.line()


def _attribute(location: Location) -> str:
    """Return an input of a vertex shader: `bound.Attribute("uv", 1, "float32x2")`."""
    leaf = location.type
    assert isinstance(leaf, Leaf), "locations have numbers and vectors alone"
    format_ = "float16" if leaf.is_half else _FORMATS[scalar_of(leaf.type)]
    if isinstance(leaf.type, Vector):
        format_ += f"x{leaf.type.width}"
    return f'bound.Attribute("{location.name}", {location.number}, "{format_}")'


def _may_filter(entry: EntryPoint) -> bool:
    """Whether WGSL leaves open which textures of an entry point are filtered."""
    if entry.stage != "compute":
        return False
    types = [each.type for each in entry.bindings]
    samples = {each.sample for each in types if isinstance(each, Texture)}
    return Sampler(comparison=False) in types and "float" in samples


def _override(override: Override) -> str:
    """Return the annotation of an override, with its default."""
    python = PYTHON[override.kind]
    if override.value is None:
        return python
    if override.default is None:
        return f"{python} | None = None"
    convert = {"int": int, "float": float, "bool": bool}[python]
    return f"{python} = {number(convert(override.default.number)).text}"


def _write_workgroup(
    writer: Writer, entry: EntryPoint, bound: Bound, names: Mapping[str, str]
) -> None:
    overrides = {each.name: each for each in entry.overrides}
    sizes = [
        integer(each, bound.constants, overrides, names) for each in entry.workgroup
    ]
    if not all(sizes):
        return  # the base class refuses to count by threads
    texts = [*(size.text for size in sizes if size), "1", "1"][:3]
    writer.line("@property")
    with writer.block("def workgroup_size(self) -> tuple[int, int, int]:"):
        write_docstring(writer, ["How many invocations a workgroup has."])
        writer.line(f"return {', '.join(texts)}")
    writer.line()


def _write_bind(writer: Writer, groups: Sequence[Group]) -> None:
    listed = [f"group{group.index}" for group in groups]
    given = [f"{n}: {g.name}" for n, g in zip(listed, groups, strict=True)]
    parameters = ", ".join(["self", *given, "*", "ctx: Context | None = None"])
    with writer.block(f"def bind({parameters}) -> bound.Dispatch:"):
        write_docstring(writer, ["Return what runs the pipeline on these groups."])
        writer.line(f"return self.dispatch({', '.join(['ctx', *listed])})")

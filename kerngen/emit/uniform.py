"""Print a kernel's uniform struct as a frozen dataclass."""

from __future__ import annotations

from kerngen.emit.docs import write_docstring
from kerngen.emit.python_code import tuple_text
from kerngen.emit.python_names import KernelNames
from kerngen.emit.signature import scalar_annotation
from kerngen.emit.writer import Writer
from kerngen.ir.nodes import Kernel
from kerngen.ir.types import Scalar
from kerngen.layout.struct import LayoutField, StructLayout, uniform_layout

_FORMATS = {Scalar.F32: "<f4", Scalar.I32: "<i4", Scalar.U32: "<u4"}


def write_uniform(writer: Writer, kernel: Kernel, names: KernelNames) -> None:
    """Write the struct's class: its layout stated thrice, then its fields."""
    layout = uniform_layout(kernel)
    fields = names.fields
    writer.line("@dataclass(frozen=True, slots=True)")
    with writer.block(f"class {names.uniform}(UniformStruct):"):
        headline = f"The uniform struct of '{kernel.name}': {layout.size} bytes."
        write_docstring(writer, [headline, "", *_table(layout)])
        writer.line()
        with writer.block("FIELDS: ClassVar[tuple[Field, ...]] = (", ")"):
            for field in layout.fields:
                writer.line(f"{_field(field, fields[field.name])},")
        writer.line(f"SIZE: ClassVar[int] = {layout.size}")
        _write_dtype(writer, layout, fields)
        writer.line()
        for field in layout.fields:
            writer.line(f"{fields[field.name]}: {scalar_annotation(field.type)}")


def _field(field: LayoutField, name: str) -> str:
    width = f", width={field.width}" if field.width > 1 else ""
    scalar = field.scalar.spelling
    return f'Field("{name}", "{scalar}", offset={field.offset}{width})'


def _write_dtype(writer: Writer, layout: StructLayout, fields: dict[str, str]) -> None:
    names = ", ".join(f'"{fields[field.name]}"' for field in layout.fields)
    formats = ", ".join(_format(field) for field in layout.fields)
    offsets = ", ".join(str(field.offset) for field in layout.fields)
    head = "DTYPE: ClassVar[np.dtype[np.void]] = np.dtype("
    with writer.block(head, ")"), writer.block("{", "}"):
        writer.line(f'"names": [{names}],')
        writer.line(f'"formats": [{formats}],')
        writer.line(f'"offsets": [{offsets}],')
        writer.line(f'"itemsize": {layout.size},')


def _format(field: LayoutField) -> str:
    scalar = f'"{_FORMATS[field.scalar]}"'
    return (
        scalar if field.width == 1 else f"({scalar}, {tuple_text([str(field.width)])})"
    )


def _table(layout: StructLayout) -> list[str]:
    """Return the layout as a table, padding included."""
    shown = [
        "padding" if member.is_padding else f"{member.name}: {member.type.spelling}"
        for member in layout.members
    ]
    rule = f"======  ====  {'=' * max(len('field'), *map(len, shown))}"
    rows = [
        f"{member.offset:<6}  {member.size:<4}  {text}"
        for member, text in zip(layout.members, shown, strict=True)
    ]
    return [rule, "offset  size  field", rule, *rows, rule]

"""Print structs as frozen dataclasses: a file's own, and each kernel's uniform struct.

The layout is stated three times, as fields, as a size and as a dtype; `kerngen.runtime.struct`
checks at import that they agree.  A struct of a file is a type of its users, and documented
like one; a kernel's uniform struct is a short table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never, final

from kerngen.emit.docs import paragraphs, summary, write_docstring
from kerngen.emit.python_code import tuple_text
from kerngen.emit.python_names import (
    KernelNames,
    ModuleNames,
    member_names,
    uniform_structs,
)
from kerngen.emit.signature import memory_annotation
from kerngen.emit.writer import Writer
from kerngen.ir.memory import Leaf, Struct, structs_in
from kerngen.ir.module import Module
from kerngen.ir.nodes import Kernel
from kerngen.ir.types import Matrix, Scalar, Storage, Vector
from kerngen.layout.rules import Space
from kerngen.layout.struct import struct_layout, uniform_layout
from kerngen.layout.types import (
    ArrayLayout,
    ColumnsLayout,
    Laid,
    LayoutField,
    LeafLayout,
    StructLayout,
    column_stride,
)

# The NumPy dtypes of numbers in memory, as text; little-endian, as WGSL is.
_DTYPES = {
    Storage.F32: '"<f4"',
    Storage.I32: '"<i4"',
    Storage.U32: '"<u4"',
    Storage.F16: '"<f2"',
    Storage.I64: '"<i8"',
    Storage.U64: '"<u8"',
    Storage.F64: '"<f8"',
}


def inner_first(structs: Iterable[Struct]) -> tuple[Struct, ...]:
    """Return structs in an order in which each comes after the structs in it."""
    listed = tuple(structs)
    ordered = (inner for struct in listed for inner in structs_in(struct))
    return tuple(dict.fromkeys(struct for struct in ordered if struct in listed))


def write_structs(writer: Writer, module: Module, names: ModuleNames) -> None:
    """Write the classes of a file's structs, then those that lay structs out as uniforms.

    In both parts a struct comes after the structs in it.
    """
    for struct in inner_first(module.structs):
        printer = StructPrinter(writer, names, member_names(struct))
        doc = summary(struct.doc, f"The struct '{struct.name}' of {module.path}.")
        lines = [*paragraphs("\n".join(doc), depth=1)]
        writer.apart()
        printer.write(names.structs[struct], "Struct", struct_layout(struct), lines)
    for struct in uniform_structs(module):
        printer = StructPrinter(writer, names, member_names(struct))
        own, layout = names.structs[struct], struct_layout(struct, Space.UNIFORM)
        writer.apart()
        headline = f"`{own}` as uniform buffers hold it."
        printer.write(names.uniforms[struct], own, layout, [headline])


def write_uniform(
    writer: Writer, kernel: Kernel, names: KernelNames, module: ModuleNames
) -> None:
    """Write the class of a kernel's uniform struct."""
    printer = StructPrinter(writer, module, names.fields)
    headline = f"The uniform struct of '{kernel.name}'."
    printer.write_table(names.uniform, uniform_layout(kernel), headline)


@final
@dataclass(frozen=True, slots=True)
class StructPrinter:
    """Writes the class of one struct; `fields` has the Python names of its members."""

    writer: Writer
    names: ModuleNames
    fields: Mapping[str, str]

    def write(self, name: str, base: str, layout: StructLayout, doc: list[str]) -> None:
        """Write a documented class; unless `base` is `Struct`, its attributes are inherited."""
        writer = self.writer
        writer.line("@dataclass(frozen=True, slots=True)")
        with writer.block(f"class {name}({base}):"):
            write_docstring(writer, [*doc, "", *layout_table(layout)])
            writer.line()
            self._write_fields(layout)
            writer.line(f"SIZE: ClassVar[int] = {layout.size}")
            self._write_dtype("DTYPE: ClassVar[np.dtype[np.void]] = np.dtype(", layout)
            if base == "Struct":
                writer.line()
                self._write_attributes(layout)

    def write_table(self, name: str, layout: StructLayout, doc: str) -> None:
        """Write a class with a docstring of one line, `doc`, and its layout as a short table.

        class AxpyUniform(UniformStruct):
            n: int
            a: float
            FIELDS = (Field("n", u32, 0), Field("a", f32, 4))
            DTYPE = np.dtype([("n", "<u4"), ("a", "<f4")])
            SIZE = 8
        """
        writer = self.writer
        writer.line("@dataclass(frozen=True, slots=True)")
        with writer.block(f"class {name}(UniformStruct):"):
            write_docstring(writer, [doc])
            writer.line()
            self._write_attributes(layout)
            writer.line()
            writer.line(f"FIELDS = {tuple_text(map(self.field, layout.fields))}")
            if any(field.padding for field in layout.fields):
                self._write_dtype("DTYPE = np.dtype(", layout)
            else:
                items = (self._dtype_item(field) for field in layout.fields)
                writer.line(f"DTYPE = np.dtype([{', '.join(items)}])")
            writer.line(f"SIZE = {layout.size}")

    def _dtype_item(self, field: LayoutField) -> str:
        """Return a field of a dtype without gaps: `("v", "<f4", (3,))`."""
        base, shape = self._dtype(field.laid)
        shown = f", {tuple_text(map(str, shape))}" if shape else ""
        return f'("{self.fields[field.name]}", {base}{shown})'

    def _write_fields(self, layout: StructLayout) -> None:
        """Write the tuple FIELDS, with a line for each field if there are several."""
        head = "FIELDS: ClassVar[tuple[Field, ...]] = ("
        fields = [self.field(field) for field in layout.fields]
        if len(fields) == 1:
            self.writer.line(f"{head}{fields[0]},)")
            return
        with self.writer.block(head, ")"):
            for field in fields:
                self.writer.line(f"{field},")

    def _write_attributes(self, layout: StructLayout) -> None:
        for field in layout.fields:
            annotation = memory_annotation(field.type)
            self.writer.line(f"{self.fields[field.name]}: {annotation}")
            if field.doc and layout.struct is not None:
                lines = paragraphs(field.doc.strip(), depth=1)
                write_docstring(self.writer, lines)

    def field(self, field: LayoutField) -> str:
        """Return the code of a member's `Field`, which states its type, offset and strides.

        `trail: vec3f[5]` at 16 becomes
        `Field("trail", vec3f, 16, lengths=(5,), stride=16)`.
        """
        # Arrays of arrays are one array of several lengths; the stride is the innermost one's.
        laid, stride = field.laid, 0
        lengths: list[str] = []
        while isinstance(laid, ArrayLayout):
            lengths.append(str(laid.length))
            stride = laid.stride
            laid = laid.element
        text = f'"{self.fields[field.name]}", {self._type(laid)}, {field.offset}'
        if lengths:
            text += f", lengths={tuple_text(lengths)}, stride={stride}"
        columns = column_stride_of(laid)
        return f"Field({text}{f', column_stride={columns}' if columns else ''})"

    def _type(self, laid: Laid) -> str:
        match laid:
            case LeafLayout(leaf=leaf) | ColumnsLayout(leaf=leaf):
                return leaf.spelling
            case StructLayout():
                return self._class(laid)
            case ArrayLayout(element=element):
                return self._type(element)
            case _:
                assert_never(laid)

    def _class(self, layout: StructLayout) -> str:
        """Return the class that has a nested struct's layout."""
        struct = layout.struct
        assert struct is not None, "padding is no value"
        is_own = layout.name == struct.name
        return (self.names.structs if is_own else self.names.uniforms)[struct]

    def _write_dtype(self, head: str, layout: StructLayout) -> None:
        """Write a dtype with gaps, by names, formats, offsets and itemsize."""
        names = ", ".join(f'"{self.fields[field.name]}"' for field in layout.fields)
        formats = ", ".join(self._format(field.laid) for field in layout.fields)
        offsets = ", ".join(str(field.offset) for field in layout.fields)
        with self.writer.block(head, ")"), self.writer.block("{", "}"):
            self.writer.line(f'"names": [{names}],')
            self.writer.line(f'"formats": [{formats}],')
            self.writer.line(f'"offsets": [{offsets}],')
            self.writer.line(f'"itemsize": {layout.size},')

    def _format(self, laid: Laid) -> str:
        base, shape = self._dtype(laid)
        return f"({base}, {tuple_text(map(str, shape))})" if shape else base

    def _dtype(self, laid: Laid) -> tuple[str, tuple[int, ...]]:
        """Return the dtype of one item, and the shape of the array of them.

        `vec3f[5]` in a storage buffer, whose elements are 16 bytes apart, is
        `spaced(("<f4", (3,)), 16)` and (5,); `f32[5]` is `"<f4"` and (5,).
        """
        match laid:
            case LeafLayout(leaf=leaf) | ColumnsLayout(leaf=leaf):
                return _leaf_dtype(leaf, column_stride_of(laid))
            case StructLayout():
                return f"{self._class(laid)}.DTYPE", ()
            case ArrayLayout(element=element, length=length, stride=stride):
                # Adjacent elements join their axes; others are records with a gap.
                base, shape = self._dtype(element)
                if stride == element.size:
                    return base, (length, *shape)
                return f"spaced({self._format(element)}, {stride})", (length,)
            case _:
                assert_never(laid)


def _leaf_dtype(leaf: Leaf, column_stride: int) -> tuple[str, tuple[int, ...]]:
    base = _DTYPES[leaf.storage]
    match leaf.type:
        case Scalar():
            return base, ()
        case Vector(width=width):
            return base, (width,)
        case Matrix(columns=columns, rows=rows):
            if column_stride == rows * leaf.storage.size:
                return base, (columns, rows)
            return f"spaced(({base}, ({rows},)), {column_stride})", (columns,)
        case _:
            assert_never(leaf.type)


def column_stride_of(laid: Laid) -> int:
    """Return the distance in bytes between a matrix's columns, or 0 for other types."""
    match laid:
        case LeafLayout(leaf=leaf) if column := column_stride(leaf):
            return column[1]
        case ColumnsLayout(columns=columns):
            return columns.stride
        case _:
            return 0


def layout_table(layout: StructLayout) -> list[str]:
    """Return the lines of a table of a layout, padding included."""
    rows = list(_rows(layout))
    rule = f"======  ====  {'=' * max(len('field'), *(len(text) for *_, text in rows))}"
    shown = [f"{offset:<6}  {size:<4}  {text}" for offset, size, text in rows]
    return [rule, "offset  size  field", rule, *shown, rule]


def _rows(layout: StructLayout) -> Iterator[tuple[int, int, str]]:
    for field in layout.fields:
        yield field.offset, field.size, f"{field.name}: {field.type.spelling}"
        if field.padding:
            yield field.end, field.padding, "padding"

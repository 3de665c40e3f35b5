"""Structs in JavaScript, as layout tables, and in TypeScript, as interfaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from kerngen.emit.structs import column_stride_of, layout_table
from kerngen.ir.memory import FixedArray, Leaf, MemoryType, Struct
from kerngen.ir.types import Matrix, Scalar, ValueType, Vector
from kerngen.layout.types import (
    ArrayLayout,
    ColumnsLayout,
    Laid,
    LayoutField,
    LeafLayout,
    StructLayout,
)
from kerngen.typescript.names import js_name, js_string


def struct_text(
    name: str,
    layout: StructLayout,
    fields: Mapping[str, str],
    classes: Mapping[str, str],
) -> str:
    """Return the JavaScript expression that defines a struct by its layout.

    A row is a field: its name, type and offset; of an array also its lengths and stride.
    `fields` are the names of members, `classes` those of nested structs.

        $.struct("Ray", 32, [["from", "vec3f", 0], ["trail", "f32", 16, [4], 4]])
    """
    rows = ", ".join(_row(f, fields[f.name], classes) for f in layout.fields)
    return f"$.struct({js_string(name)}, {layout.size}, [{rows}])"


def _row(field: LayoutField, name: str, classes: Mapping[str, str]) -> str:
    laid, stride = field.laid, 0
    lengths: list[str] = []
    while isinstance(laid, ArrayLayout):
        lengths.append(str(laid.length))
        stride = laid.stride
        laid = laid.element
    parts = [js_string(name), _type(laid, classes), str(field.offset)]
    columns = column_stride_of(laid)
    if lengths or columns:
        parts += [f"[{', '.join(lengths)}]", str(stride)]
    if columns:
        parts.append(str(columns))
    return f"[{', '.join(parts)}]"


def _type(laid: Laid, classes: Mapping[str, str]) -> str:
    match laid:
        case LeafLayout(leaf=leaf) | ColumnsLayout(leaf=leaf):
            return js_string(leaf.spelling)
        case StructLayout(name=name):
            return classes[name]
        case ArrayLayout(element=element):
            return _type(element, classes)
        case _:
            assert_never(laid)


def record_lines(
    name: str,
    layout: StructLayout,
    fields: Mapping[str, str],
    classes: Mapping[str, str],
) -> list[str]:
    """Return the interface of a struct's values, and the object that packs them."""
    body: list[str] = []
    for field in layout.fields:
        body += [f"  /** {' '.join(field.doc.split())} */"] if field.doc.strip() else []
        body.append(
            f"  readonly {fields[field.name]}: {value_type(field.type, classes)};"
        )
    return [
        f"export interface {name} {{",
        *body,
        "}",
        f"export declare const {name}: $.StructType<{name}>;",
    ]


def value_type(memory: MemoryType, classes: Mapping[str, str]) -> str:
    """Return the TypeScript type of a value: `number`, `$.Vec3`, `readonly Light[]`."""
    match memory:
        case Leaf(type=type_):
            return _leaf_type(type_)
        case FixedArray(element=element):
            return f"ReadonlyArray<{value_type(element, classes)}>"
        case Struct(name=name):
            return classes.get(name, js_name(name))
        case _:
            assert_never(memory)


def _leaf_type(type_: ValueType) -> str:
    match type_:
        case Scalar():
            return "number"
        case Vector(width=width):
            return f"$.Vec{width}"
        case Matrix(columns=columns, rows=rows):
            return f"$.Mat{columns}x{rows}"
        case _:
            assert_never(type_)


def doc_table(layout: StructLayout) -> list[str]:
    """Return a struct's layout as a table, in the lines of a doc comment."""
    return ["```text", *layout_table(layout)[1:-1], "```"]

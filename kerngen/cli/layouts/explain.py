"""Explanations of a field's offset, for readers who don't know the WGSL specification."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, assert_never

from kerngen.cli.layouts.fields import PathStep, Reached, follow
from kerngen.ir.memory import FixedArray, Leaf, Member, MemoryType, Struct
from kerngen.ir.types import Matrix, Scalar, Vector
from kerngen.layout import types as layout
from kerngen.layout.rules import UNIFORM_UNIT, Space
from kerngen.report.layout_data import LayoutSubject
from kerngen.report.layout_picture import Pieces


def explain_field(
    subject: LayoutSubject, steps: Sequence[PathStep]
) -> Iterator[Pieces]:
    """Yield the lines that `kerngen layout --explain` prints."""
    ways = [[*follow(laid, steps)] for laid in subject.layouts]
    reached = ways[0][-1].field
    name = ".".join(_written(step) for step in steps)
    yield ((f"{subject.name}.{name}", "bold"), (f": {reached.type.spelling}", ""))
    texts = [[*_way(way), *_sentences(way[-1])] for way in ways]
    groups = [(texts[0], [way[-1].within.space for way in ways])]
    if any(text != texts[0] for text in texts):
        groups = [
            (text, [way[-1].within.space])
            for text, way in zip(texts, ways, strict=True)
        ]
    for (text, spaces), way in zip(groups, ways, strict=False):
        yield ()
        yield ((_WHERE[tuple(spaces)], "bold"),)
        yield from (((f"  {sentence}", ""),) for sentence in text)
        yield from _rules(way[-1])


_WHERE: Final[dict[tuple[Space, ...], str]] = {
    (Space.STORAGE, Space.UNIFORM): "In storage and uniform buffers alike",
    (Space.STORAGE,): "In a storage buffer, where tensors are",
    (Space.UNIFORM,): "In a uniform buffer, where parameters are",
}


def _written(step: PathStep) -> str:
    return step.name + "".join(f"[{place}]" for place in step.places)


def _way(way: Sequence[Reached]) -> Iterator[str]:
    """Describe how a field of a struct within others, or an element, is reached."""
    last = way[-1]
    if len(way) == 1 and not last.distance:
        return
    parts: list[str] = []
    total = 0
    for reached in way:
        parts.append(f"'{reached.field.name}' at {reached.field.offset}")
        if reached.distance:
            parts.append(f"the element {reached.distance} further")
        total += reached.field.offset + reached.distance
    outer = way[0].within.struct.name if way[0].within.struct else way[0].within.name
    yield f"From the start of '{outer}': {', '.join(parts)}; together {total}."
    if len(way) > 1:
        yield f"Of '{last.field.name}' within '{last.within.name}':"


def _sentences(reached: Reached) -> Iterator[str]:
    """Yield sentences about a field: its start, its size, the padding behind it."""
    laid, number = reached.within, reached.number
    yield from _start(laid, number)
    yield _size(laid.fields[number])
    yield from _behind(laid, number)


def _rules(reached: Reached) -> Iterator[Pieces]:
    """Yield the rules of the layout, each with its section of the specification."""
    yield (("  The rules:", ""),)
    for rule in reached.field.rules:
        yield (("    ", ""), (rule.text, ""), (f" ({rule.section})", "dim"))


# The start of a field


def _start(laid: layout.StructLayout, number: int) -> Iterator[str]:
    field = laid.fields[number]
    if number == 0:
        yield "It starts at 0: it is the first field."
        return
    # `free`: the first byte behind the field before, its `@size` and the uniform rule for
    # structs included.
    before = laid.fields[number - 1]
    free = (
        before.offset + layout.footprint_of(_member(laid, number - 1), laid.space).size
    )
    yield from _end_of(laid, number - 1)
    reason = _alignment(laid, number)
    if field.offset == free:
        yield f"It starts at {field.offset}, right there: {reason}, which {free} is."
        return
    gap = field.offset - before.end
    yield (
        f"It starts at {field.offset}: {reason}, and {field.offset} is the first from "
        f"{free} on. The {_bytes(gap)} between '{before.name}' and it are padding."
    )


def _end_of(laid: layout.StructLayout, number: int) -> Iterator[str]:
    """Describe the end of a field, from which on the next one may start."""
    field, member = laid.fields[number], _member(laid, number)
    said = f"The field before it, '{field.name}', starts at {field.offset} and takes "
    if member.size and member.size > field.size:
        end = field.offset + member.size
        yield f"{said}{_bytes(field.size)}; '@size({member.size})' keeps those up to {end} for it."
    else:
        yield f"{said}{_bytes(field.size)}, up to {field.end}."
    free = field.offset + layout.footprint_of(member, laid.space).size
    if free > field.offset + max(field.size, member.size or 0):
        yield (
            "It is a struct, and in a uniform buffer what follows a struct starts a "
            f"multiple of 16 behind its start: at {free}."
        )


def _alignment(laid: layout.StructLayout, number: int) -> str:
    """Describe the alignment of a field, and its reason."""
    field, member = laid.fields[number], _member(laid, number)
    if member.align and member.align > field.laid.align:
        return f"'@align({member.align})' asks for a multiple of {member.align}"
    if member.align == field.align:
        return (
            f"'@align({member.align})' and its type ask for a multiple of {field.align}"
        )
    return f"{_kind(field.type)} starts at a multiple of {field.align}{_because(field)}"


def _because(field: layout.LayoutField) -> str:
    match field.laid:
        case layout.LeafLayout(
            leaf=Leaf(type=Scalar() | Matrix() | Vector() as type_) as leaf
        ):
            if isinstance(type_, Matrix):
                column = Leaf(type_.column, leaf.is_half).spelling
                return f", as each of its columns does, {_a(column)}"
            is_vec3 = isinstance(type_, Vector) and type_.width == 3
            return " like one of 4 components" if is_vec3 else ", its size"
        case layout.ColumnsLayout():
            return " in a uniform buffer, where it is kept as an array of its columns"
        case layout.ArrayLayout(element=element):
            if element.align != field.laid.align:
                return " in a uniform buffer"
            return ", as each of its elements does"
        case layout.StructLayout() as inner:
            if all(each.align < inner.align for each in inner.fields):
                return " in a uniform buffer"
            return ", the largest that one of its fields asks for"
        case _:
            assert_never(field.laid)


# The size of a field


def _size(field: layout.LayoutField) -> str:
    total = f"It takes {_bytes(field.size)}"
    match field.laid:
        case layout.LeafLayout(leaf=leaf):
            return f"{total}{_of_leaf(leaf)}."
        case layout.ColumnsLayout(leaf=leaf, columns=columns):
            return (
                f"{total}: {columns.length} columns, of {_bytes(layout.column_size(leaf))} "
                f"each, one every {columns.stride} bytes. In a uniform buffer kerngen "
                "keeps it as these columns, since some adapters read such a matrix wrong."
            )
        case layout.ArrayLayout():
            return f"{total}: {_of_array(field.laid, field.type)}"
        case layout.StructLayout(name=name):
            return f"{total}, the size of '{name}'."
        case _:
            assert_never(field.laid)


def _of_leaf(leaf: Leaf) -> str:
    if columns := layout.column_stride(leaf):
        count, stride = columns
        each = _bytes(layout.column_size(leaf))
        return f": {count} columns, of {each} each, one every {stride} bytes"
    if isinstance(leaf.type, Vector):
        return f": {leaf.type.width} components of {_bytes(leaf.storage.size)}"
    return ""


def _of_array(laid: layout.ArrayLayout, type_: MemoryType) -> str:
    element = type_.element.spelling if isinstance(type_, FixedArray) else ""
    count = f"{laid.length} element{'' if laid.length == 1 else 's'}"
    said = f"{count}, each {_a(element)} of {_bytes(laid.element.size)}, one every {laid.stride}"
    if laid.stride == laid.element.size:
        return f"{said}."
    if laid.stride % laid.element.align or laid.align != laid.element.align:
        return (
            f"{said}: in a uniform buffer, elements lie a multiple of 16 bytes apart."
        )
    return f"{said}, the next multiple of what it is aligned to, {laid.element.align}."


# Padding behind a field


def _behind(laid: layout.StructLayout, number: int) -> Iterator[str]:
    field, member = laid.fields[number], _member(laid, number)
    if not field.padding:
        return
    unused = f"The {_bytes(field.padding)} behind it are padding"
    if field.padding == 1:
        unused = "The byte behind it is padding"
    if member.size and member.size > field.size:
        unused += f", which '@size({member.size})' asks for"
    if number + 1 < len(laid.fields):
        following = laid.fields[number + 1]
        yield f"{unused}: the next field, '{following.name}', starts at {following.offset}."
        return
    if field.offset + layout.footprint_of(member, laid.space).size == laid.size:
        yield f"{unused}: '{laid.name}' is {_bytes(laid.size)} long."
        return
    is_ours = all(each.align < laid.align for each in laid.fields)
    whose = (
        f"of {UNIFORM_UNIT} in a uniform buffer"
        if is_ours and laid.space is Space.UNIFORM
        else (f"of its alignment, {laid.align}")
    )
    yield f"{unused}: the size of a struct is a multiple {whose}, so it ends at {laid.size}."


# Words


def _member(laid: layout.StructLayout, number: int) -> Member:
    if laid.struct is not None:
        return laid.struct.members[number]
    field = laid.fields[number]
    return Member(field.name, field.type)


def _kind(type_: MemoryType) -> str:
    match type_:
        case Leaf():
            return _a(type_.spelling)
        case FixedArray():
            return "an array"
        case Struct():
            return f"the struct '{type_.name}'"
        case _:
            assert_never(type_)


def _a(name: str) -> str:
    """Return a type's name with its article: an 'f32', a 'vec3f'."""
    article = "an" if name in {"f16", "f32", "i32"} or name[:1] in "aeio" else "a"
    return f"{article} {name}"


def _bytes(number: int) -> str:
    return f"{number} byte{'' if number == 1 else 's'}"

"""Access to parts of structs in Python: attributes of objects, fields of arrays."""

from __future__ import annotations

from kerngen.emit.python_names import member_names
from kerngen.ir.analysis.affine import as_literal
from kerngen.ir.memory import FixedArray, Leaf, MemoryType, Struct
from kerngen.ir.nodes import At, Field, Path, reach
from kerngen.ir.types import Matrix
from kerngen.ir.walk import subscript_value
from kerngen.layout.rules import Space, leaf_footprint
from kerngen.layout.types import lay_out

RECORD = "value"
"""The field of a record dtype that has an element, and a gap behind it: a vec3f of 16 bytes."""


def literal_place(at: At) -> int | None:
    """Return the subscript of an array's element if it is a literal, else None.

    It is clamped to the array.
    """
    place = as_literal(subscript_value(at.place))
    return None if place is None else min(max(place, 0), at.length - 1)


def is_static(path: Path) -> bool:
    """Whether a path leads to the same part every time: all its subscripts are literals."""
    places = (literal_place(step) for step in path if isinstance(step, At))
    return None not in places


def attributes(memory: MemoryType, path: Path, text: str, depth: int = 1) -> str:
    """Return Python code for a part of a struct's object, whose own code is `text`.

    An array with a subscript that is no literal becomes a list of the part in every element.
    `depth` numbers the variables of nested comprehensions.

    Before:  scene, .lights[j].color
    After:   [item.color for item in scene.lights]
    """
    if not path:
        return text
    # A member, a literal place, or all elements of an array, by a comprehension.
    step, rest = path[0], path[1:]
    inner = reach(memory, (step,))
    if isinstance(step, Field):
        return attributes(inner, rest, f"{text}.{_member(memory, step)}", depth)
    place = literal_place(step)
    if place is not None:
        return attributes(inner, rest, f"{text}[{place}]", depth)
    if not rest:
        return text
    item = "item" if depth == 1 else f"item_{depth}"
    return f"[{attributes(inner, rest, item, depth + 1)} for {item} in {text}]"


def fields(memory: MemoryType, path: Path) -> str:
    """Return the Python subscripts that select the members of a path in an array of records.

    They have no subscripts for fixed arrays, whose axes are the last ones of the result.

    Before:  .trail[k]
    After:   ["trail"]
    """
    text = ""
    for step in path:
        if isinstance(step, Field):
            text += f'["{_member(memory, step)}"]'
        elif _is_apart(memory):
            text += f'["{RECORD}"]'
        memory = reach(memory, (step,))
    return text + (f'["{RECORD}"]' if path and _is_apart(memory) else "")


def _is_apart(memory: MemoryType) -> bool:
    """Whether elements or columns lie further apart than they are long."""
    if isinstance(memory, FixedArray):
        laid = lay_out(memory.element, Space.STORAGE)
        return laid.size % laid.align != 0
    if isinstance(memory, Leaf) and isinstance(memory.type, Matrix):
        column = leaf_footprint(Leaf(memory.type.column, memory.is_half))
        return column.stride != column.size
    return False


def _member(memory: MemoryType, step: Field) -> str:
    assert isinstance(memory, Struct), "only structs have members"
    return member_names(memory)[step.name]

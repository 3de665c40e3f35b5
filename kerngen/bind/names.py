"""The Python names of a WGSL module's declarations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from kerngen.bind.model import STAGES, Binding, Bound, EntryPoint, RuntimeStruct, Stage
from kerngen.emit.imports import BOUND
from kerngen.emit.python_names import (
    BUILTINS_IN_USE,
    KEYWORDS,
    MODULE_NAMES,
    ModuleNames,
    PythonNamer,
    class_name,
)
from kerngen.ir.memory import WIDE, Struct
from kerngen.layout.struct import pascal_case

_RESERVED = KEYWORDS | BUILTINS_IN_USE | MODULE_NAMES | {BOUND, *WIDE}
_GROUP_MEMBERS = frozenset(
    ("BINDINGS", "GROUP", "context", "create", "create_layout", "items")
)
_ENTRY_MEMBERS = frozenset(
    "ENTRY GROUPS INPUTS OUTPUTS OVERRIDES SHADER bind buffer constants ctx dispatch "
    "programmed self state unfilterable unfiltered workgroup_size".split()
)


@final
@dataclass(frozen=True, slots=True)
class BindGroupClass:
    """A bind group's class: its name, index and bindings."""

    name: str
    index: int
    bindings: tuple[Binding, ...]
    stages: tuple[tuple[Stage, ...], ...]
    """The stages that use each binding, in the order of `bindings`."""


@final
@dataclass(frozen=True, slots=True)
class Names:
    """The class names of a module, and the field names in its classes."""

    structs: ModuleNames
    groups: tuple[BindGroupClass, ...]
    of_entry: Mapping[str, tuple[BindGroupClass, ...]]
    entries: Mapping[str, str]

    def fields(self, group: BindGroupClass) -> dict[str, str]:
        """Return the field names of a bind group's bindings."""
        taken = _RESERVED | _GROUP_MEMBERS | {*self.structs.structs.values()}
        return PythonNamer(taken).claim_all(each.name for each in group.bindings)

    def overrides(self, entry: EntryPoint) -> dict[str, str]:
        """Return the field names of a pipeline's overrides."""
        taken = _RESERVED | _ENTRY_MEMBERS
        return PythonNamer(taken).claim_all(each.name for each in entry.overrides)


def struct_of(struct: Struct | RuntimeStruct) -> Struct:
    """Return a struct; one that ends in a runtime-sized array has one element of it."""
    return struct.struct if isinstance(struct, RuntimeStruct) else struct


def names_of(bound: Bound) -> Names:
    """Return the Python names of a module's declarations."""
    structs = {s: class_name(s) for s in map(struct_of, bound.structs)}
    namer = PythonNamer(_RESERVED | {*structs.values()})
    shaders = {e.name: namer.claim(pascal_case(e.name)) for e in bound.entries}
    # Entry points whose groups have the same bindings share the class of the group.
    groups: dict[tuple[int, tuple[Binding, ...]], BindGroupClass] = {}
    of_entry: dict[str, tuple[BindGroupClass, ...]] = {}
    for prefix, unit in _units(bound.entries):
        reached = {binding for entry in unit for binding in entry.bindings}
        for index in sorted({each.group for each in reached}):
            bindings = _ordered(each for each in reached if each.group == index)
            if (index, bindings) not in groups:
                name = namer.claim(f"{prefix}Group{index}")
                stages = tuple(_stages(each, bound.entries) for each in bindings)
                groups[index, bindings] = BindGroupClass(name, index, bindings, stages)
        for entry in unit:
            own = {each.group for each in entry.bindings}
            found = [
                groups[index, _ordered(each for each in reached if each.group == index)]
                for index in sorted(own)
            ]
            of_entry[entry.name] = tuple(found)
    made = ModuleNames({}, {}, {}, structs, {})
    return Names(made, tuple(groups.values()), of_entry, shaders)


def _units(
    entries: Sequence[EntryPoint],
) -> Iterator[tuple[str, tuple[EntryPoint, ...]]]:
    """Yield the entry points that share their groups, with the prefix of the groups' names.

    - No two variables have the same group and binding: all share `Group0`. But if shaders
      that draw read what is computed, they share `RenderGroup0`.
    - Two have: each compute shader has its own, as `BlurGroup0`. Shaders that draw share
      `RenderGroup0` if among them no two have.
    """
    drawing = tuple(each for each in entries if each.stage != "compute")
    if _fit_together(entries):
        computing = tuple(each for each in entries if each.stage == "compute")
        if _are_drawn(computing, drawing):
            yield "", computing
            yield "Render", drawing
        else:
            yield "", tuple(entries)
        return
    if drawing and _fit_together(drawing):
        yield "Render", drawing
        drawing = ()
    for entry in entries:
        if entry.stage == "compute" or entry in drawing:
            yield pascal_case(entry.name), (entry,)


def _fit_together(entries: Iterable[EntryPoint]) -> bool:
    """Whether no two variables of some entry points have the same group and binding."""
    reached = {binding for entry in entries for binding in entry.bindings}
    return len({(each.group, each.number) for each in reached}) == len(reached)


def _are_drawn(computing: Iterable[EntryPoint], drawing: Iterable[EntryPoint]) -> bool:
    """Whether shaders that draw read what compute shaders write, at another binding.

    Such are particles that are `read_write` where they are moved, and `read` at another
    binding of the group where they are drawn. Both are mostly one buffer, which no group
    may have twice. They are recognised by their type.
    """
    moved = {each for entry in computing for each in entry.bindings}
    drawn = {each for entry in drawing for each in entry.bindings}
    return any(
        one.writes and (one.group, one.type) == (other.group, other.type)
        for one in moved - drawn
        for other in drawn - moved
    )


def _stages(binding: Binding, entries: Iterable[EntryPoint]) -> tuple[Stage, ...]:
    """Return the stages that use a binding."""
    used = {each.stage for each in entries if binding in each.bindings}
    return tuple(stage for stage in STAGES if stage in used)


def _ordered(bindings: Iterable[Binding]) -> tuple[Binding, ...]:
    return tuple(sorted(bindings, key=lambda each: each.number))

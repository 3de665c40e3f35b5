"""What everything of a bound module is called in Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import final

from kerngen.bind.model import Binding, Bound, EntryPoint, RuntimeStruct
from kerngen.emit.python_names import (
    BUILTINS_IN_USE,
    KEYWORDS,
    MODULE_NAMES,
    ModuleNames,
    PythonNamer,
    class_name,
)
from kerngen.ir.memory import Struct
from kerngen.layout.struct import pascal_case

_RESERVED = KEYWORDS | BUILTINS_IN_USE | MODULE_NAMES
_GROUP_MEMBERS = frozenset(("BINDINGS", "GROUP", "context", "items"))
_PIPELINE_MEMBERS = frozenset(
    (
        "unfilterable",
        "unfiltered",
        "ENTRY",
        "GROUPS",
        "OVERRIDES",
        "SHADER",
        "bind",
        "constants",
        "dispatch",
        "self",
    )
) | {"workgroup_size", "ctx"}


@final
@dataclass(frozen=True, slots=True)
class Group:
    """A bind group's class: its name, its index, and what it binds."""

    name: str
    index: int
    bindings: tuple[Binding, ...]


@final
@dataclass(frozen=True, slots=True)
class Names:
    """The classes of a module, and the names of fields in them."""

    structs: ModuleNames
    groups: tuple[Group, ...]
    of_entry: Mapping[str, tuple[Group, ...]]
    pipelines: Mapping[str, str]

    def fields(self, group: Group) -> dict[str, str]:
        """Return what the bindings of a group are called."""
        taken = _RESERVED | _GROUP_MEMBERS | {*self.structs.structs.values()}
        return PythonNamer(taken).claim_all(each.name for each in group.bindings)

    def overrides(self, entry: EntryPoint) -> dict[str, str]:
        """Return what the overrides of a pipeline are called."""
        taken = _RESERVED | _PIPELINE_MEMBERS
        return PythonNamer(taken).claim_all(each.name for each in entry.overrides)


def struct_of(struct: Struct | RuntimeStruct) -> Struct:
    """Return a struct; one of any length with one element."""
    return struct.struct if isinstance(struct, RuntimeStruct) else struct


def names_of(bound: Bound) -> Names:
    """Name everything of a module."""
    structs = {s: class_name(s) for s in map(struct_of, bound.structs)}
    namer = PythonNamer(_RESERVED | {*structs.values()})
    entries = [each for each in bound.entries if each.stage == "compute"]
    pipelines = {e.name: namer.claim(pascal_case(e.name)) for e in entries}
    groups: dict[Group, None] = {}
    of_entry: dict[str, tuple[Group, ...]] = {}
    shared = _shared_groups(bound, namer)
    for entry in entries:
        own: list[Group] = []
        for index in sorted({each.group for each in entry.bindings}):
            group = shared.get(index) or _own_group(entry, index, groups, namer)
            groups[group] = None
            own.append(group)
        of_entry[entry.name] = tuple(own)
    made = ModuleNames({}, {}, {}, structs, {})
    return Names(made, tuple(groups), of_entry, pipelines)


def _shared_groups(bound: Bound, namer: PythonNamer) -> dict[int, Group]:
    """Return the groups that all entry points have in common.

    Such a group has every binding of its index that an entry point reaches; where two of
    them have the same number, each entry point has a group of its own.
    """
    reached = {b for e in bound.entries if e.stage == "compute" for b in e.bindings}
    shared: dict[int, Group] = {}
    for index in sorted({each.group for each in reached}):
        bindings = _ordered(each for each in reached if each.group == index)
        if len({each.number for each in bindings}) == len(bindings):
            shared[index] = Group(namer.claim(f"Group{index}"), index, bindings)
    return shared


def _own_group(
    entry: EntryPoint, index: int, known: Mapping[Group, None], namer: PythonNamer
) -> Group:
    bindings = _ordered(each for each in entry.bindings if each.group == index)
    for group in known:
        if group.bindings == bindings:
            return group
    return Group(namer.claim(f"{pascal_case(entry.name)}Group{index}"), index, bindings)


def _ordered(bindings: Iterable[Binding]) -> tuple[Binding, ...]:
    return tuple(sorted(bindings, key=lambda each: each.number))

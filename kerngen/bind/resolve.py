"""Resolve the declarations of a WGSL module to its interface."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast, final

from kerngen.bind import model, tree
from kerngen.bind.constants import Constants, ConstantValue, Kind
from kerngen.bind.faults import (
    CircularDeclaration,
    DeclaredTwice,
    MissingBinding,
    MissingWorkgroupSize,
    NagaMisreads,
    NativeType,
    NotShareable,
    SameBinding,
    WgslNestedTooDeep,
    WgslSyntax,
    WrongValue,
)
from kerngen.bind.foreign import NAGA
from kerngen.bind.interface import Interface
from kerngen.bind.missing import missing
from kerngen.bind.naga import misread
from kerngen.bind.parser import parse
from kerngen.bind.reach import CallGraph, names_in
from kerngen.bind.types import Types
from kerngen.ir.memory import WIDE, Leaf, Struct, structs_in
from kerngen.source.diagnostic import CompileError, Diagnostic, Faults
from kerngen.source.text import Source, Span

_INFERRED: Final[Mapping[Kind, Kind]] = {
    "int": "i32",
    "float": "f32",
    "i32": "i32",
    "u32": "u32",
    "f32": "f32",
    "f16": "f16",
    "bool": "bool",
}
"""The type of an override that declares none, by the type of its value."""

_WRITTEN: Final[Mapping[str, Kind]] = {kind: kind for kind in _INFERRED.values()}
"""The types of overrides, by their names."""

_IMMEDIATES: Final = frozenset(("immediate", "push_constant"))
"""The address space that naga has beyond WGSL, by its new name and its old one."""


def read(source: Source) -> model.Bound:
    """Return a WGSL file's interface; raise `CompileError` with all errors."""
    try:
        return _read(source)
    except RecursionError:
        span = Span(source, 0, 0)
        raise CompileError([WgslNestedTooDeep(span=span)]) from None


def _read(source: Source) -> model.Bound:
    """Return the interface; all passes add to one list of faults before it is raised."""
    module = parse(source)
    faults = Faults()
    declared: dict[str, tree.Declaration] = {}
    for each in module.declarations:
        declared.setdefault(each.name.text, each)
    bodies = (d.members for d in module.declarations if isinstance(d, tree.Struct))
    for scope in (module.declarations, *bodies):
        for fault in _twice([each.name for each in scope]):
            faults.add(fault)
    # Bindings, overrides and structs first: entry points refer to them.
    constants = Constants(declared)
    reader = _Reader(declared, constants, Types(declared, constants))
    bindings: list[model.Binding] = []
    overrides: list[model.Override] = []
    structs: list[Struct | model.RuntimeStruct] = []
    for each in module.declarations:
        with faults.collect():
            match each:
                case tree.Variable():
                    bindings += reader.binding(each)
                case tree.Override():
                    overrides.append(reader.override(each))
                case tree.Struct():
                    structs += reader.struct(each)
                case _:
                    pass
    entries: list[model.EntryPoint] = []
    reach = CallGraph(
        declared, {b.name: b for b in bindings}, {o.name: o for o in overrides}
    )
    for each in module.declarations:
        if isinstance(each, tree.Function):
            with faults.collect():
                entries += reader.entries(each, reach)
    # An extension of wgpu's may bring names that we don't know.
    if not faults and not any(each.startswith("wgpu_") for each in module.enabled):
        for lack in missing(reach.functions(entries), declared):
            faults.add(lack)
    faults.raise_if_any()
    # Structs of shaders' inputs and outputs get a class only if a buffer has them, too.
    held = {
        inner
        for binding in bindings
        if (memory := model.memory_of(binding.type)) is not None
        for inner in structs_in(memory)
    }
    shown = [s for s in structs if not reader.is_interface(s) or _struct(s) in held]
    return model.Bound(
        source,
        tuple(shown),
        tuple(bindings),
        tuple(overrides),
        tuple(entries),
        constants,
    )


def _struct(struct: Struct | model.RuntimeStruct) -> Struct:
    return struct.struct if isinstance(struct, model.RuntimeStruct) else struct


def _twice(names: Sequence[tree.Name]) -> Iterator[DeclaredTwice]:
    """Yield a fault for each name that an earlier declaration has, too."""
    first: dict[str, Span] = {}
    for name in names:
        before = first.setdefault(name.text, name.span)
        if before is not name.span:
            yield DeclaredTwice(span=name.span, name=name.text, first=before)


@final
@dataclass(frozen=True, slots=True)
class _Reader:
    """Makes the model of one declaration after the other."""

    declared: Mapping[str, tree.Declaration]
    constants: Constants
    types: Types

    def struct(self, struct: tree.Struct) -> Iterator[Struct | model.RuntimeStruct]:
        """Yield a struct, if it can be in a buffer."""
        type_ = self.types.resolve(struct.name)
        if isinstance(type_, Struct | model.RuntimeStruct):
            yield type_

    def is_interface(self, struct: Struct | model.RuntimeStruct) -> bool:
        """Whether a struct is of a shader's inputs or outputs, by its members' attributes."""
        declared = self.declared[_struct(struct).name]
        assert isinstance(declared, tree.Struct), "structs are declared as such"
        words = {a.name for m in declared.members for a in m.attributes}
        return bool(words & {"location", "builtin"})

    def binding(self, variable: tree.Variable) -> Iterator[model.Binding]:
        """Yield the binding of a variable, unless it is private to the shader."""
        words = [a.text for a in variable.template if isinstance(a, tree.Name)]
        space = words[0] if words else "handle"
        numbers = [self._number(variable, word) for word in ("group", "binding")]
        if space not in {"uniform", "storage", "handle"} or (
            numbers == [None, None] and not self._is_reached(variable)
        ):
            return
        for number, word in zip(numbers, ("group", "binding"), strict=True):
            if number is None:
                fault = MissingBinding(
                    span=variable.name.span, name=variable.name.text, missing=word
                )
                raise CompileError([fault])
        group, number = cast("list[int]", numbers)
        yield self._binding(variable, space, words[1:], group, number)

    def _is_reached(self, variable: tree.Variable) -> bool:
        """Whether an entry point uses a variable, directly or by calls."""
        name, reach = variable.name.text, CallGraph(self.declared, {}, {})
        return any(
            name in reach.names(each)
            for each in self.declared.values()
            if isinstance(each, tree.Function)
            and any(tree.attribute(each.attributes, stage) for stage in model.STAGES)
        )

    def _binding(
        self,
        variable: tree.Variable,
        space: str,
        words: list[str],
        group: int,
        number: int,
    ) -> model.Binding:
        """Return the model of a variable, after the checks of its type."""
        name = variable.name
        assert variable.type is not None, "the grammar of WGSL asks for one"
        type_ = self.types.resolve(variable.type)
        memory = model.memory_of(type_)
        if isinstance(type_, model.Opaque) and type_.tool:
            fault: Diagnostic = NativeType(
                span=variable.type.span, name=type_.name, tool=type_.tool
            )
            raise CompileError([fault])
        if why := _refused(type_, space):
            fault = NotShareable(
                span=variable.type.span, name=name.text, why=why[0], remedy=why[1]
            )
            raise CompileError([fault])
        for struct, member in misread(memory) if memory is not None else ():
            span = member.span or name.span
            raise CompileError(
                [NagaMisreads(span=span, member=member.name, struct=struct.name)]
            )
        kind = cast('Literal["uniform", "storage", "handle"]', space)
        writes = space == "storage" and words[:1] == ["read_write"]
        return model.Binding(name.text, group, number, type_, kind, writes, name.span)

    def _number(self, owner: tree.Variable | tree.Override, word: str) -> int | None:
        found = tree.attribute(owner.attributes, word)
        if found is None or not found.arguments:
            return None
        number = self.constants.integer(found.arguments[0])
        if number < 0:
            fault = WrongValue(
                span=found.span,
                what=f"'@{word}' of '{owner.name.text}'",
                value=str(number),
                expected="0 or more",
            )
            raise CompileError([fault])
        return number

    def override(self, override: tree.Override) -> model.Override:
        """Return an override, with its default value if that is known from the file."""
        name, default = override.name.text, self._default(override)
        number = self._number(override, "id")
        key = name if number is None else str(number)
        return model.Override(name, self._kind(override), key, override.value, default)

    def _kind(self, override: tree.Override, *inside: str) -> Kind:
        """Return the type of an override, which follows from its value if none is given.

        Of `override half = scale * 0.5;` only the type is needed, so the value is computed
        with 1 for `scale`, another override. `inside` are the overrides around this one.
        """
        name = override.name.text
        if override.type is not None:
            return self._written_kind(override.type, name)
        if override.value is None:
            expected = f"a type or a value behind '{name}'"
            span = override.name.span
            raise CompileError([WgslSyntax(span=span, expected=expected, found="none")])
        if name in inside:
            fault = CircularDeclaration(span=override.name.span, name=name)
            raise CompileError([fault])
        chosen = {
            other: ConstantValue(self._kind(found, name, *inside), 1)
            for other in names_in(override.value)
            if isinstance(found := self.declared.get(other), tree.Override)
        }
        constants = Constants(self.declared, f"The type of '{name}'", chosen)
        kind = constants.value(override.value).kind
        if kind not in _INFERRED:
            raise CompileError([_of_naga(override.value, kind)])
        return _INFERRED[kind]

    def _written_kind(self, written: tree.Name, name: str) -> Kind:
        type_ = self.types.resolve(written)
        type_name = type_.spelling if isinstance(type_, Leaf) else ""
        if isinstance(type_, model.Opaque):
            type_name = type_.name
        if type_name in WIDE:
            raise CompileError([_of_naga(written, type_name)])
        kind = _WRITTEN.get(type_name)
        if kind is None:
            what, value = f"The type of '{name}'", f"'{written.text}'"
            expected = "bool, i32, u32, f32 or f16"
            fault = WrongValue(
                span=written.span, what=what, value=value, expected=expected
            )
            raise CompileError([fault])
        return kind

    def _default(self, override: tree.Override) -> ConstantValue | None:
        if override.value is None:
            return None
        try:
            return self.constants.value(override.value)
        except CompileError:
            return None  # it follows from other overrides, in the shader

    def entries(
        self, function: tree.Function, reach: CallGraph
    ) -> Iterator[model.EntryPoint]:
        """Yield the entry point that a function is, if it is one."""
        for stage in model.STAGES:
            if tree.attribute(function.attributes, stage) is not None:
                if stage == "compute":
                    self._refuse_immediates(function, reach)
                bindings, overrides = reach.of(function)
                self._check_same(function, bindings)
                size = tree.attribute(function.attributes, "workgroup_size")
                if stage == "compute" and not (size and size.arguments):
                    name = function.name
                    fault = MissingWorkgroupSize(span=name.span, name=name.text)
                    raise CompileError([fault])
                yield model.EntryPoint(
                    function.name.text,
                    stage,
                    bindings,
                    overrides,
                    size.arguments if size else (),
                    Interface(self.declared, self.constants, self.types).of(
                        function, stage
                    ),
                )

    def _refuse_immediates(self, function: tree.Function, reach: CallGraph) -> None:
        """Refuse immediates in a compute shader: nothing sets them at its dispatch.

        In vertex and fragment shaders the caller's own render pass sets them.
        """
        for name in sorted(reach.names(function)):
            variable = self.declared[name]
            if not isinstance(variable, tree.Variable):
                continue
            words = {
                each.text for each in variable.template if isinstance(each, tree.Name)
            }
            if words & _IMMEDIATES:
                why = f"'{function.name.text}' would be dispatched without it"
                remedy = "Write var<uniform>, with '@group' and '@binding'."
                span = variable.name.span
                raise CompileError(
                    [NotShareable(span=span, name=name, why=why, remedy=remedy)]
                )

    def _check_same(
        self, function: tree.Function, bindings: tuple[model.Binding, ...]
    ) -> None:
        seen: dict[tuple[int, int], model.Binding] = {}
        for each in bindings:
            other = seen.setdefault((each.group, each.number), each)
            if other is not each:
                fault = SameBinding(
                    span=each.span,
                    name=each.name,
                    other=other.name,
                    entry=function.name.text,
                    first=other.span,
                )
                raise CompileError([fault])


def _of_naga(node: tree.Expression, type_: str) -> NativeType:
    return NativeType(span=node.span, name=type_, tool=NAGA)


def _refused(type_: model.Type, space: str) -> tuple[str, str] | None:
    """Return why a variable of an address space can't have a type, and advice; or None."""
    is_memory = model.memory_of(type_) is not None
    if isinstance(type_, model.Opaque):
        return type_.why, "Use a type that has a layout: u32 instead of bool, say."
    if is_memory and space == "handle":
        return "its address space is missing", "Write var<uniform> or var<storage>."
    if not is_memory and space != "handle":
        return f"'{space}' is for data", "Write var without an address space."
    if space == "uniform" and isinstance(
        type_, model.RuntimeArray | model.RuntimeStruct
    ):
        return "'uniform' has no arrays without a length", "Write var<storage>."
    return None

"""The inputs of vertex shaders and the outputs of fragment shaders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import final

from kerngen.bind import tree
from kerngen.bind.constants import Constants
from kerngen.bind.faults import NativeType
from kerngen.bind.foreign import NAGA
from kerngen.bind.model import Location, Stage
from kerngen.bind.types import Types
from kerngen.ir.memory import Leaf
from kerngen.source.diagnostic import CompileError


@final
@dataclass(frozen=True, slots=True)
class Interface:
    """Finds the values with '@location' of entry points."""

    declared: Mapping[str, tree.Declaration]
    constants: Constants
    types: Types

    def of(self, function: tree.Function, stage: Stage) -> tuple[Location, ...]:
        """Return the inputs of a vertex shader, or the outputs of a fragment shader."""
        match stage:
            case "compute":
                members: Iterable[tree.Member] = ()
            case "vertex":
                members = function.parameters
            case "fragment":
                members = (function.result,) if function.result else ()
        found = [each for member in members for each in self._in(member)]
        return tuple(sorted(found, key=lambda each: each.number))

    def _in(self, member: tree.Member) -> Iterator[Location]:
        """Yield the locations of a parameter or result, those of a struct's members too."""
        at = tree.attribute(member.attributes, "location")
        if at is not None and at.arguments:
            number = self.constants.integer(at.arguments[0])
            type_ = self.types.resolve(member.type)
            if isinstance(type_, Leaf) and type_.wide:
                fault = NativeType(
                    span=member.type.span, name=member.type.span.text, tool=NAGA
                )
                raise CompileError([fault])
            yield Location(member.name.text, number, type_)
            return
        declared = self.declared.get(member.type.text)
        while isinstance(declared, tree.Alias):
            declared = self.declared.get(declared.type.text)
        if isinstance(declared, tree.Struct):
            for inner in declared.members:
                yield from self._in(inner)

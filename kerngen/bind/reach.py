"""The variables and overrides that a function uses, directly or by calls.

Of bodies only their names are known, without those that a local declaration hides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never, final

from kerngen.bind import tree
from kerngen.bind.model import Binding, EntryPoint, Override


@final
@dataclass(frozen=True, slots=True)
class CallGraph:
    """The call graph of a module, and its bindings and overrides."""

    declared: Mapping[str, tree.Declaration]
    bindings: Mapping[str, Binding]
    overrides: Mapping[str, Override]

    def of(
        self, function: tree.Function
    ) -> tuple[tuple[Binding, ...], tuple[Override, ...]]:
        """Return the bindings and overrides that a function uses, in order."""
        names = self.names(function)
        return (
            tuple(each for name, each in self.bindings.items() if name in names),
            tuple(each for name, each in self.overrides.items() if name in names),
        )

    def functions(self, entries: Iterable[EntryPoint]) -> Iterator[tree.Function]:
        """Yield the functions that entry points use, themselves included, in order."""
        found: set[str] = set()
        for entry in entries:
            function = self.declared[entry.name]
            assert isinstance(function, tree.Function), "entry points are functions"
            found |= self.names(function)
        for name, each in self.declared.items():
            if name in found and isinstance(each, tree.Function):
                yield each

    def names(self, function: tree.Function) -> set[str]:
        """Return the module-level names that a function uses, directly or by calls."""
        found: set[str] = set()
        left = {function.name.text}
        while left:
            name = left.pop()
            found.add(name)
            named = _names_of(self.declared[name])
            left |= {each for each in named if each in self.declared} - found
        return found


def _names_of(declared: tree.Declaration) -> Iterator[str]:
    match declared:
        case tree.Struct(members=members):
            yield from _in_members(members)
        case tree.Function(parameters=parameters, result=result, names=names):
            yield from names
            yield from _in_members((*parameters, *((result,) if result else ())))
            yield from _in_attributes(declared.attributes)
        case tree.Variable(type=type_, value=value, attributes=attributes):
            yield from names_in(type_, value)
            yield from _in_attributes(attributes)
        case tree.Constant(type=type_, value=value) | tree.Override(
            type=type_, value=value
        ):
            yield from names_in(type_, value)
        case tree.Alias(type=type_):
            yield from names_in(type_)
        case _:
            assert_never(declared)


def _in_members(members: Iterable[tree.Member]) -> Iterator[str]:
    for member in members:
        yield from names_in(member.type)
        yield from _in_attributes(member.attributes)


def _in_attributes(attributes: Iterable[tree.Attribute]) -> Iterator[str]:
    for each in attributes:
        yield from names_in(*each.arguments)


def names_in(*nodes: tree.Expression | None) -> Iterator[str]:
    """Yield all names in expressions."""
    for node in nodes:
        match node:
            case None | tree.Number() | tree.Truth():
                pass
            case tree.Name(text=text, arguments=arguments):
                yield text
                yield from names_in(*arguments)
            case tree.Call(callee=callee, arguments=arguments):
                yield from names_in(callee, *arguments)
            case tree.Prefixed(operand=operand):
                yield from names_in(operand)
            case tree.Binary(left=left, right=right):
                yield from names_in(left, right)
            case tree.Part(whole=whole, index=index):
                yield from names_in(whole, None if isinstance(index, str) else index)
            case _:
                assert_never(node)

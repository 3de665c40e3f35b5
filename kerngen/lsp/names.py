"""The definition of every name in a file, found by its syntax alone.

    kernel scale(x: f32[n], alpha: f32) -> y: f32[n] { y[i] = alpha * x[i]; }
                        ^ the dim n                           ^^^^^ the parameter alpha

So names are found in programs with faults, too.  Types, shapes and ranges are in the
checker's model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, final

from kerngen.check.traverse import names_in, subexpressions, walk_syntax
from kerngen.lsp.items import FileItems, Item, Kind
from kerngen.source.text import Span
from kerngen.syntax import ast
from kerngen.syntax.outline import is_pattern, matching


@final
@dataclass(frozen=True, slots=True)
class Definition:
    """A definition: the kind of name, its span, and its scope; None for an item's.

    `type` is its type as the text has it, which is looked up in `items`.
    """

    kind: str
    name: str
    span: Span
    scope: Span | None = None
    type: ast.TypeName | None = field(default=None, compare=False)
    items: FileItems | None = field(default=None, compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class Occurrence:
    """A use of a name, with its definitions: a schedule may name several kernels.

    It is not `written` out in a pattern such as `matmul_*`, which can't be renamed.
    """

    span: Span
    means: tuple[Definition, ...]
    written: bool = True


_Scope: TypeAlias = Mapping[str, Definition]


def of_item(item: Item) -> Definition:
    """Return the definition of an item."""
    node = item.node
    written = node.type if isinstance(node, ast.ConstItem) else None
    return Definition(item.kind, node.name.name, item.span, None, written, item.file)


def names_of(program: ast.Program, items: FileItems) -> tuple[Occurrence, ...]:
    """Return the uses of all names in a file, in the order of the text."""
    resolver = _Resolver(items)
    for item in program.items:
        resolver.item(item)
    found = {(each.span.start, each.span.end): each for each in resolver.found}
    return tuple(found[at] for at in sorted(found))


def defined_in(node: ast.KernelItem, items: FileItems) -> dict[str, Definition]:
    """Return the names that a kernel defines: parameters, outputs, dims, values."""
    found: dict[str, Definition] = {}

    def add(kind: str, name: ast.Identifier, written: ast.TypeName | None) -> None:
        made = Definition(kind, name.name, name.span, node.span, written, items)
        found.setdefault(name.name, made)

    for parameter in node.parameters:
        add(_kind_of(parameter), parameter.name, parameter.type)
    for output in node.outputs:
        add("an output", output.name, output.type)
    for axis in _axes(node):
        for part in walk_syntax(axis):
            if isinstance(part, ast.Name) and not items.get("constant", part.name):
                add("a dim", ast.Identifier(part.name, span=part.span), None)
    for statement in node.body:
        match statement:
            case ast.LetStatement():
                add("a let", statement.name, None)
            case ast.HostStatement():
                add("a host", statement.name, None)
            case _:
                pass
    return found


def _kind_of(parameter: ast.Parameter) -> str:
    if parameter.type.axes is None:
        return "a parameter"
    return "a 'mut' tensor" if parameter.mutable else "an input"


def _axes(node: ast.KernelItem) -> Iterator[ast.Expr]:
    """Yield the axes of a kernel's tensors: first the bare ones, which define dims."""
    axes = [a for p in (*node.parameters, *node.outputs) for a in p.type.axes or ()]
    yield from (axis for axis in axes if isinstance(axis, ast.Name))
    yield from (axis for axis in axes if not isinstance(axis, ast.Name))


def member_of(item: Item | None, name: str) -> Definition | None:
    """Return the definition of a name in a kernel, or in the one it is derived from."""
    seen: set[Item] = set()
    while item is not None and item not in seen:
        seen.add(item)  # kernels may be derived from each other, by mistake
        node = item.node
        if isinstance(node, ast.KernelItem):
            return defined_in(node, item.file).get(name)
        if not isinstance(node, ast.GradientItem):
            return None
        item = item.file.get("kernel", node.kernel.name)
    return None


def struct_of(written: ast.TypeName | None, items: FileItems | None) -> Item | None:
    """Return the struct of a type, or of a tensor's elements, or None."""
    return items.get("struct", written.name.name) if written and items else None


def field_of(struct: Item | None, name: str) -> Definition | None:
    """Return the definition of a struct's field, or None."""
    if struct is None or not isinstance(struct.node, ast.StructItem):
        return None
    for each in struct.node.fields:
        if each.name.name == name:
            span = each.name.span
            return Definition("a field", name, span, None, each.type, struct.file)
    return None


class _Resolver:
    """Walks a file, and collects its names."""

    def __init__(self, items: FileItems) -> None:
        self._items = items
        self.found: list[Occurrence] = []

    def _add(self, span: Span, *means: Definition | None) -> None:
        known = tuple(dict.fromkeys(each for each in means if each is not None))
        if known:
            self.found.append(Occurrence(span, known))

    def _item_name(self, kind: Kind, name: ast.Identifier) -> None:
        item = self._items.get(kind, name.name)
        self._add(name.span, of_item(item) if item else None)

    # Items

    def item(self, node: ast.Item) -> None:
        """Collect the names of an item."""
        match node:
            case ast.UseItem():
                pass
            case ast.ConstItem():
                self._item_name("constant", node.name)
                self._expr(node.value, {})
            case ast.StructItem():
                self._item_name("struct", node.name)
                self._fields(node)
            case ast.FunctionItem():
                self._item_name("function", node.name)
                self._type(node.result, {})
                self._function(node, (node.body,))
            case ast.DerivativeItem():
                self._item_name("function", node.function)
                self._function(node, node.values)
            case ast.KernelItem():
                self._item_name("kernel", node.name)
                self._kernel(node)
            case ast.GradientItem():
                self._gradient(node)
            case ast.ScheduleItem():
                self._schedule(node)

    def _fields(self, node: ast.StructItem) -> None:
        own = self._items.get("struct", node.name.name)
        for each in node.fields:
            self._add(each.name.span, field_of(own, each.name.name))
            self._type(each.type, {})
            for attribute in each.attributes:
                self._expr(attribute.value, {})

    def _function(
        self, node: ast.FunctionItem | ast.DerivativeItem, values: Iterable[ast.Expr]
    ) -> None:
        scope: dict[str, Definition] = {}

        def define(kind: str, name: ast.Identifier, type_: ast.TypeName | None) -> None:
            made = Definition(kind, name.name, name.span, node.span, type_, self._items)
            scope[name.name] = made
            self._add(name.span, made)

        for parameter in node.parameters:
            define("a parameter", parameter.name, parameter.type)
            self._type(parameter.type, {})
        for let in node.lets:
            self._expr(let.value, scope)
            define("a let", let.name, None)
        for value in values:
            self._expr(value, scope)

    def _gradient(self, node: ast.GradientItem) -> None:
        self._item_name("kernel", node.name)
        self._item_name("kernel", node.kernel)
        source = self._items.get("kernel", node.kernel.name)
        for name in (*node.by, *node.given):
            self._add(name.span, member_of(source, name.name))

    def _schedule(self, node: ast.ScheduleItem) -> None:
        """Collect kernels, stages and the names of the guard, which are those kernels'."""
        kernels: list[Item] = []
        known = {item.node.name.name: item for item in self._items.all("kernel")}
        for target in node.targets:
            name = target.kernel.name
            meant = [known[each] for each in matching(name, known)]
            definitions = tuple(map(of_item, meant))
            if definitions:
                plain = not is_pattern(name)
                self.found.append(Occurrence(target.kernel.span, definitions, plain))
            if target.stage:
                stage = target.stage
                self._add(stage.span, *(member_of(k, stage.name) for k in meant))
            kernels += meant
        for part in walk_syntax(*(() if node.guard is None else (node.guard,))):
            if isinstance(part, ast.Name):
                constant = self._items.get("constant", part.name)
                in_kernels = (member_of(kernel, part.name) for kernel in kernels)
                found = [each for each in in_kernels if each]
                if constant and not found:
                    found = [of_item(constant)]
                self._add(part.span, *found)

    # Kernels

    def _kernel(self, node: ast.KernelItem) -> None:
        defined = defined_in(node, self._items)
        for each in (*node.parameters, *node.outputs):
            self._add(each.name.span, defined[each.name.name])
            self._type(each.type, defined)
            if each.default is not None:
                self._expr(each.default, {})
        for statement in node.body:
            self._statement(statement, defined)

    def _type(self, written: ast.TypeName, scope: _Scope) -> None:
        self._item_name("struct", written.name)
        for axis in written.axes or ():
            self._expr(axis, scope)

    def _statement(self, node: ast.Statement, defined: _Scope) -> None:
        # A value may refer to names that are defined up to this statement.
        before = {
            name: each
            for name, each in defined.items()
            if each.span.start <= node.span.end
        }
        match node:
            case ast.RequireStatement():
                self._expr(node.condition, defined)
            case ast.HostStatement():
                self._add(node.name.span, defined[node.name.name])
                self._expr(node.value, before)
            case ast.LetStatement():
                self._add(node.name.span, defined[node.name.name])
                self._expr(node.value, self._bound(node.binders, before, node.span))
            case ast.Assignment():
                self._assignment(node, before)

    def _bound(
        self, binders: Iterable[ast.Binder], outer: _Scope, span: Span
    ) -> _Scope:
        """Return a scope with the indices that a statement or reduction introduces."""
        scope = dict(outer)
        for binder in binders:
            if binder.bound is not None:
                self._expr(binder.bound, outer)
            name = binder.name
            scope[name.name] = Definition("an index", name.name, name.span, span)
            self._add(name.span, scope[name.name])
        return scope

    def _assignment(self, node: ast.Assignment, before: _Scope) -> None:
        # A name in the target's brackets that is not known is an index.
        scope = dict(before)
        for part in names_in(node.target):
            known = part.name in scope or self._items.get("constant", part.name)
            if part is not node.name and not known:
                made = Definition("an index", part.name, part.span, node.span)
                scope[part.name] = made
        self._expr(node.target, scope)
        self._expr(node.value, scope)

    # Expressions

    def _expr(self, node: ast.Expr, scope: _Scope) -> None:
        match node:
            case ast.Name():
                self._add(node.span, self._value(node.name, scope))
            case ast.Call():
                self._item_name("function", node.function)
            case ast.Member():
                self._add(node.member.span, self._field(node, scope))
            case ast.Reduction():
                inner = self._bound(node.binders, scope, node.span)
                for term in node.terms:
                    self._expr(term, inner)
                return
            case _:
                pass
        for part in subexpressions(node):
            self._expr(part, scope)

    def _value(self, name: str, scope: _Scope) -> Definition | None:
        if name in scope:
            return scope[name]
        constant = self._items.get("constant", name)
        return of_item(constant) if constant else None

    def _field(self, node: ast.Member, scope: _Scope) -> Definition | None:
        base = node.base
        while isinstance(base, ast.Subscript):
            base = base.base
        match base:
            case ast.Name():
                owner = self._value(base.name, scope)
            case ast.Member():
                owner = self._field(base, scope)
            case _:
                return None
        struct = struct_of(owner.type, owner.items) if owner else None
        return field_of(struct, node.member.name)

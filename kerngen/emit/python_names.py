"""The Python names of a user's items, where their own names can't be used.

The rules, all of them:

- A keyword, a name that generated code relies on, or one that is already in use gets a
  trailing `_`.  Names that need no change are handed out first, so they keep theirs.
- Leading underscores are dropped: such names are private to generated modules, and in a
  class body a pair of them would be mangled.
- Kernels, functions and values are separate name spaces of the language; functions get
  a leading `_`, which no kernel and no value can have.  So do constants of other files,
  which are not this module's to offer.
"""

from __future__ import annotations

import keyword
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import final

from kerngen.emit.imports import BOUND, IMPORTABLE, STRUCT_IMPORTS, TUPLE_IMPORTS
from kerngen.ir.cached import cached_on_instance
from kerngen.ir.memory import FixedArray, MemoryType, Struct, structs_in
from kerngen.ir.module import Module
from kerngen.ir.nodes import (
    ConstRef,
    Expr,
    Function,
    FunctionCall,
    Kernel,
    Reduce,
    Role,
)
from kerngen.ir.walk import walk
from kerngen.layout.rules import Space
from kerngen.layout.struct import (
    pascal_case,
    struct_layout,
    uniform_layout,
    uniform_name,
)
from kerngen.layout.types import StructLayout

KEYWORDS = frozenset(keyword.kwlist)

BUILTINS_IN_USE = frozenset(
    "AssertionError ImportError Warning bool classmethod dict float int object property "
    "range staticmethod str tuple type".split()
)
"""Python's built-ins that generated modules, or the tools that read them, rely on."""

MODULE_NAMES = IMPORTABLE | {"ABI", "annotations"}
"""The names that generated modules import, or define above all others."""

FIELD_NAMES = frozenset(
    "DTYPE FIELDS SIZE bytes_of pack pack_array pack_into pack_values_into "
    "mro unpack unpack_array value_class values_in".split()
)
"""The members of every struct."""

TUPLE_NAMES = frozenset(("count", "index"))
"""The public methods of a tuple, which its fields must not hide."""

_PRIVATE_NAMES = frozenset(("FILES",))
"""The names, without their `_`, that generated modules define privately: `_FILES`."""
# The names that each kind of item must not have.
_RESERVED = KEYWORDS | BUILTINS_IN_USE
_NOT_FOR_MODULE = _RESERVED | MODULE_NAMES
_NOT_FOR_CLASSES = (
    _NOT_FOR_MODULE | FIELD_NAMES | {BOUND}
)  # read where fields are declared
_NOT_FOR_VALUES = _RESERVED | {
    *("Any", "NDArray", "ctx", "geometry", "hostmath", "np", "out", "real", "ref")
}
_NOT_FOR_FIELDS = _RESERVED | FIELD_NAMES | {"ClassVar", "np", *STRUCT_IMPORTS}
_NOT_FOR_OUTPUTS = _RESERVED | TUPLE_NAMES | TUPLE_IMPORTS


@final
class PythonNamer:
    """Hands out names that are free in one scope."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = set(reserved)

    def claim(self, wanted: str) -> str:
        """Return `wanted` or the nearest free name, which is then no longer free."""
        name = _public(wanted)
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def claim_all(self, wanted: Iterable[str]) -> dict[str, str]:
        """Claim several names; return the free name for each, by the wanted one.

        Those that can stay as they are come first, so that no other takes them.
        """
        listed = tuple(dict.fromkeys(wanted))
        changed = [name for name in listed if self._changes(name)]
        kept = [name for name in listed if name not in changed]
        return {name: self.claim(name) for name in (*kept, *changed)}

    def _changes(self, name: str) -> bool:
        return name in self._taken or _public(name) != name


def _public(name: str) -> str:
    """Return a name without leading underscores: `_x` is `x_`, `_1` is `v1_`."""
    stripped = name.lstrip("_")
    if stripped == name:
        return name
    return f"{stripped}_" if stripped and not stripped[0].isdigit() else f"v{stripped}_"


@final
@dataclass(frozen=True, slots=True)
class KernelNames:
    """The Python names of one kernel, and of everything inside it.

    `values` maps all names of the kernel's own name space to Python's: tensors, parameters,
    dims, hosts and indices; `fields` maps those of its uniform struct, `outputs` those of the
    tuples that it and its reference return.
    """

    function: str
    reference: str
    uniform: str
    output: str
    arrays: str
    description: str
    hosts: str
    computed: str
    values: dict[str, str]
    fields: dict[str, str]
    outputs: dict[str, str]


@final
@dataclass(frozen=True, slots=True)
class ModuleNames:
    """The Python names of everything in one generated module.

    `structs` has the class of each struct that the module declares or names.  `uniforms` has
    a second class for each struct in a kernel's parameters whose layout in a uniform buffer is
    another one.
    """

    kernels: dict[str, KernelNames]
    functions: dict[str, str]
    constants: dict[str, str]
    structs: dict[Struct, str]
    uniforms: dict[Struct, str]


def module_names(module: Module) -> ModuleNames:
    """Return all Python names of a generated module."""
    public = PythonNamer(_NOT_FOR_MODULE)
    private = PythonNamer(_PRIVATE_NAMES)
    # Structs come first, so that other modules know their classes' names.
    in_sight = dict.fromkeys((*_named_structs(module), *module.structs))
    structs = {struct: public.claim(class_name(struct)) for struct in in_sight}
    # Structs of other files that only these contain come last: they are imported under
    # another name, if theirs is taken.
    for struct in imported_structs(module):
        if struct not in structs:
            structs[struct] = public.claim(class_name(struct))
    uniforms = {
        struct: public.claim(struct_layout(struct, Space.UNIFORM).name)
        for struct in uniform_structs(module)
    }
    shown = public.claim_all(kernel.name for kernel in module.kernels)
    read = used_constants(module)
    constants = public.claim_all(name for name in read if name not in module.imported)
    theirs = private.claim_all(name for name in read if name in module.imported)
    constants |= {name: f"_{shown}" for name, shown in theirs.items()}
    called = private.claim_all(function.name for function in used_functions(module))
    known = {kernel.name: kernel for kernel in _known_kernels(module)}
    kernels = {
        kernel.name: _kernel_names(
            kernel, shown[kernel.name], public, private, structs.values()
        )
        for kernel in module.kernels
    }
    # No value hides a constant, a struct or the tuple that a function returns.
    several = [own for own in kernels.values() if len(own.outputs) > 1]
    tuples = (name for own in several for name in (own.output, own.arrays))
    taken = {*constants.values(), *structs.values(), *tuples}
    values = {
        kernel.name: _value_namer(taken).claim_all(_kernel_values(kernel, known))
        for kernel in module.kernels
    }
    return ModuleNames(
        kernels={n: replace(own, values=values[n]) for n, own in kernels.items()},
        functions={name: f"_{shown}" for name, shown in called.items()},
        constants=constants,
        structs=structs,
        uniforms=uniforms,
    )


def are_kept(kernels: Collection[str], structs: Collection[Struct]) -> bool:
    """Whether all kernels keep their names in Python, even if parameters have `structs`."""
    classes = [class_name(struct) for struct in structs]
    uniforms = (struct_layout(struct, Space.UNIFORM).name for struct in structs)
    names = [*classes, *{*uniforms} - {*classes}, *kernels]
    is_free = _NOT_FOR_MODULE.isdisjoint(names) and len({*names}) == len(names)
    return is_free and all(_public(name) == name for name in kernels)


def kernel_names(module: Module) -> dict[str, KernelNames]:
    """Return the Python names in each kernel of a module, by the kernel's name.

    Kernels of other modules of which these are gradients are among them.
    """
    found: dict[str, KernelNames] = {}
    for origin in module.origins:
        found |= module_names(origin).kernels
    return found | module_names(module).kernels


def _known_kernels(module: Module) -> Iterator[Kernel]:
    """Yield the kernels that gradients may be of, those of the module itself last."""
    for origin in module.origins:
        yield from _known_kernels(origin)
    yield from module.kernels


def class_name(struct: Struct) -> str:
    """Return the Python class name of a struct, the same in every module.

    The name depends on the struct's name alone, as other modules import it: leading
    underscores are moved to the end.
    """
    core = struct.name.strip("_")
    front = len(struct.name) - len(struct.name.lstrip("_"))
    both = len(struct.name) - len(core)
    behind = both * (both + 1) // 2 + both - front
    named = core if core[:1].isalpha() else f"v{core}"
    return named + "_" * (behind + (named in _NOT_FOR_CLASSES))


def uniform_structs(module: Module) -> tuple[Struct, ...]:
    """Return the structs in parameters whose layout in a uniform buffer differs from storage.

    Inner structs come first, those of other files included: their classes are declared
    in the module of the kernel that needs them.
    """
    held = (
        struct
        for kernel in module.kernels
        for parameter in kernel.parameters
        for struct in structs_in(parameter.memory)
    )
    return tuple(s for s in dict.fromkeys(held) if _is_other_in_uniform(s))


def _is_other_in_uniform(struct: Struct) -> bool:
    return struct_layout(struct, Space.UNIFORM).name != struct.name


def imported_structs(module: Module) -> tuple[Struct, ...]:
    """Return the structs of other files whose names are in a module's generated text."""
    derived = uniform_structs(module)
    held = (member.type for struct in derived for member in struct.members)
    named = (*_named_structs(module), *derived, *_innermost_structs(held))
    return tuple(dict.fromkeys(s for s in named if s not in module.structs))


def _named_structs(module: Module) -> Iterator[Struct]:
    """Yield the structs that the source of a module names."""
    for kernel in module.kernels:
        yield from _innermost_structs(tensor.memory for tensor in kernel.tensors)
        yield from _innermost_structs(p.memory for p in kernel.parameters)
    for struct in module.structs:
        yield from _innermost_structs(member.type for member in struct.members)


def _innermost_structs(types: Iterable[MemoryType]) -> Iterator[Struct]:
    for type_ in types:
        innermost = type_.innermost if isinstance(type_, FixedArray) else type_
        if isinstance(innermost, Struct):
            yield innermost


def _kernel_names(
    kernel: Kernel,
    function: str,
    public: PythonNamer,
    private: PythonNamer,
    structs: Iterable[str],
) -> KernelNames:
    """Return a kernel's names without `values`, which depend on those of all kernels."""
    outputs = (tensor.name for tensor in kernel.tensors if tensor.role is Role.OUTPUT)
    return KernelNames(
        function=function,
        reference=public.claim(f"{function}_reference"),
        uniform=public.claim(_class_like(uniform_name(kernel.name))),
        output=public.claim(_class_like(f"{pascal_case(kernel.name)}Output")),
        arrays=public.claim(_class_like(f"{pascal_case(kernel.name)}Arrays")),
        description=f"_{private.claim(function.upper())}",
        hosts=f"_{private.claim(f'{function}_hosts')}",
        computed=f"_{private.claim(f'{function}_computed')}",
        values={},
        fields=_field_names(uniform_layout(kernel)),
        outputs=PythonNamer(_NOT_FOR_OUTPUTS.union(structs)).claim_all(outputs),
    )


def _class_like(name: str) -> str:
    """Return a name made of a kernel's: of one such as `_1`, only the digit is left."""
    return name if name.isidentifier() else f"V{name}"


@cached_on_instance
def member_names(struct: Struct) -> dict[str, str]:
    """Return the Python names of a struct's members, by their names in the source."""
    return _field_names(struct_layout(struct))


def _field_names(layout: StructLayout) -> dict[str, str]:
    """Return the Python names of a struct's fields: none hides a name that its class reads."""
    structs = {class_name(s) for f in layout.fields for s in structs_in(f.type)}
    uniforms = {f"{name}Uniform" for name in structs}
    namer = PythonNamer(_NOT_FOR_FIELDS | structs | uniforms)
    return namer.claim_all(field.name for field in layout.fields)


def _value_namer(taken: Iterable[str]) -> PythonNamer:
    return PythonNamer(_NOT_FOR_VALUES | set(taken))


def function_names(function: Function, constants: dict[str, str]) -> dict[str, str]:
    """Return the Python names of a function's parameters and lets, by those in the source."""
    lets = (local.name for local, _ in function.lets)
    parameters = (parameter.name for parameter in function.parameters)
    return _value_namer(constants.values()).claim_all((*parameters, *lets))


def _kernel_values(kernel: Kernel, kernels: Mapping[str, Kernel]) -> Iterator[str]:
    """Yield every name of the kernel's one name space; an index may appear often.

    The names of a gradient's forward kernel come first, so that what both share has the same
    name in both: if the forward kernel has `lambda` and `lambda_`, and the gradient `lambda`
    alone, that is `lambda__` in both.  A name that a module's constant, struct or tuple has,
    too, differs where the gradient is in another module.
    """
    forward = kernels.get(kernel.gradient.kernel) if kernel.gradient else None
    if forward is not None:
        yield from _kernel_values(forward, kernels)
    yield from (tensor.name for tensor in kernel.tensors)
    yield from (parameter.name for parameter in kernel.parameters)
    yield from kernel.lengths
    yield from (host.name for host in kernel.hosts)
    for statement in kernel.body:
        yield statement.target.name
        yield from (index.name for index in statement.indices)
        for node in walk(statement.value):
            if isinstance(node, Reduce):
                yield from (index.name for index in node.indices)


# The functions and constants that a module's kernels use.


def kernel_expressions(kernel: Kernel) -> Iterator[Expr]:
    """Yield the expressions of a kernel's hosts, statements and schedule guards."""
    yield from (host.value for host in kernel.hosts)
    yield from (statement.value for statement in kernel.body)
    for schedule in kernel.schedules:
        if schedule.guard is not None:
            yield schedule.guard


def function_expressions(function: Function) -> Iterator[Expr]:
    """Yield a function's lets in order, then its value."""
    yield from (value for _, value in function.lets)
    yield function.body


def called_functions(expressions: Iterable[Expr]) -> frozenset[str]:
    """Return the names of the user's functions that some expressions call directly."""
    return frozenset(
        node.function
        for expression in expressions
        for node in walk(expression)
        if isinstance(node, FunctionCall)
    )


def used_functions(module: Module) -> tuple[Function, ...]:
    """Return the functions that the kernels call, also indirectly; callees first."""
    wanted: set[str] = set()
    for kernel in module.kernels:
        wanted |= called_functions(kernel_expressions(kernel))
    for function in reversed(module.functions):
        if function.name in wanted:
            wanted |= called_functions(function_expressions(function))
    return tuple(function for function in module.functions if function.name in wanted)


def used_constants(module: Module) -> dict[str, float | int | bool]:
    """Return the `const` items that functions and kernels read, by name, in order of use."""
    expressions = [
        *(e for f in used_functions(module) for e in function_expressions(f)),
        *(e for kernel in module.kernels for e in kernel_expressions(kernel)),
    ]
    return {
        node.name: node.value
        for expression in expressions
        for node in walk(expression)
        if isinstance(node, ConstRef)
    }

"""The import lines of a generated module: the names that its text uses, and no others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from kerngen.ir.memory import LEAVES, WIDE

# What generated modules may import, by module, in isort's order of modules.
_STANDARD = {
    "dataclasses": ("dataclass",),
    "typing": ("Any", "ClassVar", "Literal", "NamedTuple"),
}
_N = (2, 3, 4)
"""The numbers of columns and rows of matrices."""
_NUMPY = {"numpy.typing": ("NDArray",)}
_MATRICES = tuple(f"Mat{columns}x{rows}" for columns in _N for rows in _N)
_LEAVES = tuple(name for name in LEAVES if name[:3] in ("mat", "vec"))
_TENSORS = ("Matrix", "Scalar", "Tensor", "Tensor3", "Tensor4", "Vector")
_ELEMENTS = (*("f16", "f32", "i32", "i4", "i8", "u32", "u4", "u8"), *_LEAVES)
_KERNGEN = {
    "kerngen.plan": ("hostmath",),
    "kerngen.runtime": (
        *("Context", "check_abi", "geometry"),
        *(*_MATRICES, *_TENSORS, *_ELEMENTS),
    ),
    "kerngen.runtime.calling": ("kernel_function",),
    "kerngen.runtime.generated": ("ModuleFiles",),
    "kerngen.runtime.struct": ("Field", "Struct", "UniformStruct", "spaced"),
}
_WIDE = {"kerngen.runtime.bound": tuple(WIDE)}
BOUND = "bound"
"""The module of the runtime whose classes the modules of `kerngen bind` use: `bound.Shader`."""

_RUNTIME = "from kerngen.runtime import "
_MODULES = {
    "np": "import numpy as np",
    "ref": "from kerngen.runtime import reference as ref",
}

STRUCT_IMPORTS = frozenset((*LEAVES, *_MATRICES, *_KERNGEN["kerngen.runtime.struct"]))
"""The imported names that the classes of structs may read."""

TUPLE_IMPORTS = frozenset(("Any", "Literal", "NDArray", "np", *_TENSORS, *_ELEMENTS))
"""The imported names that the classes of returned tuples may read."""

IMPORTABLE = frozenset(
    (
        *_MODULES,
        *(
            name
            for group in (_STANDARD, _NUMPY, _KERNGEN)
            for names in group.values()
            for name in names
        ),
    )
)
"""Every name that a generated module may import."""


def import_lines(
    parts: Iterable[str],
    structs: Iterable[tuple[str, str]],
    *,
    is_bound: bool = False,
) -> list[str]:
    """Return the lines that import what the parts of a module use, in isort's order.

    `structs` are imported classes of other generated modules: (module, class).
    `is_bound` is set for modules of `kerngen bind`.
    """
    # Groups in isort's order: standard library, third parties, kerngen, the user's modules.
    used = {name for part in parts for name in _names(part)}
    groups = (
        _from_lines(_STANDARD, used),
        [*_module_lines("np", used), *_from_lines(_NUMPY, used)],
        _kerngen_lines(used, is_bound=is_bound),
        [f"from {module} import {name}" for module, name in _grouped(structs)],
    )
    return [line for group in groups if group for line in (*group, "")]


def _names(text: str) -> set[str]:
    """Return the names in a text.

    Parts of a module are parsed one by one: a syntax tree takes a hundred times the memory
    of its text.
    """
    nodes = ast.walk(ast.parse(text))
    return {node.id for node in nodes if isinstance(node, ast.Name)}


def _grouped(structs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return each module with the classes wanted of it, the furthest module first."""
    modules: dict[str, list[str]] = {}
    for module, name in sorted(structs):
        modules.setdefault(module, []).append(name)
    listed = sorted(modules, key=lambda name: (len(name.lstrip(".")) - len(name), name))
    return [(module, ", ".join(modules[module])) for module in listed]


def _kerngen_lines(used: set[str], *, is_bound: bool) -> list[str]:
    modules: dict[str, tuple[str, ...]] = {**_KERNGEN}
    if is_bound:
        modules = dict(sorted((_KERNGEN | _WIDE).items()))
        modules["kerngen.runtime"] = (*modules["kerngen.runtime"], BOUND)
    lines = _from_lines(modules, used)
    # isort puts `import reference as ref` right after the other names of the package.
    at = next(n for n, line in enumerate(lines) if line.startswith(_RUNTIME))
    return [*lines[: at + 1], *_module_lines("ref", used), *lines[at + 1 :]]


def _module_lines(name: str, used: set[str]) -> list[str]:
    return [_MODULES[name]] if name in used else []


def _from_lines(modules: Mapping[str, tuple[str, ...]], used: set[str]) -> list[str]:
    return list(_imports(modules, used))


def _by_numbers(name: str) -> list[str | int]:
    """Return a key that sorts `u4` before `u32`, as isort does."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def _imports(modules: Mapping[str, tuple[str, ...]], used: set[str]) -> Iterator[str]:
    for module, names in modules.items():
        # Capital letters sort before small ones, and so classes before the rest.
        wanted = sorted((name for name in names if name in used), key=_by_numbers)
        if wanted:
            yield f"from {module} import {', '.join(wanted)}"

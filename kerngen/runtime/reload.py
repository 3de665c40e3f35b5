"""Hot reload of generated modules while the program runs.

A module is run again in place, and functions stay the same objects with new code, so
that whoever imported a module or a function from it calls the new kernels.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import update_wrapper
from graphlib import TopologicalSorter
from importlib import invalidate_caches
from importlib.machinery import SourceFileLoader
from importlib.util import resolve_name
from inspect import unwrap
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NoReturn, final

from kerngen.runtime.calls.kernel import KERNEL, Kernel
from kerngen.runtime.errors import ReloadError, StateError
from kerngen.runtime.lifecycle import live_backends
from kerngen.runtime.stamp import stamp_of

_IMPORT = re.compile(r"^from (\.+[\w.]*) import ", re.MULTILINE)
"""A relative import, of another generated module."""
# The attributes that make a function what it does; the object itself stays.
_FUNCTION_PARTS = (
    "__code__",
    "__defaults__",
    "__kwdefaults__",
    "__doc__",
    "__annotations__",
)


def reload() -> tuple[str, ...]:
    """Load the modules of kernels that were generated again since they were imported.

    All imported names of these modules and their functions are the new ones from then
    on.  Structs are new classes: take them from the module, and make their values and
    tensors again.  Contexts and tensors stay; what was compiled from the old kernels is
    dropped.  Modules whose file is gone stay as they are; functions whose kernel is gone
    raise `StateError`.

    Call it between calls of kernels, from one thread.  Returns the names of the modules
    that were loaded.

    Raises:
        ReloadError: If a new module can't be run.  All old ones then stay.
    """
    changed = {one.name: one for one in _changed()}
    if not changed:
        return ()
    invalidate_caches()
    # 1. Run all changed modules in place, those that others import first; if one fails,
    #    restore all of them.
    before = {name: dict(vars(one.module)) for name, one in changed.items()}
    loaded = set(sys.modules)
    for name in _in_order(changed):
        try:
            changed[name].run()
        except Exception as error:
            _restore(changed, before, loaded)
            raise ReloadError(
                f"'{name}' can't be run, so the old kernels stay in use: {error}"
            ) from error
    # 2. Give the functions that users have imported the new code.
    for name, one in changed.items():
        _keep_functions(vars(one.module), before[name])
        _mark_gone(vars(one.module), before[name])
    # 3. Drop what was compiled from the old kernels.
    for backend in live_backends():
        backend.forget_kernels(_kernels(before))
    return tuple(sorted(changed))


@final
@dataclass(frozen=True, slots=True)
class _Changed:
    """A module in use, and the text that it has on the disk now."""

    name: str
    module: ModuleType
    path: str
    text: str

    def run(self) -> None:
        """Run the new text in the module, which then has only the names of that text."""
        code = compile(self.text, self.path, "exec", dont_inherit=True)
        names = vars(self.module)
        for name in [name for name in names if not _is_of_import(name)]:
            del names[name]
        exec(code, names)  # noqa: S102 - as Python's import does

    def imports(self) -> Iterator[str]:
        """Yield the full names of the modules that the new text imports relatively."""
        for relative in _IMPORT.findall(self.text):
            yield resolve_name(relative, self.name.rpartition(".")[0])


def _changed() -> Iterator[_Changed]:
    """Yield the generated modules whose text on the disk is of other sources."""
    for name, module in list(sys.modules.items()):
        # Anything may be in there: lazy modules, or None.
        names = getattr(module, "__dict__", {})
        loader = names.get("__loader__")
        before = stamp_of(str(names.get("__doc__", "")))
        if not before or not isinstance(loader, SourceFileLoader):
            continue
        try:
            text = Path(loader.path).read_text("utf-8")
        except FileNotFoundError:
            continue
        if stamp_of(text) != before:
            yield _Changed(name, module, loader.path, text)


def _in_order(changed: Mapping[str, _Changed]) -> Iterator[str]:
    """Yield the names so that each module comes after those that it imports."""
    graph = {
        name: [other for other in one.imports() if other in changed]
        for name, one in changed.items()
    }
    return iter(TopologicalSorter(graph).static_order())


def _is_of_import(name: str) -> bool:
    """Whether Python's import made a name, not the module's text."""
    return name.startswith("__") and name not in {"__all__", "__annotations__"}


def _keep_functions(names: dict[str, Any], before: Mapping[str, Any]) -> None:
    """Keep the old function objects in place of the new ones, with the code of those.

    Their globals are the module's names, so that they find its new kernels there.  A
    decorated function stays decorated: the function in it gets the new code.
    """
    for name, new in list(names.items()):
        old = before.get(name)
        if not (isinstance(old, FunctionType) and isinstance(new, FunctionType)):
            continue
        inner, code = unwrap(old), unwrap(new)
        # A function of this module; the code of a closure fits no other function.
        if (
            inner.__globals__ is names
            and not code.__closure__
            and not inner.__closure__
        ):
            for part in _FUNCTION_PARTS:
                setattr(inner, part, getattr(code, part))
            setattr(inner, KERNEL, getattr(code, KERNEL, None))
            if inner is not old:
                update_wrapper(old, inner)
            names[name] = old


@final
@dataclass(frozen=True, slots=True)
class _Gone:
    """A kernel that its source no longer has: its functions raise an error."""

    name: str

    def launch(self, *_: object) -> NoReturn:
        """Raise StateError: the kernel is gone from its module."""
        raise StateError(f"{self.name}: the kernel is gone from its source.")

    check = launch


def _mark_gone(names: dict[str, Any], before: Mapping[str, Any]) -> None:
    """Replace kernels that the new text lacks: old functions still look them up."""
    for name, old in before.items():
        if isinstance(old, Kernel | _Gone):
            names.setdefault(name, _Gone(old.name))


def _restore(
    changed: Mapping[str, _Changed],
    before: Mapping[str, Mapping[str, Any]],
    loaded: set[str],
) -> None:
    """Undo what was run, and forget modules that were imported on the way."""
    for name, one in changed.items():
        vars(one.module).clear()
        vars(one.module).update(before[name])
    for name in set(sys.modules) - loaded:
        del sys.modules[name]


def _kernels(modules: Mapping[str, Mapping[str, Any]]) -> frozenset[Kernel]:
    values = (value for names in modules.values() for value in names.values())
    return frozenset(value for value in values if isinstance(value, Kernel))

"""Generated modules in memory, which are imported like those in files.

Python finds their text through their loader: tracebacks, `inspect.getsource` and
debuggers show it.  They stay in `sys.modules`, so that instances of their classes can be
pickled, and unpickled wherever the same source was compiled before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.abc import ExecutionLoader
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec, spec_from_loader
from itertools import count
from pathlib import PurePosixPath
from posixpath import normpath
from types import ModuleType
from typing import Any, Final, final

from kerngen.compiler import CompiledModule
from kerngen.emit.module_name import module_name, module_path
from kerngen.emit.python_names import module_names
from kerngen.runtime.notebook.kernel_html import (
    is_kernel_function,
    kernel_html,
    module_html,
)

_NUMBERS: Final = count()


@final
class KernelModule(ModuleType):
    """A module of kernels in memory."""

    def __repr__(self) -> str:
        """Return the module's name with its kernels."""
        stem = self.__name__.rpartition(".")[2]
        kernels = (name for name, v in vars(self).items() if is_kernel_function(v))
        return f"<module '{stem}' in memory: {', '.join(kernels) or 'no kernels'}>"

    def _repr_html_(self) -> str:  # pyright: ignore[reportUnusedFunction]  # IPython's
        """Return the module's kernels as HTML, for notebooks."""
        return module_html(self)


@final
@dataclass(frozen=True, slots=True)
class _File:
    """A file in memory."""

    data: bytes

    def read_text(self, encoding: str) -> str:
        return self.data.decode(encoding)


@final
@dataclass(frozen=True, slots=True)
class _Shaders:
    """A folder in memory: a module's shaders by file name."""

    files: Mapping[str, _File]

    def __truediv__(self, name: str) -> _File:
        return self.files[name]


@final
class _Loader(ExecutionLoader):
    """Loads a module from the generated text and shaders of a source."""

    def __init__(self, compiled: CompiledModule, folder: str) -> None:
        self._binding = compiled.binding
        self._filename = f"{folder}/{module_name(compiled.module.path)}.py"
        shaders = (item for item in compiled.files.items() if "/" in item[0])
        self.files = _Shaders(
            {PurePosixPath(path).name: _File(data) for path, data in shaders}
        )

    def is_package(self, fullname: str) -> bool:  # noqa: ARG002 - Python's signature
        return False

    def get_filename(self, fullname: str) -> str:  # noqa: ARG002
        return self._filename

    def get_source(self, fullname: str) -> str:  # noqa: ARG002
        return self._binding

    def create_module(self, spec: ModuleSpec) -> KernelModule:
        return KernelModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        for name in module.__all__:
            value = getattr(module, name)
            if is_kernel_function(value):
                # Notebooks look for this method, and functions have no class of ours.
                vars(value)["_repr_html_"] = partial(kernel_html, value)


def install(package: str, compiled: Iterable[CompiledModule]) -> KernelModule:
    """Import compiled modules into a package, in order, and return the last.

    The package itself need not exist.
    """
    *_, last = _install(package, [*compiled]).values()
    return last


@contextmanager
def installed(
    compiled: Iterable[CompiledModule],
) -> Generator[Mapping[str, KernelModule]]:
    """Yield imported modules by source, for the duration of a block."""
    package = f"kerngen.jit.t{next(_NUMBERS)}"
    try:
        yield _install(package, [*compiled])
    finally:
        for name in [*sys.modules]:
            if name.startswith(f"{package}."):
                del sys.modules[name]


def functions(
    source: CompiledModule, module: ModuleType
) -> dict[str, Callable[..., Any]]:
    """Return the functions of a module's kernels, by the kernels' names."""
    names = module_names(source.module).kernels
    kernels = (program.staged.kernel.name for program in source.programs)
    return {name: getattr(module, names[name].function) for name in kernels}


def _install(
    package: str, compiled: Sequence[CompiledModule]
) -> dict[str, KernelModule]:
    """Import modules of a package, at paths where their relative imports find each other.

    The path of a module in a folder above begins with '..'. As no module's name may, all
    get a prefix: '../x' and 'y' become 'up/../x', which is 'x', and 'up/y'.
    """
    paths = [module_path("", each.module.path).removesuffix(".py") for each in compiled]
    deepest = max((path.split("/").count("..") for path in paths), default=0)
    modules: dict[str, KernelModule] = {}
    for each, path in zip(compiled, paths, strict=True):
        parts = normpath(f"{'up/' * deepest}{path}").split("/")
        loader = _Loader(each, f"<{package}>")
        modules[each.module.path] = _import(".".join((package, *parts)), loader)
    return modules


def _import(name: str, loader: _Loader) -> KernelModule:
    spec = spec_from_loader(name, loader)
    assert spec is not None, "the loader knows its file's name"
    module = module_from_spec(spec)
    assert isinstance(module, KernelModule), "the loader makes one"
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module

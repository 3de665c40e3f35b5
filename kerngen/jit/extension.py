"""The IPython extension: the cell magic `%%kern`, and the display of generated code."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from types import FunctionType, ModuleType
from typing import Any, Protocol

from kerngen.jit.compiling import compile as compile_source
from kerngen.runtime.notebook.kernel_html import (
    is_kernel_function,
    is_kernel_module,
    kernel_html,
    module_html,
)

_DEFAULT_NAME = "cell"


class _Formatter(Protocol):
    """IPython's formatter of values as HTML."""

    def for_type(self, typ: type, func: Callable[[Any], str | None]) -> object:
        """Format values of a type by a function; a value has no HTML where it returns None."""
        ...


class _DisplayFormatter(Protocol):
    """IPython's formatters by MIME type."""

    @property
    def formatters(self) -> MutableMapping[str, _Formatter]:
        """The formatters, one for each MIME type."""
        ...


class Shell(Protocol):
    """The part of `IPython.InteractiveShell` that the extension uses."""

    user_ns: MutableMapping[str, Any]
    display_formatter: _DisplayFormatter

    def register_magic_function(
        self, func: Callable[[str, str], None], magic_kind: str, magic_name: str
    ) -> None:
        """Register a magic: a command in a cell that begins with '%'."""
        ...


def load_ipython_extension(shell: Shell) -> None:
    """Register `%%kern`, and show generated functions and modules as HTML."""

    def kern(line: str, cell: str) -> None:
        """Compile the cell as a kerngen program, and define its names in the notebook.

        `%%kern` defines kernels, references and structs, `%%kern name` a module of that
        name instead.
        """
        run_cell(shell, line.strip(), cell)

    shell.register_magic_function(kern, "cell", "kern")
    html = shell.display_formatter.formatters["text/html"]
    html.for_type(FunctionType, _function)
    html.for_type(ModuleType, _module)


def run_cell(shell: Shell, name: str, cell: str) -> None:
    """Compile a cell of `%%kern`, and put its names, or the module, into the namespace."""
    # The line of '%%kern' is line 1 of the cell: with an empty one, numbers agree.
    module = compile_source(f"\n{cell}", name=name or _DEFAULT_NAME)
    if name:
        shell.user_ns[name] = module
        return
    for each in module.__all__:
        shell.user_ns[each] = getattr(module, each)


def _function(function: FunctionType) -> str | None:
    return kernel_html(function) if is_kernel_function(function) else None


def _module(module: ModuleType) -> str | None:
    return module_html(module) if is_kernel_module(module) else None

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
        """Show a type by a function, or not at all where it returns None."""
        ...


class _DisplayFormatter(Protocol):
    """IPython's formatters by MIME type."""

    @property
    def formatters(self) -> MutableMapping[str, _Formatter]:
        """One for each type of output."""
        ...


class Shell(Protocol):
    """The part of `IPython.InteractiveShell` that the extension uses."""

    user_ns: MutableMapping[str, Any]
    display_formatter: _DisplayFormatter

    def register_magic_function(
        self, func: Callable[[str, str], None], magic_kind: str, magic_name: str
    ) -> None:
        """Register a magic."""
        ...


def load_ipython_extension(shell: Shell) -> None:
    """Register `%%kern`, and show generated functions and modules as HTML."""

    def kern(line: str, cell: str) -> None:
        """Compile the cell as a kerngen program, and offer what it defines.

        `%%kern` puts kernels, references and structs into the namespace, `%%kern name` a
        module of that name instead.
        """
        run_cell(shell, line.strip(), cell)

    shell.register_magic_function(kern, "cell", "kern")
    html = shell.display_formatter.formatters["text/html"]
    html.for_type(FunctionType, _function)
    html.for_type(ModuleType, _module)


def run_cell(shell: Shell, name: str, cell: str) -> None:
    """Compile a cell of `%%kern`."""
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

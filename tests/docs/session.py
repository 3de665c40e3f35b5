"""What a reader has at hand while following a page: a folder, Python, the last output."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any, final

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from kerngen.cli.project import select
from kerngen.cli.settings import Project
from kerngen.compiler import Compiler
from kerngen.source.diagnostic import CompileError
from kerngen.source.render import render


@final
@dataclass(slots=True)
class Session:
    """A reader's folder, the values of the page's Python, and what was printed last."""

    folder: Path
    program: str = ""
    compiled: str = ""
    titled: list[Path] = field(default_factory=list[Path])
    values: dict[str, object] = field(default_factory=lambda: {"__name__": "page"})
    output: str | None = None
    shaders: list[str] = field(default_factory=list[str])
    shell: Any = None

    def write(self, name: str, text: str) -> Path:
        """Write a file that a page shows."""
        file = self.folder / name
        assert file.resolve().is_relative_to(self.folder.resolve()), name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def check(self, file: Path) -> tuple[str, ...]:
        """Return the codes of a program's faults; its shaders are made where shown."""
        selection = select(file, Project())
        compiler = Compiler(selection.library(), formatted=False)
        try:
            compiler.check(selection.files[0].name)
        except CompileError as error:
            self.output = render(error.diagnostics, color=False)
            return tuple(fault.code for fault in error.diagnostics)
        return ()

    def grow(self, text: str) -> tuple[str, ...]:
        """Add to the page's program; return the codes of its faults."""
        self.program += text
        return self.check(self.write("page.kern", self.program))

    def compile(self, file: Path) -> list[str]:
        """Compile a program that has no faults; return its shaders."""
        selection = select(file, Project())
        compiler = Compiler(selection.library(), formatted=False)
        files = compiler.compile(selection.files[0].name).files.items()
        return [data.decode("utf-8") for name, data in files if name.endswith(".wgsl")]

    def compile_program(self) -> list[str]:
        """Compile the page's program, once for all blocks that it came in."""
        if self.program != self.compiled:
            self.shaders = self.compile(self.write("page.kern", self.program))
            self.compiled = self.program
        return self.shaders

    def run(self, text: str, name: str) -> None:
        """Run Python in the page's name space, as a notebook's cell would."""
        code = compile(text, name, "exec")
        self.print_of(lambda: exec(code, self.values))

    def print_of(self, action: Callable[[], object]) -> None:
        """Do something, and keep what it prints."""
        printed = StringIO()
        with redirect_stdout(printed):
            action()
        self.output = printed.getvalue()

    def run_cell(self, text: str) -> None:
        """Run a notebook's cell: Python, magics and all."""
        if self.shell is None:
            config: Any = Config()
            config.HistoryManager.enabled = False
            shell: Any = InteractiveShell  # half of it has no annotations
            own = str(self.folder / ".ipython")  # not in the user's home
            self.shell = shell.instance(
                config=config, ipython_dir=own, user_ns=self.values
            )
        self.print_of(lambda: self.shell.run_cell(text).raise_error())

    def run_and_fail(self, text: str, name: str) -> None:
        """Run Python that raises; what it says of the error is the output."""
        try:
            self.run(text, name)
        except Exception as error:  # noqa: BLE001 - whatever it is, the page names it
            self.output = "".join(traceback.format_exception_only(error))
        else:
            raise AssertionError(f"{name}: this raises nothing.")


@contextmanager
def session(folder: Path) -> Generator[Session]:
    """Work in a folder; what was imported from there is forgotten at the end."""
    before, paths = Path.cwd(), list(sys.path)
    os.chdir(folder)
    sys.path.insert(0, "")  # the working directory, whichever it is
    try:
        with warnings.catch_warnings():
            yield Session(folder)
    finally:
        InteractiveShell.clear_instance()
        forget(folder)
        os.chdir(before)
        sys.path[:] = paths


def forget(folder: Path) -> None:
    """Forget the modules that were imported from a folder: a new process knows none."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and Path(file).is_relative_to(folder):
            del sys.modules[name]
    importlib.invalidate_caches()

"""Emit modules from kernel sources, and import them."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any

from kerngen.compiler import compile_text
from kerngen.jit.memory import installed

PATH = "dsl/sample.kern"


@cache
def emitted(text: str, path: str = PATH) -> str:
    """Return the module that a kernel source becomes."""
    return compile_text(text, path).binding


@contextmanager
def imported(binding: str, name: str = "emitted_sample") -> Generator[Any]:
    """Import the text of a module without kernels; it is forgotten at the end."""
    module = ModuleType(name)
    module.__file__ = f"/nowhere/{name}.py"
    sys.modules[name] = module
    try:
        exec(compile(binding, module.__file__, "exec"), module.__dict__)
        yield module
    finally:
        del sys.modules[name]


@cache
def loaded(text: str) -> Any:
    """Return the imported module of a kernel source."""
    with installed([compile_text(text, PATH)]) as modules:
        return modules[PATH]

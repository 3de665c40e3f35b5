"""Compiling a file for the command line: what it leaves behind in the process."""

from __future__ import annotations

import gc

import pytest

from kerngen.cli.compiled import compiled_file
from kerngen.compiler import Compiler
from kerngen.source.diagnostic import CompileError
from kerngen.syntax.library import Library


@pytest.mark.parametrize("value", ["x[i]", "x[j]"])
def test_the_garbage_collector_runs_again(value: str) -> None:
    """It is paused while a file is compiled, whether that is right or wrong."""
    text = f"kernel f(x: f32[n]) -> y: f32[n] {{ y[i] = {value}; }}"
    compiler = Compiler(Library.of_text(text, "f.kern"))
    assert gc.isenabled()
    try:
        compiled_file(compiler, "f.kern")
    except CompileError:
        assert value == "x[j]"
    assert gc.isenabled()

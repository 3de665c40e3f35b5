"""A small project to build, and the command line to build it with."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kerngen.cli import main
from kerngen.compiler import CompiledModule, Compiler
from tests.cli.sample import PYPROJECT, SCALE, TOTAL, Run, edit


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project of two sources, which is the working directory."""
    root = tmp_path / "project"
    edit(root / "pyproject.toml", PYPROJECT)
    edit(root / "dsl" / "scale.kern", SCALE)
    edit(root / "dsl" / "deep" / "total.kern", TOTAL)
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of sources that get compiled from here on."""
    names: list[str] = []
    compile_file = Compiler.compile

    def spy(self: Compiler, name: str) -> CompiledModule:
        names.append(name)
        return compile_file(self, name)

    monkeypatch.setattr(Compiler, "compile", spy)
    return names


@pytest.fixture
def kerngen() -> Run:
    """Return what runs the command line; an exception that escapes it is raised."""

    def run(
        *arguments: str | Path, code: int = 0, stdin: str | bytes | None = None
    ) -> Result:
        words = [str(argument) for argument in arguments]
        result = CliRunner().invoke(main, words, stdin, catch_exceptions=False)
        assert result.exit_code == code, result.output
        return result

    return run

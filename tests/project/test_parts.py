"""Parts of kerngen that are not installed: who lacks one says which, and how to get it."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import kerngen
from kerngen import origin
from kerngen.parts import BENCH, COMPILER, PARTS, STANDARD, TRAIN, needing
from tests.project.tree import ROOT

PROJECT: Any = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
KERNELS: Any = tomllib.loads(
    (ROOT / "generated" / "pyproject.toml").read_text("utf-8")
)["project"]


def needed_by(requirement: str) -> Iterator[str]:
    """The distributions that a requirement brings besides the runtime, ours included."""
    wanted = Requirement(requirement)
    if wanted.name != "kerngen":
        yield canonicalize_name(wanted.name)
    for extra in wanted.extras:
        for each in PROJECT["optional-dependencies"][extra]:
            yield from needed_by(each)


@pytest.mark.parametrize("part", PARTS)
def test_parts_are_the_extras(part: Any) -> None:
    named = {canonicalize_name(package) for package in part.packages}
    assert named == {*needed_by(part.requirement)}


def test_the_runtime_needs_numpy_and_wgpu() -> None:
    assert [Requirement(each).name for each in PROJECT["dependencies"]] == [
        *("numpy", "wgpu")
    ]


def test_both_distributions_are_of_one_version() -> None:
    version = kerngen.__version__
    assert KERNELS["version"] == version
    assert KERNELS["dependencies"][0] == f"kerngen=={version}"
    assert f"kerngen-kernels=={version}" in PROJECT["optional-dependencies"]["train"]


def test_each_package_has_the_license() -> None:
    """npm packs the one that is beside its package.json."""
    own = (ROOT / "LICENSE").read_bytes()
    for folder in ("generated", "web"):
        assert (ROOT / folder / "LICENSE").read_bytes() == own


IMPORTS = """
for name in ("nn", "train", "batch", "matmul_cache", "sort", "jit", "jit"):
    try:
        importlib.import_module(f"kerngen.{name}")
    except ModuleNotFoundError as error:
        print(error)
from kerngen.__main__ import main
main()
"""

COMMANDS = """
from click.testing import CliRunner
from kerngen.cli import main
for words in ("verify", "bench", "bench softmax", "bench --plot a.png"):
    result = CliRunner().invoke(main, words.split())
    assert result.exit_code == 1
    print(result.output, end="")
"""


def run_without(packages: Iterable[str], program: str, cwd: Path) -> tuple[str, str]:
    """Run a program that finds none of the packages; return what it printed."""
    begin = (
        f"import importlib, sys\nsys.path[:0] = {[str(ROOT)]!r}\n"
        f"sys.modules.update(dict.fromkeys({[*packages]!r}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", begin + program],
        check=False,
        cwd=cwd,
        env={**os.environ, "KERNGEN_ADAPTER": "reference"},
        capture_output=True,
        text=True,
    )
    return done.stdout, done.stderr


def starts(lines: str) -> list[str]:
    """What each line says is missing; each has a command that installs it."""
    return [
        line.partition(", which this installation of kerngen lacks")[0]
        for line in lines.splitlines()
        if 'Install: pip install "' in line
    ]


def test_imports(tmp_path: Path) -> None:
    out, error = run_without(BENCH.packages, IMPORTS, tmp_path)
    assert starts(out) == [
        "kerngen.nn needs the standard kernels",
        "kerngen.train needs the packages for training",
        "kerngen.batch needs the standard kernels",
        "kerngen.matmul_cache needs the standard kernels",
        "kerngen.sort needs the standard kernels",
        "Compiling from Python needs the compiler",
        "Compiling from Python needs the compiler",  # and not only the first time
    ]
    assert starts(error) == ["Error: The command line needs the compiler"]


def test_commands(tmp_path: Path) -> None:
    missing = ("hypothesis", "kerngen_kernels", "matplotlib")
    out, error = run_without(missing, COMMANDS, tmp_path)
    assert starts(out) == [
        "Error: 'kerngen verify' needs the compiler",
        "Error: 'kerngen bench' without a KERNEL needs the packages for benchmarks",
        "Error: 'kerngen bench' of a standard kernel needs the packages for benchmarks",
        "Error: --plot needs the packages for benchmarks",
    ], error


@pytest.mark.parametrize(
    ("note", "command"),
    [
        ({}, '"kerngen-kernels"'),
        ({"url": "file:///a/k.whl", "archive_info": {}}, '"kerngen-kernels"'),
        ({"url": "file:///a%20b/kerngen", "dir_info": {}}, '"/a b/kerngen/generated"'),
        (
            {"url": "https://a/b", "vcs_info": {"vcs": "git", "commit_id": "c0"}},
            '"kerngen-kernels @ git+https://a/b@c0#subdirectory=generated"',
        ),
    ],
)
def test_where_the_standard_kernels_are(
    note: object, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kerngen_kernels", None)
    monkeypatch.setattr(origin, "_direct_url", lambda: note)
    assert STANDARD.command == f"pip install {command}"
    beside = '"kerngen[train]"'
    found = beside if command.strip('"') == "kerngen-kernels" else f"{command} {beside}"
    assert TRAIN.command == f"pip install {found}"
    assert COMPILER.command == 'pip install "kerngen[compiler]"'


def test_other_errors_pass() -> None:
    with (
        pytest.raises(ModuleNotFoundError, match="No module named 'numpie'"),
        needing("this", COMPILER),
    ):
        __import__("numpie")

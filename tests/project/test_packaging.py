"""Wheels of a user's kernels: built as `docs/packaging.md` has it, and run without us.

What runs them is the runtime with NumPy and wgpu; nothing of the compiler is on the path.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from kerngen.compiler import compile_text
from tests.docs.blocks import blocks_of
from tests.project.tree import ROOT

PAGE = ROOT / "docs" / "packaging.md"
SOURCE = "kernel double(x: f32[n]) -> y: f32[n] { y[i] = 2.0 * x[i]; }"
SHADERS = {"my_kernels/wgsl/layers/double.map.wgsl"}
PROGRAM = """
import sys
import kerngen.runtime as gpu
from my_kernels import layers

with gpu.open(adapter="software") as ctx:
    print(layers.double(ctx.vector([1.0, 2.5], gpu.f32)).numpy().tolist())
loaded = {name.partition(".")[0] for name in sys.modules}
assert not loaded & {"black", "click", "kerngen_kernels", "lark", "rich"}, loaded
"""


def projects() -> dict[str, str]:
    """The `pyproject.toml` of the page for each build backend."""
    blocks = [block.text for block in blocks_of(PAGE) if block.language == "toml"]
    tables = {text: tomllib.loads(text) for text in blocks}
    return {
        data["build-system"]["requires"][0].partition(">")[0]: text
        for text, data in tables.items()
        if "build-system" in data
    }


PROJECTS = projects()


def run(*command: str | Path, cwd: Path, code: int = 0) -> str:
    """Run a command that must end as expected; return all that it printed."""
    done = subprocess.run(
        [str(word) for word in command],
        check=False,
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == code, done.stdout
    return done.stdout


def write_project(folder: Path, pyproject: str) -> None:
    """Write a project with generated kernels."""
    package = folder / "src" / "my_kernels"
    (package / "wgsl" / "layers").mkdir(parents=True)
    for name in ("__init__.py", "py.typed"):
        (package / name).touch()
    for name, data in compile_text(SOURCE, "dsl/layers.kern").files.items():
        (package / name).write_bytes(data)
    (folder / "pyproject.toml").write_text(pyproject, encoding="utf-8")


def build(project: Path) -> Path:
    """Build the wheel of a project, as pip does: by a build backend of its own."""
    run(sys.executable, "-m", "build", "--wheel", cwd=project)
    (wheel,) = (project / "dist").glob("*.whl")
    return wheel


def build_here(project: Path) -> Path:
    """Build it by the build backend that is installed here, which is quicker."""
    text = (project / "pyproject.toml").read_text("utf-8")
    backend = tomllib.loads(text)["build-system"]["build-backend"]
    program = f"import {backend} as backend; print(backend.build_wheel('.'))"
    name = run(sys.executable, "-c", program, cwd=project).splitlines()[-1]
    return project / name


def contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {*archive.namelist()}


def install_alone(wheel: Path, folder: Path) -> Path:
    """Unpack a wheel beside links to the runtime and what wgpu needs."""
    site = folder / "site-packages"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (site / "kerngen").symlink_to(ROOT / "kerngen")
    for name in ("numpy", "wgpu", "cffi", "pycparser"):
        installed = distribution(name)
        for top in {file.parts[0] for file in installed.files or ()}:
            if top != ".." and not (site / top).exists():
                (site / top).symlink_to(Path(str(installed.locate_file(top))))
    return site


def run_alone(site: Path, program: str, code: int = 0) -> str:
    """Run a program with nothing on the path but a folder."""
    program = f"import sys; sys.path[:0] = [{str(site)!r}]\n{program}"
    return run(sys.executable, "-I", "-S", "-c", program, cwd=site, code=code)


def test_the_page_has_every_backend() -> None:
    assert set(PROJECTS) == {"setuptools", "hatchling", "poetry-core", "uv_build"}
    for text in PROJECTS.values():
        assert tomllib.loads(text)["project"]["dependencies"] == [
            *("kerngen>=0.1.0", "numpy>=2.2.6")
        ]


def test_setuptools(tmp_path: Path) -> None:
    """The error of a wheel without shaders has the lines that the page's project has."""
    right = PROJECTS["setuptools"]
    table = "[tool.setuptools.package-data]"
    without, *rest = right.partition(table)
    write_project(tmp_path / "wrong", without)
    wheel = build_here(tmp_path / "wrong")
    assert not contents(wheel) & SHADERS
    error = run_alone(install_alone(wheel, tmp_path / "wrong"), PROGRAM, code=1)
    assert "MissingShadersError: my_kernels.layers: the shaders are missing" in error
    assert "The wheel of 'my-kernels 0.1.0' was built without its package data" in error
    assert "".join(rest).strip() in error

    write_project(tmp_path / "right", right)
    wheel = build_here(tmp_path / "right")
    assert contents(wheel) >= SHADERS | {"my_kernels/py.typed"}
    site = install_alone(wheel, tmp_path / "right")
    assert run_alone(site, PROGRAM).splitlines()[-1] == "[2.0, 5.0]"


@pytest.mark.nightly
@pytest.mark.parametrize("backend", [*PROJECTS])
def test_every_backend_of_the_page(backend: str, tmp_path: Path) -> None:
    write_project(tmp_path, PROJECTS[backend])
    wheel = build(tmp_path)
    assert contents(wheel) >= SHADERS | {"my_kernels/py.typed"}
    output = run_alone(install_alone(wheel, tmp_path), PROGRAM)
    assert output.splitlines()[-1] == "[2.0, 5.0]"


@pytest.mark.nightly
def test_hatchling_and_ignored_files(tmp_path: Path) -> None:
    """The lines that the error has bring files back that git ignores."""
    write_project(tmp_path, PROJECTS["hatchling"])
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("*.wgsl\n", encoding="utf-8")
    error = run_alone(
        install_alone(build(tmp_path), tmp_path / "wrong"), PROGRAM, code=1
    )
    (lines,) = re.findall(r"^\[tool.hatch.build\]\n.*\n", error, re.MULTILINE)
    with (tmp_path / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write(f"\n{lines}")
    assert contents(build(tmp_path)) >= SHADERS


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels of both distributions, by name."""
    out = tmp_path_factory.mktemp("dist")
    for folder in (ROOT, ROOT / "generated"):
        options = ("--wheel", "--no-isolation", "--outdir", out)
        run(sys.executable, "-m", "build", *options, folder, cwd=out)
    return {wheel.name.partition("-")[0]: wheel for wheel in out.glob("*.whl")}


@pytest.mark.nightly
def test_a_wheel_in_an_environment_without_the_compiler(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    venv.create(tmp_path / "venv", symlinks=True, with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    write_project(tmp_path / "project", PROJECTS["setuptools"])
    wheel = build(tmp_path / "project")
    run(python, "-m", "pip", "install", "-q", wheels["kerngen"], wheel, cwd=tmp_path)
    listed = (python, "-m", "pip", "list", "--format", "json")
    installed: list[dict[str, Any]] = json.loads(
        run(*listed, "--disable-pip-version-check", cwd=tmp_path)
    )
    of_wgpu = {"cffi", "pycparser", "rendercanvas"}
    assert {each["name"] for each in installed} - {"pip", "setuptools"} == {
        *("kerngen", "my-kernels", "numpy", "wgpu"),
        *of_wgpu,
    }
    assert run(python, "-c", PROGRAM, cwd=tmp_path).splitlines()[-1] == "[2.0, 5.0]"
    ended = run(tmp_path / "venv" / "bin" / "kerngen", "build", cwd=tmp_path, code=1)
    assert ended.startswith("Error: The command line needs the compiler, ")
    (command,) = re.findall('pip install "(.*)"', ended)
    run(python, "-m", "pip", "install", "-q", command, cwd=tmp_path)
    sources = tmp_path / "project" / "dsl"
    sources.mkdir()
    (sources / "layers.kern").write_text(SOURCE, encoding="utf-8")
    build_again = ("build", sources, "--out", tmp_path / "made")
    run(tmp_path / "venv" / "bin" / "kerngen", *build_again, cwd=tmp_path)

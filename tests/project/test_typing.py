"""Type checkers accept right uses of generated modules, and reject each wrong one.

Held in the editable checkout, and with the built wheels in an environment of their own; a
wheel has every file of its package.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest

from kerngen import __version__
from tests.project.tree import ROOT

PROGRAMS = Path(__file__).parent / "typing"
FILES = ("right.py", "wrong.py")

Lines: TypeAlias = Mapping[str, list[int]]
"""Numbers of lines, by file."""


def run(*command: str | Path, cwd: Path, code: int = 0) -> str:
    """Run a command that must end as expected; return what it printed."""
    done = subprocess.run(
        [str(word) for word in command],
        check=False,
        cwd=cwd,
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Return the built wheels of both distributions, by their packages' folders."""
    folder = tmp_path_factory.mktemp("dist")
    for project in (ROOT, ROOT / "generated"):
        run(
            *(sys.executable, "-m", "build", "--wheel", "--no-isolation"),
            *("--skip-dependency-check", "--outdir", folder, project),
            cwd=folder,
        )
    (runtime,) = folder.glob("kerngen-*.whl")
    (kernels,) = folder.glob("kerngen_kernels-*.whl")
    return {"kerngen": runtime, "generated/kerngen_kernels": kernels}


def link_numpy(site_packages: Path) -> None:
    """Give an environment NumPy without a download."""
    installed = Path(np.__file__).parent
    for folder in (installed, installed.with_name("numpy.libs")):
        if folder.exists():
            (site_packages / folder.name).symlink_to(folder)


@pytest.fixture(
    scope="module",
    params=["editable", pytest.param("wheel", marks=pytest.mark.nightly)],
)
def python(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return an interpreter that has kerngen: this one, or one that has the wheel."""
    if request.param == "editable":
        return Path(sys.executable)
    wheels: Mapping[str, Path] = request.getfixturevalue("wheels")
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, symlinks=True)
    python = home / "bin" / "python"
    run(
        *(sys.executable, "-m", "pip", "--python", python, "install", "--quiet"),
        *("--disable-pip-version-check", "--no-deps", "--no-index"),
        *wheels.values(),
        cwd=home,
    )
    paths = sysconfig.get_paths("venv", vars={"base": str(home)})
    link_numpy(Path(paths["purelib"]))
    return python


@pytest.fixture(scope="module")
def programs(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the programs and the package that they need besides."""
    del python  # one folder for each, so that no checker's cache is shared
    folder = tmp_path_factory.mktemp("programs")
    for name in FILES:
        shutil.copy(PROGRAMS / name, folder)
    command = (sys.executable, "-m", "kerngen.cli", "build")
    run(*command, PROGRAMS / "pair.kern", "--out", folder / "made", cwd=folder)
    command = (sys.executable, "-m", "kerngen.cli", "bind")
    run(*command, PROGRAMS / "springs.wgsl", "--out", folder / "made", cwd=folder)
    settings = {"typeCheckingMode": "strict"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("package", "kinds"),
    [
        ("kerngen", {".py", ".md", ".lark", ".kern", ".txt"}),
        ("generated/kerngen_kernels", {".py", ".wgsl"}),
    ],
)
def test_a_wheel_has_every_file_of_its_package(
    wheels: Mapping[str, Path], package: str, kinds: set[str]
) -> None:
    with zipfile.ZipFile(wheels[package]) as archive:
        packed = set(archive.namelist())
    folder = ROOT / package
    files = {
        file.relative_to(folder.parent).as_posix()
        for file in folder.rglob("*")
        if file.is_file() and file.parent.name != "__pycache__"
    }
    assert {Path(name).suffix for name in files} >= kinds
    assert f"{folder.name}/py.typed" in files
    assert files - packed == set()
    others = {name.partition("/")[0] for name in packed} - {folder.name}
    assert [name.partition("-")[2] for name in others] == [f"{__version__}.dist-info"]


def marked_lines(file: Path) -> list[int]:
    lines = file.read_text("utf-8").splitlines()
    return [number for number, line in enumerate(lines, 1) if "# error" in line]


def mypy_errors(python: Path, programs: Path) -> Lines:
    """The lines that mypy rejects."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--no-error-summary"),
            *("--output", "json", "--python-executable", python, *FILES),
        ],
        check=False,
        cwd=programs,
        capture_output=True,
        text=True,
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == bool(found), done.stderr
    return lines_by_file(
        (error["file"], error["line"])
        for error in found
        if error["severity"] == "error"
    )


def pyright_errors(python: Path, programs: Path) -> Lines:
    """The lines that pyright rejects, counted from 1."""
    command = ("basedpyright", "--outputjson", "--pythonpath", str(python))
    done = subprocess.run(
        [sys.executable, "-m", *command],
        check=False,
        cwd=programs,
        capture_output=True,
        text=True,
    )
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] > 2
    return lines_by_file(
        (Path(one["file"]).name, one["range"]["start"]["line"] + 1)
        for one in report["generalDiagnostics"]
    )


def lines_by_file(found: Iterable[tuple[str, int]]) -> Lines:
    """The lines found, each once, of the programs; they must be of nothing else."""
    lines: dict[str, set[int]] = {file: set() for file in FILES}
    for file, line in found:
        lines[file].add(line)
    return {file: sorted(several) for file, several in lines.items()}


@pytest.mark.parametrize(
    "errors", [pytest.param(mypy_errors, marks=pytest.mark.nightly), pyright_errors]
)
def test_what_is_wrong_is_rejected(
    python: Path, programs: Path, errors: Callable[[Path, Path], Lines]
) -> None:
    expected = marked_lines(PROGRAMS / "wrong.py")
    assert len(expected) > 40
    assert errors(python, programs) == {"right.py": [], "wrong.py": expected}


RUN_ON_REFERENCE = """
import os, warnings
os.environ["KERNGEN_ADAPTER"] = "reference"
warnings.simplefilter("ignore")
import kerngen_kernels.matmul as matmul
import kerngen.runtime as gpu
import numpy as np
ctx = gpu.open()
a = np.arange(6.0).reshape(2, 3)
c = matmul.matmul_nt(ctx.matrix(a, gpu.f32), ctx.matrix(a, gpu.f32))
assert np.array_equal(c.numpy(), a @ a.T)
"""


@pytest.mark.nightly
def test_kernels_run_without_wgpu(python: Path, programs: Path) -> None:
    run(python, "-c", RUN_ON_REFERENCE, cwd=programs)

"""Type checkers accept right uses of generated modules, and reject each wrong one.

Held in the editable checkout, and with the built wheel in an environment of its own; the
wheel has every file of the package.
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
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the built wheel."""
    folder = tmp_path_factory.mktemp("dist")
    run(
        *(sys.executable, "-m", "build", "--wheel", "--no-isolation"),
        *("--outdir", folder, ROOT),
        cwd=folder,
    )
    (built,) = folder.glob("kerngen-*.whl")
    return built


def link_numpy(site_packages: Path) -> None:
    """Give an environment NumPy without a download."""
    installed = Path(np.__file__).parent
    for folder in (installed, installed.with_name("numpy.libs")):
        if folder.exists():
            (site_packages / folder.name).symlink_to(folder)


@pytest.fixture(
    scope="module",
    params=[pytest.param("editable", marks=pytest.mark.nightly), "wheel"],
)
def python(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return an interpreter that has kerngen: this one, or one that has the wheel."""
    if request.param == "editable":
        return Path(sys.executable)
    wheel: Path = request.getfixturevalue("wheel")
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, symlinks=True)
    python = home / "bin" / "python"
    run(
        *(sys.executable, "-m", "pip", "--python", python, "install", "--quiet"),
        *("--disable-pip-version-check", "--no-deps", "--no-index", wheel),
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
    settings = {"typeCheckingMode": "strict"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


def test_the_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    package = [file for file in (ROOT / "kerngen").rglob("*") if file.is_file()]
    files = {
        file.relative_to(ROOT).as_posix()
        for file in package
        if file.parent.name != "__pycache__"
    }
    assert {Path(name).suffix for name in files} >= {".py", ".md", ".lark"}
    assert files - packed == set()


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


@pytest.mark.parametrize("errors", [mypy_errors, pyright_errors])
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


def test_kernels_run_without_wgpu(python: Path, programs: Path) -> None:
    run(python, "-c", RUN_ON_REFERENCE, cwd=programs)


def test_the_wheel_holds_all_that_a_build_needs(wheel: Path, tmp_path: Path) -> None:
    shutil.unpack_archive(wheel, tmp_path, format="zip")
    inside = {path.name for path in tmp_path.iterdir()}
    assert {"kerngen", "kerngen_kernels"} < inside
    assert not inside & {"tests", "generated", "examples"}
    assert (tmp_path / "kerngen" / "py.typed").is_file()
    assert (tmp_path / "kerngen_kernels" / "py.typed").is_file()
    for pattern in ("*.py", "*.lark", "*.wgsl", "*.txt"):
        for package in ("kerngen", "generated/kerngen_kernels"):
            for file in (ROOT / package).rglob(pattern):
                packed = tmp_path / package.removeprefix("generated/")
                assert (packed / file.relative_to(ROOT / package)).is_file()

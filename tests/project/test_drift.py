"""The committed output is what a build of the committed sources makes."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

import pytest

from kerngen.cli.project import select
from kerngen.cli.settings import Project
from kerngen.compiler import Compiler
from kerngen.schedule.sharing import shared
from kerngen.syntax.library import Library
from tests.project.tree import ROOT

COMMITTED = ROOT / "generated" / "kerngen_kernels"
SOURCES = sorted(file.stem for file in (ROOT / "dsl").glob("*.kern"))

LONG: Final = {
    "attention": ("grouped_query_attention", "grouped_query_attention_gradient"),
    "conv": ("conv2d_input_gradient", "conv1d_gradient"),
    "matmul": ("matmul_nn",),
    "norm": ("layernorm", "groupnorm_gradient", "batchnorm_training_gradient"),
    "quantized": ("linear_i4", "gated_linear_add_i8"),
}
"""Sources that take most of a build, and kernels that have most of what theirs have.

By day only the shaders of these are made; `.ci/run` and the nightly tests build all.
"""


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder but Python's caches, with its content."""
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


@cache
def library() -> Library:
    """Return the standard sources, each of which is read once."""
    return select(ROOT / "dsl", Project()).library()


def committed_of(stem: str) -> dict[str, bytes]:
    """Return the committed files of a source."""
    folder = files(COMMITTED / "wgsl" / stem)
    binding = {f"{stem}.py": (COMMITTED / f"{stem}.py").read_bytes()}
    return binding | {f"wgsl/{stem}/{path}": data for path, data in folder.items()}


@pytest.mark.parametrize("stem", [stem for stem in SOURCES if stem not in LONG])
def test_what_is_generated_of_a_source_is_what_it_becomes(stem: str) -> None:
    built, committed = (
        Compiler(library()).compile(f"dsl/{stem}.kern").files,
        committed_of(stem),
    )
    assert committed.keys() == built.keys()
    stale = [path for path in built if built[path] != committed[path]]
    assert stale == [], "run 'kerngen build'"


@pytest.mark.parametrize(
    ("stem", "kernel"), [(stem, name) for stem, names in LONG.items() for name in names]
)
def test_shaders_of_a_long_source_are_what_a_kernel_becomes(
    stem: str, kernel: str
) -> None:
    """Line by line: a file may hold what other kernels have beside it.

    A shader that is wholly another kernel's is in a file of that one, and left out.
    """
    name, committed = f"dsl/{stem}.kern", committed_of(stem)
    origin = f"{name} (sha256 {library().digest(name)[:16]})"
    (program,) = shared([Compiler(library()).program(name, kernel)], origin)
    built = {f"wgsl/{stem}/{f.name}.wgsl": f.text.encode() for f in program.files}
    own = built.keys() & committed.keys()
    assert len(own) >= len(built) / 2
    for path in own:
        lines = {*built[path].splitlines()} - {*committed[path].splitlines()}
        assert lines == set(), f"{path}: run 'kerngen build'"


def test_every_file_is_as_its_build_left_it() -> None:
    committed = files(COMMITTED)
    manifest = json.loads(committed.pop("manifest.json"))
    sources = manifest["sources"]
    assert sorted(sources) == [f"dsl/{stem}.kern" for stem in SOURCES]
    for path, entry in sources.items():
        assert entry["sha256"] == library().digest(path), f"{path}: run 'kerngen build'"
    listed = dict(manifest["package"])
    for entry in sources.values():
        listed.update(entry["files"])
    assert {
        path: sha256(data).hexdigest() for path, data in committed.items()
    } == listed


@pytest.mark.nightly
def test_generated_is_a_fresh_build(tmp_path: Path) -> None:
    fresh = tmp_path / "fresh"
    subprocess.run(
        [sys.executable, "-m", "kerngen.cli", "build", ROOT / "dsl", "--out", fresh],
        check=True,
        cwd=tmp_path,
        capture_output=True,
    )
    committed, built = files(COMMITTED), files(fresh)
    assert committed.keys() == built.keys()
    stale = [path for path in built if built[path] != committed[path]]
    assert stale == [], "run 'kerngen build'"


def test_nothing_but_the_kernels_is_generated() -> None:
    folders = [path for path in (ROOT / "generated").iterdir() if path.is_dir()]
    assert [folder.name for folder in folders] == ["kerngen_kernels"]

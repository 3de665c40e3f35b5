"""The committed output is what a build of the committed sources makes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.project.tree import ROOT

COMMITTED = ROOT / "generated" / "kerngen_kernels"


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder but Python's caches, with its content."""
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


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

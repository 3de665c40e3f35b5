"""A small project's texts, and how its output is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from click.testing import Result

PYPROJECT = '[tool.kerngen]\nsource = "dsl"\nout = "gen/kernels"\n'
SCALE = "kernel scale(x: f32[n], k: f32) -> y: f32[n] { y[i] = k * x[i]; }\n"
TOTAL = "/// Adds up.\nkernel total(x: f32[n]) -> s: f32[] { s = sum[i] x[i]; }\n"
WRONG = "kernel wrong(x: f32[n]) -> y: f32[n] { y[i] = x[j]; }\n"

SOURCE = Path("dsl")
OUT = Path("gen/kernels")

Run: TypeAlias = Callable[..., Result]
"""Runs the command line in-process: arguments, and the exit `code` that is expected."""


def edit(path: Path, text: str) -> None:
    """Write a file, making the folder it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder but Python's caches, with its content."""
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and "__pycache__" not in file.parts
    }


def times(folder: Path) -> dict[str, int]:
    """When each file was written."""
    return {path: (folder / path).stat().st_mtime_ns for path in files(folder)}

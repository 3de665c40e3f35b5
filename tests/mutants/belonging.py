"""Which tests belong to a folder of kerngen: its own first, then wider ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

_WIDER: Final[Mapping[str, tuple[str, ...]]] = {
    "plan": ("emit/test_hostmath.py",),
    "source": ("syntax", "check", "cli"),
    "ir": ("check", "project/test_drift.py", "language", "programs"),
    "layout": ("project/test_drift.py", "runtime", "cli/test_layout.py"),
    "syntax": ("check", "format", "explain", "cli/test_check_and_show.py"),
    "format": ("cli/test_fmt.py",),
    "check": ("explain", "project/test_drift.py", "language", "programs"),
    "report": ("cli/test_check_and_show.py", "cli/test_layout.py"),
    "shader": ("project/test_drift.py", "emit", "judges"),
    "schedule": ("project/test_drift.py", "language", "programs"),
    "emit": ("project/test_drift.py", "language", "jit", "programs"),
    "output": ("cli/test_build.py",),
    "jit": ("language",),
    "bench": ("cli/test_bench.py", "performance"),
    "tune": ("cli/test_tune.py",),
    "verify": ("numeric/test_guards.py", "cli/test_arguments.py"),
    "explain": ("cli/test_explain.py",),
    "doctor": ("cli/test_doctor.py",),
    "runtime": ("language", "systems", "jit", "numeric/test_guards.py"),
    "batch": ("systems",),
    "matmul_cache": ("systems",),
    "nn": ("train", "systems"),
    "train": ("systems", "parity"),
}
"""What else sees a folder's work, below `tests/`; cheap ones first."""


def own_tests(tree: Path, module: Path) -> list[str]:
    """Return the tests of a module's folder; those that import the module come first."""
    folder = tree / "tests" / module.parts[1]
    dotted = ".".join(module.with_suffix("").parts)
    files = sorted(folder.rglob("test_*.py"))
    near = [file for file in files if dotted in file.read_text("utf-8")]
    ordered = dict.fromkeys([*near, *files])
    return [file.relative_to(tree).as_posix() for file in ordered]


def wider_tests(tree: Path, folder: str) -> list[str]:
    """Return the tests to run where a folder's own notice nothing."""
    paths = [f"tests/{path}" for path in _WIDER.get(folder, ())]
    missing = [path for path in paths if not (tree / path).exists()]
    if missing:
        message = (
            f"tests/mutants/belonging.py names tests that are not there: {missing}"
        )
        raise FileNotFoundError(message)
    return paths

"""Write the files of a new project into an empty folder."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final

from kerngen.scaffold.name import ProjectName

SOURCE: Final = "dsl"
"""The folder of a new project's sources."""

_FILES: Final[Mapping[str, str]] = {
    "pyproject.toml": "pyproject.toml.txt",
    "README.md": "README.md.txt",
    ".gitattributes": "gitattributes.txt",
    ".gitignore": "gitignore.txt",
    ".github/workflows/test.yml": "test.yml.txt",
    f"{SOURCE}/layers.kern": "layers.kern.txt",
    "tests/test_layers.py": "test_layers.py.txt",
}
"""The files of a project, and what they are made from."""

SHADERS: Final = "shaders"
"""The folder of a new project's WGSL, if it has any."""

_SHADER_FILES: Final[Mapping[str, str]] = {
    f"{SHADERS}/drift.wgsl": "drift.wgsl.txt",
    "tests/test_drift.py": "test_drift.py.txt",
}
"""The files of a project with WGSL, besides those."""

_IGNORED: Final = frozenset((".git",))
"""What may be in the folder already."""


class NotEmptyError(Exception):
    """Raised if the folder for a project is not empty."""


def refuse_what_is_there(folder: Path) -> None:
    """Raise `NotEmptyError` unless a folder is empty, or not there yet."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise NotEmptyError(f"'{folder}' is a file.")
    found = sorted({item.name for item in folder.iterdir()} - _IGNORED)
    if found:
        more = ", ..." * (len(found) > 3)
        raise NotEmptyError(
            f"'{folder}' is not empty: it has {', '.join(found[:3])}{more}. Give the "
            f"name of a new folder."
        )


def write_project(
    folder: Path, name: ProjectName, version: str, *, bind: bool = False
) -> None:
    """Write all files but the generated ones; raise `OSError` if one can't be.

    With `bind` the project has a WGSL shader, too.
    """
    words = {"@name@": name.name, "@package@": name.package, "@version@": version}
    if bind:
        for line in ("$ kerngen build", "- run: kerngen build --check"):
            words[line] = f"{line}\n{_beside(line)}"
    chosen = {**_FILES, **(_SHADER_FILES if bind else {})}
    for path, template in chosen.items():
        text = (files("kerngen.scaffold") / "template" / template).read_text("utf-8")
        for word, value in words.items():
            text = text.replace(word, value)
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")


def _beside(line: str) -> str:
    """Return the line for the shaders behind the line of a file that builds kernels."""
    indent = "      " if line.startswith("-") else ""
    return indent + line.replace("kerngen build", f"kerngen bind {SHADERS}")


def begin_history(folder: Path) -> None:
    """Make a folder a git repository, unless it is in one or git is missing."""
    inside = _git("-C", str(folder), "rev-parse", "--is-inside-work-tree")
    if not inside:
        _git("init", "--quiet", str(folder))


def _git(*words: str) -> bool:
    """Run git, if there is one; return whether it succeeded."""
    git = shutil.which("git")
    if git is None:
        return False
    done = subprocess.run([git, *words], capture_output=True, check=False)  # noqa: S603
    return done.returncode == 0


def out_of(folder: Path, name: ProjectName) -> Path:
    """Return the folder for a project's generated files."""
    return folder / "generated" / name.package

"""Names of projects: validation, and suggestions for invalid ones."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final, final

from kerngen.source.words import package_fault

_FORM: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
"""What an index of packages takes as a name."""

_TAKEN: Final = frozenset(
    "dsl generated hypothesis kerngen kerngen_kernels numpy pytest tests wgpu".split()
)
"""Other packages that a project's own would hide, and folders of the project."""


@final
@dataclass(frozen=True, slots=True)
class ProjectName:
    """The name of a project, and of its package.

    Raises `ValueError`, with what to take instead, where it can be no name.
    """

    name: str

    def __post_init__(self) -> None:
        """Refuse an invalid name."""
        if why := _fault(self.name):
            instead = _suggested(self.name)
            raise ValueError(
                f"'{self.name}' can't be a project's name: {why}.{instead}"
            )

    @property
    def package(self) -> str:
        """The Python package of the project."""
        return _package(self.name)


def _package(name: str) -> str:
    return re.sub(r"[-.]+", "_", name).lower()


def _fault(name: str) -> str:
    """Return why a name can't be taken, or nothing."""
    package = _package(name)
    if not name:
        return "it is empty"
    if not _FORM.fullmatch(name):
        return (
            "a name has letters (A to Z), digits, '-', '_' and '.', and begins and ends "
            "with a letter or a digit"
        )
    if package[0].isdigit():
        return "a Python package can't begin with a digit"
    if package in _TAKEN:
        return f"the project itself needs another '{package}'"
    return package_fault(package)


def _suggested(name: str) -> str:
    """Return a sentence with a name that can be taken, if there is one like it."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    base = re.sub(r"[^A-Za-z0-9._]+", "-", plain).strip("-._")
    for other in (base, f"my-{base}", f"{base}-kernels"):
        if base and not _fault(other):
            return f" '{other}' would do."
    return ""

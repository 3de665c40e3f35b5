"""Clashes: sources whose generated files would overwrite each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import final


@final
@dataclass(frozen=True, slots=True)
class Clash:
    """A source that can't be built beside the `other` one, if there is one."""

    source: str
    why: str
    remedy: str
    other: str = ""


def find_clashes(paths: Mapping[str, Iterable[str]]) -> Iterator[Clash]:
    """Yield the clashes among sources; `paths` has the generated files of each.

    A clash is: two sources with one module name, a module beside a package of its name,
    or names that differ only in case. `a-b.kern` and `a_b.kern` both generate `a_b.py`.
    """
    owners: dict[PurePosixPath, str] = {}
    for source, files in sorted(paths.items()):
        for module in modules(files):
            if module.name == "__init__.py":
                yield _of_the_package(source, module)
            elif module in owners:
                yield _of_one_module(source, owners[module], module)
            else:
                owners[module] = source
    yield from _alike(paths)
    for module, source in owners.items():
        for folder in module.parents:
            other = owners.get(folder.with_suffix(".py")) if folder.parts else None
            if other:
                yield _of_module_and_package(source, other, folder)


def modules(files: Iterable[str]) -> Iterator[PurePosixPath]:
    """Yield the files that are Python modules."""
    return (PurePosixPath(path) for path in files if path.endswith(".py"))


def _of_the_package(source: str, module: PurePosixPath) -> Clash:
    return Clash(
        source,
        f"'{source}' can't have this name: it would become '{module}', which makes a "
        f"package of its folder",
        "Rename the file",
    )


def _of_one_module(source: str, other: str, module: PurePosixPath) -> Clash:
    why = f"'{other}' and '{source}' both generate '{module}'"
    return Clash(source, why, "Rename one of them", other)


def _of_module_and_package(source: str, other: str, folder: PurePosixPath) -> Clash:
    why = f"'{other}' generates a module where '{source}' needs the package '{folder}'"
    return Clash(source, why, "Rename the file or the folder", other)


def _alike(paths: Mapping[str, Iterable[str]]) -> Iterator[Clash]:
    """Yield sources of names that differ in case only: on some disks they are one file."""
    seen: dict[str, tuple[str, str]] = {}
    for source, files in sorted(paths.items()):
        for path in sorted(files):
            other, owner = seen.setdefault(path.casefold(), (path, source))
            if other != path:
                why = (
                    f"'{source}' generates '{path}' beside '{other}', which some file "
                    f"systems take for the same"
                )
                beside = owner if owner != source else ""
                yield Clash(source, why, "Rename a kernel or a file", beside)
                break

"""The error for a generated module whose shader files are missing.

Shaders are files beside the module, in `wgsl/<module>`.  A wheel has them only if the
tool that builds it packs files that are not Python; setuptools must be asked to.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from kerngen.runtime.errors import MissingShadersError

if TYPE_CHECKING:
    from importlib.metadata import Distribution


@final
@dataclass(frozen=True, slots=True)
class _Builder:
    """A tool that builds wheels: why it left files out, and the settings that add them."""

    why: str
    settings: str


_SETUPTOOLS: Final = _Builder(
    "setuptools packs nothing but Python unless it is asked to",
    '[tool.setuptools.package-data]\n"{package}" = ["wgsl/*/*"]',
)
_BUILDERS: Final = {
    "setuptools": _SETUPTOOLS,
    "bdist_wheel": _SETUPTOOLS,  # that of setuptools before 70.1
    "hatchling": _Builder(
        "hatchling leaves out what .gitignore names",
        '[tool.hatch.build]\nartifacts = ["*.wgsl", "*.plan"]',
    ),
}
"""The builders by the name that they leave in their wheels."""


def require_shaders(module: str, folder: Path) -> None:
    """Raise `MissingShadersError` if a module's folder of shaders is not there, or has none.

    A module without a file, as one in memory, needs no folder.
    """
    if not folder.parents[1].is_dir():
        return
    if not folder.is_dir():
        lack = f"there is no folder '{folder}'"
    elif not any(file.suffix == ".wgsl" for file in folder.iterdir()):
        lack = f"there are none in '{folder}'"
    else:
        return
    raise MissingShadersError(
        f"{module}: the shaders are missing: {lack}. {_advice(module, folder)}"
    )


def _advice(module: str, folder: Path) -> str:
    """Return the advice for missing shaders: in a wheel, or in a source tree."""
    found = _distribution(module, folder)
    if found is None:
        return "Run 'kerngen build' again: it writes them beside the module."
    package = module.rpartition(".")[0] or module
    builder = _BUILDERS.get(_generator(found))
    why = f": {builder.why}" if builder else ""
    whose = "" if builder else ", if that builds by setuptools"
    settings = (builder or _SETUPTOOLS).settings.format(package=package)
    return (
        f"The wheel of '{found.name} {found.version}' was built without its package "
        f"data{why}. Add to its pyproject.toml{whose}:\n\n{settings}\n\nThen build the "
        f"wheel again, and install it. docs/packaging.md of kerngen has the settings of "
        f"other build backends."
    )


def _distribution(module: str, folder: Path) -> Distribution | None:
    """Return the distribution that installed a module; None in a tree of sources."""
    from importlib.metadata import distributions  # noqa: PLC0415 - it is slow

    package = folder.parents[1]
    root = [package, *package.parents][module.count(".")]
    stem = (package / module.rpartition(".")[2]).relative_to(root)
    for found in distributions(path=[str(root)]):
        files = (found.files or ()) if found.read_text("WHEEL") else ()
        if any(Path(file).with_suffix("") == stem for file in files):
            return found
    return None


def _generator(distribution: Distribution) -> str:
    """Return the name of the tool that built a wheel, which its file WHEEL has."""
    for line in (distribution.read_text("WHEEL") or "").splitlines():
        if line.startswith("Generator: "):
            return line.split()[1]
    return ""

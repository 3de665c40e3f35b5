"""`kerngen bind`: typed Python for WGSL files, or check that it is up to date."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final, final

import click

from kerngen.cli.arguments import options
from kerngen.cli.arguments.paths import PATH, absolute, shown_path
from kerngen.cli.console import reporting
from kerngen.cli.project import package_folder
from kerngen.cli.settings import find_project
from kerngen.cli.updating import report_differences, update
from kerngen.output.errors import OutputError
from kerngen.output.files import Generated
from kerngen.output.manifest import Manifest, digest, read_manifest
from kerngen.output.write import OvertakenError, check
from kerngen.source.diagnostic import Faults
from kerngen.source.reading import decode_source, read_data
from kerngen.source.words import python_word
from kerngen.syntax.library import origin_of

SUFFIX: Final = ".wgsl"


@final
@dataclass(frozen=True, slots=True)
class WgslFiles:
    """The WGSL files of a run: those below `base`, with names relative to `origin`.

    `is_one` is whether the argument is a single file.
    """

    base: Path
    origin: Path
    files: tuple[Path, ...]
    is_one: bool

    def name(self, file: Path) -> str:
        """Return a file's name in generated files."""
        return file.relative_to(self.origin).as_posix()

    def covers(self, name: str) -> bool:
        """Whether a shader with this name, existing or not, was asked for."""
        file = self.origin / name
        return name.endswith(SUFFIX) and (
            file in self.files or (not self.is_one and file.is_relative_to(self.base))
        )

    def digest(self, name: str) -> str:
        """Return the digest of the shader of that name as it is now."""
        return digest(read_data(self.origin / name))

    def placed(self, file: Path, path: str) -> str:
        """Return the path in the output for a file made from a shader."""
        inside = file.parent.relative_to(self.base).parts
        return PurePosixPath(*map(python_word, inside), path).as_posix()


@click.command(
    epilog=options.examples(
        "kerngen bind boids.wgsl --out bound",
        "kerngen bind shaders --out bound",
        "kerngen bind shaders --out bound --check  # in CI: exits with 1 if out of date",
    )
)
@click.argument("src", type=PATH)
@options.out_folder
@click.option(
    "--check",
    "checking",
    is_flag=True,
    help="Write nothing; exit 1, with a diff, if files would change.",
)
@options.quiet
def bind(src: Path, out: Path | None, checking: bool) -> None:
    """Print typed Python for SRC, a .wgsl file or a folder of them.

    A module has a class for each struct, bind group and compute pipeline of its shader,
    of which a copy is beside it.  Only declarations are read.  Extensions of WGSL by other
    tools, such as '#import', are refused, with the name of the tool.
    """
    project = find_project()
    folder = package_folder(out, project)
    shaders = select_shaders(src)
    with reporting(sys.stderr):
        if checking:
            generated = _generate(shaders, shaders.files)
            found = check(generated, folder, keep=lambda name: not shaders.covers(name))
            report_differences(found, folder, "bind")
            return
        bind_shaders(src, folder)


def bind_shaders(src: Path, out: Path) -> None:
    """Write changed files, and print a summary."""
    shaders = select_shaders(src)
    while True:
        with suppress(OvertakenError):  # by a run that read newer texts, perhaps
            return update(
                out,
                {shaders.name(file): file for file in shaders.files},
                lambda fresh, name: fresh.is_fresh(name, shaders.digest(name)),
                lambda stale: _generate(shaders, stale),
                shaders.covers,
            )


def _generate(shaders: WgslFiles, files: Iterable[Path]) -> list[Generated]:
    """Return the generated files; the errors of all sources are reported together."""
    from kerngen.bind.build import bind as bound

    faults, generated = Faults(), list[Generated]()
    for file in files:
        with faults.collect():
            data = read_data(file)
            one = bound(decode_source(data, shown_path(file), shaders.name(file)), data)
            placed = {shaders.placed(file, path): c for path, c in one.files.items()}
            generated.append(Generated(one.source, one.sha256, placed))
    faults.raise_if_any()
    return generated


def select_shaders(src: Path) -> WgslFiles:
    """Return the WGSL files for a path."""
    chosen = absolute(src)
    if not chosen.exists():
        raise click.ClickException(f"'{src}' does not exist.")
    if chosen.is_dir():
        files = tuple(sorted(_below(chosen)))
        if not files:
            raise click.ClickException(f"There are no {SUFFIX} files in '{src}'.")
        return WgslFiles(chosen, origin_of(chosen), files, is_one=False)
    if chosen.suffix != SUFFIX:
        raise click.ClickException(f"'{src}' is not a {SUFFIX} file.")
    base = chosen.parent
    return WgslFiles(base, origin_of(base), (chosen,), is_one=True)


def _below(folder: Path) -> set[Path]:
    """Return every shader below a folder; hidden ones and generated ones are left out."""
    found, generated = set[Path](), set[Path]()
    for inside, inner, names in os.walk(folder):
        if Manifest.NAME in names:
            generated |= _generated_in(Path(inside))
        inner[:] = [name for name in inner if not name.startswith(".")]
        for name in names:
            if name.endswith(SUFFIX) and not name.startswith("."):
                found.add(Path(inside, name))
    return found - generated


def _generated_in(folder: Path) -> set[Path]:
    """Return the files that the manifest of a folder lists; another's lists none."""
    with suppress(OutputError):
        return {folder / path for path, _ in read_manifest(folder).files()}
    return set()

"""The output file of `kerngen tune`, and the parts of an earlier one that are kept."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from pathlib import Path
from typing import final

import click

from kerngen.cli.arguments.paths import shown_path
from kerngen.cli.console import say_waiting
from kerngen.cli.project import Selection
from kerngen.syntax.library import SUFFIX


@final
@dataclass(frozen=True, slots=True)
class Present:
    """The present file of schedules, which a search will replace; empty without a file.

    `gone` are kernels that have schedules in the file, and no longer exist; `text` has no
    schedules for them.
    """

    data: bytes | None = None
    text: str = ""
    gone: tuple[str, ...] = ()

    def without_gone(
        self, selection: Selection, name: str, kernel: str, used: str
    ) -> Present:
        """Return the content without schedules for kernels that no longer exist."""
        from kerngen.source.diagnostic import CompileError
        from kerngen.tune.merge import pruned

        library = selection.library()

        def kernels_at(path: str) -> frozenset[str] | None:
            file = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
            try:
                return library.kernels(file)
            except FileNotFoundError:
                return None
            except (OSError, CompileError):  # a build reports it better
                return frozenset()

        text, gone = pruned(self.text, kernel, used, kernels_at)
        return Present(self.data, text, gone)

    def replace(self, out: Path, text: str) -> None:
        """Replace the file atomically; raise `OSError` if somebody saved it meanwhile."""
        from kerngen.output.atomic_replace import replace_atomically

        # 'x' fails if somebody made the file during the search.
        if self.data is None:
            with out.open("x", encoding="utf-8") as stream:
                stream.write(text)
        else:
            replace_atomically(out, self.data, text.encode(), say_waiting)


def read_present(out: Path | None, selection: Selection) -> Present:
    """Read the file; refuse one that was not written by `kerngen tune`, or is broken."""
    from kerngen.format.form import formatted
    from kerngen.source.reading import decode_source, read_data
    from kerngen.tune.write import HEADING

    if out is None:
        return Present()
    if out.suffix != SUFFIX:
        raise click.UsageError(f"--out: '{out}' is not a {SUFFIX} file.")
    if not out.resolve().is_relative_to(selection.base):
        raise click.UsageError(
            f"--out: '{out}' is not in '{selection.base}', so no build of that folder "
            "uses its schedules."
        )
    if not out.exists():
        return Present()
    data = read_data(out)
    source = decode_source(data, shown_path(out.resolve()))
    if not source.text.startswith(HEADING):
        raise click.ClickException(
            f"'{out}' was not written by 'kerngen tune', so it is not replaced."
        )
    formatted(source)  # its schedules for other sizes are kept, so it must be readable
    return Present(data, source.text.replace("\r\n", "\n"))

"""Arguments that name kernels: `kernel`, `file.kernel`, FILE.kern:kernel."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import final

import click

from kerngen.cli.arguments.paths import shown_path
from kerngen.cli.project import Selection, SourceFile
from kerngen.source.similar import suggesting
from kerngen.syntax.library import SUFFIX


@final
@dataclass(frozen=True, slots=True)
class NamedKernel:
    """A kernel of a source by name; it may have errors once compiled."""

    file: SourceFile
    name: str

    @property
    def shown(self) -> str:
        """The kernel's name, qualified if another kernel has the same one."""
        return f"{self.file.shown}:{self.name}"

    @property
    def in_file(self) -> str:
        """The kernel's name with its file's."""
        return f"{PurePosixPath(self.file.name).stem}.{self.name}"

    def is_called(self, name: str) -> bool:
        """Whether an argument may mean this kernel."""
        return name in {self.name, self.in_file}


def split_kernel(word: str) -> tuple[Path | None, str]:
    """Split an argument into a file, if it names one, and a kernel's name.

    >>> split_kernel("a/b.kern:c"), split_kernel("b.c"), split_kernel("b.kern")[1]
    ((PosixPath('a/b.kern'), 'c'), (None, 'b.c'), '')
    """
    if not word:
        raise click.UsageError("KERNEL can't be empty.")
    path, colon, name = word.partition(f"{SUFFIX}:")
    if colon or word.endswith(SUFFIX):
        return Path(f"{path}{SUFFIX}" if colon else word), name
    return None, word


def find_kernel(selection: Selection, wanted: str) -> NamedKernel:
    """Return the kernel that an argument names; raise if it may be several.

    Files without a kernel of that name, and other kernels, may have errors.
    """
    known = kernels_of(selection)
    matches = [each for each in known if not wanted or each.is_called(wanted)]
    matches = matches or _kept_kernels(selection, known, wanted)
    if len(matches) == 1:
        return matches[0]
    if not known:
        where = shown_path(selection.chosen)
        raise click.ClickException(f"There are no kernels in '{where}'.")
    if matches:
        which = (
            f"There are several kernels '{wanted}'" if wanted else "Say which kernel"
        )
        shown = ", ".join(each.shown for each in matches)
        raise click.ClickException(f"{which}: {shown}.")
    names = [each.in_file if "." in wanted else each.name for each in known]
    where = f" in '{known[0].file.shown}'" if len(selection.files) == 1 else ""
    sentence = f"There is no kernel '{wanted}'{where}."
    raise click.ClickException(suggesting(sentence, wanted, names))


def _kept_kernels(
    selection: Selection, known: Iterable[NamedKernel], wanted: str
) -> list[NamedKernel]:
    """Return the kernels `f_kept` of a name, which gradients that are given a `let` need.

    They are not in the text of a file, only in what the checker makes of it.
    """
    from kerngen.check.items.gradients import kept_name
    from kerngen.compiler import Compiler

    names = {kept_name(each.name) for each in known}
    if wanted.rpartition(".")[2] not in names:
        return []
    compiler = Compiler(selection.library())
    made = (
        NamedKernel(file, kernel.name)
        for file in selection.files
        for kernel in compiler.module(file.name).kernels
    )
    return [each for each in made if each.is_called(wanted)]


def find_stage(selection: Selection, wanted: str) -> tuple[NamedKernel, str]:
    """Return the kernel and the stage of an argument `kernel.stage`; "" for all stages.

    `a.b` may also be the kernel `b` of the file `a.kern`, which takes precedence.
    """
    kernel, _, stage = wanted.rpartition(".")
    known = kernels_of(selection)
    if any(each.is_called(kernel) for each in known) and not any(
        each.is_called(wanted) for each in known
    ):
        return find_kernel(selection, kernel), stage
    return find_kernel(selection, wanted), ""


def kernels_of(selection: Selection) -> list[NamedKernel]:
    """Return all kernels of the sources, by file and name."""
    library = selection.library()
    return [
        NamedKernel(file, name)
        for file in selection.files
        for name in sorted(library.kernels(file.name))
    ]

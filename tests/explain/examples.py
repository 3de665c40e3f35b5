"""The examples on the pages: found in the Markdown, and given to the compiler.

An example is one program or several files, each block with its name above it; the first
one is compiled.  What can't be written down on a page is made by a program in Python.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from kerngen.bind.build import bind
from kerngen.compiler import Compiler
from kerngen.explain.pages import Page
from kerngen.report.findings import clashing_files
from kerngen.source.diagnostic import CompileError, Diagnostic
from kerngen.source.reading import read_source
from kerngen.source.text import Source
from kerngen.syntax.library import Library
from tests.compile import library_of

PROGRAM: Final = "example.kern"
"""What a program without a name is called."""

WGSL: Final = "example.wgsl"
"""What a shader without a name is called."""

_SECTIONS = re.compile(r"(.*)\n## Wrong\n(.*)\n## Right\n(.*)", re.DOTALL)
_MESSAGE = re.compile(r"```text\n(.*?)```\n", re.DOTALL)
_BLOCK = re.compile(
    r"(?:^`([^`\n]+)`:\n\n)?^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Block:
    """A block of code: the file that it is, the language, and the text."""

    file: str
    language: str
    text: str


@dataclass(frozen=True)
class Sections:
    """The parts of a page."""

    prose: str
    wrong: str
    right: str

    @property
    def message(self) -> str:
        """The one block that holds what the compiler prints."""
        (found,) = _MESSAGE.findall(self.wrong)
        return str(found)


def sections(page: Page) -> Sections:
    """Return the parts of a page."""
    found = _SECTIONS.fullmatch(page.text)
    assert found is not None, f"{page.code} has no '## Wrong' before its '## Right'"
    return Sections(*found.groups())


def with_message(page: Page, message: str) -> str:
    """Return the text of a page as if the compiler printed that, behind the wrong program."""
    wrong = sections(page).wrong
    block = f"```text\n{message}```\n"
    if not _MESSAGE.search(wrong):
        return page.text.replace(wrong, f"{wrong.rstrip()}\n\n{block}")
    return page.text.replace(wrong, _MESSAGE.sub(lambda _: block, wrong))


def blocks(section: str) -> list[Block]:
    """Return the blocks of a section, but for the compiler's message."""
    found = [Block(name or PROGRAM, *rest) for name, *rest in _BLOCK.findall(section)]
    return [block for block in found if block.language != "text"]


def example_library(section: str, folder: Path) -> Library:
    """Return the files of an example; a folder is for what has to be on the disk."""
    found = blocks(section)
    if found[0].language == "python":
        _run(found, folder)
        names = [file.name for file in folder.glob("*.kern") if file.is_file()]
        return Library(lambda name: read_source(folder / name, name), names)
    texts = {block.file: block.text for block in found}

    return library_of(texts, _root(found[0].file))


def _run(found: list[Block], folder: Path) -> None:
    """Run the program that makes an example."""
    (block,) = found
    with contextlib.chdir(folder):
        exec(block.text, {})


def _root(file: str) -> str | None:
    first, *rest = PurePosixPath(file).parts
    return first if rest else None


def main_file(section: str) -> str:
    """Return the file of an example that is compiled."""
    first = blocks(section)[0]
    return PROGRAM if first.language == "python" else first.file


def compile_example(section: str, folder: Path) -> tuple[Diagnostic, ...]:
    """Return the warnings of an example; raise `CompileError` if it is wrong."""
    library, main = example_library(section, folder), main_file(section)
    compiler = Compiler(library, formatted=False)
    warnings = compiler.module(main).warnings
    names = {main, *(block.file for block in blocks(section))}
    paths = {name: _placed(name, compiler.check(name)) for name in names}
    if clashing := [*clashing_files(library, paths)]:
        raise CompileError(clashing)
    return warnings


def _placed(name: str, files: tuple[str, ...]) -> list[str]:
    return [f"{PurePosixPath(name).parent / file}" for file in files]


def wgsl_of(section: str, folder: Path) -> str | None:
    """Return an example in WGSL, maybe one that a program makes."""
    first = blocks(section)[0]
    if first.language == "python" and WGSL in first.text:
        _run([first], folder)
        return (folder / WGSL).read_text("utf-8")
    return first.text if first.language == "wgsl" else None


def faults_of(section: str, folder: Path) -> tuple[Diagnostic, ...]:
    """Return what is wrong with an example, or what it is warned of."""
    try:
        text = wgsl_of(section, folder)
        if text is not None:
            bind(Source(WGSL, text), text.encode())
            return ()
        return compile_example(section, folder)
    except CompileError as error:
        return error.diagnostics

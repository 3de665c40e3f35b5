"""How a block is judged, by its language.  A language that is not here is an error."""

from __future__ import annotations

import ast
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import yaml

import kerngen.runtime as gpu
from tests.docs.blocks import Block
from tests.docs.compare import is_shown
from tests.docs.console import commands_of, judge, run, words_of
from tests.docs.session import Session


def _program(session: Session, block: Block) -> None:
    """Check a program; those without a title are one, as far as the page has come."""
    if block.title is None and not block.note:
        codes = session.grow(block.text)
    else:
        file = session.write(block.title or "page.kern", block.text)
        codes = session.check(file)
        if block.title is not None and not codes:
            session.titled.append(file)
    expected = set(block.codes) if block.fails else set[str]()
    assert set(codes) == expected, f"{block}\n{session.output}"
    assert block.note in {None, "nightly"} or codes, block


def _python(session: Session, block: Block) -> None:
    name = str(block)
    in_notebook = session.shell is not None and block.title is None
    if in_notebook or block.text.startswith("%"):
        session.run_cell(block.text)
        return
    ast.parse(block.text, name)
    if block.title is not None:
        session.write(block.title, block.text)
    elif block.note == "raises":
        session.run_and_fail(block.text, name)
    elif block.note != "foreign":
        session.run(block.text, name)


def _console(session: Session, block: Block) -> None:
    """Run commands, and compare their output where the page shows it."""
    for command, shown in commands_of(block.text):
        name, *words = words_of(command)
        if block.note == "not run":
            judge(command)
        elif name == "cd":
            session.folder = (session.folder / words[0]).resolve()
            os.chdir(session.folder)
        else:
            status = run(session, command)
            assert status == int(block.fails), f"{block}: {command}\n{session.output}"
            if shown:
                _compare(session, block, shown)


def _output(session: Session, block: Block) -> None:
    """Compare with what the block before printed."""
    if block.note != "picture":
        _compare(session, block, block.text)


def _compare(session: Session, block: Block, shown: str) -> None:
    assert session.output is not None, f"{block}: nothing printed this: {shown}"
    same = is_shown(session.output, shown, figures=block.figures)
    assert same, f"{block}: the page shows\n{shown}\nbut it is\n{session.output}"


def _shader(session: Session, block: Block) -> None:
    """Find a part of a generated shader, or compile one that was written by hand.

    One with a title is a file of the reader's, which `kerngen bind` reads.
    """
    if block.title is not None:
        session.write(block.title, block.text)
        return
    if block.note == "compiled":
        with gpu.open(adapter="software") as ctx:
            ctx.device.create_shader_module(code=block.text)
        return
    parts = map(_lines, block.text.split("...\n"))
    pattern = re.compile(".*?".join(map(re.escape, parts)), re.DOTALL)
    found = any(pattern.search(_lines(text)) for text in _shaders(session))
    assert found, f"{block}: no shader holds\n{block.text}"


def _shaders(session: Session) -> Iterator[str]:
    """Yield what was built, and the shaders of the page's programs, which may not be."""
    for file in session.folder.rglob("*.wgsl"):
        yield file.read_text("utf-8")
    yield from session.compile_program()
    for file in session.titled:
        yield from session.compile(file)


def _lines(text: str) -> str:
    """A text without indentation and blank lines."""
    return "".join(f"{line.strip()}\n" for line in text.splitlines() if line.strip())


def _parsed(parse: Callable[[str], object]) -> Callable[[Session, Block], None]:
    def judged(session: Session, block: Block) -> None:
        parse(block.text)
        if block.title is not None:
            session.write(block.title, block.text)

    return judged


def _file(session: Session, block: Block) -> None:
    """Write a file of a page for browsers or editors, which other tests open."""
    assert block.title is not None, f"{block}: it has no title"
    session.write(block.title, block.text)


JUDGES: Final[Mapping[str, Callable[[Session, Block], None]]] = {
    "rust": _program,  # what highlights kernels best
    "python": _python,
    "console": _console,
    "text": _output,
    "wgsl": _shader,
    "json": _parsed(json.loads),
    "toml": _parsed(tomllib.loads),
    "yaml": _parsed(yaml.safe_load),
    "html": _file,
    "js": _file,
    "lua": _file,  # settings of editors: tests/lsp runs them
    "lisp": _file,
}
"""What is done with a block of each language."""

"""Every block of code in the documentation is run, or judged."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from kerngen.runtime import Context
from tests.docs.blocks import Block, blocks_of, pages
from tests.docs.compare import is_shown
from tests.docs.judges import JUDGES
from tests.docs.session import session
from tests.project.tree import ROOT

CHAPTERS = [ROOT / "docs" / "tutorial"]
"""Folders whose pages are read one after the other, in one folder of the reader's."""


def courses() -> dict[str, list[Block]]:
    """Return what a reader follows from beginning to end: a page, or some chapters."""
    found: dict[str, list[Block]] = defaultdict(list)
    for page in pages():
        course = page.parent if page.parent in CHAPTERS else page
        found[course.relative_to(ROOT).as_posix()] += blocks_of(page)
    return {name: blocks for name, blocks in found.items() if blocks}


COURSES = courses()
LONG = [n for n, blocks in COURSES.items() if any(b.nightly for b in blocks)]


def follow(blocks: list[Block], folder: Path) -> None:
    """Do what pages say, block by block."""
    with session(folder) as reader:
        for block in blocks:
            assert block.language in JUDGES, f"{block}: nobody can judge that"
            JUDGES[block.language](reader, block)
        reader.compile_program()


@pytest.fixture(autouse=True)
def on_software(ctx: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give pages the adapter that tests expect."""
    assert ctx.kind == "software"
    monkeypatch.setenv("KERNGEN_ADAPTER", "software")


@pytest.mark.parametrize("name", COURSES)
def test_a_page_is_true(name: str, tmp_path: Path) -> None:
    follow([block for block in COURSES[name] if not block.nightly], tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("name", LONG)
def test_all_of_a_long_page_is_true(name: str, tmp_path: Path) -> None:
    follow(COURSES[name], tmp_path)


FALSE = {
    "```fortran\nend\n```": "nobody can judge",
    "```\nwhat is this?\n```": "nobody can judge",
    "```rust\nkernel k(x: f32[n]) -> y: f32[n] { y[i] = z[i]; }\n```": "'z'",
    "<!-- docs: fails KG0301 -->\n```rust\nfn f(x: f32) -> f32 { x }\n```": "'rust'",
    "```python\n1 / 0\n```": "division by zero",
    "<!-- docs: raises -->\n```python\n1\n```": "raises nothing",
    "```python\nprint(2)\n```\n\n```text\n3\n```": "but it is\n2",
    "```text\n3\n```": "nothing printed",
    "```console\n$ kerngen check nothing.kern\n```": "does not exist",
    "```console\n$ kerngen tumble\n```": "No such command",
    "<!-- docs: not run -->\n```console\n$ kerngen bench --quickly\n```": "no option",
    "<!-- docs: nightly fails -->\n```console\n$ kerngen explain KG0301\n```": "KG0301",
    "```console\n$ make install\n```": "Nobody knows 'make'",
    "```console\nno command\n```": "without a command",
    "<!-- docs: foreign -->\n```python\ndef f(:\n```": "invalid syntax",
    "```json\n{,}\n```": "Expecting property name",
    "```wgsl\nfn nothing() {}\n```": "no shader holds",
    "<!-- docs: compiled -->\n```wgsl\nfn main( {\n```": "expected",
    "<!-- docs: ignored -->\n```python\n1\n```": "docs: ignored",
    "<!-- docs: foreign -->\n\nText.\n": "nothing follows",
    "Text.\n\n    code\n": "indented code",
}


@pytest.mark.parametrize(("page", "said"), FALSE.items())
def test_what_is_false_is_found(page: str, said: str, tmp_path: Path) -> None:
    file = ROOT / "docs" / "page.md"
    with pytest.raises(Exception, match=said):
        follow(list(blocks_of(file, page)), tmp_path)


@pytest.mark.parametrize(
    ("output", "shown", "same"),
    [
        ("a\nb  \n\n", "a\nb", True),
        ("a\nb\nc\n", "a\n...\nc", True),
        ("a 12 ms\n", "a ... ms", True),
        ("ab\n", "b", False),
        ("a\n", "a\nb", False),
    ],
)
def test_outputs_are_compared(output: str, shown: str, same: bool) -> None:
    assert is_shown(output, shown) == same


def test_figures_may_differ() -> None:
    assert is_shown("gemm  5  38.1 ms  96%", "gemm 7 2.62 us 3%", figures=True)
    assert not is_shown("gemm 1", "gemv 1", figures=True)

"""Nothing that a user writes becomes markup."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import kerngen
import kerngen.runtime as gpu
from kerngen.runtime import f32
from kerngen.runtime.notebook.kernel_html import kernel_html, module_html
from kerngen.runtime.notebook.tensor_html import tensor_html
from tests.cli.sample import edit
from tests.fuzz.hostile import PATHS, TURNS, program, programs
from tests.jit.conftest import Notebook

HOSTILE = "</pre></div><script>alert('x')</script><img src=x onerror=\"alert(1)\">&amp;"
ALLOWED = {
    *("b", "code", "details", "div", "pre", "span", "summary"),
    *("table", "td", "th", "tr"),
}


Tree: TypeAlias = "list[tuple[str, object, Tree]]"
"""The elements of a page, each with its attributes and what is in it, without texts."""


class Reader(HTMLParser):
    """Collects the elements and the text of a page, and that each element is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tree: Tree = []
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self._open: list[tuple[str, Tree]] = [("", self.tree)]
        self.feed(page)
        self.close()
        assert [tag for tag, _ in self._open] == [""]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        inner: Tree = []
        self._open[-1][1].append((tag, attrs, inner))
        self._open.append((tag, inner))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        pytest.fail(f"a comment: {data}")

    def handle_decl(self, decl: str) -> None:
        pytest.fail(f"a declaration: {decl}")

    def handle_pi(self, data: str) -> None:
        pytest.fail(f"an instruction: {data}")

    def unknown_decl(self, data: str) -> None:
        pytest.fail(f"a declaration: {data}")


@pytest.fixture
def module(tmp_path: Path) -> kerngen.KernelModule:
    """Return a module that is hostile wherever its language allows any text."""
    folder = HOSTILE.replace("/", "")
    file = tmp_path / folder / f"{folder}.kern"
    text = (
        f"//! {HOSTILE}\n/// {HOSTILE}\nstruct Light {{\n    /// {HOSTILE}\n    a: f32,\n}}\n"
        f"/// {HOSTILE}\nkernel lit(\n    /// {HOSTILE}\n    x: f32[n],\n    "
        f"/// {HOSTILE}\n    k: f32 = 1.0,\n) -> y: f32[n] {{\n"
        f"    // {HOSTILE}\n    y[i] = if k < 1.0 and k > 0.0 {{ x[i] }} else {{ 0.0 }};\n}}\n"
    )
    edit(file, text)
    return kerngen.load(file)


def test_modules_and_functions_are_escaped(
    module: kerngen.KernelModule, notebook: Notebook
) -> None:
    for value in (module, module.lit):
        read = Reader(notebook.shown(value)["text/html"])
        assert {*read.tags} <= ALLOWED
        assert read.attributes <= {"style"}
        assert HOSTILE in read.text
        assert "if k < 1.0 and k > 0.0" in read.text


def test_programs_are_coloured_by_the_notebooks_theme(notebook: Notebook) -> None:
    module = kerngen.compile("kernel k(x: f32[n]) -> y: f32[n] { y[i] = 0.5 * x[i]; }")
    page = notebook.shown(module.k)["text/html"]
    for name, text in (("keyword", "kernel"), ("builtin", "f32"), ("number", "0.5")):
        colour = f"color: var(--jp-mirror-editor-{name}-color, inherit)"
        assert f'<span style="{colour}">{text}</span>' in page


def trees(module: Any) -> list[Tree]:
    """What a browser makes of a module and of its kernel."""
    pages = (module_html(module), kernel_html(module.k))
    return [Reader(page).tree for page in pages]


@pytest.mark.parametrize("turn", TURNS)
def test_comments_change_no_element(turn: int) -> None:
    plain = trees(kerngen.compile(program("text")))
    assert "pre" in str(plain[1])
    for hostile in programs(turn):
        assert trees(kerngen.compile(hostile)) == plain


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such names")
def test_names_of_files_change_no_element(tmp_path: Path) -> None:
    """Those of schedules' titles, of where a kernel is, and of headers of shaders."""
    text = "kernel k(x: f32[n]) -> y: f32[n] { y[i] = 2.0 * x[i]; }\n"
    plain = trees(kerngen.compile(text))
    for path in (each for each in PATHS if "/" not in each):
        edit(tmp_path / path, text)
        assert trees(kerngen.load(tmp_path / path)) == plain


class HostileContext:
    """A context whose adapter's driver gives it a hostile name."""

    adapter_name = kind = HOSTILE


class HostileTensor:
    """A tensor whose values are text."""

    ctx = HostileContext()
    element = f32
    shape = (1,)
    nbytes = 4

    def numpy(self) -> str:
        return HOSTILE


class LostTensor(HostileTensor):
    """A tensor whose device gives a hostile reason for its loss."""

    def numpy(self) -> str:
        raise gpu.Error(HOSTILE)


@pytest.mark.parametrize("kind", [HostileTensor, LostTensor])
def test_a_tensor_is_escaped(kind: Any) -> None:
    read = Reader(tensor_html(kind()))
    assert [*read.tags] == ["div", "div", "code", "pre"]
    assert read.text.count(HOSTILE) == 3

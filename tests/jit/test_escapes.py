"""Nothing that a user writes becomes markup."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

import kerngen
from tests.cli.sample import edit
from tests.jit.conftest import Notebook

HOSTILE = "</pre></div><script>alert('x')</script><img src=x onerror=\"alert(1)\">&amp;"
ALLOWED = {
    *("b", "code", "details", "div", "pre", "span", "summary"),
    *("table", "td", "th", "tr"),
}


class Reader(HTMLParser):
    """Collects the tags, attributes and texts of a page, and that each tag is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


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

"""The site can be read without a network; `tools/test` builds it."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from mkdocs.exceptions import PluginError

from tests.project.tree import ROOT

HOOKS = runpy.run_path(str(ROOT / "tools" / "mkdocs_hooks.py"))
on_post_page = cast("Callable[[str], str]", HOOKS["on_post_page"])
with_links = cast("Callable[[str, str], str]", HOOKS["with_links"])


@pytest.mark.parametrize(
    "fetching",
    [
        '<script src="https://example.org/a.js"></script>',
        '<link rel="stylesheet" href="https://example.org/a.css">',
        '<img alt="" src="http://example.org/a.png">',
        '<link rel="canonical" href="/a"><link rel="icon" href="http://example.org/a">',
    ],
)
def test_a_page_that_fetches_something_is_refused(fetching: str) -> None:
    with pytest.raises(PluginError, match=r"example\.org"):
        on_post_page(f"<p>{fetching}</p>")


def test_a_link_to_elsewhere_is_none() -> None:
    page = '<a href="https://example.org"><img src="pipeline.svg"></a>'
    assert on_post_page(page) == page


def test_the_address_of_a_page_that_is_served_is_not_fetched() -> None:
    page = '<link rel="canonical" href="http://127.0.0.1:8000/bench.html">'
    assert on_post_page(page) == page


def test_a_program_is_in_the_link_below_it() -> None:
    program = "kernel k(x: f32[n]) -> y: f32[n] { y[i] = x[i]; } // ä\n"
    block = f'```rust title="dsl/k.kern"\n{program}```'
    linked = with_links(f"Text.\n\n{block}\n\nMore.\n", "../")
    found = re.search(r'```\n\n<.*href="\.\./playground/index\.html#(.*)"', linked)
    assert found
    assert b64decode(found[1]).decode() == program


def test_a_program_of_several_files_has_no_link() -> None:
    page = '```rust\nuse "other.kern";\n```\n\n```text\nkernel\n```\n'
    assert with_links(page, "") == page


@pytest.mark.nightly
def test_the_site_is_built_without_warnings(tmp_path: Path) -> None:
    """With --quiet, --strict sees no warnings."""
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--site-dir",
        str(tmp_path),
    ]
    surroundings = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=surroundings, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "errors" / "KG0001.html").is_file()
